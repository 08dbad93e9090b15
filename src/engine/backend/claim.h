/* claim.h - a connected part of a graph that a device runs as one program.
 *
 * A claim is one step of the plan, whose node stands for the part. Its inputs are the values from
 * outside that the members read, constants included; its outputs are the values that somebody else
 * reads. A value that one member reads for shapes (op->shape_inputs) and another for computing is
 * two inputs. */
#ifndef PITH_ENGINE_BACKEND_CLAIM_H
#define PITH_ENGINE_BACKEND_CLAIM_H

#include "engine/backend/backend.h"

typedef struct pith__claimed_node {
    const pith__node *node;
    const int32_t *in, *out; /* [node->input_count], [node->output_count]: places in the claim's
                                values; -1: absent */
} pith__claimed_node;

typedef struct pith__claim {
    pith__node node; /* first: the node of the step, with its inputs and outputs */
    const pith__claimed_node *members; /* [member_count], each after those whose results it reads */
    size_t member_count;
    const pith__value *const *values; /* [value_count]: the inputs, then what the members make */
    size_t value_count;
    const bool *on_host;    /* [node.input_count]: the input is in host memory */
    const int32_t *results; /* [node.output_count]: places of the outputs in values */
    bool *packed; /* [node.input_count], all false at first; compile sets it where run does not read
                     the input, a constant */
} pith__claim;

/* The operator of all claims. No graph has it. */
extern const pith__op pith__claim_op;

/* The claim that a node stands for; NULL: it stands for itself. */
const pith__claim *pith__claim_of(const pith__node *node);

/* Infers the types of all of the claim's values, of which the inputs are those of c. types:
 * [value_count]. For backends that need the shapes within. */
pith_status pith__claim_infer(pith__type *types, const pith__claim *claim, pith__infer *c);

#endif
