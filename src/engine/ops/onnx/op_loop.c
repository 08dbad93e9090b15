/* op_loop.c - Loop: runs a subgraph repeatedly. Some values are handed from one iteration to the
 * next, others are stacked.
 *
 * Shapes may change from iteration to iteration, so only dtypes are inferred for values that are
 * handed on. */
#include <inttypes.h>

#include "base/stop.h"
#include "base/dtype.h"
#include "engine/ops/shared/stack_tensors.h"

/* The first two inputs and body inputs, and the first body output, are the loop's own: count and
 * condition. */
enum { OWN = 2 };

/* The body has the loop's count and condition before the carried values, and its own condition
 * before its outputs. Outputs behind the carried ones are stacked. */
static pith_status loop_counts(const pith__node *node, int *carried, int *stacked,
                               pith_error *err) {
    *carried = node->input_count - node->capture_count - OWN;
    *stacked = node->output_count - *carried;
    const pith__graph *body = pith__node_graph(node, "body");
    if (!body) return pith__fail(err, PITH_ERR_FORMAT, "attribute 'body' is missing");
    if (body->input_count != (size_t)*carried + OWN || body->output_count < (size_t)*carried + 1 ||
        (size_t)node->output_count > body->output_count - 1 || *stacked < 0) {
        return pith__fail(err, PITH_ERR_FORMAT,
                          "body has %zu inputs and %zu outputs, which does not fit",
                          body->input_count, body->output_count);
    }
    *stacked = (int)body->output_count - 1 - *carried;
    return PITH_OK;
}

static void loop_only_dtype(pith__type *type, const pith__type *from) {
    pith__type_init(type);
    if (!from) return;
    type->dtype = from->dtype;
    type->item_dtype = from->item_dtype;
}

/* Only the dtypes of carried values go into the body: their shapes may change from one iteration to
 * the next. Stacked outputs gain an axis whose size the run decides. */
static pith_status loop_infer(pith__infer *c) {
    int carried, stacked;
    PITH_TRY(loop_counts(c->node, &carried, &stacked, c->err));
    size_t in_count = (size_t)carried + OWN, out_count = (size_t)(carried + stacked) + 1;
    pith__type *in = pith__arena_array(c->arena, in_count, sizeof *in);
    pith__type *out = pith__arena_array(c->arena, out_count, sizeof *out);
    if (!in || !out) return pith__fail_memory(c->err, (in_count + out_count) * sizeof *in);
    pith__type_set(&in[0], PITH_I64, 0, NULL);
    pith__type_set(&in[1], PITH_BOOL, 0, NULL);
    for (int i = 0; i < carried; i++) loop_only_dtype(&in[OWN + i], c->in[OWN + i]);
    PITH_TRY(pith__infer_subgraph(c, "body", in, in_count, out, out_count));
    for (int i = 0; i < carried && i < c->out_count; i++) {
        int before = in[OWN + i].dtype, after = out[1 + i].dtype;
        if (before && after && before != after && before < PITH_DTYPE_COUNT &&
            after < PITH_DTYPE_COUNT) {
            return pith__op_fail(c, "value %d begins as %s and continues as %s", i,
                                 pith__dtype_name(before), pith__dtype_name(after));
        }
        loop_only_dtype(&c->out[i], &out[1 + i]);
        if (before != after) c->out[i].dtype = PITH_UNDEFINED;
    }
    for (int i = carried; i < c->out_count; i++) {
        const pith__type *item = &out[1 + i];
        c->out[i].dtype = item->dtype;
        if (item->rank < 0 || item->rank >= PITH_MAX_RANK) continue;
        c->out[i].rank = item->rank + 1;
        c->out[i].dims[0] = PITH_DIM_UNKNOWN;
        for (int d = 0; d < item->rank; d++) c->out[i].dims[d + 1] = item->dims[d];
    }
    return PITH_OK;
}

static pith_status loop_read_bool(pith__run *r, const pith_tensor *t, bool *value) {
    if (t->dtype != PITH_BOOL || pith__tensor_count(t) != 1)
        return pith__op_fail(r, "the condition is not one bool");
    *value = *(const uint8_t *)t->data;
    return PITH_OK;
}

static pith_status loop_read_limit(pith__run *r, int64_t *limit) {
    *limit = INT64_MAX;
    if (!r->in[0]) return PITH_OK;
    if (r->in[0]->dtype != PITH_I64 || pith__tensor_count(r->in[0]) != 1) {
        return pith__op_fail(r, "the trip count is not one int64");
    }
    memcpy(limit, r->in[0]->data, sizeof *limit);
    return PITH_OK;
}

/* Values are handed on as tensors, without copies: outputs of an iteration live until the call
 * after the next one (pith__exec.subgraph), which is as long as they are inputs. */
static pith_status loop_run(pith__run *r) {
    int carried, stacked;
    PITH_TRY(loop_counts(r->node, &carried, &stacked, r->err));
    size_t in_count = (size_t)carried + OWN, out_count = (size_t)(carried + stacked) + 1;
    pith_tensor *in = r->exec->alloc(r->exec, in_count * sizeof *in);
    pith_tensor *out = r->exec->alloc(r->exec, out_count * sizeof *out);
    pith__stack *stacks = r->exec->alloc(r->exec, (size_t)stacked * sizeof *stacks);
    if (!in || !out || !stacks)
        return pith__fail_memory(r->err, (in_count + out_count) * sizeof *in);
    memset(stacks, 0, (size_t)stacked * sizeof *stacks);
    int64_t limit, iteration = 0;
    bool going = true;
    uint8_t condition = 1;
    PITH_TRY(loop_read_limit(r, &limit));
    if (r->in[1]) PITH_TRY(loop_read_bool(r, r->in[1], &going));
    in[0] = (pith_tensor){ .data = &iteration, .bytes = sizeof iteration, .dtype = PITH_I64 };
    in[1] = (pith_tensor){ .data = &condition, .bytes = sizeof condition, .dtype = PITH_BOOL };
    for (int i = 0; i < carried; i++) {
        in[OWN + i] = r->in[OWN + i] ? *r->in[OWN + i] : (pith_tensor){ .dtype = PITH_NONE };
    }
    for (; going && iteration < limit; iteration++) {
        if (iteration == r->exec->loop_limit) {
            return pith__fail(r->err, PITH_ERR_RUN,
                              "has not ended after %" PRId64 " iterations, the limit; a higher "
                              "pith_open_options.loop_limit lets it run longer",
                              iteration);
        }
        PITH_TRY(pith__stop_check(r->exec->stop, r->err));
        PITH_TRY(r->exec->subgraph(r->exec, r, "body", in, in_count, out, out_count));
        PITH_TRY(loop_read_bool(r, &out[0], &going));
        for (int i = 0; i < carried; i++) in[OWN + i] = out[1 + i];
        for (int i = 0; i < stacked; i++)
            PITH_TRY(pith__stack_push(r, &stacks[i], &out[1 + carried + i]));
    }
    /* What no iteration made is still the input, whose memory may be given to others after this
     * step. */
    for (int i = 0; i < carried && i < r->out_count; i++) {
        if (!r->out[i]) continue;
        if (iteration)
            *r->out[i] = in[OWN + i];
        else
            PITH_TRY(pith__run_copy(r, r->out[i], &in[OWN + i]));
    }
    const pith__graph *body = pith__node_graph(r->node, "body");
    for (int i = carried; i < r->out_count; i++) {
        PITH_TRY(
            pith__stack_finish(r, i, &stacks[i - carried], 0, false, &body->outputs[1 + i]->type));
    }
    return PITH_OK;
}

const pith__op pith__op_Loop = { .domain = "",
                                 .name = "Loop",
                                 .since = 1,
                                 .newest = 25,
                                 .min_inputs = 0,
                                 .max_inputs = -1,
                                 .max_outputs = -1,
                                 .attrs = "body graph!",
                                 .flags = PITH_OP_FIRST_OPTIONAL | PITH_OP_LATE |
                                          PITH_OP_SEQUENCES | PITH_OP_GAPS,
                                 .infer = loop_infer,
                                 .run = loop_run };
