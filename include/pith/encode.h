/* encode.h - everything that a model makes of texts, in one pass: dense vectors, sparse weights,
 * vectors of tokens. */
#ifndef PITH_ENCODE_H
#define PITH_ENCODE_H

#include "pith/call.h"
#include "pith/embed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call makes; bits of pith_encode_options.what. */
enum {
    PITH_ENCODE_DENSE = 1u << 0,        /* one vector per text, as pith_embed */
    PITH_ENCODE_SPARSE = 1u << 1,       /* weights of vocabulary entries: SPLADE, BGE-M3; of stems:
                                           BM42, miniCOIL */
    PITH_ENCODE_MULTI_VECTOR = 1u << 2, /* one vector per token, of length 1, for late interaction:
                                           ColBERT, BGE-M3 */
    PITH_ENCODE_TOKENS = 1u << 3        /* the model's hidden state of each token */
};

/* What the texts are. Late interaction, BM42 and miniCOIL treat queries in a way of their own: */
typedef enum pith_role {
    PITH_ROLE_DOCUMENT = 0, /* gets the document marker; tokens of the skip list, such as
                               punctuation, have no vector */
    PITH_ROLE_QUERY = 1     /* gets the query marker, and is filled up with mask tokens to the query
                               length; stems of BM42 have weight 1, and those of miniCOIL are not
                               weighed by how often they occur */
} pith_role;

/* The call context is as in pith_embed_options. */
typedef struct pith_encode_options {
    pith_call call;
    uint32_t what;                   /* PITH_ENCODE_*; more than one are made in the same pass. 0:
                                        PITH_ENCODE_DENSE */
    int32_t role;                    /* a pith_role */
    const pith_embed_options *embed; /* lengths, prompt, batches, statistics; results and failures,
                                        where a bad text has no sparse weights and no vectors of
                                        tokens; and pooling, normalize and dim of dense vectors. Its
                                        call context is not looked at. NULL: the defaults */
    double alpha;                    /* of BM42: the power to which the logarithm of an attention is
                                        raised; 0: 0.5 */
    double k, b;                     /* of miniCOIL, as of pith_bm25_options */
    double avg_len;                  /* of miniCOIL: the mean number of words of documents; 0:
                                        150 */
} pith_encode_options;

#define PITH_ENCODE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_encode_options)

/* Weights of vocabulary entries, as the rows of a matrix in compressed form (CSR). Row i is at
 * offsets[i] up to offsets[i + 1], its indices ascend, and no value is 0. */
typedef struct pith_sparse_rows {
    const int64_t *offsets; /* [texts + 1] */
    const int32_t *indices; /* [offsets[texts]] token ids, or numbers of stems */
    const float *values;    /* [offsets[texts]] */
} pith_sparse_rows;

/* Vectors of tokens. Those of text i are at offsets[i] up to offsets[i + 1]. */
typedef struct pith_token_rows {
    const int64_t *offsets; /* [texts + 1] */
    const int32_t *ids;     /* [offsets[texts]] the token of each vector; the first of those whose
                               mean it is */
    const float *vectors;   /* [offsets[texts], dim], row-major */
    size_t dim;
} pith_token_rows;

/* The results of a call. Kinds that were not asked for are NULL. */
typedef struct pith_encoded {
    size_t texts;
    size_t dim;         /* of dense vectors */
    const float *dense; /* [texts, dim]; NULL if they were not asked for */
    pith_sparse_rows sparse;
    pith_token_rows multi_vector;
    pith_token_rows tokens;
} pith_encoded;

/* Returns the PITH_ENCODE_* that the model can make. Thread-safe. */
PITH_API uint32_t pith_encode_can(const pith_model *model);

/* Encodes texts. On success the caller owns *encoded and frees it before the model is closed. A
 * text's results have the same bits whatever the other texts, the number of threads and the CPU are
 * (see pith_embed for bf16). Errors are those of pith_embed; PITH_ERR_UNSUPPORTED says what the
 * model lacks. Any number of threads may call this on one model. */
PITH_API pith_status pith_encode(pith_encoded **encoded, const pith_model *model,
                                 const pith_str *texts, size_t count,
                                 const pith_encode_options *options, pith_error *err);

/* Memory of the caller for offsets[texts + 1] and for items. Rooms are numbers of elements. */
typedef struct pith_sparse_memory {
    int64_t *offsets; /* [offset_room] */
    int32_t *indices; /* [index_room] */
    float *values;    /* [value_room] */
    size_t offset_room, index_room, value_room;
} pith_sparse_memory;

/* The same for vectors of tokens. */
typedef struct pith_token_memory {
    int64_t *offsets;                        /* [offset_room] */
    int32_t *ids;                            /* [id_room] */
    float *vectors;                          /* [float_room] */
    size_t offset_room, id_room, float_room; /* float_room: dim floats are needed per vector */
} pith_token_memory;

/* Memory of the caller for all results. Kinds that are not asked for may be NULL. */
typedef struct pith_encode_memory {
    size_t size;
    float *dense;      /* [dense_room]; NULL: there is no room */
    size_t dense_room; /* floats: texts * dim are needed */
    pith_sparse_memory sparse;
    pith_token_memory multi_vector, tokens;
} pith_encode_memory;

#define PITH_ENCODE_MEMORY_INIT PITH_SIZED_INIT(pith_encode_memory)

/* As pith_encode, with the results in memory of the caller: *encoded points to it and is not freed.
 * Dense vectors are written there directly. The others are put there when all texts are done, since
 * only then their number is known. PITH_ERR_ARGUMENT if memory is too small: the message names it,
 * with what is needed and what there is. For dense vectors and offsets that is found before a text
 * is run. */
PITH_API pith_status pith_encode_into(pith_encoded *encoded, const pith_encode_memory *memory,
                                      const pith_model *model, const pith_str *texts, size_t count,
                                      const pith_encode_options *options, pith_error *err);
/* As pith_encode and pith_encode_into, for texts that are tokens already; see pith_embed_tokens.
 * For late interaction the marker of options->role and the filling of queries are put in, as for
 * texts, since no tokenizer gives them: the tokens are those of the text alone.
 * PITH_ERR_UNSUPPORTED if the marker is text that the vocabulary does not have. */
PITH_API pith_status pith_encode_tokens(pith_encoded **encoded, const pith_model *model,
                                        const pith_token_ids *texts, size_t count,
                                        const pith_encode_options *options, pith_error *err);
PITH_API pith_status pith_encode_tokens_into(pith_encoded *encoded,
                                             const pith_encode_memory *memory,
                                             const pith_model *model, const pith_token_ids *texts,
                                             size_t count, const pith_encode_options *options,
                                             pith_error *err);
/* Frees the results of pith_encode and pith_encode_tokens; NULL is allowed. */
PITH_API void pith_encoded_free(pith_encoded *encoded);

#ifdef __cplusplus
}
#endif

#endif
