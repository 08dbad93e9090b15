/* test_steady.c - what must hold when the default model has worked for a while, by counts: pool,
 * buffers, copies, requests of the host's allocator, and memory under a limit. */
#include "support/embed_test.h"

#include <pthread.h>
#include <stdatomic.h>

static const char model_name[] = "all-MiniLM-L6-v2";
static golden g;
static float ours[GOLDEN][DIM], theirs[GOLDEN][DIM];

static pith_model *open_with(const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, model_name, options, &err)) fail_msg("%s", err.message);
    return model;
}

static pith_statistics count(const pith_model *model) {
    pith_statistics n = PITH_STATISTICS_INIT;
    assert_int_equal(pith_model_statistics(&n, model, NULL), PITH_OK);
    return n;
}

/* Calls of 1 to 20 texts of all lengths. */
static void work(float (*vectors)[DIM], const pith_model *model, int threads) {
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    o.call.threads = threads;
    for (size_t first = 0, n = 1; first < GOLDEN; first += n, n = n % 20 + 1) {
        if (n > GOLDEN - first) n = GOLDEN - first;
        if (pith_embed(vectors[first], model, g.texts + first, n, &o, &err))
            fail_msg("%s", err.message);
    }
}

/* Nine of ten requests are answered by the pool, four of five runs find their buffer, nothing is
 * copied; and four of five requests of the host's allocator are saved against one allocation per
 * value, without pool, idle sessions and kept plans. The bits are the same. */
static void test_ratios(void **state) {
    (void)state;
    enum { ROUNDS = 3 };
    pith_open_options usual = PITH_OPEN_OPTIONS_INIT, bare = PITH_OPEN_OPTIONS_INIT;
    usual.sessions = 2; /* one for each thread, whatever the machine has */
    bare.flags = PITH_OPEN_NO_ARENA | PITH_OPEN_NO_PLAN_REUSE;
    bare.pool_blocks = bare.sessions = -1;
    for (int threads = 1; threads <= 2; threads++) {
        pith_model *model = open_with(&usual), *other = open_with(&bare);
        work(theirs, model, threads);
        pith_model_reset_statistics(model);
        for (int i = 0; i < ROUNDS; i++) work(theirs, model, threads);
        pith_statistics with = count(model);
        pith_model_reset_statistics(other);
        work(ours, other, threads);
        pith_statistics without = count(other);
        assert_memory_equal(ours, theirs, sizeof ours);
        print_message("%d threads: pool %llu of %llu, buffers %llu of %llu, bound %llu, copied "
                      "%llu, host %llu of %llu\n",
                      threads, (unsigned long long)with.pool_hits,
                      (unsigned long long)(with.pool_hits + with.pool_misses),
                      (unsigned long long)with.buffers_reused,
                      (unsigned long long)(with.buffers_reused + with.buffers_made),
                      (unsigned long long)with.tensors_bound,
                      (unsigned long long)with.tensors_copied, (unsigned long long)with.allocations,
                      (unsigned long long)(without.allocations * ROUNDS));
#ifndef PITH_SANITIZED /* there a block answers only a request of its own size */
        assert_true(with.pool_hits > 9 * with.pool_misses);
#endif
        assert_true(with.buffers_reused > 4 * with.buffers_made && with.runs >= ROUNDS);
        assert_true(with.tensors_bound >= 3 * with.runs);
        assert_int_equal(with.tensors_copied, 0);
        assert_true(5 * with.allocations <= without.allocations * ROUNDS);
        assert_int_equal(without.buffers_reused + without.plans_reused + without.pool_hits, 0);
        pith_model_close(other);
        pith_model_close(model);
    }
}

/* Bound inputs and outputs of a session: nothing is copied, and in a steady state nothing is asked
 * of the host. */
static void test_bound_session(void **state) {
    (void)state;
    enum { TOKENS = 16 };
    pith_model *model = open_with(NULL);
    pith_session *session;
    pith_error err = PITH_ERROR_INIT;
    static int64_t data[3][TOKENS];
    static float memory[TOKENS * DIM];
    pith_tensor outputs[4], to = {
        .data = memory, .bytes = sizeof memory, .dtype = PITH_F32, .rank = -1, .dims = { 0 }
    };
    assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
    size_t inputs = pith_model_input_count(model);
    assert_true(inputs <= 3 && pith_model_output_count(model) <= 4);
    for (size_t i = 0; i < inputs; i++) {
        const pith_port *port = pith_model_input(model, i);
        for (int k = 0; k < TOKENS; k++)
            data[i][k] = strstr(port->name, "ids") && !strstr(port->name, "type") ? 101 + k : 1;
        pith_tensor t = { .data = data[i],
                          .bytes = sizeof data[i],
                          .dtype = port->dtype,
                          .rank = 2,
                          .dims = { 1, TOKENS } };
        assert_int_equal(port->dtype, PITH_I64);
        if (strstr(port->name, "type")) memset(data[i], 0, sizeof data[i]);
        assert_int_equal(pith_session_bind_input(session, port->name, &t, &err), PITH_OK);
    }
    assert_int_equal(
        pith_session_bind_output(session, pith_model_output(model, 0)->name, &to, &err), PITH_OK);
    for (int i = 0; i < 200; i++) {
        if (i == 2) pith_model_reset_statistics(model);
        if (pith_session_run(session, outputs, NULL, NULL, 0, NULL, &err))
            fail_msg("%s", err.message);
        assert_ptr_equal(outputs[0].data, memory);
    }
    pith_statistics n = count(model);
    assert_int_equal(n.runs, 198);
    assert_int_equal(n.tensors_bound, 198 * (inputs + pith_model_output_count(model)));
    assert_int_equal(n.tensors_copied + n.allocations + n.plans_made + n.buffers_made, 0);
    pith_session_destroy(session);
    pith_model_close(model);
}

/* ---- under a memory limit ---- */

#define LIMIT ((size_t)100 << 20)

/* Anonymous pages of the process, in bytes. */
static size_t anonymous(void) {
    char line[200];
    size_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "RssAnon: %zu kB", &kilobytes);
    if (f) fclose(f);
    return kilobytes << 10;
}

static atomic_bool watching;
static atomic_size_t most_seen;

static void *watch(void *context) {
    (void)context;
    while (atomic_load(&watching)) {
        size_t now = anonymous();
        if (now > atomic_load(&most_seen)) atomic_store(&most_seen, now);
        usleep(1000);
    }
    return NULL;
}

/* Short texts, long ones, and some that are cut; in one call and in many. */
static int embed_mixed(void) {
    enum { COUNT = 400 };
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_embed_options how = PITH_EMBED_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pthread_t watcher;
    static pith_str texts[COUNT];
    static char longest[20000];
    static float vectors[COUNT][DIM];
    size_t before = anonymous(), peak;
    o.memory_limit = LIMIT;
    for (size_t i = 0; i + 5 <= sizeof longest; i += 5) memcpy(longest + i, "word ", 5);
    for (size_t i = 0; i < COUNT; i++)
        texts[i] = i % 7 == 3 ? (pith_str){ longest, i * 47 } : g.texts[i % GOLDEN];
    atomic_store(&watching, true);
    if (pthread_create(&watcher, NULL, watch, NULL)) return 1;
    how.call.threads = 2;
    how.batch_tokens = 4096;
    if (pith_model_open(&model, model_name, &o, &err) ||
        pith_embed(vectors[0], model, texts, COUNT, &how, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    for (size_t i = 0; i < COUNT; i += 40)
        if (pith_embed(vectors[i], model, texts + i, 40, &how, &err)) return 3;
    atomic_store(&watching, false);
    pthread_join(watcher, NULL);
    pith_model_bytes(model, &peak);
    for (size_t i = 0; i < COUNT; i++)
        for (int d = 0; texts[i].data != longest && d < DIM; d++)
            if (fabsf(vectors[i][d] - g.vectors[i % GOLDEN][d]) > 1e-4f) return 4;
    pith_statistics n = count(model);
    fprintf(stderr, "limit %zu, peak %zu, anonymous %zu (%zu before)\n", LIMIT, peak,
            atomic_load(&most_seen), before);
    if (n.texts != 2 * COUNT || peak > LIMIT) return 5;
    pith_model_close(model);
#ifdef PITH_SANITIZED
    return 0; /* shadow memory is anonymous */
#else
    return atomic_load(&most_seen) > LIMIT + ((size_t)15 << 20) ? 6 : 0;
#endif
}

/* In a process of its own, whose memory is its own. */
static void test_limit(void **state) {
    (void)state;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) _exit(embed_mixed());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit), cmocka_unit_test(test_ratios),
                                        cmocka_unit_test(test_bound_session) };
    golden_open(&g);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&g);
    return failed;
}
