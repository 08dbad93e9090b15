/* encoder.c - makes an encoder: what its outputs are, how its inputs are fed, and the default
 * length of a chunk. */
#include "models/encode/encoder.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/str.h"
#include "models/encode/encoder_state.h"
#include "text/text_rules.h"

/* The default chunk is as long as L2 allows: the widest rows of all its tokens (those between the
 * matmuls of the feed-forward part, as a rule) fill L2 one and a half times, and it has
 * PITH_CHUNK_TOKENS_MIN to CHUNK_TOKENS_MAX tokens. Longer chunks send activations through memory;
 * shorter ones read the weights too often. */
#define CHUNK_TOKENS_MAX 512

static pith__dim encoder_tokens(const pith__graph *graph) {
    for (size_t i = 0; i < graph->input_count; i++)
        if (pith__str_is(graph->inputs[i]->name, "input_ids") && graph->inputs[i]->type.rank > 0)
            return graph->inputs[i]->type.dims[0];
    return PITH_DIM_UNKNOWN;
}

static pith_status encoder_read_output(pith__encoder *e, int place, pith_error *err) {
    const pith__graph *graph = e->parts.program.graph;
    const pith__value *out = graph->outputs[e->outputs[place]];
    const pith__type *type = &out->type;
    if (type->dtype != PITH_F32 && type->dtype != PITH_F16 && type->dtype != PITH_BF16)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "output '" PITH_STR_FMT
                          "' has dtype %s; float32, float16 and bfloat16 can be read",
                          PITH_STR_ARG(out->name), pith__dtype_name(type->dtype));
    if (type->rank != 2 && (e->parts.ragged || type->rank != 3))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "output '" PITH_STR_FMT
                          "' does not have %s axes; one vector per text or per token is needed",
                          PITH_STR_ARG(out->name), e->parts.ragged ? "2" : "2 or 3");
    pith__dim width = type->dims[type->rank - 1];
    if (!pith__dim_known(width) || width <= 0 || width > INT32_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the width of output '" PITH_STR_FMT "' is not known",
                          PITH_STR_ARG(out->name));
    bool by_token = e->parts.ragged && pith__dim_equal(encoder_tokens(graph), type->dims[0]);
    pith__head_model *model = &e->models[place];
    *model = (pith__head_model){ .modules = e->parts.modules,
                                 .width = width,
                                 .pooled = e->parts.ragged ? !by_token : type->rank == 2,
                                 .isa = pith__cpu_get()->isa };
    if (model->pooled) return PITH_OK;
    return pith__vector_steps_prepare(&model->steps, e->parts.modules, model->isa, &e->arena, err);
}

/* Bytes of the widest row that belongs to a token, among the values that nodes make with the tokens
 * as axis 0; 1 if there is none. A width that is not known before the run is passed over. */
static int64_t encoder_widest_row(const pith__graph *graph) {
    pith__dim tokens = encoder_tokens(graph);
    int64_t widest = 1;
    for (size_t i = 0; i < graph->value_count; i++) {
        const pith__type *type = &graph->values[i]->type;
        size_t row;
        if (graph->values[i]->kind != PITH_VALUE_NODE || type->rank < 2 ||
            !pith__dim_equal(type->dims[0], tokens))
            continue;
        bool known = true;
        for (int d = 1; d < type->rank; d++) known = known && pith__dim_known(type->dims[d]);
        if (!known ||
            !pith__dtype_bytes(type->dtype, pith__dims_count(type->dims + 1, type->rank - 1), &row))
            continue;
        if (row > (size_t)widest) widest = row < INT32_MAX ? (int64_t)row : INT32_MAX;
    }
    return widest;
}

static int64_t encoder_choose_chunk(const pith__graph *graph) {
    int64_t fitting = (int64_t)pith__cpu_get()->l2 * 3 / 2 / encoder_widest_row(graph);
    if (fitting < PITH_CHUNK_TOKENS_MIN) return PITH_CHUNK_TOKENS_MIN;
    return fitting > CHUNK_TOKENS_MAX ? CHUNK_TOKENS_MAX : fitting;
}

/* The number of the task for which the model was opened. */
static pith_status encoder_take_task(pith__encoder *e, const pith__modules *m, pith_error *err) {
    pith_str list = PITH_STR("");
    e->text_inputs.task = m->task;
    if (pith__modules_task(m).size) return PITH_OK;
    for (size_t i = 0; i < m->task_count; i++) {
        list = pith__arena_printf(&e->arena, "%s%s" PITH_STR_FMT, list.data, i ? ", " : "",
                                  PITH_STR_ALL(m->tasks[i]));
        if (!list.data) return pith__fail_memory(err, 0);
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "the network's input 'task_id' needs a task, %s%s",
                      m->task_count ? "which pith_open_options.route names; config.json has "
                                    : "but config.json has no list of them (lora_adaptations)",
                      list.data);
}

static pith_status encoder_init(pith__encoder *e, pith_error *err) {
    const pith__encoder_parts *parts = &e->parts;
    const pith__graph *graph = parts->program.graph;
    for (int i = 0; i < parts->output_count; i++) {
        e->outputs[i] = parts->outputs[i];
        PITH_TRY(encoder_read_output(e, i, err));
    }
    PITH_TRY(pith__text_inputs_init(&e->text_inputs, graph, parts->ragged,
                                    parts->modules->pad_token_id, &e->arena, err));
    if (e->text_inputs.tasked) PITH_TRY(encoder_take_task(e, parts->modules, err));
    e->dropped = parts->modules->dropped.size
                     ? pith__tokenizer_id(parts->tokenizer, parts->modules->dropped)
                     : parts->modules->dropped_id;
    e->token_characters =
        parts->modules->cuts_characters ? pith__text_median_token(parts->tokenizer) : 0;
    e->chunk_tokens = encoder_choose_chunk(graph);
    return pith__idle_runners_init(&e->idle, parts->sessions, parts->session_patience,
                                   parts->executor.counters, &e->arena, err);
}

/* The encoder keeps its parts as they are given, but for the list of outputs, which it copies. */
pith_status pith__encoder_create(pith__encoder **encoder, const pith__encoder_parts *parts,
                                 pith_error *err) {
    pith__arena arena;
    pith__arena_init(&arena, parts->executor.allocator);
    pith__encoder *e = pith__arena_array(&arena, 1, sizeof *e);
    if (!e) return pith__fail_memory(err, sizeof *e);
    e->parts = *parts;
    e->arena = arena;
    pith_status status = encoder_init(e, err);
    if (status) {
        arena = e->arena;
        pith__arena_free(&arena);
        return status;
    }
    *encoder = e;
    return PITH_OK;
}

void pith__encoder_trim(pith__encoder *e) { pith__idle_runners_empty(&e->idle); }

size_t pith__encoder_idle(pith__encoder *e) { return pith__idle_runners_count(&e->idle); }

void pith__encoder_trace(pith__encoder *e, pith__trace_fn *trace, void *context) {
    e->trace = trace;
    e->trace_context = context;
}

void pith__encoder_destroy(pith__encoder *e) {
    if (!e) return;
    pith__idle_runners_destroy(&e->idle);
    pith__arena arena = e->arena;
    pith__arena_free(&arena);
}

const pith__head_model *pith__encoder_model(const pith__encoder *e, int output) {
    return &e->models[output];
}

int32_t pith__encoder_max_length(const pith__encoder *e, int32_t max_length) {
    int32_t length = pith__modules_max_length(e->parts.modules, max_length,
                                              pith__tokenizer_max_length(e->parts.tokenizer));
    int64_t fixed = e->text_inputs.fixed_length;
    const int32_t own = pith__tokenizer_own_length(e->parts.tokenizer);
    if (own && (!length || length > own)) length = own;
    return fixed && (!length || length > fixed) ? (int32_t)fixed : length;
}
