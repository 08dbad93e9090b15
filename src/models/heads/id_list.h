/* id_list.h - ascending lists of token ids, such as those that a head leaves out. */
#ifndef PITH_MODELS_HEADS_ID_LIST_H
#define PITH_MODELS_HEADS_ID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the list has this id. */
static inline bool pith__id_list_has(const int32_t *ids, size_t count, int32_t id) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ids[low] == id;
}

#endif
