/* test_stop_ops.c - a single step ends when the run must, whatever its operator is, and the next
 * run gives the same bits. */
#include "support/stop_test.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/graph/graph.h"
#include "formats/onnx/onnx_text.h"
#include "formats/onnx/wire_build.h"

/* What the elements of an input are. */
typedef enum fill {
    SOME,      /* numbers between -1 and 1; texts of some words */
    ASCENDING, /* the number of the element */
    BELOW      /* whole numbers below `bound` */
} fill;

enum { INPUTS = 4 };

/* graph: what stands behind the header, with %d for the size. */
typedef struct step {
    const char *name, *graph;
    int size, size_long;
    struct {
        fill fill;
        int bound;
    } in[INPUTS];
} step;

#define OPSET "<ir_version: 9, opset_import: [\"\": 21, \"ai.onnx.ml\": 3]> "

static const step steps[] = {
    { "TopK, a few",
      "g (float[%d] x) => (float[k] v, int64[k] i) <int64[1] n = {20000}> { v, i = TopK (x, n) }",
      1000000,
      20000000,
      { { ASCENDING, 0 } } },
    { "TopK, many",
      "g (float[%d] x) => (float[k] v, int64[k] i) <int64[1] n = {300000}> { v, i = TopK (x, n) }",
      500000,
      10000000,
      { { SOME, 0 } } },
    { "Unique",
      "g (float[%d] x) => (float[u] y, int64[u] i, int64[n] j, int64[u] c) "
      "{ y, i, j, c = Unique <sorted = 0> (x) }",
      300000,
      10000000,
      { { SOME, 0 } } },
    { "NonMaxSuppression",
      "g (float[1, %d, 4] b, float[1, 1, %d] s) => (int64[n, 3] y) <int64[1] m = {1000000}, "
      "float[1] t = {1.5}> { y = NonMaxSuppression (b, s, m, t) }",
      6000,
      60000,
      { { SOME, 0 }, { SOME, 0 } } },
    { "LSTM in double",
      "g (double[%d, 1, 32] x, double[1, 256, 32] w, double[1, 256, 64] r) => (double[a, b, c, d] "
      "y) { y = LSTM <hidden_size = 64> (x, w, r) }",
      2000,
      100000,
      { { SOME, 0 }, { SOME, 0 }, { SOME, 0 } } },
    { "GRU in double, wide",
      "g (double[%d, 1, 8] x, double[1, 3072, 8] w, double[1, 3072, 1024] r) => (double[a, b, c, "
      "d] "
      "y) { y = GRU <hidden_size = 1024> (x, w, r) }",
      20,
      200,
      { { SOME, 0 }, { SOME, 0 }, { SOME, 0 } } },
    { "LSTM",
      "g (float[%d, 4, 64] x) => (float[a, b, c, d] y) <int64[3] s = {1, 512, 64}, int64[3] q = "
      "{1, 512, 128}> { w = ConstantOfShape <value = float[1] {0.01}> (s) r = ConstantOfShape "
      "<value = float[1] {0.02}> (q) y = LSTM <hidden_size = 128> (x, w, r) }",
      2000,
      40000,
      { { SOME, 0 } } },
    { "Scan",
      "g (float[1] s, float[%d, 1] x) => (float[1] t, float[n, 1] y) { t, y = Scan "
      "<num_scan_inputs = 1, body: graph = b (float[1] p, float[1] q) => (float[1] u, float[1] v) "
      "{ u = Add (p, q) v = Identity (u) }> (s, x) }",
      20000,
      400000,
      { { SOME, 0 }, { SOME, 0 } } },
    { "Loop",
      "g (int64 m, float[%d] x) => (float[n] y) <bool go = {1}> { y = Loop <body: graph = b (int64 "
      "i, bool c, float[n] p) => (bool d, float[n] q) { d = Identity (c) q = Add (p, p) }> (m, go, "
      "x) }",
      10000,
      10000,
      { { BELOW, 20000 }, { SOME, 0 } } },
    { "Einsum",
      "g (double[48, %d] a, double[%d, 48] b, double[48, %d] c) => (double[n, m] y) "
      "{ y = Einsum <equation = \"ij,jk,kl->il\"> (a, b, c) }",
      48,
      160,
      { { SOME, 0 }, { SOME, 0 }, { SOME, 0 } } },
    { "DFT of a prime",
      "g (float[1, %d, 1] x) => (float[a, b, c] y) <int64 axis = {1}> { y = DFT (x, , axis) }",
      7001,
      100003,
      { { SOME, 0 } } },
    { "DFT of a power",
      "g (float[1, %d, 1] x) => (float[a, b, c] y) <int64 axis = {1}> { y = DFT (x, , axis) }",
      1 << 17,
      1 << 23,
      { { SOME, 0 } } },
    { "STFT",
      "g (float[1, %d, 1] x) => (float[a, b, c, d] y) <int64 step = {160}, int64 length = {400}> "
      "{ y = STFT (x, step, , length) }",
      400000,
      8000000,
      { { SOME, 0 } } },
    { "TreeEnsembleRegressor",
      "g (float[%d, 2] x) => (float[n, 1] y) { y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = "
      "1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0], "
      "nodes_modes = [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], nodes_values = [0.1, 0.0, 0.0], "
      "nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], "
      "target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [1.0, 2.0]> (x) }",
      400000,
      8000000,
      { { SOME, 0 } } },
    { "StringSplit",
      "g (string[%d] x) => (string[n, m] y, int64[n] z) { y, z = StringSplit <delimiter = \" \"> "
      "(x) }",
      300000,
      3000000,
      { { SOME, 0 } } },
    { "StringConcat",
      "g (string[%d] x, string[%d] z) => (string[n] y) { y = StringConcat (x, z) }",
      300000,
      3000000,
      { { SOME, 0 }, { SOME, 0 } } },
    { "Cast to strings",
      "g (float[%d] x) => (string[n] y) { y = Cast <to = 8> (x) }",
      150000,
      3000000,
      { { SOME, 0 } } },
    { "ConvTranspose",
      "g (float[1, 16, %d, %d] x, float[16, 8, 4, 4] w) => (float[a, b, c, d] y) "
      "{ y = ConvTranspose <strides = [2, 2]> (x, w) }",
      160,
      1000,
      { { SOME, 0 }, { SOME, 0 } } },
    { "Resize of integers",
      "g (int32[1, 1, %d, %d] x) => (int32[a, b, c, d] y) <float[4] s = {1, 1, 1.5, 1.5}> "
      "{ y = Resize <mode = \"cubic\"> (x, , s) }",
      700,
      4000,
      { { BELOW, 200 } } },
    { "GatherElements",
      "g (float[%d, 2] x, int64[%d, 2] i) => (float[n, m] y) { y = GatherElements <axis = 1> (x, "
      "i) "
      "}",
      2000000,
      20000000,
      { { SOME, 0 }, { BELOW, 2 } } },
    { "GatherND",
      "g (float[64, 8] x, int64[%d, 2] i) => (float[n] y) { y = GatherND (x, i) }",
      2000000,
      20000000,
      { { SOME, 0 }, { BELOW, 8 } } },
    { "Gather of large rows",
      "g (float[2, %d] x, int64[6] i) => (float[n, m] y) { y = Gather (x, i) }",
      6000000,
      60000000,
      { { SOME, 0 }, { BELOW, 2 } } },
    { "ScatterElements",
      "g (float[%d] x, int64[%d] i, float[%d] u) => (float[n] y) { y = ScatterElements <reduction "
      "= "
      "\"add\"> (x, i, u) }",
      2000000,
      20000000,
      { { SOME, 0 }, { BELOW, 1000 }, { SOME, 0 } } },
    { "NonZero",
      "g (float[%d, 3] x) => (int64[r, n] y) { y = NonZero (x) }",
      2000000,
      20000000,
      { { SOME, 0 } } },
    { "Compress",
      "g (float[%d] x, bool[%d] c) => (float[n] y) { y = Compress (x, c) }",
      8000000,
      40000000,
      { { SOME, 0 }, { BELOW, 2 } } },
    { "OneHot",
      "g (int64[%d] x) => (float[n, m] y) <int64 d = {32}, float[2] v = {0, 1}> { y = OneHot (x, "
      "d, "
      "v) }",
      600000,
      6000000,
      { { BELOW, 32 } } },
    { "Det", "g (double[%d, %d] x) => (double y) { y = Det (x) }", 500, 2000, { { SOME, 0 } } },
    { "RandomNormalLike",
      "g (float[%d] x) => (float[n] y) { y = RandomNormalLike <seed = 7.0> (x) }",
      1500000,
      20000000,
      { { SOME, 0 } } },
    { "MatMulInteger",
      "g (uint8[64, %d] a, uint8[%d, 1024] b) => (int32[n, m] y) { y = MatMulInteger (a, b) }",
      4096,
      65536,
      { { BELOW, 200 }, { BELOW, 200 } } },
    { "Transpose",
      "g (float[3, 5, %d] x) => (float[a, b, c] y) { y = Transpose <perm = [2, 0, 1]> (x) }",
      1000000,
      10000000,
      { { SOME, 0 } } },
};

/* ---- a model and its inputs ---- */

typedef struct ready {
    pith__wire_build bytes;
    pith_model *model;
    pith_session *session;
    pith_tensor in[INPUTS];
    const char *names[INPUTS];
    size_t in_count, out_count;
} ready;

static void fill_text(pith_str *to, uint32_t i) {
    static const char words[] = "one two three four five six seven eight nine ten";
    const size_t begin = i % 20;
    *to = (pith_str){ words + begin, 8 + i % 17 };
}

static void fill_element(pith_tensor *t, int64_t i, fill how, int bound, uint32_t random) {
    double x = (double)(random >> 8) / (1 << 23) - 1;
    if (how == ASCENDING) x = (double)i;
    const int whole = bound ? (int)(random >> 8) % bound : 0;
    switch (t->dtype) {
    case PITH_F32: ((float *)t->data)[i] = (float)x; break;
    case PITH_F64: ((double *)t->data)[i] = x; break;
    case PITH_I32: ((int32_t *)t->data)[i] = whole; break;
    case PITH_I64: ((int64_t *)t->data)[i] = t->rank ? whole : bound; break;
    case PITH_U8: ((uint8_t *)t->data)[i] = (uint8_t)whole; break;
    case PITH_BOOL: ((uint8_t *)t->data)[i] = (uint8_t)whole; break;
    case PITH_STRING: fill_text((pith_str *)t->data + i, random >> 8); break;
    default: fail_msg("dtype %d", t->dtype);
    }
}

static void make_input(pith_tensor *t, const pith_port *port, fill how, int bound) {
    uint32_t random = 1;
    int64_t count = 1;
    *t = (pith_tensor){ .dtype = port->dtype, .rank = port->rank };
    for (int d = 0; d < t->rank; d++) count *= t->dims[d] = port->dims[d];
    t->bytes = (size_t)count * (size_t)pith__dtype_bits(t->dtype) / 8;
    t->data = malloc(t->bytes + 1);
    assert_non_null(t->data);
    for (int64_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        fill_element(t, i, how, bound, random);
    }
}

static void make_ready(ready *r, const step *s) {
    char text[2048];
    pith__arena scratch;
    pith_error err = PITH_ERROR_INIT;
    const int n = stop_test_long() ? s->size_long : s->size;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    size_t used = (size_t)snprintf(text, sizeof text, OPSET);
    for (const char *p = s->graph; *p; p++)
        if (p[0] == '%' && p[1] == 'd')
            used += (size_t)snprintf(text + used, sizeof text - used, "%d", n), p++;
        else
            text[used++] = *p;
    text[used] = 0;
    *r = (ready){ .bytes.allocator = &pith__allocator_default };
    pith__arena_init(&scratch, &pith__allocator_default);
    if (pith__onnx_parse(&r->bytes, (pith_str){ text, used }, NULL, &scratch, &err) ||
        pith_model_open_memory(&r->model, r->bytes.bytes, r->bytes.size, &open, &err) ||
        pith_session_create(&r->session, r->model, &err))
        fail_msg("%s: %s", s->name, err.message);
    pith__arena_free(&scratch);
    r->in_count = pith_model_input_count(r->model);
    r->out_count = pith_model_output_count(r->model);
    assert_true(r->in_count <= INPUTS);
    for (size_t i = 0; i < r->in_count; i++) {
        const pith_port *port = pith_model_input(r->model, i);
        r->names[i] = port->name;
        make_input(&r->in[i], port, s->in[i].fill, s->in[i].bound);
    }
}

static void free_ready(ready *r) {
    for (size_t i = 0; i < r->in_count; i++) free(r->in[i].data);
    pith_session_destroy(r->session);
    pith_model_close(r->model);
    pith__wire_build_free(&r->bytes);
}

static void add_to_sum(pith__hash *hash, const pith_tensor *t) {
    if (t->dtype == PITH_STRING)
        for (size_t i = 0; i < t->bytes / sizeof(pith_str); i++) {
            const pith_str text = ((const pith_str *)t->data)[i];
            if (text.size) pith__hash_add(hash, text.data, text.size);
        }
    else if (t->bytes)
        pith__hash_add(hash, t->data, t->bytes);
}

static pith_status run_ready(const void *work, const pith_call *call, uint64_t *sum,
                             pith_error *err) {
    const ready *r = work;
    pith_run_options o = PITH_RUN_OPTIONS_INIT;
    pith_tensor out[4];
    const size_t size = o.call.size;
    o.call = *call;
    o.call.size = size;
    PITH_TRY(pith_session_run(r->session, out, r->names, r->in, r->in_count, &o, err));
    stop_test_over();
    pith__hash hash;
    pith__hash_init(&hash);
    for (size_t i = 0; i < r->out_count; i++) add_to_sum(&hash, &out[i]);
    *sum = pith__hash_end(&hash);
    return PITH_OK;
}

static void test_steps(void **state) {
    (void)state;
    const char *only = getenv("PITH_TEST_ONLY");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ready r;
        if (only && strcmp(only, steps[i].name) != 0) continue;
        make_ready(&r, &steps[i]);
        const stop_case one = { .name = steps[i].name, .run = run_ready, .work = &r };
        stop_test_all(&one, 1);
        free_ready(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_steps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
