/* gguf_settings.c - see gguf_settings.h. Source of the keys: llama.cpp, src/llama-arch.cpp. */
#include "formats/weights/gguf/gguf_settings.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* Behind "<architecture>.": they say nothing that the tensors do not say, or are about generating
 * text. */
static const char *const settings_harmless[] = {
    "vocab_size",
    "tensor_data_layout",
    "final_logit_softcapping",
    "embedding_length_out",
    "classifier.output_labels",
    "classifier.pooling_type",
    "decoder_start_token_id",
    "expert_gating_func",
    "n_deepstack_layers",
    "rope.scaling.finetuned",
    "use_parallel_residual",
};

/* Behind "<architecture>.": refused unless they have this value. */
static const struct {
    const char *key;
    double value;
} settings_fixed[] = {
    { "expert_count", 0 },
    { "expert_used_count", 0 },
    { "expert_shared_count", 0 },
    { "moe_every_n_layers", 0 },
    { "leading_dense_block_count", 0 },
    { "nextn_predict_layers", 0 },
    { "attn_logit_softcapping", 0 },
    { "logit_scale", 0 },
    { "residual_scale", 0 },
    { "embedding_scale", 0 },
    { "attention.max_alibi_bias", 0 },
    { "attention.clamp_kqv", 0 },
    { "attention.scale", 0 },
    { "attention.value_scale", 0 },
    { "attention.output_scale", 0 },
    { "attention.temperature_length", 0 },
    { "attention.temperature_scale", 0 },
    { "attention.sliding_window", 0 },
    { "attention.relative_buckets_count", 0 },
    { "attention.group_norm_groups", 0 },
    { "attention.shared_kv_layers", 0 },
    { "rope.scaling.alpha", 0 },
    { "rope.scaling.yarn_log_multiplier", 0 },
    { "rope.scaling.yarn_ext_factor", 1 },
};

static bool settings_begins(pith_str text, const char *with) {
    const size_t n = strlen(with);
    return text.size >= n && !memcmp(text.data, with, n);
}

/* What follows "<architecture>."; data NULL: it is not of the architecture. */
static pith_str settings_own(const pith__gguf_settings *s, pith_str key) {
    const size_t n = strlen(s->arch->name);
    if (!settings_begins(key, s->arch->name) || key.size <= n || key.data[n] != '.')
        return (pith_str){ NULL, 0 };
    return (pith_str){ key.data + n + 1, key.size - n - 1 };
}

static pith_status settings_architecture(pith__gguf_settings *s) {
    for (size_t i = 0; i < s->count; i++) {
        pith__gguf_setting *item = &s->items[i];
        if (!pith__str_is(item->entry.key, "general.architecture") ||
            item->entry.kind != PITH_GGUF_TEXT)
            continue;
        item->read = true;
        s->arch = pith__gguf_arch_find(item->entry.text);
        if (s->arch) return PITH_OK;
        return pith__fail(
            s->err, PITH_ERR_UNSUPPORTED,
            "%s: architecture '" PITH_STR_FMT "'; GGUF is read for " PITH_GGUF_ARCHS
            "; use the model's directory with config.json and safetensors, or an .onnx file",
            s->name, PITH_STR_ARG(item->entry.text));
    }
    return pith__fail(s->err, PITH_ERR_UNSUPPORTED, "%s: the file does not say its architecture",
                      s->name);
}

pith_status pith__gguf_settings_read(pith__gguf_settings *s, pith_str bytes, const char *name,
                                     pith__arena *arena, pith_error *err) {
    *s = (pith__gguf_settings){ .name = name, .err = err };
    PITH_TRY(pith__gguf_begin(&s->at, bytes, name, err));
    while (s->at.entries) {
        pith__gguf_entry e;
        PITH_TRY(pith__gguf_next(&s->at, &e));
        if (!pith__arena_grow(arena, (void **)&s->items, s->count, &s->capacity, sizeof *s->items))
            return pith__fail_memory(err, sizeof *s->items);
        s->items[s->count++] = (pith__gguf_setting){ .entry = e };
    }
    return settings_architecture(s);
}

const pith__gguf_entry *pith__gguf_setting_find(pith__gguf_settings *s, const char *key,
                                                pith__gguf_kind kind) {
    const bool general = settings_begins(pith__str_of(key), "general.") ||
                         settings_begins(pith__str_of(key), "split.");
    const pith__gguf_entry *found = NULL;
    for (size_t i = 0; i < s->count; i++) {
        pith__gguf_setting *item = &s->items[i];
        const pith_str own = general ? item->entry.key : settings_own(s, item->entry.key);
        const bool fits = item->entry.kind == kind ||
                          (kind == PITH_GGUF_REAL && item->entry.kind == PITH_GGUF_COUNT);
        if (!own.data || !pith__str_is(own, key) || !fits) continue;
        item->read = true;
        found = &item->entry; /* the last one counts */
    }
    return found;
}

uint64_t pith__gguf_setting_count(pith__gguf_settings *s, const char *key, uint64_t fallback) {
    const pith__gguf_entry *e = pith__gguf_setting_find(s, key, PITH_GGUF_COUNT);
    return e ? e->count : fallback;
}

double pith__gguf_setting_real(pith__gguf_settings *s, const char *key, double fallback) {
    const pith__gguf_entry *e = pith__gguf_setting_find(s, key, PITH_GGUF_REAL);
    return e ? e->real : fallback;
}

pith_status pith__gguf_setting_needed(int *value, pith__gguf_settings *s, const char *key) {
    const uint64_t count = pith__gguf_setting_count(s, key, 0);
    *value = (int)count;
    if (count && count <= INT32_MAX) return PITH_OK;
    return pith__fail(s->err, PITH_ERR_FORMAT,
                      "%s: no usable setting '%s.%s'; if a config.json is next to the file, give "
                      "the directory as the "
                      "model",
                      s->name, s->arch->name, key);
}

/* ---- what became of them ---- */

typedef enum { SETTING_READ, SETTING_IGNORED, SETTING_UNKNOWN, SETTING_OF_TOKENIZER } settings_fate;

static bool settings_one_of(const char *const *list, size_t count, pith_str key) {
    for (size_t i = 0; i < count; i++)
        if (pith__str_is(key, list[i])) return true;
    return false;
}

static pith_status settings_judge(settings_fate *fate, const pith__gguf_settings *s,
                                  const pith__gguf_setting *item) {
    const pith__gguf_entry *e = &item->entry;
    const pith_str own = settings_own(s, e->key);
    *fate = item->read ? SETTING_READ : SETTING_UNKNOWN;
    if (settings_begins(e->key, "tokenizer.")) *fate = SETTING_OF_TOKENIZER;
    if (*fate != SETTING_UNKNOWN) return PITH_OK;
    if (own.data)
        for (size_t i = 0; i < sizeof settings_fixed / sizeof *settings_fixed; i++) {
            if (!pith__str_is(own, settings_fixed[i].key)) continue;
            *fate = SETTING_READ;
            const bool number = e->kind == PITH_GGUF_COUNT || e->kind == PITH_GGUF_REAL;
            if (number && e->real == settings_fixed[i].value) return PITH_OK;
            return pith__fail(s->err, PITH_ERR_UNSUPPORTED,
                              "%s: '" PITH_STR_FMT
                              "' is set, which is not supported for the architecture %s",
                              s->name, PITH_STR_ARG(e->key), s->arch->name);
        }
    const bool harmless =
        own.data ? settings_one_of(settings_harmless,
                                   sizeof settings_harmless / sizeof *settings_harmless, own)
                 : settings_begins(e->key, "general.") || settings_begins(e->key, "quantize.") ||
                       settings_begins(e->key, "split.");
    if (harmless) *fate = SETTING_IGNORED;
    return PITH_OK;
}

static pith_status settings_note(pith_str *list, pith_str key, pith__arena *arena,
                                 pith_error *err) {
    *list = pith__arena_printf(arena, PITH_STR_FMT "%s" PITH_STR_FMT, PITH_STR_ALL(*list),
                               list->size ? ", " : "", PITH_STR_ALL(key));
    return list->data ? PITH_OK : pith__fail_memory(err, key.size);
}

/* Files that are no model, and parts of one. */
static pith_status settings_whole(pith__gguf_settings *s) {
    const pith__gguf_entry *type = pith__gguf_setting_find(s, "general.type", PITH_GGUF_TEXT);
    if (type && !pith__str_is(type->text, "model"))
        return pith__fail(s->err, PITH_ERR_UNSUPPORTED,
                          "%s: general.type is '" PITH_STR_FMT "'; only whole models are read",
                          s->name, PITH_STR_ARG(type->text));
    const uint64_t parts = pith__gguf_setting_count(s, "split.count", 0);
    if (parts > 1)
        return pith__fail(
            s->err, PITH_ERR_UNSUPPORTED,
            "%s: one of %llu parts of a model; join them with llama-gguf-split --merge", s->name,
            (unsigned long long)parts);
    return PITH_OK;
}

pith_status pith__gguf_settings_check(pith_str *read, pith_str *ignored, pith_str *unknown,
                                      pith__gguf_settings *s, pith__arena *arena,
                                      const pith_log *log) {
    pith_str *const lists[] = { read, ignored, unknown };
    *read = *ignored = *unknown = PITH_STR("");
    PITH_TRY(settings_whole(s));
    for (size_t i = 0; i < s->count; i++) {
        settings_fate fate;
        PITH_TRY(settings_judge(&fate, s, &s->items[i]));
        if (fate == SETTING_OF_TOKENIZER) continue;
        const pith_str key = s->items[i].entry.key;
        PITH_TRY(settings_note(lists[fate], key, arena, s->err));
        if (fate == SETTING_UNKNOWN)
            pith__log_write(log, PITH_LOG_WARNING,
                            "%s: '" PITH_STR_FMT
                            "' is not known and is ignored; if it changes what the model computes, "
                            "vectors differ",
                            s->name, PITH_STR_ARG(key));
    }
    return PITH_OK;
}
