/* module_kit.c - what the classes of modules share: reading JSON and weights of a folder, adding steps, making nodes.
 */
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

pith_str pith_module_path(const pith_module_reader *r, pith_str folder, const char *name) {
    bool here = !folder.size || pith_str_is(folder, ".");
    return pith_arena_printf(r->arena, "%s%s%s", here ? "" : folder.data, here ? "" : "/", name);
}

pith_status pith_module_json(bool *there, pith_module_reader *r, pith_str folder, const char *name,
                             pith_module_json_fn *fn, void *to) {
    pith_str path, relative = pith_module_path(r, folder, name);
    bool found;
    if (!relative.data) return pith_fail_memory(r->err, folder.size);
    PITH_TRY(pith_file_find(&found, &path, r->arena, r->source->dir, relative.data, r->err));
    if (there) *there = found;
    if (!found && there) return PITH_OK;
    if (!found)
        return pith_fail(r->err, PITH_ERR_NOT_FOUND,
                         "modules.json names the folder '" PITH_STR_FMT
                         "', but %s is not there; fetch the model with its folders",
                         PITH_STR_ARG(folder), relative.data);
    pith_file file;
    PITH_TRY(pith_file_open(&file, path.data, false, r->source->allocator, r->err));
    pith_error fault = PITH_ERROR_INIT; /* the scanner's own: r->err may be NULL */
    pith_json *j = pith_arena_alloc(r->arena, sizeof *j);
    if (j) {
        pith_json_init(j, (pith_str){ (const char *)file.data, file.size }, path.data, r->arena, &fault);
        j->python = true;
        fn(j, r, to);
        pith_json_finish(j);
    }
    pith_file_close(&file);
    if (!j) return pith_fail_memory(r->err, sizeof *j);
    return j->failed ? pith_fail(r->err, fault.code, "%s", fault.message) : PITH_OK;
}

void pith_module_expect(pith_json *j, const char *key, const char *known) {
    if (pith_json_null(j)) return;
    pith_str word = pith_json_string(j);
    if (!j->failed && !pith_str_is(word, known))
        pith_json_fail(j, PITH_ERR_UNSUPPORTED, "%s '" PITH_STR_FMT "' is not supported; supported is '%s'", key,
                       PITH_STR_ARG(word), known);
}

/* ---- weights ---- */

pith_status pith_module_weights(pith_weights *weights, const char **file, pith_module_reader *r, pith_str folder) {
    PITH_TRY(pith_weights_init(weights, r->arena, r->err));
    *file = "";
    if (!r->source->files) return PITH_OK;
    pith_str dir = pith_str_of(r->source->dir);
    if (folder.size) PITH_TRY(pith_path_join(&dir, r->arena, r->source->dir, folder, r->err));
    return pith_weights_read(weights, file, dir.data, NULL, r->source->files, r->err);
}

static float module_number(const char *at, int dtype) {
    uint16_t half;
    float number;
    if (dtype == PITH_F32) return memcpy(&number, at, sizeof number), number;
    memcpy(&half, at, sizeof half);
    return dtype == PITH_F16 ? pith_f32_of_f16(half) : pith_f32_of_bf16(half);
}

pith_status pith_module_tensor(const float **data, pith_module_reader *r, const pith_weights *weights, const char *file,
                               const char *name, int rank, const int64_t *dims) {
    char want[128], found[128];
    *data = NULL;
    if (!r->source->files) return PITH_OK;
    const pith_tensor *t = pith_weights_find(weights, pith_str_of(name));
    pith_dims_text(dims, rank, want, sizeof want);
    if (!t)
        return pith_fail(r->err, PITH_ERR_NOT_FOUND, "%s: tensor '%s' is missing; the config asks for shape %s", file,
                         name, want);
    if (t->rank != rank || memcmp(t->dims, dims, (size_t)rank * sizeof *dims))
        return pith_fail(r->err, PITH_ERR_FORMAT, "%s: tensor '%s' has shape %s; the config asks for %s", file, name,
                         pith_dims_text(t->dims, t->rank, found, sizeof found), want);
    if (t->dtype != PITH_F32 && t->dtype != PITH_F16 && t->dtype != PITH_BF16)
        return pith_fail(r->err, PITH_ERR_UNSUPPORTED,
                         "%s: tensor '%s' is %s; float32, float16 and bfloat16 are supported", file, name,
                         pith_dtype_name(t->dtype));
    *data = t->data;
    if (t->dtype == PITH_F32 && (uintptr_t)t->data % _Alignof(float) == 0) return PITH_OK;
    const size_t n = (size_t)pith_dims_count(dims, rank), size = t->dtype == PITH_F32 ? 4 : 2;
    float *wide = pith_arena_alloc64(r->arena, n * sizeof *wide);
    if (!wide) return pith_fail_memory(r->err, n * sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = module_number((const char *)t->data + i * size, t->dtype);
    *data = wide;
    return PITH_OK;
}

/* ---- results ---- */

static uint32_t module_role(pith_json *j) {
    pith_str name = pith_json_string(j);
    return pith_str_is(name, "query")      ? 1u << PITH_ROLE_QUERY
           : pith_str_is(name, "document") ? 1u << PITH_ROLE_DOCUMENT
                                           : 0;
}

uint32_t pith_module_roles(pith_json *j) {
    uint32_t roles = 0;
    if (pith_json_peek(j) != PITH_JSON_ARRAY) return module_role(j);
    for (pith_json_array(j); pith_json_next_item(j);) roles |= module_role(j);
    return roles;
}

pith_status pith_module_add_step(pith_module_reader *r, const pith_vector_step *step) {
    pith_modules *m = r->modules;
    void *steps = m->steps;
    if (!pith_arena_grow(r->arena, &steps, m->step_count, &m->step_capacity, sizeof *step))
        return pith_fail_memory(r->err, sizeof *step);
    m->steps = steps;
    m->steps[m->step_count++] = *step;
    return PITH_OK;
}

pith_status pith_module_add_rows(pith_module_reader *r, const pith_row_step *step) {
    pith_modules *m = r->modules;
    void *steps = m->row_steps;
    if (!pith_arena_grow(r->arena, &steps, m->row_step_count, &m->row_step_capacity, sizeof *step))
        return pith_fail_memory(r->err, sizeof *step);
    m->row_steps = steps;
    m->row_steps[m->row_step_count++] = *step;
    return PITH_OK;
}

pith_status pith_modules_note(pith_modules *m, const char *what, pith_str value, pith_str file, pith_arena *arena,
                              pith_error *err) {
    void *decisions = m->decisions;
    value = pith_arena_str(arena, value);
    file = pith_arena_str(arena, file);
    if (!value.data || !file.data ||
        !pith_arena_grow(arena, &decisions, m->decision_count, &m->decision_capacity, sizeof *m->decisions))
        return pith_fail_memory(err, sizeof *m->decisions);
    m->decisions = decisions;
    m->decisions[m->decision_count++] = (pith_decision){ what, value, file };
    return PITH_OK;
}

pith_status pith_module_decide(pith_module_reader *r, const char *what, pith_str folder, const char *name,
                               const char *format, ...) {
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    pith_text_format(value, sizeof value, format, arguments);
    va_end(arguments);
    pith_str file = name ? pith_module_path(r, folder, name) : PITH_STR("");
    if (!file.data) return pith_fail_memory(r->err, folder.size);
    return pith_modules_note(r->modules, what, pith_str_of(value), file, r->arena, r->err);
}

pith_status pith_module_needs(const pith_module_reader *r, pith_module_stage stage) {
    static const char *const made[] = { "of texts", "of tokens' vectors", "of a text's vector" };
    if (r->stage == stage) return PITH_OK;
    return pith_fail(r->err, PITH_ERR_UNSUPPORTED, "it is a module %s, but stands where %s", made[stage],
                     r->stage == PITH_STAGE_TEXT   ? "no module has made vectors yet"
                     : r->stage == PITH_STAGE_ROWS ? "there are tokens' vectors"
                                                   : "there is one vector of the text already");
}

bool pith_module_place(pith_json *j, pith_module_reader *r, pith_str key, pith_module_places *places) {
    bool input = pith_str_is(key, "module_input_name");
    if (!input && !pith_str_is(key, "module_output_name")) return false;
    if (pith_json_null(j)) return true;
    pith_str name = pith_json_copy(j, r->arena, pith_json_string(j));
    *(input ? &places->input : &places->output) = name;
    return true;
}

pith_status pith_module_check_places(const pith_module_reader *r, pith_str folder, pith_module_places *p) {
    static const char vector[] = "sentence_embedding", rows[] = "token_embeddings";
    pith_str input = p->input.data ? p->input : pith_str_of(r->of_tokens ? rows : vector),
             output = p->output.data ? p->output : input;
    p->rows = pith_str_is(input, rows);
    if (!p->rows && !pith_str_is(input, vector))
        return pith_fail(r->err, PITH_ERR_UNSUPPORTED,
                         PITH_STR_FMT "/config.json: module_input_name '" PITH_STR_FMT
                                      "' is not supported; supported are '%s' and '%s'",
                         PITH_STR_ARG(folder), PITH_STR_ARG(input), vector, rows);
    if (!pith_str_eq(input, output))
        return pith_fail(r->err, PITH_ERR_UNSUPPORTED,
                         PITH_STR_FMT "/config.json: module_output_name '" PITH_STR_FMT
                                      "' is not supported; it must be the module_input_name '" PITH_STR_FMT "'",
                         PITH_STR_ARG(folder), PITH_STR_ARG(output), PITH_STR_ARG(input));
    return pith_module_needs(r, p->rows ? PITH_STAGE_ROWS : PITH_STAGE_VECTOR);
}

/* ---- nodes ---- */

pith_value *pith_row_constant(pith_graph *graph, const float *data, int rank, const int64_t *dims) {
    pith_tensor t = { .data = (void *)(uintptr_t)data, .dtype = PITH_F32, .rank = rank };
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    if (!data || !pith_dtype_bytes(PITH_F32, pith_dims_count(dims, rank), &t.bytes)) return NULL;
    return pith_graph_add_const(graph, PITH_STR(""), &t);
}

bool pith_row_width_fits(const pith_value *rows, int64_t width, const char *name, pith_error *err) {
    const pith_dim found = rows->type.rank == 3 ? rows->type.dims[2] : PITH_DIM_UNKNOWN;
    if (!pith_dim_known(found) || found == width) return true;
    pith_fail(err, PITH_ERR_FORMAT, "module %s takes vectors of %lld numbers, but those of tokens have %lld", name,
              (long long)width, (long long)found);
    return false;
}

pith_value *pith_row_node(pith_graph *graph, pith_str place, const char *op, pith_value *const *inputs, int count) {
    for (int i = 0; i < count; i++)
        if (!inputs[i]) return NULL;
    pith_node *node = pith_graph_add_node(graph, NULL, "", op, inputs, count, NULL, 1);
    pith_str name = pith_arena_printf(graph->arena, PITH_STR_FMT "/%s", PITH_STR_ALL(place), op);
    if (!node || !name.data) return NULL;
    node->name = name;
    return node->outputs[0];
}

pith_status pith_row_output(int *output, pith_graph *graph, pith_value *value, pith_str name, pith_error *err) {
    const size_t n = graph->output_count;
    pith_value **outputs = pith_arena_array(graph->arena, n + 1, sizeof(pith_value *));
    pith_str *names = pith_arena_array(graph->arena, n + 1, sizeof *names);
    if (!outputs || !names) return pith_fail_memory(err, n * sizeof *names);
    value->name = name;
    value->output_uses++;
    memcpy(outputs, graph->outputs, n * sizeof(pith_value *));
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
