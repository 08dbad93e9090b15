/* opset_rules.c - see opset_rules.h. */
#include "formats/export/opset_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "engine/ops/shared/attrs.h"

/* Bits of the types of tensors, and of the items of sequences. */
typedef struct opset_rule_set {
    uint32_t tensors, items;
} opset_rule_set;

static const opset_rule_set opset_rule_sets[] = {
#define SET(tensors, items) { tensors, items },
#define FORM(...)
#include "formats/export/opset_rules.def"
#undef SET
#undef FORM
};

/* By domain, operator and first opset. */
static const pith__opset_rule opset_rule_forms[] = {
#define SET(tensors, items)
#define FORM(domain, op, since, low, high, outs, inputs, outputs, ...)                             \
    { domain, op, inputs, outputs, since, low, high, outs, { __VA_ARGS__ } },
#include "formats/export/opset_rules.def"
#undef SET
#undef FORM
};
enum { OPSET_RULES = sizeof opset_rule_forms / sizeof *opset_rule_forms };

/* Values of attributes that came later than the attribute, which the opset's own list in ops/ takes
 * all the same, since exporters write them before. */
static const struct {
    const char *op, *attr, *value;
    int32_t since;
} opset_rule_late_values[] = { { "Pad", "mode", "wrap", 19 } };

static int opset_rule_compare(const char *text, pith_str name) {
    const size_t size = strlen(text), least = size < name.size ? size : name.size;
    const int order = memcmp(text, name.data, least);
    return order ? order : (size > name.size) - (size < name.size);
}

static int opset_rule_order(const pith__opset_rule *f, pith_str domain, pith_str op) {
    const int order = opset_rule_compare(f->domain, domain);
    return order ? order : opset_rule_compare(f->op, op);
}

/* Binary search for the first row of the operator. Its rows stand in the order of their opsets, so
 * the last one that is not newer holds. */
const pith__opset_rule *pith__opset_rule_find(pith_str domain, pith_str op, int32_t opset) {
    const bool plain = !domain.size || pith__str_is(domain, "ai.onnx");
    size_t low = 0, high = OPSET_RULES;
    const pith__opset_rule *found = NULL;
    if (plain) domain = PITH_STR("");
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (opset_rule_order(&opset_rule_forms[middle], domain, op) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < OPSET_RULES && !opset_rule_order(&opset_rule_forms[low], domain, op); low++)
        if (!plain || opset_rule_forms[low].since <= opset) found = &opset_rule_forms[low];
    return found;
}

char pith__opset_rule_letter(const char *ports, int port) {
    const int count = (int)strlen(ports);
    if (!count) return '\0';
    return ports[port < count ? port : count - 1];
}

static const opset_rule_set *opset_rule_set_of(const pith__opset_rule *form, char letter) {
    return &opset_rule_sets[form->sets[letter >= 'a' ? letter - 'a' : letter - 'A']];
}

bool pith__opset_rule_takes(const pith__opset_rule *form, char letter, int dtype) {
    return letter && dtype >= 0 && dtype < 32 &&
           opset_rule_set_of(form, letter)->tensors >> dtype & 1;
}

/* Optionals, and what no type is known of, may be anything. */
static bool opset_rule_takes_type(const pith__opset_rule *form, char letter, const pith__type *t) {
    if (t->dtype == PITH_UNDEFINED || t->dtype == PITH_NONE) return true;
    const opset_rule_set *set = letter ? opset_rule_set_of(form, letter) : NULL;
    if (set && !set->tensors && !set->items) return true;
    if (t->dtype != PITH_SEQUENCE) return pith__opset_rule_takes(form, letter, t->dtype);
    return letter && (t->item_dtype <= 0 || t->item_dtype >= PITH_DTYPE_COUNT ||
                      opset_rule_set_of(form, letter)->items >> t->item_dtype & 1);
}

static int opset_rule_count(pith__value *const *ports, int count) {
    while (count && !ports[count - 1]) count--;
    return count;
}

/* Whether the ports' types are among those of the form; ports of one letter have one type. */
static bool opset_rule_types_hold(const pith__opset_rule *form, const char *letters,
                                  pith__value *const *ports, int count, char *why, size_t size) {
    for (int i = 0; i < count; i++) {
        if (!ports[i] ||
            opset_rule_takes_type(form, pith__opset_rule_letter(letters, i), &ports[i]->type))
            continue;
        const pith__type *t = &ports[i]->type;
        snprintf(why, size, "%s %d of type %s%s", letters == form->inputs ? "input" : "output", i,
                 pith__dtype_name(t->dtype == PITH_SEQUENCE ? t->item_dtype : t->dtype),
                 t->dtype == PITH_SEQUENCE ? " (in a sequence)" : "");
        return false;
    }
    return true;
}

/* Mod of floats by the quotient rounded down, which is its default, came with opset 28. */
static bool opset_rule_mod_holds(const pith__node *node, int32_t opset) {
    return opset >= 28 || !pith__str_is(node->op_type, "Mod") || pith__node_int(node, "fmod", 0) ||
           !pith__dtype_is_float(node->inputs[0]->type.dtype);
}

/* From opset 22 on, a last window that would begin behind the input is left out; a node of such a
 * file means that. */
static bool opset_rule_pool_holds(const pith__node *node, int32_t opset) {
    static const char *const pools[] = { "AveragePool", "LpPool", "MaxPool" };
    size_t i = 0;
    if (opset >= 22 || node->opset < 22 || node->opset == PITH_OPSET_NEWEST ||
        !pith__node_int(node, "ceil_mode", 0))
        return true;
    while (i < sizeof pools / sizeof *pools && !pith__str_is(node->op_type, pools[i])) i++;
    return i == sizeof pools / sizeof *pools;
}

/* Up to opset 17, what is asked for the element is an optional, and from then on also a tensor or a
 * sequence. Of values that other operators pass on it is not known. */
static bool opset_rule_optional_holds(const pith__node *node, int32_t opset) {
    if (opset >= 18 || !node->input_count || !node->inputs[0] ||
        (!pith__str_is(node->op_type, "OptionalGetElement") &&
         !pith__str_is(node->op_type, "OptionalHasElement")))
        return true;
    const pith__value *v = node->inputs[0];
    return v->type.dtype == PITH_NONE ||
           (v->producer && pith__str_is(v->producer->op_type, "Optional"));
}

/* What an opset lacks because of an attribute's value, where the attribute itself is older. */
static bool opset_rule_values_hold(const pith__node *node, int32_t opset, char *why, size_t size) {
    for (size_t i = 0; i < sizeof opset_rule_late_values / sizeof *opset_rule_late_values; i++) {
        if (opset >= opset_rule_late_values[i].since ||
            !pith__str_is(node->op_type, opset_rule_late_values[i].op) ||
            !pith__str_is(pith__node_str(node, opset_rule_late_values[i].attr, ""),
                          opset_rule_late_values[i].value))
            continue;
        snprintf(why, size, "attribute '%s' = %s", opset_rule_late_values[i].attr,
                 opset_rule_late_values[i].value);
        return false;
    }
    const char *lacks = NULL;
    if (!opset_rule_mod_holds(node, opset))
        lacks = "attribute 'fmod' = 0 of floats";
    else if (!opset_rule_pool_holds(node, opset))
        lacks = "attribute 'ceil_mode' as opset 22 defines it";
    else if (!opset_rule_optional_holds(node, opset))
        lacks = "input 0 that is no optional";
    if (lacks) snprintf(why, size, "%s", lacks);
    return !lacks;
}

/* Looks first at what can be told from the row alone: whether the opset has the operator, and how
 * many inputs and outputs it takes, absent ones at the end not counted. Values that a subgraph
 * captures are among the node's inputs, but are no inputs of the operator. Attributes, their values
 * and types follow. An operator that no row has for any opset is none of the standard's, and
 * nothing is known against it. */
bool pith__opset_rule_holds(const pith__node *node, int32_t opset, char *why, size_t size) {
    const bool plain = !node->domain.size || pith__str_is(node->domain, "ai.onnx");
    if (!plain) return true;
    const pith__opset_rule *form = pith__opset_rule_find(node->domain, node->op_type, opset);
    if (!form) {
        snprintf(why, size, "the operator");
        /* none of the standard's: it has no row */
        return !pith__opset_rule_find(node->domain, node->op_type, INT32_MAX);
    }
    if (!form->max_inputs && form->min_inputs) {
        snprintf(why, size, "the operator, which has ended");
        return false;
    }
    const int inputs = opset_rule_count(node->inputs, node->input_count - node->capture_count),
              outputs = opset_rule_count(node->outputs, node->output_count);
    if (inputs < form->min_inputs || (form->max_inputs >= 0 && inputs > form->max_inputs) ||
        (form->max_outputs >= 0 && outputs > form->max_outputs)) {
        snprintf(why, size, "%d inputs and %d outputs", inputs, outputs);
        return false;
    }
    if (node->op && !pith__attrs_hold(node, node->op, opset, why, size)) return false;
    return opset_rule_values_hold(node, opset, why, size) &&
           opset_rule_types_hold(form, form->inputs, node->inputs, inputs, why, size) &&
           opset_rule_types_hold(form, form->outputs, node->outputs, outputs, why, size);
}
