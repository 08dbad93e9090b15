/* attrs.h - the attributes of an operator as its descriptor lists them (pith__op.attrs), and the
 * check of nodes by them.
 *
 * The list is text, one rule per attribute, separated by semicolons:
 *
 *   "axis int! = -1; mode string linear|cubic = linear; axes ints @-12; to dtype!; seed int any"
 *
 *   name kind[!] [allowed] [= default] [@opsets]
 *
 *   kind      int, float, string, tensor, graph, type, ints, floats, strings; bool is an int of
 *             0|1, dtype an int that numbers an element type. A ! means that the attribute is
 *             required.
 *   allowed   a range low..high of integers, of which either end may be missing, or alternatives
 *             a|b|c. It applies to each item of a list. Without it, an int or ints must fit 32
 *             bits, so that sizes and indices made from it do not overflow; `any` allows all 64
 *             bits.
 *   default   the default of the standard; a list is written 1,2,3.
 *   opsets    @7-12 is inclusive, @13 means from 13 on, @-12 up to 12. An attribute whose rule
 *             changed has one rule per range of opsets. The first opset of the operator is not
 *             written. @own marks an attribute that is not in the standard: upgrade sets it, and
 *             files must not have it.
 *
 * "" means that the operator has no attributes. */
#ifndef PITH_ENGINE_OPS_SHARED_ATTRS_H
#define PITH_ENGINE_OPS_SHARED_ATTRS_H

#include "engine/ops/op.h"

enum { PITH_ATTR_RULES_MAX = 64 }; /* of one operator */

typedef struct pith__attr_rule {
    pith_str name;
    pith__attr_kind kind;
    bool required;
    pith_str allowed;     /* the alternatives; "" if there is a range or nothing */
    int64_t low, high;    /* range of an int or float; all of int64 for a float without a range */
    bool ranged;          /* low and high were given */
    pith_str fallback;    /* the default; data is NULL if there is none */
    int32_t since, until; /* opsets, both inclusive */
    bool own;
} pith__attr_rule;

/* Reads the next rule and moves *text behind it. Returns false at the end, and for text that is not
 * a rule; then *text still points to that text. A test reads every list. */
bool pith__attr_rule_next(const char **text, pith__attr_rule *rule);
/* "int", "strings" */
const char *pith__attr_kind_name(pith__attr_kind kind);

/* The number at the beginning of a text, such as "-1e-05" or "0.5", whatever the locale: right to
 * half a unit of float. */
float pith__attr_number(const char *text);

/* Checks a node's attributes against op's list, for the node's opset. An attribute that is unknown,
 * repeated, missing, of the wrong kind or out of range is an error that names node and attribute.
 * An attribute that only another opset has is a warning if its value is the default there. own:
 * attributes marked @own are allowed. If op->attrs is NULL, nothing is checked. */
pith_status pith__attrs_check(const pith__node *node, const pith__op *op, bool own,
                              pith_error *err);
/* Whether the list has all of the node's attributes, with their values, for an opset. If not, `why`
 * gets the name of the first that it lacks, in `size` bytes. Attributes marked @own do not hold in
 * any. */
bool pith__attrs_hold(const pith__node *node, const pith__op *op, int32_t opset, char *why,
                      size_t size);
/* Removes the attributes that op's list does not have for the node's opset, after an upgrade has
 * used them. */
void pith__attrs_prune(pith__node *node, const pith__op *op);

#endif
