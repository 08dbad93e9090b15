/* torch_pickle.h - a reader of pickles that hold plain tensors.
 *
 * It interprets the opcodes that torch.save writes for dictionaries, lists, tuples, numbers,
 * strings and tensors, and the names in its list: OrderedDict, the functions that rebuild tensors
 * and parameters, storages and dtypes. Any other opcode or name is an error with its offset.
 * Nothing is executed or imported, and nothing is read recursively. Source: CPython,
 * pickletools.py; PyTorch, torch/_utils.py and torch/serialization.py. */
#ifndef PITH_FORMATS_WEIGHTS_TORCH_TORCH_PICKLE_H
#define PITH_FORMATS_WEIGHTS_TORCH_TORCH_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

/* A tensor as the pickle describes it; sizes are not checked against the storage. */
typedef struct pith__torch_tensor {
    pith_str key;   /* of the storage */
    int dtype;      /* a pith_dtype, or PITH_UNDEFINED: the storage has no type and none was
                       given */
    int64_t numel;  /* elements of the storage, as the pickle has it */
    int64_t offset; /* in elements */
    int rank;
    int64_t dims[PITH_MAX_RANK], strides[PITH_MAX_RANK]; /* in elements */
} pith__torch_tensor;

typedef enum pith__pickle_kind {
    PITH_PICKLE_NONE,
    PITH_PICKLE_BOOL,
    PITH_PICKLE_INT,
    PITH_PICKLE_BIG, /* an integer of more than 64 bits: text is its bytes */
    PITH_PICKLE_FLOAT,
    PITH_PICKLE_TEXT,
    PITH_PICKLE_TUPLE,
    PITH_PICKLE_LIST,
    PITH_PICKLE_DICT, /* items are keys and values in turn */
    PITH_PICKLE_GLOBAL,
    PITH_PICKLE_STORAGE, /* a tensor of rank 0 whose key, dtype and numel are set */
    PITH_PICKLE_TENSOR,
    PITH_PICKLE_MARK
} pith__pickle_kind;

typedef struct pith__pickle_value {
    pith__pickle_kind kind;
    int global; /* index in the list of names */
    union {
        int64_t number;
        pith_str text;
        struct pith__pickle_items *items; /* TUPLE, LIST, DICT */
        pith__torch_tensor *tensor;
    } as;
} pith__pickle_value;

typedef struct pith__pickle_items {
    pith__pickle_value *at;
    size_t count, capacity;
} pith__pickle_items;

/* Reads one pickle from the front of bytes; *used is its length. The value is in the arena, its
 * texts are spans of bytes. Errors do not name the file. */
pith_status pith__pickle_read(pith__pickle_value *value, size_t *used, pith_str bytes,
                              pith__arena *arena, pith_error *err);

#endif
