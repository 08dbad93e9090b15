/* bind_operators.c - gives every node its operator. Model-local functions are inlined, older opsets
 * are upgraded to the newest form, and operators that this build does not have are listed, all in
 * one message.
 *
 * A walk is in node order; a node that was replaced is followed by its replacement. Functions may
 * call each other but not themselves. Their expansion is bounded, since a few lines of functions
 * can stand for billions of nodes. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory/span_map.h"
#include "base/piece_listener.h"
#include "base/text_out.h"
#include "engine/ops/custom/custom.h"
#include "engine/ops/shared/attrs.h"

/* Bounds for hostile files, far above what models have: how deep functions call each other, how
 * many nodes they expand to, how often one node may be upgraded. MAX_LISTED: missing operators that
 * the error names. */
enum {
    MAX_CALL_DEPTH = 64,
    MAX_INLINED = 1 << 19,
    MAX_UPGRADES = 16,
    MAX_LISTED = 32,
    END = UINT32_MAX
};

/* Things by name, and by domain among those of one name. */
typedef struct name_index {
    pith__map first;
    uint32_t *next;
} name_index;

typedef struct binder {
    pith__arena scratch;
    name_index ops, functions;
    /* Puts the body of a function in the place of a call of it; NULL: the graph is of a compiled
     * file, which has none. */
    pith_status (*inline_call)(struct binder *b, pith__node *node, const pith__function *f);
    const pith__graph *root;
    uint8_t *function_state;
    size_t inlined, unsupported, listed;
    struct {
        const pith__node *node;
        size_t count;
    } list[MAX_LISTED];
    pith_error *err;
} binder;

static pith_str bind_plain_domain(pith_str domain) {
    return pith__str_is(domain, "ai.onnx") ? PITH_STR("") : domain;
}

static pith_status bind_index_init(binder *b, name_index *index, size_t count) {
    index->next = pith__arena_array(&b->scratch, count, sizeof *index->next);
    if (!index->next || pith__map_init(&index->first, &b->scratch, count))
        return pith__fail_memory(b->err, count);
    return PITH_OK;
}

static pith_status bind_index_add(binder *b, name_index *index, pith_str name, uint32_t item) {
    index->next[item] = pith__map_get(&index->first, name);
    return pith__map_put(&index->first, name, item, NULL) ? PITH_OK : pith__fail_memory(b->err, 0);
}

static const pith__op *bind_find_op(const binder *b, const pith__node *node) {
    pith_str domain = bind_plain_domain(node->domain);
    for (uint32_t i = pith__map_get(&b->ops.first, node->op_type); i != END; i = b->ops.next[i])
        if (pith__str_is(domain, pith__op_table[i]->domain)) {
            pith__piece_used(pith__op_table[i]);
            return pith__op_table[i];
        }
    const pith__op *custom = pith__custom_find(b->root->operators, domain, node->op_type);
    if (custom) pith__piece_used(custom);
    return custom;
}

static uint32_t bind_find_function(const binder *b, const pith__node *node) {
    if (!b->root->function_count) return END;
    pith_str domain = bind_plain_domain(node->domain);
    for (uint32_t i = pith__map_get(&b->functions.first, node->op_type); i != END;
         i = b->functions.next[i]) {
        const pith__function *f = &b->root->functions[i];
        if (pith__str_eq(domain, bind_plain_domain(f->domain)) &&
            pith__str_eq(node->overload, f->overload))
            return i;
    }
    return END;
}

/* ---- functions ---- */

static pith_status bind_check_calls(binder *b, uint32_t function, int depth);

static pith_status bind_check_calls_in(binder *b, const pith__graph *body, int depth) {
    for (const pith__node *node = body->first; node; node = node->next) {
        uint32_t callee = bind_find_function(b, node);
        if (callee != END) PITH_TRY(bind_check_calls(b, callee, depth + 1));
        for (size_t i = 0; i < node->attr_count; i++)
            if (node->attrs[i].kind == PITH_ATTR_GRAPH)
                PITH_TRY(bind_check_calls_in(b, node->attrs[i].graph, depth));
    }
    return PITH_OK;
}

/* No function may reach itself. */
static pith_status bind_check_calls(binder *b, uint32_t function, int depth) {
    enum { NEW, OPEN, DONE };
    const pith__function *f = &b->root->functions[function];
    if (b->function_state[function] == DONE) return PITH_OK;
    if (b->function_state[function] == OPEN || depth > MAX_CALL_DEPTH) {
        return pith__fail(b->err, PITH_ERR_FORMAT, "function '" PITH_STR_FMT "' %s",
                          PITH_STR_ARG(f->name),
                          depth > MAX_CALL_DEPTH ? "is nested too deep" : "calls itself");
    }
    b->function_state[function] = OPEN;
    PITH_TRY(bind_check_calls_in(b, f->body, depth));
    b->function_state[function] = DONE;
    return PITH_OK;
}

/* Replaces a call by the nodes of its function. What all calls together expand to is counted
 * before, so a small file cannot fill the memory. */
static pith_status bind_inline_call(binder *b, pith__node *node, const pith__function *f) {
    char place[256];
    pith__node_place(node, place, sizeof place);
    size_t given = (size_t)node->input_count, wanted = f->body->input_count;
    if (given > wanted || (size_t)node->output_count > f->body->output_count) {
        return pith__fail(b->err, PITH_ERR_FORMAT,
                          "%s: has more inputs or outputs than its function", place);
    }
    b->inlined += f->body->node_count + f->body->value_count + 1;
    if (b->inlined > MAX_INLINED) {
        return pith__fail(b->err, PITH_ERR_FORMAT,
                          "%s: the model's functions expand to more than %d nodes and values",
                          place, MAX_INLINED);
    }
    pith__value **inputs = pith__arena_array(&b->scratch, wanted, sizeof *inputs);
    if (!inputs) return pith__fail_memory(b->err, wanted * sizeof *inputs);
    for (size_t i = 0; i < given; i++) inputs[i] = node->inputs[i];
    pith_status status = pith__graph_inline(node, f->body, inputs, f, b->err);
    if (!status) return PITH_OK;
    return pith__fail_at(b->err, status, "%s: function '" PITH_STR_FMT "': ", place,
                         PITH_STR_ARG(f->name));
}

/* ---- operators ---- */

/* Nodes of one operator and opset are one entry with a count. Beyond MAX_LISTED entries only the
 * total goes on. */
static void bind_note_unsupported(binder *b, const pith__node *node) {
    b->unsupported++;
    for (size_t i = 0; i < b->listed; i++) {
        const pith__node *seen = b->list[i].node;
        if (pith__str_eq(seen->op_type, node->op_type) &&
            pith__str_eq(seen->domain, node->domain) && seen->opset == node->opset) {
            b->list[i].count++;
            return;
        }
    }
    if (b->listed < MAX_LISTED) {
        b->list[b->listed].node = node;
        b->list[b->listed++].count = 1;
    }
}

/* As in a build's list: "Gelu", "com.microsoft::Gelu". */
static pith_str bind_listed_name(const pith__node *node, char *text, size_t size) {
    const pith_str domain = bind_plain_domain(node->domain);
    snprintf(text, size, PITH_STR_FMT "%s" PITH_STR_FMT, PITH_STR_ARG(domain),
             domain.size ? "::" : "", PITH_STR_ARG(node->op_type));
    return pith__str_of(text);
}

/* Fails if one of the operators is known, and this build was made without it. */
static pith_status bind_check_dropped(const binder *b) {
    pith__lacks lacks = { .count = 0 };
    for (size_t i = 0; i < b->listed; i++) {
        char name[512], place[PITH_PLACE_SHOWN];
        const pith_str listed = bind_listed_name(b->list[i].node, name, sizeof name);
        if (pith__piece_is_dropped("operators", listed))
            pith__lacks_note(&lacks, "operators", listed,
                             pith__node_place(b->list[i].node, place, sizeof place));
    }
    return pith__lacks_check(&lacks, b->err);
}

/* One message for all that is missing, so that a user does not find out one by one. */
static pith_status bind_fail_unsupported(const binder *b) {
    char text[PITH_ERROR_MESSAGE_SIZE];
    PITH_TRY(bind_check_dropped(b));
    pith__text_out out = pith__text_begin(text, sizeof text);
    for (size_t i = 0; i < b->listed; i++) {
        const pith__node *node = b->list[i].node;
        char place[200], count[32] = "";
        if (b->list[i].count > 1)
            snprintf(count, sizeof count, " and %zu more", b->list[i].count - 1);
        pith__text_put(&out, "%s" PITH_STR_FMT "." PITH_STR_FMT " opset %" PRId32 " (%s%s)",
                       i ? ", " : "",
                       PITH_STR_ARG(node->domain.size ? node->domain : PITH_STR("ai.onnx")),
                       PITH_STR_ARG(node->op_type), node->opset,
                       pith__node_place(node, place, sizeof place), count);
    }
    return pith__fail(b->err, PITH_ERR_UNSUPPORTED,
                      "%zu nodes have operators or opsets this build does not know: %s",
                      b->unsupported, text);
}

/* Calls upgrade; what of the older spelling is left goes. The node may be replaced by others. */
static pith_status bind_upgrade(pith__node *node, const pith__op *op, pith_error *err) {
    char place[256];
    pith_str domain = node->domain, name = node->op_type;
    int32_t opset = node->opset;
    pith__node_place(node, place, sizeof place);
    pith__piece_used_with(op, PITH_PIECE_UPGRADED);
    pith_status status = op->upgrade(node, err);
    if (status) return pith__fail_at(err, status, "%s: opset %" PRId32 ": ", place, opset);
    if (node->graph && pith__str_eq(domain, node->domain) && pith__str_eq(name, node->op_type) &&
        node->opset == opset) {
        node->opset = op->since;
        const pith__op_checks *checks = pith__op_checks_of(op);
        if (checks) checks->prune(node, op);
    }
    return PITH_OK;
}

/* The operator is known in the node's opset. All operators of these domains were compared with the
 * standard up to the opset named here (tests/comparisons/compare_schemas.py); in a later opset only
 * those are known whose own newest version says so. Other domains have no versions to speak of. */
static bool bind_opset_known(const pith__node *node, const pith__op *op) {
    static const struct {
        const char *domain;
        int32_t newest;
    } domains[] = { { "", 28 }, { "ai.onnx.ml", 5 }, { "ai.onnx.preview.training", 1 } };
    if (node->opset <= op->newest || node->opset == PITH_OPSET_NEWEST) return true;
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++)
        if (!strcmp(op->domain, domains[i].domain)) return node->opset <= domains[i].newest;
    return true;
}

/* What upgrade and everything after it may rely on. An older spelling may have other counts than
 * the newest, so those are checked here only where no spelling is new enough (PITH_OP_COMPOSED;
 * which of its inputs may be left out, its upgrade says through pith__compose_require); inference
 * checks the rest. */
static pith_status bind_check_ends(const pith__node *node, const pith__op *op, pith_error *err) {
    bool composed = op->since == INT32_MAX;
    if (composed && node->input_count < op->min_inputs)
        return pith__fail(err, PITH_ERR_FORMAT, "input %d is missing", node->input_count);
    if (composed && op->max_outputs >= 0 && node->output_count > op->max_outputs) {
        return pith__fail(err, PITH_ERR_FORMAT, "has %d outputs, at most %d are allowed",
                          node->output_count, op->max_outputs);
    }
    if (op->flags & PITH_OP_FIRST_OPTIONAL || pith__node_output(node, 0)) return PITH_OK;
    return pith__fail(err, PITH_ERR_FORMAT, "output 0 has no name, but this operator must have it");
}

/* Attributes whose integers are data, or bounds that are cut to what there is; others are axes,
 * sizes and choices. */
static bool bind_holds_data(pith_str name) {
    static const char *const names[] = { "cats_int64s",
                                         "classlabels_int64s",
                                         "classlabels_ints",
                                         "default_int64",
                                         "end",
                                         "ends",
                                         "ignore_index",
                                         "imputed_value_int64s",
                                         "keys_int64s",
                                         "maxsplit",
                                         "pool_int64s",
                                         "int64_vocabulary",
                                         "seed",
                                         "replaced_value_int64",
                                         "start",
                                         "starts",
                                         "values_int64s",
                                         "value_int",
                                         "value_ints" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (pith__str_is(name, names[i])) return true;
    return false;
}

/* The integers of attributes become axes and sizes, so all are small enough to compute with; see
 * engine/graph/symbolic_dim.h. */
static pith_status bind_check_integers(const pith__node *node, pith_error *err) {
    for (size_t i = 0; i < node->attr_count; i++) {
        const pith__attr *a = &node->attrs[i];
        bool list = a->kind == PITH_ATTR_INTS;
        if ((a->kind != PITH_ATTR_INT && !list) || bind_holds_data(a->name)) continue;
        for (size_t k = 0; k < (list ? a->count : 1); k++) {
            int64_t item = list ? a->ints[k] : a->integer;
            if (item <= PITH_ATTR_INT_MAX && item >= -PITH_ATTR_INT_MAX) continue;
            char place[32] = "";
            if (list) snprintf(place, sizeof place, "[%zu]", k);
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "attribute " PITH_STR_FMT "%s is %" PRId64 ", which is out of range",
                              PITH_STR_ARG(a->name), place, item);
        }
    }
    return PITH_OK;
}

/* Finds the operator and upgrades the node until it is of the newest form; an upgrade may make a
 * node of another operator, which is looked up again. A node that replaces itself by others is
 * done: those come up in the walk. */
static pith_status bind_op(binder *b, pith__node *node) {
    for (int round = 0; round < MAX_UPGRADES; round++) {
        const pith__op *op = bind_find_op(b, node);
        if (!op || !bind_opset_known(node, op)) {
            bind_note_unsupported(b, node);
            return PITH_OK;
        }
        if (round == 0) {
            const pith__op_checks *checks = pith__op_checks_of(op);
            if (checks) PITH_TRY(checks->attrs(node, op, b->root->compiled, b->err));
        }
        pith_status status = bind_check_ends(node, op, b->err);
        if (!status) status = bind_check_integers(node, b->err);
        char place[256];
        if (status)
            return pith__fail_at(b->err, status,
                                 "%s: ", pith__node_place(node, place, sizeof place));
        if (node->opset >= op->since || !op->upgrade) {
            node->op = op;
            return PITH_OK;
        }
        PITH_TRY(bind_upgrade(node, op, b->err));
        if (!node->graph) return PITH_OK;
    }
    char place[256];
    return pith__fail(b->err, PITH_ERR_UNSUPPORTED, "%s: upgrading does not end",
                      pith__node_place(node, place, sizeof place));
}

/* What stands for a function's attribute has no value of its own; putting functions in place left
 * none. */
static pith_status bind_check_references(const binder *b, const pith__node *node) {
    char place[256];
    for (size_t i = 0; i < node->attr_count; i++) {
        const pith__attr *attr = &node->attrs[i];
        if (!attr->reference.size) continue;
        return pith__fail(b->err, PITH_ERR_FORMAT,
                          "%s: attribute '" PITH_STR_FMT "' refers to '" PITH_STR_FMT
                          "', the attribute of a function, but the node is in none",
                          pith__node_place(node, place, sizeof place), PITH_STR_ARG(attr->name),
                          PITH_STR_ARG(attr->reference));
    }
    return PITH_OK;
}

/* What a Constant holds counts for upgrades of later nodes as an initializer does. */
static pith_status bind_contents(const pith__node *node, pith_error *err) {
    pith__value *v = pith__node_output(node, 0);
    pith__type type = { .rank = -1 };
    char place[256];
    if (!node->op || !v || strcmp(node->op->name, "Constant") || *node->op->domain) return PITH_OK;
    pith__infer c = {
        .node = node, .out = &type, .out_count = 1, .arena = node->graph->arena, .err = err
    };
    pith_status status = node->op->infer(&c);
    if (status)
        return pith__fail_at(err, status, "%s: ", pith__node_place(node, place, sizeof place));
    v->type = type;
    return PITH_OK;
}

/* Walks in order. done is the last bound node: after it come the nodes that replaced one, or the
 * next of the graph. Subgraphs are bound before their node. */
static pith_status bind_graph(binder *b, pith__graph *graph) {
    pith__node *done = NULL; /* everything up to here is bound */
    for (;;) {
        pith__node *node = done && done->graph ? done->next : graph->first;
        while (node && node->op) done = node, node = node->next;
        if (!node) return PITH_OK;
        PITH_TRY(bind_check_references(b, node));
        uint32_t function = b->inline_call ? bind_find_function(b, node) : END;
        if (function != END) {
            PITH_TRY(b->inline_call(b, node, &b->root->functions[function]));
            continue;
        }
        for (size_t i = 0; i < node->attr_count; i++)
            if (node->attrs[i].kind == PITH_ATTR_GRAPH)
                PITH_TRY(bind_graph(b, node->attrs[i].graph));
        pith__node *before = node->prev;
        PITH_TRY(bind_op(b, node));
        if (node->graph && node->prev == before) {
            PITH_TRY(bind_contents(node, b->err));
            done = node;
        }
    }
}

static pith_status bind_functions(binder *b, const pith__graph *graph) {
    b->inline_call = bind_inline_call;
    PITH_TRY(bind_index_init(b, &b->functions, graph->function_count));
    for (size_t i = 0; i < graph->function_count; i++) {
        PITH_TRY(bind_index_add(b, &b->functions, graph->functions[i].name, (uint32_t)i));
    }
    b->function_state = pith__arena_array(&b->scratch, graph->function_count, 1);
    if (!b->function_state) return pith__fail_memory(b->err, graph->function_count);
    for (size_t i = 0; i < graph->function_count; i++)
        PITH_TRY(bind_check_calls(b, (uint32_t)i, 0));
    return PITH_OK;
}

static pith_status bind_all(binder *b, pith__graph *graph) {
    PITH_TRY(bind_index_init(b, &b->ops, pith__op_table_count));
    for (size_t i = 0; i < pith__op_table_count; i++) {
        PITH_TRY(bind_index_add(b, &b->ops, pith__str_of(pith__op_table[i]->name), (uint32_t)i));
    }
    PITH_TRY(bind_graph(b, graph));
    return b->unsupported ? bind_fail_unsupported(b) : PITH_OK;
}

static pith_status bind_keep_output_names(pith__graph *graph, pith_error *err) {
    pith_str *names = pith__arena_array(graph->arena, graph->output_count, sizeof *names);
    if (!names) return pith__fail_memory(err, graph->output_count * sizeof *names);
    for (size_t i = 0; i < graph->output_count; i++) names[i] = graph->outputs[i]->name;
    graph->output_names = names;
    return PITH_OK;
}

pith_status pith__ops_bind(pith__graph *graph, pith_error *err) {
    binder b = { .root = graph, .err = err };
    PITH_TRY(pith__custom_begin(err));
    if (!graph->output_names) PITH_TRY(bind_keep_output_names(graph, err));
    pith__arena_init(&b.scratch, graph->arena->allocator);
    pith_status status = bind_functions(&b, graph);
    if (!status) status = bind_all(&b, graph);
    pith__arena_free(&b.scratch);
    return status;
}

pith_status pith__ops_bind_compiled(pith__graph *graph, pith_error *err) {
    binder b = { .root = graph, .err = err };
    PITH_TRY(pith__custom_begin(err));
    pith__arena_init(&b.scratch, graph->arena->allocator);
    pith_status status = bind_all(&b, graph);
    pith__arena_free(&b.scratch);
    return status;
}

/* For nodes that passes make. Their operators belong to the engine, unless a selective build lacks
 * them, or are those of a node that is copied. */
pith_status pith__op_bind_node(pith__node *node, pith_error *err) {
    char place[256];
    node->op = pith__op_of_node(node);
    if (!node->op) {
        char name[512];
        pith__node_place(node, place, sizeof place);
        pith_status status =
            pith__piece_check("operators", bind_listed_name(node, name, sizeof name), err);
        if (status) return pith__fail_at(err, status, "%s: ", place);
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: this build does not know operator " PITH_STR_FMT "." PITH_STR_FMT,
                          place,
                          PITH_STR_ARG(node->domain.size ? node->domain : PITH_STR("ai.onnx")),
                          PITH_STR_ARG(node->op_type));
    }
    pith__piece_used(node->op);
    return node->opset < node->op->since && node->op->upgrade ? bind_upgrade(node, node->op, err)
                                                              : PITH_OK;
}
