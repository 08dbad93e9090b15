/* sort_order.c - see sort_order.h. A bottom-up merge sort of indices: stable, no worst case.
 * Strings compare by bytes. The best k are kept in a heap whose root is the worst of them; most
 * elements of a long row lose against the root and are passed over block by block. */
#include "engine/kernels/sort_order.h"

#include <string.h>

#include "base/str.h"

#define NUMBER_BEFORE(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#define NUMBER_AFTER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))

static int compare_strings(pith_str a, pith_str b) {
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    if (order) return order;
    return a.size < b.size ? -1 : a.size > b.size;
}
#define STRING_BEFORE(a, b) (compare_strings(a, b) < 0)
#define STRING_AFTER(a, b) (compare_strings(a, b) > 0)

/* Indices that are written between two looks whether to stop: some milliseconds where each of the
 * elements is a miss of the caches. A power of two. */
enum { LOOK = 1 << 15 };

/* Short runs are merged in groups of LOOK indices, long ones piece by piece. */
#define SORT(suffix, T, BEFORE, AFTER)                                                             \
    pith__sort_fn pith__k_sort_##suffix;                                                           \
    void pith__k_sort_##suffix(int64_t *indices, int64_t *scratch, const void *x, int64_t n,       \
                               int64_t stride, bool descending, pith__stop *stop) {                \
        const T *p = x;                                                                            \
        int64_t *from = indices, *to = scratch;                                                    \
        for (int64_t i = 0; i < n; i++) from[i] = i;                                               \
        for (int64_t width = 1; width < n; width *= 2) {                                           \
            for (int64_t begin = 0; begin < n; begin += 2 * width) {                               \
                int64_t middle = begin + width < n ? begin + width : n;                            \
                int64_t end = middle + width < n ? middle + width : n, a = begin, b = middle;      \
                for (int64_t k = begin; k < end;) {                                                \
                    const int64_t piece = end - k > LOOK ? k + LOOK : end;                         \
                    if (!(k & (LOOK - 1)) && pith__stop_asked(stop)) return;                       \
                    for (; k < piece; k++) {                                                       \
                        bool second = a == middle;                                                 \
                        if (!second && b < end) {                                                  \
                            T left = p[from[a] * stride], right = p[from[b] * stride];             \
                            second = descending ? AFTER(right, left) : BEFORE(right, left);        \
                        }                                                                          \
                        to[k] = from[second ? b++ : a++];                                          \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            int64_t *swap = from;                                                                  \
            from = to;                                                                             \
            to = swap;                                                                             \
        }                                                                                          \
        if (from != indices && n > 0) memcpy(indices, from, (size_t)n * sizeof *indices);          \
    }
SORT(f32, float, NUMBER_BEFORE, NUMBER_AFTER)
SORT(f64, double, NUMBER_BEFORE, NUMBER_AFTER)
#define INT_BEFORE(a, b) ((a) < (b))
#define INT_AFTER(a, b) ((a) > (b))
SORT(u8, uint8_t, INT_BEFORE, INT_AFTER)
SORT(i8, int8_t, INT_BEFORE, INT_AFTER)
SORT(u16, uint16_t, INT_BEFORE, INT_AFTER)
SORT(i16, int16_t, INT_BEFORE, INT_AFTER)
SORT(u32, uint32_t, INT_BEFORE, INT_AFTER)
SORT(i32, int32_t, INT_BEFORE, INT_AFTER)
SORT(u64, uint64_t, INT_BEFORE, INT_AFTER)
SORT(i64, int64_t, INT_BEFORE, INT_AFTER)
SORT(bool, uint8_t, INT_BEFORE, INT_AFTER)
SORT(string, pith_str, STRING_BEFORE, STRING_AFTER)

/* COMES(a, b): a comes strictly before b. As elements are taken by ascending index, an equal one
 * comes after. */
#define BEST_OF(name, T, COMES)                                                                    \
    static bool worse_##name(const T *p, int64_t stride, int64_t a, int64_t b) {                   \
        T u = p[a * stride], v = p[b * stride];                                                    \
        return COMES(v, u) || (!COMES(u, v) && a > b);                                             \
    }                                                                                              \
    /* Lets index `item` sink from the root of the heap [k]. */                                    \
    static void sink_##name(int64_t *heap, int64_t k, int64_t item, const T *p, int64_t stride) {  \
        int64_t at = 0;                                                                            \
        for (int64_t child = 1; child < k; child = 2 * at + 1) {                                   \
            if (child + 1 < k && worse_##name(p, stride, heap[child + 1], heap[child])) child++;   \
            if (!worse_##name(p, stride, heap[child], item)) break;                                \
            heap[at] = heap[child];                                                                \
            at = child;                                                                            \
        }                                                                                          \
        heap[at] = item;                                                                           \
    }                                                                                              \
    static void best_##name(int64_t *heap, const T *p, int64_t n, int64_t stride, int64_t k,       \
                            pith__stop *stop) {                                                    \
        enum { BLOCK = 32 };                                                                       \
        int64_t i = k, look = k;                                                                   \
        for (int64_t f = 0; f < k; f++) { /* rises */                                              \
            int64_t at = f;                                                                        \
            if (!(f & (LOOK - 1)) && pith__stop_asked(stop)) return;                               \
            for (; at > 0 && worse_##name(p, stride, f, heap[(at - 1) / 2]); at = (at - 1) / 2)    \
                heap[at] = heap[(at - 1) / 2];                                                     \
            heap[at] = f;                                                                          \
        }                                                                                          \
        while (i < n) {                                                                            \
            T root = p[heap[0] * stride];                                                          \
            int64_t end = n - i < BLOCK ? n : i + BLOCK;                                           \
            if (i >= look) {                                                                       \
                if (pith__stop_asked(stop)) return;                                                \
                look = i + LOOK;                                                                   \
            }                                                                                      \
            if (stride == 1 && end == i + BLOCK) {                                                 \
                unsigned any = 0;                                                                  \
                for (int b = 0; b < BLOCK; b++) any |= (unsigned)(COMES(p[i + b], root));          \
                if (!any) {                                                                        \
                    i = end;                                                                       \
                    continue;                                                                      \
                }                                                                                  \
            }                                                                                      \
            for (; i < end; i++) {                                                                 \
                if (!(COMES(p[i * stride], root))) continue;                                       \
                sink_##name(heap, k, i, p, stride);                                                \
                root = p[heap[0] * stride];                                                        \
            }                                                                                      \
        }                                                                                          \
        for (int64_t left = k - 1; left > 0; left--) { /* the worst goes to the end */             \
            int64_t last = heap[left];                                                             \
            if (!(left & (LOOK - 1)) && pith__stop_asked(stop)) return;                            \
            heap[left] = heap[0];                                                                  \
            sink_##name(heap, left, last, p, stride);                                              \
        }                                                                                          \
    }
#define BEST(suffix, T, BEFORE, AFTER)                                                             \
    BEST_OF(least_##suffix, T, BEFORE)                                                             \
    BEST_OF(most_##suffix, T, AFTER)                                                               \
    pith__best_fn pith__k_best_##suffix;                                                           \
    void pith__k_best_##suffix(int64_t *best, const void *x, int64_t n, int64_t stride, int64_t k, \
                               bool descending, pith__stop *stop) {                                \
        (descending ? best_most_##suffix : best_least_##suffix)(best, x, n, stride, k, stop);      \
    }
BEST(f32, float, NUMBER_BEFORE, NUMBER_AFTER)
BEST(f64, double, NUMBER_BEFORE, NUMBER_AFTER)
BEST(u8, uint8_t, INT_BEFORE, INT_AFTER)
BEST(i8, int8_t, INT_BEFORE, INT_AFTER)
BEST(u16, uint16_t, INT_BEFORE, INT_AFTER)
BEST(i16, int16_t, INT_BEFORE, INT_AFTER)
BEST(u32, uint32_t, INT_BEFORE, INT_AFTER)
BEST(i32, int32_t, INT_BEFORE, INT_AFTER)
BEST(u64, uint64_t, INT_BEFORE, INT_AFTER)
BEST(i64, int64_t, INT_BEFORE, INT_AFTER)
