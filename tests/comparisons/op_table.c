/* op_table.c - prints the attribute lists of all operators for compare_schemas.py, a line a rule,
 * tabs between fields: domain, operator, newest version; and of the rule name, type, 1 if required,
 * first and last opset, 1 if it is our own, lowest and highest number, alternatives, and "=" with
 * the default behind it. Operators without rules have a line too. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/ops/shared/attrs.h"

static const char *const kinds[] = {
    [PITH_ATTR_FLOAT] = "float",   [PITH_ATTR_INT] = "int",         [PITH_ATTR_STRING] = "string",
    [PITH_ATTR_TENSOR] = "tensor", [PITH_ATTR_GRAPH] = "graph",     [PITH_ATTR_FLOATS] = "floats",
    [PITH_ATTR_INTS] = "ints",     [PITH_ATTR_STRINGS] = "strings", [PITH_ATTR_TYPE] = "type_proto"
};

static void print_rule(const pith__attr_rule *r) {
    printf("\t" PITH_STR_FMT "\t%s\t%d\t%" PRId32 "\t%" PRId32 "\t%d\t%" PRId64 "\t%" PRId64
           "\t" PITH_STR_FMT,
           PITH_STR_ARG(r->name), kinds[r->kind], r->required, r->since, r->until, r->own, r->low,
           r->high, PITH_STR_ARG(r->allowed));
    printf("\t%s" PITH_STR_FMT, r->fallback.data ? "=" : "", PITH_STR_ARG(r->fallback));
}

int main(void) {
    for (size_t i = 0; i < pith__op_table_count; i++) {
        const pith__op *op = pith__op_table[i];
        const char *text = op->attrs ? op->attrs : "";
        printf("%s\t%s\t%" PRId32 "\n", op->domain, op->name, op->newest);
        for (pith__attr_rule rule; pith__attr_rule_next(&text, &rule);) {
            printf("%s\t%s\t%" PRId32, op->domain, op->name, op->newest);
            print_rule(&rule);
            printf("\n");
        }
    }
    return 0;
}
