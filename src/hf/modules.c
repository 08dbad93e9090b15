/* modules.c - modules.json, 1_Pooling/config.json, sentence_bert_config.json, config.json and
 * config_sentence_transformers.json to one struct.
 *
 * Each file has a reader that fills its fields, and a table pairs files with readers. The layout is that of Sentence
 * Transformers: modules.json lists Transformer, Pooling and Normalize in the order they are applied, each with the
 * folder of its own config. Without modules.json the vector is the mean over tokens, not normalised. The other files
 * may be missing as well, except the config of a Pooling module that modules.json names. If a key is there twice, the
 * last one counts, as in Python. */
#include "hf/modules.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

/* A maximum length above this counts as none: transformers writes 1e30 for "no limit". */
#define LENGTH_MAX (1 << 30)

typedef struct reader {
    pith_modules *modules;
    const char *dir;
    const pith_allocator *allocator;
    pith_arena *arena;
    pith_error *err;
    pith_str pooling_dir, normalize_dir; /* of these modules; data is NULL if there is none */
} reader;

typedef void read_fn(pith_json *j, reader *r);

/* Reads a file under dir with fn, or nothing if it is not there. Strings that are kept must be copied by fn. */
static pith_status modules_read_file(bool *there, reader *r, const char *name, read_fn *fn) {
    pith_str path;
    PITH_TRY(pith_file_find(there, &path, r->arena, r->dir, name, r->err));
    if (!*there) return PITH_OK;
    pith_file file;
    PITH_TRY(pith_file_open(&file, path.data, false, r->allocator, r->err));
    pith_json j;
    pith_error fault = PITH_ERROR_INIT; /* the scanner's own: r->err may be NULL */
    pith_json_init(&j, (pith_str){ (const char *)file.data, file.size }, path.data, r->arena, &fault);
    fn(&j, r);
    pith_json_finish(&j);
    pith_file_close(&file);
    return j.failed ? pith_fail(r->err, fault.code, "%s", fault.message) : PITH_OK;
}

static int32_t modules_count(pith_json *j) {
    if (pith_json_null(j)) return 0;
    int64_t n = pith_json_int(j);
    return n > 0 && n < LENGTH_MAX ? (int32_t)n : 0;
}

/* Position tables of these families begin after the padding index. Source: transformers,
 * create_position_ids_from_input_ids. */
static bool positions_follow_padding(pith_str model_type) {
    static const char *const types[] = { "roberta",    "xlm-roberta",          "xlm-roberta-xl", "camembert", "mpnet",
                                         "longformer", "roberta-prelayernorm", "data2vec-text",  "ibert" };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (pith_str_is(model_type, types[i])) return true;
    return false;
}

static void modules_read_config(pith_json *j, reader *r) {
    pith_modules *m = r->modules;
    pith_str key;
    bool offset = false;
    int32_t pad = -1;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "max_position_embeddings"))
            m->positions = modules_count(j);
        else if (pith_str_is(key, "pad_token_id") && pith_json_peek(j) == PITH_JSON_NUMBER)
            pad = modules_count(j);
        else if (pith_str_is(key, "model_type") && pith_json_peek(j) == PITH_JSON_STRING)
            offset = positions_follow_padding(pith_json_string(j));
        else
            pith_json_skip(j);
    }
    m->pad_token_id = pad < 0 ? 0 : pad;
    int32_t first = pad < 0 ? 2 : pad + 1; /* the families above pad with 1 */
    if (offset && m->positions > first) m->positions -= first;
}

/* A string that must be the one given, or null: the key says how the vectors are made. */
static void expect_word(pith_json *j, const char *key, const char *known) {
    if (pith_json_null(j)) return;
    pith_str word = pith_json_string(j);
    if (!j->failed && !pith_str_is(word, known))
        pith_json_fail(j, PITH_ERR_UNSUPPORTED, "%s '" PITH_STR_FMT "' is not supported; supported is '%s'", key,
                       PITH_STR_ARG(word), known);
}

static void read_sentence_bert(pith_json *j, reader *r) {
    pith_str key;
    bool lower = false;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "max_seq_length"))
            r->modules->max_length = (int32_t)pith_json_limit(j, LENGTH_MAX);
        else if (pith_str_is(key, "do_lower_case"))
            lower = !pith_json_null(j) && pith_json_bool(j);
        else if (pith_str_is(key, "transformer_task"))
            expect_word(j, "transformer_task", "feature-extraction");
        else if (pith_str_is(key, "module_output_name"))
            expect_word(j, "module_output_name", "token_embeddings");
        else
            pith_json_skip(j);
    }
    if (lower)
        pith_json_fail(j, PITH_ERR_UNSUPPORTED,
                       "do_lower_case is not supported; use a tokenizer that makes texts lower case");
}

static void read_prompts(pith_json *j, reader *r) {
    pith_prompt *prompts = NULL;
    size_t n = 0, capacity = 0;
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_json_null(j)) continue;
        size_t i = 0;
        while (i < n && !pith_str_eq(prompts[i].name, key)) i++;
        if (i == n && !pith_arena_grow(r->arena, (void **)&prompts, n, &capacity, sizeof *prompts)) {
            pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        pith_str name = pith_json_copy(j, r->arena, key);
        pith_str text = pith_json_copy(j, r->arena, pith_json_string(j));
        prompts[i] = (pith_prompt){ name, text };
        n += i == n;
    }
    r->modules->prompts = prompts;
    r->modules->prompt_count = n;
}

static void read_sentence_transformers(pith_json *j, reader *r) {
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        bool prompts = pith_str_is(key, "prompts"), name = pith_str_is(key, "default_prompt_name");
        if ((prompts || name) && pith_json_null(j)) continue;
        if (prompts)
            read_prompts(j, r);
        else if (name)
            r->modules->default_prompt = pith_json_copy(j, r->arena, pith_json_string(j));
        else
            pith_json_skip(j);
    }
    const pith_modules *m = r->modules;
    size_t i = 0;
    if (j->failed || !m->default_prompt.data) return;
    while (i < m->prompt_count && !pith_str_eq(m->prompts[i].name, m->default_prompt)) i++;
    if (i == m->prompt_count)
        pith_json_fail(j, PITH_ERR_FORMAT, "default_prompt_name '" PITH_STR_FMT "' is not the name of a prompt",
                       PITH_STR_ARG(m->default_prompt));
}

/* In the order in which the parts of a vector stand. */
static const struct {
    const char *key, *name;
    uint32_t mode;
} modes[PITH_POOL_MODES] = {
    { "pooling_mode_cls_token", "cls", PITH_POOL_CLS },
    { "pooling_mode_max_tokens", "max", PITH_POOL_MAX },
    { "pooling_mode_mean_tokens", "mean", PITH_POOL_MEAN },
    { "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PITH_POOL_MEAN_SQRT },
    { "pooling_mode_weightedmean_tokens", "weightedmean", PITH_POOL_WEIGHTED },
    { "pooling_mode_lasttoken", "lasttoken", PITH_POOL_LAST },
};

/* One mode's name, to come after those of `from` and below. */
static void modules_read_mode(pith_json *j, uint32_t *pooling, size_t *from) {
    pith_str name = pith_json_string(j);
    size_t i = *from;
    while (i < PITH_POOL_MODES && !pith_str_is(name, modes[i].name)) i++;
    if (!j->failed && i == PITH_POOL_MODES)
        pith_json_fail(j, PITH_ERR_UNSUPPORTED, "pooling mode '" PITH_STR_FMT "' is unknown, repeated or out of order",
                       PITH_STR_ARG(name));
    if (i < PITH_POOL_MODES) *pooling |= modes[i].mode;
    *from = i + 1;
}

/* pooling_mode: a name or a list of them, as sentence-transformers 6 writes it. */
static uint32_t read_modes(pith_json *j) {
    uint32_t pooling = 0;
    size_t from = 0;
    if (pith_json_peek(j) != PITH_JSON_ARRAY) {
        modules_read_mode(j, &pooling, &from);
        return pooling;
    }
    pith_json_array(j);
    while (pith_json_next_item(j)) modules_read_mode(j, &pooling, &from);
    return pooling;
}

static void read_pooling(pith_json *j, reader *r) {
    pith_str key;
    uint32_t pooling = 0, named = 0; /* by a flag each, and by pooling_mode, which counts where it is given */
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        size_t i = 0;
        while (i < PITH_POOL_MODES && !pith_str_is(key, modes[i].key)) i++;
        if (i < PITH_POOL_MODES)
            pooling = (pooling & ~modes[i].mode) | (pith_json_bool(j) ? modes[i].mode : 0);
        else if (pith_str_is(key, "pooling_mode"))
            named = read_modes(j);
        else if (pith_str_is(key, "include_prompt"))
            r->modules->include_prompt = pith_json_bool(j);
        else
            pith_json_skip(j);
    }
    if (named) pooling = named;
    if (!j->failed && !pooling) pith_json_fail(j, PITH_ERR_UNSUPPORTED, "no supported pooling mode is set");
    r->modules->pooling = pooling;
}

static void read_normalize(pith_json *j, reader *r) {
    pith_str key;
    (void)r;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "module_input_name"))
            expect_word(j, "module_input_name", "sentence_embedding");
        else if (pith_str_is(key, "module_output_name"))
            expect_word(j, "module_output_name", "sentence_embedding");
        else
            pith_json_skip(j);
    }
}

/* One module of the list; the order must be Transformer, Pooling, Normalize. */
static void add_module(pith_json *j, reader *r, pith_str type, pith_str path) {
    size_t dot = type.size; /* the last part of the Python class is its name */
    while (dot && type.data[dot - 1] != '.') dot--;
    pith_str name = { type.data + dot, type.size - dot };
    bool pooling = pith_str_is(name, "Pooling"), normalize = pith_str_is(name, "Normalize");
    if (!pooling && !normalize && !pith_str_is(name, "Transformer"))
        pith_json_fail(j, PITH_ERR_UNSUPPORTED,
                       "module '" PITH_STR_FMT "' is not supported; supported are Transformer, Pooling and Normalize",
                       PITH_STR_ARG(type));
    else if (r->normalize_dir.data || (r->pooling_dir.data && !normalize))
        pith_json_fail(j, PITH_ERR_UNSUPPORTED, "module '" PITH_STR_FMT "' comes after another %s", PITH_STR_ARG(type),
                       r->normalize_dir.data ? "Normalize" : "Pooling");
    else if (pooling && !path.size)
        pith_json_fail(j, PITH_ERR_FORMAT, "the module Pooling has no path; give the folder of its config.json");
    else if (pooling)
        r->pooling_dir = pith_json_copy(j, r->arena, path);
    else if (normalize)
        r->normalize_dir = pith_json_copy(j, r->arena, path);
    else if (path.size && !pith_str_is(path, "."))
        pith_json_fail(j, PITH_ERR_UNSUPPORTED,
                       "module Transformer is in the folder '" PITH_STR_FMT "'; move its files next to modules.json",
                       PITH_STR_ARG(path));
}

static void modules_read_modules(pith_json *j, reader *r) {
    pith_json_array(j);
    while (pith_json_next_item(j)) {
        pith_str key, type = PITH_STR(""), path = PITH_STR("");
        pith_json_object(j);
        while (pith_json_next_key(j, &key)) {
            if (pith_str_is(key, "type"))
                type = pith_json_string(j);
            else if (pith_str_is(key, "path"))
                path = pith_json_string(j);
            else
                pith_json_skip(j);
        }
        if (!j->failed) add_module(j, r, type, path);
    }
    r->modules->normalize = r->normalize_dir.data;
}

/* The config.json in a module's folder. */
static pith_status read_module(bool *there, reader *r, pith_str dir, read_fn *fn) {
    pith_str config = pith_arena_printf(r->arena, "%s/config.json", dir.data);
    if (!config.data) return pith_fail_memory(r->err, dir.size);
    return modules_read_file(there, r, config.data, fn);
}

/* What older versions of Sentence Transformers called the same file; the first that is there counts. */
static pith_status read_limits(reader *r) {
    static const char *const names[] = {
        "bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"
    };
    bool there = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !there; i++) {
        pith_str name = pith_arena_printf(r->arena, "sentence_%s_config.json", names[i]);
        if (!name.data) return pith_fail_memory(r->err, 64);
        PITH_TRY(modules_read_file(&there, r, name.data, read_sentence_bert));
    }
    return PITH_OK;
}

pith_status pith_modules_read(pith_modules *modules, const char *dir, const pith_allocator *allocator,
                              pith_arena *arena, pith_error *err) {
    *modules = (pith_modules){ .pooling = PITH_POOL_MEAN, .include_prompt = true };
    reader r = { modules, dir, allocator, arena, err, { NULL, 0 }, { NULL, 0 } };
    bool there;
    PITH_TRY(modules_read_file(&there, &r, "config.json", modules_read_config));
    PITH_TRY(read_limits(&r));
    PITH_TRY(modules_read_file(&there, &r, "config_sentence_transformers.json", read_sentence_transformers));
    PITH_TRY(modules_read_file(&there, &r, "modules.json", modules_read_modules));
    if (r.normalize_dir.size) PITH_TRY(read_module(&there, &r, r.normalize_dir, read_normalize));
    if (!r.pooling_dir.data) return PITH_OK;
    PITH_TRY(read_module(&there, &r, r.pooling_dir, read_pooling));
    if (there) return PITH_OK;
    return pith_fail(
        err, PITH_ERR_NOT_FOUND,
        "%s: modules.json names the folder '%s', but %s/config.json is not there; fetch the model with its "
        "folders",
        dir, r.pooling_dir.data, r.pooling_dir.data);
}

int32_t pith_modules_max_length(const pith_modules *modules, int32_t flag, int32_t tokenizer) {
    int32_t length = flag > 0 ? flag : modules->max_length ? modules->max_length : tokenizer;
    if (modules->positions && (!length || length > modules->positions)) length = modules->positions;
    return length;
}
