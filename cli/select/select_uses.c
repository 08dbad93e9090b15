/* select_uses.c - see select_uses.h. */
#include "cli/select/select_uses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"

enum {
    USE_DENSE = 1,
    USE_SPARSE = 2,
    USE_MULTI_VECTOR = 4,
    USE_SCORE = 8,
    USE_DETOKENIZE = 16,
    USE_IMAGES = 32,
    USE_DETECT = 64,
    USE_SEARCH = 128,
    USE_RUN = 256,
    USE_RERANK = 512,
    USE_TOKENIZE = 1024,
};

const char select_use_names[] =
    "embed, sparse, multi-vector, score, classify, rerank, tokenize, detokenize, images, "
    "detect, search or run";

/* Plain words, accents, other scripts, digits and signs: what a tokenizer treats in different ways.
 */
#define SELECT_TEXT                                                                                \
    "A kitten, 3 caf\xc3\xa9s & \xe7\x8c\xab \xd0\xba\xd0\xbe\xd1\x82 \xf0\x9f\x98\xba!"
static const pith_str select_texts[] = { { SELECT_TEXT, sizeof SELECT_TEXT - 1 }, { "", 0 } };

static pith_status select_encode(const pith_model *model, uint32_t what, pith_error *err) {
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_encoded *encoded;
    options.what = what;
    for (int role = PITH_ROLE_DOCUMENT; role <= PITH_ROLE_QUERY; role++) {
        options.role = role;
        pith_status status = pith_encode(&encoded, model, select_texts, 2, &options, err);
        if (status) return status;
        pith_encoded_free(encoded);
    }
    return PITH_OK;
}

static pith_status select_dense(const pith_model *model, pith_error *err) {
    return select_encode(model, PITH_ENCODE_DENSE, err);
}

static pith_status select_sparse(const pith_model *model, pith_error *err) {
    return select_encode(model, PITH_ENCODE_SPARSE, err);
}

static pith_status select_multi_vector(const pith_model *model, pith_error *err) {
    return select_encode(model, PITH_ENCODE_MULTI_VECTOR, err);
}

static pith_status select_score(const pith_model *model, pith_error *err) {
    float *scores = grow(NULL, pith_label_count(model) * 2 * sizeof *scores);
    pith_status status = pith_classify(scores, model, select_texts, NULL, 2, NULL, err);
    free(scores);
    return status;
}

static pith_status select_rerank(const pith_model *model, pith_error *err) {
    float scores[2];
    return pith_rerank(scores, model, select_texts[0], select_texts, 2, NULL, err);
}

static pith_status select_tokenize(const pith_model *model, pith_error *err) {
    const pith_tokenizer *tokenizer = pith_model_tokenizer(model);
    pith_tokens tokens = PITH_TOKENS_INIT;
    if (!tokenizer) {
        *err =
            (pith_error){ .code = PITH_ERR_UNSUPPORTED, .message = "the model has no tokenizer" };
        return err->code;
    }
    pith_status status = pith_tokenize(&tokens, tokenizer, select_texts[0], NULL, NULL, err);
    if (!status)
        status = pith_tokenize(&tokens, tokenizer, select_texts[0], &select_texts[0], NULL, err);
    pith_tokens_free(&tokens);
    return status;
}

static pith_status select_detokenize(const pith_model *model, pith_error *err) {
    const pith_tokenizer *tokenizer = pith_model_tokenizer(model);
    const int32_t id = 1;
    char *text;
    size_t size;
    if (!tokenizer) return PITH_OK;
    pith_status status = pith_detokenize(&text, &size, tokenizer, &id, 1, 0, NULL, err);
    if (!status) pith_text_free(tokenizer, text);
    return status;
}

/* A grey gradient. */
enum { SELECT_SIDE = 96 };
static void select_picture(pith_image *image, uint8_t *pixels) {
    for (int i = 0; i < SELECT_SIDE * SELECT_SIDE * 3; i++)
        pixels[i] = (uint8_t)(i / 3 % SELECT_SIDE * 2);
    *image = (pith_image){
        .pixels = pixels, .width = SELECT_SIDE, .height = SELECT_SIDE, .channels = 3
    };
}

static pith_status select_images(const pith_model *model, pith_error *err) {
    uint8_t pixels[SELECT_SIDE * SELECT_SIDE * 3];
    pith_image image;
    size_t dim;
    select_picture(&image, pixels);
    pith_status status = pith_embed_images_dim(&dim, model, NULL, err);
    if (status) return status;
    float *vector = grow(NULL, dim * sizeof *vector);
    status = pith_embed_images(vector, model, &image, 1, NULL, err);
    free(vector);
    return status;
}

static pith_status select_detect(const pith_model *model, pith_error *err) {
    uint8_t pixels[SELECT_SIDE * SELECT_SIDE * 3];
    pith_image image;
    pith_faces faces;
    select_picture(&image, pixels);
    pith_status status = pith_detect(&faces, model, &image, 1, NULL, err);
    if (!status) pith_faces_free(&faces);
    return status;
}

enum { SEARCH_DIM = 64, SEARCH_ROWS = 4 };

static pith_status select_search_once(const pith_search_index_options *options, pith_error *err) {
    static const uint32_t rows[SEARCH_ROWS * SEARCH_DIM] = { 0x3f800000 };
    static const float query[SEARCH_DIM] = { 1, -1, 2 };
    pith_search_index *index;
    pith_hit hit;
    pith_status status =
        pith_search_index_create(&index, rows, SEARCH_ROWS, SEARCH_DIM, options, err);
    if (status) return status;
    status = pith_search(&hit, index, query, 1, 1, NULL, err);
    pith_search_index_destroy(index);
    return status;
}

/* In every metric, with every first pass and rows of every type. The model plays no part in it. */
static pith_status select_search(const pith_model *model, pith_error *err) {
    static const int64_t offsets[] = { 0, 1, SEARCH_ROWS };
    static const int32_t dtypes[] = { PITH_F32, PITH_F16, PITH_I8, PITH_U8 };
    (void)model;
    for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_MAXSIM; metric++)
        for (int d = 0; d < 5; d++) /* the last time rows of bits */
            for (int pass = PITH_FIRST_PASS_NONE; pass <= PITH_FIRST_PASS_BINARY; pass++) {
                pith_search_index_options options = PITH_SEARCH_INDEX_OPTIONS_INIT;
                const bool late = metric == PITH_METRIC_MAXSIM;
                if (pass && (d > 1 || late)) continue;
                options.metric = metric;
                options.first_pass = pass;
                options.dtype = d < 4 ? dtypes[d] : PITH_U8;
                options.bits = d == 4;
                options.offsets = late ? offsets : NULL;
                options.documents = late ? 2 : 0;
                pith_status status = select_search_once(&options, err);
                if (status) return status;
            }
    return PITH_OK;
}

static pith_status select_session(const pith_model *model, pith_error *err) {
    pith_session *session;
    pith_status status = pith_session_create(&session, model, err);
    if (!status) pith_session_destroy(session);
    return status;
}

static const struct {
    const char *name;
    unsigned use;
    pith_status (*run)(const pith_model *model, pith_error *err);
    const char *calls; /* what a program for it calls beside pith_model_open and pith_model_close */
    const char *alias; /* another name, or NULL */
} select_rows[] = {
    { "embed", USE_DENSE, select_dense, "pith_embed pith_embed_dim", NULL },
    { "sparse", USE_SPARSE, select_sparse, "pith_encode pith_encoded_free", NULL },
    { "multi-vector", USE_MULTI_VECTOR, select_multi_vector, "pith_encode pith_encoded_free",
      NULL },
    { "score", USE_SCORE, select_score, "pith_classify pith_label_count", "classify" },
    { "rerank", USE_RERANK, select_rerank, "pith_rerank", NULL },
    { "tokenize", USE_TOKENIZE, select_tokenize,
      "pith_tokenize pith_model_tokenizer pith_tokens_free", NULL },
    { "detokenize", USE_DETOKENIZE, select_detokenize,
      "pith_detokenize pith_model_tokenizer pith_text_free", NULL },
    { "images", USE_IMAGES, select_images, "pith_embed_images pith_embed_images_dim", NULL },
    { "detect", USE_DETECT, select_detect, "pith_detect pith_faces_free", NULL },
    { "search", USE_SEARCH, select_search,
      "pith_search_index_create pith_search pith_search_index_destroy", NULL },
    { "run", USE_RUN, select_session, "pith_session_create pith_session_run pith_session_destroy",
      NULL },
};
enum { SELECT_ROWS = sizeof select_rows / sizeof *select_rows };

unsigned select_use_of(const char *name) {
    for (size_t i = 0; i < SELECT_ROWS; i++)
        if (!strcmp(name, select_rows[i].name) ||
            (select_rows[i].alias && !strcmp(name, select_rows[i].alias)))
            return select_rows[i].use;
    return 0;
}

/* What the model may be made for; the rest shows when it is tried. */
static unsigned select_uses_of(const pith_model *model) {
    const uint32_t can = pith_encode_can(model);
    unsigned uses = USE_IMAGES | USE_DETECT;
    if (can & PITH_ENCODE_SPARSE) uses |= USE_SPARSE;
    if (can & PITH_ENCODE_MULTI_VECTOR) uses |= USE_MULTI_VECTOR;
    if (pith_label_count(model)) return uses | USE_SCORE;
    return pith_embed_dim(model, NULL) ? uses | USE_DENSE : uses;
}

pith_status select_use(const pith_model *model, unsigned uses, unsigned *done, pith_error *err) {
    const unsigned tried = uses ? uses : select_uses_of(model);
    unsigned did = 0;
    pith_error first = PITH_ERROR_INIT;
    for (size_t i = 0; i < SELECT_ROWS; i++) {
        if (!(tried & select_rows[i].use)) continue;
        pith_status status = select_rows[i].run(model, err);
        if (status == PITH_ERR_MEMORY) return status;
        if (!status) did |= select_rows[i].use;
        if (status && !first.code) first = *err;
    }
    *done |= did;
    if (!uses) return did ? PITH_OK : select_session(model, err);
    *err = first;
    return first.code;
}

const char *select_use_name(unsigned uses) {
    for (size_t i = 0; i < SELECT_ROWS; i++)
        if (uses & select_rows[i].use) return select_rows[i].name;
    return "";
}

void select_use_calls(unsigned uses, void (*act)(void *user, const char *function), void *user) {
    act(user, "pith_model_open");
    act(user, "pith_model_close");
    for (size_t i = 0; i < SELECT_ROWS; i++)
        if (!uses || uses & select_rows[i].use)
            for (const char *at = select_rows[i].calls; *at;) {
                char function[64];
                const size_t n = strcspn(at, " ");
                snprintf(function, sizeof function, "%.*s", (int)n, at);
                act(user, function);
                at += n + (at[n] == ' ');
            }
}
