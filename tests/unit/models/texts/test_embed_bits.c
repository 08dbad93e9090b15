/* test_embed_bits.c - a text's vector is the same bytes however it is computed: batch, order,
 * threads, token budget, padding, instruction set, and a host that flushes denormals to zero.
 *
 * With two arguments the program writes the vectors of the short texts, made by the model named
 * second, to the file named first: so it runs itself under PITH_ISA, with the sources and with a
 * compiled model this level wrote. */
#include "base/os/cpu.h"
#include "support/embed_test.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* The texts with the most tokens are left to one run: all others are compared many times. */
/* CHILD_TEXTS: scalar code is slow, this is 300 tokens. */
enum { SHORT_TOKENS = 40, CHILD_TEXTS = 20 };

static golden g;
static pith_model *model;
static float all[GOLDEN][DIM], again[GOLDEN][DIM]; /* all: one text at a time, one thread */
static pith_str few[GOLDEN];                       /* short texts */
static int few_index[GOLDEN];
static size_t few_count;

static int open_all(void **state) {
    (void)state;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    options.call.threads = 1;
    golden_open(&g);
    model = open_model("all-MiniLM-L6-v2");
    for (int i = 0; i < GOLDEN; i++) {
        embed(all[i], model, &g.texts[i], 1, &options);
        if (g.tokens[i] > SHORT_TOKENS) continue;
        few_index[few_count] = i;
        few[few_count++] = g.texts[i];
    }
    assert_true(few_count > 200);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    pith_model_close(model);
    golden_close(&g);
    return 0;
}

static void check_all(const pith_embed_options *options) {
    memset(again, 0xFF, sizeof again);
    embed(again[0], model, g.texts, GOLDEN, options);
    assert_memory_equal(again, all, sizeof all);
}

/* The first count short texts in calls of `batch`. */
static void check_few(size_t count, size_t batch, const pith_embed_options *options) {
    for (size_t i = 0; i < count; i += batch) {
        size_t n = count - i < batch ? count - i : batch;
        embed(again[0], model, few + i, n, options);
        for (size_t k = 0; k < n; k++)
            assert_memory_equal(again[k], all[few_index[i + k]], sizeof all[0]);
    }
}

static void test_batches(void **state) {
    (void)state;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    check_all(NULL);
    check_few(60, 1, &options);
    check_few(60, 2, &options);
    check_few(60, 7, &options);
}

static void test_order(void **state) {
    (void)state;
    static pith_str shuffled[GOLDEN];
    static int order[GOLDEN];
    uint32_t seed = 12345;
    for (int i = 0; i < GOLDEN; i++) order[i] = i;
    for (int i = GOLDEN - 1; i > 0; i--) {
        seed = seed * 1664525u + 1013904223u;
        int k = (int)(seed >> 8) % (i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < GOLDEN; i++) shuffled[i] = g.texts[order[i]];
    embed(again[0], model, shuffled, GOLDEN, NULL);
    for (int i = 0; i < GOLDEN; i++) assert_memory_equal(again[i], all[order[i]], sizeof all[0]);
}

static void test_threads(void **state) {
    (void)state;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    for (options.call.threads = 1; options.call.threads <= 4; options.call.threads *= 2) {
        check_few(60, 60, &options);
        check_few(12, 3, &options); /* fewer chunks than threads */
    }
}

static void test_budgets(void **state) {
    (void)state;
    static const int32_t budgets[] = { 1, 17, 64, 300, 512, 100000 };
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    options.call.threads = 1;
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        options.batch_tokens = budgets[i];
        check_few(60, 60, &options);
    }
}

/* Sessions see padded batches: a token's row is the same with and without padding beside it. */
static void test_padding(void **state) {
    (void)state;
    enum { ROWS = 4, LENGTH = 48 };
    static int64_t ids[ROWS * LENGTH], mask[ROWS * LENGTH], types[ROWS * LENGTH];
    const char *const names[] = { "input_ids", "attention_mask", "token_type_ids" };
    pith_error err = PITH_ERROR_INIT;
    pith_session *padded = NULL, *alone = NULL;
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_tensor out, one;
    int lengths[ROWS];
    memset(ids, 0, sizeof ids);
    memset(mask, 0, sizeof mask);
    assert_int_equal(pith_session_create(&padded, model, &err), PITH_OK);
    assert_int_equal(pith_session_create(&alone, model, &err), PITH_OK);
    for (int r = 0; r < ROWS; r++) {
        assert_int_equal(
            pith_tokenize(&tokens, pith_model_tokenizer(model), few[r * 11], NULL, &options, &err),
            PITH_OK);
        lengths[r] = (int)tokens.count;
        assert_true(lengths[r] <= LENGTH);
        for (int t = 0; t < lengths[r]; t++) {
            ids[r * LENGTH + t] = tokens.ids[t];
            mask[r * LENGTH + t] = 1;
        }
    }
    pith_tokens_free(&tokens);
    pith_tensor inputs[3];
    int64_t *const data[] = { ids, mask, types };
    for (int i = 0; i < 3; i++)
        inputs[i] = (pith_tensor){ .data = data[i],
                                   .bytes = sizeof ids,
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { ROWS, LENGTH } };
    if (pith_session_run(padded, &out, names, inputs, 3, NULL, &err)) fail_msg("%s", err.message);
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < 3; i++)
            inputs[i] = (pith_tensor){ .data = data[i] + r * LENGTH,
                                       .bytes = (size_t)lengths[r] * 8,
                                       .dtype = PITH_I64,
                                       .rank = 2,
                                       .dims = { 1, lengths[r] } };
        if (pith_session_run(alone, &one, names, inputs, 3, NULL, &err))
            fail_msg("%s", err.message);
        assert_int_equal(one.dims[1], lengths[r]);
        assert_memory_equal((float *)out.data + (ptrdiff_t)r * LENGTH * DIM, one.data,
                            (size_t)lengths[r] * DIM * sizeof(float));
    }
    pith_session_destroy(padded);
    pith_session_destroy(alone);
}

static void test_flush_to_zero(void **state) {
    (void)state;
#if defined(__x86_64__)
    /* FTZ, DAZ, rounding towards zero */
    unsigned before = _mm_getcsr(), odd = before | 0x8040u | 0x6000u;
    pith_embed_options options = PITH_EMBED_OPTIONS_INIT;
    _mm_setcsr(odd);
    pith_model *opened = open_model("all-MiniLM-L6-v2");
    pith_model *usual = model;
    model = opened;
    for (options.call.threads = 1; options.call.threads <= 2; options.call.threads++)
        embed(again[0], model, few, 40, &options);
    unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    model = usual;
    pith_model_close(opened);
    for (int i = 0; i < 40; i++) assert_memory_equal(again[i], all[few_index[i]], sizeof all[0]);
    assert_int_equal(after & ~0x3Fu, odd & ~0x3Fu); /* but for the sticky exception flags */
#else
    skip();
#endif
}

extern char **environ;

static int32_t write_piece(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

static void save_model(const char *path) {
    pith_error err = PITH_ERROR_INIT;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (pith_model_save(model, NULL, &(pith_writer){ write_piece, NULL, f }, &err))
        fail_msg("%s", err.message);
    assert_int_equal(fclose(f), 0);
}

static void test_instruction_sets(void **state) {
    (void)state;
    const char *path = PITH_BINARY_DIR "/test_embed_bits.out",
               *compiled = PITH_BINARY_DIR "/test_embed_bits.pith";
    save_model(compiled);
    for (int run = 0; run < 2 * PITH_ISA_COUNT; run++) {
        int isa = run / 2;
        if (!(pith__cpu_get()->supported >> isa & 1u)) continue;
        run_under_isa(pith__isa_name((pith__isa)isa), path, run % 2 ? compiled : "all-MiniLM-L6-v2",
                      again, CHILD_TEXTS);
        for (int i = 0; i < CHILD_TEXTS; i++)
            assert_memory_equal(again[i], all[few_index[i]], sizeof all[0]);
        print_message("%s, %s: same bytes\n", pith__isa_name((pith__isa)isa),
                      run % 2 ? "compiled" : "from its sources");
    }
    remove(path);
    remove(compiled);
}

static int write_vectors(const char *path, const char *name) {
    pith_str texts[CHILD_TEXTS];
    size_t n = 0;
    golden_open(&g);
    for (int i = 0; n < CHILD_TEXTS; i++)
        if (g.tokens[i] <= SHORT_TOKENS) texts[n++] = g.texts[i];
    pith_model *m = open_model(name);
    embed(again[0], m, texts, n, NULL);
    pith_model_close(m);
    golden_close(&g);
    return save_vectors(path, again, n);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),          cmocka_unit_test(test_order),
        cmocka_unit_test(test_threads),          cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_padding),          cmocka_unit_test(test_flush_to_zero),
        cmocka_unit_test(test_instruction_sets),
    };
    return argc > 2 ? write_vectors(argv[1], argv[2])
                    : cmocka_run_group_tests(tests, open_all, close_all);
}
