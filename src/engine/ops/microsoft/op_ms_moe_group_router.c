/* op_ms_moe_group_router.c - com.microsoft's MoEGroupRouter: scores of experts, kept only for the
 * best experts of the best groups.
 *
 * s = sigmoid(logits). Groups are ranked by the sum of their best s + bias, experts of the chosen
 * groups by s + bias. The chosen experts get log(s), all others the sentinel. Or the full arrays s
 * + bias and s are the outputs. Source: ONNX Runtime's schema of this name. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/infer_shapes.h"

enum { LOGITS, BIAS, PROJECTION };

typedef struct router {
    int64_t top, groups, active, best;
    double sentinel;
} router;

static void router_read(router *s, const pith__node *node) {
    *s = (router){ .top = pith__node_int(node, "top_k", 0),
                   .groups = pith__node_int(node, "n_group", 1),
                   .active = pith__node_int(node, "topk_group", 1),
                   .best = pith__node_int(node, "group_topk", 2),
                   .sentinel = (double)pith__node_float(node, "router_sentinel", -10000.0f) };
}

/* Leading axes become one of tokens. The checks make sure that the chosen groups hold enough
 * experts. */
static pith_status router_infer(pith__infer *c) {
    router s;
    router_read(&s, c->node);
    const pith__type *x = c->in[LOGITS], *bias = c->in[BIAS];
    if (pith__has_input(c, PROJECTION))
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "input projection_weight is not supported");
    if (x->rank == 0) return pith__op_fail(c, "logits is a scalar");
    pith__dim tokens = x->rank < 0 ? PITH_DIM_UNKNOWN : 1,
              count = x->rank < 0 ? PITH_DIM_UNKNOWN : x->dims[x->rank - 1];
    for (int i = 0; i < x->rank - 1; i++)
        tokens = pith__dim_apply(c->dims, PITH_DIM_MUL, tokens, x->dims[i]);
    if (bias->rank == 1 && pith__dim_known(bias->dims[0]) && pith__dim_known(count) &&
        bias->dims[0] != count)
        return pith__op_fail(c, "the bias has %lld elements for %lld experts",
                             (long long)bias->dims[0], (long long)count);
    if (s.active > s.groups)
        return pith__op_fail(c, "topk_group is %lld, but there are %lld groups",
                             (long long)s.active, (long long)s.groups);
    if (pith__dim_known(count) &&
        (count % s.groups || s.top > count || s.top > count / s.groups * s.active))
        return pith__op_fail(c, "%lld experts cannot give top_k %lld from %lld groups",
                             (long long)count, (long long)s.top, (long long)s.groups);
    pith__infer_set(c, 0, x->dtype, 2, (pith__dim[]){ tokens, count });
    for (int i = 1; i < 3; i++) pith__infer_set(c, i, PITH_F32, 2, (pith__dim[]){ tokens, count });
    return PITH_OK;
}

/* Behind the wide copies: scores of experts and of groups, and which are chosen. */
static pith_status router_scratch(const pith__infer *c, const void *state, int threads,
                                  size_t *bytes) {
    PITH_TRY(pith__wide_scratch(c, state, threads, bytes));
    size_t count = (size_t)c->in[LOGITS]->dims[c->in[LOGITS]->rank - 1], more;
    if (pith__mul_overflows(count, (size_t)40, &more) ||
        pith__add_overflows(*bytes, more + 64, bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

/* The largest of n that is not taken yet, the first of equals; -1: none is left. */
static int64_t router_largest(const double *x, const bool *taken, int64_t n) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || x[i] > x[best])) best = i;
    return best;
}

/* taken[i]: expert i is among the chosen ones of the active groups. */
static void router_choose(const router *s, const double *scores, int64_t count, double *sums,
                          bool *groups, bool *taken) {
    int64_t size = count / s->groups;
    for (int64_t g = 0; g < s->groups; g++) {
        memset(taken, 0, (size_t)size);
        sums[g] = 0;
        groups[g] = false;
        for (int64_t i = 0; i < s->best && i < size; i++) {
            int64_t best = router_largest(scores + g * size, taken, size);
            taken[best] = true;
            sums[g] += scores[g * size + best];
        }
    }
    for (int64_t i = 0; i < s->active; i++) groups[router_largest(sums, groups, s->groups)] = true;
    for (int64_t i = 0; i < count; i++) taken[i] = !groups[i / size];
    for (int64_t i = 0; i < s->top; i++) {
        int64_t best = router_largest(scores, taken, count);
        if (best >= 0) taken[best] = true;
    }
    for (int64_t i = 0; i < count; i++) taken[i] = taken[i] && groups[i / size];
}

/* Token by token. log(s) is given, not s, because the softmax that follows then gives s over their
 * sum; 1e-20 keeps it finite. */
static pith_status router_run(pith__run *r) {
    router s;
    router_read(&s, r->node);
    int64_t count = r->in[LOGITS]->dims[r->in[LOGITS]->rank - 1],
            tokens = count ? pith__tensor_count(r->in[LOGITS]) / count : 0;
    if (pith__tensor_count(r->in[BIAS]) != count)
        return pith__op_fail(r, "the bias does not fit the experts");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    double *scores = w.rest, *sums = scores + count;
    bool *groups = (bool *)(sums + count), *taken = groups + count;
    double *with_bias = r->out_count > 1 ? w.out[1] : NULL,
           *without = r->out_count > 2 ? w.out[2] : NULL;
    int64_t spent = 0;
    for (int64_t t = 0; t < tokens; t++) {
        PITH_TRY(pith__run_spend(r, &spent, 64 * count));
        double *x = w.in[LOGITS] + t * count;
        for (int64_t i = 0; i < count; i++) {
            x[i] = 1 / (1 + exp(-x[i]));
            scores[i] = x[i] + w.in[BIAS][i];
            if (with_bias) with_bias[t * count + i] = scores[i];
            if (without) without[t * count + i] = x[i];
        }
        if (!w.out[0]) continue;
        router_choose(&s, scores, count, sums, groups, taken);
        for (int64_t i = 0; i < count; i++)
            w.out[0][t * count + i] = taken[i] ? log(fmax(x[i], 1e-20)) : s.sentinel;
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_MoEGroupRouter_ms = { .domain = "com.microsoft",
                                              .name = "MoEGroupRouter",
                                              .since = 1,
                                              .newest = 1,
                                              .min_inputs = 2,
                                              .max_inputs = 3,
                                              .max_outputs = 3,
                                              .types = "heh",
                                              .attrs =
                                                  "group_topk int 1.. = 2; n_group int 1.. = 1; "
                                                  "router_sentinel float = -10000; top_k int! 1..; "
                                                  "topk_group int 1.. = 1",
                                              .infer = router_infer,
                                              .scratch = router_scratch,
                                              .run = router_run,
                                              .note = "no projection_weight" };
