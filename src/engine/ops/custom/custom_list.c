/* custom_list.c - finds the operators of programs; see custom.h. */
#include "base/error.h"
#include "engine/ops/custom/custom.h"

_Atomic(pith__custom_op *) pith__custom_registered;
static atomic_bool extras_taken;

pith_status pith__custom_begin(pith_error *err) {
    if (atomic_load(&extras_taken)) return PITH_OK;
    for (const pith__extra_op *extra = pith__extra_op_table; extra->op; extra++)
        PITH_TRY(extra->take(extra, err));
    atomic_store(&extras_taken, true);
    return PITH_OK;
}

pith__custom_op *pith__custom_first(void) { return atomic_load(&pith__custom_registered); }

static bool custom_is(const pith__custom_op *op, pith_str domain, pith_str name) {
    return pith__str_is(name, op->op.name) && pith__str_is(domain, op->op.domain);
}

const pith__op *pith__custom_find(const pith_operator_set *set, pith_str domain, pith_str name) {
    const size_t count = set ? set->count : 0;
    for (size_t i = 0; i < count; i++)
        if (custom_is(&set->ops[i], domain, name)) return &set->ops[i].op;
    for (const pith__custom_op *at = pith__custom_first(); at; at = at->next)
        if (custom_is(at, domain, name)) return &at->op;
    return NULL;
}
