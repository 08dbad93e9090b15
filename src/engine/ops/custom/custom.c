/* custom.c - registers the operators of programs, and stands between them and the engine; see
 * custom.h. A program that has none does not link this file. */
#include "engine/ops/custom/custom.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/str.h"
#include "base/text_out.h"
#include "engine/ops/shared/attrs.h"

/* Most inputs and outputs of a program's operator. */
enum { PORTS_MOST = 64 };

/* ---- the engine's structs as those of pith/op.h ---- */

static const pith_op_node *public_node(const pith__node *node) {
    return (const pith_op_node *)node;
}
static const pith__node *own_node(const pith_op_node *node) { return (const pith__node *)node; }

typedef struct public_types {
    pith__arena arena;
    const pith_op_type **in;
    pith_op_type *out;
} public_types;

static void public_type(pith_op_type *to, const pith__type *from) {
    *to = (pith_op_type){ .dtype = from->dtype, .rank = from->rank, .data = from->data };
    for (int i = 0; i < from->rank && i < PITH_MAX_RANK; i++) to->dims[i] = from->dims[i];
}

/* End with pith__arena_free, also after a failure. */
static pith_status public_types_make(public_types *t, const pith__node *node,
                                     const pith__type *const *in, int in_count,
                                     const pith__type *out, pith_error *err) {
    const size_t in_room = pith__node_in_room(node), out_room = pith__node_out_room(node);
    pith__arena_init(&t->arena, node->graph->arena->allocator);
    t->in = pith__arena_array(&t->arena, in_room, sizeof *t->in);
    t->out = pith__arena_array(&t->arena, out_room, sizeof *t->out);
    pith_op_type *types = pith__arena_array(&t->arena, in_room, sizeof *types);
    if (!t->in || !t->out || !types)
        return pith__fail_memory(err, (in_room + out_room) * sizeof *types);
    for (size_t i = 0; i < in_room; i++) {
        const pith__type *type = i < (size_t)in_count ? in[i] : NULL;
        if (type) public_type(&types[i], type);
        t->in[i] = type ? &types[i] : NULL;
    }
    for (size_t i = 0; i < out_room; i++) public_type(&t->out[i], &out[i]);
    return PITH_OK;
}

/* What a program's function returned, and why. */
static pith_status custom_settle(pith_status status, const pith_error *why, const char *function,
                                 pith_error *err) {
    if (!status) return PITH_OK;
    if (status < PITH_OK || status > PITH_ERR_DEADLINE)
        return pith__fail(err, PITH_ERR_RUN,
                          "the operator's %s returned %d, which is no pith_status", function,
                          (int)status);
    if (!memchr(why->message, 0, sizeof why->message) || !why->message[0])
        return pith__fail(err, status, "the operator's %s failed and gave no reason", function);
    return pith__fail(err, status, "%s", why->message);
}

/* ---- the functions of the descriptor ---- */

static bool custom_all_known(const pith__infer *c) {
    for (int i = 0; i < c->in_count; i++) {
        if (!c->in[i]) continue;
        if (!pith__type_concrete(c->in[i])) return false;
        if (i < 32 && c->node->op->shape_inputs >> i & 1 && !c->in[i]->data) return false;
    }
    return true;
}

/* What a program's infer gave, checked, since it is code of others. -1 and other small negative
 * numbers mean unknown. */
static pith_status custom_take_out(pith__infer *c, int i, const pith_op_type *type) {
    if (type->dtype < PITH_UNDEFINED || type->dtype >= PITH_DTYPE_COUNT)
        return pith__op_fail(c, "infer gave output %d the dtype %d, which there is not", i,
                             (int)type->dtype);
    if (type->rank < -1 || type->rank > PITH_MAX_RANK)
        return pith__op_fail(c, "infer gave output %d the rank %d; it must be from -1 to %d", i,
                             (int)type->rank, PITH_MAX_RANK);
    pith__type *out = &c->out[i];
    out->dtype = type->dtype;
    out->rank = type->rank;
    for (int k = 0; k < type->rank; k++) {
        const bool open = type->dims[k] < 0 && type->dims[k] > PITH_DIM_LIMIT; /* such as -1 */
        out->dims[k] = open ? PITH_DIM_UNKNOWN : type->dims[k];
    }
    return PITH_OK;
}

/* With all inputs known the outputs must be: later steps are sized by them. */
static pith_status custom_call_infer(pith__infer *c, const public_types *t) {
    const pith__custom_op *custom = pith__custom_of(c->node->op);
    pith_error why = PITH_ERROR_INIT;
    pith_op_infer call = { public_node(c->node), t->in, t->out, c->in_count, c->out_count, &why };
    PITH_TRY(custom_settle(custom->own.infer(&call), &why, "infer", c->err));
    const bool all = custom_all_known(c) && !(custom->own.flags & PITH_OPERATOR_DYNAMIC);
    for (int i = 0; i < c->out_count; i++) {
        PITH_TRY(custom_take_out(c, i, &t->out[i]));
        if (all && !pith__type_concrete(&c->out[i]))
            return pith__op_fail(
                c,
                "infer left the type of output %d open, although all inputs are known; only an "
                "operator with PITH_OPERATOR_DYNAMIC may",
                i);
    }
    return PITH_OK;
}

static pith_status custom_infer(pith__infer *c) {
    public_types t;
    pith_status status = public_types_make(&t, c->node, c->in, c->in_count, c->out, c->err);
    if (!status) status = custom_call_infer(c, &t);
    pith__arena_free(&t.arena);
    return status;
}

/* Types are handed over in the public form, which lives as long as the call. */
static pith_status custom_prepare(pith__prepare *c) {
    const pith__custom_op *custom = pith__custom_of(c->node->op);
    pith_error why = PITH_ERROR_INIT;
    public_types t;
    pith_status status = public_types_make(&t, c->node, c->in, c->in_count, c->out, c->err);
    if (!status) {
        pith_op_prepare call = { public_node(c->node), t.in, t.out, c->in_count,
                                 c->out_count,         NULL, &why,  c };
        status = custom_settle(custom->own.prepare(&call), &why, "prepare", c->err);
        c->state = call.state;
    }
    pith__arena_free(&t.arena);
    return status;
}

/* As custom_prepare. */
static pith_status custom_scratch(const pith__infer *c, const void *state, int threads,
                                  size_t *bytes) {
    const pith__custom_op *custom = pith__custom_of(c->node->op);
    pith_error why = PITH_ERROR_INIT;
    public_types t;
    pith_status status = public_types_make(&t, c->node, c->in, c->in_count, c->out, c->err);
    if (!status) {
        const pith_op_infer call = { public_node(c->node), t.in,         t.out,
                                     c->in_count,          c->out_count, &why };
        status = custom_settle(custom->own.scratch(bytes, &call, state, threads), &why, "scratch",
                               c->err);
    }
    pith__arena_free(&t.arena);
    return status;
}

static pith_status custom_check_outputs(const pith__run *r) {
    for (int i = 0; i < r->out_count; i++)
        if (r->out[i] && !r->out[i]->data && r->out[i]->dtype == PITH_UNDEFINED)
            return pith__op_fail(r, "run did not call pith_op_output for output %d", i);
    return PITH_OK;
}

/* Outputs of a dynamic operator are empty before the call, so that one it forgets is found. */
static pith_status custom_run(pith__run *r) {
    const pith__custom_op *custom = pith__custom_of(r->node->op);
    const bool dynamic = custom->own.flags & PITH_OPERATOR_DYNAMIC;
    pith_error why = PITH_ERROR_INIT;
    pith_op_run call = {
        public_node(r->node), r->state,         r->in, r->out, r->in_count, r->out_count,
        r->scratch,           r->exec->threads, &why,  r
    };
    if (dynamic) {
        for (int i = 0; i < r->out_count; i++)
            if (r->out[i]) *r->out[i] = (pith_tensor){ .data = NULL };
    }
    PITH_TRY(custom_settle(custom->own.run(&call), &why, "run", r->err));
    return dynamic ? custom_check_outputs(r) : PITH_OK;
}

/* ---- what the functions may ask for ---- */

/* The default that the descriptor has for an attribute; data is NULL if there is none. */
static pith_str custom_default(const pith_op_node *node, const char *name) {
    const char *text = own_node(node)->op->attrs;
    pith__attr_rule rule;
    while (text && pith__attr_rule_next(&text, &rule))
        if (pith__str_is(rule.name, name)) return rule.fallback;
    return (pith_str){ NULL, 0 };
}

int64_t pith__custom_int(const pith_op_node *node, const char *name) {
    const pith_str given = custom_default(node, name);
    return pith__node_int(own_node(node), name, given.data ? strtoll(given.data, NULL, 10) : 0);
}

float pith__custom_float(const pith_op_node *node, const char *name) {
    const pith_str given = custom_default(node, name);
    return pith__node_float(own_node(node), name, given.data ? pith__attr_number(given.data) : 0);
}

pith_str pith__custom_string(const pith_op_node *node, const char *name) {
    const pith__attr *attr = pith__node_attr(own_node(node), name);
    if (attr && attr->kind == PITH_ATTR_STRING) return attr->string;
    const pith_str given = custom_default(node, name);
    return given.data ? given : PITH_STR("");
}

/* Checked, since a program calls it. Its error goes into the program's own, which it hands on. */
pith_status pith__custom_output(pith_op_run *r, int32_t output, int32_t dtype, int32_t rank,
                                const int64_t *dims) {
    pith__run *own = r->engine;
    if (!(own->node->op->flags & PITH_OP_LATE))
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "pith_op_output is for operators with PITH_OPERATOR_DYNAMIC");
    if (output < 0 || output >= own->out_count || !own->out[output])
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "pith_op_output: the node has no output %d",
                          (int)output);
    if (dtype <= PITH_UNDEFINED || dtype >= PITH_DTYPE_COUNT)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "pith_op_output: dtype %d there is not",
                          (int)dtype);
    if (rank < 0 || rank > PITH_MAX_RANK || pith__dims_count(dims, rank) < 0)
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "pith_op_output: the shape of output %d is no shape", (int)output);
    pith_error *const before = own->err;
    own->err = r->err; /* the program's to pass on */
    const pith_status status = pith__run_alloc(own, output, dtype, rank, dims);
    own->err = before;
    return status;
}

/* ---- registration ---- */

/* "f32|f16" to a set of dtypes; 0: not readable. */
static uint32_t custom_read_word(const char *word, size_t size) {
    uint32_t set = 0;
    if (size == 1 && *word == '*') return UINT32_MAX;
    for (const char *end = word + size; word < end;) {
        const size_t n = strcspn(word, "| ");
        int dtype = PITH_UNDEFINED + 1;
        while (dtype < PITH_DTYPE_COUNT && (strlen(pith__dtype_short_name(dtype)) != n ||
                                            memcmp(pith__dtype_short_name(dtype), word, n)))
            dtype++;
        if (dtype == PITH_DTYPE_COUNT) return 0;
        set |= 1u << dtype;
        word += n + (word + n < end);
    }
    return set;
}

/* Words like f32|i64, one per input; the last one holds for further inputs. */
static pith_status custom_read_types(pith__custom_op *op, pith_error *err) {
    for (const char *at = op->own.types ? op->own.types : ""; *(at += strspn(at, " "));) {
        const size_t n = strcspn(at, " ");
        const uint32_t set = custom_read_word(at, n);
        if (op->dtype_count == PITH_CUSTOM_TYPES)
            return pith__fail(err, PITH_ERR_ARGUMENT, "types has more than %d words",
                              PITH_CUSTOM_TYPES);
        if (!set)
            return pith__fail(
                err, PITH_ERR_ARGUMENT,
                "types: '" PITH_STR_FMT
                "' is not read; write names such as f32, i64 and bool with | between them, or *",
                PITH_STR_ARG(((pith_str){ at, n })));
        snprintf(op->text[op->dtype_count], sizeof op->text[0], "%.*s", (int)n, at);
        op->dtypes[op->dtype_count++] = set;
        at += n;
    }
    return PITH_OK;
}

/* The grammar is that of built-in operators, without graphs and types, and without defaults of
 * lists. */
static pith_status custom_check_attributes(const char *text, pith_error *err) {
    pith__attr_rule rule;
    size_t count = 0;
    if (!text) return PITH_OK;
    for (; pith__attr_rule_next(&text, &rule); count++) {
        const bool known = rule.kind != PITH_ATTR_GRAPH && rule.kind != PITH_ATTR_TYPE;
        const bool lone = rule.kind == PITH_ATTR_INT || rule.kind == PITH_ATTR_FLOAT ||
                          rule.kind == PITH_ATTR_STRING;
        const char *fault = NULL;
        if (rule.fallback.data && !lone) fault = "is a list, which has no default";
        if (count == PITH_ATTR_RULES_MAX) fault = "is one too many";
        if (!known) fault = "is of a kind that these operators do not have";
        if (fault)
            return pith__fail(err, PITH_ERR_ARGUMENT, "attributes: '" PITH_STR_FMT "' %s",
                              PITH_STR_ARG(rule.name), fault);
    }
    return text[strspn(text, " ")]
               ? pith__fail(err, PITH_ERR_ARGUMENT, "attributes: '" PITH_CUT_FMT "' is not read",
                            PITH_CUT(pith__str_of(text), 60))
               : PITH_OK;
}

/* Bounds of ports and combinations of flags. */
static pith_status custom_check_counts(const pith_operator *o, pith_error *err) {
    if (o->min_inputs < 0 || o->min_inputs > PORTS_MOST || o->max_inputs > PORTS_MOST ||
        o->max_inputs < -1)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "min_inputs is %d and max_inputs %d; they must be from 0 to %d, or -1 for any",
            (int)o->min_inputs, (int)o->max_inputs, PORTS_MOST);
    if (o->max_inputs >= 0 && o->max_inputs < o->min_inputs)
        return pith__fail(err, PITH_ERR_ARGUMENT, "max_inputs is %d, less than min_inputs, %d",
                          (int)o->max_inputs, (int)o->min_inputs);
    if (o->max_outputs < 1 || o->max_outputs > PORTS_MOST)
        return pith__fail(err, PITH_ERR_ARGUMENT, "max_outputs is %d; it must be from 1 to %d",
                          (int)o->max_outputs, PORTS_MOST);
    const int32_t flags = PITH_OPERATOR_ELEMENTWISE | PITH_OPERATOR_IN_PLACE |
                          PITH_OPERATOR_DYNAMIC | PITH_OPERATOR_RANDOM;
    if (o->flags & ~flags)
        return pith__fail(err, PITH_ERR_ARGUMENT, "flags has bits that this library does not know");
    if (o->flags & PITH_OPERATOR_DYNAMIC &&
        o->flags & (PITH_OPERATOR_IN_PLACE | PITH_OPERATOR_ELEMENTWISE))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "PITH_OPERATOR_DYNAMIC excludes IN_PLACE and ELEMENTWISE");
    return PITH_OK;
}

/* The engine's view of a program's operator. Every opset from 1 on is taken. */
static pith__op custom_op_of(const pith_operator *o) {
    static const struct {
        int32_t own;
        uint32_t flag;
    } flags[] = { { PITH_OPERATOR_ELEMENTWISE, PITH_OP_ELEMENTWISE },
                  { PITH_OPERATOR_IN_PLACE, PITH_OP_IN_PLACE },
                  { PITH_OPERATOR_DYNAMIC, PITH_OP_LATE },
                  { PITH_OPERATOR_RANDOM, PITH_OP_RANDOM } };
    pith__op op = { .domain = o->domain && strcmp(o->domain, "ai.onnx") ? o->domain : "",
                    .name = o->name,
                    .since = 1,
                    .newest = INT32_MAX,
                    .min_inputs = o->min_inputs,
                    .max_inputs = o->max_inputs,
                    .max_outputs = o->max_outputs,
                    .flags = PITH_OP_CUSTOM,
                    .attrs = o->attributes,
                    .shape_inputs = o->shape_inputs,
                    .infer = custom_infer,
                    .prepare = o->prepare ? custom_prepare : NULL,
                    .scratch = o->scratch ? custom_scratch : NULL,
                    .run = custom_run };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (o->flags & flags[i].own) op.flags |= flags[i].flag;
    return op;
}

/* Everything but whether the name is free. */
static pith_status custom_fill(pith__custom_op *op, const pith_operator *given, pith_error *err) {
    *op = (pith__custom_op){
        .own = *given, .given = given, .checks = &pith__op_checks_all, .op = custom_op_of(given)
    };
    if (!given->infer || !given->run)
        return pith__fail(err, PITH_ERR_ARGUMENT, "it has no %s, which every operator needs",
                          given->infer ? "run" : "infer");
    PITH_TRY(custom_check_counts(given, err));
    PITH_TRY(custom_check_attributes(given->attributes, err));
    return custom_read_types(op, err);
}

static const pith__op *builtin_find(pith_str domain, pith_str name) {
    for (size_t i = 0; i < pith__op_table_count; i++)
        if (pith__str_is(name, pith__op_table[i]->name) &&
            pith__str_is(domain, pith__op_table[i]->domain))
            return pith__op_table[i];
    return NULL;
}

static pith_status custom_check_name(pith_str domain, pith_str name, pith_error *err) {
    if (!builtin_find(domain, name)) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "Pith has an operator of this name");
}

/* The list's first entry changes only by entries in front of it, so a lost race means to look
 * again. */
static pith_status custom_link(pith__custom_op *op, pith_error *err) {
    const pith_str domain = pith__str_of(op->op.domain), name = pith__str_of(op->op.name);
    PITH_TRY(custom_check_name(domain, name, err));
    pith__custom_op *first = pith__custom_first();
    do {
        for (const pith__custom_op *at = first; at; at = at->next)
            if (pith__str_is(domain, at->op.domain) && pith__str_is(name, at->op.name))
                return pith__fail(err, PITH_ERR_ARGUMENT,
                                  "an operator of this name was registered before");
        op->next = first;
    } while (!atomic_compare_exchange_weak(&pith__custom_registered, &first, op));
    return PITH_OK;
}

/* Fields of another version of the header may lie elsewhere, so nothing else is read before. */
static pith_status custom_check_version(const pith_operator *given, const char *function,
                                        pith_error *err) {
    if (!given) return pith__fail(err, PITH_ERR_ARGUMENT, "%s: the operator is NULL", function);
    if (given->abi != PITH_OP_ABI || given->size != sizeof *given)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s: the operator was compiled for version %u of pith/op.h "
                          "with %u bytes, and this "
                          "library has version %u with %u; begin it with PITH_OPERATOR_BEGIN, and "
                          "compile it with the header "
                          "of this library",
                          function, (unsigned)given->abi, (unsigned)given->size,
                          (unsigned)PITH_OP_ABI, (unsigned)sizeof *given);
    if (!given->name || !given->name[0])
        return pith__fail(err, PITH_ERR_ARGUMENT, "%s: the operator has no name", function);
    return PITH_OK;
}

/* What is wrong with an operator, behind its name. */
static pith_status custom_fail(const pith_operator *given, pith_status status, pith_error *err) {
    return pith__fail_at(err, status, "operator %s%s%s: ", given->domain ? given->domain : "",
                         given->domain && given->domain[0] ? "::" : "", given->name);
}

pith_status pith__custom_register(const pith_operator *given, pith_error *err) {
    PITH_TRY(custom_check_version(given, "pith_register_op", err));
    pith__custom_op *op = pith__memory_alloc(&pith__allocator_default, sizeof *op, 64);
    if (!op) return pith__fail_memory(err, sizeof *op);
    pith_status status = custom_fill(op, given, err);
    if (!status) status = custom_link(op, err);
    if (!status) return PITH_OK;
    pith__memory_free(&pith__allocator_default, op);
    return custom_fail(given, status, err);
}

/* ---- sets ---- */

static void custom_set_drop(pith_operator_set *set) {
    const pith_allocator allocator = set->allocator;
    pith__memory_free(&allocator, set);
}

/* The set counts only those that are in it, so that the name of a new one is compared with them. */
static pith_status custom_set_add(pith_operator_set *set, const pith_operator *given,
                                  pith_error *err) {
    pith__custom_op *op = &set->ops[set->count];
    PITH_TRY(custom_fill(op, given, err));
    const pith_str domain = pith__str_of(op->op.domain), name = pith__str_of(op->op.name);
    PITH_TRY(custom_check_name(domain, name, err));
    for (size_t i = 0; i < set->count; i++)
        if (pith__str_is(domain, set->ops[i].op.domain) && pith__str_is(name, set->ops[i].op.name))
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "the list has an operator of this name twice");
    set->count++;
    return PITH_OK;
}

pith_status pith__custom_set_create(pith_operator_set **set, const pith_operator *const *list,
                                    size_t count, const pith_call *call, pith_error *err) {
    pith_call mine = PITH_CALL_INIT;
    size_t bytes;
    PITH_TAKE_OPTIONS(mine, call, err);
    if (count && !list)
        return pith__fail(err, PITH_ERR_ARGUMENT, "pith_operator_set_create: the list is NULL");
    if (pith__mul_overflows(count, sizeof(pith__custom_op), &bytes) ||
        pith__add_overflows(bytes, sizeof(pith_operator_set), &bytes))
        return pith__fail_memory(err, SIZE_MAX);
    const pith_allocator *allocator = mine.allocator ? mine.allocator : &pith__allocator_default;
    pith_operator_set *s = pith__memory_alloc(allocator, bytes, 64);
    if (!s) return pith__fail_memory(err, bytes);
    *s = (pith_operator_set){ .allocator = *allocator, .drop = custom_set_drop };
    atomic_init(&s->references, 1);
    pith_status status = PITH_OK;
    for (size_t i = 0; i < count && !status; i++) {
        status = custom_check_version(list[i], "pith_operator_set_create", err);
        if (status) break;
        status = custom_set_add(s, list[i], err);
        if (status) custom_fail(list[i], status, err);
    }
    if (status)
        custom_set_drop(s);
    else
        *set = s;
    return status;
}

/* ---- the list of the build ---- */

static const pith__custom_op *custom_of_given(const pith_operator *given) {
    const pith__custom_op *at = pith__custom_first();
    while (at && at->given != given) at = at->next;
    return at;
}

/* Registers an operator of the list once. The name that the list has for it must be its own. */
pith_status pith__custom_take(const pith__extra_op *extra, pith_error *err) {
    pith_status status =
        custom_of_given(extra->op) ? PITH_OK : pith__custom_register(extra->op, err);
    if (status && custom_of_given(extra->op)) status = PITH_OK; /* another thread was faster */
    if (status) return pith__fail_at(err, status, "PITH_EXTRA_OPS: %s: ", extra->name);
    const pith__op *op = &custom_of_given(extra->op)->op;
    const size_t n = strlen(op->domain);
    const char *name = extra->name + (n ? n + 2 : 0);
    if (!strncmp(extra->name, op->domain, n) && strlen(extra->name) >= n + 2 &&
        !strcmp(name, op->name))
        return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "PITH_EXTRA_OPS: the list says %s, but the operator is %s%s%s", extra->name,
                      op->domain, n ? "::" : "", op->name);
}
