/* test_encoder.c - which output of a graph is taken, what is a text encoder, whether the graph
 * pools, how long a chunk and a text are. The graphs are never run. */
#include <string.h>

#include "support/graph_test.h"

#include "engine/runtime/runtime.h"
#include "models/encode/encoder_state.h"
#include "models/heads/dense_request.h"

static pith__arena arena;
static pith_error err;
static const pith__modules modules = { .pooling = PITH_POOL_MEAN, .positions = 48 };
static pith_tokenizer *tokenizer;

static int setup(void **state) {
    (void)state;
    pith__arena_init(&arena, NULL);
    return (int)pith__tokenizer_load_bytes(
        &tokenizer, PITH_STR("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}"), NULL,
        &arena, &err);
}

static int teardown(void **state) {
    (void)state;
    pith__tokenizer_unload(tokenizer);
    pith__arena_free(&arena);
    return 0;
}

/* dims: letters are symbols, digits numbers, '-' an unknown size. */
static void set_type(pith__value *v, int dtype, const char *dims) {
    v->type.dtype = dtype;
    for (v->type.rank = 0; dims[v->type.rank]; v->type.rank++) {
        pith_str letter = { &dims[v->type.rank], 1 };
        pith__dim *dim = &v->type.dims[v->type.rank];
        if (*letter.data == '-')
            *dim = PITH_DIM_UNKNOWN;
        else
            *dim =
                *letter.data <= '9' ? *letter.data - '0' : pith__dim_symbol(v->graph->dims, letter);
    }
}

static pith__graph *graph_of(const char *ids_dims) {
    pith__graph *graph = graph_new(&arena, NULL, &err);
    set_type(graph_input(graph, "input_ids"), PITH_I64, ids_dims);
    return graph;
}

static pith__value *add_output(pith__graph *graph, const char *name, int dtype, const char *dims) {
    pith__value *v = graph_apply(graph, "Relu", graph->inputs[0], NULL);
    v->name = pith__str_of(name);
    set_type(v, dtype, dims);
    graph_output(graph, v);
    return v;
}

static pith_status create_on(pith__encoder **e, const pith__runtime *runtime,
                             const pith__graph *graph, bool ragged, int output) {
    const pith__encoder_parts parts = { .program = { runtime, graph, NULL },
                                        .ragged = ragged,
                                        .outputs = &output,
                                        .output_count = 1,
                                        .tokenizer = tokenizer,
                                        .modules = &modules,
                                        .executor = { .allocator = &pith__allocator_default } };
    return pith__encoder_create(e, &parts, &err);
}

/* The output that dense vectors are made from. */
static int dense_output(const pith__graph *graph) {
    const pith__head *dense;
    assert_int_equal(pith__head_find(&dense, "dense", &err), PITH_OK);
    return pith__head_output(dense, graph);
}

static pith_status create(pith__encoder **e, const pith__graph *graph, bool ragged, int output) {
    return create_on(e, &pith__runtime_builtin, graph, ragged, output);
}

static void which_output(void **state) {
    (void)state;
    typedef struct port {
        const char *name;
        int dtype;
        const char *dims;
    } port;
    static const struct {
        port ports[3];
        int wanted;
    } cases[] = {
        { { { "logits", PITH_F32, "N4" },
            { "token_embeddings", PITH_F32, "NS4" },
            { "last_hidden_state", PITH_F32, "NS4" } },
          2 },
        { { { "token_embeddings", PITH_F16, "NS4" },
            { "last_hidden_state", PITH_F32, "NS4" },
            { "sentence_embedding", PITH_BF16, "N4" } },
          2 },
        { { { "logits", PITH_F32, "N4" },
            { "token_embeddings", PITH_F32, "NS4" },
            { "x", PITH_F32, "NS4" } },
          1 },
        { { { "x", PITH_F32, "4" }, { "y", PITH_F32, "NS44" }, { "z", PITH_F32, "NS4" } }, 2 },
        { { { "x", PITH_I64, "N4" },
            { "sentence_embedding", PITH_I64, "N4" },
            { "z", PITH_F32, "N4" } },
          2 },
        { { { "x", PITH_F32, "N4" }, { "y", PITH_F32, "N4" }, { "z", PITH_F32, "N4" } }, 0 },
        { { { "x", PITH_I32, "N4" }, { "y", PITH_F32, "4" }, { "z", PITH_BOOL, "N4" } }, -1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__graph *graph = graph_of("NS");
        for (int p = 0; p < 3; p++)
            add_output(graph, cases[i].ports[p].name, cases[i].ports[p].dtype,
                       cases[i].ports[p].dims);
        assert_int_equal(dense_output(graph), cases[i].wanted);
    }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        int dtype;
        const char *dims;
        int output;
        const char *says;
    } cases[] = {
        { PITH_F64, "NS4", 0,
          "output 'y' has dtype float64; float32, float16 and bfloat16 can be read" },
        { PITH_F32, "NSW", 0, "the width of output 'y' is not known" },
        { PITH_F32, "NS-", 0, "the width of output 'y' is not known" },
        { PITH_F32, "NS0", 0, "the width of output 'y' is not known" },
    };
    pith__encoder *e = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__graph *graph = graph_of("NS");
        add_output(graph, "y", cases[i].dtype, cases[i].dims);
        assert_int_equal(create(&e, graph, false, cases[i].output), PITH_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, cases[i].says));
    }
    for (int64_t more = 0; more < 2; more++) {
        pith__graph *graph = graph_of("NS");
        add_output(graph, "y", PITH_F32, "NS4")->type.dims[2] = INT32_MAX + more;
        assert_int_equal(create(&e, graph, false, 0), more ? PITH_ERR_UNSUPPORTED : PITH_OK);
        if (!more) pith__encoder_destroy(e);
    }
    pith__encoder_destroy(NULL);
}

/* Ragged: rows of the output are tokens where its first size is that of the ids. Else a matrix is a
 * row a text. */
static void who_pools(void **state) {
    (void)state;
    static const struct {
        bool ragged;
        const char *ids, *dims;
        bool pooled;
        int width;
    } cases[] = {
        { true, "T", "T4", false, 4 },    { true, "T", "N5", true, 5 },
        { true, "T", "-5", true, 5 },     { false, "NS", "N6", true, 6 },
        { false, "NS", "NS7", false, 7 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__encoder *e = NULL;
        pith__graph *graph = graph_of(cases[i].ids);
        add_output(graph, "y", PITH_F32, cases[i].dims);
        if (create(&e, graph, cases[i].ragged, 0)) fail_msg("%s", err.message);
        assert_int_equal(pith__encoder_model(e, 0)->pooled, cases[i].pooled);
        assert_int_equal(pith__encoder_model(e, 0)->width, cases[i].width);
        assert_ptr_equal(pith__encoder_model(e, 0)->modules, &modules);
        pith__encoder_destroy(e);
    }
}

/* The widest row of a token fills L2 one and a half times; other values do not count. */
static void chunk_lengths(void **state) {
    (void)state;
    const int64_t l2 = (int64_t)pith__cpu_get()->l2;
    for (int64_t wanted = 100; wanted <= 600; wanted += 100) {
        pith__encoder *e = NULL;
        pith__graph *graph = graph_of("T");
        int64_t width = l2 * 3 / 2 / wanted / 4 / 2;
        add_output(graph, "y", PITH_F32, "T4");
        pith__value *v = graph_apply(graph, "Relu", graph->inputs[0], NULL);
        set_type(v, PITH_F32, "T2-");
        v->type.dims[2] = width; /* two of them a token */
        v = graph_apply(graph, "Relu", graph->inputs[0], NULL);
        set_type(v, PITH_F32, "X9");
        v->type.dims[1] = l2;
        v = graph_apply(graph, "Relu", graph->inputs[0], NULL);
        set_type(v, PITH_F32, "T9S");
        if (create(&e, graph, true, 0)) fail_msg("%s", err.message);
        int64_t fitting = l2 * 3 / 2 / (width * 8), chunk = fitting < 128   ? 128
                                                            : fitting > 512 ? 512
                                                                            : fitting;
        assert_int_equal(e->chunk_tokens, chunk);
        assert_in_range(e->chunk_tokens,
                        wanted < 128   ? 128
                        : wanted > 512 ? 512
                                       : wanted,
                        wanted + 40);
        pith__encoder_destroy(e);
    }
}

/* A graph of a fixed length bounds texts as positions do. */
static void text_lengths(void **state) {
    (void)state;
    static const struct {
        const char *ids;
        int32_t flag, length;
    } cases[] = { { "NS", 0, 48 }, { "NS", 7, 7 }, { "NS", 99, 48 },
                  { "N9", 0, 9 },  { "N9", 7, 7 }, { "N9", 10, 9 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith__encoder *e = NULL;
        pith__graph *graph = graph_of(cases[i].ids);
        add_output(graph, "y", PITH_F32, "NS4");
        if (create(&e, graph, false, 0)) fail_msg("%s", err.message);
        assert_int_equal(pith__encoder_max_length(e, cases[i].flag), cases[i].length);
        pith__encoder_destroy(e);
    }
}

/* ---- an engine that is not the builtin one ---- */

/* Its rows are [id, 2 id, 3 id, threads]. It counts its runners and fails at the id 9. */
static struct { int alive, runs; } rows_engine;

static pith_status rows_create(void **state, const void *program,
                               const pith__executor_options *options, pith_error *fault) {
    (void)program;
    pith_tensor *output =
        pith__memory_alloc(options->allocator, sizeof *output + 400 * sizeof(float), 16);
    if (!output) return pith__fail_memory(fault, sizeof *output);
    rows_engine.alive++;
    *state = output;
    return PITH_OK;
}

static void rows_destroy(void *state) {
    rows_engine.alive--;
    pith__memory_free(&pith__allocator_default, state);
}

static pith_status rows_run(void *state, pith_tensor *outputs, const pith_tensor *inputs,
                            int threads, pith__stop *stop, pith_error *fault) {
    (void)stop;
    pith_tensor *output = state;
    const int64_t *ids = inputs[0].data;
    float *rows = (float *)(output + 1);
    assert_int_equal(inputs[0].rank, 2);
    assert_int_equal(inputs[0].dims[0], 1);
    int64_t count = inputs[0].dims[1];
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] == 9) return pith__fail(fault, PITH_ERR_RUN, "the engine has stopped");
        for (int k = 0; k < 4; k++)
            rows[4 * i + k] = k < 3 ? (float)(ids[i] * (k + 1)) : (float)threads;
    }
    rows_engine.runs++;
    *output = (pith_tensor){ .data = rows, .dtype = PITH_F32, .rank = 3, .dims = { 1, count, 4 } };
    output->bytes = (size_t)count * 4 * sizeof(float);
    outputs[0] = *output;
    return PITH_OK;
}

static size_t rows_bytes(const void *state) { return state ? 1600 : 0; }

static const pith__runtime rows_runtime = { .name = "rows",
                                            .create = rows_create,
                                            .destroy = rows_destroy,
                                            .run = rows_run,
                                            .bytes = rows_bytes };

/* The encoder needs no plan: it runs texts on any engine, and an error leaves it usable. */
static void another_runtime(void **state) {
    (void)state;
    pith_tokenizer *letters;
    assert_int_equal(
        pith__tokenizer_load_bytes(
            &letters,
            PITH_STR("{\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"type\":"
                     "\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":1,\"b\":3,\"z\":9}}}"),
            NULL, &arena, &err),
        PITH_OK);
    pith__graph *graph = graph_of("NS");
    const int output = 0;
    add_output(graph, "y", PITH_F32, "NS4");
    const pith__encoder_parts parts = { .program = { &rows_runtime, graph, NULL },
                                        .outputs = &output,
                                        .output_count = 1,
                                        .tokenizer = letters,
                                        .modules = &modules,
                                        .executor = { .allocator = &pith__allocator_default } };
    pith__encoder *e;
    pith__head_use use = { .output = 0 };
    if (pith__encoder_create(&e, &parts, &err) || pith__head_find(&use.head, "dense", &err))
        fail_msg("%s", err.message);
    const pith_str texts[] = { PITH_STR("b"), PITH_STR("u b b"), PITH_STR("b z") };
    float vectors[3][4] = { { 0 } };
    pith__dense_request dense = { .normalize = PITH_CHOICE_NO, .vectors = vectors[0] };
    pith_embed_stats stats = { 0 };
    use.request = &dense;
    pith__encode_job job = { .texts = texts, .count = 2, .threads = 1, .stats = &stats };
    if (pith__encoder_run(e, &job, &use, 1, &err)) fail_msg("%s", err.message);
    assert_memory_equal(vectors, ((float[2][4]){ { 3, 6, 9, 1 }, { 7 / 3.0f, 14 / 3.0f, 7, 1 } }),
                        2 * sizeof *vectors);
    assert_int_equal(rows_engine.runs, 2);
    job.count = 3;
    assert_int_equal(pith__encoder_run(e, &job, &use, 1, &err), PITH_ERR_RUN);
    assert_non_null(strstr(err.message, "the engine has stopped"));
    job.count = 2;
    assert_int_equal(pith__encoder_run(e, &job, &use, 1, &err), PITH_OK);
    pith__encoder_destroy(e);
    assert_int_equal(rows_engine.alive, 0);
    pith__tokenizer_unload(letters);
}

static void runtimes_by_name(void **state) {
    (void)state;
    const pith__runtime *runtime = NULL;
    assert_int_equal(pith__runtime_find(&runtime, NULL, &err), PITH_OK);
    assert_ptr_equal(runtime, &pith__runtime_builtin);
    assert_int_equal(pith__runtime_find(&runtime, "builtin", &err), PITH_OK);
    assert_int_equal(pith__runtime_find(&runtime, "abacus", &err), PITH_ERR_ARGUMENT);
    assert_string_equal(err.message, "there is no runtime 'abacus'; this build has builtin, ort");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_output),     cmocka_unit_test(refused),
        cmocka_unit_test(who_pools),        cmocka_unit_test(chunk_lengths),
        cmocka_unit_test(text_lengths),     cmocka_unit_test(another_runtime),
        cmocka_unit_test(runtimes_by_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
