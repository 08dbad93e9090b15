/* gguf_arch.h - the architectures of GGUF that are read: how their tensors and settings are called
 * in Hugging Face's files.
 *
 * Source: llama.cpp, gguf-py/gguf/tensor_mapping.py and constants.py for the names, conversion/ for
 * what becomes of the numbers, src/models/ for what is computed. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_ARCH_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_ARCH_H

#include "base/memory/memory.h"

/* The beginning of a tensor's name, with the dot. */
typedef struct pith__gguf_name {
    const char *gguf, *hf;
} pith__gguf_name;

typedef struct pith__gguf_arch {
    const char *name;                        /* general.architecture */
    const char *model_type;                  /* of config.json */
    const char *layer;                       /* "encoder.layer.": a layer's tensors in Hugging
                                                Face's files */
    const pith__gguf_name *plain, *in_layer; /* the last one has no names */
    bool decoder;                            /* RMS norms, heads of keys that others share, no table
                                                of positions */
    bool rotary;                             /* rotary positions */
    bool whole_gains;  /* of norms: 1 is in the file's numbers, and config.json's family would add
                          it */
    bool windows;      /* layers with a window, which reaches as far to either side; never causal */
    const char *reads; /* keys behind "<name>." that only this one has, with spaces between */
} pith__gguf_arch;

/* NULL: not one of them. */
const pith__gguf_arch *pith__gguf_arch_find(pith_str name);
/* Their names, for messages. */
#define PITH_GGUF_ARCHS "bert, nomic-bert, qwen2, qwen3, gemma-embedding and eurobert"

/* "blk.3.attn_q.weight" to "encoder.layer.3.attention.self.query.weight", in the arena; other names
 * stay. data is NULL if memory is out. */
pith_str pith__gguf_arch_hf_name(const pith__gguf_arch *arch, pith_str name, pith__arena *arena);

#endif
