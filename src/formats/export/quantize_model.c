/* quantize_model.c - see quantize_model.h.
 *
 * The graph is lowered to its opset first, and the weights are rounded and written last: some of
 * the operators that have them cannot be inferred. */
#include "formats/export/quantize_model.h"

#include <string.h>

#include "base/progress.h"
#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "base/os/cpu.h"
#include "formats/export/export_graph.h"
#include "formats/export/older_opset.h"
#include "formats/export/quantized_error.h"
#include "formats/export/quantized_smooth.h"
#include "formats/export/quantized_weights.h"
#include "formats/export/replace_pith_ops.h"
#include "models/open/open_model.h"
#include "models/quantize/gram_matrices.h"
#include "models/quantize/input_ranges.h"

/* ---- options ---- */

static bool quantize_block_is_known(int32_t block) {
    return block >= 16 && block <= 256 && !(block & (block - 1));
}

/* Weights of 8 bits with a scale per column. */
static bool quantize_is_int8(const pith_quantize_model_options *o) {
    return o->scheme == PITH_QUANTIZE_INT8 || o->scheme == PITH_QUANTIZE_STATIC;
}

static pith_status quantize_check_static(const pith_quantize_model_options *o, pith_error *err) {
    const bool fixed = o->scheme == PITH_QUANTIZE_STATIC;
    if (fixed && !o->calibrate)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the scheme static needs calibrate, with texts or inputs");
    if (!fixed && (o->inputs || o->ranges || o->percentile != 0))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "inputs, ranges and percentile are for the scheme static");
    if (o->inputs && (o->texts || !o->input_sets))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "give texts or inputs, and at least 1 for input_sets");
    if (o->ranges < PITH_RANGE_MIN_MAX || o->ranges > PITH_RANGE_ENTROPY)
        return pith__fail(err, PITH_ERR_ARGUMENT, "ranges is %d, which is not a PITH_RANGE_* value",
                          o->ranges);
    if (o->percentile != 0 && !(o->percentile > 50 && o->percentile <= 100))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "percentile is %g; it is above 50 and at most 100",
                          (double)o->percentile);
    return PITH_OK;
}

static pith_status quantize_check_blocks(const pith_quantize_model_options *o, pith_error *err) {
    if (quantize_is_int8(o) && (o->block || o->asymmetric || o->accuracy > 0 || o->table_block))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "block, asymmetric, accuracy and table_block need the scheme blocks4 or blocks8");
    if (!quantize_is_int8(o) && o->reduce_range)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "reduce_range is for the schemes int8 and static");
    if (o->scheme != PITH_QUANTIZE_INT8 && o->rows)
        return pith__fail(err, PITH_ERR_ARGUMENT, "rows is for the scheme int8");
    if (o->block && !quantize_block_is_known(o->block))
        return pith__fail(err, PITH_ERR_ARGUMENT, "block is %d; it is 16, 32, 64, 128 or 256",
                          o->block);
    if (o->table_block && !quantize_block_is_known(o->table_block))
        return pith__fail(err, PITH_ERR_ARGUMENT, "table_block is %d; it is 16, 32, 64, 128 or 256",
                          o->table_block);
    return PITH_OK;
}

static pith_status quantize_check(const pith_quantize_model_options *o, pith_error *err) {
    if (o->calibrate < PITH_CALIBRATE_NOT || o->calibrate > PITH_CALIBRATE_WHERE_POSSIBLE)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "calibrate is %d, which is not a PITH_CALIBRATE* value", o->calibrate);
    if (o->calibrate == PITH_CALIBRATE_WHERE_POSSIBLE &&
        (o->scheme != PITH_QUANTIZE_INT8 || !o->rows || o->texts))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "calibrate where it is possible is for the scheme int8 with rows, and without texts");
    if (o->scheme < PITH_QUANTIZE_INT8 || o->scheme > PITH_QUANTIZE_STATIC)
        return pith__fail(err, PITH_ERR_ARGUMENT, "scheme %d is not known", o->scheme);
    if (o->accuracy < -1 || o->accuracy > 4)
        return pith__fail(err, PITH_ERR_ARGUMENT, "accuracy is %d; it must be from -1 to 4",
                          o->accuracy);
    if (o->table_bits != -1 && o->table_bits != 0 && o->table_bits != 4 && o->table_bits != 8)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "table_bits is %d; it is 8, 4, 0 for 8, or -1 to stay in f32",
                          o->table_bits);
    if (o->table_bits == 4 && quantize_is_int8(o))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "table_bits 4 needs the scheme blocks4 or blocks8");
    if (o->text_count && !o->texts)
        return pith__fail(err, PITH_ERR_ARGUMENT, "text_count is %zu, but texts is NULL",
                          o->text_count);
    if (o->texts && (!o->text_count || !o->calibrate))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "texts need calibrate, and at least 1 for text_count");
    PITH_TRY(quantize_check_blocks(o, err));
    PITH_TRY(quantize_check_static(o, err));
    return pith__export_graph_check_name(o->data_name, err);
}

/* Fills in the defaults, once the options are known to be good: blocks of 32 numbers in matmuls and
 * of 64 in tables, and for 4 bits accuracy_level 4, which lets ONNX Runtime compute with integers.
 * Then 0 stands for no accuracy level, and for tables that stay in f32. */
static void quantize_complete(pith_quantize_model_options *o) {
    const int32_t level = o->scheme == PITH_QUANTIZE_BLOCKS4 ? 4 : 0;
    if (o->accuracy <= 0) o->accuracy = o->accuracy ? 0 : level;
    if (o->table_bits <= 0) o->table_bits = o->table_bits ? 0 : 8;
    if (!o->block) o->block = 32;
    if (!o->table_block) o->table_block = 64;
    if (o->percentile == 0) o->percentile = 99.99f;
}

static pith__quantized_kind quantize_kind(const pith_quantize_model_options *o) {
    if (!quantize_is_int8(o)) return PITH_QUANTIZED_BLOCKS;
    if (o->scheme == PITH_QUANTIZE_STATIC) return PITH_QUANTIZED_STATIC;
    return o->rows ? PITH_QUANTIZED_ROWS : PITH_QUANTIZED_DYNAMIC;
}

/* int8 has a scale per column, and codes from -127, so that both signs reach equally far;
 * reduce_range takes half of that, for processors whose 16-bit sums would saturate. */
static pith__quantized_form quantize_form_of(const pith_quantize_model_options *o) {
    const bool int8 = quantize_is_int8(o), four = o->scheme == PITH_QUANTIZE_BLOCKS4;
    pith__quantized_form form = { .kind = quantize_kind(o),
                                  .accuracy = o->accuracy,
                                  .keep = o->keep,
                                  .keep_count = o->keep_count };
    form.weights = (pith__weight_code_form){ .bits = four ? 4 : 8, .symmetric = !o->asymmetric };
    form.tables = (pith__weight_code_form){ .bits = o->table_bits, .symmetric = true };
    if (int8) {
        form.weights.reach = o->reduce_range ? 63 : 127;
        form.tables.reach = 127;
    } else {
        form.weights.block = o->block;
        form.tables.block = o->table_block;
    }
    return form;
}

/* ---- calibration: the weights of the encoder's steps are those of the graph, by the place of
 * their contents ---- */

/* The encoder runs a graph of its own, for packed texts, whose constants are those of the model:
 * the address of the contents tells which weight a step has. */
static size_t quantize_find_step(void *user, const pith__step *step) {
    const pith__quantized *q = user;
    const pith__node *node = step->node;
    const pith__value *w = pith__node_input(node, 1);
    const bool matmul =
        pith__str_is(node->op_type, "MatMul") || pith__str_is(node->op_type, "Gemm");
    if (!matmul || node->domain.size || !w || !w->type.data) return SIZE_MAX;
    for (size_t i = 0; i < q->count; i++)
        if (!q->weights[i].table && q->weights[i].source.data == w->type.data->data) return i;
    return SIZE_MAX;
}

/* Tells how many weights have their codes. */
static void quantize_progress(const pith__quantized *q) {
    size_t done = 0;
    for (size_t i = 0; i < q->count; i++)
        done += q->weights[i].codes.codes != NULL || q->weights[i].unseen;
    pith__progress_tell(pith__graph_told(q->graph), "weights", done, q->count);
}

static pith_status quantize_round_one(void *user, size_t weight, const struct pith__factor *factor,
                                      pith__arena *scratch, pith_error *err) {
    PITH_TRY(pith__quantized_round(user, weight, factor, scratch, err));
    quantize_progress(user);
    return PITH_OK;
}

static pith_status quantize_lengths(int64_t **k, const pith__quantized *q, pith_model *m,
                                    pith_error *err) {
    *k = pith__arena_array(&m->arena, q->count + 1, sizeof **k);
    if (!*k) return pith__fail_memory(err, q->count * sizeof **k);
    for (size_t i = 0; i < q->count; i++) (*k)[i] = q->weights[i].source.k;
    return PITH_OK;
}

/* GPTQ: each weight is rounded with the gram matrix of the inputs that texts bring to it. */
static pith_status quantize_calibrate(pith__quantized *q, pith_model *m,
                                      const pith_calibrate_options *texts, const int64_t *k,
                                      pith_error *err) {
    const pith__gram_matrices grams = { .encoder = m->text.encoder,
                                        .tokenizer = m->tokenizer,
                                        .allocator = &m->account.allocator,
                                        .options = texts,
                                        .isa = pith__cpu_get()->isa,
                                        .row_lengths = k,
                                        .count = q->count,
                                        .user = q,
                                        .find = quantize_find_step,
                                        .round = quantize_round_one };
    return pith__gram_matrices_run(&grams, err);
}

/* ---- ranges and errors ---- */

/* The caller's tensors go straight to a runner, so types and sizes are checked here. An input with
 * a default may be left out. */
static pith_status quantize_check_inputs(const pith_model *m, const pith_quantize_model_options *o,
                                         pith_error *err) {
    const size_t count = m->graph->input_count;
    for (size_t i = 0; i < o->input_sets * count; i++) {
        const pith__value *input = m->graph->inputs[i % count];
        const pith_tensor *t = &o->inputs[i];
        size_t bytes;
        if (t->dtype == PITH_UNDEFINED && input->type.data) continue;
        if (t->dtype != input->type.dtype || t->rank < 0 || t->rank > PITH_MAX_RANK ||
            !pith__dtype_bytes(t->dtype, pith__dims_count(t->dims, t->rank), &bytes) ||
            bytes != t->bytes)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "calibration, set %zu: input '" PITH_STR_FMT "' is no tensor of %s",
                              i / count, PITH_STR_ARG(input->name),
                              pith__dtype_name(input->type.dtype));
    }
    return PITH_OK;
}

/* The limits of each matmul's inputs; a matmul that got no row stays as it is. */
static pith_status quantize_watch(pith__input_range *ranges, pith__quantized *q, pith_model *m,
                                  const pith_quantize_model_options *o,
                                  const pith_calibrate_options *texts, const int64_t *k,
                                  pith_error *err) {
    pith__input_ranges job = { .encoder = o->inputs ? NULL : m->text.encoder,
                               .tokenizer = m->tokenizer,
                               .options = texts,
                               .inputs = o->inputs,
                               .sets = o->input_sets,
                               .allocator = &m->account.allocator,
                               .row_lengths = k,
                               .count = q->count,
                               .user = q,
                               .find = quantize_find_step,
                               .rows_only = q->form->kind != PITH_QUANTIZED_STATIC,
                               .method = o->ranges,
                               .percentile = o->percentile };
    if (o->inputs) PITH_TRY(quantize_check_inputs(m, o, err));
    if (o->inputs) PITH_TRY(pith__model_program(&job.program, m, pith__graph_stop(m->graph), err));
    PITH_TRY(pith__input_ranges_run(ranges, &job, &m->arena, err));
    for (size_t i = 0; i < q->count; i++) {
        q->weights[i].low = ranges[i].low;
        q->weights[i].high = ranges[i].high;
        q->weights[i].unseen = q->form->kind == PITH_QUANTIZED_STATIC && !q->weights[i].table &&
                               !q->weights[i].other && !ranges[i].row_count;
    }
    return PITH_OK;
}

/* Why something ended early that says no more: it had to, or memory is out. */
static pith_status quantize_ended(const pith__quantized *q, pith_error *err) {
    PITH_TRY(pith__stop_check(pith__graph_stop(q->graph), err));
    return pith__fail_memory(err, 0);
}

/* Errors are measured on the rows that were kept while texts ran; without rows, on the weight
 * alone. */
static pith_status quantize_tell(const pith__quantized *q, const pith__input_range *ranges,
                                 const pith_quantize_model_options *o,
                                 const pith_allocator *allocator, pith_error *err) {
    pith__stop *stop = pith__graph_stop(q->graph);
    pith__arena scratch;
    pith_status status = PITH_OK;
    pith__arena_init(&scratch, allocator);
    for (size_t i = 0; i < q->count && !status; i++) {
        double error;
        if (!q->weights[i].codes.codes) continue;
        status = pith__stop_check(stop, err);
        if (status) break;
        const char *name = pith__arena_str(&scratch, q->weights[i].label).data;
        if (!name)
            status = pith__fail_memory(err, 0);
        else if (!pith__quantized_error(&error, q, i, ranges[i].rows, ranges[i].row_count,
                                        &scratch))
            status = quantize_ended(q, err);
        else
            o->tell(o->tell_user, name, error);
        pith__arena_reset(&scratch);
    }
    pith__arena_free(&scratch);
    return status;
}

/* ---- the whole ---- */

/* The weights that nothing else has rounded: tables, weights without calibration, and those that
 * got no row. */
static pith_status quantize_round_all(pith__quantized *q, const pith_allocator *allocator,
                                      pith_error *err) {
    pith__arena scratch;
    pith_status status = PITH_OK;
    pith__arena_init(&scratch, allocator);
    for (size_t i = 0; i < q->count && !status; i++) {
        if (!q->weights[i].codes.codes && !q->weights[i].unseen)
            status = pith__quantized_round(q, i, NULL, &scratch, err);
        if (!status) quantize_progress(q);
        pith__arena_reset(&scratch);
    }
    pith__arena_free(&scratch);
    return status;
}

/* Rounds the weights of scales of rows; those that got no row are left for later. */
static pith_status quantize_smooth_all(pith__quantized *q, const pith__input_range *ranges,
                                       const pith_allocator *allocator, pith_error *err) {
    pith__arena scratch;
    pith_status status = PITH_OK;
    pith__arena_init(&scratch, allocator);
    for (size_t i = 0; i < q->count && !status; i++) {
        if (q->weights[i].table || q->weights[i].other || q->weights[i].codes.codes ||
            !ranges[i].row_count)
            continue;
        if (!pith__quantized_smooth(q, i, ranges[i].rows, ranges[i].row_count, &scratch))
            status = quantize_ended(q, err);
        if (!status) quantize_progress(q);
    }
    pith__arena_free(&scratch);
    return status;
}

/* Rounds all weights, by what texts or tensors bring if they are given. A first pass over these
 * finds limits and keeps some rows: fixed limits need it, smoothing needs it, and so does telling
 * errors. Then weights for scales of rows are smoothed; those of blocks and of scales of a whole
 * tensor are rounded with GPTQ in a second pass over the texts. All that is left is rounded to
 * nearest: tables, weights with fixed limits, and those that no row came to, which stay in f32 if
 * limits are fixed. A model that cannot run texts is rounded without them if the caller asked for
 * calibration only where it is possible. */
static pith_status quantize_round_with(pith__quantized *q, pith_model *m,
                                       const pith_quantize_model_options *o, pith_error *err) {
    const bool fixed = q->form->kind == PITH_QUANTIZED_STATIC;
    pith_calibrate_options texts = PITH_CALIBRATE_OPTIONS_INIT;
    pith__input_range *ranges = pith__arena_array(&m->arena, q->count + 1, sizeof *ranges);
    int64_t *k;
    if (!ranges) return pith__fail_memory(err, q->count * sizeof *ranges);
    const bool optional = o->calibrate == PITH_CALIBRATE_WHERE_POSSIBLE;
    if (!o->calibrate || (optional && !m->text.encoder))
        return quantize_round_all(q, &m->account.allocator, err);
    if (!o->inputs && !m->text.encoder)
        return pith__fail(err, m->no_text.code, "calibration needs a model of texts: %s",
                          m->no_text.message);
    pith__export_graph_take_call(&texts.call, &o->call);
    texts.texts = o->texts;
    texts.text_count = o->text_count;
    PITH_TRY(quantize_lengths(&k, q, m, err));
    const bool rows = q->form->kind == PITH_QUANTIZED_ROWS;
    pith_error fault = PITH_ERROR_INIT;
    pith_status status =
        fixed || rows || o->tell ? quantize_watch(ranges, q, m, o, &texts, k, &fault) : PITH_OK;
    if (status == PITH_ERR_UNSUPPORTED && optional)
        return quantize_round_all(q, &m->account.allocator, err);
    if (pith__status_stops(status)) return pith__stop_check(pith__graph_stop(q->graph), err);
    if (status) return pith__fail(err, status, "%s", fault.message);
    if (rows) PITH_TRY(quantize_smooth_all(q, ranges, &m->account.allocator, err));
    if (!fixed && !rows) PITH_TRY(quantize_calibrate(q, m, &texts, k, err));
    PITH_TRY(quantize_round_all(q, &m->account.allocator, err));
    return o->tell ? quantize_tell(q, ranges, o, &m->account.allocator, err) : PITH_OK;
}

/* Weights are found and rounded while the graph is as it was opened, because calibration runs the
 * encoder over it. Only then is the graph lowered, settled and rewritten. The order of the last
 * steps is that of export_model.c. */
static pith_status quantize_run(pith_model *m, const pith_quantize_model_options *o,
                                const pith__onnx_sinks *sinks, pith_quantize_model_report *report,
                                pith_error *err) {
    pith__quantized_form form = quantize_form_of(o);
    pith__graph *graph = m->graph;
    pith__quantized q;
    pith__export_graph_report w;
    /* Before the graph changes, which the encoder may run. */
    PITH_TRY(pith__quantized_find(&q, graph, &form, err));
    if (!q.count)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model has no weights of f32 that could get fewer bits");
    PITH_TRY(quantize_round_with(&q, m, o, err));
    PITH_TRY(pith__export_graph_own_outputs(graph, err));
    pith__opset_choice choice = { 0, PITH_EXPORT_OPSET_LEAST, PITH_EXPORT_OPSET_MOST };
    PITH_TRY(pith__older_opset_choose(&report->opset, graph, &choice, err));
    form.opset = report->opset;
    PITH_TRY(pith__replace_pith_ops(
        graph, &(pith__replace_form){ .standard = true, .opset = form.opset }, err));
    PITH_TRY(pith__older_opset(graph, report->opset, err));
    PITH_TRY(pith__ops_infer(graph, false, err));
    choice.least = report->opset;
    PITH_TRY(pith__export_graph_settle(&report->opset, m, &choice, err));
    form.opset = report->opset;
    PITH_TRY(pith__older_opset_axes(graph, report->opset, err));
    PITH_TRY(pith__quantized_rewrite(&q, err));
    PITH_TRY(pith__export_graph_declare(graph, err));
    const pith__export_graph_form written = { report->opset, o->data_name, o->data_always != 0 };
    PITH_TRY(pith__export_graph_write(&w, m, &written, sinks, err));
    report->matmuls = q.matmuls;
    report->tables = q.tables;
    report->kept = q.kept;
    report->model_bytes = w.model_bytes;
    report->data_bytes = w.data_bytes;
    return PITH_OK;
}

/* Opened at level 1, where matmuls and tables still are standard operators. */
pith_status pith__model_write_quantized(const pith_source *source,
                                        const pith_quantize_model_options *options,
                                        const pith__onnx_sinks *sinks,
                                        pith_quantize_model_report *report, pith_error *err) {
    pith_quantize_model_options o = PITH_QUANTIZE_MODEL_OPTIONS_INIT;
    pith_quantize_model_report own = PITH_QUANTIZE_MODEL_REPORT_INIT;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    pith_model *m;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(quantize_check(&o, err));
    PITH_TRY(pith__export_graph_check_sinks(sinks, o.data_name, err));
    quantize_complete(&o);
    if (report && report->size < sizeof report->size)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "the report has no size; initialise it with PITH_QUANTIZE_MODEL_REPORT_INIT");
    PITH_TRY(pith__threads_check(o.call.threads, err));
    pith__stop asked;
    pith__progress told;
    const pith__making making = { pith__stop_begin(&asked, &o.call), o.call.threads,
                                  pith__progress_begin(&told, &o.call) };
    pith__export_graph_take_call(&open.call, &o.call);
    PITH_TRY(pith__export_graph_open(&m, source, 1, &open, err));
    m->graph->making = &making;
    pith_status status = quantize_run(m, &o, sinks, &own, err);
    pith__model_destroy(m);
    if (status || !report) return status;
    own.size = report->size;
    memcpy(report, &own, report->size < sizeof own ? report->size : sizeof own);
    return PITH_OK;
}
