/* tensor_files.h - the tensors of a directory by name, whatever files they are stored in.
 *
 * Looked for, in this order: model.safetensors, model.safetensors.index.json, pytorch_model.bin,
 * pytorch_model.bin.index.json, model.gguf. Tensors stay spans of the mapped files; one that is not
 * aligned for its type, or whose elements do not lie one after the other, is copied. */
#ifndef PITH_FORMATS_WEIGHTS_TENSOR_FILES_H
#define PITH_FORMATS_WEIGHTS_TENSOR_FILES_H

#include "base/memory/memory.h"
#include "base/memory/span_map.h"
#include "base/os/file.h"

typedef struct pith__weights {
    pith__arena *arena;
    pith__map names; /* name to index in items */
    pith_str *keys;
    pith_tensor *items;
    size_t count, capacity, key_capacity;
    bool whole_gains; /* of norms: 1 is in the numbers already, where config.json's family counts
                         them from 1 */
} pith__weights;

pith_status pith__weights_init(pith__weights *weights, pith__arena *arena, pith_error *err);
/* Adds a tensor whose name and data must live as long as the weights. A name that is there gives
 * PITH_ERR_FORMAT. */
pith_status pith__weights_put(pith__weights *weights, pith_str name, const pith_tensor *tensor,
                              pith_error *err);
/* NULL if absent */
const pith_tensor *pith__weights_find(const pith__weights *weights, pith_str name);

/* Adds all tensors of the directory. wanted: the name of the file to read, which ends in
 * .safetensors, .bin, .pt, .pth, .gguf or .index.json; NULL: the first of the list above. *file is
 * set to the name that was read, in the arena. */
pith_status pith__weights_read(pith__weights *weights, const char **file, const char *dir,
                               const char *wanted, pith__files *files, pith_error *err);

/* Sets tensor->data to data, or to a copy in the arena if data is not aligned for the type. */
pith_status pith__weights_place(pith_tensor *tensor, const char *data, pith__arena *arena,
                                pith_error *err);

#endif
