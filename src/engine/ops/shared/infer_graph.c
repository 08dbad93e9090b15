/* infer_graph.c - types through a whole graph, by each operator's own infer.
 *
 * Inputs count more than declared shapes: every size of a graph input becomes a symbol, unless the
 * caller fixed it. dim_param gives its name. A declared number becomes the symbol "number@axis",
 * shared by all inputs that have the same number at the same axis (ids and mask of a static
 * export), but not among vectors, where equal lengths mean little. Any other size is "input[axis]",
 * and so is every axis of a graph that is planned for sizes that do not agree (second_plan.c). */
#include <inttypes.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/text_out.h"
#include "engine/ops/shared/call_op.h"

/* ---- one node ---- */

/* Numbers of inputs and outputs; inputs that must be there; sequences only where the operator takes
 * them. */
static pith_status infer_check_counts(const pith__infer *c) {
    const pith__op *op = c->node->op;
    int given = c->in_count - c->node->capture_count;
    if (op->max_inputs >= 0 && given > op->max_inputs) {
        return pith__op_fail(c, "has %d inputs, at most %d are allowed", given, op->max_inputs);
    }
    if (op->max_outputs >= 0 && c->out_count > op->max_outputs) {
        return pith__op_fail(c, "has %d outputs, at most %d are allowed", c->out_count,
                             op->max_outputs);
    }
    bool all = op->max_inputs < 0 && !(op->flags & PITH_OP_GAPS);
    for (int i = 0; i < op->min_inputs || (all && i < given); i++)
        if (i >= given || !c->in[i]) return pith__op_fail(c, "input %d is missing", i);
    if (!(op->flags & PITH_OP_SEQUENCES)) {
        for (int i = 0; i < given; i++) {
            if (!c->in[i] || c->in[i]->dtype < PITH_DTYPE_COUNT) continue;
            return pith__op_fail(c, "input %d is %s, not a tensor", i,
                                 pith__dtype_name(c->in[i]->dtype));
        }
    }
    return PITH_OK;
}

/* "float32[batch, 384]". */
static const char *infer_type_text(const pith__dims *dims, const pith__type *type, char *buffer,
                                   size_t size) {
    size_t used = (size_t)snprintf(buffer, size, "%s", pith__dtype_name(type->dtype));
    pith__shape_text(dims, type->dims, type->rank, buffer + used, size - used);
    return buffer;
}

/* What an operator's infer gave: ranks and sizes that can be, and symbols that mean something in
 * this graph. One that does not is taken for unknown. */
static pith_status infer_check_output(const pith__infer *c, int index) {
    const pith__type *type = &c->out[index];
    if (type->rank > PITH_MAX_RANK) {
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "output %d has rank %d, at most %d is supported", index, type->rank,
                          PITH_MAX_RANK);
    }
    bool concrete = type->rank >= 0, negative = false;
    for (int i = 0; i < type->rank; i++) {
        concrete = concrete && pith__dim_known(type->dims[i]);
        negative = negative || (pith__dim_known(type->dims[i]) && type->dims[i] < 0);
        if (!pith__dim_means(c->dims, type->dims[i])) c->out[index].dims[i] = PITH_DIM_UNKNOWN;
    }
    size_t bytes;
    char text[256];
    if (negative) {
        return pith__op_fail(c, "output %d would have a negative size: %s", index,
                             infer_type_text(c->dims, type, text, sizeof text));
    }
    if (concrete && pith__dtype_bits(type->dtype) &&
        !pith__dtype_bytes(type->dtype, pith__type_count(type), &bytes)) {
        return pith__op_fail(c, "output %d of shape %s is too large", index,
                             pith__dims_text(type->dims, type->rank, text, sizeof text));
    }
    return PITH_OK;
}

/* The item is one that the dtype can hold; sizes fit the two dtypes that shapes are computed in. */
static bool infer_fits_dtype(const pith__dims *dims, int dtype, pith__dim item) {
    if (!pith__dim_known(item))
        return (dtype == PITH_I64 || dtype == PITH_I32) && pith__dim_means(dims, item);
    bool is_signed =
        dtype == PITH_I8 || dtype == PITH_I16 || dtype == PITH_I32 || dtype == PITH_I64;
    int bits = dtype == PITH_BOOL ? 1 : pith__dtype_bits(dtype) - is_signed;
    if (item < 0 && !is_signed) return false;
    return bits >= 63 || (item < 0 ? item >= -((int64_t)1 << bits) : item < (int64_t)1 << bits);
}

/* What arithmetic on followed contents cannot say is unknown: an operator wraps around where a
 * number leaves its dtype. */
static pith_status infer_settle_elems(const pith__infer *c, pith__type *type) {
    int64_t count = type->elems ? pith__type_count(type) : 0, i = 0;
    while (i < count && (type->elems[i] == PITH_DIM_UNKNOWN ||
                         infer_fits_dtype(c->dims, type->dtype, type->elems[i])))
        i++;
    if (i >= count) return PITH_OK;
    pith__dim *settled = pith__arena_array(c->arena, (size_t)count, sizeof *settled);
    if (!settled) return pith__fail_memory(c->err, (size_t)count * sizeof *settled);
    for (i = 0; i < count; i++) {
        bool fits = infer_fits_dtype(c->dims, type->dtype, type->elems[i]);
        settled[i] = fits ? type->elems[i] : PITH_DIM_UNKNOWN;
    }
    type->elems = settled;
    return PITH_OK;
}

/* Dtypes that operators do not take: all of a model in one message. */
struct pith__refusals {
    size_t count;
    pith__text_out list;
};

/* Fails, or notes it and goes on, if an input's dtype is not taken. */
static pith_status infer_check_dtypes(const pith__infer *c, bool *refused) {
    struct pith__refusals *all = c->refusals;
    for (int i = 0; i < c->in_count - c->node->capture_count; i++) {
        if (!c->in[i] || pith__op_takes(c->node->op, i, c->in[i]->dtype)) continue;
        const char *dtype = pith__dtype_name(c->in[i]->dtype),
                   *taken = pith__op_types_text(c->node->op, i);
        if (!all) {
            return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "input %d is %s; supported: %s", i,
                              dtype, taken);
        }
        char place[256];
        *refused = true;
        pith__text_put(&all->list, "%s%s: input %d is %s; supported: %s", all->count++ ? "; " : "",
                       pith__node_place(c->node, place, sizeof place), i, dtype, taken);
    }
    return PITH_OK;
}

static pith_status infer_unplaced(pith__infer *c) {
    bool refused = false;
    PITH_TRY(infer_check_counts(c));
    for (size_t i = 0; i < pith__node_out_room(c->node); i++) pith__type_init(&c->out[i]);
    PITH_TRY(infer_check_dtypes(c, &refused));
    if (refused) return PITH_OK; /* its outputs stay unknown */
    PITH_TRY(c->node->op->infer(c));
    for (int i = 0; i < c->out_count; i++) {
        PITH_TRY(infer_check_output(c, i));
        PITH_TRY(infer_settle_elems(c, &c->out[i]));
    }
    return PITH_OK;
}

pith_status pith__op_infer_node(pith__infer *c) {
    pith_status status = infer_unplaced(c);
    char place[256];
    return status ? pith__fail_at(c->err, status,
                                  "%s: ", pith__node_place(c->node, place, sizeof place))
                  : PITH_OK;
}

/* ---- declared shapes ---- */

static pith_status infer_input_symbol(pith__graph *graph, const pith__value *value, int axis,
                                      int rank, pith__dim *dim, pith_error *err) {
    char text[256];
    if (pith__dim_known(*dim) && rank >= 2 && !graph->apart) {
        snprintf(text, sizeof text, "%" PRId64 "@%d", *dim, axis);
    } else if (pith__dim_known(*dim) || *dim == PITH_DIM_UNKNOWN || graph->apart) {
        snprintf(text, sizeof text, PITH_STR_FMT "[%d]", PITH_STR_ARG(value->name), axis);
    } else {
        return PITH_OK;
    }
    *dim = pith__dim_symbol(graph->dims, pith__str_of(text));
    return *dim == PITH_DIM_UNKNOWN ? pith__fail_memory(err, sizeof text) : PITH_OK;
}

/* A graph input has what it declares, its sizes being symbols unless the caller fixed them. */
static pith_status infer_input(pith__graph *graph, pith__value *value, pith_error *err) {
    if (value->type.data) return PITH_OK;
    if (value->hint) value->type = *value->hint;
    pith__type *type = &value->type;
    type->data = NULL;
    type->elems = NULL;
    if (type->dtype == PITH_SEQUENCE || type->dtype == PITH_NONE) {
        type->rank = -1;
        return PITH_OK;
    }
    if (!value->fixed) {
        for (int i = 0; i < type->rank; i++)
            PITH_TRY(infer_input_symbol(graph, value, i, type->rank, &type->dims[i], err));
    }
    return PITH_OK;
}

/* Only known types and numbers can differ; a symbol fits everything. */
static bool infer_contradicts(const pith__type *declared, const pith__type *found) {
    if (declared->dtype && found->dtype && declared->dtype != found->dtype &&
        declared->dtype != PITH_NONE)
        return true;
    if (found->dtype == PITH_SEQUENCE || found->dtype == PITH_NONE) return false;
    if (declared->rank < 0 || found->rank < 0) return false;
    if (declared->rank != found->rank) return true;
    for (int i = 0; i < found->rank; i++) {
        if (pith__dim_known(declared->dims[i]) && pith__dim_known(found->dims[i]) &&
            declared->dims[i] != found->dims[i]) {
            return true;
        }
    }
    return false;
}

/* Declarations inside of a graph are often wrong: they are warned of once and ignored, unless the
 * caller wants a strict load. */
static pith_status infer_check_hint(const pith__graph *graph, pith__value *value, bool strict,
                                    pith_error *err) {
    if (!value->hint || value->warned || !infer_contradicts(value->hint, &value->type))
        return PITH_OK;
    char text[2][256];
    const char *declared = infer_type_text(graph->dims, value->hint, text[0], sizeof text[0]),
               *found = infer_type_text(graph->dims, &value->type, text[1], sizeof text[1]);
    if (strict) {
        return pith__fail(err, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is declared as %s but is %s",
                          PITH_STR_ARG(value->name), declared, found);
    }
    value->warned = true;
    if (graph->parent) return PITH_OK; /* it may be a branch that such inputs never take */
    pith__log_write(graph->log, PITH_LOG_WARNING,
                    "'" PITH_STR_FMT "' is declared as %s but is %s; the declaration is ignored",
                    PITH_STR_ARG(value->name), declared, found);
    return PITH_OK;
}

/* Sets the symbols of the inputs' axes to the sizes that the file declares there. */
static void infer_take_declared(pith__dim *sizes, const pith__graph *graph) {
    for (size_t i = 0; i < graph->input_count; i++) {
        const pith__value *v = graph->inputs[i];
        if (v->hint) {
            for (int d = 0; d < v->type.rank && d < v->hint->rank; d++) {
                int32_t symbol = pith__dim_symbol_index(graph->dims, v->type.dims[d]);
                if (symbol >= 0 && pith__dim_known(v->hint->dims[d]))
                    sizes[symbol] = v->hint->dims[d];
            }
        }
    }
}

/* Whether the size that follows from the declared inputs is another one than the file declares.
 * *follows becomes it. */
static bool infer_contradicts_inputs(pith__type *follows, const pith__graph *graph,
                                     const pith__value *v, const pith__dim *sizes) {
    bool differs = false;
    *follows = v->type;
    for (int d = 0; d < v->type.rank; d++) {
        if (!pith__dim_known(v->type.dims[d]))
            follows->dims[d] = pith__dim_eval(graph->dims, v->type.dims[d], sizes);
        differs =
            differs || (pith__dim_known(follows->dims[d]) && pith__dim_known(v->hint->dims[d]) &&
                        follows->dims[d] != v->hint->dims[d]);
    }
    return differs;
}

/* A file may declare sizes of inner values that do not follow from those of its inputs: someone
 * changed the inputs alone. The first such value is named, once for all of them. */
static pith_status infer_check_declared(pith__graph *graph, pith__arena *scratch, bool strict,
                                        pith_error *err) {
    const size_t symbols = pith__dims_symbol_count(graph->dims);
    pith__dim *sizes = pith__arena_array(scratch, symbols, sizeof *sizes);
    pith__type follows;
    if (!sizes) return pith__fail_memory(err, symbols * sizeof *sizes);
    for (size_t i = 0; i < symbols; i++) sizes[i] = PITH_DIM_UNKNOWN;
    infer_take_declared(sizes, graph);
    for (const pith__node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->output_count; i++) {
            const pith__value *v = node->outputs[i];
            if (!v || !v->hint || v->warned || v->hint->rank < 0 || v->hint->rank != v->type.rank)
                continue;
            if (!infer_contradicts_inputs(&follows, graph, v, sizes)) continue;
            char text[2][256];
            const char *declared = infer_type_text(graph->dims, v->hint, text[0], sizeof text[0]),
                       *found = infer_type_text(graph->dims, &follows, text[1], sizeof text[1]);
            if (strict)
                return pith__fail(err, PITH_ERR_FORMAT,
                                  "'" PITH_STR_FMT
                                  "' is declared as %s, but the declared inputs make it %s",
                                  PITH_STR_ARG(v->name), declared, found);
            graph->contradictory = true;
            pith__log_write(graph->log, PITH_LOG_WARNING,
                            "the file contradicts itself: '" PITH_STR_FMT
                            "' is declared as %s, but the declared inputs make it %s; declared "
                            "sizes are ignored",
                            PITH_STR_ARG(v->name), declared, found);
            return PITH_OK;
        }
    return PITH_OK;
}

/* ---- graphs ---- */

/* Arrays for the widest node. */
static pith_status infer_nodes(pith__graph *graph, pith__arena *scratch, bool strict,
                               struct pith__refusals *refusals, pith_error *err) {
    size_t widest_in = 0, widest_out = 0;
    for (const pith__node *node = graph->first; node; node = node->next) {
        if (!node->op) continue;
        if (pith__node_in_room(node) > widest_in) widest_in = pith__node_in_room(node);
        if (pith__node_out_room(node) > widest_out) widest_out = pith__node_out_room(node);
    }
    const pith__type **in = pith__arena_array(scratch, widest_in, sizeof *in);
    pith__type *out = pith__arena_array(scratch, widest_out, sizeof *out);
    if (!in || !out)
        return pith__fail_memory(err, widest_in * sizeof *in + widest_out * sizeof *out);
    pith__stop *stop = pith__graph_stop(graph);
    for (pith__node *node = graph->first; node; node = node->next) {
        if (!node->op)
            continue; /* it is there to be written only (export/), with the types that
                                    its maker gave it */
        PITH_TRY(pith__stop_check(stop, err));
        pith__infer c = pith__invoke_infer(node, in, out, graph->arena, err);
        c.dims = graph->dims;
        c.strict = strict;
        c.refusals = refusals;
        for (size_t i = 0; i < pith__node_in_room(node); i++) {
            const pith__value *value = pith__node_input(node, (int)i);
            in[i] = value ? &value->type : NULL;
        }
        PITH_TRY(pith__op_infer_node(&c));
        for (int i = 0; i < node->output_count; i++) {
            if (!node->outputs[i]) continue;
            node->outputs[i]->type = out[i];
            PITH_TRY(infer_check_hint(graph, node->outputs[i], strict, err));
        }
    }
    return PITH_OK;
}

static pith_status infer_graph(pith__graph *graph, bool strict, struct pith__refusals *refusals,
                               pith_error *err) {
    pith__arena scratch;
    pith__arena_init(&scratch, graph->arena->allocator);
    pith_status status = infer_nodes(graph, &scratch, strict, refusals, err);
    pith__arena_free(&scratch);
    return status;
}

pith_status pith__ops_check_declared(pith__graph *graph, bool strict, pith_error *err) {
    pith__arena scratch;
    pith__arena_init(&scratch, graph->arena->allocator);
    pith_status status = infer_check_declared(graph, &scratch, strict, err);
    pith__arena_free(&scratch);
    return status;
}

pith_status pith__ops_infer(pith__graph *graph, bool strict, pith_error *err) {
    for (size_t i = 0; i < graph->input_count; i++)
        PITH_TRY(infer_input(graph, graph->inputs[i], err));
    char list[PITH_ERROR_MESSAGE_SIZE];
    struct pith__refusals refusals = { .list = pith__text_begin(list, sizeof list) };
    PITH_TRY(infer_graph(graph, strict, &refusals, err));
    if (refusals.count == 1) return pith__fail(err, PITH_ERR_UNSUPPORTED, "%s", list);
    if (!refusals.count) return PITH_OK;
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "%zu inputs have dtypes that are not supported: %s", refusals.count, list);
}

/* Sets the types of the subgraph's inputs and captures, then goes through it. Without symbols (a
 * run) its outputs are as they were found at load, but their shapes are open. */
pith_status pith__infer_subgraph(pith__infer *c, const char *attribute, const pith__type *in,
                                 size_t in_count, pith__type *out, size_t out_count) {
    pith__graph *graph = pith__node_graph(c->node, attribute);
    if (!graph) return pith__op_fail(c, "attribute '%s' is missing", attribute);
    if (graph->input_count != in_count || graph->output_count != out_count) {
        return pith__op_fail(c, "'%s' has %zu inputs and %zu outputs, not %zu and %zu", attribute,
                             graph->input_count, graph->output_count, in_count, out_count);
    }
    if (c->dims) {
        for (size_t i = 0; i < in_count; i++) {
            graph->inputs[i]->type = in[i];
            graph->inputs[i]->type.data = NULL;
            graph->inputs[i]->type.elems = NULL;
        }
        for (size_t i = 0; i < graph->capture_count; i++) {
            const pith__type *outer = c->in[c->in_count - c->node->capture_count + (int)i];
            if (outer)
                graph->captures[i]->type = *outer;
            else
                pith__type_init(&graph->captures[i]->type);
        }
        pith_status status = infer_graph(graph, c->strict, c->refusals, c->err);
        if (status) return pith__fail_at(c->err, status, "%s: ", attribute);
    }
    for (size_t i = 0; i < out_count; i++) {
        out[i] = graph->outputs[i]->type;
        out[i].data = NULL;
        out[i].elems = NULL;
        if (!c->dims) out[i].rank = -1;
    }
    return PITH_OK;
}
