/* far_programs.c - programs of the far backend, which run the CPU's operators one after the other
 * with their inner results in memory of their own; and its pass. */
#include "far.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "engine/ops/shared/call_op.h"

/* ---- operators of its own ---- */

/* The twin of an operator: no other backend can run it. */
typedef struct far_twin {
    pith__op op;
    const pith__op *original;
} far_twin;

const pith__op *far_op(const pith__node *node) {
    return strcmp(node->op->domain, "far") ? node->op
                                           : ((const far_twin *)(const void *)node->op)->original;
}

/* Operators on floats only, which nothing is known of before the run. */
static bool has_twin(const pith__node *node) {
    static const char *const names[] = { "Relu",    "Tanh",     "Gelu",   "LayerNormalization",
                                         "Softmax", "SkipNorm", "Linear", "MatMul" };
    const pith__value *in = pith__node_input(node, 0);
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        named = named || !strcmp(node->op->name, names[i]);
    return named && node->op->run && in && in->type.dtype == PITH_F32 && !in->type.data;
}

pith_status far_rewrite(pith__graph *graph, size_t *changes, pith_error *err) {
    for (pith__node *node = graph->first; node; node = node->next) {
        if (!has_twin(node)) continue;
        far_twin *twin = pith__arena_array(graph->arena, 1, sizeof *twin);
        if (!twin) return pith__fail_memory(err, sizeof *twin);
        twin->op = *node->op;
        twin->original = node->op;
        twin->op.domain = "far";
        twin->op.run = NULL;
        node->op = &twin->op;
        ++*changes;
    }
    far.rewritten += *changes;
    return PITH_OK;
}

/* ---- programs ---- */

typedef struct far_program {
    const pith__claim *claim;
    const void **states; /* [members] */
} far_program;

static size_t readers_of(const pith__claim *claim, int32_t place) {
    size_t readers = 0;
    for (size_t m = 0; m < claim->member_count; m++)
        for (int i = 0; i < claim->members[m].node->input_count; i++)
            readers += claim->members[m].in[i] == place;
    return readers;
}

static pith_status far_prepare_member(const void **state, const pith__claimed_node *m,
                                      const pith__prepare *c, pith__claim *claim) {
    const pith__node *node = m->node;
    const size_t ins = pith__node_in_room(node), outs = pith__node_out_room(node);
    const pith__type **in = pith__arena_array(c->arena, ins, sizeof *in);
    pith__type *out = pith__arena_array(c->arena, outs, sizeof *out);
    if (!in || !out) return pith__fail_memory(c->err, outs * sizeof *out);
    for (int i = 0; i < node->input_count; i++)
        if (m->in[i] >= 0)
            in[i] = m->in[i] < claim->node.input_count ? c->in[m->in[i]]
                                                       : &claim->values[m->in[i]]->type;
    for (size_t i = 0; i < outs; i++) {
        const pith__value *value = pith__node_output(node, (int)i);
        if (value)
            out[i] = value->type;
        else
            pith__type_init(&out[i]);
    }
    pith__prepare own = pith__invoke_prepare(node, in, out, c->isa, c->arena, c->err);
    own.lacks = c->lacks;
    if (far_op(node)->prepare) PITH_TRY(far_op(node)->prepare(&own));
    *state = own.state;
    for (int i = 0; i < node->input_count && i < 32; i++)
        if (own.packed_inputs >> i & 1 && m->in[i] < claim->node.input_count &&
            readers_of(claim, m->in[i]) == 1)
            claim->packed[m->in[i]] = true;
    return PITH_OK;
}

pith_status far_compile(void *context, pith__prepare *c, pith__claim *claim) {
    (void)context;
    far_program *p = pith__arena_array(c->arena, 1, sizeof *p);
    if (!p) return pith__fail_memory(c->err, sizeof *p);
    p->claim = claim;
    p->states = pith__arena_array(c->arena, claim->member_count, sizeof *p->states);
    if (!p->states) return pith__fail_memory(c->err, claim->member_count * sizeof *p->states);
    for (size_t i = 0; i < claim->member_count; i++)
        PITH_TRY(far_prepare_member(&p->states[i], &claim->members[i], c, claim));
    c->state = p;
    far.claims++;
    return PITH_OK;
}

/* A run of a program: values by their places. */
typedef struct far_values {
    const pith__claim *claim;
    pith_tensor *tensors;
    pith__type *types;
    pith_tensor **results; /* by place; NULL: nobody outside reads it */
    pith__arena arena;
} far_values;

static void *member_memory(pith__exec *exec, size_t bytes) {
    (void)exec, (void)bytes;
    return NULL; /* only operators of dynamic shape ask, and there are none */
}

static pith_status far_place(far_values *v, int32_t place, const pith__type *type, void *shown,
                             pith_error *err) {
    pith_tensor *t = &v->tensors[place];
    size_t bytes;
    if (!pith__type_concrete(type) ||
        !pith__dtype_bytes(type->dtype, pith__dims_count(type->dims, type->rank), &bytes))
        return pith__fail(err, PITH_ERR_RUN, "a shape within a program is not known");
    *t = (pith_tensor){ .bytes = bytes, .dtype = type->dtype, .rank = type->rank };
    for (int i = 0; i < t->rank; i++) t->dims[i] = type->dims[i];
    const pith_tensor *result = v->results[place];
    if (result && result->bytes != bytes)
        return pith__fail(err, PITH_ERR_RUN, "a program was given %zu bytes for a result of %zu",
                          result->bytes, bytes);
    if (shown) {
        if (result && bytes) memcpy(result->data, shown, bytes);
        t->data = shown;
    } else {
        t->data = result ? result->data : pith__arena_alloc64(&v->arena, bytes ? bytes : 1);
    }
    return t->data || !bytes ? PITH_OK : pith__fail_memory(err, bytes);
}

static pith_status far_run_member(far_values *v, const pith__claimed_node *m, const void *state,
                                  const pith__run *r) {
    const pith__node *node = m->node;
    const pith__op *op = far_op(node);
    const size_t ins = pith__node_in_room(node), outs = pith__node_out_room(node);
    const pith__type **in_types = pith__arena_array(&v->arena, ins, sizeof *in_types);
    pith__type *out_types = pith__arena_array(&v->arena, outs, sizeof *out_types);
    const pith_tensor **in = pith__arena_array(&v->arena, ins, sizeof *in);
    pith_tensor **out = pith__arena_array(&v->arena, outs, sizeof *out);
    if (!in_types || !out_types || !in || !out) return pith__fail_memory(r->err, outs);
    for (int i = 0; i < node->input_count; i++) {
        if (m->in[i] < 0) continue;
        in_types[i] = &v->types[m->in[i]];
        in[i] = &v->tensors[m->in[i]];
    }
    pith__infer c = pith__invoke_infer(node, in_types, out_types, &v->arena, r->err);
    PITH_TRY(pith__op_infer_node(&c));
    const bool view = op->flags & PITH_OP_VIEW;
    for (int i = 0; i < node->output_count; i++) {
        if (m->out[i] < 0) continue;
        v->types[m->out[i]] = out_types[i];
        v->types[m->out[i]].data = NULL;
        PITH_TRY(far_place(v, m->out[i], &out_types[i], view && !i ? in[0]->data : NULL, r->err));
        out[i] = &v->tensors[m->out[i]];
    }
    if (view) return PITH_OK;
    pith__exec exec = *r->exec;
    exec.alloc = member_memory;
    pith__run own = pith__invoke_run(node, state, in, out, &exec, r->err);
    size_t scratch = 0;
    if (op->scratch) PITH_TRY(op->scratch(&c, state, exec.threads, &scratch));
    own.scratch = scratch ? pith__arena_alloc64(&v->arena, scratch) : NULL;
    return op->run(&own);
}

pith_status far_run_program(const pith__claim *claim, pith__run *r) {
    const far_program *p = r->state;
    far_values v = { .claim = claim };
    char place[256];
    pith__arena_init(&v.arena, &pith__allocator_default);
    v.tensors = pith__arena_array(&v.arena, claim->value_count, sizeof *v.tensors);
    v.types = pith__arena_array(&v.arena, claim->value_count, sizeof *v.types);
    v.results = pith__arena_array(&v.arena, claim->value_count, sizeof *v.results);
    if (!v.tensors || !v.types || !v.results) abort();
    for (int i = 0; i < claim->node.input_count; i++) {
        v.tensors[i] = *r->in[i];
        pith__type_of_tensor(&v.types[i], &v.tensors[i]);
        if (!claim->on_host[i]) v.types[i].data = NULL;
    }
    for (int i = 0; i < claim->node.output_count; i++) v.results[claim->results[i]] = r->out[i];
    pith_status status = PITH_OK;
    for (size_t i = 0; i < claim->member_count && !status; i++) {
        status = far_run_member(&v, &claim->members[i], p->states[i], r);
        if (status)
            pith__fail_at(r->err, status, "within the program, %s: ",
                          pith__node_place(claim->members[i].node, place, sizeof place));
    }
    pith__arena_free(&v.arena);
    return status;
}
