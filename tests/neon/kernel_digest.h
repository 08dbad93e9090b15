/* kernel_digest.h - a call of a kernel on fixed input, and the numbers that all calls read and
 * write. */
#ifndef PITH_TESTS_KERNEL_DIGEST_H
#define PITH_TESTS_KERNEL_DIGEST_H

#include "../unit/support/kernel_families.h"
#include "engine/kernels/kernel.h"

enum { N = 4099, M = 23, D = 40, K = 37, ROUNDS = 40 };

/* x may hold any bits; y is ordinary numbers up to 8, z up to 1. out is zeros before a call, and
 * digested behind it. */
enum { DIGEST_ROOM = N * 2 };
extern float x[DIGEST_ROOM], y[DIGEST_ROOM], z[DIGEST_ROOM], out[DIGEST_ROOM];

/* A call: its kernel, and what else it needs from the same level. */
typedef struct call {
    const pith__kernel_row *row;
    pith__kernel_fn *fn;
    pith__isa isa;
    int round;
    int64_t n; /* elements of a long input: every tail, and long rows */
} call;

static inline int is(const call *c, const char *family) {
    return strcmp(c->row->family, family) == 0;
}

/* What is not float goes to out as numbers, from `at` on; the end is returned. Ends the program if
 * out is too small. */
size_t put_bytes(size_t at, const void *bytes, size_t n);
/* Ends the program if n floats are more than out holds. */
void need_room(int64_t n);

/* Each runs the call if the kernel is one of its families; else it returns 0. */
int run_windows(const call *c); /* convolutions, pools, and what lies around them */
int run_train(const call *c);

#endif
