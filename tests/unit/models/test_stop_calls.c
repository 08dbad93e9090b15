/* test_stop_calls.c - every call on models ends when its deadline has passed, its flag is set or
 * its function says so; what is open works afterwards. */
#include "support/embed_test.h"
#include "support/score_test.h"

#include "pith/detect.h"
#include "pith/export.h"
#include "pith/image.h"
#include "pith/quantize.h"
#include "pith/session.h"
#include "pith/session_pool.h"
#include "pith/tokens.h"
#include "pith/transform.h"

#define DIR PITH_BINARY_DIR "/stop-calls"
#define VALUE DIR "/value.pb"
#define YUNET PITH_TEST_DATA "/yunet/yunet-s-640-other-sizes/model.onnx"

enum { TEXTS = 4000, WIDTH = 32, SIDE = 640, PICTURES = 6, ROWS = 20000, ROW = 64 };

static pith_str texts[TEXTS];
static float vectors[TEXTS * WIDTH];
static char long_text[1 << 20];
static pith_model *model, *reranker, *yunet;
static pith_bm25 *bm25;
static pith_search_index *found_index;
static float *rows;
static pith_image pictures[PICTURES];
static pith_tokenizer *toy;
static pith_source *network;
static pith_session_pool *pool;
static int32_t ids[TEXTS];

/* ---- a caller who may want to stop, or to know how far it is ---- */

typedef struct asked {
    size_t times, stop_at; /* questions; the one that is answered by yes */
    size_t told;           /* reports of progress */
    uint64_t done, total;
    char what[20];
} asked;

static int32_t ask(void *user) {
    asked *a = user;
    return ++a->times == a->stop_at;
}

static void tell(void *user, const char *what, uint64_t done, uint64_t total) {
    asked *a = user;
    if (a->told && !strcmp(what, a->what)) assert_true(done > a->done);
    assert_true(done <= total);
    a->told++;
    a->done = done;
    a->total = total;
    snprintf(a->what, sizeof a->what, "%s", what);
}

/* ---- the calls ---- */

#define TAKE(type, init)                                                                           \
    type o = init;                                                                                 \
    const size_t size_ = o.call.size;                                                              \
    o.call = *call;                                                                                \
    o.call.size = size_

static pith_status opens(const pith_call *call, pith_error *err) {
    TAKE(pith_open_options, PITH_OPEN_OPTIONS_INIT);
    pith_model *m = NULL;
    const pith_status status = pith_model_open(&m, DIR, &o, err);
    if (status) assert_null(m);
    pith_model_close(m);
    return status;
}

static pith_status opens_checked(const pith_call *call, pith_error *err) {
    TAKE(pith_open_options, PITH_OPEN_OPTIONS_INIT);
    pith_model *m = NULL;
    o.flags = PITH_OPEN_CHECK;
    const pith_status status = pith_model_open(&m, DIR, &o, err);
    pith_model_close(m);
    return status;
}

static pith_status opens_tokenizer(const pith_call *call, pith_error *err) {
    TAKE(pith_open_options, PITH_OPEN_OPTIONS_INIT);
    pith_tokenizer *t = NULL;
    const pith_status status = pith_tokenizer_open(&t, PITH_TEST_DATA "/minilm", &o, err);
    if (status) assert_null(t);
    pith_tokenizer_close(t);
    return status;
}

static pith_status opens_source(const pith_call *call, pith_error *err) {
    TAKE(pith_source_options, PITH_SOURCE_OPTIONS_INIT);
    pith_source *s = NULL;
    const pith_status status = pith_source_open(&s, DIR, &o, err);
    if (status) assert_null(s);
    pith_source_close(s);
    return status;
}

static pith_status checks(const pith_call *call, pith_error *err) {
    TAKE(pith_check_options, PITH_CHECK_OPTIONS_INIT);
    size_t findings;
    pith_source *source = NULL;
    assert_int_equal(pith_source_open(&source, DIR, NULL, err), PITH_OK);
    const pith_status status = pith_source_check_fusions(&findings, source, &o, err);
    pith_source_close(source);
    return status;
}

static pith_status embeds(const pith_call *call, pith_error *err) {
    TAKE(pith_embed_options, PITH_EMBED_OPTIONS_INIT);
    pith_embed_stats stats = { .texts_done = 7 };
    o.stats = &stats;
    const pith_status status = pith_embed(vectors, model, texts, TEXTS, &o, err);
    assert_true(status ? stats.texts_done < TEXTS : stats.texts_done == TEXTS);
    return status;
}

static pith_status embeds_long(const pith_call *call, pith_error *err) {
    TAKE(pith_embed_options, PITH_EMBED_OPTIONS_INIT);
    const pith_str text = { long_text, sizeof long_text };
    o.max_length = 40; /* positions of the model, whose files do not tell them */
    return pith_embed(vectors, model, &text, 1, &o, err);
}

static pith_status encodes(const pith_call *call, pith_error *err) {
    TAKE(pith_encode_options, PITH_ENCODE_OPTIONS_INIT);
    pith_encoded *e = NULL;
    o.what = PITH_ENCODE_DENSE | PITH_ENCODE_TOKENS;
    const pith_status status = pith_encode(&e, model, texts, TEXTS, &o, err);
    if (status) assert_null(e);
    pith_encoded_free(e);
    return status;
}

static pith_status chunks(const pith_call *call, pith_error *err) {
    TAKE(pith_chunk_options, PITH_CHUNK_OPTIONS_INIT);
    pith_chunk chunk = PITH_CHUNK_INIT;
    pith_status status = PITH_OK;
    for (int i = 0; i < 2000 && !status && !chunk.last; i++)
        status = pith_chunk_text(&chunk, model, (pith_str){ long_text, sizeof long_text }, &o, err);
    return status;
}

static pith_status classifies(const pith_call *call, pith_error *err) {
    TAKE(pith_score_options, PITH_SCORE_OPTIONS_INIT);
    return pith_classify(vectors, reranker, texts, NULL, TEXTS, &o, err);
}

static pith_status reranks(const pith_call *call, pith_error *err) {
    TAKE(pith_score_options, PITH_SCORE_OPTIONS_INIT);
    return pith_rerank(vectors, reranker, texts[0], texts, TEXTS, &o, err);
}

static pith_status detects(const pith_call *call, pith_error *err) {
    TAKE(pith_detect_options, PITH_DETECT_OPTIONS_INIT);
    pith_faces faces[PICTURES];
    const pith_status status = pith_detect(faces, yunet, pictures, PICTURES, &o, err);
    for (int i = 0; i < PICTURES && !status; i++) pith_faces_free(&faces[i]);
    return status;
}

static pith_status weighs(const pith_call *call, pith_error *err) {
    pith_bm25_rows made = { .memory = NULL };
    const pith_status status =
        pith_bm25_encode(&made, bm25, texts, TEXTS, PITH_ROLE_DOCUMENT, call, err);
    pith_bm25_rows_free(&made, bm25);
    return status;
}

static pith_status makes_index(const pith_call *call, pith_error *err) {
    TAKE(pith_search_index_options, PITH_SEARCH_INDEX_OPTIONS_INIT);
    pith_search_index *made = NULL;
    o.first_pass = PITH_FIRST_PASS_INT8;
    const pith_status status = pith_search_index_create(&made, rows, ROWS, ROW, &o, err);
    if (status) assert_null(made);
    pith_search_index_destroy(made);
    return status;
}

static pith_status searches(const pith_call *call, pith_error *err) {
    TAKE(pith_search_options, PITH_SEARCH_OPTIONS_INIT);
    enum { QUERIES = 200, K = 5 };
    static pith_hit hits[QUERIES * K];
    return pith_search(hits, found_index, rows, QUERIES, K, &o, err);
}

/* The model whose weights are rounded is another one each time. */
static pith_status calibrates(const pith_call *call, pith_error *err) {
    TAKE(pith_calibrate_options, PITH_CALIBRATE_OPTIONS_INIT);
    pith_model *m = open_at(PITH_PRECISION_INT8);
    o.texts = texts;
    o.text_count = 40;
    const pith_status status = pith_model_calibrate(m, &o, err);
    embed(vectors, m, texts, 10, NULL);
    pith_model_close(m);
    return status;
}

/* ---- what is written ---- */

static int32_t count_bytes(void *user, const void *data, size_t size) {
    (void)data;
    *(size_t *)user += size;
    return 0;
}

#define COUNTED(count) (&(const pith_writer){ count_bytes, NULL, &(count) })

static pith_status saves(const pith_call *call, pith_error *err) {
    size_t written = 0;
    return pith_model_save(model, call, COUNTED(written), err);
}

static pith_status saves_routes(const pith_call *call, pith_error *err) {
    const pith_model *const one[] = { model };
    size_t written = 0;
    return pith_model_save_routes(one, 1, call, COUNTED(written), err);
}

static pith_status describes(const pith_call *call, pith_error *err) {
    size_t written = 0;
    return pith_model_describe(model, PITH_DESCRIBE_NODES, call, COUNTED(written), err);
}

/* Nothing is written of a file that is not made to its end, but for what was ended while it was
 * written. */
static pith_status exports(const pith_call *call, pith_error *err) {
    TAKE(pith_export_options, PITH_EXPORT_OPTIONS_INIT);
    size_t written = 0;
    return pith_source_export(network, &o, COUNTED(written), NULL, NULL, err);
}

static pith_status exports_half(const pith_call *call, pith_error *err) {
    TAKE(pith_export_options, PITH_EXPORT_OPTIONS_INIT);
    size_t written = 0;
    o.dtype = PITH_F16;
    o.pool = 1;
    return pith_source_export(network, &o, COUNTED(written), NULL, NULL, err);
}

static pith_status optimizes(const pith_call *call, pith_error *err) {
    TAKE(pith_optimize_options, PITH_OPTIMIZE_OPTIONS_INIT);
    size_t written = 0;
    return pith_source_optimize(network, &o, COUNTED(written), NULL, NULL, err);
}

static pith_status quantizes(const pith_call *call, pith_error *err) {
    TAKE(pith_quantize_model_options, PITH_QUANTIZE_MODEL_OPTIONS_INIT);
    size_t written = 0;
    return pith_source_quantize(network, &o, COUNTED(written), NULL, NULL, err);
}

static pith_status quantizes_blocks(const pith_call *call, pith_error *err) {
    TAKE(pith_quantize_model_options, PITH_QUANTIZE_MODEL_OPTIONS_INIT);
    size_t written = 0;
    o.scheme = PITH_QUANTIZE_BLOCKS4;
    o.calibrate = PITH_CALIBRATE;
    o.texts = texts;
    o.text_count = 40;
    return pith_source_quantize(network, &o, COUNTED(written), NULL, NULL, err);
}

static pith_status converts(const pith_call *call, pith_error *err) {
    TAKE(pith_convert_options, PITH_CONVERT_OPTIONS_INIT);
    pith_source_options how = PITH_SOURCE_OPTIONS_INIT;
    pith_source *file = NULL;
    size_t written = 0;
    how.flags = PITH_SOURCE_FILE;
    assert_int_equal(pith_source_open(&file, YUNET, &how, err), PITH_OK);
    const pith_status status = pith_source_convert(file, &o, COUNTED(written), NULL, err);
    pith_source_close(file);
    return status;
}

static pith_tensor all_rows(void) {
    return (pith_tensor){ .data = rows,
                          .bytes = (size_t)ROWS * ROW * sizeof *rows,
                          .dtype = PITH_F32,
                          .rank = 2,
                          .dims = { ROWS, ROW } };
}

static pith_status writes_value(const pith_call *call, pith_error *err) {
    size_t written = 0;
    const pith_tensor value = all_rows();
    return pith_value_write(&value, "rows", PITH_F32, call, COUNTED(written), err);
}

static pith_status opens_value(const pith_call *call, pith_error *err) {
    pith_value_file *file = NULL;
    pith_tensor value;
    const pith_status status = pith_value_open(&file, &value, NULL, VALUE, PITH_F32, call, err);
    if (status)
        assert_null(file);
    else
        assert_memory_equal(value.data, rows, (size_t)ROWS * ROW * sizeof *rows);
    pith_value_close(file);
    return status;
}

/* ---- the rest ---- */

static pith_status detokenizes(const pith_call *call, pith_error *err) {
    char *text = NULL;
    size_t size;
    const pith_status status = pith_detokenize(&text, &size, toy, ids, TEXTS, 0, call, err);
    if (status) assert_null(text);
    pith_text_free(toy, text);
    return status;
}

static pith_status finds_ranges(const pith_call *call, pith_error *err) {
    static float ranges[2 * ROW];
    return pith_quantize_ranges(ranges, rows, ROWS, ROW, call, err);
}

static pith_status quantizes_vectors(const pith_call *call, pith_error *err) {
    TAKE(pith_quantize_options, PITH_QUANTIZE_OPTIONS_INIT);
    static int8_t made[ROWS * ROW];
    o.type = PITH_VECTOR_INT8;
    return pith_quantize_vectors(made, rows, ROWS, ROW, &o, err);
}

static pith_status borrows(const pith_call *call, pith_error *err) {
    pith_session *session = NULL;
    const pith_status status = pith_session_pool_borrow(&session, pool, 0, call, err);
    if (status) assert_null(session);
    pith_session_pool_return(pool, session);
    return status;
}

/* The first run of a model of its own: what runs the tensors is made in it. */
static pith_status runs(const pith_call *call, pith_error *err) {
    enum { INPUTS = 4, LENGTH = 16 };
    TAKE(pith_run_options, PITH_RUN_OPTIONS_INIT);
    static int64_t ones[LENGTH];
    const char *names[INPUTS];
    pith_tensor inputs[INPUTS], outputs[INPUTS];
    pith_error first = PITH_ERROR_INIT;
    pith_model *m = NULL;
    pith_session *session = NULL;
    if (pith_model_open(&m, DIR, NULL, &first) || pith_session_create(&session, m, &first))
        fail_msg("%s", first.message);
    const size_t count = pith_model_input_count(m);
    assert_in_range(count, 1, INPUTS);
    assert_in_range(pith_model_output_count(m), 1, INPUTS);
    for (int i = 0; i < LENGTH; i++) ones[i] = 1;
    for (size_t i = 0; i < count; i++) {
        names[i] = pith_model_input(m, i)->name;
        inputs[i] = (pith_tensor){
            .data = ones, .bytes = sizeof ones, .dtype = PITH_I64, .rank = 2, .dims = { 1, LENGTH }
        };
    }
    const pith_status status = pith_session_run(session, outputs, names, inputs, count, &o, err);
    if (status)
        assert_int_equal(pith_session_run(session, outputs, names, inputs, count, NULL, &first),
                         PITH_OK);
    pith_session_destroy(session);
    pith_model_close(m);
    return status;
}

static pith_status resizes(const pith_call *call, pith_error *err) {
    TAKE(pith_image_resize_options, PITH_IMAGE_RESIZE_OPTIONS_INIT);
    pith_image made = { .pixels = NULL };
    o.width = o.height = SIDE / 2;
    const pith_status status = pith_image_resize(&made, &pictures[0], &o, err);
    pith_image_free(&made);
    return status;
}

static pith_status crops(const pith_call *call, pith_error *err) {
    pith_image made = { .pixels = NULL };
    const pith_status status =
        pith_image_center_crop(&made, &pictures[0], 2 * SIDE, SIDE / 2, call, err);
    pith_image_free(&made);
    return status;
}

static const struct {
    const char *name, *what; /* what: progress that it tells; NULL: none */
    pith_status (*run)(const pith_call *call, pith_error *err);
} calls[] = {
    { "open", "steps", opens },
    { "open, checked", "steps", opens_checked },
    { "open a tokenizer", NULL, opens_tokenizer },
    { "open a source", "files", opens_source },
    { "check", "runs", checks },
    { "embed", "texts", embeds },
    { "embed one", "texts", embeds_long },
    { "encode", "texts", encodes },
    { "chunk", NULL, chunks },
    { "classify", "texts", classifies },
    { "rerank", "texts", reranks },
    { "detect", "pictures", detects },
    { "weigh", "texts", weighs },
    { "make an index", NULL, makes_index },
    { "search", NULL, searches },
    { "calibrate", "texts", calibrates },
    { "save", "bytes", saves },
    { "save routes", "bytes", saves_routes },
    { "describe", NULL, describes },
    { "export", "bytes", exports },
    { "export in half precision", "bytes", exports_half },
    { "optimise", "bytes", optimizes },
    { "quantise", "bytes", quantizes },
    { "quantise in blocks", "bytes", quantizes_blocks },
    { "convert", NULL, converts },
    { "write a value", NULL, writes_value },
    { "open a value", NULL, opens_value },
    { "detokenise", NULL, detokenizes },
    { "find ranges", NULL, finds_ranges },
    { "quantise vectors", NULL, quantizes_vectors },
    { "borrow", NULL, borrows },
    { "run", NULL, runs },
    { "resize", NULL, resizes },
    { "crop", NULL, crops },
};

/* ---- all of them, in all ways ---- */

static void expect(int i, const pith_call *call, pith_status wanted) {
    pith_error err = PITH_ERROR_INIT;
    const pith_status status = calls[i].run(call, &err);
    if (status != wanted)
        fail_msg("%s: status %d instead of %d: %s", calls[i].name, (int)status, (int)wanted,
                 err.message);
}

static void test_early(void **state) {
    (void)state;
    volatile int cancel = 1;
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
        pith_call call = PITH_CALL_INIT;
        call.deadline_ns = 1;
        expect(i, &call, PITH_ERR_DEADLINE);
        call.deadline_ns = 0;
        call.cancel = &cancel;
        expect(i, &call, PITH_ERR_CANCELLED);
    }
}

/* A call that is over before it asks a second time is stopped at the first question. */
static void test_asked(void **state) {
    (void)state;
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++)
        for (int threads = 1; threads <= 2; threads++) {
            asked a = { .stop_at = 2 };
            pith_error err = PITH_ERROR_INIT;
            pith_call call = PITH_CALL_INIT;
            call.threads = threads;
            call.stop = ask;
            call.user = &a;
            pith_status status = calls[i].run(&call, &err);
            if (!status) {
                if (a.times >= 2) fail_msg("%s: asked %zu times", calls[i].name, a.times);
                a = (asked){ .stop_at = 1 };
                status = calls[i].run(&call, &err);
            }
            if (status != PITH_ERR_CANCELLED)
                fail_msg("%s: status %d: %s", calls[i].name, (int)status, err.message);
            /* Nobody is asked again once the answer was yes. */
            assert_int_equal(a.times, a.stop_at);
        }
}

/* After all that everything works, and progress reaches its end. */
static void test_afterwards(void **state) {
    (void)state;
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
        asked a = { .stop_at = 0 };
        pith_call call = PITH_CALL_INIT;
        call.stop = ask;
        call.progress = tell;
        call.user = &a;
        call.deadline_ns = pith_clock_now() + UINT64_C(3600000000000);
        expect(i, &call, PITH_OK);
        if (!calls[i].what) {
            if (a.told) fail_msg("%s tells of %s", calls[i].name, a.what);
            continue;
        }
        if (!a.told || strcmp(a.what, calls[i].what) || a.done != a.total)
            fail_msg("%s: told %zu times, last %s %llu of %llu", calls[i].name, a.told, a.what,
                     (unsigned long long)a.done, (unsigned long long)a.total);
    }
}

static int32_t write_file(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

static int make_all(void **state) {
    static const char *const some[] = { "a b c", "d", "a b c d a b c d", "ab ba" };
    pith_error err = PITH_ERROR_INIT;
    (void)state;
    network_directory(DIR, "bert-base-script17-sdpa", "null");
    if (pith_model_open(&model, DIR, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_embed_dim(model, NULL), WIDTH);
    if (pith_model_open(&reranker, TASKS "cross-bert", NULL, &err)) fail_msg("%s", err.message);
    if (pith_model_open(&yunet, YUNET, NULL, &err)) fail_msg("%s", err.message);
    pith_bm25_options plain = PITH_BM25_OPTIONS_INIT;
    plain.no_stemming = 1;
    if (pith_bm25_open(&bm25, NULL, &plain, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < TEXTS; i++) texts[i] = pith__str_of(some[i % 4]);
    for (size_t i = 0; i < sizeof long_text; i++) long_text[i] = "ab d "[i % 5];
    rows = malloc((size_t)ROWS * ROW * sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < (size_t)ROWS * ROW; i++)
        rows[i] = (float)((i * 2654435761u >> 7) % 1000) - 500;
    if (pith_search_index_create(&found_index, rows, ROWS, ROW, NULL, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < PICTURES; i++) {
        pictures[i] = (pith_image){ .width = SIDE, .height = SIDE, .channels = 3 };
        pictures[i].pixels = calloc((size_t)SIDE * SIDE, 3);
        assert_non_null(pictures[i].pixels);
    }
    if (pith_tokenizer_open(&toy, DIR, NULL, &err) || pith_source_open(&network, DIR, NULL, &err) ||
        pith_session_pool_create(&pool, model, NULL, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < TEXTS; i++) ids[i] = 4 + i % 4;
    FILE *f = fopen(VALUE, "wb");
    assert_non_null(f);
    const pith_tensor value = all_rows();
    if (pith_value_write(&value, NULL, PITH_F32, NULL, &(const pith_writer){ write_file, NULL, f },
                         &err))
        fail_msg("%s", err.message);
    assert_int_equal(fclose(f), 0);
    return 0;
}

static int free_all(void **state) {
    (void)state;
    pith_session_pool_destroy(pool);
    pith_source_close(network);
    pith_tokenizer_close(toy);
    for (int i = 0; i < PICTURES; i++) free(pictures[i].pixels);
    pith_search_index_destroy(found_index);
    free(rows);
    pith_bm25_close(bm25);
    pith_model_close(yunet);
    pith_model_close(reranker);
    pith_model_close(model);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_asked),
        cmocka_unit_test(test_afterwards),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
