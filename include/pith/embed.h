/* embed.h - text to vectors. */
#ifndef PITH_EMBED_H
#define PITH_EMBED_H

#include "pith/types.h"
#include "pith/profile.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pith_pooling {
    PITH_POOLING_MODEL = 0, /* as the directory's modules say; mean where nothing is said */
    PITH_POOLING_CLS = 1,
    PITH_POOLING_MEAN = 2,
    PITH_POOLING_MAX = 3,
    PITH_POOLING_LAST = 4
} pith_pooling;

typedef struct pith_embed_stats {
    uint64_t texts;
    uint64_t tokens;        /* real tokens fed to the model */
    uint64_t padded_tokens; /* rows computed that belong to no token; 0 in ragged execution */
    uint64_t truncated;     /* texts cut at max_length */
    uint64_t peak_bytes;    /* most activation memory held at once by this call */
    uint64_t texts_done;    /* set, not added to: how many texts from the first on this call has finished */
} pith_embed_stats;

typedef struct pith_embed_options {
    size_t size;
    int32_t threads;      /* 0: as many as the machine or the container gives */
    int32_t max_length;   /* tokens per text with specials; 0: the model's; never more than its positions */
    int32_t batch_tokens; /* token budget of one chunk; 0: 128 to 512, by L2 and the widest rows */
    int32_t pooling;      /* pith_pooling */
    int32_t normalize;    /* -1: as the modules say; 0 no; 1 L2 */
    int32_t dim;          /* keep the first dim components (before normalisation); 0: all */
    const volatile int *cancel;
    pith_embed_stats *stats; /* added to, not reset; NULL: not wanted */
    const char *prompt_name; /* a prompt of config_sentence_transformers.json; NULL: its default, "": none */
    pith_profile *profile;   /* records steps and phases; NULL: none */
} pith_embed_options;

/* clang-format off */
#define PITH_EMBED_OPTIONS_INIT { sizeof(pith_embed_options), 0, 0, 0, 0, -1, 0, NULL, NULL, NULL, NULL }
/* clang-format on */

/* Components of one vector under these options; 0 if the model cannot embed text. */
PITH_API size_t pith_embed_dim(const pith_model *model, const pith_embed_options *options);

/* Tokens, specials included, that a text is cut at under these options; 0: never. */
PITH_API size_t pith_embed_max_length(const pith_model *model, const pith_embed_options *options);

/* Writes count rows of pith_embed_dim floats. A text's vector does not depend on the other texts, the number of
 * threads or the CPU. The empty text is a valid text. Invalid UTF-8: PITH_ERR_ARGUMENT naming the text's index. After
 * an error the first stats->texts_done rows are complete, and the contents of the others are unspecified. */
PITH_API pith_status pith_embed(float *vectors, const pith_model *model, const pith_str *texts, size_t count,
                                const pith_embed_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
