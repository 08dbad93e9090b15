/* bins.h - features as bytes: numbers by quantiles of training, categories by how often they occur there. Bin 0 is
 * what is missing. */
#ifndef PITH_TABLES_BASELINE_BINS_H
#define PITH_TABLES_BASELINE_BINS_H

#include <stdint.h>

#include "base/memory/memory.h"

enum { PITH_BINS = 256, PITH_BIN_CATEGORIES = 62 };

typedef struct pith_bins {
    bool category;
    int count;    /* bins are 0 to count; of categories the last holds all others */
    double *cuts; /* [PITH_BINS] upper bounds of numbers but for the last bin's, ascending; or the categories, the most
                     frequent first */
} pith_bins;

/* Bins for the values of training, which are reordered, in bins->cuts, which is there. NaN is missing. False if memory
 * is out. */
bool pith_bins_make(pith_bins *bins, double *values, size_t count, bool category, pith_arena *arena);
uint8_t pith_bin_of(const pith_bins *bins, double value);

#endif
