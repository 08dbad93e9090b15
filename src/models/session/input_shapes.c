/* input_shapes.c - declared shapes against those the caller gives: fixed at open, or actual ones in
 * a run.
 *
 * A shape fixed at open replaces the declared one, and inference works with its numbers. What the
 * file declares about other values was made for its own input shapes, so it is dropped then. */
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "models/model.h"

static pith__value *find_input(const pith__graph *g, const char *name, size_t size) {
    for (size_t i = 0; i < g->input_count; i++) {
        if (pith__str_eq(g->inputs[i]->name, (pith_str){ name, size })) return g->inputs[i];
    }
    return NULL;
}

/* "name=1x3x480x640". The name may contain '=', so the last one counts. */
static pith_status fix_input(pith_model *m, const char *spec, pith_error *err) {
    const char *equal = strrchr(spec, '=');
    pith__dim dims[PITH_MAX_RANK];
    int rank;
    if (!equal || !pith__dims_parse(equal + 1, dims, &rank))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "pith_open_options.input_shapes: '%s' is not of the form name=1x3x480x640", spec);
    pith__value *v = find_input(m->graph, spec, (size_t)(equal - spec));
    if (!v || !v->hint)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_open_options.input_shapes: '%s': the model has no such input",
                          spec);
    if (v->type.data)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "pith_open_options.input_shapes: '%s': the input has a default, which fixes its shape",
            spec);
    if (v->hint->dtype >= PITH_DTYPE_COUNT)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_open_options.input_shapes: '%s': the input is not a tensor", spec);
    if (v->hint->rank >= 0 && v->hint->rank != rank)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_open_options.input_shapes: '%s': the input has rank %d", spec,
                          v->hint->rank);
    pith__type_set(v->hint, v->hint->dtype, rank, dims);
    v->fixed = true;
    return PITH_OK;
}

/* Inference gives inputs symbols for sizes; what the file said stays in the hint. */
static pith_status keep_declaration(pith_model *m, pith__value *v, pith_error *err) {
    pith__type *hint = pith__arena_array(&m->arena, 1, sizeof *hint);
    if (!hint) return pith__fail_memory(err, sizeof *hint);
    *hint = v->hint ? *v->hint : v->type;
    v->hint = hint;
    return PITH_OK;
}

/* Declared types of inner values may contradict fixed inputs, and are only hints, so they are
 * dropped. */
pith_status pith__model_fix_inputs(pith_model *m, pith_error *err) {
    for (size_t i = 0; i < m->graph->input_count; i++) {
        if (!m->graph->inputs[i]->type.data)
            PITH_TRY(keep_declaration(m, m->graph->inputs[i], err));
    }
    for (size_t i = 0; i < m->options.input_shape_count; i++)
        PITH_TRY(fix_input(m, m->options.input_shapes[i], err));
    if (!m->options.input_shape_count) return PITH_OK;
    for (size_t i = 0; i < m->graph->value_count; i++) {
        pith__value *v = m->graph->values[i];
        if (v && v->kind == PITH_VALUE_NODE) v->hint = NULL;
    }
    return PITH_OK;
}

/* Declarations are often those of the example that a model was exported with. So a difference is
 * told once and not obeyed. */
pith_status pith__model_check_input(const pith_model *m, size_t input, const pith_tensor *t,
                                    bool *warned, pith_error *err) {
    const pith__value *v = m->graph->inputs[input];
    const pith__type *declared = v->hint;
    char wanted[256], given[256];
    bool differs = false;
    if (!declared || v->fixed || *warned || m->graph->contradictory || declared->rank != t->rank ||
        t->dtype >= PITH_DTYPE_COUNT)
        return PITH_OK;
    for (int d = 0; d < t->rank; d++)
        differs |= pith__dim_known(declared->dims[d]) && declared->dims[d] != t->dims[d];
    if (!differs) return PITH_OK;
    pith__shape_text(m->graph->dims, declared->dims, declared->rank, wanted, sizeof wanted);
    pith__dims_text(t->dims, t->rank, given, sizeof given);
    if (m->options.flags & PITH_OPEN_STRICT_SHAPES)
        return pith__fail(err, PITH_ERR_ARGUMENT, "input '%s' is declared as %s but is %s",
                          m->inputs[input].name, wanted, given);
    *warned = true;
    pith__log_write(m->options.call.log, PITH_LOG_WARNING,
                    "input '%s' is declared as %s but is %s; the declaration is ignored",
                    m->inputs[input].name, wanted, given);
    return PITH_OK;
}
