/* pass_fold.c - computes at load what does not depend on the run.
 *
 * There are two kinds. Nodes whose inputs are all constants are run here, once, by their own
 * operator. Integers that shape inference already followed to plain numbers (the 16 in Shape →
 * Slice → Cast → Sqrt) become constants.
 *
 * A large result replaces mapped, shared weights by private memory, so it must not be much larger
 * than its inputs. A Cast or Transpose of a weight is left alone if a matmul reads it, since
 * pith.Linear looks through those. A node that fails here is left for the run to report. */
#include "base/dtype.h"
#include "engine/opt/evaluate_node.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* The largest result that is folded: GROWTH_MAX times its inputs, but at least SMALL_BYTES and at
 * most LARGE_BYTES. More folding saves work in each run and costs private memory. A result below
 * SMALL_BYTES is always worth it; a hostile file must not make a large one from a few bytes. */
#define SMALL_BYTES ((size_t)64 << 10)
#define LARGE_BYTES ((size_t)256 << 20)
#define GROWTH_MAX 8
/* The same for a graph that is to be written: shape arithmetic, positions and masks of short texts.
 */
#define WRITTEN_BYTES ((size_t)4 << 10)

/* A constant, or one of the graph around this one. */
static bool fold_reads(const pith__value *v) {
    return pith__match_const(v) || (v->kind == PITH_VALUE_CAPTURE && v->type.data);
}

static bool all_const(const pith__node *node) {
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && !fold_reads(node->inputs[i])) return false;
    }
    return true;
}

static bool foldable(const pith__node *node) {
    if (node->op->flags & PITH_OP_RANDOM || node->capture_count > 0) return false;
    for (size_t i = 0; i < node->attr_count; i++) {
        if (node->attrs[i].kind == PITH_ATTR_GRAPH || node->attrs[i].kind == PITH_ATTR_GRAPHS)
            return false;
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && node->outputs[i]->output_uses > 0) return false;
    }
    return true;
}

static bool moves_weight(const pith__node *node) {
    return pith__match_is(node, "Cast") || pith__match_is(node, "Transpose");
}

/* A matmul reads it as its weight, perhaps through further casts, which are marked already. */
static bool feeds_product(const pith__value *v) {
    for (size_t i = 0; i < v->user_count; i++) {
        const pith__node *user = v->users[i].node;
        if (v->users[i].input == 1 &&
            (pith__match_is(user, "MatMul") || pith__match_is(user, "Gemm")))
            return true;
        if (moves_weight(user) && user->mark) return true;
    }
    return false;
}

/* What is folded for a file must not make it larger: a constant that others read too stays. */
static size_t bytes_to_write(const pith__node *node) {
    size_t bytes = WRITTEN_BYTES;
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *v = node->inputs[i];
        const size_t own =
            v && !v->output_uses && v->user_count ? v->type.data->bytes / v->user_count : 0;
        if (own > bytes) bytes = own;
    }
    return bytes;
}

/* Marks the casts and transpositions of weights. */
static void mark_weights(pith__graph *graph) {
    for (pith__node *node = graph->last; node; node = node->prev)
        node->mark = moves_weight(node) && feeds_product(node->outputs[0]);
}

static size_t bytes_max(const pith__opt *o, const pith__node *node) {
    size_t in = 0;
    if (o->limits && o->limits->to_write) return bytes_to_write(node);
    if (o->level > 1 && node->mark) return SMALL_BYTES;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && node->inputs[i]->type.data->bytes > in)
            in = node->inputs[i]->type.data->bytes;
    }
    if (in > LARGE_BYTES / GROWTH_MAX) return LARGE_BYTES;
    return in * GROWTH_MAX < SMALL_BYTES ? SMALL_BYTES : in * GROWTH_MAX;
}

static pith_status replace_by_const(pith__graph *graph, pith__value *v, const pith_tensor *tensor,
                                    pith_error *err) {
    pith__value *c = pith__graph_add_const(graph, v->name, tensor);
    return c ? pith__match_replace(v, c, err) : pith__fail_memory(err, 0);
}

/* The node's outputs as tensors in the model's arena, made in a scratch arena first. */
static pith_status fold_node(pith__opt *o, pith__node *node, pith__arena *scratch,
                             size_t *changes) {
    pith__graph *graph = o->graph;
    const pith_tensor **in = pith__arena_array(scratch, (size_t)node->input_count, sizeof *in);
    pith_tensor *out = pith__arena_array(scratch, (size_t)node->output_count, sizeof *out);
    if (!in || !out) return pith__fail_memory(o->err, 0);
    for (int i = 0; i < node->input_count; i++)
        in[i] = node->inputs[i] ? node->inputs[i]->type.data : NULL;
    pith_status status = pith__eval_node(out, node, in, bytes_max(o, node), scratch, NULL);
    if (pith__status_stops(status)) return pith__stop_check(pith__graph_stop(graph), o->err);
    if (status) return status == PITH_ERR_MEMORY ? pith__fail_memory(o->err, 0) : PITH_OK;
    for (int i = 0; i < node->output_count; i++) {
        if (!node->outputs[i]) continue;
        if (!out[i].data || pith__dtype_bits(out[i].dtype) == 0 || out[i].dtype == PITH_STRING)
            return PITH_OK;
    }
    for (int i = 0; i < node->output_count; i++) {
        if (!node->outputs[i]) continue;
        void *data = pith__arena_alloc64(graph->arena, out[i].bytes);
        if (!data) return pith__fail_memory(o->err, out[i].bytes);
        PITH_TRY(
            pith__copy_until(pith__graph_stop(graph), data, out[i].data, out[i].bytes, o->err));
        out[i].data = data;
        PITH_TRY(replace_by_const(graph, node->outputs[i], &out[i], o->err));
    }
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && pith__match_user(node->inputs[i]) == node)
            pith__opt_release(o, node->inputs[i]);
    ++*changes;
    return PITH_OK;
}

/* A Constant's tensor becomes a constant where it lies, whatever its size. */
static pith_status fold_constant(pith__opt *o, const pith__node *node, size_t *changes) {
    pith__value *v = node->outputs[0];
    if (!v || !v->type.data || pith__dtype_bits(v->type.dtype) == 0 || v->type.dtype == PITH_STRING)
        return PITH_OK;
    ++*changes;
    return replace_by_const(o->graph, v, v->type.data, o->err);
}

/* Engines compute with weights of few bits as they are stored; ONNX Runtime leaves them too. */
static bool fold_may(const pith__opt *o, const pith__node *node) {
    return !(o->limits && o->limits->to_write && pith__match_is(node, "DequantizeLinear"));
}

/* An output whose integers inference knows as numbers. */
static pith_status fold_known(pith__opt *o, pith__value *v, size_t *changes) {
    int64_t items[PITH_ELEMS_MAX], count;
    if (v->user_count == 0 || v->output_uses > 0) return PITH_OK;
    if ((v->type.dtype != PITH_I64 && v->type.dtype != PITH_I32) || !pith__type_concrete(&v->type))
        return PITH_OK;
    if (!pith__match_ints(v, items, PITH_ELEMS_MAX, &count)) return PITH_OK;
    size_t size = v->type.dtype == PITH_I64 ? sizeof(int64_t) : sizeof(int32_t);
    pith_tensor t = { .bytes = (size_t)count * size, .dtype = v->type.dtype, .rank = v->type.rank };
    for (int d = 0; d < t.rank; d++) t.dims[d] = v->type.dims[d];
    t.data = pith__arena_alloc64(o->graph->arena, t.bytes);
    if (!t.data) return pith__fail_memory(o->err, t.bytes);
    for (int64_t i = 0; i < count; i++) {
        int32_t narrow = (int32_t)items[i];
        memcpy((char *)t.data + (size_t)i * size,
               size == sizeof narrow ? (void *)&narrow : (void *)&items[i], size);
    }
    ++*changes;
    return replace_by_const(o->graph, v, &t, o->err);
}

/* In the order of the graph, so that a node whose inputs were folded is folded in the same walk. */
static pith_status fold_run(pith__opt *o, size_t *changes) {
    pith__arena scratch;
    pith__arena_init(&scratch, o->allocator);
    pith_status status = PITH_OK;
    mark_weights(o->graph);
    for (pith__node *node = o->graph->first; node && !status; node = node->next) {
        if (!foldable(node)) continue;
        size_t before = *changes;
        if (pith__match_is(node, "Constant"))
            status = fold_constant(o, node, changes);
        else if (all_const(node) && fold_may(o, node))
            status = fold_node(o, node, &scratch, changes);
        for (int i = 0; i < node->output_count; i++) {
            if (status || *changes != before) break;
            if (node->outputs[i]) status = fold_known(o, node->outputs[i], changes);
        }
        pith__arena_reset(&scratch);
    }
    pith__arena_free(&scratch);
    return status;
}

const pith__pass pith__pass_fold = { "fold", 1, false, fold_run };
