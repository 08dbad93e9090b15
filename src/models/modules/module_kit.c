/* module_kit.c - what the classes of modules share: reading JSON and weights of a folder, adding
 * steps, making nodes. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/str.h"
#include "base/text_out.h"
#include "models/modules/module_class.h"
#include "pith/encode.h"

pith_str pith__module_path(const pith__module_reader *r, pith_str folder, const char *name) {
    bool here = !folder.size || pith__str_is(folder, ".");
    return pith__arena_printf(r->arena, "%s%s%s", here ? "" : folder.data, here ? "" : "/", name);
}

/* Files are read through the scanner and closed at once; what is kept was copied to the arena.
 * Python's NaN and Infinity are allowed, since Python wrote these files. `there` NULL means that
 * the module cannot do without the file. */
pith_status pith__module_json(bool *there, pith__module_reader *r, pith_str folder,
                              const char *name, pith__module_json_fn *fn, void *to) {
    pith_str path, relative = pith__module_path(r, folder, name);
    bool found;
    if (!relative.data) return pith__fail_memory(r->err, folder.size);
    PITH_TRY(pith__file_find(&found, &path, r->arena, r->source->dir, relative.data, r->err));
    if (there) *there = found;
    if (!found && there) return PITH_OK;
    if (!found)
        return pith__fail(r->err, PITH_ERR_NOT_FOUND,
                          "modules.json names the folder '" PITH_STR_FMT
                          "', but %s is not there; fetch the model with its folders",
                          PITH_STR_ARG(folder), relative.data);
    pith__file file;
    PITH_TRY(pith__file_open(&file, path.data, false, r->source->allocator, r->err));
    pith_error fault = PITH_ERROR_INIT; /* the scanner's own: r->err may be NULL */
    pith__json *j = pith__arena_alloc(r->arena, sizeof *j);
    if (j) {
        pith__json_init(j, (pith_str){ (const char *)file.data, file.size }, path.data, r->arena,
                        &fault);
        j->python = true;
        fn(j, r, to);
        pith__json_finish(j);
    }
    pith__file_close(&file);
    if (!j) return pith__fail_memory(r->err, sizeof *j);
    return j->failed ? pith__fail(r->err, fault.code, "%s", fault.message) : PITH_OK;
}

void pith__module_expect(pith__json *j, const char *key, const char *known) {
    if (pith__json_null(j)) return;
    pith_str word = pith__json_string(j);
    if (!j->failed && !pith__str_is(word, known))
        pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                        "%s '" PITH_STR_FMT "' is not supported; supported is '%s'", key,
                        PITH_STR_ARG(word), known);
}

/* ---- weights ---- */

/* Without `files` only the settings are wanted, as when a tokenizer is opened alone; no weights are
 * read then. */
pith_status pith__module_weights(pith__weights *weights, const char **file, pith__module_reader *r,
                                 pith_str folder) {
    PITH_TRY(pith__weights_init(weights, r->arena, r->err));
    *file = "";
    if (!r->source->files) return PITH_OK;
    pith_str dir = pith__str_of(r->source->dir);
    if (folder.size) PITH_TRY(pith__path_join(&dir, r->arena, r->source->dir, folder, r->err));
    return pith__weights_read(weights, file, dir.data, NULL, r->source->files, r->err);
}

static float module_number(const char *at, int dtype) {
    uint16_t half;
    float number;
    if (dtype == PITH_F32) return memcpy(&number, at, sizeof number), number;
    memcpy(&half, at, sizeof half);
    return dtype == PITH_F16 ? pith__f32_of_f16(half) : pith__f32_of_bf16(half);
}

/* Shape and dtype are compared with what the module's config asks for. Modules compute in f32, so
 * other types are widened once. */
pith_status pith__module_tensor(const float **data, pith__module_reader *r,
                                const pith__weights *weights, const char *file, const char *name,
                                int rank, const int64_t *dims) {
    char want[128], found[128];
    *data = NULL;
    if (!r->source->files) return PITH_OK;
    const pith_tensor *t = pith__weights_find(weights, pith__str_of(name));
    pith__dims_text(dims, rank, want, sizeof want);
    if (!t)
        return pith__fail(r->err, PITH_ERR_NOT_FOUND,
                          "%s: tensor '%s' is missing; the config asks for shape %s", file, name,
                          want);
    if (t->rank != rank || memcmp(t->dims, dims, (size_t)rank * sizeof *dims))
        return pith__fail(r->err, PITH_ERR_FORMAT,
                          "%s: tensor '%s' has shape %s; the config asks for %s", file, name,
                          pith__dims_text(t->dims, t->rank, found, sizeof found), want);
    if (t->dtype != PITH_F32 && t->dtype != PITH_F16 && t->dtype != PITH_BF16)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "%s: tensor '%s' is %s; float32, float16 and bfloat16 are supported",
                          file, name, pith__dtype_name(t->dtype));
    *data = t->data;
    if (t->dtype == PITH_F32 && (uintptr_t)t->data % _Alignof(float) == 0) return PITH_OK;
    const size_t n = (size_t)pith__dims_count(dims, rank), size = t->dtype == PITH_F32 ? 4 : 2;
    float *wide = pith__arena_alloc64(r->arena, n * sizeof *wide);
    if (!wide) return pith__fail_memory(r->err, n * sizeof *wide);
    for (size_t i = 0; i < n; i++)
        wide[i] = module_number((const char *)t->data + i * size, t->dtype);
    *data = wide;
    return PITH_OK;
}

/* ---- results ---- */

static uint32_t module_role(pith__json *j) {
    pith_str name = pith__json_string(j);
    if (pith__str_is(name, "query")) return 1u << PITH_ROLE_QUERY;
    return pith__str_is(name, "document") ? 1u << PITH_ROLE_DOCUMENT : 0;
}

uint32_t pith__module_roles(pith__json *j) {
    uint32_t roles = 0;
    if (pith__json_peek(j) != PITH_JSON_ARRAY) return module_role(j);
    for (pith__json_array(j); pith__json_next_item(j);) roles |= module_role(j);
    return roles;
}

/* Steps behind the pooling, in the order of the modules. */
pith_status pith__module_add_step(pith__module_reader *r, const pith__vector_step *step) {
    pith__modules *m = r->modules;
    void *steps = m->steps;
    if (!pith__arena_grow(r->arena, &steps, m->step_count, &m->step_capacity, sizeof *step))
        return pith__fail_memory(r->err, sizeof *step);
    m->steps = steps;
    m->steps[m->step_count++] = *step;
    return PITH_OK;
}

/* Steps on vectors of tokens, which become nodes of the graph. */
pith_status pith__module_add_rows(pith__module_reader *r, const pith__row_step *step) {
    pith__modules *m = r->modules;
    void *steps = m->row_steps;
    if (!pith__arena_grow(r->arena, &steps, m->row_step_count, &m->row_step_capacity, sizeof *step))
        return pith__fail_memory(r->err, sizeof *step);
    m->row_steps = steps;
    m->row_steps[m->row_step_count++] = *step;
    return PITH_OK;
}

/* What inspect shows under "decisions": what was decided, and which file says so. */
pith_status pith__modules_note(pith__modules *m, const char *what, pith_str value, pith_str file,
                               pith__arena *arena, pith_error *err) {
    void *decisions = m->decisions;
    value = pith__arena_str(arena, value);
    file = pith__arena_str(arena, file);
    if (!value.data || !file.data ||
        !pith__arena_grow(arena, &decisions, m->decision_count, &m->decision_capacity,
                          sizeof *m->decisions))
        return pith__fail_memory(err, sizeof *m->decisions);
    m->decisions = decisions;
    m->decisions[m->decision_count++] = (pith__decision){ what, value, file };
    return PITH_OK;
}

/* The same with a formatted value and a file of the module's folder. */
pith_status pith__module_decide(pith__module_reader *r, const char *what, pith_str folder,
                                const char *name, const char *format, ...) {
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    pith__text_format(value, sizeof value, format, arguments);
    va_end(arguments);
    pith_str file = name ? pith__module_path(r, folder, name) : PITH_STR("");
    if (!file.data) return pith__fail_memory(r->err, folder.size);
    return pith__modules_note(r->modules, what, pith__str_of(value), file, r->arena, r->err);
}

/* Modules say which form of vectors they work on; the order of modules.json must fit. */
pith_status pith__module_needs(const pith__module_reader *r, pith__module_stage stage) {
    static const char *const made[] = { [PITH_STAGE_TEXT] = "of texts",
                                        [PITH_STAGE_ROWS] = "of tokens' vectors",
                                        [PITH_STAGE_VECTOR] = "of a text's vector" };
    static const char *const stands[] = { [PITH_STAGE_TEXT] = "no module has made vectors yet",
                                          [PITH_STAGE_ROWS] = "there are tokens' vectors",
                                          [PITH_STAGE_VECTOR] =
                                              "there is one vector of the text already" };
    if (r->stage == stage) return PITH_OK;
    return pith__fail(r->err, PITH_ERR_UNSUPPORTED, "it is a module %s, but stands where %s",
                      made[stage], stands[r->stage]);
}

/* Both keys are in config.json of modules that can work on either form. */
bool pith__module_place(pith__json *j, pith__module_reader *r, pith_str key,
                        pith__module_places *places) {
    bool input = pith__str_is(key, "module_input_name");
    if (!input && !pith__str_is(key, "module_output_name")) return false;
    if (pith__json_null(j)) return true;
    pith_str name = pith__json_copy(j, r->arena, pith__json_string(j));
    *(input ? &places->input : &places->output) = name;
    return true;
}

/* Input and output must be the same place: the vectors before a module are not kept beside those
 * after it. */
pith_status pith__module_check_places(const pith__module_reader *r, pith_str folder,
                                      pith__module_places *p) {
    static const char vector[] = "sentence_embedding", rows[] = "token_embeddings";
    const pith_str usual = pith__str_of(r->of_tokens ? rows : vector);
    const pith_str input = p->input.data ? p->input : usual;
    const pith_str output = p->output.data ? p->output : input;
    p->rows = pith__str_is(input, rows);
    if (!p->rows && !pith__str_is(input, vector))
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          PITH_STR_FMT "/config.json: module_input_name '" PITH_STR_FMT
                                       "' is not supported; supported are '%s' and '%s'",
                          PITH_STR_ARG(folder), PITH_STR_ARG(input), vector, rows);
    if (!pith__str_eq(input, output))
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          PITH_STR_FMT
                          "/config.json: module_output_name '" PITH_STR_FMT
                          "' is not supported; it must be the module_input_name '" PITH_STR_FMT "'",
                          PITH_STR_ARG(folder), PITH_STR_ARG(output), PITH_STR_ARG(input));
    return pith__module_needs(r, p->rows ? PITH_STAGE_ROWS : PITH_STAGE_VECTOR);
}

/* ---- nodes ---- */

pith__value *pith__row_constant(pith__graph *graph, const float *data, int rank,
                                const int64_t *dims) {
    pith_tensor t = { .data = (void *)(uintptr_t)data, .dtype = PITH_F32, .rank = rank };
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    if (!data || !pith__dtype_bytes(PITH_F32, pith__dims_count(dims, rank), &t.bytes)) return NULL;
    return pith__graph_add_const(graph, PITH_STR(""), &t);
}

bool pith__row_width_fits(const pith__value *rows, int64_t width, const char *name,
                          pith_error *err) {
    const pith__dim found = rows->type.rank == 3 ? rows->type.dims[2] : PITH_DIM_UNKNOWN;
    if (!pith__dim_known(found) || found == width) return true;
    pith__fail(err, PITH_ERR_FORMAT,
               "module %s needs vectors of %lld numbers, but those of tokens have %lld", name,
               (long long)width, (long long)found);
    return false;
}

pith__value *pith__row_node(pith__graph *graph, pith_str place, const char *op,
                            pith__value *const *inputs, int count) {
    for (int i = 0; i < count; i++)
        if (!inputs[i]) return NULL;
    pith__node *node = pith__graph_add_node(graph, NULL, "", op, inputs, count, NULL, 1);
    pith_str name = pith__arena_printf(graph->arena, PITH_STR_FMT "/%s", PITH_STR_ALL(place), op);
    if (!node || !name.data) return NULL;
    node->name = name;
    return node->outputs[0];
}

pith_status pith__row_output(int *output, pith__graph *graph, pith__value *value, pith_str name,
                             pith_error *err) {
    const size_t n = graph->output_count;
    pith__value **outputs = pith__arena_array(graph->arena, n + 1, sizeof(pith__value *));
    pith_str *names = pith__arena_array(graph->arena, n + 1, sizeof *names);
    if (!outputs || !names) return pith__fail_memory(err, n * sizeof *names);
    value->name = name;
    value->output_uses++;
    memcpy(outputs, graph->outputs, n * sizeof(pith__value *));
    if (graph->output_names) memcpy(names, graph->output_names, n * sizeof *names);
    outputs[n] = value;
    names[n] = name;
    graph->outputs = outputs;
    if (graph->output_names) graph->output_names = names;
    graph->output_next = NULL;
    graph->output_count++;
    *output = (int)n;
    return PITH_OK;
}
