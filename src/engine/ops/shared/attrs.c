/* attrs.c - reads the attribute lists of descriptors, and checks nodes against them. */
#include "engine/ops/shared/attrs.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text_out.h"

/* ---- the list ---- */

static const struct {
    const char *name;
    pith__attr_kind kind;
    int64_t low, high; /* of its numbers, where the rule says nothing */
} kinds[] = {
    { "int", PITH_ATTR_INT, INT32_MIN, INT32_MAX },
    { "bool", PITH_ATTR_INT, 0, 1 },
    { "dtype", PITH_ATTR_INT, 0, PITH_DTYPE_COUNT - 1 },
    { "float", PITH_ATTR_FLOAT, INT64_MIN, INT64_MAX },
    { "string", PITH_ATTR_STRING, 0, 0 },
    { "tensor", PITH_ATTR_TENSOR, 0, 0 },
    { "graph", PITH_ATTR_GRAPH, 0, 0 },
    { "type", PITH_ATTR_TYPE, 0, 0 },
    { "ints", PITH_ATTR_INTS, INT32_MIN, INT32_MAX },
    { "floats", PITH_ATTR_FLOATS, INT64_MIN, INT64_MAX },
    { "strings", PITH_ATTR_STRINGS, 0, 0 },
};

/* The characters up to the first of `stops` or the end; moves *p after them and the blanks that
 * follow. */
static pith_str attr_rule_word(const char **p, const char *stops) {
    pith_str word = { *p, strcspn(*p, stops) };
    *p += word.size;
    *p += strspn(*p, " ");
    while (word.size && word.data[word.size - 1] == ' ') word.size--;
    return word;
}

/* A whole number, or `missing` where there is none. */
static bool attr_rule_int(const char **p, int64_t missing, int64_t *value) {
    bool negative = **p == '-';
    const char *digits = *p + negative;
    uint64_t n = 0;
    if (*digits < '0' || *digits > '9') {
        *value = missing;
        return !negative;
    }
    for (; *digits >= '0' && *digits <= '9'; digits++) n = n * 10 + (uint64_t)(*digits - '0');
    *value = negative ? (int64_t)(0 - n) : (int64_t)n;
    *p = digits;
    return true;
}

static bool attr_rule_kind(pith__attr_rule *rule, pith_str word) {
    rule->required = word.size && word.data[word.size - 1] == '!';
    word.size -= rule->required;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!pith__str_is(word, kinds[i].name)) continue;
        rule->kind = kinds[i].kind;
        rule->low = kinds[i].low;
        rule->high = kinds[i].high;
        rule->ranged = pith__str_is(word, "bool") || pith__str_is(word, "dtype");
        return true;
    }
    return false;
}

/* The word after the kind: a range low..high, either side of which may be absent, `any` for all
 * integers, or a list of words with | between them. */
static bool attr_rule_allowed(pith__attr_rule *rule, pith_str word) {
    const char *p = word.data, *end = word.data + word.size;
    int64_t low;
    if (pith__str_is(word, "any")) {
        rule->low = INT64_MIN;
        rule->high = INT64_MAX;
        return true;
    }
    if (!attr_rule_int(&p, rule->low, &low) || end - p < 2 || p[0] != '.' || p[1] != '.') {
        rule->allowed = word;
        return word.size > 0;
    }
    p += 2;
    rule->ranged = true;
    rule->low = low;
    return attr_rule_int(&p, rule->high, &rule->high) && p == end;
}

/* What follows @: since, since-until, -until, or `own`: the form that no standard has. False: the
 * text is not one of these. */
static bool attr_rule_opsets(pith__attr_rule *rule, const char **p) {
    int64_t since, until;
    rule->own = !strncmp(*p, "own", 3);
    if (rule->own) {
        *p += 3;
        return true;
    }
    if (!attr_rule_int(p, 0, &since)) return false;
    if (since < 0) { /* "-12": the dash was taken for a sign */
        rule->until = (int32_t)-since;
        return true;
    }
    until = INT32_MAX;
    if (**p == '-') {
        ++*p;
        if (!attr_rule_int(p, -1, &until) || until < 0) return false;
    }
    rule->since = (int32_t)since;
    rule->until = (int32_t)until;
    return true;
}

/* One rule of the grammar in attrs.h: name, kind, then in this order what is allowed, the default,
 * the opsets. False at the end of the text, and where it is no rule: *text then stays there. */
bool pith__attr_rule_next(const char **text, pith__attr_rule *rule) {
    const char *p = *text + strspn(*text, " ");
    *rule = (pith__attr_rule){ .until = INT32_MAX };
    if (!*p) return false;
    rule->name = attr_rule_word(&p, " ;");
    if (!attr_rule_kind(rule, attr_rule_word(&p, " ;"))) return false;
    if (*p && !strchr("=@;", *p) && !attr_rule_allowed(rule, attr_rule_word(&p, " ;")))
        return false;
    if (*p == '=') {
        p += 1 + strspn(p + 1, " ");
        rule->fallback = attr_rule_word(&p, ";@");
    }
    if (*p == '@') {
        p++;
        if (!attr_rule_opsets(rule, &p)) return false;
        p += strspn(p, " ");
    }
    if (*p && *p != ';') return false;
    *text = p + (*p == ';');
    return true;
}

static bool attr_rule_holds(const pith__attr_rule *rule, int32_t opset) {
    return opset >= rule->since && opset <= rule->until;
}

static size_t attr_read_rules(const pith__op *op, bool own, pith__attr_rule *rules) {
    const char *text = op->attrs;
    size_t count = 0;
    while (count < PITH_ATTR_RULES_MAX && pith__attr_rule_next(&text, &rules[count]))
        count += own || !rules[count].own;
    return count;
}

/* ---- the check ---- */

const char *pith__attr_kind_name(pith__attr_kind kind) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].kind == kind) return kinds[i].name;
    return kind == PITH_ATTR_TENSORS ? "tensors" : "graphs";
}

static bool attr_is_alternative(pith_str alternatives, pith_str value) {
    const char *p = alternatives.data, *end = p + alternatives.size;
    for (;;) {
        const char *bar = memchr(p, '|', (size_t)(end - p));
        if (pith__str_eq((pith_str){ p, (size_t)((bar ? bar : end) - p) }, value)) return true;
        if (!bar) return false;
        p = bar + 1;
    }
}

/* "expected 1 to 5", "expected a, b or c". */
static const char *attr_expected_text(const pith__attr_rule *rule, char *text, size_t size) {
    const char *p = rule->allowed.data, *end = p ? p + rule->allowed.size : NULL, *between = "";
    pith__text_out out = pith__text_begin(text, size);
    pith__text_put(&out, "expected ");
    if (!rule->allowed.size) {
        if (rule->high == INT64_MAX)
            pith__text_put(&out, "at least %" PRId64, rule->low);
        else if (rule->low == INT64_MIN)
            pith__text_put(&out, "up to %" PRId64, rule->high);
        else
            pith__text_put(&out, "%" PRId64 " to %" PRId64, rule->low, rule->high);
        return text;
    }
    for (;;) {
        const char *bar = memchr(p, '|', (size_t)(end - p)), *next = bar ? bar : end;
        pith__text_put(&out, "%s%.*s", between, p == next ? 2 : (int)(next - p),
                       p == next ? "''" : p);
        if (!bar) return text;
        p = bar + 1;
        between = memchr(p, '|', (size_t)(end - p)) ? ", " : " or ";
    }
}

static pith_status attr_fail_value(const pith__attr *attr, const pith__attr_rule *rule, size_t item,
                                   const char *value, pith_error *err) {
    char expected[512], place[48] = "";
    if (attr->kind >= PITH_ATTR_FLOATS) snprintf(place, sizeof place, " at index %zu", item);
    return pith__fail(err, PITH_ERR_ARGUMENT, "attribute '" PITH_STR_FMT "' is %s%s, %s",
                      PITH_STR_ARG(attr->name), value, place,
                      attr_expected_text(rule, expected, sizeof expected));
}

static pith_status attr_check_ints(const pith__attr *attr, const pith__attr_rule *rule,
                                   const int64_t *items, size_t count, pith_error *err) {
    char value[24];
    for (size_t i = 0; i < count; i++) {
        bool good = items[i] >= rule->low && items[i] <= rule->high;
        if (good && !rule->allowed.size) continue;
        snprintf(value, sizeof value, "%" PRId64, items[i]);
        if (!good || !attr_is_alternative(rule->allowed, pith__str_of(value)))
            return attr_fail_value(attr, rule, i, value, err);
    }
    return PITH_OK;
}

static pith_status attr_check_floats(const pith__attr *attr, const pith__attr_rule *rule,
                                     const float *items, size_t count, pith_error *err) {
    char value[32];
    if (rule->ranged) {
        for (size_t i = 0; i < count; i++) {
            if (items[i] >= (float)rule->low && items[i] <= (float)rule->high) continue;
            snprintf(value, sizeof value, "%.9g", (double)items[i]);
            return attr_fail_value(attr, rule, i, value, err);
        }
    }
    return PITH_OK;
}

static pith_status attr_check_strings(const pith__attr *attr, const pith__attr_rule *rule,
                                      const pith_str *items, size_t count, pith_error *err) {
    char value[208];
    if (rule->allowed.size) {
        for (size_t i = 0; i < count; i++) {
            if (attr_is_alternative(rule->allowed, items[i])) continue;
            snprintf(value, sizeof value, "'" PITH_STR_FMT "'", PITH_STR_ARG(items[i]));
            return attr_fail_value(attr, rule, i, value, err);
        }
    }
    return PITH_OK;
}

/* The kind first, then each element against what is allowed. */
static pith_status attr_attrs_check_value(const pith__attr *attr, const pith__attr_rule *rule,
                                          pith_error *err) {
    if (attr->kind != rule->kind) {
        const char *is = pith__attr_kind_name(attr->kind),
                   *wanted = pith__attr_kind_name(rule->kind);
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "attribute '" PITH_STR_FMT "' is of type %s, expected %s",
                          PITH_STR_ARG(attr->name), is, wanted);
    }
    switch (attr->kind) {
    case PITH_ATTR_INT: return attr_check_ints(attr, rule, &attr->integer, 1, err);
    case PITH_ATTR_INTS: return attr_check_ints(attr, rule, attr->ints, attr->count, err);
    case PITH_ATTR_FLOAT: return attr_check_floats(attr, rule, &attr->real, 1, err);
    case PITH_ATTR_FLOATS: return attr_check_floats(attr, rule, attr->floats, attr->count, err);
    case PITH_ATTR_STRING: return attr_check_strings(attr, rule, &attr->string, 1, err);
    case PITH_ATTR_STRINGS: return attr_check_strings(attr, rule, attr->strings, attr->count, err);
    default: return PITH_OK;
    }
}

/* A decimal number without strtof, whose decimal point depends on the locale. Digits up to 1e15 are
 * exact in a double, further ones only move the point. */
float pith__attr_number(const char *text) {
    const char *p = text + (*text == '-');
    double number = 0, factor = 1;
    int64_t power = 0, written = 0;
    for (bool fraction = false; (*p >= '0' && *p <= '9') || (*p == '.' && !fraction); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        const bool kept = number < 1e15; /* more digits do not change a float */
        if (kept) number = number * 10 + (*p - '0');
        power += !kept - fraction;
    }
    if (*p == 'e') {
        p += 1 + (p[1] == '+');
        attr_rule_int(&p, 0, &written);
    }
    power += written;
    for (int64_t i = power < 0 ? -power : power; i > 0 && i <= 100; i--) factor *= 10;
    number = power < 0 ? number / factor : number * factor;
    return (float)(*text == '-' ? -number : number);
}

/* The attribute says what is done without it. Lists are not compared. */
static bool attr_is_default(const pith__attr *attr, const pith__attr_rule *rule) {
    const char *p = rule->fallback.data;
    int64_t number;
    if (!p || attr->kind != rule->kind) return false;
    if (attr->kind == PITH_ATTR_INT)
        return attr_rule_int(&p, 0, &number) && number == attr->integer;
    if (attr->kind == PITH_ATTR_STRING) return pith__str_eq(rule->fallback, attr->string);
    if (attr->kind != PITH_ATTR_FLOAT) return false;
    return pith__attr_number(p) == attr->real;
}

/* "it has axis, keepdims", of the node's opset. */
static void attr_list_names(const pith__attr_rule *rules, size_t count, int32_t opset, char *text,
                            size_t size) {
    pith__text_out out = pith__text_begin(text, size);
    for (size_t i = 0; i < count; i++) {
        if (!attr_rule_holds(&rules[i], opset)) continue;
        pith__text_put(&out, "%s" PITH_STR_FMT, out.used ? ", " : "it has ",
                       PITH_STR_ARG(rules[i].name));
    }
    if (!out.used) pith__text_put(&out, "it has none");
}

/* The node's operator has no such attribute in the node's opset. */
static pith_status attr_check_unknown(const pith__node *node, const pith__attr *attr,
                                      const pith__attr_rule *rules, size_t count, pith_error *err) {
    char names[512], place[256], opset[32] = "";
    if (node->opset != PITH_OPSET_NEWEST)
        snprintf(opset, sizeof opset, " of opset %" PRId32, node->opset);
    for (size_t i = 0; i < count; i++) {
        if (!pith__str_eq(rules[i].name, attr->name) || !attr_is_default(attr, &rules[i])) continue;
        pith__log_write(node->graph->log, PITH_LOG_WARNING,
                        "%s: attribute '" PITH_STR_FMT "' is not one of " PITH_STR_FMT
                        "%s; it is ignored, since its value is the default",
                        pith__node_place(node, place, sizeof place), PITH_STR_ARG(attr->name),
                        PITH_STR_ARG(node->op_type), opset);
        return PITH_OK;
    }
    attr_list_names(rules, count, node->opset, names, sizeof names);
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      PITH_STR_FMT "%s has no attribute '" PITH_STR_FMT "'; %s",
                      PITH_STR_ARG(node->op_type), opset, PITH_STR_ARG(attr->name), names);
}

static size_t attr_find_rule(const pith__attr_rule *rules, size_t count, pith_str name,
                             int32_t opset) {
    size_t i = 0;
    while (i < count && !(pith__str_eq(rules[i].name, name) && attr_rule_holds(&rules[i], opset)))
        i++;
    return i;
}

/* The standard's checker passes over names that begin with two underscores. */
static bool attr_is_internal(pith_str name) {
    return name.size > 1 && name.data[0] == '_' && name.data[1] == '_';
}

/* Every attribute has a rule for the node's opset, at most once, with a value it allows; and no
 * required one is missing. */
static pith_status attr_attrs_check_node(const pith__node *node, const pith__attr_rule *rules,
                                         size_t count, pith_error *err) {
    bool given[PITH_ATTR_RULES_MAX] = { false };
    for (size_t i = 0; i < node->attr_count; i++) {
        const pith__attr *attr = &node->attrs[i];
        if (attr_is_internal(attr->name)) continue;
        size_t k = attr_find_rule(rules, count, attr->name, node->opset);
        if (k == count) {
            PITH_TRY(attr_check_unknown(node, attr, rules, count, err));
            continue;
        }
        if (given[k])
            return pith__fail(err, PITH_ERR_ARGUMENT, "attribute '" PITH_STR_FMT "' is given twice",
                              PITH_STR_ARG(attr->name));
        given[k] = true;
        PITH_TRY(attr_attrs_check_value(attr, &rules[k], err));
    }
    for (size_t k = 0; k < count; k++) {
        if (!rules[k].required || given[k] || !attr_rule_holds(&rules[k], node->opset)) continue;
        return pith__fail(err, PITH_ERR_ARGUMENT, "attribute '" PITH_STR_FMT "' is missing",
                          PITH_STR_ARG(rules[k].name));
    }
    return PITH_OK;
}

pith_status pith__attrs_check(const pith__node *node, const pith__op *op, bool own,
                              pith_error *err) {
    pith__attr_rule rules[PITH_ATTR_RULES_MAX];
    char place[256];
    if (!op->attrs) return PITH_OK;
    pith_status status = attr_attrs_check_node(node, rules, attr_read_rules(op, own, rules), err);
    return status ? pith__fail_at(err, status, "%s: ", pith__node_place(node, place, sizeof place))
                  : PITH_OK;
}

/* Values are checked as at load, but without a message; rules marked @own are left out. */
bool pith__attrs_hold(const pith__node *node, const pith__op *op, int32_t opset, char *why,
                      size_t size) {
    pith__attr_rule rules[PITH_ATTR_RULES_MAX];
    const size_t count = op->attrs ? attr_read_rules(op, false, rules) : 0;
    if (op->attrs) {
        for (size_t i = 0; i < node->attr_count; i++) {
            const pith__attr *attr = &node->attrs[i];
            const size_t k = attr_find_rule(rules, count, attr->name, opset);
            if (attr_is_internal(attr->name) ||
                (k < count && !attr_attrs_check_value(attr, &rules[k], NULL)))
                continue;
            snprintf(why, size, "attribute '" PITH_STR_FMT "'%s", PITH_STR_ARG(attr->name),
                     k < count ? " with its value" : "");
            return false;
        }
    }
    return true;
}

void pith__attrs_prune(pith__node *node, const pith__op *op) {
    pith__attr_rule rules[PITH_ATTR_RULES_MAX];
    size_t count = op->attrs ? attr_read_rules(op, true, rules) : 0, kept = 0;
    if (op->attrs) {
        for (size_t i = 0; i < node->attr_count; i++)
            if (attr_find_rule(rules, count, node->attrs[i].name, node->opset) < count)
                node->attrs[kept++] = node->attrs[i];
    }
    if (op->attrs) node->attr_count = kept;
}

const pith__op_checks pith__op_checks_all = { .attrs = pith__attrs_check,
                                              .prune = pith__attrs_prune,
                                              .takes = pith__op_takes_dtype,
                                              .types_text = pith__op_dtypes_text };
