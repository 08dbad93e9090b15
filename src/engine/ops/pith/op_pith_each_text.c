/* op_pith_each_text.c - pith.EachText: runs a subgraph on each of several packed texts. It does
 * what cannot be done row by row, among steps that can.
 *
 *   inputs      offsets i64 [texts + 1]; then the body's, [tokens, …] or [texts, …]; captures
 *   output      [tokens, rest] or [texts, rest]
 *   attributes  body: from [text, …] (the rows of one text) or [1, …] to [text, rest] or [1, rest];
 *               by_text: for each of the body's inputs, then for the output, 1 if rows are texts, 0
 *               if tokens; rest
 *
 * The body never sees more than one text. A text without tokens gives zeros. */
#include "base/checked.h"
#include "base/dtype.h"
#include "engine/ops/shared/infer_shapes.h"

typedef struct ports {
    const int64_t *by_text, *rest; /* by_text[count] is the output's */
    int count, rest_count;
} ports;

/* Attributes against the number of inputs; what the subgraph captures comes behind those of the
 * body. */
static pith_status each_text_read_ports(ports *p, const pith__node *node, int in_count,
                                        pith_error *err) {
    size_t flags, rest;
    p->by_text = pith__node_ints(node, "by_text", &flags);
    p->rest = pith__node_ints(node, "rest", &rest);
    p->count = in_count - node->capture_count - 1;
    p->rest_count = (int)rest;
    if (p->count < 1 || flags != (size_t)p->count + 1 || rest >= PITH_MAX_RANK)
        return pith__fail(err, PITH_ERR_ARGUMENT, "by_text or rest does not fit the inputs");
    for (int i = 0; i < p->rest_count; i++)
        if (p->rest[i] < 0) return pith__fail(err, PITH_ERR_ARGUMENT, "rest[%d] is negative", i);
    return PITH_OK;
}

/* A row is bytes that mean the same elsewhere. */
static pith_status each_text_infer(pith__infer *c) {
    ports p;
    PITH_TRY(each_text_read_ports(&p, c->node, c->in_count, c->err));
    if (c->in[0]->dtype != PITH_I64 || c->in[0]->rank != 1)
        return pith__op_fail(c, "offsets must be an int64 vector");
    pith__dim texts = pith__dim_apply(c->dims, PITH_DIM_SUB, c->in[0]->dims[0], 1),
              tokens = PITH_DIM_UNKNOWN;
    pith__dim text = c->dims ? pith__dim_symbol(c->dims, PITH_STR("text")) : PITH_DIM_UNKNOWN;
    pith__type *in = pith__arena_array(c->arena, (size_t)p.count, sizeof *in), out;
    if (!in) return pith__fail_memory(c->err, (size_t)p.count * sizeof *in);
    for (int i = 0; i < p.count; i++) {
        const pith__type *x = c->in[1 + i];
        if (x->rank == 0) return pith__op_fail(c, "input %d has no rows", 1 + i);
        if (x->dtype && !pith__dtype_is_plain(x->dtype)) return pith__fail_dtype(c->err, x->dtype);
        in[i] = *x;
        if (x->rank < 0) continue;
        if (!p.by_text[i]) tokens = x->dims[0];
        in[i].dims[0] = p.by_text[i] ? 1 : text;
    }
    PITH_TRY(pith__infer_subgraph(c, "body", in, (size_t)p.count, &out, 1));
    pith__dim dims[PITH_MAX_RANK] = { p.by_text[p.count] ? texts : tokens };
    for (int i = 0; i < p.rest_count; i++) dims[1 + i] = p.rest[i];
    if (out.dtype && !pith__dtype_is_plain(out.dtype)) return pith__fail_dtype(c->err, out.dtype);
    pith__type_set(&c->out[0], out.dtype, 1 + p.rest_count, dims);
    return PITH_OK;
}

/* Rows [from, to) of x. */
static pith_tensor each_text_rows_of(const pith_tensor *x, int64_t from, int64_t to) {
    pith_tensor t = *x;
    size_t row = x->dims[0] ? x->bytes / (size_t)x->dims[0] : 0;
    t.data = (char *)x->data + (size_t)from * row;
    t.dims[0] = to - from;
    t.bytes = (size_t)(to - from) * row;
    return t;
}

/* Offsets must rise from 0, and every input and the output have as many rows as the last one says.
 */
static pith_status each_text_check(const pith__run *r, const ports *p, int64_t texts,
                                   const int64_t *offsets) {
    int64_t tokens = texts >= 0 ? offsets[texts] : 0;
    if (texts < 0 || offsets[0] != 0) return pith__op_fail(r, "offsets do not begin at 0");
    for (int64_t t = 0; t < texts; t++)
        if (offsets[t] > offsets[t + 1]) return pith__op_fail(r, "offsets descend");
    for (int i = 0; i <= p->count; i++) {
        const pith_tensor *x = i < p->count ? r->in[1 + i] : r->out[0];
        if (x->dims[0] != (p->by_text[i] ? texts : tokens))
            return pith__op_fail(r, "the rows of %s %d are not those of the offsets",
                                 i < p->count ? "input" : "output", i < p->count ? 1 + i : 0);
    }
    return PITH_OK;
}

/* Text by text, one after another: the body itself may use all threads. What it gives is copied to
 * the text's rows. */
static pith_status each_text_run(pith__run *r) {
    ports p;
    PITH_TRY(each_text_read_ports(&p, r->node, r->in_count, r->err));
    const int64_t *offsets = r->in[0]->data, texts = r->in[0]->dims[0] - 1;
    PITH_TRY(each_text_check(r, &p, texts, offsets));
    pith_tensor *in = r->exec->alloc(r->exec, (size_t)p.count * sizeof *in);
    if (!in) return pith__fail_memory(r->err, (size_t)p.count * sizeof *in);
    for (int64_t t = 0; t < texts; t++) {
        bool whole = p.by_text[p.count] != 0;
        pith_tensor to = each_text_rows_of(r->out[0], whole ? t : offsets[t],
                                           whole ? t + 1 : offsets[t + 1]),
                    made;
        if (offsets[t] == offsets[t + 1]) {
            if (to.bytes) memset(to.data, 0, to.bytes);
            continue;
        }
        for (int i = 0; i < p.count; i++)
            in[i] = each_text_rows_of(r->in[1 + i], p.by_text[i] ? t : offsets[t],
                                      p.by_text[i] ? t + 1 : offsets[t + 1]);
        PITH_TRY(r->exec->subgraph(r->exec, r, "body", in, (size_t)p.count, &made, 1));
        if (made.dtype != to.dtype || made.bytes != to.bytes || made.rank < 1 ||
            made.dims[0] != to.dims[0])
            return pith__op_fail(r, "the body gives other rows than those of text %lld",
                                 (long long)t);
        PITH_TRY(pith__run_bytes(r, to.data, made.data, to.bytes));
    }
    return PITH_OK;
}

const pith__op pith__op_EachText_pith = {
    .domain = "pith",
    .name = "EachText",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = -1,
    .max_outputs = 1,
    .attrs = "body graph!; by_text ints! 0|1; rest ints! 0..",
    .infer = each_text_infer,
    .run = each_text_run,
};
