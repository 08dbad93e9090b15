/* encode_texts.c - pith_encode: which heads run on which outputs, and their pieces put together. */
#include "models/texts/encode_texts.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"
#include "models/encode/given_tokens.h"
#include "models/heads/dense_request.h"
#include "models/heads/sparse_request.h"
#include "models/heads/token_vectors_request.h"
#include "models/heads/word_weights_request.h"
#include "models/lexical/bm25_numbers.h"
#include "models/texts/embed_texts.h"
#include "models/texts/encode_outputs.h"

enum {
    KINDS = PITH_ENCODE_KINDS,
    DENSE = 0,
    SPARSE = 1,
    MULTI_VECTOR = 2,
    TOKENS = 3,
    BLOCKS = 3 * KINDS
};

/* Defaults of pith_encode_options. */
#define ENCODING_ALPHA 0.5
#define ENCODING_AVG_LEN 150.0

/* What the caller gets begins with this. */
typedef struct encoded_box {
    pith_encoded encoded;
    const pith_allocator *allocator;
    void *blocks[BLOCKS]; /* the arrays of encoded */
    size_t block_count;
} encoded_box;

/* One call. */
typedef struct encoding {
    pith__text_task task; /* of a call that others run */
    const pith_model *m;
    pith_encode_options options;
    pith_embed_options embed;
    pith__stop own_stop, *stop; /* NULL: it cannot be stopped */
    const pith_str *texts;
    const pith__given_tokens *given; /* NULL, or instead of texts */
    pith__given_tokens own_given;    /* of a call that others run */
    size_t count;
    const pith_encode_memory *memory; /* of the caller; NULL: the box gets memory of its own */
    pith__arena arena;
    encoded_box *box;
    const pith__head *heads[KINDS]; /* NULL: not asked for */
    int outputs[KINDS];             /* of the model's graph */
    pith__collected collected[KINDS];
    pith__dense_request dense;
    pith__sparse_request sparse;
    pith__word_weights_request word_weights; /* instead of it, */
    pith__dense_request code;                /* or this */
    pith__token_vectors_request multi_vector, tokens;
    bool framed;
    pith__encode_frame frame;
} encoding;

/* ---- the request ---- */

static int encoding_compare_ids(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The ids of words, ascending. A word that the vocabulary does not have has the id `unknown`; -1:
 * none. */
static pith_status encoding_ids(const int32_t **ids, size_t *count, encoding *c,
                                const pith_str *words, size_t n, int32_t unknown, pith_error *err) {
    int32_t *found = pith__arena_array(&c->arena, n, sizeof *found);
    if (!found) return pith__fail_memory(err, n * sizeof *found);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = pith__tokenizer_id(c->m->tokenizer, words[i]);
        if (id < 0) id = unknown;
        if (id >= 0) found[(*count)++] = id;
    }
    qsort(found, *count, sizeof *found, encoding_compare_ids);
    *ids = found;
    return PITH_OK;
}

static pith_str encoding_token(const void *tokenizer, int32_t id, bool *special) {
    *special = pith__tokenizer_is_special(tokenizer, id);
    return pith__tokenizer_token(tokenizer, id);
}

/* All three requests are filled in, and encoding_run takes the one that fits the model. Frame
 * tokens have no weight, whatever tokenizer the model has; BGE-M3 leaves out the same ones. */
static pith_status encoding_prepare_sparse(encoding *c, pith_error *err) {
    static const pith_str frames[] = { { "<s>", 3 },   { "</s>", 4 },  { "<pad>", 5 },
                                       { "<unk>", 5 }, { "[CLS]", 5 }, { "[SEP]", 5 },
                                       { "[PAD]", 5 }, { "[UNK]", 5 } };
    c->sparse = (pith__sparse_request){ .weights = &c->collected[SPARSE] };
    c->code = (pith__dense_request){ .weights = &c->collected[SPARSE] };
    c->word_weights = (pith__word_weights_request){ .word_model = &c->m->word_model,
                                                    .tokens = { encoding_token, c->m->tokenizer },
                                                    .query = c->options.role == PITH_ROLE_QUERY,
                                                    .alpha = c->options.alpha,
                                                    .k = c->options.k,
                                                    .b = c->options.b,
                                                    .avg_len = c->options.avg_len,
                                                    .weights = &c->collected[SPARSE] };
    if (c->m->word_model.kind) return PITH_OK;
    return encoding_ids(&c->sparse.skip, &c->sparse.skip_count, c, frames,
                        sizeof frames / sizeof frames[0], -1, err);
}

/* The id of a token that the files name. */
static pith_status encoding_named(int32_t *id, const encoding *c, pith_str token, const char *what,
                                  pith_error *err) {
    *id = pith__tokenizer_id(c->m->tokenizer, token);
    if (*id >= 0) return PITH_OK;
    return pith__fail(err, PITH_ERR_FORMAT,
                      "the vocabulary does not have '" PITH_STR_FMT "', which is the %s",
                      PITH_STR_ARG(token), what);
}

/* The token that queries are filled up with. */
static pith_status encoding_find_filler(encoding *c, pith_str token, pith_error *err) {
    if (token.size)
        return encoding_named(&c->frame.filler, c, token, "token that queries are filled up with",
                              err);
    c->frame.filler = pith__tokenizer_id(c->m->tokenizer, PITH_STR("[MASK]"));
    return c->frame.filler >= 0
               ? PITH_OK
               : encoding_named(&c->frame.filler, c, PITH_STR("<mask>"), "mask token", err);
}

/* The prompt of the role, if the model has one and the caller names none. Source:
 * MultiVectorEncoder.encode_query and encode_document of sentence-transformers 6.2. Only the first
 * so many names count. */
static void encoding_choose_prompt(encoding *c, int names_used) {
    static const char *const names[2][3] = {
        [PITH_ROLE_QUERY] = { "query" }, [PITH_ROLE_DOCUMENT] = { "document", "passage", "corpus" }
    };
    const pith__modules *m = &c->m->modules;
    if (c->given) return;
    for (int n = 0; n < names_used && names[c->options.role][n]; n++)
        for (size_t i = 0; i < m->prompt_count && !c->embed.prompt_name; i++)
            if (pith__str_is(m->prompts[i].name, names[c->options.role][n]))
                c->embed.prompt_name = names[c->options.role][n];
}

static bool encoding_begins(pith_str text, pith_str with) {
    return text.size >= with.size && !memcmp(text.data, with.data, with.size);
}

/* The prompt with `before` in front of it, which takes the place of a marker that the prompt begins
 * with. */
static pith_status encoding_join_prompt(encoding *c, pith_str marker, pith_str before,
                                        pith_error *err) {
    pith_str prompt;
    encoding_choose_prompt(c, 1);
    PITH_TRY(pith__encode_prompt(&prompt, &c->m->modules, c->embed.prompt_name, err));
    if (encoding_begins(prompt, marker)) {
        prompt.data += marker.size;
        prompt.size -= marker.size;
    }
    char *both = pith__arena_alloc(&c->arena, before.size + prompt.size + 1);
    if (!both) return pith__fail_memory(err, before.size + prompt.size + 1);
    if (before.size) memcpy(both, before.data, before.size);
    if (prompt.size) memcpy(both + before.size, prompt.data, prompt.size);
    c->frame.prompt = (pith_str){ both, before.size + prompt.size };
    return PITH_OK;
}

/* A marker that the vocabulary does not have as a whole: its first word is a token of it, or all of
 * it is text, of as many tokens as the tokenizer makes of it. Source: sentence-transformers 6.2,
 * multi_vector_encoder/model.py (_parse_model_config and _register_prefix_tokens), on directories
 * of PyLate. */
static pith_status encoding_marker_text(encoding *c, pith_str marker, pith_error *err) {
    size_t n = 0;
    if (c->given)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model's marker of this role is text, '" PITH_STR_FMT
                          "': it reads texts, not tokens",
                          PITH_STR_ARG(marker));
    while (n < marker.size && !strchr(" \t\n\v\f\r", marker.data[n])) n++;
    const pith_str word = { marker.data, n }, rest = { marker.data + n, marker.size - n };
    if (n) c->frame.marker = pith__tokenizer_id(c->m->tokenizer, word);
    return encoding_join_prompt(c, marker, c->frame.marker >= 0 ? rest : marker, err);
}

/* A marker is one token, as ColBERT has it. PyLate's markers may be text that the vocabulary lacks.
 */
static pith_status encoding_find_marker(encoding *c, pith_error *err) {
    const pith__late_interaction *late = &c->m->late;
    const pith_str marker = late->markers[c->options.role];
    if (!marker.size) return PITH_OK;
    c->frame.marker = pith__tokenizer_id(c->m->tokenizer, marker);
    if (c->frame.marker >= 0) return PITH_OK;
    if (late->texts) return encoding_marker_text(c, marker, err);
    return encoding_named(&c->frame.marker, c, marker, "marker of its role", err);
}

/* Late interaction frames texts by their role: a marker, a length, and for queries a filling with
 * mask tokens. Such texts are of no use to other heads, so a call has only these vectors then. */
static pith_status encoding_prepare_frame(encoding *c, pith_error *err) {
    const pith__late_interaction *late = &c->m->late;
    const int role = c->options.role;
    c->frame = (pith__encode_frame){ .marker = -1 };
    PITH_TRY(encoding_find_marker(c, err));
    if (!c->embed.max_length) c->embed.max_length = late->lengths[role];
    if (role == PITH_ROLE_QUERY && late->expands && (late->filled || late->lengths[role])) {
        if (late->in_front)
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "tokenizer_config.json says padding_side left: queries would be "
                              "filled up at their front, "
                              "which is not supported");
        PITH_TRY(encoding_find_filler(c, late->filler, err));
        c->frame.length = late->filled ? late->filled : c->embed.max_length;
        c->frame.hidden = !late->attends;
    }
    c->framed = c->frame.marker >= 0 || c->frame.length || c->frame.prompt.data;
    if (!c->framed || c->options.what == PITH_ENCODE_MULTI_VECTOR) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "the model marks texts for late interaction: ask for vectors of tokens "
                      "(PITH_ENCODE_MULTI_VECTOR) "
                      "in a call of their own");
}

/* Sorted, so that the head can search; the list of the model is shared and stays as it is. */
static pith_status encoding_keep_ids(encoding *c, const pith__late_interaction *late,
                                     pith_error *err) {
    int32_t *ids = pith__arena_array(&c->arena, late->kept_count, sizeof *ids);
    if (!ids) return pith__fail_memory(err, late->kept_count * sizeof *ids);
    if (late->kept_count) memcpy(ids, late->kept, late->kept_count * sizeof *ids);
    qsort(ids, late->kept_count, sizeof *ids, encoding_compare_ids);
    c->multi_vector.keep = ids;
    c->multi_vector.keep_count = late->kept_count;
    return PITH_OK;
}

static pith_status encoding_prepare_multi_vector(encoding *c, pith_error *err) {
    const pith__late_interaction *late = &c->m->late;
    c->multi_vector = (pith__token_vectors_request){ .normalize = !late->masked,
                                                     .tokens = &c->collected[MULTI_VECTOR] };
    pith_str output = c->m->graph->output_names[c->outputs[MULTI_VECTOR]];
    /* see models/tasks/task_bge_m3.c */
    c->multi_vector.skip_first = pith__str_is(output, "pith.colbert_vecs");
    PITH_TRY(encoding_prepare_frame(c, err));
    if (late->masked) encoding_choose_prompt(c, 3);
    if (c->options.role == PITH_ROLE_DOCUMENT) PITH_TRY(encoding_keep_ids(c, late, err));
    if (late->pool.roles & 1u << c->options.role) c->multi_vector.pool = &late->pool;
    if (!(late->skips & 1u << c->options.role)) return PITH_OK;
    /* As in ColBERT and in PyLate, which look words up as they look up texts. */
    int32_t unknown = pith__tokenizer_id(c->m->tokenizer, PITH_STR("[UNK]"));
    if (unknown < 0) unknown = pith__tokenizer_id(c->m->tokenizer, PITH_STR("<unk>"));
    return encoding_ids(&c->multi_vector.skip, &c->multi_vector.skip_count, c, late->skipped,
                        late->skipped_count, late->masked ? -1 : unknown, err);
}

static pith_status encoding_check_number(double x, double least, double most, bool open,
                                         const char *name, pith_error *err) {
    if (x >= least && x <= most && !(open && x <= least)) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "%s is %g; it must be %s %g%s", name, x,
                      open ? "above" : "at least", least,
                      most <= 1 ? " and at most 1" : " and a number");
}

/* Of BM42 and miniCOIL. */
static pith_status encoding_check_numbers(const pith_encode_options *o, pith_error *err) {
    PITH_TRY(encoding_check_number(o->alpha, 0, DBL_MAX, true, "alpha", err));
    PITH_TRY(encoding_check_number(o->k, 0, DBL_MAX, false, "k", err));
    PITH_TRY(encoding_check_number(o->b, 0, 1, false, "b", err));
    return encoding_check_number(o->avg_len, 0, DBL_MAX, true, "avg_len", err);
}

/* Numbers that the model does not take would change nothing. */
static pith_status encoding_check_hybrid(const encoding *c, pith_error *err) {
    const pith_encode_options *o = &c->options;
    if (o->alpha != ENCODING_ALPHA && c->m->word_model.kind != PITH_WORD_MODEL_BM42)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_encode_options.alpha is of BM42, which the model is not");
    if ((o->k != PITH_BM25_K || o->b != PITH_BM25_B || o->avg_len != ENCODING_AVG_LEN) &&
        c->m->word_model.kind != PITH_WORD_MODEL_MINICOIL)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_encode_options.k, pith_encode_options.b and "
                          "pith_encode_options.avg_len are of miniCOIL, which the model is not");
    return PITH_OK;
}

/* Completes the caller's options. */
static pith_status encoding_take_options(encoding *c, const pith_encode_options *given,
                                         pith_error *err) {
    pith_encode_options *o = &c->options;
    *o = (pith_encode_options)PITH_ENCODE_OPTIONS_INIT;
    c->embed = (pith_embed_options)PITH_EMBED_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    PITH_TAKE_OPTIONS(c->embed, o->embed, err);
    if (!o->what) o->what = PITH_ENCODE_DENSE;
    if (o->alpha == 0) o->alpha = ENCODING_ALPHA;
    o->k = pith__bm25_number(o->k, PITH_BM25_K);
    o->b = pith__bm25_number(o->b, PITH_BM25_B);
    if (o->avg_len == 0) o->avg_len = ENCODING_AVG_LEN;
    if (c->embed.stats) c->embed.stats->texts_done = 0;
    c->stop = pith__stop_begin(&c->own_stop, &o->call);
    return pith__stop_check(c->stop, err);
}

/* Options are checked before any text runs, and heads are found here, so that a kind that the model
 * does not have is an error for an empty call too. */
static pith_status encoding_options(encoding *c, const pith_encode_options *given,
                                    pith_error *err) {
    PITH_TRY(encoding_take_options(c, given, err));
    if (c->options.what >> KINDS)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "what is %u, which is not a sum of PITH_ENCODE_* values",
                          c->options.what);
    if (c->options.role != PITH_ROLE_DOCUMENT && c->options.role != PITH_ROLE_QUERY)
        return pith__fail(err, PITH_ERR_ARGUMENT, "role is %d, which is not a PITH_ROLE_* value",
                          c->options.role);
    PITH_TRY(encoding_check_numbers(&c->options, err));
    PITH_TRY(encoding_check_hybrid(c, err));
    for (int kind = 0; kind < KINDS; kind++) {
        if (!(c->options.what & 1u << kind)) continue;
        PITH_TRY(pith__encode_find_output(&c->heads[kind], &c->outputs[kind], c->m, kind, err));
        if (kind == DENSE) continue;
        c->collected[kind] =
            (pith__collected){ .allocator = c->m->options.call.allocator, .count = c->count };
        c->collected[kind].pieces =
            pith__arena_array(&c->arena, c->count, sizeof *c->collected[kind].pieces);
        if (!c->collected[kind].pieces)
            return pith__fail_memory(err, c->count * sizeof *c->collected[kind].pieces);
    }
    return PITH_OK;
}

/* ---- results ---- */

/* An array of a result, and the caller's memory for it. */
typedef struct encoding_array {
    const char *name;
    void *memory;
    size_t room; /* elements */
} encoding_array;

static pith_status encoding_check_room(const encoding *c, const encoding_array *a, size_t count,
                                       pith_error *err) {
    if (!c->memory || (a->room >= count && (a->memory || !count))) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "%s of the results needs room for %zu elements; the caller's memory has %zu",
                      a->name, count, a->memory ? a->room : 0);
}

/* An array of the result: in the caller's memory, if there is room, or in a block of its own that
 * lives as long as the result. */
static pith_status encoding_block(void **block, encoding *c, const encoding_array *a, size_t count,
                                  size_t item_bytes, pith_error *err) {
    size_t bytes;
    PITH_TRY(encoding_check_room(c, a, count, err));
    if (c->memory) {
        *block = a->memory;
        return PITH_OK;
    }
    if (pith__mul_overflows(count, item_bytes, &bytes)) return pith__fail_memory(err, SIZE_MAX);
    *block = pith__memory_alloc(c->box->allocator, bytes, 64);
    if (!*block) return pith__fail_memory(err, bytes);
    c->box->blocks[c->box->block_count++] = *block;
    return PITH_OK;
}

static void encoding_sparse_arrays(encoding_array arrays[3], const encoding *c) {
    const pith_sparse_memory none = { 0 }, *m = c->memory ? &c->memory->sparse : &none;
    arrays[0] = (encoding_array){ "sparse.offsets", m->offsets, m->offset_room };
    arrays[1] = (encoding_array){ "sparse.indices", m->indices, m->index_room };
    arrays[2] = (encoding_array){ "sparse.values", m->values, m->value_room };
}

/* The caller's memory for one of the two kinds of token vectors, with the names that messages use.
 */
static void encoding_token_arrays(encoding_array arrays[3], const encoding *c, int kind) {
    static const char *const names[2][3] = { { "multi_vector.offsets", "multi_vector.ids",
                                               "multi_vector.vectors" },
                                             { "tokens.offsets", "tokens.ids", "tokens.vectors" } };
    const pith_token_memory none = { 0 }, *m = &none;
    const char *const *name = names[kind == TOKENS];
    if (c->memory) m = kind == TOKENS ? &c->memory->tokens : &c->memory->multi_vector;
    arrays[0] = (encoding_array){ name[0], m->offsets, m->offset_room };
    arrays[1] = (encoding_array){ name[1], m->ids, m->id_room };
    arrays[2] = (encoding_array){ name[2], m->vectors, m->float_room };
}

/* What can be told before a text is run. */
static pith_status encoding_check_offsets(const encoding *c, pith_error *err) {
    encoding_array arrays[3];
    for (int kind = SPARSE; kind < KINDS; kind++) {
        if (!c->heads[kind]) continue;
        if (kind == SPARSE)
            encoding_sparse_arrays(arrays, c);
        else
            encoding_token_arrays(arrays, c, kind);
        PITH_TRY(encoding_check_room(c, &arrays[0], c->count + 1, err));
    }
    return PITH_OK;
}

/* offsets[i]: items of the texts before text i. */
static pith_status encoding_offsets(int64_t **offsets, encoding *c, int kind,
                                    const encoding_array *a, pith_error *err) {
    void *block;
    PITH_TRY(encoding_block(&block, c, a, c->count + 1, sizeof **offsets, err));
    *offsets = block;
    (*offsets)[0] = 0;
    for (size_t i = 0; i < c->count; i++)
        (*offsets)[i + 1] = (*offsets)[i] + (int64_t)c->collected[kind].pieces[i].items;
    return PITH_OK;
}

/* Pieces were made by threads in any order; here they become one array with offsets, in the order
 * of the texts. */
static pith_status encoding_gather_sparse(encoding *c, pith_error *err) {
    pith_sparse_rows *rows = &c->box->encoded.sparse;
    const size_t items = pith__collected_items(&c->collected[SPARSE]);
    void *indices, *values;
    int64_t *offsets;
    encoding_array arrays[3];
    encoding_sparse_arrays(arrays, c);
    PITH_TRY(encoding_offsets(&offsets, c, SPARSE, &arrays[0], err));
    PITH_TRY(encoding_block(&indices, c, &arrays[1], items, sizeof(int32_t), err));
    PITH_TRY(encoding_block(&values, c, &arrays[2], items, sizeof(float), err));
    *rows = (pith_sparse_rows){ offsets, indices, values };
    for (size_t i = 0, at = 0; i < c->count; i++) {
        const pith__collected_piece *piece = &c->collected[SPARSE].pieces[i];
        const pith__sparse_weight *weights = piece->data;
        for (size_t k = 0; k < piece->items; k++, at++) {
            ((int32_t *)indices)[at] = weights[k].index;
            ((float *)values)[at] = weights[k].value;
        }
    }
    return PITH_OK;
}

/* The same for tokens. A piece holds all ids of a text, then all its vectors. */
static pith_status encoding_gather_vectors(encoding *c, int kind, pith_token_rows *rows,
                                           pith_error *err) {
    const size_t items = pith__collected_items(&c->collected[kind]);
    const size_t dim = (size_t)pith__encode_output_width(c->m, c->outputs[kind]);
    void *ids, *vectors;
    int64_t *offsets;
    encoding_array arrays[3];
    encoding_token_arrays(arrays, c, kind);
    PITH_TRY(encoding_offsets(&offsets, c, kind, &arrays[0], err));
    PITH_TRY(encoding_block(&ids, c, &arrays[1], items, sizeof(int32_t), err));
    PITH_TRY(encoding_block(&vectors, c, &arrays[2], items * dim, sizeof(float), err));
    *rows = (pith_token_rows){ offsets, ids, vectors, dim };
    for (size_t i = 0; i < c->count; i++) {
        const pith__collected_piece *piece = &c->collected[kind].pieces[i];
        if (!piece->items) continue;
        memcpy((int32_t *)ids + offsets[i], piece->data, piece->items * sizeof(int32_t));
        memcpy((float *)vectors + (size_t)offsets[i] * dim,
               (const int32_t *)piece->data + piece->items, piece->items * dim * sizeof(float));
    }
    return PITH_OK;
}

static pith_status encoding_gather(encoding *c, pith_error *err) {
    pith_encoded *e = &c->box->encoded;
    if (c->heads[SPARSE]) PITH_TRY(encoding_gather_sparse(c, err));
    if (c->heads[MULTI_VECTOR])
        PITH_TRY(encoding_gather_vectors(c, MULTI_VECTOR, &e->multi_vector, err));
    if (c->heads[TOKENS]) PITH_TRY(encoding_gather_vectors(c, TOKENS, &e->tokens, err));
    return PITH_OK;
}

/* ---- the call ---- */

/* Dense vectors have a known size, so the head writes them where they belong, and nothing is
 * gathered. */
static pith_status encoding_prepare_dense(encoding *c, pith_error *err) {
    void *block;
    c->dense = (pith__dense_request){ .pooling = c->embed.pooling,
                                      .normalize = c->embed.normalize,
                                      .dim = c->embed.dim };
    size_t dim = pith__dense_dim(pith__encoder_model(c->m->text.encoder, 0), &c->dense);
    encoding_array array = { "dense", c->memory ? c->memory->dense : NULL,
                             c->memory ? c->memory->dense_room : 0 };
    size_t floats;
    if (pith__mul_overflows(c->count, dim, &floats)) return pith__fail_memory(err, SIZE_MAX);
    PITH_TRY(encoding_block(&block, c, &array, floats, sizeof(float), err));
    c->dense.vectors = block;
    c->box->encoded.dense = block;
    c->box->encoded.dim = dim;
    return PITH_OK;
}

static pith_status encoding_prepare(encoding *c, pith_error *err) {
    PITH_TRY(encoding_check_offsets(c, err));
    if (c->heads[DENSE]) PITH_TRY(encoding_prepare_dense(c, err));
    if (c->heads[SPARSE]) PITH_TRY(encoding_prepare_sparse(c, err));
    if (c->heads[MULTI_VECTOR]) PITH_TRY(encoding_prepare_multi_vector(c, err));
    c->tokens = (pith__token_vectors_request){ .tokens = &c->collected[TOKENS] };
    return PITH_OK;
}

/* The outputs that heads read, ascending, each once. */
static int encoding_outputs(int *outputs, const encoding *c) {
    int count = 0;
    for (int output = 0; output < (int)c->m->graph->output_count; output++)
        for (int kind = 0; kind < KINDS; kind++)
            if (c->heads[kind] && c->outputs[kind] == output &&
                (!count || outputs[count - 1] != output))
                outputs[count++] = output;
    return count;
}

/* The words of a query of BM42 all weigh 1, so the network has nothing to add. */
static bool encoding_is_words(const encoding *c) {
    return c->options.what == PITH_ENCODE_SPARSE && c->m->word_model.kind == PITH_WORD_MODEL_BM42 &&
           c->options.role == PITH_ROLE_QUERY;
}

/* One run feeds all heads. Heads that read the same output share it; a query that is filled with
 * hidden tokens needs a graph with a mask, so it cannot be packed. */
static pith_status encoding_make_task(encoding *c, pith__text_task *task, pith_error *err) {
    const void *sparse = &c->sparse;
    if (c->m->modules.sparse.code) sparse = &c->code;
    if (c->m->word_model.kind) sparse = &c->word_weights;
    const void *const requests[KINDS] = { &c->dense, sparse, &c->multi_vector, &c->tokens };
    int outputs[PITH_ENCODER_OUTPUTS], count = encoding_outputs(outputs, c);
    const pith__text_view *view;
    task->use_count = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        if (!c->heads[kind]) continue;
        pith__head_use *use = &task->uses[task->use_count++];
        *use = (pith__head_use){ .head = c->heads[kind], .request = requests[kind] };
        while (outputs[use->output] != c->outputs[kind]) use->output++;
    }
    task->job = (pith__encode_job){ .texts = c->texts,
                                    .given = c->given,
                                    .count = c->count,
                                    .prompt_name = c->embed.prompt_name,
                                    .frame = c->framed ? &c->frame : NULL,
                                    .tokens_only = encoding_is_words(c),
                                    .threads = c->options.call.threads,
                                    .max_length = c->embed.max_length,
                                    .batch_tokens = c->embed.batch_tokens,
                                    .stop = c->stop,
                                    .profile = c->options.call.profile,
                                    .stats = c->embed.stats,
                                    .results = c->embed.results,
                                    .failures = c->embed.failures,
                                    .batching = c->embed.batching };
    PITH_TRY(pith__text_view_get(&view, c->m, outputs, count, !c->frame.hidden, c->stop, err));
    task->encoder = view->encoder;
    return PITH_OK;
}

static pith_status encoding_run(encoding *c, pith_error *err) {
    pith__text_task task;
    pith__progress told;
    PITH_TRY(encoding_make_task(c, &task, err));
    task.job.progress = pith__progress_begin(&told, &c->options.call);
    return pith__encoder_run(task.encoder, &task.job, task.uses, task.use_count, err);
}

/* The box exists before anything is put into it, so that a failure frees what there is. */
static pith_status encoding_begin(encoding *c, const pith_encode_options *options,
                                  pith_error *err) {
    const pith_allocator *allocator = c->m->options.call.allocator;
    PITH_TRY(encoding_options(c, options, err));
    c->box = pith__memory_alloc(allocator, sizeof *c->box, 16);
    if (!c->box) return pith__fail_memory(err, sizeof *c->box);
    *c->box = (encoded_box){ .encoded.texts = c->count, .allocator = allocator };
    return encoding_prepare(c, err);
}

/* Frees all but the results. */
static void encoding_end(encoding *c) {
    for (int kind = 0; kind < KINDS; kind++)
        if (c->collected[kind].pieces) pith__collected_free(&c->collected[kind]);
    pith__arena_free(&c->arena);
}

/* On success the results are in c->box, which the caller frees. */
static pith_status encoding_call(encoding *c, const pith_encode_options *options, pith_error *err) {
    pith__arena_init(&c->arena, c->m->options.call.allocator);
    pith_status status = encoding_begin(c, options, err);
    if (!status) status = encoding_run(c, err);
    if (!status) status = encoding_gather(c, err);
    encoding_end(c);
    if (status && c->box) pith__model_free_encoded(&c->box->encoded);
    return pith__account_explain(&c->m->account, status, err);
}

pith_status pith__model_encode(pith_encoded **encoded, const pith_model *model,
                               const pith_str *texts, size_t count,
                               const pith_encode_options *options, pith_error *err) {
    encoding c = { .m = model, .texts = texts, .count = count };
    PITH_TRY(encoding_call(&c, options, err));
    *encoded = &c.box->encoded;
    return PITH_OK;
}

pith_status pith__model_encode_into(pith_encoded *encoded, const pith_encode_memory *memory,
                                    const pith_model *model, const pith_str *texts, size_t count,
                                    const pith_encode_options *options, pith_error *err) {
    pith_encode_memory theirs = PITH_ENCODE_MEMORY_INIT;
    PITH_TAKE_OPTIONS(theirs, memory, err);
    encoding c = { .m = model, .texts = texts, .count = count, .memory = &theirs };
    PITH_TRY(encoding_call(&c, options, err));
    *encoded = c.box->encoded;
    pith__model_free_encoded(&c.box->encoded);
    return PITH_OK;
}

/* Takes over the checks of options that are of texts only. */
static pith_status encoding_give(pith__given_tokens *given, const pith_token_ids *texts,
                                 pith_encode_options *o, pith_embed_options *embed,
                                 const pith_encode_options *options, pith_error *err) {
    *o = (pith_encode_options)PITH_ENCODE_OPTIONS_INIT;
    *embed = (pith_embed_options)PITH_EMBED_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, options, err);
    PITH_TAKE_OPTIONS(*embed, o->embed, err);
    if (embed->stats) embed->stats->texts_done = 0;
    PITH_TRY(pith__given_tokens_begin(given, texts, embed->max_length, embed->prompt_name, err));
    embed->prompt_name = "";
    o->embed = embed;
    return PITH_OK;
}

pith_status pith__model_encode_tokens(pith_encoded **encoded, const pith_model *model,
                                      const pith_token_ids *texts, size_t count,
                                      const pith_encode_options *options, pith_error *err) {
    pith__given_tokens given;
    pith_encode_options o;
    pith_embed_options embed;
    PITH_TRY(encoding_give(&given, texts, &o, &embed, options, err));
    encoding c = { .m = model, .given = &given, .count = count };
    PITH_TRY(encoding_call(&c, &o, err));
    *encoded = &c.box->encoded;
    return PITH_OK;
}

pith_status pith__model_encode_tokens_into(pith_encoded *encoded, const pith_encode_memory *memory,
                                           const pith_model *model, const pith_token_ids *texts,
                                           size_t count, const pith_encode_options *options,
                                           pith_error *err) {
    pith_encode_memory theirs = PITH_ENCODE_MEMORY_INIT;
    pith__given_tokens given;
    pith_encode_options o;
    pith_embed_options embed;
    PITH_TAKE_OPTIONS(theirs, memory, err);
    PITH_TRY(encoding_give(&given, texts, &o, &embed, options, err));
    encoding c = { .m = model, .given = &given, .count = count, .memory = &theirs };
    PITH_TRY(encoding_call(&c, &o, err));
    *encoded = c.box->encoded;
    pith__model_free_encoded(&c.box->encoded);
    return PITH_OK;
}

/* ---- calls that others run ---- */

static pith_status encoding_task_gather(const pith_encoded **encoded, pith__text_task *task,
                                        pith_error *err) {
    encoding *c = (encoding *)task;
    PITH_TRY(pith__account_explain(&c->m->account, encoding_gather(c, err), err));
    *encoded = &c->box->encoded;
    return PITH_OK;
}

/* Pieces of texts and what they are put together to are there at the same time. */
static size_t encoding_token_bytes(const encoding *c) {
    size_t bytes = c->heads[SPARSE] ? sizeof(int32_t) + sizeof(float) : 0;
    for (int kind = MULTI_VECTOR; kind <= TOKENS; kind++)
        if (c->heads[kind])
            bytes += sizeof(int32_t) +
                     (size_t)pith__encode_output_width(c->m, c->outputs[kind]) * sizeof(float);
    return 2 * bytes;
}

static void encoding_task_drop(pith__text_task *task) {
    encoding *c = (encoding *)task;
    encoding_end(c);
    if (c->box) pith__model_free_encoded(&c->box->encoded);
    pith__memory_free(c->m->options.call.allocator, c);
}

/* Options of a call of tokens are others than the caller's. */
static pith_status encoding_task_begin(encoding *c, const pith_token_ids *tokens,
                                       const pith_encode_options *options, pith_error *err) {
    pith_encode_options o;
    pith_embed_options embed;
    if (tokens) {
        PITH_TRY(encoding_give(&c->own_given, tokens, &o, &embed, options, err));
        c->given = &c->own_given;
        options = &o;
    }
    PITH_TRY(encoding_begin(c, options, err));
    return encoding_make_task(c, &c->task, err);
}

pith_status pith__model_encode_task(pith__text_task **task, const pith_model *model,
                                    const pith_str *texts, const pith_token_ids *tokens,
                                    size_t count, const pith_encode_options *options,
                                    pith_error *err) {
    const pith_allocator *allocator = model->options.call.allocator;
    encoding *c = pith__memory_alloc(allocator, sizeof *c, 16);
    if (!c) return pith__account_explain(&model->account, pith__fail_memory(err, sizeof *c), err);
    *c = (encoding){ .m = model, .texts = texts, .count = count };
    c->task.gather = encoding_task_gather;
    c->task.drop = encoding_task_drop;
    pith__arena_init(&c->arena, allocator);
    pith_status status = encoding_task_begin(c, tokens, options, err);
    if (status) {
        encoding_task_drop(&c->task);
        return pith__account_explain(&model->account, status, err);
    }
    c->task.rows = c->dense.vectors;
    c->task.width = c->box->encoded.dim;
    c->task.token_bytes = encoding_token_bytes(c);
    *task = &c->task;
    return PITH_OK;
}

void pith__model_free_encoded(pith_encoded *encoded) {
    encoded_box *box = (encoded_box *)encoded;
    if (!box) return;
    for (size_t i = 0; i < box->block_count; i++) pith__memory_free(box->allocator, box->blocks[i]);
    pith__memory_free(box->allocator, box);
}
