/* save_model.c - open models to one file and back: puts the sections of formats/compiled/compiled.h
 * together and takes them apart. What each section holds is in save_<what>.c. */
#include "base/caller_options.h"
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/optional_part.h"
#include "base/str.h"
#include "base/writer.h"
#include "formats/compiled/graph_bytes.h"
#include "models/faces/cascade.h"
#include "models/faces/detector.h"
#include "models/open/source.h"
#include "models/save/save_heads.h"
#include "models/save/save_model.h"

#include "formats/onnx/info_read.h"
#include "models/save/save_pictures.h"
#include "models/save/save_settings.h"
#include "models/save/save_words.h"

/* ---- saving ---- */

enum { SAVED_LEVEL_DEFAULT = 3 }; /* of pith_open_options.optimization */
enum { SAVER_SECTIONS = PITH_SECTION_COUNT * PITH_COMPILED_ROUTES };

typedef struct saver {
    const pith_model *const *models; /* by route */
    size_t model_count;
    uint32_t route;        /* of the sections that are added */
    pith__account account; /* in the first model's: whether memory was refused while the sections
                              were made */
    pith__arena arena;
    pith__constant_spans_out weights;
    pith__program heads[PITH_COMPILED_ROUTES];
    pith__section_out sections[SAVER_SECTIONS];
    size_t count;
    pith__stop *stop;
    pith_error *err;
} saver;

/* What a call on models is given, beside where the file goes. */
typedef struct saver_call {
    const pith_writer *writer;
    pith__stop *stop;
    pith__progress *told;
} saver_call;

static pith_status add_section(saver *s, pith__section kind, const void *data, size_t size) {
    pith__piece_out *piece = pith__arena_alloc(&s->arena, sizeof *piece);
    if (!piece) return pith__fail_memory(s->err, sizeof *piece);
    *piece = (pith__piece_out){ data, size, 0 };
    s->sections[s->count++] = (pith__section_out){ kind, s->route, size, piece, 1 };
    return PITH_OK;
}

static pith_status add_bytes(saver *s, pith__section kind, const pith__bytes_out *out) {
    if (out->failed) return pith__fail_memory(s->err, out->size);
    return out->size ? add_section(s, kind, out->data, out->size) : PITH_OK;
}

static pith_status add_graph(saver *s, pith__section kind, const pith__graph *graph,
                             const pith__plan *plan) {
    pith__bytes_out out = { .arena = &s->arena };
    PITH_TRY(pith__graph_write(&out, &s->weights, graph, plan, s->err));
    return add_bytes(s, kind, &out);
}

/* The graph as it is, the one for packed texts, and the one of the heads. They share their weights
 * through the section "weights". */
static pith_status add_graphs(saver *s, const pith_model *m) {
    const pith__plan *plan;
    pith__bytes_out heads = { .arena = &s->arena };
    PITH_TRY(pith__stop_check(s->stop, s->err));
    PITH_TRY(pith__model_plan(&plan, m, s->stop, s->err));
    PITH_TRY(add_graph(s, PITH_SECTION_GRAPH, m->graph, plan));
    if (m->text.ragged && m->text.encoder)
        PITH_TRY(
            add_graph(s, PITH_SECTION_TEXT, m->text.ragged, pith__program_plan(&m->text.program)));
    PITH_TRY(pith__save_heads_write(&heads, &s->heads[s->route], &s->weights, m, s->stop, s->err));
    return add_bytes(s, PITH_SECTION_HEADS, &heads);
}

/* What a compiled file of a model cannot do (second_plan.h), said when it is made. */
static void warn_of_defaults(const pith_model *m) {
    size_t count = 0, first = 0;
    for (size_t i = m->graph->input_count; i-- > 0;)
        if (m->graph->inputs[i]->type.data) count++, first = i;
    if (m->compiled.writer || !count) return;
    pith__log_write(m->options.call.log, PITH_LOG_WARNING,
                    "input '%s' has a default, which is built into the compiled file: it takes no "
                    "other value there "
                    "(%zu such inputs)",
                    m->inputs[first].name, count);
}

/* The sections of one route. An empty one is left out. */
static pith_status add_model(saver *s, const pith_model *m) {
    pith__bytes_out settings = { .arena = &s->arena }, words = settings, pictures = settings;
    warn_of_defaults(m);
    pith__save_settings_write(&settings, m, s->models, s->model_count);
    PITH_TRY(add_bytes(s, PITH_SECTION_MODEL, &settings));
    PITH_TRY(add_graphs(s, m));
    if (m->tokenizer) {
        pith_str frozen;
        PITH_TRY(pith__tokenizer_freeze(&frozen, m->tokenizer, &s->arena, s->err));
        PITH_TRY(add_section(s, PITH_SECTION_TOKENIZER, frozen.data, frozen.size));
    }
    if (m->word_model.kind)
        PITH_TRY(pith__save_words_write(&words, &s->weights, &m->word_model, s->err));
    PITH_TRY(add_bytes(s, PITH_SECTION_WORDS, &words));
    PITH_TRY(pith__save_pictures_write(&pictures, m, s->err));
    PITH_TRY(add_bytes(s, PITH_SECTION_PICTURES, &pictures));
    pith_str info;
    PITH_TRY(pith__onnx_info_extract(&info, pith__model_about(m), &s->arena, s->err));
    return info.size ? add_section(s, PITH_SECTION_INFO, info.data, info.size) : PITH_OK;
}

static int saver_route_of(const saver *s, pith_str route) {
    for (size_t i = 0; i < s->model_count; i++)
        if (pith__str_eq(s->models[i]->modules.route, route)) return (int)i;
    return -1;
}

/* The names of a route are in the settings of each; here they lead to its number. */
static pith_status add_route_names(saver *s) {
    const pith__modules *modules = &s->models[0]->modules;
    pith__bytes_out out = { .arena = &s->arena };
    uint32_t count = 0;
    if (!modules->route.size) return PITH_OK;
    for (size_t i = 0; i < modules->route_count; i++)
        count += saver_route_of(s, modules->routes[i].route) >= 0;
    pith__put_u32(&out, count);
    for (size_t i = 0; i < modules->route_count; i++) {
        const int route = saver_route_of(s, modules->routes[i].route);
        if (route < 0) continue;
        pith__put_str(&out, modules->routes[i].name);
        pith__put_u32(&out, (uint32_t)route);
    }
    s->route = 0;
    return add_bytes(s, PITH_SECTION_ROUTES, &out);
}

/* The routes are the networks of this detector. */
static pith_status add_detector(saver *s) {
    const pith__head *head = s->models[0]->cascade;
    s->route = 0;
    return head ? add_section(s, PITH_SECTION_NETWORKS, head->name, strlen(head->name)) : PITH_OK;
}

/* What a file cannot hold, told before any section is made. */
static pith_status saver_check(const saver *s) {
    if (s->models[0]->cascade) return PITH_OK;
    if (!s->model_count || s->model_count > PITH_COMPILED_ROUTES)
        return pith__fail(s->err, PITH_ERR_ARGUMENT,
                          "%zu models; a compiled file holds 1 to %u routes", s->model_count,
                          PITH_COMPILED_ROUTES);
    for (size_t i = 0; i < s->model_count; i++) {
        if (!s->models[i]->text.encoder) continue;
        for (size_t k = 0; k < s->models[i]->graph->input_count; k++)
            if (pith__str_is(s->models[i]->graph->inputs[k]->name, "task_id"))
                return pith__fail(s->err, PITH_ERR_UNSUPPORTED,
                                  "the network needs a task (input 'task_id'), which a compiled "
                                  "file does not keep; open "
                                  "the directory itself with pith_open_options.route");
    }
    for (size_t i = 1; i < s->model_count; i++) {
        const pith_str route = s->models[i]->modules.route;
        if (!route.size)
            return pith__fail(s->err, PITH_ERR_ARGUMENT,
                              "model %zu has no Router: a file holds the routes of one", i);
        for (size_t k = 0; k < i; k++)
            if (pith__str_eq(s->models[k]->modules.route, route))
                return pith__fail(s->err, PITH_ERR_ARGUMENT,
                                  "models %zu and %zu are both of route '" PITH_STR_FMT "'", k, i,
                                  PITH_STR_ARG(route));
    }
    return PITH_OK;
}

/* Weights come last: their table is known when all others were written. */
static pith_status make_sections(saver *s) {
    PITH_TRY(saver_check(s));
    PITH_TRY(pith__constant_spans_begin(&s->weights, &s->arena, s->err));
    s->weights.stop = s->stop;
    for (s->route = 0; s->route < s->model_count; s->route++)
        PITH_TRY(add_model(s, s->models[s->route]));
    PITH_TRY(add_route_names(s));
    PITH_TRY(add_detector(s));
    return pith__constant_spans_end(&s->sections[s->count++], &s->weights, s->err);
}

/* The account counts what the sections take in memory, within the limit of the first model. */
static pith_status write_models(const pith_model *const *models, size_t count,
                                const saver_call *call, pith_error *err) {
    saver s = { .models = models, .model_count = count, .stop = call->stop, .err = err };
    pith__account_init(&s.account, models[0]->options.call.allocator, 0, 0);
    pith__arena_init(&s.arena, &s.account.allocator);
    pith_status status = pith__account_settle(&s.account, make_sections(&s), err);
    if (!status)
        status =
            pith__compiled_write(s.sections, s.count, call->writer, call->stop, call->told, err);
    for (size_t i = 0; i < PITH_COMPILED_ROUTES; i++) pith__program_close(&s.heads[i]);
    pith__arena_free(&s.arena);
    return pith__account_explain(&models[0]->account, status, err);
}

/* The networks of a detector are opened like models of their own, and become routes. */
static pith_status write_cascade(const pith_model *m, const saver_call *call, pith_error *err) {
    const pith__cascade_part *cascades = pith__part_find("cascades");
    pith_model *parts[PITH_DETECTOR_NETWORKS] = { NULL };
    const pith_model *models[PITH_DETECTOR_NETWORKS] = { m };
    const int count = pith__detector_count(m->cascade->detector);
    pith_status status = cascades->open(parts, m, call->stop, err);
    for (int i = 1; i < count; i++) models[i] = parts[i];
    if (!status) status = write_models(models, (size_t)count, call, err);
    for (int i = 1; i < count; i++)
        if (parts[i]) pith__model_destroy(parts[i]);
    return status;
}

/* A detector's networks take the place of routes, so it cannot be one of several models. */
pith_status pith__model_write(const pith_model *const *models, size_t count, const pith_call *call,
                              const pith_writer *writer, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    pith__progress told;
    PITH_TAKE_OPTIONS(o, call, err);
    PITH_TRY(pith__writer_check(writer, err));
    const saver_call how = { writer, pith__stop_begin(&own, &o), pith__progress_begin(&told, &o) };
    if (!count) return pith__fail(err, PITH_ERR_ARGUMENT, "there is no model to save");
    if (count == 1 && models[0]->cascade) return write_cascade(models[0], &how, err);
    for (size_t i = 0; i < count; i++)
        if (models[i]->cascade)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "model %zu is the detector %s, which has no routes", i,
                              models[i]->cascade->name);
    return write_models(models, count, &how, err);
}

pith_status pith__model_verify(const pith_source *source, const pith_call *call, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith_str bytes;
    pith__stop own;
    pith__progress told;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__stop *stop = pith__stop_begin(&own, &o);
    PITH_TRY(pith__model_source_bytes(&bytes, source, stop, err));
    const pith_status status =
        pith__compiled_verify(bytes, stop, pith__progress_begin(&told, &o), err);
    return status && source->path ? pith__fail_at(err, status, "%s: ", source->path) : status;
}

/* ---- loading ---- */

/* Types of inner values are not in the file; they are inferred again. */
pith_status pith__model_load_graph(pith__graph **graph, pith_model *m, pith__section kind,
                                   const pith__constant_spans_in *weights, pith_error *err) {
    pith__bytes_in in = { .bytes = m->compiled.sections[kind],
                          .what = pith__section_name(kind),
                          .err = err };
    PITH_TRY(pith__graph_read(graph, &in, weights, &m->arena, m->options.call.log));
    (*graph)->operators = m->options.operators;
    pith_status status = pith__ops_bind_compiled(*graph, err);
    if (!status) status = pith__ops_infer(*graph, false, err);
    return status ? pith__fail_at(err, status, "%s: ", in.what) : PITH_OK;
}

static pith_status load_detector(pith_model *m, pith_error *err) {
    const pith__cascade_part *cascades = pith__part_find("cascades");
    if (!cascades) return pith__piece_check("parts", PITH_STR("cascades"), err);
    pith__part_used("cascades");
    return cascades->load(m, err);
}

/* Header and table first, then weights, graph and settings; the order is that in which they need
 * each other. What the caller asked for is compared with what the file was made with: precision and
 * level cannot change any more. */
pith_status pith__model_load(pith_model *m, pith_str file, pith_error *err) {
    pith__constant_spans_in weights;
    if ((uintptr_t)file.data % PITH_COMPILED_ALIGNMENT) { /* of a host that did not know better */
        char *copy = pith__arena_alloc64(&m->arena, file.size);
        if (!copy) return pith__fail_memory(err, file.size);
        PITH_TRY(pith__copy_until(m->making.stop, copy, file.data, file.size, err));
        file.data = copy;
    }
    PITH_TRY(pith__compiled_open(&m->compiled, file, err));
    PITH_TRY(m->network ? pith__compiled_take(&m->compiled, m->network, err)
                        : pith__compiled_choose(&m->compiled, m->options.route, err));
    const pith_str *sections = m->compiled.sections;
    if (m->options.stop_after)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the passes of a compiled model have run already; stop_after needs the "
                          "model it was compiled from");
    static const pith__section wanted[] = { PITH_SECTION_MODEL, PITH_SECTION_GRAPH,
                                            PITH_SECTION_WEIGHTS };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!sections[wanted[i]].data)
            return pith__fail(err, PITH_ERR_FORMAT, "section '%s' is missing",
                              pith__section_name(wanted[i]));
    PITH_TRY(pith__constant_spans_open(&weights, sections[PITH_SECTION_WEIGHTS], err));
    PITH_TRY(pith__model_load_graph(&m->graph, m, PITH_SECTION_GRAPH, &weights, err));
    const int32_t wanted_precision = m->options.precision, wanted_level = pith__model_level(m);
    PITH_TRY(pith__save_settings_read(m, sections[PITH_SECTION_MODEL], err));
    if (wanted_level != SAVED_LEVEL_DEFAULT && wanted_level != pith__model_level(m))
        pith__log_write(
            m->options.call.log, PITH_LOG_WARNING,
            "the file keeps the optimization %d that it was compiled with; %d changes nothing",
            pith__model_level(m), wanted_level);
    if (sections[PITH_SECTION_NETWORKS].data) PITH_TRY(load_detector(m, err));
    if (m->texts) PITH_TRY(m->texts->load(m, &weights, err));
    const bool routed = sections[PITH_SECTION_ROUTES].data || !m->texts || !m->options.route;
    if (!routed && !pith__str_is(m->modules.route, m->options.route))
        return pith__fail(err, PITH_ERR_ARGUMENT, "the file has no route '%s'", m->options.route);
    if (wanted_precision && wanted_precision != m->options.precision) {
        static const char *const names[] = { "auto", "f32", "int8", "bf16" };
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the file was compiled for precision %s, not %s; open it with precision "
                          "auto, or compile it again",
                          names[m->options.precision], names[wanted_precision]);
    }
    return m->text.ragged && (!m->text.output_count || m->text.ragged->output_count != 1)
               ? pith__fail(err, PITH_ERR_FORMAT, "model: the graph for packed texts has no output")
               : PITH_OK;
}

pith_status pith__compiled_tokenizer(pith_tokenizer **tokenizer, const pith__compiled *compiled,
                                     const pith_open_options *options, pith__arena *arena,
                                     pith_error *err) {
    pith_str frozen = compiled->sections[PITH_SECTION_TOKENIZER];
    if (!frozen.data) return pith__fail(err, PITH_ERR_NOT_FOUND, "the model has no tokenizer");
    return pith__tokenizer_open_frozen(tokenizer, frozen.data, frozen.size, options, arena, err);
}
