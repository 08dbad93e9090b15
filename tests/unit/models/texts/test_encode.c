/* test_encode.c - pith/encode.h: the numbers of sparse vectors and of vectors of tokens, against
 * formulas in double on the outputs of a session, and against the libraries that publish such
 * models (tests/data/encode). */
#include "support/encode_test.h"
#include "support/failing_alloc.h"
#include "models/heads/sparse.h"

#define DIR PITH_BINARY_DIR "/encode-model"
#define COPY PITH_BINARY_DIR "/encode-copy"

static pith_str texts[ENCODE_TEXTS];

static int setup(void **state) {
    (void)state;
    encode_texts(texts);
    return 0;
}

static void check_close(double got, double wanted, double tolerance, size_t text, size_t place) {
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("text %zu, place %zu: %.9g instead of %.9g", text, place, got, wanted);
}

/* ---- sparse ---- */

typedef void weights_fn(double *weights, const int32_t *ids, const float *out, size_t count,
                        int64_t width);

/* A graph that pools: the weights that are above 0. */
static void weights_of_text(double *weights, const int32_t *ids, const float *out, size_t count,
                            int64_t width) {
    (void)ids, (void)count;
    for (int64_t i = 0; i < width; i++) weights[i] = out[i] > 0 ? out[i] : 0;
}

/* SPLADE: log(1 + max(0, logit)), the largest of the tokens. */
static void weights_of_logits(double *weights, const int32_t *ids, const float *out, size_t count,
                              int64_t width) {
    (void)ids;
    for (size_t t = 0; t < count; t++)
        for (int64_t i = 0; i < width; i++) {
            double logit = (double)out[(int64_t)t * width + i],
                   weight = log1p(logit > 0 ? logit : 0);
            if (weight > weights[i]) weights[i] = weight;
        }
}

/* BGE-M3: the largest weight of a token with this id; <s>, <pad>, </s> and <unk> have none. */
static void weights_of_tokens(double *weights, const int32_t *ids, const float *out, size_t count,
                              int64_t width) {
    assert_int_equal(width, 1);
    for (size_t t = 0; t < count; t++)
        if (ids[t] > 3 && (double)out[t] > weights[ids[t]]) weights[ids[t]] = (double)out[t];
}

static void check_sparse(const char *network, int words, size_t output, weights_fn *weights_of) {
    static float out[ROWS_MAX], row[VOCABULARY];
    encode_directory(DIR, network, words);
    pith_model *model = encode_open(DIR);
    assert_true(pith_encode_can(model) & PITH_ENCODE_SPARSE);
    pith_encoded *encoded =
        encode_all(model, texts, ENCODE_TEXTS, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, NULL);
    assert_null(encoded->dense);
    assert_null(encoded->multi_vector.offsets);
    assert_null(encoded->tokens.offsets);
    for (size_t i = 0; i < ENCODE_TEXTS; i++) {
        double weights[VOCABULARY] = { 0 };
        int32_t ids[IDS_MAX];
        int64_t width;
        size_t count = encode_ids(ids, model, texts[i]), any = 0;
        encode_reference(out, &width, model, ids, count, 0, output);
        weights_of(weights, ids, out, count, width);
        encode_spread(row, &encoded->sparse, i);
        for (size_t k = 0; k < VOCABULARY; k++) {
            check_close((double)row[k], weights[k], 1e-5, i, k);
            any += weights[k] > 1e-3;
        }
        if (texts[i].size) assert_true(any > 0);
    }
    pith_encoded_free(encoded);
    pith_model_close(model);
}

static void test_sparse(void **state) {
    (void)state;
    check_sparse("families/splade-script17", BERT_WORDS, 0, weights_of_text);
    check_sparse("encode/logits", BERT_WORDS, 0, weights_of_logits);
    check_sparse("families/bge-m3-script17", ROBERTA_WORDS, 1, weights_of_tokens);
}

/* What a head makes of logits with the settings of SpladePooling. */
static void check_head(bool sum, bool twice) {
    enum { TOKENS = 5, WIDTH = 37 };
    static float rows[TOKENS][WIDTH];
    pith_error err = PITH_ERROR_INIT;
    const pith__head *head;
    const void *at;
    pith__arena arena;
    pith__collected_piece piece = { NULL, 0 };
    counter c = { 0 };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    pith__collected collected = { &allocator, &piece, 1 };
    const pith__sparse request = { .weights = &collected };
    const pith__modules modules = { .sparse = { .sum = sum, .twice = twice } };
    const pith__head_model facts = { .modules = &modules,
                                     .width = WIDTH,
                                     .isa = pith__cpu_get()->isa };
    pith__arena_init(&arena, &pith__allocator_default);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < WIDTH; i++)
            rows[t][i] = (float)((t * 37 + i * 61) % 101 - 80) / 16; /* some columns only below 0 */
    assert_int_equal(pith__head_find(&head, "sparse", &err), PITH_OK);
    assert_int_equal(head->open(&at, &facts, &request, &arena, &err), PITH_OK);
    const pith__head_rows x = {
        .rows = rows[0], .count = TOKENS, .width = WIDTH, .scratch = &arena
    };
    for (int again = 0; again < 2; again++) assert_int_equal(head->emit(at, &x, &err), PITH_OK);
    const pith__sparse_weight *got = piece.data, *end = got + piece.items;
    assert_in_range(piece.items, 5, WIDTH - 5);
    for (int i = 0; i < WIDTH; i++) {
        double wanted = 0;
        for (int t = 0; t < TOKENS; t++) {
            double weight = log1p(rows[t][i] > 0 ? (double)rows[t][i] : 0);
            if (twice) weight = log1p(weight);
            wanted = sum ? wanted + weight : fmax(wanted, weight);
        }
        bool there = got < end && got->index == i;
        assert_int_equal(there, wanted > 0);
        if (there) check_close((double)got++->value, wanted, 1e-6, 0, (size_t)i);
    }
    assert_true(got == end);
    assert_int_equal(c.live, 1); /* the result that was given first is gone */
    pith__collected_free(&collected);
    assert_int_equal(c.live, 0);
    pith__arena_free(&arena);
}

/* One number per token: the largest of each id counts, wherever it stands. */
static void check_tokens_head(void) {
    static const float rows[] = { 0.5f, 0.25f, 0.75f, 2, 3, 1, -1, 0, 0.125f, 4, NAN };
    static const int32_t ids[] = { 9, 7, 9, 5, 7, 5, 8, 6, 9, 2, 4 }, skip[] = { 0, 2, 3 };
    static const pith__sparse_weight wanted[] = { { 5, 2 }, { 7, 3 }, { 9, 0.75f } };
    enum { TOKENS = sizeof ids / sizeof *ids, WANTED = sizeof wanted / sizeof *wanted };
    pith_error err = PITH_ERROR_INIT;
    const pith__head *head;
    const void *at;
    pith__arena arena;
    pith__collected_piece piece = { NULL, 0 };
    pith__collected collected = { &pith__allocator_default, &piece, 1 };
    const pith__sparse request = { .skip = skip, .skip_count = 3, .weights = &collected };
    const pith__modules modules = { .pooling = PITH_POOL_MEAN };
    const pith__head_model facts = { .modules = &modules, .width = 1, .isa = pith__cpu_get()->isa };
    const pith__head_rows x = {
        .rows = rows, .ids = ids, .count = TOKENS, .width = 1, .scratch = &arena
    };
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__head_find(&head, "sparse", &err), PITH_OK);
    assert_int_equal(head->open(&at, &facts, &request, &arena, &err), PITH_OK);
    assert_int_equal(head->emit(at, &x, &err), PITH_OK);
    assert_int_equal(piece.items, WANTED);
    assert_memory_equal(piece.data, wanted, sizeof wanted);
    pith__collected_free(&collected);
    pith__arena_free(&arena);
}

static void test_head(void **state) {
    (void)state;
    for (int flags = 0; flags < 4; flags++) check_head(flags & 1, flags & 2);
    check_tokens_head();
}

/* ---- vectors of tokens ---- */

/* Row `at` of what a session computes is the vector. unit: after normalisation. */
static void check_vector(const float *vector, const float *row, int64_t width, bool unit,
                         size_t text, size_t at) {
    double length = 0, own = 0;
    for (int64_t d = 0; d < width; d++)
        length += (double)row[d] * row[d], own += (double)vector[d] * vector[d];
    for (int64_t d = 0; d < width; d++)
        check_close((double)vector[d], unit ? (double)row[d] / sqrt(length) : (double)row[d], 1e-5,
                    text, at);
    if (unit) check_close(own, 1, 1e-5, text, at);
}

/* The vectors of text i are those of ids in a session, of which the first `missing` and those in
 * skip have none. */
static void check_vectors(const pith_token_rows *rows, size_t i, const pith_model *model,
                          size_t output, const int32_t *ids, size_t count, size_t hidden, bool unit,
                          const char *skip) {
    static float out[ROWS_MAX];
    int64_t width, at = rows->offsets[i];
    size_t numbers = encode_reference(out, &width, model, ids, count, hidden, output);
    size_t missing = count - numbers / (size_t)width;
    assert_int_equal(rows->dim, width);
    for (size_t t = missing; t < count; t++) {
        if (strchr(skip, ids[t])) continue;
        assert_true(at < rows->offsets[i + 1]);
        assert_int_equal(rows->ids[at], ids[t]);
        check_vector(rows->vectors + at * width, out + (int64_t)(t - missing) * width, width, unit,
                     i, t);
        at++;
    }
    assert_int_equal(at, rows->offsets[i + 1]);
}

/* A directory that says nothing of late interaction: all tokens, as the tokenizer frames them. */
static void test_vectors(void **state) {
    (void)state;
    static const struct {
        const char *network;
        int words;
        size_t output;
    } cases[] = { { "families/colbert-dynamo20", BERT_WORDS, 0 },
                  { "families/bge-m3-script17", ROBERTA_WORDS, 2 },
                  { "encode/logits", BERT_WORDS, 1 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        encode_directory(DIR, cases[k].network, cases[k].words);
        pith_model *model = encode_open(DIR);
        for (int role = PITH_ROLE_DOCUMENT; role <= PITH_ROLE_QUERY; role++) {
            pith_encoded *e = encode_all(model, texts, ENCODE_TEXTS,
                                         PITH_ENCODE_MULTI_VECTOR | PITH_ENCODE_TOKENS, role, NULL);
            for (size_t i = 0; i < ENCODE_TEXTS; i++) {
                int32_t ids[IDS_MAX];
                size_t count = encode_ids(ids, model, texts[i]);
                check_vectors(&e->multi_vector, i, model, cases[k].output, ids, count, 0, true, "");
                check_vectors(&e->tokens, i, model, cases[k].output, ids, count, 0, false, "");
            }
            pith_encoded_free(e);
        }
        pith_model_close(model);
    }
}

/* All of BGE-M3 in one pass is what each is alone, and dense vectors are those of pith_embed. */
static void test_together(void **state) {
    (void)state;
    const uint32_t kinds[] = { PITH_ENCODE_DENSE, PITH_ENCODE_SPARSE, PITH_ENCODE_MULTI_VECTOR,
                               PITH_ENCODE_TOKENS };
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    static float dense[ENCODE_TEXTS][16];
    encode_directory(DIR, "families/bge-m3-script17", ROBERTA_WORDS);
    pith_model *model = encode_open(DIR);
    assert_int_equal(pith_encode_can(model), 15);
    pith_encoded *all = encode_all(model, texts, ENCODE_TEXTS, 15, PITH_ROLE_DOCUMENT, NULL);
    for (uint32_t what = 1; what <= 15; what++) {
        pith_encoded *some = encode_all(model, texts, ENCODE_TEXTS, what, PITH_ROLE_DOCUMENT, NULL);
        pith_encoded wanted = *all;
        if (!(what & kinds[0])) wanted.dense = NULL, wanted.dim = 0;
        if (!(what & kinds[1])) wanted.sparse = (pith_sparse_rows){ 0 };
        if (!(what & kinds[2])) wanted.multi_vector = (pith_token_rows){ 0 };
        if (!(what & kinds[3])) wanted.tokens = (pith_token_rows){ 0 };
        encode_same(some, &wanted);
        pith_encoded_free(some);
    }
    assert_int_equal(all->dim, 16);
    embed(dense[0], model, texts, ENCODE_TEXTS, NULL);
    assert_memory_equal(all->dense, dense, sizeof dense);
    embed_options.normalize = 1;
    embed_options.dim = 5;
    pith_encoded *cut = encode_all(model, texts, ENCODE_TEXTS,
                                   PITH_ENCODE_DENSE | PITH_ENCODE_SPARSE, 0, &embed_options);
    embed(dense[0], model, texts, ENCODE_TEXTS, &embed_options);
    assert_int_equal(cut->dim, 5);
    assert_memory_equal(cut->dense, dense, ENCODE_TEXTS * 5 * sizeof(float));
    encode_same_sparse(&cut->sparse, &all->sparse, ENCODE_TEXTS);
    pith_encoded_free(cut);
    pith_encoded_free(all);
    pith_model_close(model);
}

/* ---- memory of the caller ---- */

static pith_encode_memory into_memory(const pith_encoded *all) {
    static float dense[ENCODE_TEXTS * 16], values[ROWS_MAX], vectors[2][ROWS_MAX];
    static int64_t offsets[3][ENCODE_TEXTS + 1];
    static int32_t ids[3][ROWS_MAX];
    pith_encode_memory m = PITH_ENCODE_MEMORY_INIT;
    const pith_token_rows *rows[2] = { &all->multi_vector, &all->tokens };
    pith_token_memory *to[2] = { &m.multi_vector, &m.tokens };
    const size_t weights = (size_t)all->sparse.offsets[ENCODE_TEXTS];
    m.dense = dense, m.dense_room = ENCODE_TEXTS * 16;
    m.sparse =
        (pith_sparse_memory){ offsets[0], ids[0], values, ENCODE_TEXTS + 1, weights, weights };
    for (int i = 0; i < 2; i++) {
        const size_t items = (size_t)rows[i]->offsets[ENCODE_TEXTS];
        assert_true(items * rows[i]->dim <= ROWS_MAX);
        *to[i] = (pith_token_memory){ offsets[i + 1],   ids[i + 1], vectors[i],
                                      ENCODE_TEXTS + 1, items,      items * rows[i]->dim };
    }
    memset(dense, 0, sizeof dense);
    memset(values, 0, sizeof values);
    memset(vectors, 0, sizeof vectors);
    return m;
}

/* The bits of pith_encode, in the caller's arrays of just the right size; each array that is too
 * small is named. */
static void test_into(void **state) {
    (void)state;
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_encoded got;
    o.what = 15;
    encode_directory(DIR, "families/bge-m3-script17", ROBERTA_WORDS);
    pith_model *model = encode_open(DIR);
    pith_encoded *all = encode_all(model, texts, ENCODE_TEXTS, 15, PITH_ROLE_DOCUMENT, NULL);
    pith_encode_memory m = into_memory(all);
    if (pith_encode_into(&got, &m, model, texts, ENCODE_TEXTS, &o, &err))
        fail_msg("%s", err.message);
    encode_same(&got, all);
    assert_ptr_equal(got.dense, m.dense);
    assert_ptr_equal(got.sparse.values, m.sparse.values);
    assert_ptr_equal(got.multi_vector.vectors, m.multi_vector.vectors);
    assert_ptr_equal(got.tokens.offsets, m.tokens.offsets);
    size_t *const rooms[] = { &m.dense_room,
                              &m.sparse.offset_room,
                              &m.sparse.index_room,
                              &m.sparse.value_room,
                              &m.multi_vector.offset_room,
                              &m.multi_vector.id_room,
                              &m.multi_vector.float_room,
                              &m.tokens.offset_room,
                              &m.tokens.id_room,
                              &m.tokens.float_room };
    static const char *const names[] = { "dense",
                                         "sparse.offsets",
                                         "sparse.indices",
                                         "sparse.values",
                                         "multi_vector.offsets",
                                         "multi_vector.ids",
                                         "multi_vector.vectors",
                                         "tokens.offsets",
                                         "tokens.ids",
                                         "tokens.vectors" };
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        char wanted[200];
        snprintf(wanted, sizeof wanted,
                 "%s of the results needs room for %zu elements; the caller's memory has %zu",
                 names[i], *rooms[i], *rooms[i] - 1);
        --*rooms[i];
        assert_int_equal(pith_encode_into(&got, &m, model, texts, ENCODE_TEXTS, &o, &err),
                         PITH_ERR_ARGUMENT);
        assert_string_equal(err.message, wanted);
        ++*rooms[i];
    }
    m.tokens.vectors = NULL;
    assert_int_equal(pith_encode_into(&got, &m, model, texts, ENCODE_TEXTS, &o, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "tokens.vectors"));
    o.what = PITH_ENCODE_DENSE; /* what is not asked for needs no memory */
    pith_encode_memory dense = PITH_ENCODE_MEMORY_INIT;
    dense.dense = m.dense, dense.dense_room = m.dense_room;
    assert_int_equal(pith_encode_into(&got, &dense, model, texts, ENCODE_TEXTS, &o, &err), PITH_OK);
    assert_memory_equal(got.dense, all->dense, ENCODE_TEXTS * 16 * sizeof(float));
    assert_null(got.sparse.values);
    assert_int_equal(pith_encode_into(&got, NULL, model, texts, ENCODE_TEXTS, &o, &err),
                     PITH_ERR_ARGUMENT);
    pith_encoded_free(all);
    pith_model_close(model);
}

/* ---- late interaction ---- */

/* The ids of a text framed for its role: cut with the marker counted, the marker behind the first
 * token, filled up. */
static size_t frame_ids(int32_t *ids, const pith_model *model, pith_str text, int32_t marker,
                        size_t cut, size_t length) {
    int32_t plain[IDS_MAX];
    size_t n = encode_ids(plain, model, text), room = cut - 1;
    if (n > room) plain[room - 1] = plain[n - 1], n = room;
    ids[0] = plain[0];
    ids[1] = marker;
    memcpy(ids + 2, plain + 1, (n - 1) * sizeof *ids);
    for (n++; n < length; n++) ids[n] = ID_MASK;
    return n;
}

static size_t frame_fillers(const int32_t *ids, size_t count) {
    size_t n = 0;
    while (n < count && ids[count - 1 - n] == ID_MASK) n++;
    return n;
}

static void check_late(const char *name, const char *file, bool expands, bool attends,
                       const char *skip) {
    enum { QUERY_LENGTH = 10, DOCUMENT_LENGTH = 12 };
    encode_directory(DIR, "families/distilbert-dynamo20", BERT_WORDS);
    encode_put(DIR, name, file);
    pith_model *model = encode_open(DIR);
    pith_encoded *d =
        encode_all(model, texts, ENCODE_TEXTS, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_DOCUMENT, NULL);
    pith_encoded *q =
        encode_all(model, texts, ENCODE_TEXTS, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, NULL);
    for (size_t i = 0; i < ENCODE_TEXTS; i++) {
        int32_t ids[IDS_MAX];
        size_t count = frame_ids(ids, model, texts[i], ID_DOCUMENT, DOCUMENT_LENGTH, 0);
        check_vectors(&d->multi_vector, i, model, 0, ids, count, 0, true, skip);
        count = frame_ids(ids, model, texts[i], ID_QUERY, QUERY_LENGTH, expands ? QUERY_LENGTH : 0);
        if (expands) assert_int_equal(count, QUERY_LENGTH);
        check_vectors(&q->multi_vector, i, model, 0, ids, count,
                      attends ? 0 : frame_fillers(ids, count), true, "");
    }
    pith_encoded_free(d);
    pith_encoded_free(q);
    pith_model_close(model);
}

static void test_late(void **state) {
    (void)state;
    /* Of a word that the vocabulary does not have, the unknown token is left out. */
    static const char dot_comma_bang[] = { ID_COMMA, ID_DOT, ID_BANG, ID_UNK, 0 },
                      given[] = { ID_DOT, 40, 21, 0 };
    check_late(
        "artifact.metadata",
        "{\"query_token_id\": \"[unused0]\", \"doc_token_id\": \"[unused1]\", \"query_maxlen\": 10,"
        " \"doc_maxlen\": 12, \"mask_punctuation\": true, \"attend_to_mask_tokens\": false, "
        "\"dim\": 8}",
        true, false, dot_comma_bang);
    check_late("artifact.metadata",
               "{\"query_maxlen\": 10, \"doc_maxlen\": 12, \"mask_punctuation\": false, "
               "\"attend_to_mask_tokens\": true}",
               true, true, "");
    check_late("config_sentence_transformers.json",
               "{\"query_prefix\": \"[unused0]\", \"document_prefix\": \"[unused1]\", "
               "\"query_length\": 10,"
               " \"document_length\": 12, \"attend_to_expansion_tokens\": false, "
               "\"do_query_expansion\": true,"
               " \"skiplist_words\": [\"w40\", \".\", \"w21\"]}",
               true, false, given);
    check_late("config_sentence_transformers.json",
               "{\"query_prefix\": \"[unused0]\", \"document_prefix\": \"[unused1]\", "
               "\"query_length\": 10,"
               " \"document_length\": 12, \"attend_to_expansion_tokens\": true}",
               true, true, dot_comma_bang);
    check_late("config_sentence_transformers.json",
               "{\"query_prefix\": \"[unused0]\", \"document_prefix\": \"[unused1]\", "
               "\"query_length\": 10,"
               " \"document_length\": 12, \"do_query_expansion\": false, \"skiplist_words\": []}",
               false, false, "");
}

/* A caller's max_length is the length for queries too, and the number of positions limits both. */
static void test_late_lengths(void **state) {
    (void)state;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    encode_directory(DIR, "families/distilbert-dynamo20", BERT_WORDS);
    encode_put(DIR, "artifact.metadata", "{\"query_maxlen\": 9, \"doc_maxlen\": 1000}");
    encode_put(DIR, "config.json", "{\"model_type\": \"bert\", \"max_position_embeddings\": 16}");
    pith_model *model = encode_open(DIR);
    for (int32_t length = 8; length <= 20; length += 12) {
        options.max_length = length;
        const size_t cut = length < 16 ? (size_t)length : 16;
        pith_encoded *q = encode_all(model, texts, ENCODE_TEXTS, PITH_ENCODE_MULTI_VECTOR,
                                     PITH_ROLE_QUERY, &options);
        for (size_t i = 0; i < ENCODE_TEXTS; i++) {
            int32_t ids[IDS_MAX];
            size_t count = frame_ids(ids, model, texts[i], ID_QUERY, cut, cut);
            assert_int_equal(q->multi_vector.offsets[i + 1] - q->multi_vector.offsets[i], cut);
            check_vectors(&q->multi_vector, i, model, 0, ids, count, frame_fillers(ids, count),
                          true, "");
        }
        pith_encoded_free(q);
    }
    pith_model_close(model);
}

/* Without fillers a query that hides them runs on its own, one that attends to them runs packed:
 * the same bits. */
static void test_late_packed(void **state) {
    (void)state;
    pith_encoded *results[2];
    pith_model *models[2];
    for (int attends = 0; attends < 2; attends++) {
        encode_directory(DIR, "families/distilbert-dynamo20", BERT_WORDS);
        encode_put(DIR, "artifact.metadata",
                   attends ? "{\"query_maxlen\": 4, \"attend_to_mask_tokens\": true}"
                           : "{\"query_maxlen\": 4}");
        models[attends] = encode_open(DIR);
        results[attends] =
            encode_all(models[attends], texts, 2, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, NULL);
    }
    encode_same(results[0], results[1]);
    for (int attends = 0; attends < 2; attends++) {
        pith_encoded_free(results[attends]);
        pith_model_close(models[attends]);
    }
}

static void test_late_refused(void **state) {
    (void)state;
    encode_directory(DIR, "families/distilbert-dynamo20", BERT_WORDS);
    encode_put(DIR, "artifact.metadata", "{\"query_token_id\": \"[Q]\"}");
    pith_model *model = encode_open(DIR);
    encode_refuses(model, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, PITH_ERR_FORMAT,
                   "the vocabulary does not have '[Q]'");
    encode_refuses(model, PITH_ENCODE_MULTI_VECTOR | PITH_ENCODE_DENSE, PITH_ROLE_DOCUMENT,
                   PITH_ERR_ARGUMENT, "in a call of their own");
    encode_refuses(model, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, PITH_ERR_UNSUPPORTED,
                   "no sparse output");
    pith_model_close(model);

    encode_directory(DIR, "encode/logits", BERT_WORDS); /* it has no attention_mask */
    encode_put(DIR, "artifact.metadata", "{}");
    model = encode_open(DIR);
    encode_refuses(model, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, PITH_ERR_UNSUPPORTED,
                   "no input 'attention_mask'");
    pith_encoded_free(
        encode_all(model, texts, 2, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_DOCUMENT, NULL));
    pith_model_close(model);
    encode_put(DIR, "artifact.metadata", "{\"attend_to_mask_tokens\": true, \"query_maxlen\": 6}");
    model = encode_open(DIR);
    pith_encoded *q = encode_all(model, texts, 2, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, NULL);
    assert_int_equal(q->multi_vector.offsets[2], 6 + 6);
    pith_encoded_free(q);
    pith_model_close(model);

    encode_directory(DIR, "families/bge-m3-script17", ROBERTA_WORDS);
    encode_put(DIR, "config_sentence_transformers.json",
               "{\"query_prefix\": \"\", \"document_prefix\": \"\"}");
    model = encode_open(DIR);
    /* <mask>, which is 4 here too */
    q = encode_all(model, texts, 1, PITH_ENCODE_MULTI_VECTOR, PITH_ROLE_QUERY, NULL);
    assert_int_equal(q->multi_vector.offsets[1], 32 - 1);
    assert_int_equal(q->multi_vector.ids[30], ID_MASK);
    pith_encoded_free(q);
    pith_model_close(model);
}

/* ---- beside the libraries ---- */

static void check_line_sparse(const pith_sparse_rows *rows, const double *wanted, size_t line) {
    float row[VOCABULARY];
    encode_spread(row, rows, 0);
    for (size_t k = 0; k < VOCABULARY; k++) check_close((double)row[k], wanted[k], 1e-4, line, k);
}

/* A line of expected.jsonl. */
static void check_line(const pith_model *model, pith_str line, size_t number, pith__arena *arena) {
    static double weights[VOCABULARY], vectors[IDS_MAX * 64];
    int32_t indices[VOCABULARY], ids[IDS_MAX];
    size_t index_count = 0, value_count = 0, id_count = 0, vector_count = 0;
    pith_error err = PITH_ERROR_INIT;
    pith_str key, text = PITH_STR("");
    pith__json j;
    int role = PITH_ROLE_DOCUMENT;
    memset(weights, 0, sizeof weights);
    pith__json_init(&j, line, "expected.jsonl", arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        if (pith__str_is(key, "text"))
            text = pith__json_copy(&j, arena, pith__json_string(&j));
        else if (pith__str_is(key, "role"))
            role =
                pith__str_is(pith__json_string(&j), "query") ? PITH_ROLE_QUERY : PITH_ROLE_DOCUMENT;
        else if (pith__str_is(key, "indices"))
            for (pith__json_array(&j); pith__json_next_item(&j);)
                indices[index_count++] = (int32_t)pith__json_int(&j);
        else if (pith__str_is(key, "values"))
            for (pith__json_array(&j); pith__json_next_item(&j);)
                weights[indices[value_count++]] = pith__json_double(&j);
        else if (pith__str_is(key, "ids"))
            for (pith__json_array(&j); pith__json_next_item(&j);)
                ids[id_count++] = (int32_t)pith__json_int(&j);
        else
            for (pith__json_array(&j); pith__json_next_item(&j);)
                for (pith__json_array(&j); pith__json_next_item(&j);)
                    vectors[vector_count++] = pith__json_double(&j);
    }
    if (j.failed) fail_msg("%s", err.message);
    pith_encoded *e = encode_all(
        model, &text, 1, id_count ? PITH_ENCODE_MULTI_VECTOR : PITH_ENCODE_SPARSE, role, NULL);
    if (!id_count) check_line_sparse(&e->sparse, weights, number);
    if (id_count) {
        const pith_token_rows *rows = &e->multi_vector;
        assert_int_equal(rows->offsets[1], id_count);
        assert_int_equal(rows->dim * id_count, vector_count);
        assert_memory_equal(rows->ids, ids, id_count * sizeof *ids);
        for (size_t k = 0; k < vector_count; k++)
            check_close((double)rows->vectors[k], vectors[k], 1e-5, number, k);
    }
    pith_encoded_free(e);
}

/* A copy of a directory of links, in which an ONNX file takes the place of the weights. */
static void copy_directory(const char *from, const char *graph) {
    static const char *const names[] = { "config.json",
                                         "modules.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "config_sentence_transformers.json",
                                         "sentence_bert_config.json",
                                         "1_SpladePooling/config.json" };
    mkdir(COPY, 0777);
    mkdir(COPY "/1_SpladePooling", 0777);
    unlink(COPY "/model.onnx");
    assert_int_equal(symlink(graph, COPY "/model.onnx"), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[700], target[1000];
        snprintf(path, sizeof path, COPY "/%s", names[i]);
        snprintf(target, sizeof target, "%s/%s", from, names[i]);
        unlink(path);
        if (!access(target, R_OK)) assert_int_equal(symlink(target, path), 0);
    }
}

static void check_library(const char *name, const char *graph) {
    char path[700];
    pith__arena arena;
    pith__file file;
    size_t number = 0;
    pith__arena_init(&arena, &pith__allocator_default);
    snprintf(path, sizeof path, PITH_TEST_DATA "/encode/%s", name);
    if (graph) copy_directory(path, graph);
    pith_model *model = encode_open(graph ? COPY : path);
    snprintf(path, sizeof path, PITH_TEST_DATA "/encode/%s/expected.jsonl", name);
    assert_int_equal(pith__file_open(&file, path, false, NULL, NULL), PITH_OK);
    const char *p = (const char *)file.data, *end = p + file.size;
    for (const char *stop; p < end && (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1)
        check_line(model, (pith_str){ p, (size_t)(stop - p) }, number++, &arena);
    assert_true(number >= 7);
    pith__file_close(&file);
    pith_model_close(model);
    pith__arena_free(&arena);
}

static void test_libraries(void **state) {
    (void)state;
    static const char graph[] = PITH_TEST_DATA "/encode/splade-max/logits.onnx";
    static const char *const names[] = { "splade-max",     "splade-sum",       "splade-twice",
                                         "colbert-hidden", "colbert-attended", "colbert-short" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_library(names[i], NULL);
        if (i < 3) check_library(names[i], graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparse),      cmocka_unit_test(test_head),
        cmocka_unit_test(test_vectors),     cmocka_unit_test(test_together),
        cmocka_unit_test(test_late),        cmocka_unit_test(test_late_lengths),
        cmocka_unit_test(test_late_packed), cmocka_unit_test(test_late_refused),
        cmocka_unit_test(test_libraries),   cmocka_unit_test(test_into),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
