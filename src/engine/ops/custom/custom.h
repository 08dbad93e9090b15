/* custom.h - operators that programs bring: those of PITH_EXTRA_OPS, those that pith_register_op
 * took, and those of the sets that single models are opened with.
 *
 * Each is a pith__op whose functions turn the engine's structs into those of pith/op.h and call the
 * program's. Those of the process are kept in a list that only grows, so that looking one up takes
 * no lock. A set does not change, and is counted by the models and sources that have it. */
#ifndef PITH_ENGINE_OPS_CUSTOM_CUSTOM_H
#define PITH_ENGINE_OPS_CUSTOM_CUSTOM_H

#include <stdatomic.h>

#include "engine/ops/op.h"
#include "pith/op.h"

/* Words of pith_operator.types that are told apart. */
enum { PITH_CUSTOM_TYPES = 16 };

typedef struct pith__custom_op {
    pith__op op; /* op.name and op.domain are the program's strings */
    pith_operator own;
    const pith_operator *given; /* what was registered */
    const pith__op_checks *checks;
    uint32_t dtypes[PITH_CUSTOM_TYPES];
    int dtype_count;                  /* 0: any */
    char text[PITH_CUSTOM_TYPES][96]; /* of the dtypes, for messages */
    atomic_uint heard, facts;         /* for select/used_pieces.c */
    struct pith__custom_op *next;
} pith__custom_op;

struct pith_operator_set {
    atomic_size_t references;
    pith_allocator allocator;
    void (*drop)(pith_operator_set *set); /* so that a program that makes no set links none of it */
    size_t count;
    pith__custom_op ops[]; /* [count] */
};

/* Count the references to a set; NULL is allowed. Thread-safe. */
static inline void pith__custom_set_keep(const pith_operator_set *set) {
    pith_operator_set *s = (pith_operator_set *)(uintptr_t)set;
    if (s) atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
}
static inline void pith__custom_set_release(const pith_operator_set *set) {
    pith_operator_set *s = (pith_operator_set *)(uintptr_t)set;
    if (s && atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) == 1) s->drop(s);
}

/* What PITH_EXTRA_OPS lists, with the name of the list's line; ends with NULLs. Defined by
 * select/tables.c. */
typedef struct pith__extra_op {
    const pith_operator *op;
    const char *name; /* "example::Twice" */
    /* pith__custom_take */
    pith_status (*take)(const struct pith__extra_op *extra, pith_error *err);
} pith__extra_op;
/* Registers the operator, unless another thread has; fails if its name is not that of the list. */
pith_status pith__custom_take(const pith__extra_op *extra, pith_error *err);
extern const pith__extra_op pith__extra_op_table[];

/* The work of pith_register_op. */
pith_status pith__custom_register(const pith_operator *given, pith_error *err);
/* The work of pith_operator_set_create. */
pith_status pith__custom_set_create(pith_operator_set **set, const pith_operator *const *list,
                                    size_t count, const pith_call *call, pith_error *err);
/* Takes in those of PITH_EXTRA_OPS, before anything looks for them; does nothing the next time.
 * Thread-safe. */
pith_status pith__custom_begin(pith_error *err);
/* The first of the list, which custom.c makes; NULL: none. */
extern _Atomic(pith__custom_op *) pith__custom_registered;
pith__custom_op *pith__custom_first(void);
/* Looks in the set, which may be NULL, and then among those of the process. NULL: there is none.
 * domain "" is ai.onnx. */
const pith__op *pith__custom_find(const pith_operator_set *set, pith_str domain, pith_str name);
/* Of an operator with PITH_OP_CUSTOM. */
static inline const pith__custom_op *pith__custom_of(const pith__op *op) {
    return (const pith__custom_op *)(const void *)op;
}

/* The work of the other functions of pith/op.h. */
int64_t pith__custom_int(const pith_op_node *node, const char *name);
float pith__custom_float(const pith_op_node *node, const char *name);
pith_str pith__custom_string(const pith_op_node *node, const char *name);
pith_status pith__custom_output(pith_op_run *r, int32_t output, int32_t dtype, int32_t rank,
                                const int64_t *dims);

#endif
