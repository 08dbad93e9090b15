/* custom_list.c - the list of the operators of programs; see custom.h. */
#include "base/error.h"
#include "engine/ops/custom/custom.h"

_Atomic(pith_custom_op *) pith_custom_registered;
static atomic_bool extras_taken;

pith_status pith_custom_begin(pith_error *err) {
    if (atomic_load(&extras_taken)) return PITH_OK;
    for (const pith_extra_op *extra = pith_extra_op_table; extra->op; extra++) PITH_TRY(extra->take(extra, err));
    atomic_store(&extras_taken, true);
    return PITH_OK;
}

pith_custom_op *pith_custom_first(void) { return atomic_load(&pith_custom_registered); }

const pith_op *pith_custom_find(pith_str domain, pith_str name) {
    for (const pith_custom_op *at = pith_custom_first(); at; at = at->next)
        if (pith_str_is(name, at->op.name) && pith_str_is(domain, at->op.domain)) return &at->op;
    return NULL;
}
