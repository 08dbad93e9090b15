/* safetensors.h - the tensors of one or several safetensors files, by name.
 *
 * A file is an 8-byte length, a JSON header {name: {dtype, shape, data_offsets}} and the data. Tensors stay spans of
 * the mapped file; one that is not aligned for its type is copied. Source: huggingface/safetensors, README "Format". */
#ifndef PITH_HF_SAFETENSORS_H
#define PITH_HF_SAFETENSORS_H

#include "base/map.h"
#include "base/memory.h"

typedef struct pith_weights {
    pith_arena *arena;
    pith_map names; /* name to index in items */
    pith_str *keys;
    pith_tensor *items;
    size_t count, capacity, key_capacity;
} pith_weights;

pith_status pith_weights_init(pith_weights *weights, pith_arena *arena, pith_error *err);
/* Adds all tensors of a file. file_name is for messages. A name that was added before gives PITH_ERR_FORMAT. */
pith_status pith_safetensors_read(pith_weights *weights, pith_str bytes, const char *file_name, pith_error *err);
const pith_tensor *pith_weights_find(const pith_weights *weights, pith_str name); /* NULL if absent */

#endif
