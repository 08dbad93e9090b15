/* opset_rules.h - what an operator takes in which opset: numbers of inputs and outputs, and types.
 * The rows of opset_rules.def are those of ONNX's own schemas and, for com.microsoft, of ONNX
 * Runtime's; tests/comparisons/compare_schemas.py compares them. Attributes by opset are in the
 * operators' own lists (engine/ops/shared/attrs.h), which the same test compares. */
#ifndef PITH_FORMATS_EXPORT_OPSET_RULES_H
#define PITH_FORMATS_EXPORT_OPSET_RULES_H

#include "engine/graph/graph.h"

enum { OPSET_RULE_SLOTS = 12 };

typedef struct pith__opset_rule {
    const char *domain, *op;
    const char *inputs, *outputs;  /* a letter per port, the last one for all further ones. Ports
                                    with the same small letter have one type; those of a capital
                                    one do not depend on others */
    int8_t since;                  /* the first opset */
    int8_t min_inputs, max_inputs; /* -1: any number. 1 and 0: it has ended, or is deprecated */
    int8_t max_outputs;
    uint8_t sets[OPSET_RULE_SLOTS]; /* of letters a or A, b or B, … */
} pith__opset_rule;

/* The form that holds in an opset; com.microsoft has one for all. NULL: the operator is not listed,
 * or newer. */
const pith__opset_rule *pith__opset_rule_find(pith_str domain, pith_str op, int32_t opset);
/* The letter of a port; 0: there is no such port. */
char pith__opset_rule_letter(const char *ports, int port);
/* Whether ports of this letter take tensors of the type. */
bool pith__opset_rule_takes(const pith__opset_rule *form, char letter, int dtype);

/* Whether a node of ai.onnx may stand in a file of the opset: its attributes, numbers of inputs and
 * outputs, and the types that are known. Nodes of other domains may. Otherwise *why says what the
 * opset lacks, in `size` bytes. */
bool pith__opset_rule_holds(const pith__node *node, int32_t opset, char *why, size_t size);

#endif
