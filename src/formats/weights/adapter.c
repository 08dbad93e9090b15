/* adapter.c - see adapter.h.
 *
 * Sources: peft 0.21, tuners/lora/config.py (keys), tuners/lora/layer.py (get_delta_weight,
 * scaling) and utils/save_and_load.py (names of tensors). The rank of a matrix is that of its
 * tensors, so rank_pattern needs no reading. */
#include "formats/weights/adapter.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/formats/json.h"
#include "base/half.h"
#include "base/memory/account.h"
#include "base/stop.h"
#include "base/str.h"
#include "models/hub/hub.h"

static const char adapter_config[] = "adapter_config.json";

enum { ADAPTER_LOOK = 1 << 20 };

typedef struct adapter_settings {
    double alpha;
    bool by_root; /* divided by the square root of the rank */
    pith_str base;
    pith__arena *arena;
} adapter_settings;

/* ---- settings ---- */

/* Keys that say how an adapter is trained, or which layers it has, which its tensors say too. */
static bool adapter_key_is_harmless(pith_str key) {
    static const char *const names[] = { "auto_mapping",
                                         "ensure_weight_tying",
                                         "exclude_modules",
                                         "inference_mode",
                                         "layers_pattern",
                                         "layers_to_transform",
                                         "lora_dropout",
                                         "megatron_config",
                                         "megatron_core",
                                         "modules_to_save",
                                         "peft_version",
                                         "qalora_group_size",
                                         "r",
                                         "rank_pattern",
                                         "revision",
                                         "runtime_config",
                                         "target_modules",
                                         "task_type" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pith__str_is(key, names[i])) return true;
    return false;
}

/* null, false, "none", {} or []. */
static bool adapter_value_is_empty(pith_str raw) {
    const bool list = raw.size >= 2 && (raw.data[0] == '{' || raw.data[0] == '[');
    size_t blanks = 0;
    if (list)
        for (size_t i = 1; i + 1 < raw.size; i++) blanks += (unsigned char)raw.data[i] <= ' ';
    return pith__str_is(raw, "null") || pith__str_is(raw, "false") ||
           pith__str_is(raw, "\"none\"") || (list && blanks + 2 == raw.size);
}

/* Ways of beginning a training that leave the weights as they are; others change them. */
static bool adapter_begins_plainly(pith_str raw) {
    static const char *const values[] = { "true",         "false",   "null",
                                          "\"gaussian\"", "\"eva\"", "\"orthogonal\"" };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (pith__str_is(raw, values[i])) return true;
    return false;
}

static void adapter_refuse(pith__json *j, pith_str key, pith_str raw) {
    pith__json_fail(
        j, PITH_ERR_UNSUPPORTED,
        "'" PITH_STR_FMT "' is " PITH_STR_FMT
        ", which is not supported: the adapter must be plain LoRA; merge it into the weights with "
        "merge_and_unload() of the package peft and save the model again",
        PITH_STR_ARG(key), PITH_STR_ARG(raw));
}

/* Of adapter_config.json three settings count. Every other key must be one that does not change
 * what the adapter computes, or have the value that switches it off: an unknown kind of adapter
 * must not be taken for plain LoRA. */
static void adapter_read(pith__json *j, adapter_settings *s) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "lora_alpha")) {
            s->alpha = pith__json_double(j);
        } else if (pith__str_is(key, "use_rslora")) {
            s->by_root = !pith__json_null(j) && pith__json_bool(j);
        } else if (pith__str_is(key, "base_model_name_or_path") &&
                   pith__json_peek(j) == PITH_JSON_STRING) {
            s->base = pith__json_copy(j, s->arena, pith__json_string(j));
        } else {
            const pith_str raw = pith__json_raw(j);
            if (j->failed || adapter_key_is_harmless(key) ||
                pith__str_is(key, "base_model_name_or_path"))
                continue;
            bool good = adapter_value_is_empty(raw);
            if (pith__str_is(key, "peft_type")) good = pith__str_is(raw, "\"LORA\"");
            if (pith__str_is(key, "init_lora_weights")) good = adapter_begins_plainly(raw);
            if (!good) adapter_refuse(j, key, raw);
        }
    }
}

/* The file is Python's json, which may hold NaN and Infinity. It is read once to find the base
 * model and once to apply the adapter. */
static pith_status adapter_settings_read(adapter_settings *s, const char *path,
                                         const pith_allocator *allocator, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT; /* of the scanner, which needs one: err may be NULL */
    pith__file file;
    pith__json j;
    PITH_TRY(pith__file_open(&file, path, false, allocator, err));
    pith__json_init(&j, (pith_str){ (const char *)file.data, file.size }, adapter_config, s->arena,
                    &fault);
    j.python = true;
    adapter_read(&j, s);
    pith__json_finish(&j);
    pith__file_close(&file);
    return j.failed ? pith__fail(err, fault.code, "%s", fault.message) : PITH_OK;
}

/* The network's directory is the base model if it can be found, in the cache or as a path; else the
 * adapter's own directory, if it has a config.json. A base model that is missing is an error only
 * then, since merged and copied directories keep the old name. */
pith_status pith__adapter_base(pith_str *base, bool *there, const char *dir, pith__arena *arena,
                               pith_error *err) {
    adapter_settings s = { .alpha = 8, .base = PITH_STR(""), .arena = arena };
    pith_error fault = PITH_ERROR_INIT;
    bool own;
    pith_str path, config;
    *base = pith__str_of(dir);
    PITH_TRY(pith__file_find(there, &path, arena, dir, adapter_config, err));
    if (!*there) return PITH_OK;
    PITH_TRY(adapter_settings_read(&s, path.data, arena->allocator, err));
    PITH_TRY(pith__file_find(&own, &config, arena, dir, "config.json", err));
    const bool named = s.base.size && !pith__str_is(s.base, ".");
    pith_status status = PITH_OK;
    bool found = false;
    if (named) {
        status = pith__hub_find(base, s.base.data, arena, &fault);
        if (!status)
            PITH_TRY(pith__file_find(&found, &config, arena, base->data, "config.json", err));
        if (found) return PITH_OK;
        *base = pith__str_of(dir);
    }
    if (own) return PITH_OK;
    if (!named)
        return pith__fail(
            err, PITH_ERR_NOT_FOUND,
            "%s: base_model_name_or_path is missing, and no config.json is next to the adapter",
            path.data);
    return pith__fail(err, PITH_ERR_NOT_FOUND,
                      "%s: the network that the adapter belongs to is not there: %s; fetch it with "
                      "'pith pull', or set "
                      "base_model_name_or_path to its directory",
                      path.data, status ? fault.message : "its directory has no config.json");
}

/* ---- tensors ---- */

static bool adapter_ends_in(pith_str name, const char *suffix) {
    const pith_str end = pith__str_of(suffix);
    return name.size >= end.size && !memcmp(name.data + name.size - end.size, end.data, end.size);
}

static float adapter_number(const pith_tensor *t, size_t i) {
    float number;
    uint16_t half;
    if (t->dtype == PITH_F32)
        return memcpy(&number, (const char *)t->data + 4 * i, sizeof number), number;
    memcpy(&half, (const char *)t->data + 2 * i, sizeof half);
    return t->dtype == PITH_F16 ? pith__f32_of_f16(half) : pith__f32_of_bf16(half);
}

/* Whether the call must end, asked before row i of so much work: every million steps. */
static bool adapter_stops(pith__stop *stop, size_t i, size_t work) {
    return i % (ADAPTER_LOOK / (work + 1) + 1) == 0 && pith__stop_asked(stop);
}

static bool adapter_is_matrix(const pith_tensor *t) {
    return t->rank == 2 && (t->dtype == PITH_F32 || t->dtype == PITH_F16 || t->dtype == PITH_BF16);
}

/* The matrix in f32, or turned round: [columns, rows]; incomplete if the call must end. NULL if
 * memory is out. */
static float *adapter_matrix(const pith_tensor *t, bool turned, pith__stop *stop,
                             pith__arena *arena) {
    const size_t rows = (size_t)t->dims[0], columns = (size_t)t->dims[1];
    float *made = pith__arena_alloc64(arena, rows * columns * sizeof *made);
    if (made)
        for (size_t i = 0; i < rows && !adapter_stops(stop, i, columns); i++)
            for (size_t k = 0; k < columns; k++)
                made[turned ? k * rows + i : i * columns + k] = adapter_number(t, i * columns + k);
    return made;
}

/* The tensor of the network that a name of the adapter means. An adapter may have been made for the
 * network with a task on top, or without: one of the names may have more in front. -1: there is
 * none; -2: there are several. */
static int64_t adapter_find(const pith__weights *weights, pith_str name) {
    for (pith_str rest = name; rest.size;) {
        const uint32_t place = pith__map_get(&weights->names, rest);
        if (place != UINT32_MAX) return place;
        const char *dot = memchr(rest.data, '.', rest.size);
        if (!dot) break;
        rest = (pith_str){ dot + 1, rest.size - (size_t)(dot + 1 - rest.data) };
        if (!memchr(rest.data, '.', rest.size)) break; /* "weight" alone is no name */
    }
    int64_t found = -1;
    for (size_t i = 0; i < weights->count; i++) {
        const pith_str key = weights->keys[i];
        if (key.size <= name.size || key.data[key.size - name.size - 1] != '.') continue;
        if (memcmp(key.data + key.size - name.size, name.data, name.size)) continue;
        if (found >= 0) return -2;
        found = (int64_t)i;
    }
    return found;
}

/* The network's tensor that belongs to one of the adapter; see adapter_find. */
static pith_status adapter_place(pith_tensor **to, pith__weights *weights, pith_str tensor,
                                 pith_str wanted, pith_error *err) {
    const int64_t place = adapter_find(weights, wanted);
    if (place < 0)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the adapter's tensor '" PITH_STR_FMT "' belongs to '" PITH_STR_FMT
                          "', of which the weights "
                          "have %s; is this the network that base_model_name_or_path means?",
                          PITH_STR_ARG(tensor), PITH_STR_ARG(wanted),
                          place == -1 ? "none" : "several");
    *to = &weights->items[place];
    return PITH_OK;
}

/* w += scale * b a, of w [out, in], b [out, rank], a [rank, in]. */
static void adapter_add(float *w, const float *a, const float *b, size_t out, size_t in,
                        size_t rank, float scale, float *row, pith__stop *stop) {
    for (size_t o = 0; o < out && !adapter_stops(stop, o, rank * in); o++) {
        memset(row, 0, in * sizeof *row);
        for (size_t k = 0; k < rank; k++)
            for (size_t i = 0; i < in; i++) row[i] += b[o * rank + k] * a[k * in + i];
        for (size_t i = 0; i < in; i++) w[o * in + i] += scale * row[i];
    }
}

/* Merges one pair of tensors. table: a and b are those of a table of vectors, whose matrix is
 * stored turned round. */
static pith_status adapter_merge(pith_tensor *w, const pith_tensor *a, const pith_tensor *b,
                                 bool table, pith_str name, const adapter_settings *s,
                                 pith__arena *arena, pith_error *err) {
    /* turned round, the roles change */
    const pith_tensor *down = table ? b : a, *up = table ? a : b;
    if (!adapter_is_matrix(w) || !adapter_is_matrix(a) || !adapter_is_matrix(b) ||
        a->dims[0] != b->dims[1] || a->dims[1] != w->dims[table ? 0 : 1] ||
        b->dims[0] != w->dims[table ? 1 : 0] || a->dims[0] < 1)
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "the adapter's tensors of '" PITH_STR_FMT
            "' do not fit the weights: matrices [rank, in] and [out, rank] of float32, float16 or "
            "bfloat16 are needed",
            PITH_STR_ARG(name));
    const size_t rank = (size_t)a->dims[0], out = (size_t)w->dims[0], in = (size_t)w->dims[1];
    const double scale = s->alpha / (s->by_root ? sqrt((double)rank) : (double)rank);
    pith__stop *stop = pith__account_stop(arena->allocator);
    float *sum = adapter_matrix(w, false, stop, arena),
          *row = pith__arena_alloc(arena, in * sizeof *row);
    const float *right = adapter_matrix(down, table, stop, arena),
                *left = adapter_matrix(up, table, stop, arena);
    if (!sum || !row || !right || !left) return pith__fail_memory(err, out * in * sizeof *sum);
    adapter_add(sum, right, left, out, in, rank, (float)scale, row, stop);
    PITH_TRY(pith__stop_check(stop, err));
    w->data = sum;
    w->dtype = PITH_F32;
    w->bytes = out * in * sizeof *sum;
    return PITH_OK;
}

/* A matrix of the adapter by its name without "base_model.model.", or a tensor that takes the place
 * of the network's. */
static pith_status adapter_take(pith__weights *weights, const pith__weights *own, size_t at,
                                pith_str name, const adapter_settings *s, pith_error *err) {
    static const char *const pairs[][2] = { { ".lora_A.weight", ".lora_B.weight" },
                                            { ".lora_embedding_A", ".lora_embedding_B" } };
    pith_tensor *to;
    for (size_t i = 0; i < 2; i++) {
        if (adapter_ends_in(name, pairs[i][1])) return PITH_OK; /* taken with the first */
        if (!adapter_ends_in(name, pairs[i][0])) continue;
        const pith_str key = own->keys[at], end = pith__str_of(pairs[i][0]);
        pith_str wanted = pith__arena_printf(weights->arena, "%.*s.weight",
                                             (int)(name.size - end.size), name.data);
        pith_str second = pith__arena_printf(weights->arena, "%.*s%s", (int)(key.size - end.size),
                                             key.data, pairs[i][1]);
        if (!wanted.data || !second.data) return pith__fail_memory(err, name.size);
        const pith_tensor *b = pith__weights_find(own, second);
        if (!b)
            return pith__fail(err, PITH_ERR_FORMAT, "the adapter has no tensor '" PITH_STR_FMT "'",
                              PITH_STR_ARG(second));
        PITH_TRY(adapter_place(&to, weights, key, wanted, err));
        return adapter_merge(to, &own->items[at], b, i == 1, name, s, weights->arena, err);
    }
    for (size_t i = 0; i + 5 <= name.size; i++)
        if (!memcmp(name.data + i, "lora_", 5))
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "the adapter's tensor '" PITH_STR_FMT
                              "' is not supported; supported are lora_A, lora_B, "
                              "lora_embedding_A and lora_embedding_B",
                              PITH_STR_ARG(own->keys[at]));
    PITH_TRY(adapter_place(&to, weights, own->keys[at], name, err));
    *to = own->items[at];
    return PITH_OK;
}

/* Tensors are merged into the weights before the graph is built, so that an adapter costs nothing
 * at run time. Names of PEFT's wrapper stand in front of those of the network. */
pith_status pith__adapter_apply(pith__weights *weights, const char *dir, pith__files *files,
                                pith_error *err) {
    static const char *const names[] = { "adapter_model.safetensors", "adapter_model.bin" };
    static const char prefix[] = "base_model.model.";
    adapter_settings s = { .alpha = 8, .base = PITH_STR(""), .arena = weights->arena };
    pith__weights own;
    const char *file;
    bool there;
    pith_str path;
    PITH_TRY(pith__file_find(&there, &path, weights->arena, dir, adapter_config, err));
    PITH_TRY(adapter_settings_read(&s, path.data, weights->arena->allocator, err));
    PITH_TRY(pith__file_find(&there, &path, weights->arena, dir, names[0], err));
    PITH_TRY(pith__weights_init(&own, weights->arena, err));
    PITH_TRY(pith__weights_read(&own, &file, dir, names[!there], files, err));
    for (size_t i = 0; i < own.count; i++) {
        pith_str name = own.keys[i];
        const size_t skip = sizeof prefix - 1;
        if (name.size > skip && !memcmp(name.data, prefix, skip))
            name = (pith_str){ name.data + skip, name.size - skip };
        pith_status status = adapter_take(weights, &own, i, name, &s, err);
        if (status) return pith__fail_at(err, status, "%s: ", file);
    }
    return own.count ? PITH_OK
                     : pith__fail(err, PITH_ERR_FORMAT, "%s: the adapter has no tensors", file);
}
