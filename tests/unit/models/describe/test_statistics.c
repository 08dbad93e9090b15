/* test_statistics.c - every number of pith_statistics against a count of the test's own, and the
 * options that change them. The default model is used. */
#include "support/embed_test.h"

#include <pthread.h>

static const char model_name[] = "all-MiniLM-L6-v2";
static golden g;

static pith_model *open_with(const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, model_name, options, &err)) fail_msg("%s", err.message);
    return model;
}

static pith_statistics read_all(const pith_model *model) {
    pith_statistics s = PITH_STATISTICS_INIT;
    assert_int_equal(pith_model_statistics(&s, model, NULL), PITH_OK);
    return s;
}

static void embed_first(float *vectors, const pith_model *model, size_t count,
                        const pith_embed_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_embed(vectors, model, g.texts, count, options, &err)) fail_msg("%s", err.message);
}

static float ours[GOLDEN][DIM], theirs[GOLDEN][DIM];

/* ---- texts ---- */

static void test_texts(void **state) {
    (void)state;
    enum { COUNT = 200, MOST = 30 };
    pith_model *model = open_with(NULL);
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    pith_batching batching = PITH_BATCHING_INIT;
    uint64_t tokens = 0, cut = 0;
    for (int i = 0; i < COUNT; i++) {
        pith_tokens t = PITH_TOKENS_INIT;
        assert_int_equal(
            pith_tokenize(&t, pith_model_tokenizer(model), g.texts[i], NULL, NULL, NULL), PITH_OK);
        tokens += t.count < 16 ? t.count : 16;
        cut += t.count > 16;
        pith_tokens_free(&t);
    }
    batching.most = MOST;
    o.max_length = 16;
    o.batch_tokens = 64;
    o.call.threads = 1;
    o.batching = &batching;
    embed_first(ours[0], model, COUNT, &o);
    pith_statistics s = read_all(model);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.texts, COUNT);
    assert_int_equal(s.tokens, tokens);
    assert_int_equal(s.truncated, cut);
    assert_true(cut > 0);
    assert_int_equal(s.padded_tokens, 0);
    assert_int_equal(s.windows, (COUNT + MOST - 1) / MOST);
    assert_true(s.batches >= tokens / 64 && s.batches <= COUNT);
    assert_true(s.batch_tokens_most <= 64 && s.batch_tokens_most > 32);
    embed_first(ours[0], model, 3, &o);
    assert_int_equal(read_all(model).calls, 2);
    pith_model_reset_statistics(model);
    s = read_all(model);
    assert_int_equal(s.calls + s.texts + s.tokens + s.batches + s.run_ns + s.allocations, 0);
    assert_true(s.bytes > 0);
    pith_model_close(model);
}

typedef struct finished {
    size_t calls, next;
} finished;

static void note_done(void *user, size_t first, size_t count) {
    finished *f = user;
    assert_int_equal(first, f->next);
    assert_true(count > 0);
    f->next = first + count;
    f->calls++;
}

/* No way to group texts changes a bit of a vector. */
static void test_batching(void **state) {
    (void)state;
    static const pith_batching rows[] = {
        { sizeof(pith_batching), 0, 7, PITH_PREFER_THROUGHPUT, 0, NULL, NULL },
        { sizeof(pith_batching), 0, 0, PITH_PREFER_LATENCY, 0, NULL, NULL },
        { sizeof(pith_batching), 5, 50, PITH_PREFER_THROUGHPUT, 1, NULL, NULL },
        { sizeof(pith_batching), 0, 0, PITH_PREFER_THROUGHPUT, 20, NULL, NULL },
    };
    pith_model *model = open_with(NULL);
    embed_first(theirs[0], model, GOLDEN, NULL);
    assert_int_equal(read_all(model).windows, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
        pith_batching b = rows[i];
        finished f = { 0 };
        b.done = note_done;
        b.user = &f;
        o.batching = &b;
        o.call.threads = 2;
        pith_model_reset_statistics(model);
        memset(ours, 0, sizeof ours);
        embed_first(ours[0], model, GOLDEN, &o);
        pith_statistics s = read_all(model);
        assert_memory_equal(ours, theirs, sizeof ours);
        assert_int_equal(f.next, GOLDEN);
        assert_int_equal(f.calls, s.windows);
        size_t most = b.most ? (size_t)b.most : b.prefer == PITH_PREFER_LATENCY ? 16 : 1024;
        assert_true(s.windows >= (GOLDEN + most - 1) / most);
        if (b.prefer == PITH_PREFER_LATENCY) assert_int_equal(s.windows, (GOLDEN + 15) / 16);
        if (b.target_ms) assert_true(s.windows > 3);
    }
    pith_model_close(model);
}

static void test_wrong_batching(void **state) {
    (void)state;
    static const struct {
        pith_batching batching;
        const char *says;
    } rows[] = {
        { { 3, 0, 0, 0, 0, NULL, NULL }, "size" },
        { { sizeof(pith_batching), -1, 0, 0, 0, NULL, NULL }, "least (-1)" },
        { { sizeof(pith_batching), 0, 70000, 0, 0, NULL, NULL }, "from 1 to 65536" },
        { { sizeof(pith_batching), 9, 8, 0, 0, NULL, NULL }, "above the most (8)" },
        { { sizeof(pith_batching), 0, 0, 2, 0, NULL, NULL }, "prefer is 2" },
        { { sizeof(pith_batching), 0, 0, 0, -1, NULL, NULL }, "target_ms" },
        { { sizeof(pith_batching), 0, 0, 0, (double)NAN, NULL, NULL }, "target_ms" },
    };
    pith_model *model = open_with(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        o.batching = &rows[i].batching;
        assert_int_equal(pith_embed(ours[0], model, g.texts, 2, &o, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s", err.message);
    }
    pith_model_close(model);
}

/* ---- memory ---- */

/* In a steady state nearly every request is answered by the pool, and the host's allocator is
 * hardly asked. */
static void test_pool(void **state) {
    (void)state;
    enum { CALLS = 100 };
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    pith_open_options none = PITH_OPEN_OPTIONS_INIT;
    uint64_t asked[2];
    none.pool_blocks = none.sessions = -1;
    o.call.threads = 1;
    for (int without = 0; without < 2; without++) {
        pith_model *model = open_with(without ? &none : NULL);
        embed_first(ours[0], model, 8, &o);
        pith_model_reset_statistics(model);
        for (int i = 0; i < CALLS; i++) embed_first(ours[0], model, 8, &o);
        pith_statistics s = read_all(model);
        asked[without] = s.allocations;
        if (without) {
            assert_int_equal(
                s.pool_hits + s.pool_misses + s.pool_blocks + s.pool_bytes + s.sessions_idle, 0);
            assert_int_equal(s.sessions_made, CALLS);
            assert_int_equal(s.sessions_evicted, CALLS);
        } else {
            assert_true(s.pool_hits > 9 * s.pool_misses);
            assert_true(s.pool_blocks > 0 && s.pool_bytes >= 256 * s.pool_blocks);
            assert_int_equal(s.sessions_made, 0);
            assert_int_equal(s.sessions_borrowed, CALLS);
            assert_int_equal(s.sessions_idle, 1);
            assert_true(s.bytes >= s.pool_bytes && s.peak_bytes >= s.bytes);
            pith_model_trim(model);
            pith_statistics after = read_all(model);
            assert_int_equal(after.pool_blocks + after.pool_bytes + after.sessions_idle, 0);
            assert_true(after.bytes < s.bytes);
        }
        pith_model_close(model);
    }
    print_message("requests of the host in %d calls: %llu, without pool and sessions %llu\n", CALLS,
                  (unsigned long long)asked[0], (unsigned long long)asked[1]);
    assert_true(5 * asked[0] <= asked[1]);
}

static void test_pool_bounds(void **state) {
    (void)state;
    pith_open_options few = PITH_OPEN_OPTIONS_INIT;
    few.pool_blocks = 2;
    few.pool_bytes = 256 << 10;
    pith_model *model = open_with(&few);
    for (size_t i = 1; i < 20; i++) {
        embed_first(ours[0], model, i, NULL);
        pith_statistics s = read_all(model);
        assert_true(s.pool_blocks <= 2 && s.pool_bytes <= 256 << 10);
    }
    assert_true(read_all(model).pool_evictions > 0);
    pith_model_close(model);
}

static void *embed_some(void *model) {
    float own[4][DIM];
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    o.call.threads = 1;
    for (int i = 0; i < 20; i++) embed_first(own[0], model, 4, &o);
    return NULL;
}

/* Idle sessions: at most so many, and ended after their time. */
static void test_sessions(void **state) {
    (void)state;
    enum { THREADS = 6 };
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pthread_t threads[THREADS];
    o.sessions = 2;
    pith_model *model = open_with(&o);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, embed_some, model), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pith_statistics s = read_all(model);
    assert_true(s.sessions_idle >= 1 && s.sessions_idle <= 2);
    assert_int_equal(s.sessions_made + s.sessions_borrowed, THREADS * 20);
    assert_int_equal(s.sessions_made, s.sessions_idle + s.sessions_evicted);
    pith_model_close(model);

    o.session_idle_ms = 1000; /* a call on a busy machine may take a while */
    model = open_with(&o);
    pith_embed_options two = PITH_EMBED_OPTIONS_INIT;
    two.call.threads = 2;
    two.batch_tokens = 128;
    embed_first(ours[0], model, 40, &two);
    uint64_t idle = read_all(model).sessions_idle;
    assert_true(idle >= 1);
    two.call.threads = 1;
    usleep(1500000);
    embed_first(ours[0], model, 1, &two);
    s = read_all(model);
    assert_int_equal(s.sessions_idle, 1);
    assert_int_equal(s.sessions_evicted, idle - 1);
    pith_model_close(model);
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static char told[400];
static void note_log(void *user, pith_log_level level, const char *message) {
    (void)user;
    if (level == PITH_LOG_INFO) snprintf(told, sizeof told, "%s", message);
}

/* When the system is short of memory, kept buffers are freed, batches become small, and the log is
 * told; vectors stay the same. */
static void test_pressure(void **state) {
    (void)state;
    static const int percents[] = { -1, 0, 60, 95 };
    char root[] = "/tmp/pith-pressure-XXXXXX", path[100], command[100];
    pith_log log = { note_log, NULL };
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/proc", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        pith_open_options o = PITH_OPEN_OPTIONS_INIT;
        pith_embed_options one = PITH_EMBED_OPTIONS_INIT;
        o.pressure_percent = percents[i];
        o.system_root = root;
        o.call.log = &log;
        one.call.threads = 1;
        one.batch_tokens = 2048;
        put(path, "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
        pith_model *model = open_with(&o);
        embed_first(theirs[0], model, 100, &one);
        assert_int_equal(read_all(model).pressure_cleanups, 0);
        put(path, "MemTotal: 1000 kB\nMemAvailable: 100 kB\n");
        told[0] = 0;
        pith_model_reset_statistics(model);
        embed_first(ours[0], model, 100, &one);
        pith_statistics s = read_all(model);
        bool expected = percents[i] == 0 || percents[i] == 60; /* 0 stands for 80 */
        assert_int_equal(s.pressure_cleanups, expected);
        assert_int_equal(strstr(told, "90 % of the machine's memory") != NULL, expected);
        if (expected) assert_true(s.batch_tokens_most <= 128);
        if (!expected) assert_true(s.batch_tokens_most > 128);
        assert_memory_equal(ours, theirs, 100 * sizeof *ours);
        pith_model_close(model);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

/* Under a memory limit batches are made smaller before they run; without prediction, after they
 * failed. */
static void test_prediction_lowers(void **state) {
    (void)state;
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    o.call.threads = 2;
    o.batch_tokens = 4096;
    pith_model *model = open_with(NULL);
    size_t held = pith_model_bytes(model, NULL);
    embed_first(theirs[0], model, GOLDEN, &o);
    pith_model_close(model);
    for (int without = 0; without < 2; without++) {
        pith_open_options limited = PITH_OPEN_OPTIONS_INIT;
        limited.memory_limit = held + (8 << 20);
        limited.flags = without ? PITH_OPEN_NO_PREDICTION : 0;
        model = open_with(&limited);
        memset(ours, 0, sizeof ours);
        embed_first(ours[0], model, GOLDEN, &o);
        size_t peak;
        pith_model_bytes(model, &peak);
        pith_statistics s = read_all(model);
        assert_true(peak <= limited.memory_limit);
        assert_memory_equal(ours, theirs, sizeof ours);
        if (without) {
            assert_int_equal(s.batches_predicted_smaller, 0);
            assert_true(s.batches_retried_smaller > 0);
        } else {
            assert_true(s.batches_predicted_smaller > 0);
            assert_int_equal(s.batches_retried_smaller, 0);
        }
        pith_model_close(model);
    }
}

/* The prediction against what a call then takes: a fresh model, texts of the same length. */
static void predict(const char *name, int tokens, int count, int threads) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_memory_need need;
    pith_embed_stats stats = { 0 };
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    o.call.threads = threads;
    o.stats = &stats;
    if (pith_model_open(&model, name, NULL, &err)) fail_msg("%s", err.message);
    char *text = malloc((size_t)tokens * 2);
    pith_str *texts = calloc((size_t)count, sizeof *texts);
    for (int i = 0; i < tokens * 2; i++) text[i] = i % 2 ? ' ' : 'a'; /* "a" is one token */
    for (int i = 0; i < count; i++) texts[i] = (pith_str){ text, (size_t)(tokens - 2) * 2 };
    size_t dim = pith_embed_dim(model, &o);
    float *vectors = malloc((size_t)count * dim * sizeof *vectors);
    if (pith_embed_predict(&need, model, (size_t)count, (size_t)tokens, &o, &err))
        fail_msg("%s", err.message);
    pith_model_reset_statistics(model);
    size_t before = pith_model_bytes(model, NULL), peak;
    if (pith_embed(vectors, model, texts, (size_t)count, &o, &err)) fail_msg("%s", err.message);
    pith_model_bytes(model, &peak);
    assert_int_equal(stats.tokens, count * tokens);
    double grown = (double)(peak - before), total = (double)need.total / grown;
    double activations = (double)need.activations / (double)stats.peak_bytes;
    print_message("%s: %d texts of %d tokens, %d threads: %.0f bytes, predicted %zu\n", name, count,
                  tokens, threads, grown, need.total);

    bool low = total < 0.9 || activations < 0.9; /* of two threads, one may have done all the
                                                    work */
    if (low || (threads == 1 && (total > 1.1 || activations > 1.1)))
        fail_msg("total %g, activations %g of what was measured", total, activations);
    free(vectors);
    free(texts);
    free(text);
    pith_model_close(model);
}

static void test_prediction(void **state) {
    (void)state;
    static const int lengths[2][5] = { { 4, 16, 64, 150, 256 }, { 4, 10, 16, 24, 38 } },
                     counts[] = { 1, 9, 40 };
    static const char *const networks[] = { NULL, "bert-base-script14-eager",
                                            "roberta-base-dynamo20-sdpa",
                                            "qwen3-base-script17-sdpa" };
    for (size_t m = 0; m < sizeof networks / sizeof *networks; m++) {
        char dir[600] = "all-MiniLM-L6-v2";
        if (networks[m]) {
            snprintf(dir, sizeof dir, PITH_BINARY_DIR "/predicted-%s", networks[m]);
            network_directory(dir, networks[m], "null");
        }
        for (int length = 0; length < 5; length++)
            for (int count = 0; count < 3; count++)
                for (int threads = 1; threads <= 2; threads++)
                    predict(dir, lengths[m > 0][length], counts[count], threads);
    }
}

/* ---- time ---- */

static void test_times(void **state) {
    (void)state;
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    o.call.threads = 1;
    pith_model *model = open_with(NULL);
    pith_model_reset_statistics(model);
    uint64_t begin = pith_profile_now();
    embed_first(ours[0], model, GOLDEN, &o);
    uint64_t wall = pith_profile_now() - begin;
    pith_statistics s = read_all(model);
    assert_true(s.busy_ns <= wall && s.busy_ns > wall / 2);
    assert_int_equal(s.thread_ns, s.busy_ns);
    assert_true(s.tokenize_ns > 0 && s.run_ns > 0 && s.head_ns > 0 && s.plan_ns < s.run_ns);
    assert_true(s.tokenize_ns + s.run_ns + s.head_ns <= s.busy_ns);
    assert_true(s.run_ns > s.busy_ns / 2);
    assert_true(s.cpu_ns > 0 && s.cpu_ns <= s.busy_ns + s.busy_ns / 5);
    o.call.threads = 2;
    pith_model_reset_statistics(model);
    embed_first(ours[0], model, GOLDEN, &o);
    s = read_all(model);
    assert_int_equal(s.thread_ns, 2 * s.busy_ns);
    pith_model_close(model);
}

/* ---- writing ---- */

static char written[8000];
static size_t written_size;

static int32_t keep(void *user, const void *text, size_t size) {
    (void)user;
    assert_true(written_size + size < sizeof written);
    memcpy(written + written_size, text, size);
    written[written_size += size] = 0;
    return 0;
}

static void test_writing(void **state) {
    (void)state;
    pith_error err = PITH_ERROR_INIT;
    pith_statistics s = PITH_STATISTICS_INIT;
    s.pool_hits = 3;
    s.pool_misses = 1;
    s.run_ns = 1500000;
    s.tokens = 90;
    s.padded_tokens = 10;
    s.batches = 4;
    written_size = 0;
    assert_int_equal(
        pith_statistics_write(&s, PITH_STATISTICS_JSON, &(pith_writer){ keep, NULL, NULL }, &err),
        PITH_OK);
    assert_non_null(strstr(written, "\"pool_hit_ratio\": 0.75"));
    assert_non_null(strstr(written, "\"run_ns\": 1500000"));
    assert_non_null(strstr(written, "\"batch_mean_tokens\": 25"));
    assert_non_null(strstr(written, "\"buffer_reuse_ratio\": null"));
    pith__arena arena;
    pith__arena_init(&arena, &pith__allocator_default);
    pith__json j;
    pith_str key;
    int keys = 0;
    pith__json_init(&j, (pith_str){ written, written_size }, "statistics", &arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key); pith__json_skip(&j)) keys++;
    assert_false(j.failed);
    assert_int_equal(keys, (sizeof s - sizeof s.size) / sizeof(uint64_t) + 8);
    pith__arena_free(&arena);
    written_size = 0;
    assert_int_equal(
        pith_statistics_write(&s, PITH_STATISTICS_TEXT, &(pith_writer){ keep, NULL, NULL }, &err),
        PITH_OK);
    assert_non_null(strstr(written, "pool_hits                  3\n"));
    assert_non_null(strstr(written, "run                        1.500 ms\n"));
    assert_non_null(strstr(written, "buffer_reuse_ratio         -\n"));
    assert_int_equal(pith_statistics_write(&s, 5, &(pith_writer){ keep, NULL, NULL }, &err),
                     PITH_ERR_ARGUMENT);
    s.size = 0;
    assert_int_equal(
        pith_statistics_write(&s, PITH_STATISTICS_TEXT, &(pith_writer){ keep, NULL, NULL }, &err),
        PITH_ERR_ARGUMENT);
}

static void test_wrong_open_options(void **state) {
    (void)state;
    static const struct {
        const char *says;
        int32_t pool_blocks, sessions, idle, pressure;
    } rows[] = {
        { "pool_blocks is -2; it must be from -1 to 4096", -2, 0, 0, 0 },
        { "sessions is 5000; it must be from -1 to 4096", 0, 5000, 0, 0 },
        { "session_idle_ms is -1", 0, 0, -1, 0 },
        { "pressure_percent is 101; it must be from -1 to 100", 0, 0, 0, 101 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_open_options o = PITH_OPEN_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        pith_model *model;
        o.pool_blocks = rows[i].pool_blocks;
        o.sessions = rows[i].sessions;
        o.session_idle_ms = rows[i].idle;
        o.pressure_percent = rows[i].pressure;
        assert_int_equal(pith_model_open(&model, model_name, &o, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, rows[i].says)) fail_msg("%s", err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_batching),
        cmocka_unit_test(test_wrong_batching), cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_bounds),    cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_pressure),       cmocka_unit_test(test_prediction_lowers),
        cmocka_unit_test(test_prediction),     cmocka_unit_test(test_times),
        cmocka_unit_test(test_writing),        cmocka_unit_test(test_wrong_open_options),
    };
    golden_open(&g);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&g);
    return failed;
}
