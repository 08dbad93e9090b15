/* Every exporter's spelling of a network reaches the same fused steps, padded and ragged; all
 * optimisation levels agree with the stored outputs; and a text's bits do not depend on batch,
 * order, padding, threads or instruction set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/exec/executor.h"
#include "engine/opt/pass.h"
#include "engine/ragged/ragged.h"
#include "formats/onnx/model_read.h"
#include "families.h"

/* One network at one level: its graph, the ragged one if there is one, and an executor of each. */
typedef struct net {
    pith__arena arena;
    pith__files files;
    pith__report report;
    pith__graph *graph, *ragged;
    pith_str reason;
    pith__executor *padded_run, *ragged_run;
    char dir[512];
} net;

static void must(pith_status status, const pith_error *err, const char *what) {
    if (status) fail_msg("%s: %s", what, err->message);
}

static pith__executor *executor_of(net *n, const pith__graph *graph) {
    static const pith__executor_options options = { .allocator = &pith__allocator_default };
    pith_error err = PITH_ERROR_INIT;
    pith__plan *plan;
    pith__executor *executor;
    must(pith__plan_build(&plan, graph, NULL, &n->arena, &err), &err, n->dir);
    must(pith__executor_create(&executor, plan, &options, &err), &err, n->dir);
    return executor;
}

static net *open_net(const char *name, int output, int level) {
    net *n = calloc(1, sizeof *n);
    pith_error err = PITH_ERROR_INIT;
    pith_str bytes;
    char path[600];
    snprintf(n->dir, sizeof n->dir, "%s/%s%s", PITH_TEST_DATA, strchr(name, '/') ? "" : "models/",
             name);
    snprintf(path, sizeof path, "%s/model.onnx", n->dir);
    pith__arena_init(&n->arena, &pith__allocator_default);
    n->files.arena = &n->arena;
    n->report.arena = &n->arena;
    must(pith__files_open(&bytes, &n->files, path, &err), &err, path);
    must(pith__onnx_read(&n->graph, bytes, n->dir, &n->files, &n->arena, NULL, &err), &err, path);
    must(pith__ops_bind(n->graph, &err), &err, path);
    must(pith__ops_infer(n->graph, false, &err), &err, path);
    pith__opt o = { .graph = n->graph,
                    .level = level,
                    .allocator = &pith__allocator_default,
                    .report = &n->report,
                    .err = &err };
    if (level) must(pith__opt_run(&o, NULL), &err, path);
    must(pith__graph_check(n->graph, &err), &err, path);
    if (level == 3)
        must(pith__ragged_make(&n->ragged, &n->reason, output < 0 ? NULL : &output, 1, &o,
                               o.graph->arena),
             &err, path);
    if (n->ragged) must(pith__graph_check(n->ragged, &err), &err, path);
    n->padded_run = executor_of(n, n->graph);
    if (n->ragged) n->ragged_run = executor_of(n, n->ragged);
    return n;
}

/* The passes and the ragged form with less memory for new nodes than they take: an error, or a
 * graph without what there was no memory for. */
static void optimise_within(const char *name, size_t parts) {
    pith_error err = PITH_ERROR_INIT;
    size_t used = 0, refused = 0;
    char path[600];
    snprintf(path, sizeof path, "%s/models/%s/model.onnx", PITH_TEST_DATA, name);
    for (size_t i = 0; i <= parts; i++) {
        pith__arena arena, made;
        pith__graph *graph, *ragged;
        pith_str bytes, reason;
        pith__arena_init(&arena, &pith__allocator_default);
        pith__arena_init(&made, &pith__allocator_default);
        pith__files files = { .arena = &arena };
        must(pith__files_open(&bytes, &files, path, &err), &err, path);
        must(pith__onnx_read(&graph, bytes, PITH_TEST_DATA, &files, &arena, NULL, &err), &err,
             path);
        must(pith__ops_bind(graph, &err), &err, path);
        must(pith__ops_infer(graph, false, &err), &err, path);
        graph->arena = &made;
        made.limit = i ? used * i / (parts + 1) : 0;
        pith__opt o = {
            .graph = graph, .level = 3, .allocator = &pith__allocator_default, .err = &err
        };
        pith_status status = pith__opt_run(&o, NULL);
        if (!status) status = pith__ragged_make(&ragged, &reason, NULL, 0, &o, o.graph->arena);
        if (status && (!i || status != PITH_ERR_MEMORY))
            fail_msg("%s: part %zu: status %d", name, i, status);
        if (!i) used = made.total;
        refused += status != PITH_OK;
        made.limit = 0;
        if (!status) must(pith__graph_check(graph, &err), &err, path);
        pith__files_close(&files);
        pith__arena_free(&made);
        pith__arena_free(&arena);
    }
    assert_true(refused > parts / 4);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    optimise_within("bert-base-script14-eager", 150);
    optimise_within("qwen3-last-dynamo20-sdpa", 150);
    optimise_within("modernbert-base-script17-sdpa", 150);
    optimise_within("mpnet-base-script17-eager", 100);
    optimise_within("bert-base-script14-eager-int8", 100);
}

static void close_net(net *n) {
    pith__executor_destroy(n->padded_run);
    if (n->ragged_run) pith__executor_destroy(n->ragged_run);
    pith__files_close(&n->files);
    pith__arena_free(&n->arena);
    free(n);
}

/* ---- the same steps ---- */

#define ENCODER "EmbedNorm" LAYER LAYER
#define MPNET_RAGGED                                                                               \
    "SegmentScan EmbedNorm Linear Longest Attention Linear SkipNorm Linear Linear SkipNorm" LAYER  \
    " Segment Linear"
#define MODERNBERT "EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED

static const struct network {
    const char *name, *steps, *ragged;
} networks[] = {
    { "bert-base-dynamo18-eager", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-dynamo18-sdpa", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-dynamo20-eager", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-dynamo20-sdpa", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-dynamo23-eager", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-dynamo23-sdpa", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script11-eager", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script14-eager", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script14-eager-external", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script14-eager-fused", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script14-eager-fusedfp16", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script14-sdpa", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script17-eager", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-base-script17-sdpa", ENCODER " Linear", ENCODER " Segment Linear" },
    { "bert-pool-dynamo20-sdpa", ENCODER, ENCODER " Segment Segment" },
    { "bert-pool-script17-sdpa", ENCODER, ENCODER " Segment Segment" },
    { "bert-rerank-dynamo20-sdpa", ENCODER " Linear Linear", ENCODER " Segment Linear Linear" },
    { "bert-rerank-script17-sdpa", ENCODER " Linear Linear", ENCODER " Segment Linear Linear" },
    { "bert-splade-dynamo20-sdpa", ENCODER " Linear Linear", ENCODER " Linear Linear Segment" },
    { "bert-splade-script17-sdpa", ENCODER " Linear Linear", ENCODER " Linear Linear Segment" },
    { "distilbert-base-dynamo20-sdpa", ENCODER, ENCODER },
    { "distilbert-base-script17-sdpa", ENCODER, ENCODER },
    { "modernbert-base-dynamo20-sdpa", MODERNBERT, MODERNBERT },
    { "modernbert-base-script17-sdpa", MODERNBERT, MODERNBERT },
    { "mpnet-base-dynamo20-eager", ENCODER " Linear", MPNET_RAGGED },
    { "mpnet-base-script17-eager", ENCODER " Linear", MPNET_RAGGED },
    { "qwen3-base-dynamo20-sdpa", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER },
    { "qwen3-base-script17-sdpa", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER },
    { "qwen3-last-dynamo20-sdpa", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER " Segment" },
    { "qwen3-last-script17-sdpa", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER " Segment" },
    { "roberta-base-dynamo20-sdpa", ENCODER " Linear", "SegmentScan " ENCODER " Segment Linear" },
    { "roberta-base-script17-sdpa", ENCODER " Linear", "SegmentScan " ENCODER " Segment Linear" },
};
enum { NETWORKS = sizeof networks / sizeof networks[0] };

static const char *fused_steps(const pith__graph *graph, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (const pith__node *n = graph->first; n; n = n->next) {
        if (!pith__str_is(n->domain, "pith") || used >= size) continue;
        used += (size_t)snprintf(text + used, size - used, "%s" PITH_STR_FMT, used ? " " : "",
                                 PITH_STR_ARG(n->op_type));
    }
    return text;
}

static void check_steps(const pith__graph *graph, const char *wanted) {
    char text[1024];
    assert_string_equal(fused_steps(graph, text, sizeof text), wanted + strspn(wanted, " "));
}

/* Everything else that looked like a fusion was one. */
static void check_missed(const net *n, const char *missed) {
    for (size_t line = 0; line < n->report.count; line++) {
        const struct pith__report_line *l = &n->report.lines[line];
        if (!l->done && (!missed || !strstr(missed, l->what)))
            fail_msg("%s: " PITH_STR_FMT, n->dir, PITH_STR_ARG(l->text));
    }
}

static void test_same_steps(void **state) {
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        net *n = open_net(networks[i].name, -1, 3);
        print_message("%s\n", networks[i].name);
        check_steps(n->graph, networks[i].steps);
        if (!n->ragged) fail_msg("%s: padded: " PITH_STR_FMT, n->dir, PITH_STR_ARG(n->reason));
        check_steps(n->ragged, networks[i].ragged);
        check_missed(n, NULL);
        close_net(n);
    }
}

static void test_families(void **state) {
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        net *n = open_net(f->name, f->output, 3);
        print_message("%s\n", f->name);
        check_steps(n->graph, f->steps);
        if (!n->ragged != !f->ragged)
            fail_msg("%s: " PITH_STR_FMT, n->dir, PITH_STR_ARG(n->reason));
        if (f->ragged) check_steps(n->ragged, f->ragged);
        if (f->reason && !strstr(n->reason.data, f->reason))
            fail_msg("%s: %s", n->dir, n->reason.data);
        check_missed(n, f->missed);
        close_net(n);
    }
}

/* ---- levels agree with the stored outputs ---- */

static pith_tensor read_tensor(net *n, const char *kind, int set, size_t index) {
    pith_tensor t;
    pith_str bytes;
    pith_error err = PITH_ERROR_INIT;
    char path[600];
    snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%zu.pb", n->dir, set, kind, index);
    must(pith__files_open(&bytes, &n->files, path, &err), &err, path);
    must(pith__onnx_read_value(&t, NULL, bytes, PITH_F32, NULL, &n->arena, &err), &err, path);
    return t;
}

/* The network whose weights and arithmetic are f16: its outputs are only so exact. */
static bool is_half(const net *n) { return strstr(n->dir, "fp16") != NULL; }

static void check_outputs(net *n, int level) {
    pith_error err = PITH_ERROR_INIT;
    for (int set = 0; set < 3; set++) {
        pith_tensor in[4], out[4];
        for (size_t i = 0; i < n->graph->input_count; i++) in[i] = read_tensor(n, "input", set, i);
        must(pith__executor_run(n->padded_run, out, in, 2, NULL, &err), &err, n->dir);
        for (size_t i = 0; i < n->graph->output_count; i++) {
            pith_tensor want = read_tensor(n, "output", set, i);
            assert_int_equal(out[i].rank, want.rank);
            assert_memory_equal(out[i].dims, want.dims, (size_t)want.rank * sizeof want.dims[0]);
            for (int64_t k = 0; k < pith__tensor_count(&want); k++) {
                float a = ((const float *)out[i].data)[k], b = ((const float *)want.data)[k];
                float tolerance = is_half(n) ? 1e-2f : 1e-5f;
                if (!(fabsf(a - b) <= tolerance + (is_half(n) ? 0.02f : 1e-4f) * fabsf(b))) {
                    fail_msg("%s, level %d, set %d, output %zu[%lld]: %g, stored %g", n->dir, level,
                             set, i, (long long)k, (double)a, (double)b);
                }
            }
        }
    }
}

static void test_levels_agree(void **state) {
    (void)state;
    for (int i = 0; i < NETWORKS; i++) {
        for (int level = 0; level <= 3; level++) {
            net *n = open_net(networks[i].name, -1, level);
            check_outputs(n, level);
            close_net(n);
        }
    }
}

/* ---- the same bits ---- */

enum { TEXTS = 7, LONGEST = 33, HIDDEN = 512 };
static const int lengths[TEXTS] = { 7, 16, 3, 1, 33, 20, 17 };

typedef struct chunk {
    int count;
    int text[TEXTS]; /* which, in this order */
} chunk;

/* Texts come in pairs that begin alike, so that a batch has rows which are equal before attention.
 */
static int64_t token(int text, int position) { return 5 + (text / 2 * 131 + position * 17) % 90; }

/* What a text gives: the rows of its tokens, or its one row, of each output. */
typedef struct result {
    float rows[2][LONGEST * HIDDEN];
    size_t count[2];
} result;

static void take(result *r, size_t output, const float *from, size_t count) {
    assert_true(count <= LONGEST * HIDDEN);
    memcpy(r->rows[output], from, count * sizeof *from);
    r->count[output] = count;
}

static bool is_named(const pith__value *v, const char *name) { return pith__str_is(v->name, name); }

static void run_ragged(net *n, const chunk *c, int threads, result *results) {
    static int64_t ids[TEXTS * LONGEST], types[TEXTS * LONGEST], positions[TEXTS * LONGEST],
        offsets[TEXTS + 1];
    pith_error err = PITH_ERROR_INIT;
    int64_t tokens = 0;
    for (int i = 0; i < c->count; i++) {
        offsets[i] = tokens;
        for (int p = 0; p < lengths[c->text[i]]; p++, tokens++) {
            ids[tokens] = token(c->text[i], p);
            types[tokens] = p > 4;
            positions[tokens] = p;
        }
    }
    offsets[c->count] = tokens;
    pith_tensor in[5], out[2];
    for (size_t i = 0; i < n->ragged->input_count; i++) {
        const pith__value *v = n->ragged->inputs[i];
        bool is_offsets = is_named(v, "pith.offsets");
        in[i] = (pith_tensor){ .dtype = PITH_I64,
                               .rank = 1,
                               .dims = { is_offsets ? c->count + 1 : tokens } };
        in[i].data = is_offsets                      ? offsets
                     : is_named(v, "pith.positions") ? positions
                     : is_named(v, "input_ids")      ? ids
                                                     : types;
        in[i].bytes = (size_t)in[i].dims[0] * sizeof(int64_t);
    }
    must(pith__executor_run(n->ragged_run, out, in, threads, NULL, &err), &err, n->dir);
    for (size_t o = 0; o < n->ragged->output_count; o++) {
        int64_t rows = out[o].dims[0], width = rows ? pith__tensor_count(&out[o]) / rows : 0;
        assert_true(rows == tokens || rows == c->count);
        bool by_token = n->graph->outputs[o]->type.rank == 3;
        for (int i = 0; i < c->count; i++) {
            int64_t from = by_token ? offsets[i] : i, to = by_token ? offsets[i + 1] : i + 1;
            take(&results[c->text[i]], o, (const float *)out[o].data + from * width,
                 (size_t)((to - from) * width));
        }
    }
}

static void run_padded(net *n, const chunk *c, bool left, int extra, int64_t pad, result *results) {
    static int64_t ids[TEXTS * 40], types[TEXTS * 40], mask[TEXTS * 40];
    pith_error err = PITH_ERROR_INIT;
    int width = extra;
    for (int i = 0; i < c->count; i++) {
        if (lengths[c->text[i]] + extra > width) width = lengths[c->text[i]] + extra;
    }
    for (int i = 0; i < c->count; i++) {
        int length = lengths[c->text[i]], from = left ? width - length : 0;
        for (int p = 0; p < width; p++) {
            bool real = p >= from && p < from + length;
            mask[i * width + p] = real;
            ids[i * width + p] = real ? token(c->text[i], p - from) : pad;
            types[i * width + p] = real && p - from > 4;
        }
    }
    pith_tensor in[4], out[4];
    for (size_t i = 0; i < n->graph->input_count; i++) {
        const pith__value *v = n->graph->inputs[i];
        in[i] = (pith_tensor){ .dtype = PITH_I64, .rank = 2, .dims = { c->count, width } };
        in[i].data = is_named(v, "input_ids") ? ids : is_named(v, "attention_mask") ? mask : types;
        in[i].bytes = (size_t)(c->count * width) * sizeof(int64_t);
    }
    must(pith__executor_run(n->padded_run, out, in, 2, NULL, &err), &err, n->dir);
    for (size_t o = 0; o < n->ragged->output_count; o++) {
        int64_t hidden = out[o].dims[out[o].rank - 1];
        for (int i = 0; i < c->count; i++) {
            int length = lengths[c->text[i]], from = left ? width - length : 0;
            const float *row =
                (const float *)out[o].data + (out[o].rank == 3 ? i * width + from : i) * hidden;
            take(&results[c->text[i]], o, row, (size_t)((out[o].rank == 3 ? length : 1) * hidden));
        }
    }
}

static void same(const net *n, const result *want, const result *got, const chunk *c,
                 bool tokens_only, const char *how) {
    for (int i = 0; i < c->count; i++) {
        int t = c->text[i];
        for (size_t o = 0; o < n->ragged->output_count; o++) {
            if (tokens_only && n->graph->outputs[o]->type.rank != 3) continue;
            assert_int_equal(got[t].count[o], want[t].count[o]);
            if (memcmp(got[t].rows[o], want[t].rows[o], want[t].count[o] * sizeof(float)) == 0)
                continue;
            for (size_t k = 0; k < want[t].count[o]; k++) {
                if (memcmp(&got[t].rows[o][k], &want[t].rows[o][k], sizeof(float)) == 0) continue;
                fail_msg("%s: text %d (%d tokens), output %zu[%zu], %s: %.9g, alone %.9g", n->dir,
                         t, lengths[t], o, k, how, (double)got[t].rows[o][k],
                         (double)want[t].rows[o][k]);
            }
        }
    }
}

/* What every other way must equal: each text alone, ragged. */
static void run_alone(net *n, result *results) {
    for (int t = 0; t < TEXTS; t++) run_ragged(n, &(chunk){ 1, { t } }, 1, results);
}

static bool begins(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

/* Does the network number positions by the tokens that are not padding, whose id is 1? The others
 * number them from the first column. */
static bool counts_pads(const char *name) {
    static const char *const kinds[] = { "bge-m3", "camembert", "jina-reranker",
                                         "mpnet",  "roberta",   "xlm-roberta" };
    if (strchr(name, '/')) name = strchr(name, '/') + 1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (begins(name, kinds[i])) return true;
    }
    return false;
}

static bool has_mask(const net *n) {
    for (size_t i = 0; i < n->graph->input_count; i++) {
        if (is_named(n->graph->inputs[i], "attention_mask")) return true;
    }
    return false;
}

static void check_bits(const char *name, int output) {
    static result alone[TEXTS], got[TEXTS];
    static const chunk all = { 7, { 0, 1, 2, 3, 4, 5, 6 } },
                       shuffled = { 7, { 4, 2, 6, 0, 3, 5, 1 } }, two = { 2, { 5, 2 } };
    net *n = open_net(name, output, 3);
    int64_t pad = counts_pads(name) ? 1 : 0;
    run_alone(n, alone);
    for (int threads = 1; threads <= 4; threads *= 2) {
        run_ragged(n, &all, threads, got);
        same(n, alone, got, &all, false, "batch of 7, ragged");
    }
    run_ragged(n, &shuffled, 2, got);
    same(n, alone, got, &shuffled, false, "shuffled, ragged");
    run_ragged(n, &two, 2, got);
    same(n, alone, got, &two, false, "batch of 2, ragged");
    for (int t = 0; t < TEXTS; t++) {
        chunk one = { 1, { t } };
        run_padded(n, &one, false, 0, pad, got);
        same(n, alone, got, &one, false, "alone, with a mask of ones");
    }
    if (has_mask(n)) {
        run_padded(n, &all, false, 0, pad, got);
        same(n, alone, got, &all, false, "padded right");
        run_padded(n, &two, false, 5, pad, got);
        same(n, alone, got, &two, false, "padded right by more");
        if (counts_pads(name)) { /* all poolers take the first column */
            run_padded(n, &all, true, 0, pad, got);
            same(n, alone, got, &all, true, "padded left");
        }
    }
    close_net(n);
}

static void test_same_bits(void **state) {
    (void)state;
    for (int i = 0; i < NETWORKS; i++) check_bits(networks[i].name, -1);
    for (int i = 0; i < FAMILIES; i++) {
        if (families[i].ragged) check_bits(families[i].name, families[i].output);
    }
}

/* ---- instruction sets ---- */

static uint64_t hash_one(uint64_t hash, const char *name, int output) {
    static result alone[TEXTS];
    net *n = open_net(name, output, 3);
    run_alone(n, alone);
    for (int t = 0; t < TEXTS; t++) {
        for (size_t o = 0; o < n->ragged->output_count; o++) {
            const unsigned char *bytes = (const unsigned char *)alone[t].rows[o];
            for (size_t k = 0; k < alone[t].count[o] * sizeof(float); k++)
                hash = (hash ^ bytes[k]) * 1099511628211u;
        }
    }
    close_net(n);
    return hash;
}

static uint64_t hash_all(void) {
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (int i = 0; i < NETWORKS; i++) hash = hash_one(hash, networks[i].name, -1);
    for (int i = 0; i < FAMILIES; i++) {
        if (families[i].ragged) hash = hash_one(hash, families[i].name, families[i].output);
    }
    return hash;
}

static void test_same_bits_on_every_isa(void **state) {
    const char *self = *state;
    const pith__cpu *cpu = pith__cpu_get();
    uint64_t want = hash_all();
    for (int isa = 0; isa <= (int)cpu->isa; isa++) {
        char command[700];
        unsigned long long got = 0;
        if (!(cpu->supported >> isa & 1)) continue;
        snprintf(command, sizeof command, "PITH_ISA=%s '%s' hash", pith__isa_name((pith__isa)isa),
                 self);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        assert_int_equal(fscanf(pipe, "%llx", &got), 1);
        assert_int_equal(pclose(pipe), 0);
        print_message("%s: %llx\n", pith__isa_name((pith__isa)isa), got);
        assert_true(got == want);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "hash") == 0) {
        printf("%llx\n", (unsigned long long)hash_all());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_steps),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_levels_agree),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test_prestate(test_same_bits_on_every_isa, argv[0]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
