/* test_operator_set.c - operators that single models are opened with: other models do not know
 * them, two sets may have one name for different operators, and whatever starts from the model or
 * its source knows them. */
#include "formats/onnx/onnx_text.h"
#include "support/failing_alloc.h"
#include "support/operator_models.h"

enum { N = 6, THREADS = 6, ROUNDS = 20 };

/* ---- operators: y = factor * x ---- */

static pith_status same_infer(pith_op_infer *c) {
    c->out[0] = *c->in[0];
    return PITH_OK;
}

#define TIMES(factor)                                                                              \
    static pith_status times_##factor(pith_op_run *r) {                                            \
        const float *x = r->in[0]->data;                                                           \
        float *y = r->out[0]->data;                                                                \
        const int64_t n = pith_shape_count(r->in[0]->dims, r->in[0]->rank);                        \
        for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];                                      \
        return PITH_OK;                                                                            \
    }                                                                                              \
    static const pith_operator by_##factor = { PITH_OPERATOR_BEGIN, .domain = "example",           \
                                               .name = "Mine",      .min_inputs = 1,               \
                                               .max_inputs = 1,     .max_outputs = 1,              \
                                               .types = "f32",      .attributes = "",              \
                                               .infer = same_infer, .run = times_##factor };
TIMES(2)
TIMES(3)
TIMES(5)

static pith_operator_set *set_of(const pith_operator *op, const pith_call *call) {
    pith_operator_set *set = NULL;
    pith_error err = PITH_ERROR_INIT;
    if (pith_operator_set_create(&set, &op, 1, call, &err)) fail_msg("%s", err.message);
    return set;
}

/* ---- models ---- */

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"example\" : 1]>\n"

/* The second input has a default; the operator stands in the graph, in a branch, behind a default
 * and on a constant. */
static const char nested_text[] =
    HEAD "nested (float[N] x, bool c, float[1] k = {1.0}) => (float[N] y)\n"
         "<float[1] one = {1.0}>\n"
         "{ a = example.Mine(x)\n"
         "b = If(c) <then_branch = t () => (float[N] p) { p = example.Mine(a) }, "
         "else_branch = e () => (float[N] q) { q = Neg(a) }>\n"
         "f = example.Mine(one)\n g = example.Mine(k)\n s = Add(b, f)\n y = Mul(s, g) }";
static const char dense_text[] = HEAD "dense (float[N, 2] x) => (float[N, 2] y)\n"
                                      "<float[2, 2] w = {1.0, 2.0, 3.0, 4.0}>\n"
                                      "{ a = MatMul(x, w)\n y = example.Mine(a) }";

static pith__wire_build nested, dense;

static void make(pith__wire_build *b, const char *text) {
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, &pith__allocator_default);
    b->allocator = &pith__allocator_default;
    if (pith__onnx_parse(b, (pith_str){ text, strlen(text) }, NULL, &arena, &err))
        fail_msg("%s", err.message);
    pith__arena_free(&arena);
}

static int make_models(void **state) {
    (void)state;
    make(&nested, nested_text);
    make(&dense, dense_text);
    return 0;
}

static int free_models(void **state) {
    (void)state;
    pith__wire_build_free(&nested);
    pith__wire_build_free(&dense);
    return 0;
}

static pith_model *open_set(const void *bytes, size_t size, const pith_operator_set *set) {
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_model *model = NULL;
    pith_error err = PITH_ERROR_INIT;
    o.operators = set;
    if (pith_model_open_memory(&model, bytes, size, &o, &err)) fail_msg("%s", err.message);
    return model;
}

/* The result for x of ones; k is left out if it is 0. */
static float nested_result(pith_session *session, bool c, float k) {
    static const char *const names[] = { "x", "c", "k" };
    float ones[N] = { 1, 1, 1, 1, 1, 1 };
    uint8_t flag = c;
    const pith_tensor in[] = {
        { .data = ones, .bytes = sizeof ones, .dtype = PITH_F32, .rank = 1, .dims = { N } },
        { .data = &flag, .bytes = 1, .dtype = PITH_BOOL, .rank = 0 },
        { .data = &k, .bytes = sizeof k, .dtype = PITH_F32, .rank = 1, .dims = { 1 } }
    };
    pith_tensor out;
    pith_error err = PITH_ERROR_INIT;
    if (pith_session_run(session, &out, names, in, k != 0 ? 3 : 2, NULL, &err))
        fail_msg("%s", err.message);
    for (int i = 1; i < N; i++) assert_true(((float *)out.data)[i] == ((float *)out.data)[0]);
    return ((float *)out.data)[0];
}

static float nested_wanted(float f, bool c, float k) {
    return ((c ? f * f : -f) + f) * (f * (k != 0 ? k : 1));
}

/* y of x = [[1, 1]]. */
static void dense_result(float y[2], const pith_model *model) {
    static const char *const names[] = { "x" };
    float ones[2] = { 1, 1 };
    const pith_tensor in = {
        .data = ones, .bytes = sizeof ones, .dtype = PITH_F32, .rank = 2, .dims = { 1, 2 }
    };
    pith_tensor out;
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_run(&out, model, names, &in, 1, NULL, &err)) fail_msg("%s", err.message);
    memcpy(y, out.data, 2 * sizeof *y);
    pith_tensor_free(&out);
}

/* ---- whose operators they are ---- */

static void a_set_is_of_one_model(void **state) {
    (void)state;
    const message bytes = model_of("Mine", PITH_F32, 1, NULL);
    const pith_operator *const list[] = { &by_2, &by_3 };
    pith_model *models[2];
    pith_error err;
    pith_model *none = NULL;
    for (int i = 0; i < 2; i++) {
        pith_operator_set *set = set_of(list[i], NULL);
        if (open_with(&models[i], &bytes, set, &err)) fail_msg("%s", err.message);
        pith_operator_set_destroy(set); /* the model has its own reference */
    }
    refused(&bytes, PITH_ERR_UNSUPPORTED, "example.Mine");
    for (int i = 0; i < 2; i++) {
        float y[N];
        int64_t count;
        assert_int_equal(run(models[i], y, &count, N, 1, &err), PITH_OK);
        for (int k = 0; k < N; k++) assert_true(y[k] == (float)(i + 2) * (float)k);
    }
    pith_operator_set *empty = NULL;
    assert_int_equal(pith_operator_set_create(&empty, NULL, 0, NULL, NULL), PITH_OK);
    assert_int_equal(open_with(&none, &bytes, empty, &err), PITH_ERR_UNSUPPORTED);
    pith_operator_set_destroy(empty);
    pith_operator_set_destroy(NULL);
    for (int i = 0; i < 2; i++) pith_model_close(models[i]);
}

static void a_set_goes_before_registered_operators(void **state) {
    (void)state;
    pith_operator both = by_2, own = by_3;
    both.name = own.name = "Both";
    registered(&both);
    const message bytes = model_of("Both", PITH_F32, 1, NULL);
    pith_operator_set *set = set_of(&own, NULL);
    pith_error err;
    pith_model *with, *without = opened(&bytes);
    float y[N];
    int64_t count;
    assert_int_equal(open_with(&with, &bytes, set, &err), PITH_OK);
    assert_int_equal(run(without, y, &count, N, 1, &err), PITH_OK);
    assert_true(y[3] == 6);
    assert_int_equal(run(with, y, &count, N, 1, &err), PITH_OK);
    assert_true(y[3] == 9);
    pith_operator_set_destroy(set);
    pith_model_close(with);
    pith_model_close(without);
}

/* In branches, as constants, and in the plan that a session makes for another default. */
static void all_of_a_model_knows_them(void **state) {
    (void)state;
    for (int level = -1; level <= 3; level += 2) {
        pith_open_options o = PITH_OPEN_OPTIONS_INIT;
        pith_operator_set *set = set_of(&by_3, NULL);
        pith_model *model = NULL;
        pith_session *session;
        pith_error err = PITH_ERROR_INIT;
        o.operators = set;
        o.optimization = level;
        if (pith_model_open_memory(&model, nested.bytes, nested.size, &o, &err))
            fail_msg("%s", err.message);
        pith_operator_set_destroy(set);
        assert_int_equal(pith_session_create(&session, model, &err), PITH_OK);
        pith_model_close(model); /* the session has its own reference */
        for (int c = 0; c < 2; c++)
            for (int k = 0; k < 3; k++)
                assert_true(nested_result(session, c, (float)k) == nested_wanted(3, c, (float)k));
        pith_session_destroy(session);
    }
}

static void *open_and_run(void *user) {
    static const pith_operator *const ops[] = { &by_2, &by_3, &by_5 };
    const int which = (int)(intptr_t)user % 3;
    const float factor = which == 2 ? 5 : (float)(which + 2);
    for (int round = 0; round < ROUNDS; round++) {
        pith_operator_set *set = set_of(ops[which], NULL);
        pith_model *model = open_set(nested.bytes, nested.size, set);
        pith_model *second = open_set(nested.bytes, nested.size, set);
        pith_session *session = NULL;
        pith_operator_set_destroy(set);
        pith_model_close(second);
        if (pith_session_create(&session, model, NULL)) return user;
        const bool good =
            nested_result(session, round % 2, 2) == nested_wanted(factor, round % 2, 2);
        pith_session_destroy(session);
        pith_model_close(model);
        if (!good) return user;
    }
    return NULL;
}

static void threads_have_their_own(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_run, (void *)(intptr_t)(i + 3)),
                         0);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
}

/* ---- sources, and what is made of them ---- */

typedef struct gathered {
    unsigned char *bytes;
    size_t size;
} gathered;

static int32_t gather(void *user, const void *data, size_t size) {
    gathered *g = user;
    g->bytes = realloc(g->bytes, g->size + size + 1);
    assert_non_null(g->bytes);
    memcpy(g->bytes + g->size, data, size);
    g->size += size;
    return 0;
}

typedef pith_status write_fn(const pith_source *source, const pith_writer *writer, pith_error *err);

static pith_status write_export(const pith_source *source, const pith_writer *writer,
                                pith_error *err) {
    return pith_source_export(source, NULL, writer, NULL, NULL, err);
}

static pith_status write_half(const pith_source *source, const pith_writer *writer,
                              pith_error *err) {
    pith_export_options o = PITH_EXPORT_OPTIONS_INIT;
    o.dtype = PITH_F16;
    return pith_source_export(source, &o, writer, NULL, NULL, err);
}

static pith_status write_optimized(const pith_source *source, const pith_writer *writer,
                                   pith_error *err) {
    return pith_source_optimize(source, NULL, writer, NULL, NULL, err);
}

static pith_status write_quantized(const pith_source *source, const pith_writer *writer,
                                   pith_error *err) {
    return pith_source_quantize(source, NULL, writer, NULL, NULL, err);
}

/* To text and back. */
static pith_status write_converted(const pith_source *source, const pith_writer *writer,
                                   pith_error *err) {
    gathered words = { NULL, 0 };
    const pith_writer first = { gather, NULL, &words };
    pith_source *again = NULL;
    pith_status status = pith_source_convert(source, NULL, &first, NULL, err);
    if (!status) status = pith_source_open_memory(&again, words.bytes, words.size, NULL, err);
    if (!status) status = pith_source_convert(again, NULL, writer, NULL, err);
    pith_source_close(again);
    free(words.bytes);
    return status;
}

static pith_source *source_of(const pith_operator_set *set) {
    pith_source_options o = PITH_SOURCE_OPTIONS_INIT;
    pith_source *source = NULL;
    pith_error err = PITH_ERROR_INIT;
    o.operators = set;
    if (pith_source_open_memory(&source, dense.bytes, dense.size, &o, &err))
        fail_msg("%s", err.message);
    return source;
}

/* Everything that needs operators works with them, is refused by name without them, and what was
 * written opens with them alone. Converting needs none. */
static void a_source_knows_them(void **state) {
    (void)state;
    static const struct {
        const char *name;
        write_fn *write;
        bool needs; /* the operators */
    } ways[] = { { "export", write_export, true },
                 { "f16", write_half, true },
                 { "optimize", write_optimized, true },
                 { "quantize", write_quantized, true },
                 { "convert", write_converted, false } };
    pith_operator_set *set = set_of(&by_3, NULL);
    pith_source *with = source_of(set), *without = source_of(NULL);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        gathered g = { NULL, 0 }, none = { NULL, 0 };
        const pith_writer writer = { gather, NULL, &g }, other = { gather, NULL, &none };
        pith_error err = PITH_ERROR_INIT;
        pith_model *model = NULL;
        if (ways[i].write(with, &writer, &err)) fail_msg("%s: %s", ways[i].name, err.message);
        if (ways[i].needs) {
            assert_int_equal(ways[i].write(without, &other, &err), PITH_ERR_UNSUPPORTED);
            if (!strstr(err.message, "example.Mine")) fail_msg("%s", err.message);
            assert_int_equal(none.size, 0);
        }
        assert_int_equal(pith_model_open_memory(&model, g.bytes, g.size, NULL, &err),
                         PITH_ERR_UNSUPPORTED);
        if (!strstr(err.message, "example.Mine")) fail_msg("%s", err.message);
        model = open_set(g.bytes, g.size, set);
        float y[2];
        dense_result(y, model);
        assert_true(y[0] > 11.7f && y[0] < 12.3f && y[1] > 17.6f && y[1] < 18.4f);
        pith_model_close(model);
        free(g.bytes);
        free(none.bytes);
    }
    pith_source_close(with);
    pith_source_close(without);
    pith_operator_set_destroy(set);
}

static void a_source_is_checked_with_them(void **state) {
    (void)state;
    pith_operator_set *set = set_of(&by_3, NULL);
    pith_source *source = source_of(set);
    pith_check_options checks = PITH_CHECK_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    size_t findings = 99;
    checks.runs = 2;
    pith_operator_set_destroy(set);
    if (pith_source_check_fusions(&findings, source, &checks, &err)) fail_msg("%s", err.message);
    assert_int_equal(findings, 0);
    pith_source_close(source);
}

/* A model opened from a source knows the source's, unless it is given others; it may outlive the
 * source. */
static void models_of_a_source_know_them(void **state) {
    (void)state;
    pith_operator_set *set = set_of(&by_3, NULL), *other = set_of(&by_5, NULL);
    pith_source *source = source_of(set);
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_model *own, *given;
    float y[2];
    o.operators = other;
    assert_int_equal(pith_model_open_source(&own, source, NULL, NULL), PITH_OK);
    assert_int_equal(pith_model_open_source(&given, source, &o, NULL), PITH_OK);
    pith_operator_set_destroy(set);
    pith_operator_set_destroy(other);
    pith_source_close(source);
    dense_result(y, own);
    assert_true(y[0] == 12 && y[1] == 18);
    dense_result(y, given);
    assert_true(y[0] == 20 && y[1] == 30);
    pith_model_close(own);
    pith_model_close(given);
}

static void a_compiled_model_is_opened_with_them(void **state) {
    (void)state;
    pith_operator_set *set = set_of(&by_3, NULL);
    pith_model *model = open_set(nested.bytes, nested.size, set);
    gathered g = { NULL, 0 };
    const pith_writer writer = { gather, NULL, &g };
    pith_error err = PITH_ERROR_INIT;
    if (pith_model_save(model, NULL, &writer, &err)) fail_msg("%s", err.message);
    pith_model_close(model);
    void *bytes = aligned_alloc(64, (g.size + 63) / 64 * 64);
    assert_non_null(bytes);
    memcpy(bytes, g.bytes, g.size);
    free(g.bytes);
    assert_int_equal(pith_model_open_memory(&model, bytes, g.size, NULL, &err),
                     PITH_ERR_UNSUPPORTED);
    if (!strstr(err.message, "example.Mine")) fail_msg("%s", err.message);
    model = open_set(bytes, g.size, set);
    pith_operator_set_destroy(set);
    pith_session *session;
    assert_int_equal(pith_session_create(&session, model, NULL), PITH_OK);
    pith_model_close(model);
    for (int c = 0; c < 2; c++) assert_true(nested_result(session, c, 0) == nested_wanted(3, c, 0));
    pith_session_destroy(session);
    free(bytes);
}

/* ---- references and memory ---- */

static void the_last_user_frees_the_set(void **state) {
    (void)state;
    counter c = { 0 };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    pith_call call = PITH_CALL_INIT;
    call.allocator = &allocator;
    pith_operator_set *set = set_of(&by_3, &call);
    assert_int_equal(c.live, 1);
    pith_source *source = source_of(set);
    pith_model *model;
    assert_int_equal(pith_model_open_source(&model, source, NULL, NULL), PITH_OK);
    pith_operator_set_destroy(set);
    pith_source_close(source);
    pith_model *shared = pith_model_share(model);
    pith_model_close(model);
    assert_int_equal(c.live, 1);
    float y[2];
    dense_result(y, shared);
    assert_true(y[0] == 12 && y[1] == 18);
    pith_model_close(shared);
    assert_int_equal(c.live, 0);
}

static void a_model_that_does_not_open_keeps_nothing(void **state) {
    (void)state;
    counter c = { 0 };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    pith_call call = PITH_CALL_INIT;
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_source_options s = PITH_SOURCE_OPTIONS_INIT;
    pith_model *model;
    pith_source *source;
    call.allocator = &allocator;
    o.operators = s.operators = set_of(&by_3, &call);
    assert_int_equal(pith_model_open_memory(&model, "nonsense", 8, &o, NULL), PITH_ERR_FORMAT);
    o.optimization = 9;
    assert_int_equal(pith_model_open_memory(&model, dense.bytes, dense.size, &o, NULL),
                     PITH_ERR_ARGUMENT);
    assert_int_not_equal(pith_source_open(&source, "/there/is/no/such/model", &s, NULL), PITH_OK);
    s.flags = 1u << 30;
    assert_int_equal(pith_source_open_memory(&source, dense.bytes, dense.size, &s, NULL),
                     PITH_ERR_ARGUMENT);
    pith_operator_set_destroy((pith_operator_set *)(uintptr_t)o.operators);
    assert_int_equal(c.live, 0);
}

static void every_failed_allocation_is_an_error(void **state) {
    (void)state;
    for (long n = 1;; n++) {
        counter c = { .fail_at = n };
        const pith_allocator allocator = { count_alloc, count_free, &c };
        const pith_operator *const list[] = { &by_2 };
        pith_call call = PITH_CALL_INIT;
        pith_open_options o = PITH_OPEN_OPTIONS_INIT;
        pith_operator_set *set = NULL;
        pith_model *model = NULL;
        pith_error err = PITH_ERROR_INIT;
        o.call.allocator = call.allocator = &allocator;
        pith_status status = pith_operator_set_create(&set, list, 1, &call, &err);
        o.operators = set;
        if (!status) status = pith_model_open_memory(&model, dense.bytes, dense.size, &o, &err);
        pith_operator_set_destroy(set);
        if (status) {
            if (status != PITH_ERR_MEMORY) fail_msg("allocation %ld: %s", n, err.message);
        } else {
            pith_model_close(model);
        }
        assert_int_equal(c.live, 0);
        if (!status && c.calls < n) break;
    }
}

/* ---- lists ---- */

static void wrong(const pith_operator *const *list, size_t count, const char *says) {
    pith_error err = PITH_ERROR_INIT;
    pith_operator_set *set = NULL;
    assert_int_equal(pith_operator_set_create(&set, list, count, NULL, &err), PITH_ERR_ARGUMENT);
    assert_null(set);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void wrong_lists_are_refused(void **state) {
    (void)state;
    pith_operator other = by_2, builtin = by_2, old = by_2, nameless = by_2;
    pith_call call = { 0 };
    pith_operator_set *set;
    other.name = "Other";
    builtin.domain = NULL;
    builtin.name = "Add";
    old.abi = 99;
    nameless.name = NULL;
    const pith_operator *const twice[] = { &by_2, &other, &by_3 }, *const hole[] = { &by_2, NULL },
                               *const own[] = { &builtin }, *const stale[] = { &other, &old },
                               *const bare[] = { &nameless };
    wrong(NULL, 1, "pith_operator_set_create: the list is NULL");
    wrong(twice, 3, "operator example::Mine: the list has an operator of this name twice");
    wrong(hole, 2, "pith_operator_set_create: the operator is NULL");
    wrong(own, 1, "operator Add: Pith has an operator of this name");
    wrong(stale, 2, "was compiled for version 99 of pith/op.h");
    wrong(bare, 1, "pith_operator_set_create: the operator has no name");
    other.infer = NULL;
    wrong(twice, 2, "operator example::Other: it has no infer");
    assert_int_equal(pith_operator_set_create(&set, NULL, 0, &call, NULL), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_operator_set_create(&set, own, SIZE_MAX / 2, NULL, NULL),
                     PITH_ERR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_of_one_model),
        cmocka_unit_test(a_set_goes_before_registered_operators),
        cmocka_unit_test(all_of_a_model_knows_them),
        cmocka_unit_test(threads_have_their_own),
        cmocka_unit_test(a_source_knows_them),
        cmocka_unit_test(a_source_is_checked_with_them),
        cmocka_unit_test(models_of_a_source_know_them),
        cmocka_unit_test(a_compiled_model_is_opened_with_them),
        cmocka_unit_test(the_last_user_frees_the_set),
        cmocka_unit_test(a_model_that_does_not_open_keeps_nothing),
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(wrong_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, make_models, free_models);
}
