/* gguf_blocks.h - the types of tensors in GGUF that are read, and how the blocks of each are
 * decoded.
 *
 * Source: ggml, ggml-common.h and ggml-quants.c. Scales are f16; numbers are those of the PyPI
 * package gguf, bit for bit. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_BLOCKS_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

typedef struct pith__gguf_form {
    uint32_t type;                                /* the file's number of it */
    int dtype;                                    /* of what is made */
    size_t elements, bytes;                       /* of a block */
    void (*decode)(float *to, const char *block); /* all elements of a block; NULL: they stay as
                                                     they are */
} pith__gguf_form;

/* NULL: a type that is not read. */
const pith__gguf_form *pith__gguf_form_find(uint32_t type);
/* The name of a type that is not read, for messages. */
const char *pith__gguf_form_name(uint32_t type);
/* The names of the types that are read, for messages. */
#define PITH_GGUF_FORMS                                                                            \
    "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL and "      \
    "IQ4_XS"

#endif
