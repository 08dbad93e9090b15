/* compose_fused_conv.h - for operators that end with an activation, which the attributes activation
 * and activation_params name: com.microsoft's FusedConv and FusedGemm, com.microsoft.nchwc's Conv.
 */
#ifndef PITH_ENGINE_OPS_SHARED_COMPOSE_FUSED_CONV_H
#define PITH_ENGINE_OPS_SHARED_COMPOSE_FUSED_CONV_H

#include "engine/ops/shared/compose_ops.h"

/* *y becomes the activation of *y that the node asks for; unchanged if it asks for none. */
pith_status pith__compose_activation(pith__node *node, pith__value **y, pith_error *err);
/* The node becomes Conv of input 0 with these weights (NULL: memory was out) and bias input 2, plus
 * input 3 if it is there, activated. */
pith_status pith__compose_become_conv(pith__node *node, pith__value *weights, pith_error *err);

#endif
