/* test_many_threads.c - 64 threads that share one model: texts of all lengths, every head that it
 * has, random options, and sessions of a pool. No byte differs from what one thread gets, and
 * memory does not grow after the first part.
 *
 * usage: test_many_threads [SECONDS] */
#include "support/embed_test.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 64, PARTS = 4, TEXTS = 48, LENGTHS = 3, SESSION_TOKENS = 12, SESSION_RUNS = 4 };

static golden g;
static pith_model *model;
static pith_session_pool *pool;
static double seconds = 3;
static const int32_t lengths[LENGTHS] = { 0, 16, 7 }; /* max_length */

/* What one thread got, before the others began. */
static pith_str texts[TEXTS];
static char words[TEXTS][600];
static float dense[LENGTHS][TEXTS][DIM];
static float *token_rows[LENGTHS][TEXTS]; /* hidden states, [count, DIM] */
static size_t token_counts[LENGTHS][TEXTS];
static float session_rows[SESSION_RUNS][SESSION_TOKENS * DIM];

static atomic_bool stop;
static atomic_size_t wrong, calls;

static uint32_t next_random(uint32_t *seed) {
    return (*seed = *seed * 1664525u + 1013904223u) >> 8;
}

/* ---- what is right ---- */

static void make_texts(void) {
    uint32_t seed = 7;
    for (int i = 0; i < TEXTS; i++) {
        size_t used = 0, wanted = i % 4 ? next_random(&seed) % 60 : next_random(&seed) % 500;
        while (used < wanted) {
            pith_str from = g.texts[next_random(&seed) % GOLDEN];
            size_t n = from.size < 40 ? from.size : 40;
            while (n && pith_text_valid((pith_str){ from.data, n }) != n) n--;
            if (used + n + 1 > sizeof words[i]) break;
            memcpy(words[i] + used, from.data, n);
            words[i][used + n] = ' ';
            used += n + 1;
        }
        texts[i] = (pith_str){ words[i], used };
    }
}

static pith_status run_session(pith_session *s, float *rows, int run, bool bind) {
    static const char *const names[] = { "input_ids", "attention_mask", "token_type_ids" };
    int64_t data[3][SESSION_TOKENS];
    pith_tensor in[3], out[4],
        to = { .data = rows,
               .bytes = sizeof session_rows[0],
               .dtype = PITH_F32,
               .rank = -1,
               .dims = { 0 } };
    for (int k = 0; k < SESSION_TOKENS; k++)
        data[0][k] = 1000 + run * 31 + k, data[1][k] = 1, data[2][k] = 0;
    for (int i = 0; i < 3; i++)
        in[i] = (pith_tensor){ .data = data[i],
                               .bytes = sizeof data[i],
                               .dtype = PITH_I64,
                               .rank = 2,
                               .dims = { 1, SESSION_TOKENS } };
    const char *output = pith_model_output(model, 0)->name;
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    o.call.threads = 1 + run % 2;
    pith_status status = bind ? pith_session_bind_output(s, output, &to, NULL) : PITH_OK;
    if (!status)
        status = pith_session_run(s, out, names, in, pith_model_input_count(model), &o, NULL);
    if (!status && !bind)
        memcpy(rows, out[0].data, out[0].bytes < to.bytes ? out[0].bytes : to.bytes);
    return status;
}

static void find_right(void) {
    pith_error err = PITH_ERROR_INIT;
    for (int l = 0; l < LENGTHS; l++)
        for (size_t i = 0; i < TEXTS; i++) {
            pith_embed_options embed_options = PITH_EMBED_OPTIONS_INIT;
            pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
            pith_encoded *e;
            o.call.threads = 1;
            embed_options.max_length = lengths[l];
            o.embed = &embed_options;
            o.what = PITH_ENCODE_DENSE | PITH_ENCODE_TOKENS;
            if (pith_encode(&e, model, &texts[i], 1, &o, &err)) fail_msg("%s", err.message);
            assert_int_equal(e->dim, DIM);
            memcpy(dense[l][i], e->dense, sizeof dense[l][i]);
            token_counts[l][i] = (size_t)e->tokens.offsets[1];
            size_t bytes = token_counts[l][i] * DIM * sizeof(float);
            token_rows[l][i] = malloc(bytes + 1);
            memcpy(token_rows[l][i], e->tokens.vectors, bytes);
            pith_encoded_free(e);
        }
    pith_session *s;
    assert_int_equal(pith_session_create(&s, model, &err), PITH_OK);
    for (int run = 0; run < SESSION_RUNS; run++)
        assert_int_equal(run_session(s, session_rows[run], run, false), PITH_OK);
    pith_session_destroy(s);
}

/* ---- what the threads do ---- */

static bool embed_right(const pith_str *some, const size_t *which, size_t n,
                        const pith_embed_options *o, int l) {
    float got[6][DIM];
    if (pith_embed(got[0], model, some, n, o, NULL)) return false;
    for (size_t i = 0; i < n; i++)
        if (memcmp(got[i], dense[l][which[i]], sizeof got[i])) return false;
    return true;
}

static bool encode_right(const pith_str *some, const size_t *which, size_t n,
                         const pith_embed_options *embed_options, int l, uint32_t what) {
    pith_encode_options o = PITH_ENCODE_OPTIONS_INIT;
    pith_encoded *e;
    o.call.threads = embed_options->call.threads;
    o.embed = embed_options;
    o.what = what;
    if (pith_encode(&e, model, some, n, &o, NULL)) return false;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        if (what & PITH_ENCODE_DENSE)
            good = !memcmp(e->dense + i * DIM, dense[l][which[i]], sizeof dense[l][0]);
        if (!good || !(what & PITH_ENCODE_TOKENS)) continue;
        size_t first = (size_t)e->tokens.offsets[i],
               rows = (size_t)e->tokens.offsets[i + 1] - first;
        good = rows == token_counts[l][which[i]] &&
               !memcmp(e->tokens.vectors + first * DIM, token_rows[l][which[i]],
                       rows * DIM * sizeof(float));
    }
    pith_encoded_free(e);
    return good;
}

static bool session_right(uint32_t *seed) {
    pith_session *s;
    float rows[SESSION_TOKENS * DIM];
    int run = (int)(next_random(seed) % SESSION_RUNS);
    pith_status status =
        pith_session_pool_borrow(&s, pool, next_random(seed) % 2 ? -1 : 5, NULL, NULL);
    if (status == PITH_ERR_BUSY) return true;
    if (status) return false;
    status = run_session(s, rows, run, next_random(seed) % 2);
    pith_session_pool_return(pool, s);
    return !status && !memcmp(rows, session_rows[run], sizeof rows);
}

static bool one_call(uint32_t *seed) {
    static const int32_t budgets[] = { 0, 1, 33, 200 };
    size_t n = 1 + next_random(seed) % 6, which[6];
    pith_str some[6];
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    pith_batching batching = PITH_BATCHING_INIT;
    int l = (int)(next_random(seed) % LENGTHS), kind = (int)(next_random(seed) % 8);
    for (size_t i = 0; i < n; i++) some[i] = texts[which[i] = next_random(seed) % TEXTS];
    batching.most = (int32_t)(next_random(seed) % 4);
    batching.prefer = (int32_t)(next_random(seed) % 2);
    o.call.threads = 1 + (int32_t)(next_random(seed) % 3);
    o.max_length = lengths[l];
    o.batch_tokens = budgets[next_random(seed) % 4];
    o.batching = next_random(seed) % 2 ? &batching : NULL;
    if (kind == 0) return session_right(seed);
    if (kind == 1) return encode_right(some, which, n, &o, l, PITH_ENCODE_TOKENS);
    if (kind == 2)
        return encode_right(some, which, n, &o, l, PITH_ENCODE_DENSE | PITH_ENCODE_TOKENS);
    return embed_right(some, which, n, &o, l);
}

static void *work(void *context) {
    uint32_t seed = *(const uint32_t *)context;
    while (!atomic_load(&stop)) {
        if (!one_call(&seed)) atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&calls, 1);
    }
    return NULL;
}

static size_t anonymous(void) {
    char line[200];
    size_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %zu kB", &kilobytes);
    if (f) fclose(f);
    return kilobytes << 10;
}

static void test_all_at_once(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS];
    size_t peaks[PARTS], held[PARTS], resident[PARTS];
    for (int part = 0; part < PARTS; part++) {
        pith_model_reset_statistics(model);
        atomic_store(&stop, false);
        for (int i = 0; i < THREADS; i++) {
            seeds[i] = (uint32_t)(part * THREADS + i) * 2654435761u;
            assert_int_equal(pthread_create(&threads[i], NULL, work, &seeds[i]), 0);
        }
        usleep((useconds_t)(seconds / PARTS * 1e6));
        atomic_store(&stop, true);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        held[part] = pith_model_bytes(model, &peaks[part]);
        resident[part] = anonymous();
        print_message("part %d: %zu calls so far, peak %zu, held %zu, anonymous %zu\n", part,
                      atomic_load(&calls), peaks[part], held[part], resident[part]);
        assert_int_equal(atomic_load(&wrong), 0);
    }
    assert_true(atomic_load(&calls) > THREADS);
    /* What 64 calls hold at once varies with what they are; what stays behind has a bound. */
    size_t most = peaks[0] > peaks[1] ? peaks[0] : peaks[1];
    for (int part = 2; part < PARTS; part++) {
        assert_true(peaks[part] <= most + most / 4);
        assert_true(held[part] <= held[0] + ((size_t)16 << 20));
#ifndef PITH_SANITIZED
        assert_true(resident[part] <= resident[0] + ((size_t)32 << 20));
#endif
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_at_once) };
    pith_session_pool_options o = PITH_SESSION_POOL_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    if (argc > 1) seconds = strtod(argv[1], NULL);
    golden_open(&g);
    make_texts();
    model = open_model("all-MiniLM-L6-v2");
    find_right();
    o.sessions = 3;
    o.idle_ms = 2;
    assert_int_equal(pith_session_pool_create(&pool, model, &o, &err), PITH_OK);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pith_session_pool_destroy(pool);
    pith_model_close(model);
    for (int l = 0; l < LENGTHS; l++)
        for (int i = 0; i < TEXTS; i++) free(token_rows[l][i]);
    golden_close(&g);
    return failed;
}
