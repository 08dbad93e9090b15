/* custom_list.c - the list of the operators of programs; see custom.h. */
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

const pith__op *pith__custom_find(pith_str domain, pith_str name) {
    for (const pith__custom_op *at = pith__custom_first(); at; at = at->next)
        if (pith__str_is(name, at->op.name) && pith__str_is(domain, at->op.domain)) return &at->op;
    return NULL;
}
