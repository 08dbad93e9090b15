/* embed.h - turning texts into vectors. */
#ifndef PITH_EMBED_H
#define PITH_EMBED_H

#include "pith/call.h"
#include "pith/types.h"
#include "pith/profile.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pith_pooling {
    PITH_POOLING_MODEL = 0, /* what the model's modules.json says; mean if it says nothing */
    PITH_POOLING_CLS = 1,   /* the first token's vector */
    PITH_POOLING_MEAN = 2,  /* the mean over a text's tokens */
    PITH_POOLING_MAX = 3,   /* the largest value of each component over a text's tokens */
    PITH_POOLING_LAST = 4   /* the last token's vector */
} pith_pooling;

/* What calls of pith_embed did. A call adds to the first four numbers, so that one struct can count
 * many calls. Begin with zeros. */
typedef struct pith_embed_stats {
    uint64_t texts;
    uint64_t tokens;        /* tokens fed to the model, without padding */
    uint64_t padded_tokens; /* rows computed for padding; 0 if the model runs packed texts */
    uint64_t truncated;     /* texts cut at max_length */
    uint64_t peak_bytes;    /* the most activation memory, in bytes, that one call held at once */
    uint64_t texts_done;    /* set by each call: the first texts_done texts have their vectors */
} pith_embed_stats;

/* A text as tokens. They are fed as they are: nothing is added in front or behind, and nothing is
 * cut. A plain value: it never grows. */
typedef struct pith_token_ids {
    const int32_t *ids;      /* [count], each from 0 to below the size of the tokenizer's
                                vocabulary; NULL if count is 0 */
    const int32_t *type_ids; /* [count], token_type_ids, at least 0; NULL: all are 0. A model
                                without such an input does not look at them */
    size_t count;            /* at most as many as the model has positions */
    size_t prompt;           /* the first so many are those of a prompt, the special token in front
                                of it included. They have an effect if the model's files say that
                                pooling leaves out the prompt (include_prompt); 0: there is none */
} pith_token_ids;

/* How one text of a call went. A plain value: it never grows. */
typedef struct pith_text_result {
    pith_status status; /* PITH_OK; or PITH_ERR_ARGUMENT or PITH_ERR_RUN: the text has no result */
    uint32_t tokens;    /* fed to the model, the prompt and special tokens included; 0 if the text
                           has no result */
    int32_t truncated;  /* 1: the text was cut at max_length */
} pith_text_result;

typedef enum pith_preference {
    PITH_PREFER_THROUGHPUT = 0, /* each thread runs texts of its own */
    PITH_PREFER_LATENCY = 1     /* all threads share the work on a few texts, and windows hold at
                                   most 16 texts: the first results come early */
} pith_preference;

/* How the texts of a call are grouped. A call works in windows: the texts of a window are tokenised
 * together and then run, and their results are there when the window ends. Nothing here changes a
 * bit of a result. */
typedef struct pith_batching {
    size_t size;
    int32_t least, most; /* texts of a window; 0: 1 and 1024 */
    int32_t prefer;      /* a pith_preference */
    double target_ms;    /* windows are made as large as lets nine of ten end within so many
                            milliseconds, between least and most; 0: windows are not steered */
    /* called on the calling thread after each window: texts first to first + count - 1 are
     * finished; may be NULL */
    void (*done)(void *user, size_t first, size_t count);
    void *user; /* passed to done */
} pith_batching;

#define PITH_BATCHING_INIT PITH_SIZED_INIT(pith_batching)

/* In the call context, only log and allocator have no effect; they are the model's. progress
 * reports "texts". The vectors of the first stats->texts_done texts are valid after an early end.
 */
typedef struct pith_embed_options {
    pith_call call;
    int32_t max_length;        /* tokens at which a text is cut, special tokens included; 0: the
                                  model's own limit. The number of the model's positions always
                                  limits it. */
    int32_t batch_tokens;      /* tokens that one thread runs at once; 0: 128 to 512, chosen by the
                                  size of L2. Changes speed and memory, never a vector. */
    int32_t pooling;           /* a pith_pooling: how the vectors of a text's tokens become one */
    int32_t normalize;         /* a pith_choice: whether vectors are scaled to length 1 (L2) */
    int32_t dim;               /* keep the first dim components, then normalise; 0: keep all */
    pith_embed_stats *stats;   /* receives the counts; NULL: not needed */
    pith_text_result *results; /* [count], the caller's: receives how each text went. A bad text
                                  then does not end the call: one that is not UTF-8, has an id
                                  outside of the vocabulary, is longer than the model's positions,
                                  or that the network cannot compute. Its row is NaN, and all other
                                  rows have the bits that they have without it. Those of the first
                                  stats->texts_done texts are valid after an early end. NULL: a bad
                                  text ends the call */
    pith_error *failures;      /* [count], the caller's: receives the error of each bad text, and
                                  code PITH_OK for the others. Looked at with results only. NULL:
                                  not needed */
    const char *prompt_name;   /* name of a prompt in config_sentence_transformers.json, which is
                                  put before each text; NULL: the file's default prompt; "":
                                  none */
    const pith_batching *batching; /* NULL: the defaults */
} pith_embed_options;

#define PITH_EMBED_OPTIONS_INIT PITH_OPTIONS_INIT(pith_embed_options)

/* Returns the number of components of one vector under these options, or 0 if the model cannot
 * embed text. Thread-safe. */
PITH_API size_t pith_embed_dim(const pith_model *model, const pith_embed_options *options);

/* Returns the number of tokens, special tokens included, at which a text is cut under these
 * options, or 0 if texts are never cut. Thread-safe. */
PITH_API size_t pith_embed_max_length(const pith_model *model, const pith_embed_options *options);

/* The memory that a call needs at its peak, in bytes, besides what the model holds already. */
typedef struct pith_memory_need {
    size_t activations; /* as pith_embed_stats.peak_bytes */
    size_t total;       /* what pith_model_bytes grows by, buffers of idle sessions and of the pool
                           included */
} pith_memory_need;

/* Predicts what pith_embed needs for `count` texts of `tokens` tokens each, special tokens
 * included. Nothing is run. The tokenizer makes what its first text needs, which pith_model_bytes
 * then counts. Buffers that the model keeps from earlier calls are not subtracted. Values whose
 * shape only a run can tell are not included. Thread-safe. */
PITH_API pith_status pith_embed_predict(pith_memory_need *need, const pith_model *model,
                                        size_t count, size_t tokens,
                                        const pith_embed_options *options, pith_error *err);

/* Writes one vector per text to vectors: float[count][pith_embed_dim(model, options)], row-major,
 * owned by the caller. A text's vector has the same bits whatever the other texts, the number of
 * threads and the CPU are; with precision bf16 it does depend on the CPU. The empty text is a valid
 * text. A text that is not UTF-8 gives PITH_ERR_ARGUMENT, and the message names its index. After an
 * error the first stats->texts_done rows are complete and the others are unspecified. With count 0
 * only the model and the options are checked; vectors and texts may then be NULL. Any number of
 * threads may call this on one model at once. */
PITH_API pith_status pith_embed(float *vectors, const pith_model *model, const pith_str *texts,
                                size_t count, const pith_embed_options *options, pith_error *err);

/* The same for texts that are tokens already: those of pith_tokenize with the model's tokenizer (of
 * a model that is a table of vectors: with pith_tokenizer_open, which leaves out what the model
 * leaves out), or of a tokenizer of the host's own. Tokens that the model's own tokenizer gives
 * have the vector of their text, bit for bit. options->prompt_name must be NULL or "", and
 * options->max_length 0: prompts and special tokens are among the tokens. A bad text gives
 * PITH_ERR_ARGUMENT, or PITH_ERR_RUN if only the network finds out, and the message names its
 * index. The arrays are the caller's and must not change during the call. */
PITH_API pith_status pith_embed_tokens(float *vectors, const pith_model *model,
                                       const pith_token_ids *texts, size_t count,
                                       const pith_embed_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
