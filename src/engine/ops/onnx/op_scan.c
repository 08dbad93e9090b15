/* op_scan.c - Scan: a subgraph over the slices of its inputs, with state from one slice to the
 * next.
 *
 * Opset 8 had a batch axis in front and sequence lengths. It becomes the newest form with the
 * attribute `batched`, which only this file knows: everything is then done once per batch element.
 * Lengths are then the last input (`lengths`), and results after the end of a sequence are 0. */
#include "base/dtype.h"
#include "engine/ops/shared/stack_tensors.h"

typedef struct layout {
    int states, scans, results; /* state values, scanned inputs, stacked outputs */
    bool batched, lengths;
    const int64_t *in_axes, *out_axes, *in_backward, *out_backward; /* NULL: all 0 */
} layout;

/* The lengths move from the first input to the last, or go; captures stay behind them all. */
static pith_status scan_upgrade(pith__node *node, pith_error *err) {
    int given = node->input_count - node->capture_count;
    pith__value *lengths = given ? pith__node_input(node, 0) : NULL;
    for (int i = 1; i < given; i++)
        if (pith__node_set_input(node, i - 1, pith__node_input(node, i)))
            return pith__fail_memory(err, 0);
    size_t count;
    const int64_t *directions = pith__node_ints(node, "directions", &count);
    if (directions && pith__node_set_ints(node, "scan_input_directions", directions, count)) {
        return pith__fail_memory(err, 0);
    }
    pith__node_unset(node, "directions");
    if (pith__node_set_int(node, "batched", 1)) return pith__fail_memory(err, 0);
    if (lengths) {
        bool full = pith__node_set_input(node, given - 1, lengths) ||
                    pith__node_set_int(node, "lengths", 1);
        return full ? pith__fail_memory(err, 0) : PITH_OK;
    }
    if (given) {
        for (int i = given; i < node->input_count; i++)
            if (pith__node_set_input(node, i - 1, pith__node_input(node, i)))
                return pith__fail_memory(err, 0);
    }
    return given && pith__node_set_input_count(node, node->input_count - 1)
               ? pith__fail_memory(err, 0)
               : PITH_OK;
}

static pith_status scan_read_list(const pith__node *node, const char *name, int wanted,
                                  const int64_t **items, pith_error *err) {
    size_t count;
    *items = pith__node_ints(node, name, &count);
    if (*items && count != (size_t)wanted) {
        return pith__fail(err, PITH_ERR_FORMAT, "attribute %s has %zu numbers, not %d", name, count,
                          wanted);
    }
    return PITH_OK;
}

/* Inputs are states, then what is scanned; outputs are the final states, then what is stacked. The
 * body must have as many of each. */
static pith_status scan_read_layout(const pith__node *node, layout *l, pith_error *err) {
    const pith__graph *body = pith__node_graph(node, "body");
    l->lengths = pith__node_int(node, "lengths", 0);
    int given = node->input_count - node->capture_count - l->lengths;
    int64_t scans = pith__node_int(node, "num_scan_inputs", -1);
    if (!body || scans < 1 || scans > given) {
        return pith__fail(err, PITH_ERR_FORMAT, "body or num_scan_inputs is missing or wrong");
    }
    l->scans = (int)scans;
    l->states = given - l->scans;
    l->results = node->output_count - l->states;
    l->batched = pith__node_int(node, "batched", 0);
    if (body->input_count != (size_t)given || body->output_count != (size_t)node->output_count ||
        l->results < 0) {
        return pith__fail(err, PITH_ERR_FORMAT,
                          "body has %zu inputs and %zu outputs, the node %d and %d",
                          body->input_count, body->output_count, given, node->output_count);
    }
    PITH_TRY(scan_read_list(node, "scan_input_axes", l->scans, &l->in_axes, err));
    PITH_TRY(scan_read_list(node, "scan_output_axes", l->results, &l->out_axes, err));
    PITH_TRY(scan_read_list(node, "scan_input_directions", l->scans, &l->in_backward, err));
    return scan_read_list(node, "scan_output_directions", l->results, &l->out_backward, err);
}

/* Slices lose an axis and states may change shape, so the body is inferred from dtypes alone. */
static pith_status scan_infer(pith__infer *c) {
    layout l;
    PITH_TRY(scan_read_layout(c->node, &l, c->err));
    size_t in_count = (size_t)(l.states + l.scans), out_count = (size_t)c->out_count;
    pith__type *in = pith__arena_array(c->arena, in_count, sizeof *in),
               *out = pith__arena_array(c->arena, out_count, sizeof *out);
    if (!in || !out) return pith__fail_memory(c->err, (in_count + out_count) * sizeof *in);
    for (size_t i = 0; i < in_count; i++) {
        pith__type_init(&in[i]);
        in[i].dtype = c->in[i]->dtype;
    }
    if (l.lengths && c->in[in_count]->dtype && c->in[in_count]->dtype != PITH_I64)
        return pith__op_fail(c, "sequence_lens is %s, not int64",
                             pith__dtype_name(c->in[in_count]->dtype));
    PITH_TRY(pith__infer_subgraph(c, "body", in, in_count, out, out_count));
    for (int i = 0; i < c->out_count; i++) c->out[i].dtype = out[i].dtype;
    for (int i = 0; i < l.states; i++) {
        if (!out[i].dtype || !in[i].dtype || out[i].dtype == in[i].dtype) continue;
        return pith__op_fail(c, "state %d begins as %s and continues as %s", i,
                             pith__dtype_name(in[i].dtype), pith__dtype_name(out[i].dtype));
    }
    return PITH_OK;
}

typedef struct scan {
    pith__run *r;
    layout l;
    pith_tensor *in, *out; /* of the body */
    pith__stack *stacks;
    void **buffers; /* of slices */
} scan;

/* From the states in s->in to those after the last slice; results are on the stacks. */
static pith_status scan_run_slices(scan *s, const pith_tensor *scanned, int64_t most) {
    pith__run *r = s->r;
    const layout *l = &s->l;
    int64_t length = -1;
    int axes[64];
    if (l->scans > 64)
        return pith__op_fail(r, "has %d scanned inputs, at most 64 are supported", l->scans);
    for (int i = 0; i < l->scans; i++) {
        PITH_TRY(pith__axis_normalize(l->in_axes ? l->in_axes[i] : 0, scanned[i].rank, &axes[i],
                                      r->err));
        if (pith__dtype_bits(scanned[i].dtype) < 8) {
            return pith__op_fail(r, "%s cannot be scanned", pith__dtype_name(scanned[i].dtype));
        }
        if (length >= 0 && scanned[i].dims[axes[i]] != length) {
            return pith__op_fail(r, "scanned inputs differ in length");
        }
        length = scanned[i].dims[axes[i]];
    }
    int64_t total = length;
    if (most >= 0 && most < length) length = most;
    for (int64_t k = 0; k < length; k++) {
        for (int i = 0; i < l->scans; i++) {
            int64_t at = l->in_backward && l->in_backward[i] ? length - 1 - k : k;
            PITH_TRY(pith__stack_slice(r, &s->in[l->states + i], &scanned[i], axes[i], at,
                                       &s->buffers[i]));
        }
        PITH_TRY(r->exec->subgraph(r->exec, r, "body", s->in, (size_t)(l->states + l->scans),
                                   s->out, (size_t)(l->states + l->results)));
        for (int i = 0; i < l->states; i++) s->in[i] = s->out[i];
        for (int i = 0; i < l->results; i++)
            PITH_TRY(pith__stack_push(r, &s->stacks[i], &s->out[l->states + i]));
    }
    if (length > 0 && length < total) {
        for (int i = 0; i < l->results; i++) {
            pith_tensor nothing;
            PITH_TRY(pith__run_copy(r, &nothing, &s->out[l->states + i]));
            if (nothing.dtype == PITH_STRING)
                return pith__op_fail(r, "strings cannot be padded with zeros");
            memset(nothing.data, 0, nothing.bytes);
            for (int64_t k = length; k < total; k++)
                PITH_TRY(pith__stack_push(r, &s->stacks[i], &nothing));
        }
    }
    return PITH_OK;
}

/* States are copied once, because the body's first call must not change the node's inputs. */
static pith_status scan_run_plain(scan *s) {
    pith__run *r = s->r;
    const layout *l = &s->l;
    const pith__graph *body = pith__node_graph(r->node, "body");
    pith_tensor *scanned = r->exec->alloc(r->exec, (size_t)l->scans * sizeof *scanned);
    if (!scanned) return pith__fail_memory(r->err, (size_t)l->scans * sizeof *scanned);
    for (int i = 0; i < l->scans; i++) scanned[i] = *r->in[l->states + i];
    for (int i = 0; i < l->states; i++) PITH_TRY(pith__run_copy(r, &s->in[i], r->in[i]));
    PITH_TRY(scan_run_slices(s, scanned, -1));
    for (int i = 0; i < l->states; i++)
        if (r->out[i]) *r->out[i] = s->in[i];
    for (int i = 0; i < l->results; i++) {
        bool backward = l->out_backward && l->out_backward[i];
        PITH_TRY(pith__stack_finish(r, l->states + i, &s->stacks[i],
                                    l->out_axes ? l->out_axes[i] : 0, backward,
                                    &body->outputs[l->states + i]->type));
    }
    return PITH_OK;
}

/* Inputs and outputs have the batch as their first axis; the slices are along the second. */
static pith_status scan_run_batched(scan *s) {
    pith__run *r = s->r;
    const layout *l = &s->l;
    const pith__graph *body = pith__node_graph(r->node, "body");
    int outputs = l->states + l->results;
    pith__stack *whole = r->exec->alloc(r->exec, (size_t)outputs * sizeof *whole);
    pith_tensor *scanned = r->exec->alloc(r->exec, (size_t)l->scans * sizeof *scanned);
    if (!whole || !scanned) return pith__fail_memory(r->err, (size_t)outputs * sizeof *whole);
    memset(whole, 0, (size_t)outputs * sizeof *whole);
    int64_t batch = -1;
    for (int i = 0; i < l->states + l->scans; i++) {
        if (r->in[i]->rank < 1 || (batch >= 0 && r->in[i]->dims[0] != batch)) {
            return pith__op_fail(r, "inputs differ in batch size");
        }
        batch = r->in[i]->dims[0];
    }
    const pith_tensor *lengths = l->lengths ? r->in[l->states + l->scans] : NULL;
    if (lengths && pith__tensor_count(lengths) != batch)
        return pith__op_fail(r, "sequence_lens does not fit the batch");
    for (int64_t b = 0; b < batch; b++) {
        void *unused = NULL;
        for (int i = 0; i < l->states; i++)
            PITH_TRY(pith__stack_slice(r, &s->in[i], r->in[i], 0, b, &unused));
        for (int i = 0; i < l->scans; i++) {
            PITH_TRY(pith__stack_slice(r, &scanned[i], r->in[l->states + i], 0, b, &unused));
        }
        memset(s->stacks, 0, (size_t)l->results * sizeof *s->stacks);
        int64_t most = lengths ? ((const int64_t *)lengths->data)[b] : -1;
        if (lengths && most < 1)
            return pith__op_fail(r, "sequence_lens[%lld] is %lld", (long long)b, (long long)most);
        PITH_TRY(scan_run_slices(s, scanned, most));
        for (int i = 0; i < l->states; i++) PITH_TRY(pith__stack_push(r, &whole[i], &s->in[i]));
        for (int i = 0; i < l->results; i++) {
            pith_tensor *kept = r->out[l->states + i], one;
            if (!kept) continue;
            PITH_TRY(pith__stack_finish(r, l->states + i, &s->stacks[i], 0, false,
                                        &body->outputs[l->states + i]->type));
            one = *kept;
            PITH_TRY(pith__stack_push(r, &whole[l->states + i], &one));
        }
    }
    for (int i = 0; i < outputs; i++)
        PITH_TRY(pith__stack_finish(r, i, &whole[i], 0, false, &body->outputs[i]->type));
    return PITH_OK;
}

/* All arrays that grow with the number of inputs come from the run's memory. */
static pith_status scan_run(pith__run *r) {
    scan s = { .r = r };
    PITH_TRY(scan_read_layout(r->node, &s.l, r->err));
    size_t in = (size_t)(s.l.states + s.l.scans), out = (size_t)(s.l.states + s.l.results);
    s.in = r->exec->alloc(r->exec, in * sizeof *s.in);
    s.out = r->exec->alloc(r->exec, out * sizeof *s.out);
    s.stacks = r->exec->alloc(r->exec, (size_t)s.l.results * sizeof *s.stacks);
    s.buffers = r->exec->alloc(r->exec, (size_t)s.l.scans * sizeof *s.buffers);
    if (!s.in || !s.out || !s.stacks || !s.buffers)
        return pith__fail_memory(r->err, (in + out) * sizeof *s.in);
    memset(s.stacks, 0, (size_t)s.l.results * sizeof *s.stacks);
    memset(s.buffers, 0, (size_t)s.l.scans * sizeof *s.buffers);
    return s.l.batched ? scan_run_batched(&s) : scan_run_plain(&s);
}

const pith__op pith__op_Scan = {
    .domain = "",
    .name = "Scan",
    .since = 9,
    .newest = 25,
    .min_inputs = 1,
    .max_inputs = -1,
    .max_outputs = -1,
    .attrs =
        "body graph!; batched bool = 0 @own; directions ints 0|1 @-8; num_scan_inputs int! 1..; "
        "lengths bool = 0 @own; scan_input_axes ints @9; scan_input_directions ints 0|1 @9; "
        "scan_output_axes ints @9; scan_output_directions ints 0|1 @9",
    .flags = PITH_OP_FIRST_OPTIONAL | PITH_OP_LATE,
    .upgrade = scan_upgrade,
    .infer = scan_infer,
    .run = scan_run
};
