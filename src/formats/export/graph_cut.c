/* graph_cut.c - see graph_cut.h. */
#include "formats/export/graph_cut.h"

#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/memory/span_map.h"
#include "formats/export/new_nodes.h"

/* The fields that messages name. */
#define INPUTS "pith_optimize_options.inputs"
#define OUTPUTS "pith_optimize_options.outputs"

/* A value by its name; outputs go first, by the name that callers see. A value of a node that
 * passes removed has no producer and does not count. */
static pith__value *cut_find(const pith__graph *graph, const char *name) {
    for (size_t i = 0; i < graph->output_count; i++)
        if (pith__str_is(pith__graph_output_name(graph, i), name)) return graph->outputs[i];
    for (size_t i = 0; i < graph->value_count; i++) {
        pith__value *v = graph->values[i];
        if (v->name.size && pith__str_is(v->name, name) &&
            (v->kind != PITH_VALUE_NODE || v->producer))
            return v;
    }
    return NULL;
}

static pith_status cut_no_value(const char *field, const char *name, pith_error *err) {
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "%s: the graph has no value '%s'; PITH_DESCRIBE_DOT of pith_model_describe "
                      "shows them",
                      field, name);
}

/* What the new outputs do not need is swept away. */
static pith_status cut_outputs(pith__graph *graph, const pith__graph_cut_part *cut,
                               pith_error *err) {
    pith__value **values = pith__arena_array(graph->arena, cut->output_count, sizeof *values);
    pith_str *names = pith__arena_array(graph->arena, cut->output_count, sizeof *names);
    if (!values || !names) return pith__fail_memory(err, 0);
    for (size_t i = 0; i < cut->output_count; i++) {
        values[i] = cut_find(graph, cut->outputs[i]);
        names[i] = pith__arena_str(graph->arena, pith__str_of(cut->outputs[i]));
        if (!values[i]) return cut_no_value(OUTPUTS, cut->outputs[i], err);
        if (!names[i].data) return pith__fail_memory(err, 0);
        for (size_t k = 0; k < i; k++)
            if (values[k] == values[i])
                return pith__fail(err, PITH_ERR_ARGUMENT, "%s: '%s' is there twice", OUTPUTS,
                                  cut->outputs[i]);
    }
    return pith__new_node_outputs(graph, values, names, cut->output_count, err);
}

/* The input that stands for a value; the value itself, if it is one already. What was inferred of
 * the value is what the new input declares, without contents, which passes had found for the old
 * graph. The input takes over the name. */
static pith_status cut_input(pith__value **input, pith__graph *graph, const char *name,
                             pith_error *err) {
    pith__value *v = cut_find(graph, name);
    if (!v) return cut_no_value(INPUTS, name, err);
    *input = v;
    if (v->kind == PITH_VALUE_INPUT) return PITH_OK;
    if (v->kind != PITH_VALUE_NODE)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%s: '%s' is a constant and cannot be an input",
                          INPUTS, name);
    const pith_str own = pith__arena_str(graph->arena, pith__str_of(name));
    *input = pith__graph_add_value(graph, own, PITH_VALUE_INPUT);
    pith__type *hint = pith__arena_alloc(graph->arena, sizeof *hint);
    if (!own.data || !*input || !hint) return pith__fail_memory(err, 0);
    *hint = v->type;
    hint->data = NULL;
    hint->elems = NULL;
    (*input)->type = *hint;
    (*input)->hint = hint;
    v->name = PITH_STR("");
    return pith__value_replace(v, *input) ? pith__fail_memory(err, 0) : PITH_OK;
}

/* Each cut value is replaced by an input in all its readers, so what made it is no longer needed
 * and is swept. Whatever input is needed after that must be among those that were named. */
static pith_status cut_inputs(pith__graph *graph, const pith__graph_cut_part *cut,
                              pith_error *err) {
    pith__value **inputs = pith__arena_array(graph->arena, cut->input_count, sizeof *inputs);
    if (!inputs) return pith__fail_memory(err, 0);
    for (size_t i = 0; i < cut->input_count; i++) {
        PITH_TRY(cut_input(&inputs[i], graph, cut->inputs[i], err));
        for (size_t k = 0; k < i; k++)
            if (inputs[k] == inputs[i])
                return pith__fail(err, PITH_ERR_ARGUMENT, "%s: '%s' is there twice", INPUTS,
                                  cut->inputs[i]);
    }
    pith__graph_sweep(graph);
    for (size_t i = 0; i < graph->input_count; i++) {
        const pith__value *v = graph->inputs[i];
        bool named = false;
        for (size_t k = 0; k < cut->input_count; k++) named = named || inputs[k] == v;
        if (!named && (v->user_count || v->output_uses))
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "%s: the outputs need the input '" PITH_STR_FMT "', too; name it",
                              INPUTS, PITH_STR_ARG(v->name));
    }
    graph->inputs = inputs;
    graph->input_count = cut->input_count;
    return PITH_OK;
}

static void cut_unused_inputs(pith__graph *graph) {
    size_t count = 0;
    for (size_t i = 0; i < graph->input_count; i++) {
        pith__value *v = graph->inputs[i];
        if (v->user_count || v->output_uses) graph->inputs[count++] = v;
    }
    graph->input_count = count;
}

pith_status pith__graph_cut(pith__graph *graph, const pith__graph_cut_part *cut, pith_error *err) {
    if (cut->output_count) PITH_TRY(cut_outputs(graph, cut, err));
    if (cut->input_count) return cut_inputs(graph, cut, err);
    if (cut->output_count) cut_unused_inputs(graph);
    return PITH_OK;
}

/* ---- constants ---- */

/* The size and a hash of the contents. */
static pith_status cut_key(pith_str *key, const pith_tensor *t, pith__stop *stop,
                           pith__arena *arena, pith_error *err) {
    uint64_t about[2] = { 0, t->bytes };
    pith__hash hash;
    pith__hash_init(&hash);
    PITH_TRY(pith__hash_add_until(&hash, t->data, t->bytes, stop, err));
    about[0] = pith__hash_end(&hash);
    *key = pith__arena_str(arena, (pith_str){ (const char *)about, sizeof about });
    return key->data ? PITH_OK : pith__fail_memory(err, sizeof about);
}

/* Whether two constants with the same key are the same. */
static pith_status cut_compare(bool *same, const pith_tensor *a, const pith_tensor *b,
                               pith__stop *stop, pith_error *err) {
    enum { PIECE = 4 << 20 };
    *same = a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
            !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
    for (size_t at = 0, n; *same && at < a->bytes; at += n) {
        n = a->bytes - at < PIECE ? a->bytes - at : PIECE;
        if (at) PITH_TRY(pith__stop_check(stop, err));
        *same = !memcmp((const char *)a->data + at, (const char *)b->data + at, n);
    }
    return PITH_OK;
}

/* Constants are found by a hash of their bytes. Of two with the same hash, and other bytes or
 * another type, the first one stays the only one that others can share. */
pith_status pith__graph_cut_share_constants(size_t *shared, pith__graph *graph, pith_error *err) {
    pith__stop *stop = pith__graph_stop(graph);
    pith__map seen;
    *shared = 0;
    if (pith__map_init(&seen, graph->arena, graph->value_count)) return pith__fail_memory(err, 0);
    for (size_t i = 0; i < graph->value_count; i++) {
        pith__value *v = graph->values[i];
        const pith_tensor *t = v->type.data;
        if (v->kind != PITH_VALUE_CONST || !v->user_count || v->output_uses || !t ||
            t->dtype == PITH_STRING || !t->bytes)
            continue;
        pith_str key;
        PITH_TRY(cut_key(&key, t, stop, graph->arena, err));
        const uint32_t at = pith__map_get(&seen, key);
        bool same = false;
        if (at != UINT32_MAX)
            PITH_TRY(cut_compare(&same, graph->values[at]->type.data, t, stop, err));
        if (same) {
            if (pith__value_replace(v, graph->values[at])) return pith__fail_memory(err, 0);
            ++*shared;
        } else if (at == UINT32_MAX && !pith__map_put(&seen, key, (uint32_t)i, NULL)) {
            return pith__fail_memory(err, 0);
        }
    }
    return PITH_OK;
}
