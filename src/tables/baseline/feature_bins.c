/* feature_bins.c - see feature_bins.h. */
#include "tables/baseline/feature_bins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/database/stoppable_sort.h"

enum { BIN_QUANTILES = 254 };

static int bin_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A cut after each quantile's value, between it and the next larger one. */
static void bins_numbers(pith__feature_bins *b, const double *x, size_t n) {
    size_t distinct = n > 0;
    for (size_t i = 1; i < n; i++) distinct += x[i] != x[i - 1];
    const size_t wanted = distinct < BIN_QUANTILES ? distinct : BIN_QUANTILES;
    size_t done = 0;
    for (size_t i = 1; i < n; i++) {
        if (x[i] == x[i - 1]) continue;
        if (distinct > BIN_QUANTILES && (double)i * (double)wanted < (double)n * (double)(done + 1))
            continue;
        if (done + 1 >= wanted) break;
        b->cuts[done++] = x[i - 1] + (x[i] - x[i - 1]) / 2;
    }
    b->count = (int)done + 1;
}

typedef struct bin_category {
    double value;
    size_t times;
} bin_category;

static int bin_category_compare(const void *a, const void *b) {
    const bin_category *x = a, *y = b;
    if (x->times != y->times) return x->times < y->times ? 1 : -1;
    return (x->value > y->value) - (x->value < y->value);
}

static bool bins_categories(pith__feature_bins *b, const double *x, size_t n, pith__arena *arena) {
    bin_category *all = pith__arena_array(arena, n + 1, sizeof *all);
    size_t count = 0;
    if (!all) return false;
    for (size_t i = 0; i < n; i++) {
        if (!i || x[i] != x[i - 1]) all[count++].value = x[i];
        all[count - 1].times++;
    }
    qsort(all, count, sizeof *all, bin_category_compare);
    if (count > PITH_BIN_CATEGORIES) count = PITH_BIN_CATEGORIES;
    for (size_t i = 0; i < count; i++) b->cuts[i] = all[i].value;
    b->count = (int)count + 1;
    return true;
}

bool pith__feature_bins_make(pith__feature_bins *bins, double *values, size_t count, bool category,
                             pith__stop *stop, pith__arena *arena) {
    size_t n = 0;
    bins->category = category;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i])) values[n++] = values[i];
    if (!pith__sort(values, n, sizeof *values, bin_compare, stop, arena)) return false;
    if (category) return bins_categories(bins, values, n, arena);
    bins_numbers(bins, values, n);
    return true;
}

uint8_t pith__feature_bin_of(const pith__feature_bins *bins, double value) {
    if (isnan(value)) return 0;
    if (bins->category) {
        int i = 0;
        while (i < bins->count - 1 && bins->cuts[i] != value) i++;
        return (uint8_t)(i + 1);
    }
    int low = 0, high = bins->count - 1;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (bins->cuts[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint8_t)(low + 1);
}
