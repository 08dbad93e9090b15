/* claimed_nodes.c - see claimed_nodes.h; and the passes that devices bring.
 *
 * Nodes are taken in an order in which each comes after those it reads, one kind after the other:
 * all that are ready and belong to no compiling device, then all that are ready of the first such
 * device until none is, and so on, round and round. What is taken of one device in one go is a run.
 * No way leads out of a run and back into it, so each of its connected parts can be one step. A
 * node whose shapes hang on the contents of what its own run makes waits for the next run, since
 * the host must see them. */
#include "engine/plan/claimed_nodes.h"

#include <assert.h>
#include <string.h>

enum { CLAIM_NONE = -1 };

typedef struct claim_node {
    const pith__node *node;
    const pith__device *device;
    bool claimable;
    uint32_t waits;  /* for so many reads of results of nodes that are not taken yet */
    uint32_t run;    /* that it was taken in, from 1; 0: not yet */
    uint32_t parent; /* in the forest of a run */
    uint32_t next;   /* in a queue, then in its part: 1 + index; 0: it is the last */
    uint32_t first;  /* of a root: of its part, 1 + index; 0: that has become a step */
} claim_node;

typedef struct claim_queue {
    uint32_t first, last; /* 1 + index; 0: empty */
} claim_queue;

typedef struct claim_maker {
    const pith__plan *plan;
    pith__arena *arena, scratch;
    claim_node *nodes;
    size_t count;
    claim_queue *queues; /* by device, after the queue of nodes that are not claimed */
    claim_queue later;   /* of the run: nodes that wait for the next one */
    uint32_t *order;     /* nodes as they are taken */
    size_t taken;
    uint32_t run;
    int32_t *place_of; /* [2, values of the graph], of the claim in the making: place in device and
                          in host memory; CLAIM_NONE */
    pith_error *err;
} claim_maker;

static pith_status claim_out_of_memory(const claim_maker *m) {
    return pith__fail_memory(m->err, 0);
}

static void claim_push(claim_maker *m, claim_queue *q, uint32_t index) {
    m->nodes[index].next = 0;
    if (q->last)
        m->nodes[q->last - 1].next = index + 1;
    else
        q->first = index + 1;
    q->last = index + 1;
}

static bool claim_pop(const claim_maker *m, claim_queue *q, uint32_t *index) {
    if (!q->first) return false;
    *index = q->first - 1;
    q->first = m->nodes[*index].next;
    if (!q->first) q->last = 0;
    return true;
}

/* The node that a step is made for and that makes the value; NULL: no step makes it. */
static claim_node *claim_maker_of(const claim_maker *m, const pith__value *value) {
    if (!value || !value->producer || !value->producer->mark || pith__value_is_known(value))
        return NULL;
    return &m->nodes[value->producer->mark - 1];
}

static size_t claim_queue_of(const claim_maker *m, const claim_node *n) {
    return n->claimable ? (size_t)(n->device - m->plan->devices->items) + 1 : 0;
}

/* ---- who may be in a claim ---- */

/* What only a run knows stays outside: shapes that depend on contents, and inputs that may be
 * absent. So does what only packed forms hold. */
static bool claim_fits(const pith__node *node) {
    if (node->op->flags & (PITH_OP_LATE | PITH_OP_RANDOM) || node->packed_count) return false;
    for (int i = 0; i < node->input_count; i++) {
        const pith__value *value = node->inputs[i];
        if (value && (value->kind == PITH_VALUE_PACKED ||
                      (value->kind == PITH_VALUE_CAPTURE && !value->type.data)))
            return false;
    }
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] && pith__value_is_known(node->outputs[i])) return false;
    return true;
}

/* A view is claimed with what it shows. */
static void claim_view(const claim_maker *m, claim_node *n) {
    const pith__node *node = n->node;
    if (!(node->op->flags & PITH_OP_VIEW) || !node->input_count) return;
    const claim_node *from = claim_maker_of(m, node->inputs[0]);
    if (!from || !from->claimable) return;
    const pith__device *d = from->device;
    if (!claim_fits(node) || !d->backend->supports(d->context, node)) return;
    n->device = d;
    n->claimable = true;
}

static pith_status claim_begin(claim_maker *m, pith__choose_device *choose, const void *context) {
    uint32_t at = 0;
    for (pith__node *node = m->plan->graph->first; node; node = node->next)
        if (node->mark) node->mark = ++at;
    at = 0;
    for (const pith__node *node = m->plan->graph->first; node; node = node->next) {
        if (!node->mark) continue;
        claim_node *n = &m->nodes[at++];
        n->node = node;
        PITH_TRY(choose(context, node, &n->device));
        n->claimable = pith__device_program_least(n->device) && claim_fits(node) &&
                       !(node->op->flags & PITH_OP_VIEW);
        claim_view(m, n);
        for (int i = 0; i < node->input_count; i++)
            n->waits += claim_maker_of(m, node->inputs[i]) != NULL;
    }
    for (uint32_t i = 0; i < m->count; i++)
        if (!m->nodes[i].waits) claim_push(m, &m->queues[claim_queue_of(m, &m->nodes[i])], i);
    return PITH_OK;
}

/* ---- the order ---- */

/* Shapes hang on what this run makes. */
static bool claim_must_wait(const claim_maker *m, const claim_node *n) {
    for (int i = 0; i < n->node->input_count && i < 32; i++) {
        const claim_node *from =
            n->node->op->shape_inputs >> i & 1 ? claim_maker_of(m, n->node->inputs[i]) : NULL;
        if (from && from->run == m->run) return true;
    }
    return false;
}

static void claim_take(claim_maker *m, uint32_t index) {
    claim_node *n = &m->nodes[index];
    n->run = m->run;
    n->parent = index;
    m->order[m->taken++] = index;
    for (int i = 0; i < n->node->output_count; i++) {
        const pith__value *value = n->node->outputs[i];
        if (!claim_maker_of(m, value)) continue;
        for (size_t u = 0; u < value->user_count; u++) {
            const pith__node *user = value->users[u].node;
            if (!user->mark || user->graph != n->node->graph) continue;
            claim_node *reader = &m->nodes[user->mark - 1];
            if (--reader->waits == 0)
                claim_push(m, &m->queues[claim_queue_of(m, reader)], user->mark - 1);
        }
    }
}

/* Takes all that is ready in a queue, and becomes so meanwhile. */
static void claim_run(claim_maker *m, size_t queue) {
    uint32_t index;
    m->run++;
    m->later = (claim_queue){ 0, 0 };
    while (claim_pop(m, &m->queues[queue], &index)) {
        if (queue && claim_must_wait(m, &m->nodes[index]))
            claim_push(m, &m->later, index);
        else
            claim_take(m, index);
    }
    m->queues[queue] = m->later;
}

/* ---- connected parts ---- */

static uint32_t claim_root(claim_maker *m, uint32_t index) {
    claim_node *n = m->nodes;
    while (n[index].parent != index) index = n[index].parent = n[n[index].parent].parent;
    return index;
}

static void claim_connect(claim_maker *m, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        const claim_node *n = &m->nodes[m->order[i]];
        for (int k = 0; k < n->node->input_count; k++) {
            const claim_node *maker = claim_maker_of(m, n->node->inputs[k]);
            if (!maker || maker->run != n->run) continue;
            const uint32_t a = claim_root(m, m->order[i]),
                           b = claim_root(m, (uint32_t)(maker - m->nodes));
            m->nodes[a].parent = b;
        }
    }
}

/* ---- a claim ---- */

typedef struct claim_part {
    const uint32_t *members;
    size_t count;
    uint32_t root;
    pith__claim *claim;
    const pith__value **values;
    bool *on_host;
    size_t inputs, values_used;
} claim_part;

static bool claim_has(claim_maker *m, const claim_part *p, const pith__node *node) {
    const claim_node *n = node->mark ? &m->nodes[node->mark - 1] : NULL;
    return n && n->run == m->run && claim_root(m, node->mark - 1) == p->root;
}

static bool claim_makes(claim_maker *m, const claim_part *p, const pith__value *value) {
    const claim_node *from = claim_maker_of(m, value);
    return from && claim_has(m, p, from->node);
}

static bool claim_reads_on_host(const pith__node *node, int input) {
    return input < 32 && node->op->shape_inputs >> input & 1;
}

static int32_t *claim_place(const claim_maker *m, const pith__value *value, bool on_host) {
    return &m->place_of[(on_host ? m->plan->graph->value_count : 0) + value->id];
}

static void claim_add_value(const claim_maker *m, claim_part *p, const pith__value *value,
                            bool on_host) {
    int32_t *place = claim_place(m, value, on_host);
    if (*place != CLAIM_NONE) return;
    *place = (int32_t)p->values_used;
    p->on_host[p->values_used] = on_host;
    p->values[p->values_used++] = value;
}

/* The inputs come first, then what the members make. */
static void claim_add_values(claim_maker *m, claim_part *p) {
    for (size_t i = 0; i < p->count; i++) {
        const pith__node *node = m->nodes[p->members[i]].node;
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] && !claim_makes(m, p, node->inputs[k]))
                claim_add_value(m, p, node->inputs[k], claim_reads_on_host(node, k));
    }
    p->inputs = p->values_used;
    for (size_t i = 0; i < p->count; i++) {
        const pith__node *node = m->nodes[p->members[i]].node;
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k]) claim_add_value(m, p, node->outputs[k], false);
    }
}

static pith_status claim_add_members(claim_maker *m, claim_part *p) {
    pith__claimed_node *members = pith__arena_array(m->arena, p->count, sizeof *members);
    if (!members) return claim_out_of_memory(m);
    for (size_t i = 0; i < p->count; i++) {
        const pith__node *node = m->nodes[p->members[i]].node;
        int32_t *in = pith__arena_array(m->arena, (size_t)node->input_count, sizeof *in);
        int32_t *out = pith__arena_array(m->arena, (size_t)node->output_count, sizeof *out);
        if (!in || !out) return claim_out_of_memory(m);
        for (int k = 0; k < node->input_count; k++) {
            const pith__value *v = node->inputs[k];
            const bool host = v && !claim_makes(m, p, v) && claim_reads_on_host(node, k);
            in[k] = v ? *claim_place(m, v, host) : CLAIM_NONE;
        }
        for (int k = 0; k < node->output_count; k++)
            out[k] = node->outputs[k] ? *claim_place(m, node->outputs[k], false) : CLAIM_NONE;
        members[i] = (pith__claimed_node){ node, in, out };
    }
    p->claim->members = members;
    p->claim->member_count = p->count;
    return PITH_OK;
}

/* Whether somebody outside reads it. */
static bool claim_is_result(claim_maker *m, const claim_part *p, const pith__value *value) {
    if (value->output_uses) return true;
    for (size_t u = 0; u < value->user_count; u++) {
        const pith__node *user = value->users[u].node;
        if (user->mark && user->graph == value->graph && !claim_has(m, p, user)) return true;
    }
    return false;
}

static pith_status claim_add_results(claim_maker *m, claim_part *p, pith__value **ends) {
    int32_t *results = pith__arena_array(m->arena, p->values_used, sizeof *results);
    pith__node *node = &p->claim->node;
    if (!results) return claim_out_of_memory(m);
    for (size_t i = p->inputs; i < p->values_used; i++) {
        if (!claim_is_result(m, p, p->values[i])) continue;
        results[node->output_count] = (int32_t)i;
        ends[p->inputs + (size_t)node->output_count++] = (pith__value *)(uintptr_t)p->values[i];
    }
    p->claim->results = results;
    return PITH_OK;
}

static pith_status claim_make(claim_maker *m, claim_part *p) {
    size_t most = 0;
    for (size_t i = 0; i < p->count; i++) {
        const pith__node *node = m->nodes[p->members[i]].node;
        most += (size_t)node->input_count + (size_t)node->output_count;
    }
    p->claim = pith__arena_array(m->arena, 1, sizeof *p->claim);
    p->values = pith__arena_array(m->arena, most, sizeof *p->values);
    p->on_host = pith__arena_array(m->arena, most, sizeof *p->on_host);
    pith__value **ends = pith__arena_array(m->arena, most, sizeof *ends);
    bool *packed = pith__arena_array(m->arena, most, sizeof *packed);
    if (!p->claim || !p->values || !p->on_host || !ends || !packed) return claim_out_of_memory(m);
    const pith__node *first = m->nodes[p->members[0]].node;
    p->claim->node = (pith__node){ .name = first->name,
                                   .domain = PITH_STR("pith"),
                                   .op_type = PITH_STR("Program"),
                                   .opset = PITH_OPSET_NEWEST,
                                   .index = first->index,
                                   .op = &pith__claim_op,
                                   .graph = first->graph };
    claim_add_values(m, p);
    PITH_TRY(claim_add_members(m, p));
    for (size_t i = 0; i < p->inputs; i++) ends[i] = (pith__value *)(uintptr_t)p->values[i];
    PITH_TRY(claim_add_results(m, p, ends));
    p->claim->node.inputs = ends;
    p->claim->node.outputs = ends + p->inputs;
    p->claim->node.input_count = (int32_t)p->inputs;
    p->claim->values = p->values;
    p->claim->value_count = p->values_used;
    p->claim->on_host = p->on_host;
    p->claim->packed = packed;
    for (size_t i = 0; i < p->values_used; i++)
        *claim_place(m, p->values[i], p->on_host[i]) = CLAIM_NONE;
    return PITH_OK;
}

/* The parts of a run, in the order of their first nodes. The nodes of a part that is too small for
 * a program stand for themselves. */
static pith_status claim_parts(claim_maker *m, size_t from, pith__placed_node *nodes,
                               size_t *placed) {
    uint32_t *members = pith__arena_array(&m->scratch, m->taken - from, sizeof *members);
    if (!members) return claim_out_of_memory(m);
    claim_connect(m, from, m->taken);
    for (size_t i = m->taken; i-- > from;) {
        claim_node *root = &m->nodes[claim_root(m, m->order[i])];
        m->nodes[m->order[i]].next = root->first;
        root->first = m->order[i] + 1;
    }
    for (size_t i = from; i < m->taken; i++) {
        const claim_node *n = &m->nodes[m->order[i]];
        claim_part p = { .members = members, .root = claim_root(m, m->order[i]) };
        uint32_t next = m->nodes[p.root].first;
        m->nodes[p.root].first = 0;
        if (!next) continue;
        for (; next; next = m->nodes[next - 1].next) members[p.count++] = next - 1;
        const size_t least = pith__device_program_least(n->device);
        if (p.count >= least) PITH_TRY(claim_make(m, &p));
        if (p.claim) {
            nodes[(*placed)++] = (pith__placed_node){ &p.claim->node, n->device, p.claim };
            continue;
        }
        for (size_t k = 0; k < p.count; k++)
            nodes[(*placed)++] = (pith__placed_node){ m->nodes[members[k]].node, n->device, NULL };
    }
    return PITH_OK;
}

static pith_status claim_all(claim_maker *m, pith__placed_node *nodes, size_t *placed) {
    const size_t queues = m->plan->devices->count + 1;
    while (m->taken < m->count) {
        const size_t before = m->taken;
        for (size_t q = 0; q < queues; q++) {
            const size_t from = m->taken;
            claim_run(m, q);
            if (q) {
                PITH_TRY(claim_parts(m, from, nodes, placed));
                continue;
            }
            for (size_t i = from; i < m->taken; i++) {
                const claim_node *n = &m->nodes[m->order[i]];
                nodes[(*placed)++] = (pith__placed_node){ n->node, n->device, NULL };
            }
        }
        if (m->taken == before)
            return pith__fail(m->err, PITH_ERR_FORMAT, "the nodes of the graph form a cycle");
    }
    return PITH_OK;
}

static pith_status claims_gather(pith__placed_node *nodes, size_t *placed, const pith__plan *plan,
                                 size_t count, pith__choose_device *choose, const void *context,
                                 pith_error *err) {
    claim_maker m = { .plan = plan, .arena = plan->arena, .count = count, .err = err };
    const size_t values = 2 * plan->graph->value_count;
    pith__arena_init(&m.scratch, plan->arena->allocator);
    m.nodes = pith__arena_array(&m.scratch, count, sizeof *m.nodes);
    m.queues = pith__arena_array(&m.scratch, plan->devices->count + 1, sizeof *m.queues);
    m.order = pith__arena_array(&m.scratch, count, sizeof *m.order);
    m.place_of = pith__arena_array(&m.scratch, values, sizeof *m.place_of);
    pith_status status = PITH_OK;
    *placed = 0;
    if (!m.nodes || !m.queues || !m.order || !m.place_of) status = claim_out_of_memory(&m);
    if (!status) memset(m.place_of, 0xFF, values * sizeof *m.place_of);
    if (!status) status = claim_begin(&m, choose, context);
    if (!status) status = claim_all(&m, nodes, placed);
    pith__arena_free(&m.scratch);
    return status;
}

static bool claims_wanted(const pith__devices *devices) {
    for (size_t i = 0; i < devices->count; i++)
        if (pith__device_program_least(&devices->items[i])) return true;
    return false;
}

static pith_status claims_place(const pith__plan *plan, size_t count, pith__choose_device *choose,
                                pith__take_node *take, void *context, pith_error *err) {
    if (!claims_wanted(plan->devices)) {
        for (const pith__node *node = plan->graph->first; node; node = node->next)
            if (node->mark) PITH_TRY(take(context, &(pith__placed_node){ .node = node }));
        return PITH_OK;
    }
    size_t placed;
    pith__placed_node *nodes = pith__arena_array(plan->arena, count, sizeof *nodes);
    if (!nodes) return pith__fail_memory(err, count * sizeof *nodes);
    PITH_TRY(claims_gather(nodes, &placed, plan, count, choose, context, err));
    for (size_t i = 0; i < placed; i++) PITH_TRY(take(context, &nodes[i]));
    return PITH_OK;
}

/* ---- passes of devices ---- */

static pith_status device_rewrite(pith__graph *graph, pith__devices *devices, const pith__device *d,
                                  pith_error *err) {
    for (size_t i = 0; i < d->backend->pass_count; i++) {
        const pith__backend_pass *pass = &d->backend->passes[i];
        size_t changes = 0;
        pith_status status = pass->run(d->context, graph, &changes, err);
        if (!status && changes) status = pith__ops_infer(graph, false, err);
        assert(status || pith__graph_check(graph, NULL) != PITH_ERR_FORMAT);
        if (!status) continue;
        if (!pith__status_stops(status)) devices->failed = d->choice;
        return pith__fail_at(err, status, "backend '%s': pass '%s': ", d->choice->name, pass->name);
    }
    return PITH_OK;
}

/* A graph that other plans are made of does not change: when the device is lost, the nodes are
 * those that every device knows. */
static pith_status devices_rewrite(const pith__graph **graph, pith__devices *devices,
                                   pith__arena *arena, pith_error *err) {
    pith__graph *copy = NULL;
    for (size_t i = 0; i < devices->count; i++) {
        if (!devices->items[i].backend->pass_count) continue;
        if (!copy) {
            PITH_TRY(pith__graph_copy(&copy, *graph, arena, err));
            PITH_TRY(pith__ops_infer(copy, false, err));
        }
        PITH_TRY(device_rewrite(copy, devices, &devices->items[i], err));
    }
    if (copy) *graph = copy;
    return PITH_OK;
}

const pith__plan_devices pith__plan_devices_all = { claims_place, devices_rewrite,
                                                    pith__copies_order };
