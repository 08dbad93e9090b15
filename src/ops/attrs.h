/* attrs.h - the attributes of an operator as its descriptor lists them (pith_op.attrs), and the check of nodes by them.
 *
 * The list is text, one rule per attribute, separated by semicolons:
 *
 *   "axis int! = -1; mode string linear|cubic = linear; axes ints @-12; to dtype!; seed int any"
 *
 *   name kind[!] [allowed] [= default] [@opsets]
 *
 *   kind      int, float, string, tensor, graph, type, ints, floats, strings; bool is an int of 0|1, dtype an int that
 *             numbers an element type. A ! behind it: the attribute must be there.
 *   allowed   a range low..high with either end left out, or alternatives a|b|c; of lists it is said of each item. The
 *             ends of ranges are integers. An int or ints without it is within 32 bits, so that sizes and indices made
 *             of it do not overflow; `any` is the full 64 bits.
 *   default   as the standard gives it; a list is written 1,2,3.
 *   opsets    @7-12 both inclusive, @13 from 13 on, @-12 up to 12. An attribute whose rule changed has a rule for each
 *             span of opsets. The first opset of the operator itself is not written. @own: not
 *             of the standard; upgrade sets it, and files do not have it.
 *
 * "" is an operator without attributes. */
#ifndef PITH_OPS_ATTRS_H
#define PITH_OPS_ATTRS_H

#include "ops/op.h"

enum { PITH_ATTR_RULES_MAX = 64 }; /* of one operator */

typedef struct pith_attr_rule {
    pith_str name;
    pith_attr_kind kind;
    bool required;
    pith_str allowed;     /* "" where a range was given or nothing; else the alternatives */
    int64_t low, high;    /* of an int or a float; all of int64 if neither was given for a float */
    bool ranged;          /* low and high were given */
    pith_str fallback;    /* the default; data is NULL if there is none */
    int32_t since, until; /* opsets, both inclusive */
    bool own;
} pith_attr_rule;

/* Reads the next rule of *text, and moves *text behind it. False at the end, and where text is no rule (*text then
 * points at it; a test reads every list). */
bool pith_attr_rule_next(const char **text, pith_attr_rule *rule);
/* "int", "strings" */
const char *pith_attr_kind_name(pith_attr_kind kind);

/* Checks the node's attributes by op's list, for the opset that the node is written in: unknown, twice, missing, of the
 * wrong kind or with a value that is not allowed are errors that name node and attribute. An attribute that another
 * opset has is a warning if its value is the default there. own: those marked @own are known. op->attrs NULL: nothing
 * is checked. */
pith_status pith_attrs_check(const pith_node *node, const pith_op *op, bool own, pith_error *err);
/* Drops the attributes that op's list does not have for the node's opset: what an upgrade has done with. */
void pith_attrs_prune(pith_node *node, const pith_op *op);

#endif
