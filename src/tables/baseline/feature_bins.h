/* feature_bins.h - features as bytes: numbers by quantiles of training, categories by how often
 * they occur there. Bin 0 is what is missing. */
#ifndef PITH_TABLES_BASELINE_FEATURE_BINS_H
#define PITH_TABLES_BASELINE_FEATURE_BINS_H

#include <stdint.h>

#include "base/memory/memory.h"
#include "base/stop.h"

enum { PITH_BINS = 256, PITH_BIN_CATEGORIES = 62 };

typedef struct pith__feature_bins {
    bool category;
    int count;    /* bins are 0 to count; of categories the last holds all others */
    double *cuts; /* [PITH_BINS] upper bounds of numbers but for the last bin's, ascending; or the
                     categories, the most frequent first */
} pith__feature_bins;

/* Bins for the values of training, which are reordered, in bins->cuts, which is there. NaN is
 * missing. False if memory is out or the call must end. stop may be NULL. */
bool pith__feature_bins_make(pith__feature_bins *bins, double *values, size_t count, bool category,
                             pith__stop *stop, pith__arena *arena);
uint8_t pith__feature_bin_of(const pith__feature_bins *bins, double value);

#endif
