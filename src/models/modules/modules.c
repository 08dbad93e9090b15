/* modules.c - modules.json and config_sentence_transformers.json to one struct; each module is read
 * by its class.
 *
 * The layout is that of sentence-transformers: modules.json lists the modules in the order in which
 * they are applied, each with the folder of its own files. Without modules.json the directory is a
 * network whose tokens' vectors are averaged (or, with an architecture for causal language models,
 * whose last one is taken), as sentence-transformers does; or it is a static model in Model2Vec's
 * layout. Other files may be missing, except those that a module cannot do without. If a key is
 * there twice, the last one counts, as in Python. */
#include "models/modules/modules.h"

#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "base/str.h"
#include "models/modules/model2vec.h"
#include "models/modules/module_class.h"
#include "models/modules/module_transformer.h"

/* ---- config_sentence_transformers.json ---- */

static void modules_read_prompts(pith__json *j, pith__module_reader *r) {
    pith__prompt *prompts = NULL;
    size_t n = 0, capacity = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__json_null(j)) continue;
        size_t i = 0;
        while (i < n && !pith__str_eq(prompts[i].name, key)) i++;
        if (i == n &&
            !pith__arena_grow(r->arena, (void **)&prompts, n, &capacity, sizeof *prompts)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        pith_str name = pith__json_copy(j, r->arena, key);
        pith_str text = pith__json_copy(j, r->arena, pith__json_string(j));
        prompts[i] = (pith__prompt){ name, text };
        n += i == n;
    }
    r->modules->prompts = prompts;
    r->modules->prompt_count = n;
}

static bool modules_has_prompt(const pith__modules *m, pith_str name) {
    size_t i = 0;
    while (i < m->prompt_count && !pith__str_eq(m->prompts[i].name, name)) i++;
    return i < m->prompt_count;
}

static void modules_read_settings(pith__json *j, pith__module_reader *r, void *to) {
    pith__modules *m = to;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__json_null(j)) continue;
        if (pith__str_is(key, "prompts"))
            modules_read_prompts(j, r);
        else if (pith__str_is(key, "default_prompt_name"))
            m->default_prompt = pith__json_copy(j, r->arena, pith__json_string(j));
        else if (pith__str_is(key, "truncate_dim"))
            m->truncate_dim = (int32_t)pith__json_limit(j, INT32_MAX);
        else if (pith__str_is(key, "max_active_dims"))
            m->sparse.most = (int32_t)pith__json_limit(j, INT32_MAX);
        else if (pith__str_is(key, "similarity_fn_name"))
            m->similarity = pith__json_copy(j, r->arena, pith__json_string(j));
        else
            pith__json_skip(j);
    }
    if (!j->failed && m->default_prompt.data && !modules_has_prompt(m, m->default_prompt))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "default_prompt_name '" PITH_STR_FMT "' is not the name of a prompt",
                        PITH_STR_ARG(m->default_prompt));
}

/* config_sentence_transformers.json belongs to the whole directory. Keys of PyLate in it are read
 * by late_interaction.c, and its activation by labels.c; here they are only known. */
static pith_status modules_settings(pith__module_reader *r) {
    static const char name[] = "config_sentence_transformers.json";
    static const pith__module_keys keys = {
        .file = name,
        .reads = "activation_fn attend_to_expansion_tokens default_prompt_name do_query_expansion "
                 "document_length "
                 "document_prefix max_active_dims model_type prompts query_length query_prefix "
                 "similarity_fn_name "
                 "skiplist_words truncate_dim",
        .ignores = "__version__ keep_in_fp32_modules requirements"
    };
    const pith_str here = PITH_STR("");
    pith__modules *m = r->modules;
    bool there;
    PITH_TRY(pith__module_json(&there, r, here, name, modules_read_settings, m));
    PITH_TRY(pith__module_keys_check(r, here, &keys));
    for (size_t i = 0; i < m->prompt_count; i++) {
        pith_str both = pith__arena_printf(r->arena, "%s: %s", m->prompts[i].name.data,
                                           m->prompts[i].text.data);
        if (!both.data) return pith__fail_memory(r->err, m->prompts[i].text.size);
        PITH_TRY(pith__modules_note(
            m, "prompt", both, PITH_STR("config_sentence_transformers.json"), r->arena, r->err));
    }
    if (m->default_prompt.data)
        PITH_TRY(pith__module_decide(r, "default prompt", here, name, PITH_STR_FMT,
                                     PITH_STR_ARG(m->default_prompt)));
    if (m->truncate_dim)
        PITH_TRY(pith__module_decide(r, "truncate_dim", here, name, "%d", m->truncate_dim));
    if (m->sparse.most)
        PITH_TRY(pith__module_decide(r, "largest weights kept", here, name, "%d", m->sparse.most));
    /* As max_active_dims of a call, which the encoder takes instead of its own number. */
    if (m->sparse.most)
        for (size_t i = 0; i < m->step_count; i++)
            if (m->steps[i].kind == PITH_STEP_TOP)
                m->steps[i].top =
                    m->sparse.most < m->steps[i].out ? m->sparse.most : m->steps[i].out;
    if (!m->similarity.size) return PITH_OK;
    return pith__module_decide(r, "similarity", here, name, PITH_STR_FMT,
                               PITH_STR_ARG(m->similarity));
}

/* ---- modules.json ---- */

static const pith__module_class *modules_find_class(pith_str name) {
    for (size_t i = 0; i < pith__module_class_count; i++)
        if (pith__str_is(name, pith__module_class_table[i]->name)) {
            pith__piece_used(pith__module_class_table[i]);
            return pith__module_class_table[i];
        }
    return NULL;
}

/* A class may be one that this build was made without, which is another message than one that Pith
 * does not have. */
static pith_status modules_fail_class(pith__module_reader *r, pith_str type) {
    pith_str known = PITH_STR("");
    for (size_t i = 0; i < pith__module_class_count; i++) {
        if (!pith__module_class_table[i]->read) continue;
        known = pith__arena_printf(r->arena, "%s%s%s", known.data, known.size ? ", " : "",
                                   pith__module_class_table[i]->name);
        if (!known.data) return pith__fail_memory(r->err, 0);
    }
    size_t dot = type.size;
    while (dot && type.data[dot - 1] != '.') dot--;
    PITH_TRY(pith__piece_check("modules", (pith_str){ type.data + dot, type.size - dot }, r->err));
    return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                      "module '" PITH_STR_FMT "' is not supported; supported are %s",
                      PITH_STR_ARG(type), known.data);
}

static bool modules_is_of(pith_str type, pith_str package) {
    return type.size > package.size && !memcmp(type.data, package.data, package.size);
}

/* Classes of these packages are what their names say; others are code that comes with a model. */
static bool modules_known_package(pith__module_reader *r, pith_str type) {
    r->of_tokens = modules_is_of(type, PITH_STR("pylate."));
    return r->of_tokens || modules_is_of(type, PITH_STR("sentence_transformers."));
}

/* The class is told by its last name, and must come from a package whose classes are known: code
 * beside the weights may do anything under a familiar name. The folder is the module's own,
 * relative to the directory. */
pith_status pith__module_read(pith__module_reader *r, pith_str type, pith_str folder) {
    size_t dot = type.size; /* the last part of the Python class is its name */
    while (dot && type.data[dot - 1] != '.') dot--;
    pith_str name = { type.data + dot, type.size - dot };
    const pith__module_class *class = modules_find_class(name);
    if (!class) return modules_fail_class(r, type);
    if (!modules_known_package(r, type))
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "module '" PITH_STR_FMT
                          "' is code that comes with the model, which is not run",
                          PITH_STR_ARG(type));
    if (!class->read)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "module '" PITH_STR_FMT "' is not supported: %s", PITH_STR_ARG(type),
                          class->refused);
    if (r->modules->late.pool.factor > 0)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "module '" PITH_STR_FMT
                          "' is behind HierarchicalTokenPooling, which must be the last one",
                          PITH_STR_ARG(type));
    if (pith__str_is(folder, ".")) folder = PITH_STR("");
    if (strlen(folder.data) != folder.size)
        return pith__fail(r->err, PITH_ERR_FORMAT,
                          "the path of module " PITH_STR_FMT " contains a NUL byte",
                          PITH_STR_ARG(name));
    pith_status status = class->read(r, folder);
    /* Without a folder of its own a config.json is that of the network. */
    if (!status && class->keys && folder.size)
        status = pith__module_keys_check(r, folder, class->keys);
    if (!status) return PITH_OK;
    return pith__fail_at(r->err, status,
                         "module " PITH_STR_FMT " (%s" PITH_STR_FMT "%s): ", PITH_STR_ARG(name),
                         folder.size ? "folder '" : "next to modules.json", PITH_STR_ARG(folder),
                         folder.size ? "'" : "");
}

/* More modules than this are no model. Each may read weights of its own. */
#define MODULES_MAX 64

typedef struct module_entry {
    pith_str type, path;
} module_entry;

typedef struct module_list {
    module_entry *entries;
    size_t count, capacity;
} module_list;

/* modules.json: a list of objects with `type`, the Python class, and `path`, the folder. The order
 * is that of the list; `idx` repeats it. */
static void modules_read_list(pith__json *j, pith__module_reader *r, void *to) {
    module_list *list = to;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        pith_str key;
        module_entry e = { PITH_STR(""), PITH_STR("") };
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) {
            if (pith__str_is(key, "type"))
                e.type = pith__json_copy(j, r->arena, pith__json_string(j));
            else if (pith__str_is(key, "path"))
                e.path = pith__json_copy(j, r->arena, pith__json_string(j));
            else
                pith__json_skip(j);
        }
        if (j->failed) return;
        if (list->count == MODULES_MAX) {
            pith__json_fail(j, PITH_ERR_UNSUPPORTED, "more than %d modules", MODULES_MAX);
            return;
        }
        void *entries = list->entries;
        if (!pith__arena_grow(r->arena, &entries, list->count, &list->capacity, sizeof e)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        list->entries = entries;
        list->entries[list->count++] = e;
    }
}

/* The last step, if it normalises, is done by the head after it has cut the vector. */
static void modules_finish(pith__modules *m) {
    if (!m->step_count || m->steps[m->step_count - 1].kind != PITH_STEP_NORMALIZE) return;
    m->normalize = true;
    m->step_count--;
}

/* A directory without modules.json. */
static pith_status modules_default(pith__module_reader *r) {
    bool is_static;
    PITH_TRY(pith__model2vec_read(&is_static, r));
    if (is_static) return PITH_OK;
    bool causal;
    PITH_TRY(pith__module_transformer_read(r, PITH_STR(""), &causal));
    r->modules->pooling = causal ? PITH_POOL_LAST : PITH_POOL_MEAN;
    return pith__module_decide(r, "pooling", PITH_STR(""), causal ? "config.json" : NULL, "%s",
                               causal ? "lasttoken" : "mean");
}

/* A network with a part for each of several tasks is opened for one, as for a route. */
static pith_status modules_task(pith__module_reader *r) {
    pith__modules *m = r->modules;
    pith_str list = PITH_STR(""), wanted = pith__str_of(r->source->route ? r->source->route : "");
    if (m->route.size || !m->task_count || !r->source->route) {
        if (m->task < 0) return PITH_OK;
        return pith__module_decide(r, "task", PITH_STR(""), "config.json", PITH_STR_FMT,
                                   PITH_STR_ARG(m->tasks[m->task]));
    }
    m->task = -1;
    for (size_t i = 0; i < m->task_count; i++) {
        if (pith__str_eq(m->tasks[i], wanted)) m->task = (int32_t)i;
        list = pith__arena_printf(r->arena, "%s%s" PITH_STR_FMT, list.data, i ? ", " : "",
                                  PITH_STR_ALL(m->tasks[i]));
        if (!list.data) return pith__fail_memory(r->err, 0);
    }
    if (m->task >= 0)
        return pith__module_decide(r, "task", PITH_STR(""), NULL, PITH_STR_FMT,
                                   PITH_STR_ARG(wanted));
    return pith__fail(r->err, PITH_ERR_ARGUMENT,
                      "pith_open_options.route: the model has no task '%s'; it has %s",
                      r->source->route, list.data);
}

/* What became of keys stands behind what was decided. */
static pith_status modules_keys_last(pith__modules *m, pith__arena *arena, pith_error *err) {
    static const char keys[] = "module settings ";
    size_t n = 0;
    if (!m->decision_count) return PITH_OK;
    pith__decision *sorted = pith__arena_array(arena, m->decision_count, sizeof *sorted);
    if (!sorted) return pith__fail_memory(err, m->decision_count * sizeof *sorted);
    for (int of_keys = 0; of_keys < 2; of_keys++)
        for (size_t i = 0; i < m->decision_count; i++)
            if (of_keys == !strncmp(m->decisions[i].what, keys, sizeof keys - 1))
                sorted[n++] = m->decisions[i];
    m->decisions = sorted;
    m->decision_capacity = n;
    return PITH_OK;
}

/* Modules are read in order, and each checks that it may follow the one before
 * (pith__module_needs). Settings of the directory come last, because some change what modules said.
 * Source: class SentenceTransformer of sentence-transformers. */
pith_status pith__modules_read(pith__modules *modules, const pith__modules_source *source,
                               pith__arena *arena, pith_error *err) {
    *modules = (pith__modules)PITH_MODULES_INIT;
    pith__module_reader r = { .modules = modules, .source = source, .arena = arena, .err = err };
    static const pith__module_keys keys = { .file = "modules.json",
                                            .reads = "type path",
                                            .ignores = "idx name kwargs" };
    module_list list = { NULL, 0, 0 };
    bool there;
    PITH_TRY(pith__module_json(&there, &r, PITH_STR(""), "modules.json", modules_read_list, &list));
    for (size_t i = 0; i < list.count; i++) {
        pith_status status = pith__module_read(&r, list.entries[i].type, list.entries[i].path);
        if (status) return pith__fail_at(err, status, "modules.json: ");
    }
    PITH_TRY(pith__module_keys_check(&r, PITH_STR(""), &keys));
    r.alone = !list.count;
    if (r.alone) PITH_TRY(modules_default(&r));
    if (r.task == PITH_TASK_FILL_MASK && !modules->sparse.only)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "the network's task is fill-mask, which only a module SpladePooling makes vectors of");
    if (r.task == PITH_TASK_GENERATE && !modules->rerank.only)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the network's task is text-generation, which only a module LogitScore "
                          "makes scores of");
    if (list.count && r.stage == PITH_STAGE_ROWS) modules->pooling = 0;
    modules_finish(modules);
    PITH_TRY(modules_settings(&r));
    PITH_TRY(modules_task(&r));
    PITH_TRY(modules_keys_last(modules, arena, err));
    if (!source->route || modules->route.size || modules->task_count) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "pith_open_options.route: the model has no routes, so there is none of the "
                      "name '%s'",
                      source->route);
}

/* ---- rows ---- */

/* Another output: the rows, each with its weight behind it. */
static pith_status modules_append_weights(int *output, pith__graph *graph, pith__value *rows,
                                          const pith__row_weights *w, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    pith__value *weights = w->make(graph, w->module, &fault);
    if (fault.code) return pith__fail(err, fault.code, "%s", fault.message);
    pith__value *both =
        pith__row_node(graph, PITH_STR("weights"), "Concat", (pith__value *[]){ rows, weights }, 2);
    if (!both || pith__node_set_int(both->producer, "axis", 2)) return pith__fail_memory(err, 0);
    return pith__row_output(output, graph, both, PITH_STR("pith.weighted_rows"), err);
}

/* Modules between the network and the pooling become nodes of the graph, so that they run packed
 * and fused like the rest of it. Their nodes compute in f32. */
pith_status pith__modules_append(int *output, pith__graph *graph, const pith__modules *m,
                                 pith_error *err) {
    if (!m->row_step_count) return PITH_OK;
    if (*output >= 0 && graph->outputs[*output]->type.rank == 2) return PITH_OK;
    if (*output < 0 || graph->outputs[*output]->type.rank != 3)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "module " PITH_STR_FMT
            " works on the vectors of tokens, which the graph does not have as an output",
            PITH_STR_ARG(m->row_steps[0].place));
    pith__value *rows = graph->outputs[*output];
    pith_error fault = PITH_ERROR_INIT;
    if (rows->type.dtype != PITH_F32) {
        rows = pith__row_node(graph, PITH_STR("rows"), "Cast", &rows, 1);
        if (!rows || pith__node_set_int(rows->producer, "to", PITH_F32))
            return pith__fail_memory(err, 0);
    }
    for (size_t i = 0; i < m->row_step_count; i++) {
        rows = m->row_steps[i].append(graph, rows, m->row_steps[i].module, &fault);
        if (!rows)
            return fault.code ? pith__fail(err, fault.code, "%s", fault.message)
                              : pith__fail_memory(err, 0);
    }
    PITH_TRY(pith__row_output(output, graph, rows, PITH_STR("pith.rows"), err));
    return m->row_weights.make ? modules_append_weights(output, graph, rows, &m->row_weights, err)
                               : PITH_OK;
}

int32_t pith__modules_max_length(const pith__modules *modules, int32_t flag, int32_t tokenizer) {
    int32_t length = modules->max_length ? modules->max_length : tokenizer;
    if (flag > 0) length = flag;
    if (modules->positions && (!length || length > modules->positions)) length = modules->positions;
    return length;
}
