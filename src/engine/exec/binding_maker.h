/* binding_maker.h - what a binding is made with, shared by binding.c and the part "tails"
 * (elementwise_tails.c). */
#ifndef PITH_ENGINE_EXEC_BINDING_MAKER_H
#define PITH_ENGINE_EXEC_BINDING_MAKER_H

#include "engine/exec/binding.h"

#define PITH_NO_SLOT UINT32_MAX

/* Slots of one memory. */
typedef struct pith__room {
    pith__slot *slots;
    size_t count, capacity;
} pith__room;

typedef struct pith__binder {
    pith__binding *binding;
    const pith__bind *how;
    const pith__plan *plan;
    pith__type *types;           /* by value id */
    uint32_t *slot_of;           /* by value id: in the room of its memory */
    uint32_t *end;               /* by value id: last step that needs its memory, views counted;
                                    UINT32_MAX: none */
    uint32_t *maker;             /* by value id: the step that gives it its last form; UINT32_MAX:
                                    none */
    const pith_tensor **port_of; /* by value id: the port whose memory it shows */
    pith__room *rooms;           /* by memory */
    size_t alias_capacity, device_alias_capacity;
    const pith__type **in;
    pith__type *out;
    pith_error *err;
} pith__binder;

static inline pith__slot *pith__binder_slot(const pith__binder *k, const pith__value *value) {
    return &k->rooms[k->plan->memory_of[value->id]].slots[k->slot_of[value->id]];
}

static inline bool pith__tensor_same_shape(const pith_tensor *a, const pith_tensor *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

#endif
