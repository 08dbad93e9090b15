/* test_queue_bounds.c - what a queue may hold, what a key may hold of it, and what the model's
 * memory limit leaves for chunks. */
#define QUEUE_DIR PITH_BINARY_DIR "/queue-bounds-model"

#include "models/model.h"
#include "support/queue_test.h"

/* ---- limits of the queue ---- */

static void test_full(void **state) {
    (void)state;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    answer gate = ANSWER_INIT, a = ANSWER_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue;
    o.call.threads = 1;
    o.max_requests = 2;
    o.max_bytes = 20000;
    o.key_percent = 100;
    assert_int_equal(pith_queue_create(&queue, model, &o, NULL), PITH_OK);
    gate.holds = true;
    pith_request r = ask(&gate, texts, 0);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    while (report(queue).held_requests) sched_yield();
    r = ask(&a, texts, 1);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, &err), PITH_ERR_BUSY);
    assert_non_null(strstr(err.message, "bytes of requests, and may hold 20000"));
    assert_int_equal(report(queue).refused, 1);
    open_gate(&gate);
    wait_for(&a, 1);
    assert_int_equal(a.status, PITH_OK);
    pith_queue_destroy(queue);
}

/* A key that floods the queue takes its share and no more: another one comes in, and is answered
 * with the first chunks. Nothing of what is refused is lost or left behind. */
static void test_flood(void **state) {
    (void)state;
    enum { REQUESTS = 64 };
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    answer gate = ANSWER_INIT, flood = ANSWER_INIT;
    chunks other = { .a = ANSWER_INIT };
    pith_error err = PITH_ERROR_INIT;
    pith_queue *queue;
    int taken = 0;
    o.call.threads = 1;
    o.max_requests = REQUESTS;
    assert_int_equal(pith_queue_create(&queue, model, &o, NULL), PITH_OK);
    gate.holds = true;
    pith_request r = ask(&gate, texts, 0);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    while (report(queue).held_requests) sched_yield();
    r = ask(&flood, texts, 1);
    r.key = 7;
    for (int i = 0; i < 2 * REQUESTS; i++) {
        const pith_status status = pith_queue_submit(NULL, queue, &r, &err);
        taken += status == PITH_OK;
        if (status) assert_int_equal(status, PITH_ERR_BUSY);
    }
    assert_int_equal(taken, REQUESTS / 2);
    assert_string_equal(err.message, "the key has its share of the queue: 32 of 64 requests");
    other.queue = queue;
    r = ask(&other.a, texts + 1, 1);
    r.key = 8;
    r.done = count_chunks;
    r.user = &other;
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    pith_queue_statistics n = report(queue);
    assert_int_equal(n.refused, 2 * REQUESTS - taken);
    assert_int_equal(n.refused_key, n.refused);
    assert_int_equal(n.held_requests, taken + 1);
    open_gate(&gate);
    wait_for(&other.a, 1);
    assert_int_equal(other.a.status, PITH_OK);
    assert_in_range(other.at, 1, 2);
    assert_int_equal(pith_queue_drain(queue, NULL, NULL), PITH_OK);
    assert_int_equal(flood.calls, taken);
    n = report(queue);
    assert_int_equal(n.requests, taken + 2);
    assert_int_equal(n.held_bytes, 0);
    pith_queue_destroy(queue);
}

/* What takes more than a key may ever hold is told at once, whatever the queue holds. */
static void test_too_large(void **state) {
    (void)state;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_encode_options encode = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    answer a = ANSWER_INIT;
    pith_queue *queue;
    char long_text[30000];
    memset(long_text, 'w', sizeof long_text);
    const pith_str text = { long_text, sizeof long_text };
    o.call.threads = 1;
    o.max_bytes = 80000;
    assert_int_equal(pith_queue_create(&queue, model, &o, NULL), PITH_OK);
    pith_request r = ask(&a, &text, 1);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "one key may hold 50 % of 80000"));
    /* results count, too: vectors of tokens are larger than the texts */
    pith_str many[32];
    for (size_t i = 0; i < 32; i++) many[i] = texts[4];
    r = ask(&a, many, 32);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    wait_for(&a, 1);
    encode.what = 15;
    r.encode = &encode;
    assert_int_equal(pith_queue_submit(NULL, queue, &r, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(report(queue).too_large, 2);
    assert_int_equal(report(queue).refused, 0);
    assert_int_equal(a.calls, 1);
    o.key_percent = 101;
    pith_queue *none = NULL;
    assert_int_equal(pith_queue_create(&none, model, &o, NULL), PITH_ERR_ARGUMENT);
    pith_queue_destroy(queue);
}

/* ---- the model's memory limit ---- */

/* Memory that comes slowly, so that threads overlap while they hold some. */
static atomic_int slow;

static void *slow_alloc(void *user, size_t bytes) {
    (void)user;
    if (atomic_load(&slow)) usleep(50);
    return malloc(bytes ? bytes : 1);
}

static void slow_free(void *user, void *memory) {
    (void)user;
    free(memory);
}

static const pith_allocator slowly = { slow_alloc, slow_free, NULL };

/* The limit is set behind the opening, which may need more than the calls. */
static pith_model *open_tight(void) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_model *m = NULL;
    o.memory_limit = (size_t)1 << 40;
    o.pool_blocks = -1;
    o.call.allocator = &slowly;
    assert_int_equal(pith_model_open(&m, QUEUE_DIR, &o, NULL), PITH_OK);
    return m;
}

static void set_limit(pith_model *m, size_t limit) {
    pith_model_trim(m);
    m->account.limit = limit;
}

enum { BULK_TEXTS = 400 };

/* The peak of a request of many texts in chunks of so many tokens. */
static size_t bulk_peak(pith_model *m, int32_t batch_tokens, pith_queue_statistics *n) {
    static pith_str many[BULK_TEXTS];
    answer a = ANSWER_INIT;
    size_t peak;
    pith_queue *queue = make(m, 1, batch_tokens);
    for (size_t i = 0; i < BULK_TEXTS; i++) many[i] = texts[4];
    atomic_store(&m->account.peak, 0);
    const pith_request r = ask(&a, many, BULK_TEXTS);
    assert_int_equal(pith_queue_submit(NULL, queue, &r, NULL), PITH_OK);
    wait_for(&a, 1);
    if (a.status || a.failed) fail_msg("%d, %zu: %s", a.status, a.failed, a.message);
    *n = report(queue);
    pith_queue_destroy(queue);
    pith_model_bytes(m, &peak);
    return peak;
}

/* A chunk that does not fit is run in smaller ones, and all texts have results. */
static void test_chunks_fit(void **state) {
    (void)state;
    pith_model *m = open_tight();
    pith_queue_statistics n;
    const size_t small = bulk_peak(m, 1, &n), large = bulk_peak(m, 1 << 20, &n);
    assert_int_equal(n.smaller_chunks, 0);
    assert_true(large > small);
    const size_t limit = small + (large - small) / 3;
    set_limit(m, limit);
    assert_true(bulk_peak(m, 1 << 20, &n) <= limit);
    assert_true(n.smaller_chunks > 0);
    pith_model_close(m);
}

/* While the machine is short of memory, chunks are small and what is kept is freed. */
static void test_pressure(void **state) {
    (void)state;
    char root[] = "/tmp/pith-queue-XXXXXX", path[100], command[100];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/proc", root);
    mkdir(path, 0755);
    for (int is_short = 0; is_short < 2; is_short++) {
        pith_open_options o = PITH_OPEN_OPTIONS_INIT;
        pith_queue_statistics n;
        pith_statistics s = PITH_STATISTICS_INIT;
        pith_model *m = NULL;
        o.system_root = root;
        encode_put(path, "meminfo",
                   is_short ? "MemTotal: 1000 kB\nMemAvailable: 100 kB\n"
                            : "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
        assert_int_equal(pith_model_open(&m, QUEUE_DIR, &o, NULL), PITH_OK);
        bulk_peak(m, 4096, &n);
        assert_int_equal(pith_model_statistics(&s, m, NULL), PITH_OK);
        assert_int_equal(s.pressure_cleanups > 0, is_short);
        if (is_short)
            assert_in_range(s.batch_tokens_most, 1, 128 + 128 / 8);
        else
            assert_true(s.batch_tokens_most > 1000);
        assert_int_equal(n.smaller_chunks, 0);
        pith_model_close(m);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

enum { ONES = 40 };

/* Submits a long text and then short ones, each by itself. Returns how many were accepted. */
static int submit_ones(pith_queue *queue, answer *answers) {
    static const size_t which[] = { 4, 1 };
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < ONES; i++) {
        answers[i] = (answer)ANSWER_INIT;
        answers[i].what = PITH_ENCODE_DENSE;
        answers[i].which = &which[i > 0];
        pith_request r = ask(&answers[i], &texts[which[i > 0]], 1);
        r.priority = i == 0;
        if (!pith_queue_submit(NULL, queue, &r, &err)) continue;
        assert_int_equal(err.code, PITH_ERR_MEMORY);
        return i;
    }
    return ONES;
}

/* Runs them when all of them wait. Returns how many have no result, and whether the long one has;
 * SIZE_MAX: some could not be submitted. */
static size_t run_ones(const pith_model *m, int32_t threads, bool *long_fits) {
    static answer answers[ONES];
    answer gate = ANSWER_INIT;
    pith_queue_options o = PITH_QUEUE_OPTIONS_INIT;
    pith_queue *queue = NULL;
    const pith_request hold_one = ask(&gate, texts, 0);
    size_t failed = 0;
    int gates = 0, submitted = 0;
    o.call.threads = threads;
    o.batch_tokens = 1;
    gate.holds = true;
    if (pith_queue_create(&queue, m, &o, NULL)) return SIZE_MAX;
    while (gates < threads && !pith_queue_submit(NULL, queue, &hold_one, NULL)) gates++;
    while (report(queue).held_requests) sched_yield();
    if (gates == threads) submitted = submit_ones(queue, answers);
    open_gate(&gate);
    pith_queue_drain(queue, NULL, NULL);
    for (int i = 0; i < submitted; i++) {
        const answer *a = &answers[i];
        assert_int_equal(a->calls, 1);
        if (strstr(a->message, "other bits")) fail_msg("%s", a->message);
        if (a->status) assert_int_equal(a->status, PITH_ERR_MEMORY);
        if (a->failed) {
            assert_int_equal(a->results[0].status, PITH_ERR_MEMORY);
            if (!strstr(a->message, "the memory limit is")) fail_msg("%s", a->message);
        }
        failed += a->status || a->failed;
    }
    *long_fits = submitted && !answers[0].status && !answers[0].failed;
    pith_queue_destroy(queue);
    return submitted < ONES ? SIZE_MAX : failed;
}

/* From the least memory up: a text that does not fit fails alone, and where one thread has room for
 * each text, three have. */
static void test_what_never_fits_fails_alone(void **state) {
    (void)state;
    pith_model *m = open_tight();
    int only_long = 0;
    bool long_fits = false;
    size_t limit = pith_model_bytes(m, NULL), failed = SIZE_MAX;
    for (; failed; limit += 2048) {
        set_limit(m, limit);
        failed = run_ones(m, 1, &long_fits);
        if (failed == SIZE_MAX) continue;
        if (failed && failed < ONES) assert_false(long_fits);
        only_long += failed == 1;
    }
    assert_true(only_long > 0);
    atomic_store(&slow, 1);
    for (int round = 0; round < 10; round++) {
        set_limit(m, limit + (32 << 10)); /* what two more threads hold besides their runs */
        assert_int_equal(run_ones(m, 3, &long_fits), 0);
    }
    atomic_store(&slow, 0);
    pith_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),      cmocka_unit_test(test_flood),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_chunks_fit),
        cmocka_unit_test(test_pressure),  cmocka_unit_test(test_what_never_fits_fails_alone),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
