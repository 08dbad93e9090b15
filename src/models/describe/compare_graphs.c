/* compare_graphs.c - see compare_graphs.h. */
#include "models/describe/compare_graphs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/stop.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "models/describe/made_up_inputs.h"
#include "models/encode/text_inputs.h"
#include "models/open/source.h"

/* The difference that is allowed, as a share of the largest number of an output. Sums in another
 * order differ by about 1e-6 of it, a wrong fusion usually by more than 1e-2; ALLOWED_F32 lies
 * between. In half precision and after quantisation, one rounding may go the other way, so
 * ALLOWED_COARSE is larger. */
#define ALLOWED_F32 1e-3
#define ALLOWED_COARSE 5e-2
/* Outputs whose largest number is below this count as if it were this: terms that should cancel to
 * 0 leave rounding errors. */
#define SCALE_LEAST 1e-2
/* Some models divide by a number that nearly cancels. So a larger difference still counts as
 * rounding if noise of one rounding (NOISE_F32) in every value of the reference moves the output by
 * NOISE_SHARE of that difference, in one of NOISE_RUNS runs. */
#define NOISE_SHARE 0.125
#define NOISE_F32 0x1p-22
enum { NOISE_RUNS = 4 };
/* The most passes that one opening leaves out; inputs per level for `pith verify --fusions`, and
 * for a check at open, which should not take long. */
enum { WITHOUT_MAX = 8, RUNS = 12, RUNS_AT_OPEN = 6 };

typedef struct check {
    pith__origin origin;
    const pith_source *source; /* NULL: the options of opening say all */
    pith_open_options options; /* level, allocator and shapes of the caller; f32 */
    const pith_check_options *given;
    pith_model *reference;
    pith__stop *stop;         /* NULL: it cannot be stopped */
    pith__progress *progress; /* NULL: nobody is told */
    double allowed;
    uint64_t seed;
    int runs, ran;
    uint64_t done, total;       /* runs of levels, for progress */
    pith_check_finding finding; /* pass is NULL: nothing differs */
    char node[256], output[128], inputs[256];
    char refusal[PITH_ERROR_MESSAGE_SIZE]; /* why the reference did not run the last inputs it did
                                              not run */
    pith_error *err;
} check;

/* ---- differences ---- */

static double compare_element(const pith_tensor *t, int64_t i) {
    switch (t->dtype) {
    case PITH_F32: return (double)((const float *)t->data)[i];
    case PITH_F64: return ((const double *)t->data)[i];
    case PITH_F16: return (double)pith__f32_of_f16(((const uint16_t *)t->data)[i]);
    case PITH_BF16: return (double)pith__f32_of_bf16(((const uint16_t *)t->data)[i]);
    default: return 0;
    }
}

/* The largest difference as a share of the largest number of `want`; infinite if shapes differ, or
 * if one of the two is not finite and the other is something else. Where `want` is NaN nothing is
 * compared. */
static double compare_difference(const pith_tensor *got, const pith_tensor *want) {
    double scale = 0, most = 0;
    if (got->dtype != want->dtype || got->rank != want->rank) return INFINITY;
    for (int d = 0; d < got->rank; d++)
        if (got->dims[d] != want->dims[d]) return INFINITY;
    if (got->dtype >= PITH_DTYPE_COUNT || got->dtype == PITH_STRING) return 0;
    if (!pith__dtype_is_float(got->dtype)) {
        bool equal = got->bytes == want->bytes &&
                     (!got->bytes || !memcmp(got->data, want->data, got->bytes));
        return equal ? 0 : INFINITY;
    }
    for (int64_t i = 0, n = pith__tensor_count(want); i < n; i++) {
        double a = compare_element(got, i), b = compare_element(want, i);
        if (isnan(b))
            continue; /* fused attention skips masked keys, also those whose NaN would
                                   spread */
        if (a == b) {
            if (isfinite(b) && fabs(b) > scale) scale = fabs(b);
            continue;
        }
        if (!isfinite(a) || !isfinite(b)) return INFINITY;
        if (fabs(b) > scale) scale = fabs(b);
        if (fabs(a - b) > most) most = fabs(a - b);
    }
    return most / (scale > SCALE_LEAST ? scale : SCALE_LEAST);
}

static bool compare_differs(const check *c, const pith_tensor *got, const pith_tensor *want,
                            double *difference) {
    *difference = compare_difference(got, want);
    return !(*difference <= c->allowed);
}

/* Rows of tokens whose mask is zero, in all of its bytes, become zeros in an output [batch,
 * sequence, …]. */
static void compare_clear_padding(const check *c, pith_tensor *t, const pith_tensor *inputs) {
    const pith__graph *g = c->reference->graph;
    for (size_t i = 0; i < g->input_count; i++) {
        const pith_tensor *mask = &inputs[i];
        if (!pith__made_up_is_mask(g->inputs[i]->name) || mask->rank != 2 || t->rank < 3 ||
            memcmp(t->dims, mask->dims, 2 * sizeof *t->dims))
            continue;
        int64_t rows = mask->dims[0] * mask->dims[1];
        size_t bytes = rows ? t->bytes / (size_t)rows : 0,
               size = (size_t)pith__dtype_bits(mask->dtype) / 8;
        for (int64_t r = 0; r < rows; r++)
            for (size_t b = 0, set = 0; b < size && !set; b++) {
                set = ((const uint8_t *)mask->data)[(size_t)r * size + b] != 0;
                if (b + 1 == size && !set) memset((char *)t->data + (size_t)r * bytes, 0, bytes);
            }
    }
}

/* In half precision the finite number that masks a key leaves some of its score, and in f32
 * nothing. So rows of padded tokens, in which every key may be masked, are not compared there: both
 * get zeros. Outputs may share memory, so that is done in copies, and only there. */
static pith_status compare_forget_padding(const check *c, pith_tensor *outputs,
                                          const pith_tensor *inputs, pith__arena *arena) {
    if (c->allowed != ALLOWED_COARSE) return PITH_OK;
    for (size_t i = 0; i < c->reference->graph->output_count; i++) {
        pith_tensor *t = &outputs[i];
        if (t->dtype >= PITH_DTYPE_COUNT || t->dtype == PITH_STRING) continue;
        void *copy = pith__arena_alloc64(arena, t->bytes);
        if (!copy) return pith__fail_memory(c->err, t->bytes);
        if (t->bytes) memcpy(copy, t->data, t->bytes);
        t->data = copy;
        compare_clear_padding(c, t, inputs);
    }
    return PITH_OK;
}

/* ---- runs ---- */

/* The outputs belong to *executor, which is made here. trace is told of each step, if it is not
 * NULL. */
static pith_status compare_run(pith__executor **executor, pith_tensor *outputs, const pith_model *m,
                               const pith_tensor *inputs, pith__trace_fn *trace, void *context,
                               pith__stop *stop, pith_error *err) {
    const pith__plan *plan;
    pith__executor_options options = { .allocator = m->options.call.allocator,
                                       .loop_limit = m->options.loop_limit };
    PITH_TRY(pith__model_plan(&plan, m, stop, err));
    PITH_TRY(pith__executor_create(executor, plan, &options, err));
    pith__executor_trace(*executor, trace, context);
    return pith__executor_run(*executor, outputs, inputs, 1, stop, err);
}

/* ---- how much rounding matters ---- */

typedef struct compare_noise {
    uint64_t seed, run, drawn;
} compare_noise;

/* Numbers without a fraction are left alone: masks, counts and the like are exact. So is what lies
 * in memory that is not the step's own: views, results of subgraphs, items of sequences. */
static void compare_add_noise(void *context, const pith__trace_event *event) {
    compare_noise *noise = context;
    const pith__step *step = event->step;
    if (!step || event->depth || step->subplan_count ||
        step->node->op->flags & (PITH_OP_VIEW | PITH_OP_SEQUENCES))
        return;
    for (int i = 0; i < step->out_count; i++) {
        pith_tensor *t = event->run->out[i];
        if (!t || t->dtype != PITH_F32) continue;
        float *x = t->data;
        for (int64_t k = 0, n = pith__tensor_count(t); k < n; k++) {
            int sign = (int)(pith__made_up_random(noise->seed, noise->run, noise->drawn++) % 3) - 1;
            if (isfinite(x[k]) && x[k] != rintf(x[k])) x[k] *= 1 + (float)(sign * NOISE_F32);
        }
    }
}

/* Does noise move this output of the reference about as much? */
static bool compare_is_rounding(check *c, const pith_tensor *inputs, const pith_tensor *want,
                                size_t output, double difference, pith__arena *arena) {
    bool found = false;
    size_t count = c->reference->graph->output_count;
    pith_tensor *moved =
        isfinite(difference) ? pith__arena_array(arena, count, sizeof *moved) : NULL;
    if (!moved) return false;
    for (uint64_t run = 0; !found && run < NOISE_RUNS; run++) {
        pith__executor *executor = NULL;
        pith_error ignored = PITH_ERROR_INIT;
        compare_noise noise = { c->seed, run, 0 };
        if (!compare_run(&executor, moved, c->reference, inputs, compare_add_noise, &noise, c->stop,
                         &ignored) &&
            !compare_forget_padding(c, moved, inputs, arena)) {
            double by = compare_difference(&moved[output], &want[output]);
            found = isfinite(by) && by >= NOISE_SHARE * difference;
        }
        pith__executor_destroy(executor);
    }
    return found;
}

/* Outputs of the reference and of m for the inputs of a run; *output: the first that differs, -1:
 * none does. Inputs that the reference cannot run tell nothing. */
static pith_status compare_both(int *output, double *difference, check *c, const pith_model *m,
                                uint64_t run, pith__arena *arena) {
    const pith__graph *g = c->reference->graph;
    pith__executor *a = NULL, *b = NULL;
    pith_error ignored = PITH_ERROR_INIT;
    *output = -1;
    pith_tensor *inputs = pith__arena_array(arena, g->input_count, sizeof *inputs);
    pith_tensor *want = pith__arena_array(arena, g->output_count, sizeof *want);
    pith_tensor *got = pith__arena_array(arena, g->output_count, sizeof *got);
    if (!inputs || !want || !got) return pith__fail_memory(c->err, g->output_count * sizeof *want);
    PITH_TRY(
        pith__made_up_inputs(inputs, g, c->seed, run, c->inputs, sizeof c->inputs, arena, c->err));
    pith_status status = compare_run(&a, want, c->reference, inputs, NULL, NULL, c->stop, &ignored);
    if (status) {
        snprintf(c->refusal, sizeof c->refusal, "%s", ignored.message);
    } else {
        c->ran++;
        status = compare_run(&b, got, m, inputs, NULL, NULL, c->stop, &ignored);
        if (!status) status = compare_forget_padding(c, want, inputs, arena);
        if (!status) status = compare_forget_padding(c, got, inputs, arena);
        if (!status) {
            for (size_t i = 0; i < g->output_count && *output < 0; i++) {
                if (compare_differs(c, &got[i], &want[i], difference) &&
                    !compare_is_rounding(c, inputs, want, i, *difference, arena))
                    *output = (int)i;
            }
        }
        /* A fused step may refuse what it was not made for, but it says so. */
        if (status != PITH_OK && status != PITH_ERR_ARGUMENT && status != PITH_ERR_MEMORY &&
            !pith__status_stops(status))
            *output = 0, *difference = INFINITY;
    }
    pith__executor_destroy(a);
    pith__executor_destroy(b);
    PITH_TRY(pith__stop_check(c->stop, c->err));
    return status == PITH_ERR_MEMORY ? pith__fail(c->err, status, "%s", ignored.message) : PITH_OK;
}

/* ---- which pass ---- */

static pith_status compare_open(pith_model **m, check *c, int level,
                                const pith__opt_limits *limits) {
    pith_open_options options = c->options;
    options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    return pith__model_open_stoppable(m, &c->origin, &options, limits, c->stop, c->err);
}

/* Does the model differ from the reference on this run, with the first `most` runs of passes? */
static pith_status compare_limited(bool *differs, check *c, int level,
                                   const pith__opt_limits *limits, uint64_t run) {
    pith_model *m;
    pith__arena arena;
    int output;
    double difference;
    PITH_TRY(compare_open(&m, c, level, limits));
    pith__arena_init(&arena, c->options.call.allocator);
    pith_status status = compare_both(&output, &difference, c, m, run, &arena);
    *differs = output >= 0;
    pith__arena_free(&arena);
    pith__model_destroy(m);
    return status;
}

/* A copy of every named value that a run makes. */
typedef struct compare_values {
    pith__arena *arena;
    pith__map by_name;
    pith_tensor *items;
    size_t count, capacity;
    const struct compare_values *before; /* what to compare with; NULL: only copy */
    const check *c;
    const pith__node *guilty;
    bool out_of_memory;
} compare_values;

static void compare_keep(compare_values *v, pith_str name, const pith_tensor *t) {
    if (t->dtype >= PITH_DTYPE_COUNT || t->dtype == PITH_STRING) return;
    void *items = v->items;
    if (!pith__arena_grow(v->arena, &items, v->count, &v->capacity, sizeof *v->items)) {
        v->out_of_memory = true;
        return;
    }
    v->items = items;
    pith_tensor copy = *t;
    copy.data = pith__arena_alloc64(v->arena, t->bytes);
    if (!copy.data || !pith__map_put(&v->by_name, name, (uint32_t)v->count, NULL)) {
        v->out_of_memory = true;
        return;
    }
    if (t->bytes) memcpy(copy.data, t->data, t->bytes);
    v->items[v->count++] = copy;
}

static void compare_listen(void *context, const pith__trace_event *event) {
    compare_values *v = context;
    if (!event->step || event->depth || event->step->memory) return;
    const pith__run *run = event->run;
    for (int i = 0; i < event->step->out_count && !v->guilty; i++) {
        const pith__value *value = event->step->out[i];
        if (!value || !value->name.size || !run->out[i]) continue;
        if (!v->before) {
            compare_keep(v, value->name, run->out[i]);
            continue;
        }
        uint32_t at = pith__map_get(&v->before->by_name, value->name);
        double difference;
        if (at != UINT32_MAX &&
            compare_differs(v->c, run->out[i], &v->before->items[at], &difference))
            v->guilty = event->step->node;
    }
}

static pith_status compare_listened(compare_values *v, const pith_model *m,
                                    const pith_tensor *inputs, pith_error *err) {
    pith__executor *executor = NULL;
    pith_tensor *outputs = pith__arena_array(v->arena, m->graph->output_count, sizeof *outputs);
    if (!outputs) return pith__fail_memory(err, m->graph->output_count * sizeof *outputs);
    pith_status status =
        compare_run(&executor, outputs, m, inputs, compare_listen, v, v->c->stop, err);
    pith__executor_destroy(executor);
    return status;
}

/* The node: the first one whose output differs from the value of this name in the reference. */
static pith_status compare_find_node(check *c, const pith_model *guilty, uint64_t run) {
    pith__arena arena;
    pith_error ignored = PITH_ERROR_INIT;
    pith__arena_init(&arena, c->options.call.allocator);
    const pith__graph *g = c->reference->graph;
    pith_tensor *inputs = pith__arena_array(&arena, g->input_count, sizeof *inputs);
    compare_values before = { .arena = &arena, .c = c },
                   after = { .arena = &arena, .c = c, .before = &before };
    pith_status status = inputs ? PITH_OK : pith__fail_memory(c->err, 0);
    if (!status && pith__map_init(&before.by_name, &arena, g->value_count))
        status = pith__fail_memory(c->err, 0);
    if (!status)
        status = pith__made_up_inputs(inputs, g, c->seed, run, c->inputs, sizeof c->inputs, &arena,
                                      c->err);
    snprintf(c->node, sizeof c->node, "?");
    if (!status && !compare_listened(&before, c->reference, inputs, &ignored) &&
        !before.out_of_memory &&
        (!compare_listened(&after, guilty, inputs, &ignored) || after.guilty) && after.guilty)
        pith__node_place(after.guilty, c->node, sizeof c->node);
    pith__arena_free(&arena);
    return status ? status : pith__stop_check(c->stop, c->err);
}

/* The first run of a pass with which the results differ: with `good` runs of passes they do not,
 * with `bad` they do. */
static pith_status compare_find_pass(check *c, int level, const pith__opt_limits *limits,
                                     uint64_t run) {
    pith__opt_limits tried = limits ? *limits : (pith__opt_limits){ .runs = SIZE_MAX };
    size_t good = 0, bad = pith__opt_runs_max();
    while (good + 1 < bad) {
        bool differs = false;
        tried.runs = good + (bad - good) / 2;
        PITH_TRY(compare_limited(&differs, c, level, &tried, run));
        if (differs)
            bad = tried.runs;
        else
            good = tried.runs;
    }
    tried.runs = bad;
    c->finding.pass = pith__pass_table[(bad - 1) % pith__pass_table_count]->name;
    pith_model *m;
    PITH_TRY(compare_open(&m, c, level, &tried));
    pith_status status = compare_find_node(c, m, run);
    pith__model_destroy(m);
    return status;
}

/* ---- packed texts ---- */

/* The ragged plan on texts packed together against the reference on each text alone. */
static pith_status compare_ragged(check *c, const pith_model *m, uint64_t run, pith__arena *arena,
                                  bool *differs, double *difference) {
    enum { TEXTS = 4 };
    static const int32_t lengths[TEXTS] = { 5, 1, 12, 3 };
    pith__text_inputs packed, alone;
    pith__row rows[TEXTS];
    const pith__row *pointers[TEXTS];
    pith_error ignored = PITH_ERROR_INIT;
    const pith__plan *plan;
    PITH_TRY(pith__model_plan(&plan, c->reference, c->stop, c->err));
    if (pith__text_inputs_init(&packed, m->text.ragged, true, 0, arena, &ignored) ||
        pith__text_inputs_init(&alone, plan->graph, false, 0, arena, &ignored))
        return PITH_OK;
    int64_t ids = pith__made_up_index_limit(plan->graph, "input_ids");
    for (int i = 0; i < TEXTS; i++) {
        int32_t *numbers = pith__arena_array(arena, (size_t)lengths[i], 2 * sizeof *numbers);
        if (!numbers) return pith__fail_memory(c->err, 0);
        for (int32_t k = 0; k < lengths[i]; k++)
            numbers[k] = (int32_t)(pith__made_up_random(c->seed, run, (uint64_t)(i * 100 + k)) %
                                   (uint64_t)ids);
        rows[i] = (pith__row){ numbers, numbers + lengths[i], lengths[i], 0, 0 };
        pointers[i] = &rows[i];
    }
    size_t inputs = m->text.ragged->input_count + plan->graph->input_count;
    pith_tensor *in = pith__arena_array(arena, inputs, sizeof *in);
    pith_tensor *out = pith__arena_array(
        arena, m->text.ragged->output_count + plan->graph->output_count, sizeof *out);
    if (!in || !out) return pith__fail_memory(c->err, inputs * sizeof *in);
    pith__executor_options options = { .allocator = m->options.call.allocator,
                                       .loop_limit = m->options.loop_limit };
    pith__executor *executor = NULL;
    if (pith__text_inputs_fill(in, &packed, pointers, TEXTS, arena, &ignored)) return PITH_OK;
    pith_status status =
        pith__executor_create(&executor, pith__program_plan(&m->text.program), &options, c->err);
    if (status) return status;
    int which = m->text.outputs[0], mine = m->text.ragged->output_count > (size_t)which ? which : 0;
    if (!pith__executor_run(executor, out, in, 1, c->stop, &ignored)) {
        int64_t at = 0, width = out[mine].rank ? out[mine].dims[out[mine].rank - 1] : 0;
        for (int i = 0; i < TEXTS && !*differs; i++) {
            pith__executor *one = NULL;
            pith_tensor *ain = in + m->text.ragged->input_count,
                        *aout = out + m->text.ragged->output_count;
            if (!pith__text_inputs_fill(ain, &alone, &pointers[i], 1, arena, &ignored) &&
                !compare_run(&one, aout, c->reference, ain, NULL, NULL, c->stop, &ignored)) {
                pith_tensor want = aout[which], got = out[mine];
                int64_t rows_here = width ? pith__tensor_count(&want) / width : 0;
                got.data = (char *)out[mine].data +
                           (size_t)(at * width) * (size_t)pith__dtype_bits(got.dtype) / 8;
                got.rank = want.rank;
                memcpy(got.dims, want.dims, sizeof got.dims);
                *differs = compare_differs(c, &got, &want, difference);
                at += rows_here;
            }
            pith__executor_destroy(one);
        }
    }
    pith__executor_destroy(executor);
    return pith__stop_check(c->stop, c->err);
}

/* ---- one level ---- */

static bool compare_is_coarse(const pith__graph *g) {
    for (size_t i = 0; i < g->value_count; i++) {
        int dtype = g->values[i]->type.dtype;
        if (dtype == PITH_F16 || dtype == PITH_BF16) return true;
    }
    for (const pith__node *n = g->first; n; n = n->next)
        if (strstr(n->op->name, "Quantize") || strstr(n->op->name, "QLinear")) return true;
    return false;
}

/* Fills c->finding if something differs at this level. */
static pith_status compare_level(check *c, int level, const pith__opt_limits *limits) {
    pith_model *m;
    pith__arena arena;
    int output = -1;
    double difference = 0;
    c->finding = (pith_check_finding){ .level = level, .allowed = c->allowed };
    PITH_TRY(compare_open(&m, c, level, limits));
    pith__arena_init(&arena, c->options.call.allocator);
    pith_status status = PITH_OK;
    uint64_t run = 0;
    bool ragged = false;
    for (; !status && output < 0 && run < (uint64_t)c->runs; run++) {
        status = pith__stop_check(c->stop, c->err);
        if (!status) status = compare_both(&output, &difference, c, m, run, &arena);
        pith__arena_reset(&arena);
        c->done++;
        pith__progress_tell(c->progress, "runs", c->done, c->total);
    }
    if (output < 0 && m->text.program.runtime && m->text.ragged) {
        for (uint64_t i = 0; !status && !ragged && i < 3; i++) {
            status = compare_ragged(c, m, i, &arena, &ragged, &difference);
            pith__arena_reset(&arena);
        }
    }
    pith__arena_free(&arena);
    if (!status && (output >= 0 || ragged)) {
        int which = output >= 0 ? output : m->text.outputs[0];
        snprintf(c->output, sizeof c->output, PITH_STR_FMT,
                 PITH_STR_ARG(c->reference->graph->output_names[which]));
        if (ragged) snprintf(c->inputs, sizeof c->inputs, "four packed texts against each alone");
        c->finding.difference = difference;
        c->finding.pass = "ragged";
        snprintf(c->node, sizeof c->node, "?");
        if (!ragged) status = compare_find_pass(c, level, limits, run - 1);
        c->finding.node = c->node;
        c->finding.output = c->output;
        c->finding.inputs = c->inputs;
    }
    pith__model_destroy(m);
    return status;
}

/* Models are opened during the call, quietly; their memory is what the options of opening say. */
static void compare_take_call(pith_call *inner, const pith_call *call) {
    const pith_call own = *inner;
    *inner = *call;
    inner->size = own.size;
    if (own.allocator) inner->allocator = own.allocator;
    if (own.threads) inner->threads = own.threads;
    inner->profile = NULL;
    inner->log = NULL;
    inner->progress = NULL;
}

/* The reference is opened once, at level 0 and in f32. It must be quiet and unchecked, or opening
 * it would check itself. */
static pith_status compare_begin(check *c, const pith_open_options *options,
                                 const pith_call *call) {
    c->options = (pith_open_options)PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(c->options, options, c->err);
    if (c->source) PITH_TRY(pith__model_source_options(&c->options, c->source, c->err));
    if (!c->options.optimization) c->options.optimization = 3;
    compare_take_call(&c->options.call, call);
    c->options.flags &= ~(uint32_t)(PITH_OPEN_CHECK | PITH_OPEN_DESCRIBE);
    c->options.stop_after = NULL;
    c->options.precision = PITH_PRECISION_F32;
    if (!c->options.call.allocator) c->options.call.allocator = &pith__allocator_default;
    PITH_TRY(compare_open(&c->reference, c, 0, NULL));
    if (c->reference->compiled.writer) {
        pith__model_destroy(c->reference);
        return pith__fail(c->err, PITH_ERR_ARGUMENT,
                          "a compiled model does not hold the graph as written; check the model it "
                          "was compiled from");
    }
    c->allowed = compare_is_coarse(c->reference->graph) ? ALLOWED_COARSE : ALLOWED_F32;
    return PITH_OK;
}

/* Every level up to the one asked for. */
static pith_status compare_levels(size_t *findings, check *c) {
    PITH_TRY(compare_begin(c, c->given->open, &c->given->call));
    pith_status status = PITH_OK;
    c->total =
        (uint64_t)c->runs * (uint64_t)(c->options.optimization > 0 ? c->options.optimization : 0);
    for (int level = 1; !status && level <= c->options.optimization; level++) {
        status = compare_level(c, level, NULL);
        c->done = (uint64_t)level * (uint64_t)c->runs;
        if (!status) pith__progress_tell(c->progress, "runs", c->done, c->total);
        if (status || !c->finding.pass) continue;
        ++*findings;
        if (c->given->finding) c->given->finding(c->given->user, &c->finding);
    }
    if (!status && !c->ran)
        status = pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                            "the model as written fails on all made-up inputs: %s", c->refusal);
    pith__model_destroy(c->reference);
    return status;
}

/* *findings is set only if the work was done; findings themselves are told one by one. */
pith_status pith__compare_graphs(size_t *findings, const pith_source *source,
                                 const pith_check_options *options, pith_error *err) {
    pith_check_options o = PITH_CHECK_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    pith__progress told;
    PITH_TRY(pith__stop_check(stop, err));
    if (o.runs < 0) return pith__fail(err, PITH_ERR_ARGUMENT, "runs must not be negative");
    check c = { .origin = pith__model_source_origin(source),
                .source = source,
                .given = &o,
                .stop = stop,
                .progress = pith__progress_begin(&told, &o.call),
                .seed = o.seed,
                .runs = o.runs ? o.runs : RUNS,
                .err = err };
    size_t found = 0;
    PITH_TRY(compare_levels(&found, &c));
    *findings = found;
    return PITH_OK;
}

/* Finds guilty passes until what is left holds; *level may fall to 0. */
static pith_status compare_leave_out(check *c, int32_t *level, const pith_log *log,
                                     const char **without, pith__opt_limits *limits) {
    while (*level > 0) {
        PITH_TRY(compare_level(c, *level, limits));
        if (!c->finding.pass) break;
        pith__log_write(log, PITH_LOG_WARNING,
                        "pass %s is left out: with it output '%s' differs by %.3g of its largest "
                        "number, first at %s",
                        c->finding.pass, c->output, c->finding.difference, c->node);
        if (limits->without_count == WITHOUT_MAX)
            *level = PITH_OPTIMIZATION_NONE;
        else
            without[limits->without_count++] = c->finding.pass;
    }
    return PITH_OK;
}

/* pith__model_open_limited with every pass left out whose result does not hold; each is warned
 * about once. */
static pith_status compare_open_checked(pith_model **model, const pith__origin *origin,
                                        const pith_open_options *options, pith_error *err) {
    pith__stop own;
    check c = { .origin = *origin, .seed = 1, .runs = RUNS_AT_OPEN, .err = err };
    const char *without[WITHOUT_MAX];
    pith__opt_limits limits = { .runs = SIZE_MAX, .without = without };
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    c.stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(c.stop, err));
    if (!o.optimization) o.optimization = 3;
    pith_status status = compare_begin(&c, options, &o.call);
    if (!status) {
        status = compare_leave_out(&c, &o.optimization, o.call.log, without, &limits);
        pith__model_destroy(c.reference);
    }
    o.flags &= ~(uint32_t)PITH_OPEN_CHECK;
    if (!status) status = pith__model_open_stoppable(model, origin, &o, &limits, c.stop, err);
    if (!status && (*model)->runtime->as_written)
        pith__log_write(o.call.log, PITH_LOG_WARNING,
                        "the passes of the builtin runtime were checked (PITH_OPEN_CHECK); %s runs "
                        "the file as it is",
                        (*model)->runtime->name);
    return status;
}

const pith__part pith__part_checks = { "checks",
                                       &(const pith__compare_graphs_part){ compare_open_checked } };
