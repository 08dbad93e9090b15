/* placement.h - which backend runs each node, and the copies in between. */
#ifndef PITH_ENGINE_PLAN_PLACEMENT_H
#define PITH_ENGINE_PLAN_PLACEMENT_H

#include "engine/plan/plan.h"

/* The operators of copy steps. No graph has them. */
extern const pith__op pith__copy_to_device, pith__copy_to_host;

/* The contents follow from the sizes of the inputs alone, so no step has to make the value. */
bool pith__value_is_symbolic(const pith__value *value);
/* No step has to make the value: it is a constant or symbolic. */
bool pith__value_is_known(const pith__value *value);

/* Makes the steps of the `nodes` nodes that are marked, in the order of the graph: devices, inputs
 * and outputs are set, the rest is not. Also values, memory_of, outputs and residents. plan->graph,
 * devices and arena are set. */
pith_status pith__plan_place(pith__plan *plan, size_t nodes, pith_error *err);

#endif
