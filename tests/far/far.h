/* far.h - a backend whose memory the host cannot look into. */
#ifndef PITH_TESTS_FAR_H
#define PITH_TESTS_FAR_H

#include "engine/backend/backend.h"

enum { FAR_ALL = 0, FAR_NONE = UINT32_MAX };

/* What the tests want of it. seed: FAR_ALL takes every node it may, FAR_NONE none, an even number a
 * choice of operators, an odd one a choice of nodes. */
typedef struct far_control {
    uint32_t seed;
    pith_status open;                    /* what open gives */
    int64_t runs_left;                   /* steps and copies that still work; negative: all */
    int64_t bytes_left;                  /* memory that it still gives; negative: any */
    size_t opened, steps, copies, bytes; /* contexts and bytes held now; steps and copies done so
                                            far */
} far_control;

extern far_control far;

#endif
