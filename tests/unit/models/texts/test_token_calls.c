/* test_token_calls.c - texts that are tokens already give the bits of the texts themselves, in each
 * architecture and head; and a call with results goes on after bad texts, as if they were not
 * there. */
#include <dirent.h>

#include "support/arena_fails.h"
#include "support/encode_test.h"
#include "support/failing_alloc.h"
#include "support/score_test.h"

#define HERE PITH_BINARY_DIR "/token-calls"
#define ARTIFACT "{\"query_maxlen\": 12, \"doc_maxlen\": 14}"
#define LATE PITH_ENCODE_MULTI_VECTOR

enum { MOST = 64, WIDE = 1024 };

/* Texts as tokens, which the arrays hold. */
typedef struct rows {
    pith_tokens tokens[MOST];
    pith_token_ids texts[MOST];
    size_t count;
} rows;

static pith_error err;
static cases all;

static void make_rows(rows *r, const pith_tokenizer *tokenizer, const pith_str *texts,
                      const pith_str *pairs, size_t count, int32_t max_length) {
    pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
    o.max_length = max_length;
    r->count = count;
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        pith_tokens *t = &r->tokens[i];
        *t = (pith_tokens)PITH_TOKENS_INIT;
        if (pith_tokenize(t, tokenizer, texts[i], pairs ? &pairs[i] : NULL, &o, &err))
            fail_msg("%s", err.message);
        r->texts[i] = (pith_token_ids){ t->ids, t->type_ids, t->count, 0 };
    }
}

static void free_rows(rows *r) {
    for (size_t i = 0; i < r->count; i++) pith_tokens_free(&r->tokens[i]);
}

static bool is_nan(const float *row, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        if (!isnan(row[i])) return false;
    return true;
}

/* ---- the same bits ---- */

static void same_vectors(const pith_model *model, const char *name) {
    static float wanted[ENCODE_TEXTS * WIDE], got[ENCODE_TEXTS * WIDE];
    pith_str texts[ENCODE_TEXTS];
    rows r;
    const size_t dim = pith_embed_dim(model, NULL);
    assert_true(dim <= WIDE);
    encode_texts(texts);
    embed(wanted, model, texts, ENCODE_TEXTS, NULL);
    make_rows(&r, pith_model_tokenizer(model), texts, NULL, ENCODE_TEXTS,
              (int32_t)pith_embed_max_length(model, NULL));
    for (int threads = 1; threads <= 3; threads++)
        for (int typed = 0; typed < 2; typed++) {
            pith_embed_stats stats = { 0 };
            pith_text_result results[ENCODE_TEXTS];
            pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
            o.call.threads = threads;
            o.stats = &stats;
            if (threads > 1) o.results = results;
            for (size_t i = 0; i < r.count; i++)
                r.texts[i].type_ids = typed ? r.tokens[i].type_ids : NULL;
            memset(got, 0x55, sizeof got);
            if (pith_embed_tokens(got, model, r.texts, ENCODE_TEXTS, &o, &err))
                fail_msg("%s: %s", name, err.message);
            if (memcmp(got, wanted, ENCODE_TEXTS * dim * sizeof *got))
                fail_msg("%s: other bits", name);
            uint64_t tokens = 0;
            for (size_t i = 0; i < r.count; i++) tokens += r.texts[i].count;
            assert_int_equal(stats.tokens, tokens);
            assert_int_equal(stats.texts_done, ENCODE_TEXTS);
            for (size_t i = 0; i < r.count && o.results; i++) {
                assert_int_equal(results[i].status, PITH_OK);
                assert_int_equal(results[i].tokens, r.texts[i].count);
                assert_int_equal(results[i].truncated, 0);
            }
        }
    free_rows(&r);
}

/* All networks of texts there are, packed and one by one. */
static void test_architectures(void **state) {
    (void)state;
    DIR *d = opendir(PITH_TEST_DATA "/families");
    int done = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' || strchr(e->d_name, 'O') == e->d_name) continue;
        for (int level = 0; level < 2; level++) {
            char network[300];
            pith_open_options o = PITH_OPEN_OPTIONS_INIT;
            pith_model *model = NULL;
            o.optimization = level ? 0 : PITH_OPTIMIZATION_NONE;
            snprintf(network, sizeof network, "families/%s", e->d_name);
            encode_directory(HERE, network,
                             strstr(network, "roberta") ? ROBERTA_WORDS : BERT_WORDS);
            if (pith_model_open(&model, HERE, &o, &err)) continue;
            if (pith_embed_dim(model, NULL)) {
                same_vectors(model, e->d_name);
                done++;
            }
            pith_model_close(model);
        }
    }
    closedir(d);
    print_message("%d models\n", done);
    assert_true(done > 50);
}

/* Rows of pairs, with the type ids that pith_tokenize gives. */
static void same_scores(const char *name) {
    float wanted[CASES * LABELS], got[CASES * LABELS];
    char path[700];
    snprintf(path, sizeof path, TASKS "%s", name);
    pith_model *model = open_task(path, NULL);
    const size_t labels = pith_label_count(model);
    const int32_t most = (int32_t)pith_embed_max_length(model, NULL);
    assert_true(labels && labels <= LABELS);
    for (int paired = 0; paired < 2; paired++) {
        rows r;
        make_rows(&r, pith_model_tokenizer(model), all.texts, paired ? all.pairs : NULL, CASES,
                  most);
        if (pith_classify(wanted, model, all.texts, paired ? all.pairs : NULL, CASES, NULL, &err) ||
            pith_classify_tokens(got, model, r.texts, CASES, NULL, &err))
            fail_msg("%s: %s", name, err.message);
        if (memcmp(got, wanted, CASES * labels * sizeof *got)) fail_msg("%s: other bits", name);
        if (labels == 1 && paired) {
            for (int i = 0; i < CASES; i++)
                if (pith_rerank(&wanted[i], model, all.texts[i], &all.pairs[i], 1, NULL, &err))
                    fail_msg("%s: %s", name, err.message);
            if (pith_rerank_tokens(got, model, r.texts, CASES, NULL, &err))
                fail_msg("%s: %s", name, err.message);
            if (memcmp(got, wanted, CASES * sizeof *got)) fail_msg("%s: other bits", name);
        }
        if (labels > 1)
            assert_int_equal(pith_rerank_tokens(got, model, r.texts, CASES, NULL, &err),
                             PITH_ERR_UNSUPPORTED);
        free_rows(&r);
    }
    pith_model_close(model);
}

static void test_scores(void **state) {
    (void)state;
    static const char *const names[] = { "cross-bert",        "cross-bert-onnx",
                                         "cross-distilbert",  "cross-modernbert",
                                         "cross-xlm-roberta", "labels-bert" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) same_scores(names[i]);
}

/* Heads of all kinds, with what late interaction puts into a text. */
static void same_encoded(const pith_model *model, uint32_t what, int role, int32_t max_length) {
    pith_str texts[ENCODE_TEXTS];
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_encoded *got = NULL;
    rows r;
    encode_texts(texts);
    make_rows(&r, pith_model_tokenizer(model), texts, NULL, ENCODE_TEXTS, max_length);
    pith_encoded *wanted = encode_all(model, texts, ENCODE_TEXTS, what, role, NULL);
    o.what = what;
    o.role = role;
    for (o.call.threads = 1; o.call.threads <= 2; o.call.threads++) {
        if (pith_encode_tokens(&got, model, r.texts, ENCODE_TEXTS, &o, &err))
            fail_msg("%s", err.message);
        encode_same(got, wanted);
        pith_encoded_free(got);
    }
    pith_encoded_free(wanted);
    free_rows(&r);
}

static void test_encoded(void **state) {
    (void)state;
    static const struct subject {
        const char *network, *artifact;
        int words, role;
        uint32_t what;
        int32_t max_length;
    } subjects[] = {
        { "families/bge-m3-script17", NULL, ROBERTA_WORDS, PITH_ROLE_DOCUMENT, 15, 0 },
        { "families/splade-script17", NULL, BERT_WORDS, PITH_ROLE_DOCUMENT, 3, 0 },
        { "families/distilbert-dynamo20", NULL, BERT_WORDS, PITH_ROLE_DOCUMENT, 13, 0 },
        { "families/distilbert-dynamo20", ARTIFACT, BERT_WORDS, PITH_ROLE_DOCUMENT, LATE, 13 },
        { "families/distilbert-dynamo20", ARTIFACT, BERT_WORDS, PITH_ROLE_QUERY, LATE, 11 },
        { "families/colbert-dynamo20", "{\"query_maxlen\": 12, \"attend_to_mask_tokens\": true}",
          BERT_WORDS, PITH_ROLE_QUERY, LATE, 11 },
    };
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const struct subject *s = &subjects[i];
        encode_directory(HERE, s->network, s->words);
        if (s->artifact) encode_put(HERE, "artifact.metadata", s->artifact);
        pith_model *model = encode_open(HERE);
        same_encoded(model, s->what, s->role, s->max_length);
        pith_model_close(model);
    }
    static const char *const word_models[] = { "bm42", "minicoil" };
    for (size_t i = 0; i < 2; i++) {
        char path[700];
        snprintf(path, sizeof path, PITH_TEST_DATA "/hybrid/%s", word_models[i]);
        pith_model *model = encode_open(path);
        same_encoded(model, PITH_ENCODE_SPARSE, PITH_ROLE_DOCUMENT, 0);
        same_encoded(model, PITH_ENCODE_SPARSE, PITH_ROLE_QUERY, 0);
        pith_model_close(model);
    }
}

/* Pooling leaves out the prompt, whose tokens the caller counts. */
static void test_prompt(void **state) {
    (void)state;
    static const char line[] = "the cat sat on the mat";
    float wanted[WIDE], got[WIDE], whole[WIDE];
    pith_model *model = encode_open(PITH_TEST_DATA "/modules/pool-prompt");
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    const size_t dim = pith_embed_dim(model, NULL);
    o.prompt_name = "query";
    const pith_str text = pith__str_of(line);
    if (pith_embed(wanted, model, &text, 1, &o, &err)) fail_msg("%s", err.message);
    const pith_str both[] = { pith__str_of("query : the the cat sat on the mat"),
                              pith__str_of("query : the ") };
    rows r;
    make_rows(&r, pith_model_tokenizer(model), both, NULL, 2, 0);
    assert_int_equal(pith_embed_tokens(whole, model, r.texts, 1, NULL, &err), PITH_OK);
    r.texts[0].prompt = r.texts[1].count - (r.tokens[1].special[r.texts[1].count - 1] ? 1 : 0);
    assert_int_equal(pith_embed_tokens(got, model, r.texts, 1, NULL, &err), PITH_OK);
    assert_memory_equal(got, wanted, dim * sizeof *got);
    assert_memory_not_equal(whole, wanted, dim * sizeof *got);
    r.texts[0].prompt = SIZE_MAX; /* more than there are */
    assert_int_equal(pith_embed_tokens(got, model, r.texts, 1, NULL, &err), PITH_OK);
    free_rows(&r);
    pith_model_close(model);
}

/* A table of vectors has a tokenizer that leaves out tokens, if it is opened by itself. */
static void test_tables(void **state) {
    (void)state;
    static const char *const names[] = { "model2vec", "static" };
    const pith_str texts[] = { pith__str_of("the cat sat on the mat"), pith__str_of("@#$ zzqx"),
                               pith__str_of("") };
    for (size_t i = 0; i < 2; i++) {
        float wanted[3 * WIDE], got[3 * WIDE];
        char path[700];
        pith_tokenizer *tokenizer = NULL;
        rows r;
        snprintf(path, sizeof path, PITH_TEST_DATA "/modules/%s", names[i]);
        pith_model *model = encode_open(path);
        const size_t dim = pith_embed_dim(model, NULL);
        assert_true(dim <= WIDE);
        assert_int_equal(pith_tokenizer_open(&tokenizer, path, NULL, &err), PITH_OK);
        make_rows(&r, tokenizer, texts, NULL, 3, 0);
        embed(wanted, model, texts, 3, NULL);
        if (pith_embed_tokens(got, model, r.texts, 3, NULL, &err)) fail_msg("%s", err.message);
        assert_memory_equal(got, wanted, 3 * dim * sizeof *got);
        free_rows(&r);
        pith_tokenizer_close(tokenizer);
        pith_model_close(model);
    }
}

/* ---- bad texts ---- */

enum { TEXTS = 40 };

/* Every kind of bad text, among TEXTS; bad[i]: the status of text i. */
static void spoil(pith_token_ids *texts, pith_status *bad, const char **says) {
    static int32_t negative[] = { 2, 20, -1, 3 }, beyond[] = { 2, VOCABULARY, 3 };
    static int32_t ids[] = { 2, 20, 21, 3 }, types[] = { 0, 0, 1000, 0 }, less[] = { 0, -1, 0, 0 };
    static int32_t more[5000];
    for (size_t i = 0; i < 5000; i++) more[i] = 20;
    memset(bad, 0, TEXTS * sizeof *bad);
    const struct {
        size_t at;
        pith_token_ids text;
        pith_status status;
        const char *says;
    } kinds[] = {
        { 0,
          { negative, NULL, 4, 0 },
          PITH_ERR_ARGUMENT,
          "text 0: id -1 at place 2 is not in the vocabulary, which ends before 96" },
        { 7,
          { beyond, NULL, 3, 0 },
          PITH_ERR_ARGUMENT,
          "text 7: id 96 at place 1 is not in the vocabulary" },
        { 8, { ids, less, 4, 0 }, PITH_ERR_ARGUMENT, "text 8: type id -1 at place 1 is negative" },
        { 20, { ids, types, 4, 0 }, PITH_ERR_RUN, "text 20: " },
        { 21,
          { more, NULL, 5000, 0 },
          PITH_ERR_ARGUMENT,
          "text 21: has 5000 tokens; the model has positions for " },
        { TEXTS - 1, { ids, types, 4, 0 }, PITH_ERR_RUN, "text 39: " },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        texts[kinds[i].at] = kinds[i].text;
        bad[kinds[i].at] = kinds[i].status;
        says[kinds[i].at] = kinds[i].says;
    }
}

static pith_model *open_bert(int optimization, const pith_allocator *allocator) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_model *model = NULL;
    encode_directory(HERE, "models/bert-base-script17-sdpa", BERT_WORDS);
    encode_put(HERE, "config.json", "{\"model_type\": \"bert\", \"max_position_embeddings\": 64}");
    o.optimization = optimization;
    o.call.allocator = allocator;
    if (pith_model_open(&model, HERE, &o, &err)) fail_msg("%s", err.message);
    return model;
}

static void check_bad(const pith_model *model, const pith_token_ids *texts, const float *wanted,
                      const pith_status *bad, const char *const *says) {
    static float got[TEXTS * WIDE];
    static pith_text_result results[TEXTS];
    static pith_error failures[TEXTS];
    const size_t dim = pith_embed_dim(model, NULL);
    for (int threads = 1; threads <= 3; threads++)
        for (int most = 3; most <= 48; most += 45) {
            pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
            pith_batching b = PITH_BATCHING_INIT;
            pith_embed_stats stats = { 0 };
            o.call.threads = threads;
            o.batching = &b;
            o.stats = &stats;
            o.results = results;
            o.failures = failures;
            b.most = most;
            memset(got, 0, sizeof got);
            memset(results, 0xff, sizeof results);
            memset(failures, 0xff, sizeof failures);
            if (pith_embed_tokens(got, model, texts, TEXTS, &o, &err)) fail_msg("%s", err.message);
            assert_int_equal(stats.texts_done, TEXTS);
            for (size_t i = 0; i < TEXTS; i++) {
                assert_int_equal(results[i].status, bad[i]);
                assert_int_equal(failures[i].code, bad[i]);
                assert_int_equal(results[i].tokens, bad[i] ? 0 : texts[i].count);
                if (bad[i]) {
                    assert_true(is_nan(got + i * dim, dim));
                    if (strncmp(failures[i].message, says[i], strlen(says[i])))
                        fail_msg("'%s', not '%s'", failures[i].message, says[i]);
                } else {
                    assert_memory_equal(got + i * dim, wanted + i * dim, dim * sizeof *got);
                    assert_string_equal(failures[i].message, "");
                }
            }
        }
}

/* Packed, and one by one. Without results the first bad text ends the call. */
static void test_bad_tokens(void **state) {
    (void)state;
    static float wanted[TEXTS * WIDE], got[TEXTS * WIDE];
    for (int level = 0; level < 2; level++) {
        pith_model *model = open_bert(level ? 0 : PITH_OPTIMIZATION_NONE, NULL);
        pith_str words[TEXTS];
        pith_status bad[TEXTS];
        const char *says[TEXTS];
        rows r;
        for (size_t i = 0; i < TEXTS; i += ENCODE_TEXTS) encode_texts(words + i);
        make_rows(&r, pith_model_tokenizer(model), words, NULL, TEXTS, 0);
        assert_int_equal(pith_embed_tokens(wanted, model, r.texts, TEXTS, NULL, &err), PITH_OK);
        spoil(r.texts, bad, says);
        check_bad(model, r.texts, wanted, bad, says);
        for (size_t first = 0; first < TEXTS; first++) {
            if (!bad[first]) continue;
            assert_int_equal(pith_embed_tokens(got, model, r.texts + first, 1, NULL, &err),
                             bad[first]);
            if (strncmp(err.message, "text 0: ", 8)) fail_msg("%s", err.message);
        }
        assert_int_equal(pith_embed_tokens(got, model, r.texts + 9, 20, NULL, &err),
                         PITH_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "text 12: has 5000 tokens"));
        assert_int_equal(pith_embed_tokens(got, model, r.texts + 22, TEXTS - 22, NULL, &err),
                         PITH_ERR_RUN);
        if (strncmp(err.message, "text 17: ", 9)) fail_msg("%s", err.message);
        assert_int_equal(pith_embed_tokens(got, model, NULL, 0, NULL, &err), PITH_OK);
        free_rows(&r);
        pith_model_close(model);
    }
}

/* Texts that are not UTF-8, in each kind of result. */
static void test_bad_texts(void **state) {
    (void)state;
    pith_str texts[ENCODE_TEXTS + 2], good[ENCODE_TEXTS];
    pith_text_result results[ENCODE_TEXTS + 2];
    pith_error failures[ENCODE_TEXTS + 2];
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    encode_texts(good);
    texts[0] = (pith_str){ "w20 \xff", 5 };
    memcpy(texts + 1, good, sizeof good);
    texts[ENCODE_TEXTS + 1] = (pith_str){ "\xc3", 1 };
    embed_options.results = results;
    embed_options.failures = failures;
    encode_directory(HERE, "families/bge-m3-script17", ROBERTA_WORDS);
    pith_model *model = encode_open(HERE);
    pith_encoded *wanted = encode_all(model, good, ENCODE_TEXTS, 15, PITH_ROLE_DOCUMENT, NULL);
    pith_encoded *got =
        encode_all(model, texts, ENCODE_TEXTS + 2, 15, PITH_ROLE_DOCUMENT, &embed_options);
    assert_true(is_nan(got->dense, got->dim));
    assert_true(is_nan(got->dense + (ENCODE_TEXTS + 1) * got->dim, got->dim));
    const int64_t *offsets[] = { got->sparse.offsets, got->multi_vector.offsets,
                                 got->tokens.offsets };
    for (int k = 0; k < 3; k++) {
        assert_int_equal(offsets[k][1], 0);
        assert_int_equal(offsets[k][ENCODE_TEXTS + 1], offsets[k][ENCODE_TEXTS + 2]);
    }
    pith_encoded inner = *got;
    inner.texts = ENCODE_TEXTS;
    inner.dense += got->dim;
    inner.sparse.offsets++;
    inner.multi_vector.offsets++;
    inner.tokens.offsets++;
    encode_same(&inner, wanted);
    assert_int_equal(results[0].status, PITH_ERR_ARGUMENT);
    assert_string_equal(failures[0].message, "text 0: invalid UTF-8 at byte 4");
    assert_int_equal(results[1].status, PITH_OK);
    assert_int_equal(failures[ENCODE_TEXTS + 1].code, PITH_ERR_ARGUMENT);
    pith_encoded_free(got);
    pith_encoded_free(wanted);
    pith_model_close(model);
}

static void test_bad_scores(void **state) {
    (void)state;
    pith_model *model = open_task(TASKS "cross-bert", NULL);
    pith_str documents[CASES];
    float wanted[CASES], got[CASES];
    pith_text_result results[CASES];
    pith_score_options o = PITH_SCORE_OPTIONS_INIT;
    memcpy(documents, all.pairs, sizeof documents);
    assert_int_equal(pith_rerank(wanted, model, all.texts[0], documents, CASES, NULL, &err),
                     PITH_OK);
    documents[5] = (pith_str){ "\xff", 1 };
    o.results = results;
    if (pith_rerank(got, model, all.texts[0], documents, CASES, &o, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(results[i].status, i == 5 ? PITH_ERR_ARGUMENT : PITH_OK);
        if (i == 5)
            assert_true(isnan(got[i]));
        else
            assert_memory_equal(&got[i], &wanted[i], sizeof *got);
    }
    assert_int_equal(pith_rerank(got, model, documents[5], documents, CASES, &o, &err),
                     PITH_ERR_ARGUMENT);
    pith_model_close(model);
}

/* What is cut is told of; and an early end is no matter of a text. */
static void test_results(void **state) {
    (void)state;
    pith_model *model = open_bert(0, NULL);
    pith_str texts[ENCODE_TEXTS];
    static float got[ENCODE_TEXTS * WIDE];
    pith_text_result results[ENCODE_TEXTS];
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    int cancel = 1;
    encode_texts(texts);
    o.results = results;
    o.max_length = 5;
    embed(got, model, texts, ENCODE_TEXTS, &o);
    for (size_t i = 0; i < ENCODE_TEXTS; i++) {
        int32_t ids[IDS_MAX];
        const size_t count = encode_ids(ids, model, texts[i]);
        assert_int_equal(results[i].truncated, count > 5);
        assert_int_equal(results[i].tokens, count > 5 ? 5 : count);
    }
    o.call.cancel = &cancel;
    assert_int_equal(pith_embed(got, model, texts, ENCODE_TEXTS, &o, &err), PITH_ERR_CANCELLED);
    o.call.cancel = NULL;
    o.call.deadline_ns = 1;
    assert_int_equal(pith_embed(got, model, texts, ENCODE_TEXTS, &o, &err), PITH_ERR_DEADLINE);
    pith_model_close(model);
}

/* ---- options ---- */

static void test_refused(void **state) {
    (void)state;
    static const int32_t ids[] = { 2, 20, 3 };
    const pith_token_ids text = { ids, NULL, 3, 0 };
    pith_model *model = open_bert(0, NULL);
    static float got[WIDE];
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    pith_encode_options e = PITH_ENCODE_OPTIONS_INIT;
    pith_encoded *encoded = NULL;
    o.max_length = 9;
    e.embed = &o;
    assert_int_equal(pith_embed_tokens(got, model, &text, 1, &o, &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message,
                        "max_length is 9, but texts that are tokens are never cut; leave it 0");
    assert_int_equal(pith_encode_tokens(&encoded, model, &text, 1, &e, &err), PITH_ERR_ARGUMENT);
    o.max_length = 0;
    o.prompt_name = "query";
    assert_int_equal(pith_embed_tokens(got, model, &text, 1, &o, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "prompt_name is 'query'"));
    o.prompt_name = "";
    assert_int_equal(pith_embed_tokens(got, model, &text, 1, &o, &err), PITH_OK);
    assert_int_equal(pith_encode_tokens(&encoded, model, &text, 1, &e, &err), PITH_OK);
    assert_memory_equal(encoded->dense, got, encoded->dim * sizeof *got);
    pith_encode_memory memory = PITH_ENCODE_MEMORY_INIT;
    pith_encoded into;
    static float mine[WIDE];
    memory.dense = mine;
    memory.dense_room = encoded->dim - 1;
    assert_int_equal(pith_encode_tokens_into(&into, &memory, model, &text, 1, &e, &err),
                     PITH_ERR_ARGUMENT);
    memory.dense_room = encoded->dim;
    assert_int_equal(pith_encode_tokens_into(&into, &memory, model, &text, 1, &e, &err), PITH_OK);
    assert_memory_equal(mine, got, encoded->dim * sizeof *got);
    pith_encoded_free(encoded);
    pith_model_close(model);
    model = open_task(TASKS "cross-bert", NULL);
    pith_score_options s = PITH_SCORE_OPTIONS_INIT;
    s.instruction = "x";
    assert_int_equal(pith_classify_tokens(got, model, &text, 1, &s, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_rerank_tokens(got, model, &text, 1, &s, &err), PITH_ERR_ARGUMENT);
    s.instruction = NULL;
    s.max_length = 3;
    assert_int_equal(pith_classify_tokens(got, model, &text, 1, &s, &err), PITH_ERR_ARGUMENT);
    pith_model_close(model);
}

/* ---- lack of memory ---- */

/* Each allocation of a call fails once: it is reported, though bad texts are not, or was not
 * needed. */
static void test_allocations(void **state) {
    (void)state;
    static float wanted[TEXTS * WIDE], got[TEXTS * WIDE];
    counter c = { 0 };
    pith_allocator allocator = { count_alloc, count_free, &c };
    pith_model *model = open_bert(0, &allocator);
    pith_str words[TEXTS];
    pith_status bad[TEXTS];
    const char *says[TEXTS];
    pith_text_result results[TEXTS];
    pith_encode_options e = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    rows r;
    const size_t dim = pith_embed_dim(model, NULL);
    for (size_t i = 0; i < TEXTS; i += ENCODE_TEXTS) encode_texts(words + i);
    make_rows(&r, pith_model_tokenizer(model), words, NULL, TEXTS, 0);
    spoil(r.texts, bad, says);
    o.results = results;
    o.call.threads = e.call.threads = 1;
    e.embed = &o;
    e.what = PITH_ENCODE_DENSE | PITH_ENCODE_TOKENS;
    assert_int_equal(pith_embed_tokens(wanted, model, r.texts, TEXTS, &o, &err), PITH_OK);
    for (int kind = 0; kind < 2; kind++) {
        long n = 0, failed = 0;
        for (pith_status status = PITH_ERR_MEMORY; n < 4000; n++) {
            pith_encoded *encoded = NULL;
            pith_model_trim(model);
            atomic_store(&c.calls, 0);
            c.fail_at = n + 1;
            status = kind ? pith_encode_tokens(&encoded, model, r.texts, TEXTS, &e, &err)
                          : pith_embed_tokens(got, model, r.texts, TEXTS, &o, &err);
            c.fail_at = 0;
            if (status) {
                assert_int_equal(status, PITH_ERR_MEMORY);
                failed++;
                continue;
            }
            const float *x = kind ? encoded->dense : got;
            for (size_t i = 0; i < TEXTS; i++)
                if (bad[i])
                    assert_true(is_nan(x + i * dim, dim));
                else
                    assert_memory_equal(x + i * dim, wanted + i * dim, dim * sizeof *x);
            pith_encoded_free(encoded);
            if (atomic_load(&c.calls) <= n) break;
        }
        print_message("%ld allocations, %ld reported\n", n, failed);
        assert_true(n < 4000 && failed > 0);
    }
    free_rows(&r);
    pith_model_close(model);
    assert_int_equal(atomic_load(&c.live), 0);
}

/* Tokens with a marker and fillers, and without type ids; some of the texts are bad. */
static void work_refused(const void *context) {
    const pith_model *model = context;
    static const int32_t ids[] = { 2, 20, 21, 3 }, bad[] = { -1 };
    const pith_token_ids texts[] = { { ids, NULL, 4, 0 },
                                     { bad, NULL, 1, 0 },
                                     { ids, NULL, 3, 0 } };
    pith_text_result results[3];
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    pith_encode_options e = PITH_ENCODE_OPTIONS_INIT;
    pith_encoded *encoded = NULL;
    o.results = results;
    e.embed = &o;
    e.call.threads = 1;
    e.what = pith_encode_can(model) & LATE ? LATE : PITH_ENCODE_DENSE;
    e.role = PITH_ROLE_QUERY;
    pith_model_trim(model);
    err = (pith_error)PITH_ERROR_INIT;
    pith_status status = pith_encode_tokens(&encoded, model, texts, 3, &e, &err);
    pith_encoded_free(encoded);
    if (status ? status == PITH_ERR_MEMORY && arena_fails.refused && err.message[0]
               : results[1].status == PITH_ERR_ARGUMENT)
        return;
    arena_fails_show();
    fail_msg("request %ld: status %d, '%s'", arena_fails.fail_at, (int)status, err.message);
}

static void test_arenas(void **state) {
    (void)state;
    counter c = { .freed = arena_fails_freed };
    pith_allocator allocator = { count_alloc, count_free, &c };
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    size_t places = 0;
    open.call.allocator = &allocator;
    open.pool_blocks = -1;
    for (int late = 0; late < 2; late++) {
        pith_model *model = NULL;
        encode_directory(HERE,
                         late ? "families/distilbert-dynamo20" : "models/bert-base-script17-sdpa",
                         BERT_WORDS);
        if (late) encode_put(HERE, "artifact.metadata", ARTIFACT);
        assert_int_equal(pith_model_open(&model, HERE, &open, &err), PITH_OK);
        places += arena_fails_each(work_refused, model);
        pith_model_close(model);
        assert_int_equal(atomic_load(&c.live), 0);
    }
    print_message("%zu places\n", places);
    assert_true(places > 20);
}

/* Under a memory limit a window is run again in smaller pieces: the same results, or an error of
 * the call. */
static void test_limits(void **state) {
    (void)state;
    enum { STEPS = 30 };
    static float wanted[TEXTS * WIDE], got[TEXTS * WIDE];
    size_t most = 0;
    int done = 0, failed = 0;
    for (int step = 0; step <= STEPS; step++) {
        pith_open_options open = PITH_OPEN_OPTIONS_INIT;
        pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
        pith_text_result results[TEXTS];
        pith_status bad[TEXTS];
        pith_str words[TEXTS];
        const char *says[TEXTS];
        pith_model *model = NULL;
        rows r;
        open.memory_limit = step ? most * (size_t)step / STEPS : (size_t)1 << 40;
        if (pith_model_open(&model, HERE, &open, &err)) {
            assert_int_equal(err.code, PITH_ERR_MEMORY);
            continue;
        }
        o.results = results;
        o.call.threads = 2;
        for (size_t i = 0; i < TEXTS; i += ENCODE_TEXTS) encode_texts(words + i);
        pith_tokenizer *tokenizer = NULL; /* of another model's memory */
        assert_int_equal(pith_tokenizer_open(&tokenizer, HERE, NULL, &err), PITH_OK);
        make_rows(&r, tokenizer, words, NULL, TEXTS, 0);
        spoil(r.texts, bad, says);
        memset(got, 0, sizeof got);
        const pith_status status =
            pith_embed_tokens(step ? got : wanted, model, r.texts, TEXTS, &o, &err);
        if (!step) pith_model_bytes(model, &most);
        assert_true(!status || status == PITH_ERR_MEMORY);
        done += !status;
        failed += status != 0;
        if (!status && step) assert_memory_equal(got, wanted, sizeof got);
        for (size_t i = 0; i < TEXTS && !status; i++) assert_int_equal(results[i].status, bad[i]);
        free_rows(&r);
        pith_tokenizer_close(tokenizer);
        pith_model_close(model);
    }
    print_message("%d limits were enough, %d were not\n", done, failed);
    assert_true(done > 1);
}

static int open_cases(void **state) {
    (void)state;
    cases_open(&all);
    return 0;
}

static int close_cases(void **state) {
    (void)state;
    cases_close(&all);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_architectures), cmocka_unit_test(test_scores),
        cmocka_unit_test(test_encoded),       cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_tables),        cmocka_unit_test(test_bad_tokens),
        cmocka_unit_test(test_bad_texts),     cmocka_unit_test(test_bad_scores),
        cmocka_unit_test(test_results),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_allocations),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_arenas),
    };
    return cmocka_run_group_tests(tests, open_cases, close_cases);
}
