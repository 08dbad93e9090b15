/* test_encode_calls.c - calls of pith/encode.h: the same bits however they are made, what they
 * refuse, threads, lack of memory, compiled models, and the files of late interaction. The numbers
 * are checked by test_encode.c. */
#include <pthread.h>

#include "support/arena_fails.h"
#include "support/encode_test.h"
#include "support/failing_alloc.h"
#include "models/modules/late_interaction.h"

#define DIR PITH_BINARY_DIR "/encode-calls"
#define COMPILED PITH_BINARY_DIR "/encode-calls.pith"
#define ARTIFACT "{\"query_maxlen\": 12, \"doc_maxlen\": 14}"

enum { ALL = 15, LATE = PITH_ENCODE_MULTI_VECTOR };

/* A model, and what is asked of it. */
typedef struct subject {
    const char *network, *artifact;
    int words, role;
    uint32_t what;
} subject;

static const subject subjects[] = {
    { "families/bge-m3-script17", NULL, ROBERTA_WORDS, PITH_ROLE_DOCUMENT, ALL },
    { "families/splade-script17", NULL, BERT_WORDS, PITH_ROLE_DOCUMENT,
      PITH_ENCODE_SPARSE | PITH_ENCODE_DENSE },
    { "encode/logits", NULL, BERT_WORDS, PITH_ROLE_DOCUMENT,
      PITH_ENCODE_SPARSE | PITH_ENCODE_TOKENS },
    { "families/distilbert-dynamo20", NULL, BERT_WORDS, PITH_ROLE_DOCUMENT,
      PITH_ENCODE_DENSE | LATE | PITH_ENCODE_TOKENS },
    { "families/distilbert-dynamo20", ARTIFACT, BERT_WORDS, PITH_ROLE_DOCUMENT, LATE },
    { "families/distilbert-dynamo20", ARTIFACT, BERT_WORDS, PITH_ROLE_QUERY, LATE },
    { "families/colbert-dynamo20", "{\"query_maxlen\": 12, \"attend_to_mask_tokens\": true}",
      BERT_WORDS, PITH_ROLE_QUERY, LATE },
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects, COPIES = 12, MANY = COPIES * ENCODE_TEXTS };

static pith_str texts[MANY];

static int setup(void **state) {
    (void)state;
    for (size_t i = 0; i < COPIES; i++) encode_texts(texts + i * ENCODE_TEXTS);
    return 0;
}

static pith_model *open_with(const subject *s, const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    encode_directory(DIR, s->network, s->words);
    if (s->artifact) encode_put(DIR, "artifact.metadata", s->artifact);
    if (pith_model_open(&model, DIR, options, &err)) fail_msg("%s: %s", s->network, err.message);
    return model;
}

static pith_model *open_subject(const subject *s) { return open_with(s, NULL); }

/* ---- the same bits ---- */

/* Text i of a is text k of b. */
static void same_text(const pith_encoded *a, size_t i, const pith_encoded *b, size_t k) {
    if (a->dense)
        assert_memory_equal(a->dense + i * a->dim, b->dense + k * b->dim, a->dim * sizeof(float));
    if (a->sparse.offsets) {
        const int64_t at = a->sparse.offsets[i], from = b->sparse.offsets[k],
                      n = a->sparse.offsets[i + 1] - at;
        assert_int_equal(n, b->sparse.offsets[k + 1] - from);
        assert_memory_equal(a->sparse.indices + at, b->sparse.indices + from, (size_t)n * 4);
        assert_memory_equal(a->sparse.values + at, b->sparse.values + from, (size_t)n * 4);
    }
    const pith_token_rows *x[] = { &a->multi_vector, &a->tokens },
                          *y[] = { &b->multi_vector, &b->tokens };
    for (int r = 0; r < 2; r++) {
        if (!x[r]->offsets) continue;
        const int64_t at = x[r]->offsets[i], from = y[r]->offsets[k], n = x[r]->offsets[i + 1] - at;
        const size_t dim = x[r]->dim;
        assert_int_equal(n, y[r]->offsets[k + 1] - from);
        assert_memory_equal(x[r]->ids + at, y[r]->ids + from, (size_t)n * 4);
        assert_memory_equal(x[r]->vectors + (size_t)at * dim, y[r]->vectors + (size_t)from * dim,
                            (size_t)n * dim * 4);
    }
}

static void check_bits(const subject *s, const pith_model *model) {
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_encoded *wanted[ENCODE_TEXTS];
    options.call.threads = 1;
    for (size_t i = 0; i < ENCODE_TEXTS; i++)
        wanted[i] = encode_all(model, &texts[i], 1, s->what, s->role, &options);
    for (int threads = 1; threads <= 4; threads++)
        for (int tokens = 0; tokens <= 50; tokens += 25) {
            options.call.threads = threads;
            options.batch_tokens = tokens;
            pith_encoded *e = encode_all(model, texts, MANY, s->what, s->role, &options);
            for (size_t i = 0; i < MANY; i++) same_text(e, i, wanted[i % ENCODE_TEXTS], 0);
            pith_encoded_free(e);
        }
    pith_str turned[MANY];
    for (size_t i = 0; i < MANY; i++) turned[i] = texts[MANY - 1 - i];
    pith_encoded *e = encode_all(model, turned, MANY, s->what, s->role, NULL);
    for (size_t i = 0; i < MANY; i++) same_text(e, i, wanted[(MANY - 1 - i) % ENCODE_TEXTS], 0);
    pith_encoded_free(e);
    for (size_t i = 0; i < ENCODE_TEXTS; i++) pith_encoded_free(wanted[i]);
}

static void test_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        pith_model *model = open_subject(&subjects[i]);
        check_bits(&subjects[i], model);
        pith_model_close(model);
    }
}

/* Under limits from what is too little to what is enough: the same bits, or an error that names the
 * limit. */
static void test_limits(void **state) {
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        pith_open_options options = PITH_OPEN_OPTIONS_INIT;
        pith_encode_options encode_options = PITH_ENCODE_OPTIONS_INIT;
        pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
        pith_model *free_model = open_subject(s);
        size_t peak, base = pith_model_bytes(free_model, NULL), fine = 0, short_of = 0;
        embed_options.call.threads = 2;
        encode_options.what = s->what;
        encode_options.role = s->role;
        encode_options.call.threads = 2;
        encode_options.embed = &embed_options;
        pith_encoded *wanted =
            encode_all(free_model, texts, MANY, s->what, s->role, &embed_options);
        pith_model_bytes(free_model, &peak);
        for (size_t step = 0; step <= 24; step++) {
            pith_error err = PITH_ERROR_INIT;
            pith_encoded *e = NULL;
            pith_model *model = NULL;
            options.memory_limit = base + (peak - base + 100000) * step / 16;
            pith_status status = pith_model_open(&model, DIR, &options, &err);
            if (!status) status = pith_encode(&e, model, texts, MANY, &encode_options, &err);
            if (status) {
                assert_int_equal(status, PITH_ERR_MEMORY);
                if (!strstr(err.message, "limit")) fail_msg("%s", err.message);
                assert_null(e);
                short_of++;
            } else {
                encode_same(e, wanted);
                fine++;
            }
            pith_encoded_free(e);
            if (model) pith_model_close(model);
        }
        assert_true(fine > 0 && short_of > 0);
        pith_encoded_free(wanted);
        pith_model_close(free_model);
    }
}

/* ---- instruction sets ---- */

static bool put_array(FILE *f, const void *data, size_t count, size_t size) {
    return !data || fwrite(data, size, count, f) == count;
}

/* Everything that the subjects give, as bytes of a file. */
static int save_all(const char *path) {
    FILE *f = fopen(path, "wb");
    bool good = f != NULL;
    for (size_t i = 0; i < SUBJECTS && good; i++) {
        pith_model *model = open_subject(&subjects[i]);
        pith_encoded *e = encode_all(model, texts, MANY, subjects[i].what, subjects[i].role, NULL);
        const pith_token_rows *rows[] = { &e->multi_vector, &e->tokens };
        good = put_array(f, e->dense, e->texts * e->dim, 4);
        if (e->sparse.offsets)
            good = good && put_array(f, e->sparse.offsets, e->texts + 1, 8) &&
                   put_array(f, e->sparse.indices, (size_t)e->sparse.offsets[e->texts], 4) &&
                   put_array(f, e->sparse.values, (size_t)e->sparse.offsets[e->texts], 4);
        for (int r = 0; r < 2; r++)
            if (rows[r]->offsets)
                good = good && put_array(f, rows[r]->ids, (size_t)rows[r]->offsets[e->texts], 4) &&
                       put_array(f, rows[r]->vectors,
                                 (size_t)rows[r]->offsets[e->texts] * rows[r]->dim, 4);
        pith_encoded_free(e);
        pith_model_close(model);
    }
    return f && !fclose(f) && good ? 0 : 1;
}

static void test_isa(void **state) {
    (void)state;
    static const char *const levels[] = { "scalar", "avx2", "avx512" };
    char self[] = "/proc/self/exe", path[] = PITH_BINARY_DIR "/encode-isa";
    pith__file wanted, again;
    assert_int_equal(save_all(path), 0);
    assert_int_equal(pith__file_open(&wanted, path, true, NULL, NULL), PITH_OK);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char *arguments[] = { self, path, NULL };
        pid_t child;
        int status;
        remove(path);
        setenv("PITH_ISA", levels[i], 1);
        assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
        unsetenv("PITH_ISA");
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(pith__file_open(&again, path, true, NULL, NULL), PITH_OK);
        assert_int_equal(again.size, wanted.size);
        assert_memory_equal(again.data, wanted.data, wanted.size);
        pith__file_close(&again);
    }
    pith__file_close(&wanted);
    remove(path);
}

/* ---- compiled models ---- */

static int32_t write_piece(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

static void test_compiled(void **state) {
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        pith_model *model = open_subject(s);
        pith_error err = PITH_ERROR_INIT;
        uint32_t can = pith_encode_can(model);
        FILE *f = fopen(COMPILED, "wb");
        assert_non_null(f);
        if (pith_model_save(model, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
            fail_msg("%s", err.message);
        assert_int_equal(fclose(f), 0);
        pith_encoded *wanted = encode_all(model, texts, MANY, s->what, s->role, NULL);
        pith_model *compiled = encode_open(COMPILED);
        assert_int_equal(pith_encode_can(compiled), can);
        pith_encoded *e = encode_all(compiled, texts, MANY, s->what, s->role, NULL);
        encode_same(e, wanted);
        pith_encoded_free(e);
        check_bits(s, compiled);
        pith_model_close(compiled);
        pith_encoded_free(wanted);
        pith_model_close(model);
    }
    remove(COMPILED);
}

/* ---- options and faults ---- */

static pith_status encode_status(const pith_model *model, const pith_str *some, size_t count,
                                 const pith_encode_options *options, pith_error *err) {
    pith_encoded *encoded = NULL;
    *err = (pith_error)PITH_ERROR_INIT;
    pith_status status = pith_encode(&encoded, model, some, count, options, err);
    assert_int_equal(status == PITH_OK, encoded != NULL);
    pith_encoded_free(encoded);
    return status;
}

static void test_can(void **state) {
    (void)state;
    static const struct {
        const char *network;
        int words;
        uint32_t can;
    } cases[] = {
        { "families/bge-m3-script17", ROBERTA_WORDS, ALL },
        { "families/splade-script17", BERT_WORDS, PITH_ENCODE_DENSE | PITH_ENCODE_SPARSE },
        { "encode/logits", BERT_WORDS, ALL },
        { "families/colbert-dynamo20", BERT_WORDS, PITH_ENCODE_DENSE | LATE | PITH_ENCODE_TOKENS },
        { "families/qwen3-dynamo20", BERT_WORDS, PITH_ENCODE_DENSE },
        { "families/vit-dynamo20", BERT_WORDS, 0 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        encode_directory(DIR, cases[i].network, cases[i].words);
        pith_model *model = encode_open(DIR);
        if (pith_encode_can(model) != cases[i].can)
            fail_msg("%s: %u instead of %u", cases[i].network, pith_encode_can(model),
                     cases[i].can);
        for (uint32_t what = 1; what <= PITH_ENCODE_TOKENS; what *= 2) {
            pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
            pith_error err;
            options.what = what;
            pith_status status = encode_status(model, texts, 2, &options, &err);
            assert_int_equal(status, what & cases[i].can ? PITH_OK : PITH_ERR_UNSUPPORTED);
            if (status) assert_true(err.code == status && err.message[0]);
        }
        pith_model_close(model);
    }
    encode_directory(DIR, "families/splade-script17", BERT_WORDS);
    pith_model *model = encode_open(DIR);
    encode_refuses(model, LATE, 0, PITH_ERR_UNSUPPORTED, "no output with one vector per token");
    encode_refuses(model, PITH_ENCODE_TOKENS, 0, PITH_ERR_UNSUPPORTED,
                   "no output with one vector per token");
    pith_model_close(model);
    encode_directory(DIR, "families/qwen3-dynamo20", BERT_WORDS);
    model = encode_open(DIR);
    encode_refuses(model, PITH_ENCODE_SPARSE, 0, PITH_ERR_UNSUPPORTED, "no sparse output");
    encode_refuses(model, PITH_ENCODE_SPARSE | PITH_ENCODE_DENSE, 0, PITH_ERR_UNSUPPORTED,
                   "no sparse output");
    pith_model_close(model);
    encode_directory(DIR, "families/splade-script17", BERT_WORDS);
    encode_put(DIR, "tokenizer.json", NULL);
    model = encode_open(DIR);
    assert_int_equal(pith_encode_can(model), 0);
    encode_refuses(model, PITH_ENCODE_SPARSE, 0, PITH_ERR_NOT_FOUND, "cannot embed text");
    pith_model_close(model);
}

static void test_options(void **state) {
    (void)state;
    pith_model *model = open_subject(&subjects[0]);
    encode_refuses(model, 16, 0, PITH_ERR_ARGUMENT, "what is 16");
    encode_refuses(model, 17, 0, PITH_ERR_ARGUMENT, "what is 17");
    encode_refuses(model, 0x80000001u, 0, PITH_ERR_ARGUMENT, "what is 2147483649");
    encode_refuses(model, ALL, 2, PITH_ERR_ARGUMENT, "role is 2");
    encode_refuses(model, ALL, -1, PITH_ERR_ARGUMENT, "role is -1");
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    pith_error err;
    options.call.size = 3;
    assert_int_equal(encode_status(model, texts, 2, &options, &err), PITH_ERR_ARGUMENT);
    options = (pith_encode_options)PITH_ENCODE_OPTIONS_INIT;
    options.embed = &embed_options;
    embed_options.dim = 17;
    assert_int_equal(encode_status(model, texts, 2, &options, &err), PITH_ERR_ARGUMENT);
    if (!strstr(err.message, "dim 17")) fail_msg("%s", err.message);
    options.what = PITH_ENCODE_SPARSE; /* the options of dense vectors are not read */
    assert_int_equal(encode_status(model, texts, 2, &options, &err), PITH_OK);
    embed_options.dim = 0;
    embed_options.call.threads = -1; /* not looked at */
    assert_int_equal(encode_status(model, texts, 2, &options, &err), PITH_OK);
    options.call.threads = -1;
    assert_int_equal(encode_status(model, texts, 2, &options, &err), PITH_ERR_ARGUMENT);
    options.call.threads = 0;
    embed_options.prompt_name = "none of them";
    assert_int_equal(encode_status(model, texts, 2, &options, &err), PITH_ERR_ARGUMENT);
    pith_encoded *e = NULL;
    /* the defaults: dense */
    assert_int_equal(pith_encode(&e, model, texts, 2, NULL, NULL), PITH_OK);
    assert_non_null(e->dense);
    assert_null(e->sparse.offsets);
    pith_encoded_free(e);
    pith_encoded_free(NULL);
    pith_model_close(model);
}

static void test_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        pith_model *model = open_subject(s);
        pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
        pith_error err;
        options.what = s->what;
        options.role = s->role;
        pith_encoded *none = encode_all(model, NULL, 0, s->what, s->role, NULL);
        assert_int_equal(none->texts, 0);
        assert_int_equal(!none->sparse.offsets, !(s->what & PITH_ENCODE_SPARSE));
        if (none->sparse.offsets) assert_int_equal(none->sparse.offsets[0], 0);
        if (none->multi_vector.offsets) assert_int_equal(none->multi_vector.offsets[0], 0);
        pith_encoded_free(none);
        pith_str bad[MANY];
        memcpy(bad, texts, sizeof bad);
        bad[17] = bad[40] = (pith_str){ "w20 \xff", 5 };
        assert_int_equal(encode_status(model, bad, MANY, &options, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, "text 17: ")) fail_msg("%s", err.message);
        pith_model_close(model);
    }
}

static void test_stats(void **state) {
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        pith_model *model = open_subject(s);
        pith_embed_stats stats = { 0 };
        pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
        volatile int cancel = 1;
        options.stats = &stats;
        options.max_length = 9;
        uint64_t tokens = 0, cut = 0;
        for (size_t k = 0; k < MANY; k++) {
            int32_t ids[IDS_MAX];
            size_t count = encode_ids(ids, model, texts[k]), room = 9 - (s->artifact != NULL);
            cut += count > room;
            tokens += s->artifact && s->role == PITH_ROLE_QUERY
                          ? 9
                          : (count < room ? count : room) + 9 - room;
        }
        for (uint64_t calls = 1; calls <= 2; calls++) {
            pith_encoded_free(encode_all(model, texts, MANY, s->what, s->role, &options));
            assert_int_equal(stats.texts, calls * MANY);
            assert_int_equal(stats.tokens, calls * tokens);
            assert_int_equal(stats.truncated, calls * cut);
            assert_int_equal(stats.padded_tokens, 0);
            assert_int_equal(stats.texts_done, MANY);
            assert_true(stats.peak_bytes > 0);
        }
        pith_encode_options encode_options = PITH_ENCODE_OPTIONS_INIT;
        pith_error err;
        encode_options.what = s->what;
        encode_options.role = s->role;
        encode_options.embed = &options;
        encode_options.call.cancel = &cancel;
        assert_int_equal(encode_status(model, texts, MANY, &encode_options, &err),
                         PITH_ERR_CANCELLED);
        assert_int_equal(stats.texts_done, 0);
        cancel = 0;
        assert_int_equal(encode_status(model, texts, MANY, &encode_options, &err), PITH_OK);
        pith_model_close(model);
    }
}

/* ---- threads ---- */

typedef struct caller {
    const pith_model *model;
    uint32_t what;
    pith_encoded *wanted;
} caller;

/* Encodes, compares with what another model gave, and frees the results while other threads run. */
static void *call_often(void *context) {
    const caller *c = context;
    for (int i = 0; i < 6; i++) {
        pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
        options.call.threads = 1 + i % 2;
        pith_encoded *e =
            encode_all(c->model, texts, ENCODE_TEXTS, c->what, PITH_ROLE_DOCUMENT, &options);
        encode_same(e, c->wanted);
        pith_encoded_free(e);
        if (i == 3) pith_model_trim(c->model);
    }
    return NULL;
}

/* The first calls make the views, at the same time. */
static void test_threads(void **state) {
    (void)state;
    enum { CALLERS = 6 };
    static const uint32_t kinds[CALLERS] = {
        PITH_ENCODE_SPARSE, LATE, ALL, PITH_ENCODE_TOKENS, PITH_ENCODE_DENSE, PITH_ENCODE_SPARSE
    };
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    pith_model *other = open_subject(&subjects[0]), *model = open_subject(&subjects[0]);
    for (int i = 0; i < CALLERS; i++)
        callers[i] =
            (caller){ model, kinds[i], encode_all(other, texts, ENCODE_TEXTS, kinds[i], 0, NULL) };
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLERS; i++) pith_encoded_free(callers[i].wanted);
    pith_model_close(model);
    pith_model_close(other);
}

/* ---- lack of memory ---- */

static pith_encoded *memory_wanted;
static const subject *memory_subject;

static pith_status work(counter *c, pith_error *err) {
    pith_allocator allocator = { count_alloc, count_free, c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_encode_options encode_options = PITH_ENCODE_OPTIONS_INIT;
    pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
    pith_model *model = NULL;
    pith_encoded *e = NULL;
    options.call.allocator = &allocator;
    options.pool_blocks = -1; /* freeing pooled blocks would make up for a failure */
    encode_options.call.threads = 1;
    encode_options.what = memory_subject->what;
    encode_options.role = memory_subject->role;
    encode_options.embed = &embed_options;
    pith_status status = pith_model_open(&model, DIR, &options, err);
    if (status) return status;
    status = pith_encode(&e, model, texts, ENCODE_TEXTS, &encode_options, err);
    if (status) { /* the failure was passed: the model works */
        long fail_at = c->fail_at;
        c->fail_at = 0;
        arena_fails.counts = false;
        assert_null(e);
        assert_int_equal(pith_encode(&e, model, texts, ENCODE_TEXTS, &encode_options, NULL),
                         PITH_OK);
        arena_fails.counts = arena_fails.fail_at || arena_fails.record;
        c->fail_at = fail_at;
    }
    encode_same(e, memory_wanted);
    pith_encoded_free(e);
    pith_model_close(model);
    return status;
}

static void work_refused(const void *context) {
    (void)context;
    counter c = { .freed = arena_fails_freed };
    pith_error err = PITH_ERROR_INIT;
    pith_status status = work(&c, &err);
    bool reported = status == PITH_ERR_MEMORY && err.code == PITH_ERR_MEMORY && err.message[0];
    if (!c.live && (!status || (arena_fails.refused && reported))) return;
    arena_fails_show();
    fail_msg("%s: request %ld: status %d, '%s', %ld leak", memory_subject->network,
             arena_fails.fail_at, (int)status, err.message, atomic_load(&c.live));
}

static void test_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < SUBJECTS; i++) {
        counter c = { 0 };
        pith_error err = PITH_ERROR_INIT;
        memory_subject = &subjects[i];
        pith_model *model = open_subject(memory_subject);
        memory_wanted = encode_all(model, texts, ENCODE_TEXTS, memory_subject->what,
                                   memory_subject->role, NULL);
        if (work(&c, &err)) fail_msg("%s", err.message);
        assert_int_equal(c.live, 0);
        long calls = c.calls, lost = 0;
        for (long n = 1; n <= calls; n++) {
            c = (counter){ .fail_at = n };
            err = (pith_error)PITH_ERROR_INIT;
            pith_status status = work(&c, &err);
            bool reported =
                status == PITH_ERR_MEMORY && err.code == PITH_ERR_MEMORY && err.message[0];
            lost += !status;
            if ((status && !reported) || c.live)
                fail_msg("%s: allocation %ld of %ld: status %d, '%s', %ld leak",
                         memory_subject->network, n, calls, (int)status, err.message,
                         atomic_load(&c.live));
        }
        assert_true(lost <= 3); /* nothing but knowledge about sizes: the results were compared */
        size_t places = arena_fails_each(work_refused, NULL);
        print_message("%s: %ld allocations, %zu places\n", memory_subject->network, calls, places);
        pith_encoded_free(memory_wanted);
        pith_model_close(model);
    }
}

/* ---- files of late interaction ---- */

static const pith__late_interaction no_late = { .masked = false };

static pith_status read_late(pith__late_interaction *late, pith__arena *arena, const char *name,
                             const char *file, pith_error *err) {
    encode_directory(DIR, "encode/logits", BERT_WORDS);
    encode_put(DIR, name, file);
    *err = (pith_error)PITH_ERROR_INIT;
    return pith__late_interaction_read(late, &no_late, DIR, &pith__allocator_default, arena, err);
}

static void test_damaged(void **state) {
    (void)state;
    static const char *const values[] = {
        "",   "[",        "{\"%s\": ",    "{\"%s\": {}}",  "{\"%s\": [1}", "{\"%s\": 1.5}",
        "[]", "{\"%s\"}", "{\"%s\": -1}", "{\"%s\": \"x}", "{} {}"
    };
    static const char *const keys[2][7] = {
        { "query_token_id", "doc_token_id", "query_maxlen", "doc_maxlen", "attend_to_mask_tokens",
          "mask_punctuation" },
        { "query_prefix", "document_prefix", "query_length", "document_length",
          "attend_to_expansion_tokens", "do_query_expansion" },
    };
    static const char *const names[] = { "artifact.metadata", "config_sentence_transformers.json" };
    for (int n = 0; n < 2; n++)
        for (int k = 0; keys[n][k]; k++)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                char file[200];
                pith__late_interaction late;
                pith__arena arena;
                pith_error err;
                pith__arena_init(&arena, &pith__allocator_default);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(file, sizeof file, values[v], keys[n][k]);
#pragma GCC diagnostic pop
                pith_status status = read_late(&late, &arena, names[n], file, &err);
                if (status != PITH_ERR_FORMAT || !strstr(err.message, names[n]))
                    fail_msg("'%s': status %d, '%s'", file, (int)status, err.message);
                assert_int_equal(pith__late_interaction_read(
                                     &late, &no_late, DIR, &pith__allocator_default, &arena, NULL),
                                 PITH_ERR_FORMAT);
                pith__arena_free(&arena);
            }
    /* The graph of such a directory can be opened, and says why it does not take texts. */
    encode_put(DIR, "artifact.metadata", "{\"query_maxlen\": -1}");
    encode_put(DIR, "config_sentence_transformers.json", NULL);
    pith_model *model = encode_open(DIR);
    assert_int_equal(pith_encode_can(model), 0);
    encode_refuses(model, LATE, 0, PITH_ERR_FORMAT, "artifact.metadata");
    pith_model_close(model);
}

static void test_late_files(void **state) {
    (void)state;
    enum { WORDS = 200000 };
    pith__late_interaction late;
    pith__arena arena;
    pith_error err;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(read_late(&late, &arena, "artifact.metadata", NULL, &err), PITH_OK);
    assert_int_equal(late.markers[0].size + late.markers[1].size + late.skipped_count, 0);
    assert_false(late.expands);
    /* The file of another model. */
    assert_int_equal(
        read_late(&late, &arena, "config_sentence_transformers.json", "{\"prompts\": {}}", &err),
        PITH_OK);
    assert_int_equal(late.markers[0].size + late.markers[1].size + late.skipped_count, 0);
    assert_int_equal(late.lengths[0] + late.lengths[1], 0);
    assert_false(late.expands);
    /* Defaults of both programs; null is as if the key were missing; no limit. */
    assert_int_equal(
        read_late(
            &late, &arena, "artifact.metadata",
            "{\"doc_token_id\": null, \"doc_maxlen\": 99999999999, \"mask_punctuation\": null}",
            &err),
        PITH_OK);
    assert_true(pith__str_is(late.markers[PITH_ROLE_QUERY], "[unused0]"));
    assert_true(pith__str_is(late.markers[PITH_ROLE_DOCUMENT], "[unused1]"));
    assert_int_equal(late.lengths[PITH_ROLE_QUERY], 32);
    assert_int_equal(late.lengths[PITH_ROLE_DOCUMENT], 0);
    assert_int_equal(late.skipped_count, 32);
    assert_true(late.expands && !late.attends);
    assert_int_equal(read_late(&late, &arena, "config_sentence_transformers.json",
                               "{\"query_prefix\": \"\", \"skiplist_words\": null}", &err),
                     PITH_OK);
    assert_int_equal(late.markers[PITH_ROLE_QUERY].size, 0);
    assert_true(pith__str_is(late.markers[PITH_ROLE_DOCUMENT], "[D] "));
    assert_int_equal(late.lengths[PITH_ROLE_QUERY], 32);
    assert_int_equal(late.lengths[PITH_ROLE_DOCUMENT], 180);
    assert_int_equal(late.skipped_count, 32);
    assert_true(late.expands && !late.attends);
    /* Both files: that of PyLate counts. */
    encode_put(DIR, "artifact.metadata", "{\"query_maxlen\": 5}");
    assert_int_equal(
        pith__late_interaction_read(&late, &no_late, DIR, &pith__allocator_default, &arena, &err),
        PITH_OK);
    assert_int_equal(late.lengths[PITH_ROLE_QUERY], 32);
    encode_put(DIR, "config_sentence_transformers.json", "{\"prompts\": {}}");
    assert_int_equal(
        pith__late_interaction_read(&late, &no_late, DIR, &pith__allocator_default, &arena, &err),
        PITH_OK);
    assert_int_equal(late.lengths[PITH_ROLE_QUERY], 5);

    char *list = malloc(WORDS * 8 + 100), *p = list;
    p += sprintf(p, "{\"query_length\": 8, \"skiplist_words\": [");
    for (int i = 0; i < WORDS; i++) p += sprintf(p, "%s\"w%d\"", i ? "," : "", i % 96);
    sprintf(p, "]}");
    assert_int_equal(read_late(&late, &arena, "config_sentence_transformers.json", list, &err),
                     PITH_OK);
    assert_int_equal(late.skipped_count, WORDS);
    free(list);
    pith__arena_free(&arena);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),       cmocka_unit_test(test_limits),
        cmocka_unit_test(test_isa),        cmocka_unit_test(test_can),
        cmocka_unit_test(test_compiled),   cmocka_unit_test(test_options),
        cmocka_unit_test(test_texts),      cmocka_unit_test(test_stats),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_late_files), cmocka_unit_test(test_memory),
    };
    setup(NULL);
    if (argc > 1) return save_all(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
