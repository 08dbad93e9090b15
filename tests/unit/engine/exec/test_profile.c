/* test_profile.c - profiles of opens, embeds and runs: what is in them, from how many threads, and
 * that the vectors do not change; a recording without memory is cut short, nothing else. */
#include <pthread.h>

#include "support/embed_test.h"

typedef struct seen {
    size_t steps, phases[8], lanes;
    int64_t gemm_flop, attention_flop, tokens, lost;
} seen;

static const char *const phase_names[] = { "open", "read", "optimise", "tokenise",
                                           "bind", "run",  "pool",     "mine" };
enum { OPEN, READ, OPTIMISE, TOKENISE, BIND, RUN, POOL, MINE };

static golden g;
static pith_model *model;

static int open_all(void **state) {
    (void)state;
    golden_open(&g);
    model = open_model("all-MiniLM-L6-v2");
    return 0;
}

static int close_all(void **state) {
    (void)state;
    pith_model_close(model);
    golden_close(&g);
    return 0;
}

typedef struct text {
    char *data;
    size_t size, capacity;
} text;

static int32_t append(void *user, const void *data, size_t size) {
    text *t = user;
    if (t->size + size > t->capacity) {
        t->capacity = 2 * (t->size + size);
        t->data = realloc(t->data, t->capacity);
        assert_non_null(t->data);
    }
    memcpy(t->data + t->size, data, size);
    t->size += size;
    return 0;
}

static void read_event(seen *s, pith__json *j) {
    pith_str key, name = PITH_STR(""), category = PITH_STR(""), kernel = PITH_STR("");
    int64_t flop = 0, items = 0;
    double begin = -1, duration = -1;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "name")) {
            name = pith__json_string(j);
        } else if (pith__str_is(key, "cat")) {
            category = pith__json_string(j);
        } else if (pith__str_is(key, "ts")) {
            begin = pith__json_double(j);
        } else if (pith__str_is(key, "dur")) {
            duration = pith__json_double(j);
        } else if (pith__str_is(key, "args")) {
            for (pith__json_object(j); pith__json_next_key(j, &key);) {
                if (pith__str_is(key, "flop"))
                    flop = pith__json_int(j);
                else if (pith__str_is(key, "items"))
                    items = pith__json_int(j);
                else if (pith__str_is(key, "kernel"))
                    kernel = pith__json_string(j);
                else
                    pith__json_skip(j);
            }
        } else {
            pith__json_skip(j);
        }
    }
    if (pith__str_is(name, "thread_name")) {
        s->lanes++;
        return;
    }
    assert_true(begin >= 0 && duration >= 0);
    bool is_step = pith__str_is(category, "step");
    s->steps += is_step;
    for (size_t i = 0; i < sizeof phase_names / sizeof *phase_names && !is_step; i++)
        s->phases[i] += pith__str_is(name, phase_names[i]);
    if (!is_step && pith__str_is(name, "run")) s->tokens += items;
    if (pith__str_is(name, "Linear")) s->gemm_flop += flop;
    if (pith__str_is(name, "Attention")) s->attention_flop += flop;
    if (pith__str_is(name, "Linear")) assert_memory_equal(kernel.data, "gemm f32 ", 9);
}

static seen read_profile(const pith_profile *profile) {
    pith_error err = PITH_ERROR_INIT;
    text t = { NULL, 0, 0 };
    seen s = { 0 };
    pith__arena arena;
    pith__json j;
    pith_str key;
    assert_int_equal(pith_profile_write(profile, NULL, &(pith_writer){ append, NULL, &t }, &err),
                     PITH_OK);
    pith__arena_init(&arena, &pith__allocator_default);
    pith__json_init(&j, (pith_str){ t.data, t.size }, "profile", &arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        if (pith__str_is(key, "traceEvents"))
            for (pith__json_array(&j); pith__json_next_item(&j);) read_event(&s, &j);
        else if (pith__str_is(key, "otherData"))
            for (pith__json_object(&j); pith__json_next_key(&j, &key);) s.lost = pith__json_int(&j);
        else
            pith__json_skip(&j);
    }
    pith__json_finish(&j);
    if (j.failed) fail_msg("%s", err.message);
    pith__arena_free(&arena);
    free(t.data);
    return s;
}

static pith_profile *new_profile(const pith_allocator *allocator) {
    pith_profile *profile = NULL;
    assert_int_equal(pith_profile_create(&profile, allocator, NULL), PITH_OK);
    return profile;
}

static void test_open(void **state) {
    (void)state;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *other;
    options.call.profile = new_profile(NULL);
    assert_int_equal(pith_model_open(&other, "all-MiniLM-L6-v2", &options, NULL), PITH_OK);
    pith_model_close(other);
    uint64_t begin = pith_profile_now();
    pith_profile_phase(options.call.profile, "mine", begin);
    pith_profile_phase(NULL, "mine", begin);
    seen s = read_profile(options.call.profile);
    assert_int_equal(s.phases[OPEN], 1);
    assert_int_equal(s.phases[READ], 1);
    assert_int_equal(s.phases[OPTIMISE], 1);
    assert_int_equal(s.phases[MINE], 1);
    assert_int_equal(s.steps, 0);
    assert_int_equal(s.lanes, 1);
    pith_profile_destroy(options.call.profile);
}

static void test_embed(void **state) {
    (void)state;
    static float plain[8][DIM], profiled[8][DIM];
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    pith_embed_stats stats = { 0 };
    options.call.threads = 1;
    options.batch_tokens = 1;
    embed(plain[0], model, g.texts, 8, &options);
    options.call.profile = new_profile(NULL);
    options.stats = &stats;
    embed(profiled[0], model, g.texts, 8, &options);
    assert_memory_equal(plain, profiled, sizeof plain);
    seen s = read_profile(options.call.profile);
    assert_int_equal(s.tokens, stats.tokens);
    assert_int_equal(s.lost, 0);
    /* 6 layers: query, key, value and output of 384 x 384, two of 384 x 1536, two FLOP a weight and
     * token. */
    assert_int_equal(s.gemm_flop, (int64_t)stats.tokens * 6 * 2 * (4 * 384 * 384 + 2 * 384 * 1536));
    int64_t pairs = 0;
    for (int i = 0; i < 8; i++) pairs += (int64_t)g.tokens[i] * g.tokens[i];
    assert_int_equal(s.attention_flop, pairs * 6 * 2 * 2 * 384);
    pith_profile_destroy(options.call.profile);
    /* The executors that were used do not go on recording. */
    options.call.profile = NULL;
    embed(plain[0], model, g.texts, 8, &options);
    assert_memory_equal(plain, profiled, sizeof plain);
}

typedef struct worker {
    pthread_t thread;
    pith_profile *profile;
    float vectors[8][DIM];
} worker;

static void *work(void *context) {
    worker *w = context;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    options.call.profile = w->profile;
    options.call.threads = 2;
    options.batch_tokens = 16;
    pith_embed(w->vectors[0], model, g.texts, 8, &options, NULL);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    static worker workers[3];
    pith_profile *profile = new_profile(NULL);
    for (int i = 0; i < 3; i++) workers[i].profile = profile;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(workers[i].thread, NULL);
    seen s = read_profile(profile);
    assert_int_equal(s.phases[RUN] % 3, 0);
    assert_int_equal(s.phases[RUN], s.phases[POOL]);
    assert_true(s.phases[TOKENISE] >= 3 && s.phases[BIND] >= 1 && s.lanes >= 3);
    int64_t tokens = 0;
    for (int i = 0; i < 8; i++) tokens += g.tokens[i];
    assert_int_equal(s.tokens, 3 * tokens);
    for (int i = 1; i < 3; i++)
        assert_memory_equal(workers[i].vectors, workers[0].vectors, sizeof workers[0].vectors);
    pith_profile_destroy(profile);
}

static void *alloc_some(void *user, size_t bytes) {
    int *left = user;
    return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static void free_some(void *user, void *memory) {
    (void)user;
    free(memory);
}

static void test_memory(void **state) {
    (void)state;
    static float plain[DIM], profiled[DIM];
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    options.call.threads = 1;
    embed(plain, model, g.texts, 1, &options);
    for (int n = 0; n < 5; n++) {
        int left = n;
        pith_allocator allocator = { alloc_some, free_some, &left };
        pith_profile *profile = NULL;
        pith_status status = pith_profile_create(&profile, &allocator, NULL);
        assert_int_equal(status, n ? PITH_OK : PITH_ERR_MEMORY);
        if (status) continue;
        options.call.profile = profile;
        embed(profiled, model, g.texts, 1, &options);
        assert_memory_equal(plain, profiled, sizeof plain);
        seen s = read_profile(profile);
        if (n == 1) assert_int_equal(s.lanes, 0);
        if (n == 2) assert_true(s.lanes == 1 && s.steps == 0 && s.lost > 0);
        pith_profile_destroy(profile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_open), cmocka_unit_test(test_embed),
                                        cmocka_unit_test(test_threads),
                                        cmocka_unit_test(test_memory) };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
