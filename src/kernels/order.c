/* order.c - see order.h. A bottom-up merge sort of indices: stable, no worst case. Strings compare by bytes. */
#include "kernels/order.h"

#include <string.h>

#include "base/str.h"

#define NUMBER_BEFORE(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#define NUMBER_AFTER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))

static int compare_strings(pith_str a, pith_str b) {
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : a.size < b.size ? -1 : a.size > b.size;
}
#define STRING_BEFORE(a, b) (compare_strings(a, b) < 0)
#define STRING_AFTER(a, b) (compare_strings(a, b) > 0)

#define SORT(suffix, T, BEFORE, AFTER)                                                                                 \
    pith_sort_fn pith_k_sort_##suffix;                                                                                 \
    void pith_k_sort_##suffix(int64_t *indices, int64_t *scratch, const void *x, int64_t n, int64_t stride,            \
                              bool descending) {                                                                       \
        const T *p = x;                                                                                                \
        int64_t *from = indices, *to = scratch;                                                                        \
        for (int64_t i = 0; i < n; i++) from[i] = i;                                                                   \
        for (int64_t width = 1; width < n; width *= 2) {                                                               \
            for (int64_t begin = 0; begin < n; begin += 2 * width) {                                                   \
                int64_t middle = begin + width < n ? begin + width : n;                                                \
                int64_t end = middle + width < n ? middle + width : n, a = begin, b = middle;                          \
                for (int64_t k = begin; k < end; k++) {                                                                \
                    bool second = a == middle;                                                                         \
                    if (!second && b < end) {                                                                          \
                        T left = p[from[a] * stride], right = p[from[b] * stride];                                     \
                        second = descending ? AFTER(right, left) : BEFORE(right, left);                                \
                    }                                                                                                  \
                    to[k] = from[second ? b++ : a++];                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            int64_t *swap = from;                                                                                      \
            from = to;                                                                                                 \
            to = swap;                                                                                                 \
        }                                                                                                              \
        if (from != indices && n > 0) memcpy(indices, from, (size_t)n * sizeof *indices);                              \
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
