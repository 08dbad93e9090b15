/* kernel_test.h - what the kernel tests share: levels of this machine, numbers, guarded buffers,
 * comparison of bits. */
#ifndef PITH_TESTS_KERNEL_TEST_H
#define PITH_TESTS_KERNEL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os/cpu.h"
#include "kernel_families.h"
#include "engine/kernels/kernel.h"

/* Levels that are built, usable here and not above PITH_ISA. */
static inline int level_usable(int level) {
    const pith__cpu *cpu = pith__cpu_get();
    return level <= (int)cpu->isa && cpu->supported >> level & 1;
}

/* Whether the processor has what kernels for VNNI need on a level. Other levels have the plain form
 * under their names. */
static inline int level_has_vnni(int level) {
    const uint32_t features = pith__cpu_get()->features;
    if (level == PITH_ISA_avx512) return (features & PITH_CPU_AVX512_VNNI) != 0;
    return level != PITH_ISA_avx2 || (features & PITH_CPU_AVX_VNNI);
}
/* bytes between two inaccessible pages, ending exactly at the second (at_end) or beginning exactly
 * after the first. */
typedef struct guarded {
    void *data, *map;
    size_t size;
} guarded;
static inline guarded guarded_alloc(size_t bytes, int at_end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (bytes + page - 1) / page * page;
    guarded g = { .size = inner + 2 * page };
    g.map = mmap(NULL, g.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    if (inner) assert_int_equal(mprotect((char *)g.map + page, inner, PROT_READ | PROT_WRITE), 0);
    g.data = (char *)g.map + page + (at_end ? inner - bytes : 0);
    return g;
}
static inline guarded guarded_floats(int64_t n) {
    guarded g = guarded_alloc((size_t)n * sizeof(float), (int)random_below(2));
    for (int64_t i = 0; i < n; i++) ((float *)g.data)[i] = random_float();
    return g;
}
static inline void guarded_free(guarded g) { munmap(g.map, g.size); }

static inline float *floats(int64_t n) {
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = random_float();
    return x;
}

/* A product of m rows and n columns by calls of parts of it, rows and columns cut somewhere. */
#define gemm_in_parts(fn, gemm, m, n)                                                              \
    do {                                                                                           \
        int64_t row_ = random_below((m) + 1), half_ = (n) / 32 * 16;                               \
        (fn)(gemm, row_, m, half_, n);                                                             \
        (fn)(gemm, 0, row_, 0, n);                                                                 \
        (fn)(gemm, row_, m, 0, half_);                                                             \
    } while (0)

/* Same bits, or both NaN: payloads are not promised. */
static inline int same_float(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}
#define assert_same_floats(a, b, n, ...)                                                           \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < (size_t)(n); i_++) {                                              \
            if (!same_float((a)[i_], (b)[i_])) {                                                   \
                print_error(__VA_ARGS__);                                                          \
                fail_msg(": element %zu of %zu: %a and %a", i_, (size_t)(n), (double)(a)[i_],      \
                         (double)(b)[i_]);                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#endif
