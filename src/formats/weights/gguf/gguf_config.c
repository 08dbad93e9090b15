/* gguf_config.c - see gguf_config.h. Source: llama.cpp, src/llama-model.cpp and src/models, for
 * defaults. */
#include "formats/weights/gguf/gguf_config.h"

#include <math.h>

#include "base/error.h"
#include "base/formats/decimal.h"
#include "base/str.h"

typedef struct gguf_config {
    pith__gguf_settings *s;
    const pith__weights *weights;
    pith__arena *arena;
    int layers, hidden, inner, heads, shared, size; /* shared: heads of keys and values; size: of a
                                                       head */
} gguf_config;

typedef struct real {
    char text[PITH_DECIMAL_CHARS];
} real;

/* All digits of a number, for JSON. */
static real real_text(double x) {
    real r;
    pith__decimal_print(r.text, 17, x);
    return r;
}

/* Rows of a table; 0: there is no such tensor, which the builder of the graph reports. */
static long long config_rows(const gguf_config *c, const char *name) {
    const pith_tensor *t = pith__weights_find(c->weights, pith__str_of(name));
    return t && t->rank ? (long long)t->dims[0] : 0;
}

static const char *config_has(const gguf_config *c, const char *name) {
    return pith__weights_find(c->weights, pith__str_of(name)) ? "true" : "false";
}

static pith_status config_refuse(const gguf_config *c, const char *key, const char *why) {
    return pith__fail(c->s->err, PITH_ERR_UNSUPPORTED, "%s: '%s.%s' %s", c->s->name,
                      c->s->arch->name, key, why);
}

static pith_status config_sizes(gguf_config *c) {
    pith__gguf_settings *s = c->s;
    PITH_TRY(pith__gguf_setting_needed(&c->layers, s, "block_count"));
    PITH_TRY(pith__gguf_setting_needed(&c->hidden, s, "embedding_length"));
    PITH_TRY(pith__gguf_setting_needed(&c->inner, s, "feed_forward_length"));
    PITH_TRY(pith__gguf_setting_needed(&c->heads, s, "attention.head_count"));
    const uint64_t shared =
        pith__gguf_setting_count(s, "attention.head_count_kv", (uint64_t)c->heads);
    const uint64_t size =
        pith__gguf_setting_count(s, "attention.key_length", (uint64_t)(c->hidden / c->heads));
    if (!shared || shared > (uint64_t)c->heads)
        return config_refuse(c, "attention.head_count_kv", "must be from 1 to the number of heads");
    if (!size || size > 1 << 16)
        return config_refuse(c, "attention.key_length", "is no size of a head");
    c->shared = (int)shared;
    c->size = (int)size;
    if (!c->s->arch->decoder && (c->shared != c->heads || (int64_t)c->size * c->heads != c->hidden))
        return config_refuse(c, "attention.head_count",
                             "times the size of a head must be embedding_length");
    if (pith__gguf_setting_count(s, "attention.value_length", size) != size)
        return config_refuse(c, "attention.value_length",
                             "differs from key_length, which is not supported");
    return PITH_OK;
}

/* An epsilon that must be there. */
static pith_status config_epsilon(double *eps, const gguf_config *c, const char *key) {
    *eps = pith__gguf_setting_real(c->s, key, -1);
    if (*eps >= 0 && isfinite(*eps)) return PITH_OK;
    return pith__fail(c->s->err, PITH_ERR_FORMAT, "%s: no usable setting '%s.%s'", c->s->name,
                      c->s->arch->name, key);
}

/* "rope_scaling": … with a comma in front; "": none. */
static pith_status config_scaling(pith_str *json, const gguf_config *c) {
    pith__gguf_settings *s = c->s;
    const pith__gguf_entry *type = pith__gguf_setting_find(s, "rope.scaling.type", PITH_GGUF_TEXT);
    const double old = pith__gguf_setting_real(s, "rope.scale_linear", 1);
    const double factor = pith__gguf_setting_real(s, "rope.scaling.factor", old);
    const double positions = pith__gguf_setting_real(s, "rope.scaling.original_context_length", 0);
    const double fast = pith__gguf_setting_real(s, "rope.scaling.yarn_beta_fast", 32);
    const double slow = pith__gguf_setting_real(s, "rope.scaling.yarn_beta_slow", 1);
    double attention = pith__gguf_setting_real(s, "rope.scaling.attn_factor", 1);
    attention *= pith__gguf_setting_real(s, "rope.scaling.yarn_attn_factor", 1);
    const bool yarn = type && pith__str_is(type->text, "yarn");
    *json = PITH_STR("");
    if (type && !yarn && !pith__str_is(type->text, "linear") && !pith__str_is(type->text, "none"))
        return config_refuse(c, "rope.scaling.type",
                             "is none of none, linear and yarn, which are supported");
    if (!yarn && attention != 1)
        return config_refuse(c, "rope.scaling.attn_factor", "is supported with yarn only");
    if ((type && pith__str_is(type->text, "none")) || !(factor > 0) || (!yarn && factor == 1))
        return PITH_OK;
    if (yarn && !(positions > 0))
        return config_refuse(c, "rope.scaling.original_context_length", "is needed for yarn");
    if (yarn) /* llama.cpp's factor goes on top of the one that follows from the scaling */
        *json = pith__arena_printf(
            c->arena,
            ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":%s,"
            "\"original_max_position_embeddings\":%s,\"beta_fast\":%s,\"beta_slow\":%s,"
            "\"attention_factor\":%s}",
            real_text(factor).text, real_text(positions).text, real_text(fast).text,
            real_text(slow).text,
            real_text(attention * (factor > 1 ? 0.1 * log(factor) + 1 : 1)).text);
    else
        *json = pith__arena_printf(c->arena,
                                   ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":%s}",
                                   real_text(factor).text);
    return json->data ? PITH_OK : pith__fail_memory(s->err, 256);
}

static pith_status config_rotary(pith_str *json, const gguf_config *c) {
    pith_str scaling;
    PITH_TRY(config_scaling(&scaling, c));
    if (pith__gguf_setting_count(c->s, "rope.dimension_count", (uint64_t)c->size) !=
        (uint64_t)c->size)
        return config_refuse(c, "rope.dimension_count",
                             "differs from the size of a head, which is not supported");
    *json =
        pith__arena_printf(c->arena, ",\"rope_theta\":%s" PITH_STR_FMT,
                           real_text(pith__gguf_setting_real(c->s, "rope.freq_base", 10000)).text,
                           PITH_STR_ALL(scaling));
    return json->data ? PITH_OK : pith__fail_memory(c->s->err, 256);
}

/* Each `every`-th layer attends to all tokens, or a list says which do not. */
static pith_status config_pattern(pith_str *json, const gguf_config *c) {
    static const char key[] = "attention.sliding_window_pattern";
    const pith__gguf_entry *list = pith__gguf_setting_find(c->s, key, PITH_GGUF_NUMBERS);
    const uint64_t every = pith__gguf_setting_count(c->s, key, 6);
    if (!list && (!every || every > 1 << 12))
        return config_refuse(c, key, "must be from 1 to 4096");
    *json = pith__arena_printf(c->arena, ",\"_sliding_window_pattern\":%llu",
                               (unsigned long long)every);
    if (list && list->count < (uint64_t)c->layers)
        return config_refuse(c, key, "is shorter than block_count");
    if (list)
        for (int i = 0; i < c->layers && json->data; i++)
            *json = pith__arena_printf(
                c->arena, PITH_STR_FMT "%s\"%s\"%s", PITH_STR_ALL(*json),
                i ? "," : ",\"layer_types\":[",
                pith__gguf_number(list, (uint64_t)i) != 0 ? "sliding_attention" : "full_attention",
                i + 1 == c->layers ? "]" : "");
    return json->data ? PITH_OK : pith__fail_memory(c->s->err, 64);
}

/* What Gemma's layers with a window need. */
static pith_status config_windows(pith_str *json, const gguf_config *c) {
    int window;
    pith_str pattern = PITH_STR("");
    PITH_TRY(pith__gguf_setting_needed(&window, c->s, "attention.sliding_window"));
    PITH_TRY(config_pattern(&pattern, c));
    *json = pith__arena_printf(
        c->arena,
        ",\"sliding_window\":%d,\"rope_local_base_freq\":%s,\"query_pre_attn_scalar\":%d,"
        "\"use_bidirectional_attention\":true" PITH_STR_FMT,
        window, real_text(pith__gguf_setting_real(c->s, "rope.freq_base_swa", 10000)).text, c->size,
        PITH_STR_ALL(pattern));
    return json->data ? PITH_OK : pith__fail_memory(c->s->err, 256);
}

static pith_status config_decoder(pith_str *json, const gguf_config *c) {
    double eps;
    int positions;
    pith_str rotary, windows = PITH_STR("");
    PITH_TRY(config_epsilon(&eps, c, "attention.layer_norm_rms_epsilon"));
    PITH_TRY(pith__gguf_setting_needed(&positions, c->s, "context_length"));
    PITH_TRY(config_rotary(&rotary, c));
    const uint64_t causal = pith__gguf_setting_count(c->s, "attention.causal", 1);
    if (c->s->arch->windows) PITH_TRY(config_windows(&windows, c));
    *json = pith__arena_printf(
        c->arena,
        "{\"model_type\":\"%s\",\"num_hidden_layers\":%d,\"hidden_size\":%d,\"intermediate_size\":%"
        "d,"
        "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"head_dim\":%d,\"rms_norm_eps\":%s,"
        "\"max_position_embeddings\":%d,\"vocab_size\":%lld,\"attention_bias\":%s,\"is_causal\":%"
        "s" PITH_STR_FMT PITH_STR_FMT "}",
        c->s->arch->model_type, c->layers, c->hidden, c->inner, c->heads, c->shared, c->size,
        real_text(eps).text, positions, config_rows(c, "embed_tokens.weight"),
        config_has(c, "layers.0.self_attn.o_proj.bias"), causal ? "true" : "false",
        PITH_STR_ALL(rotary), PITH_STR_ALL(windows));
    return json->data ? PITH_OK : pith__fail_memory(c->s->err, 256);
}

static pith_status config_encoder(pith_str *json, const gguf_config *c) {
    double eps;
    pith_str rotary = PITH_STR("");
    PITH_TRY(config_epsilon(&eps, c, "attention.layer_norm_epsilon"));
    if (pith__gguf_setting_count(c->s, "attention.causal", 0))
        return config_refuse(c, "attention.causal",
                             "is true, which is not supported for this architecture");
    if (c->s->arch->rotary) {
        PITH_TRY(config_rotary(&rotary, c));
        if (*config_has(c, "encoder.layers.0.attn.Wqkv.bias") == 't')
            return pith__fail(c->s->err, PITH_ERR_UNSUPPORTED, "%s: biases of %s are not supported",
                              c->s->name, c->s->arch->name);
    }
    *json = pith__arena_printf(
        c->arena,
        "{\"model_type\":\"%s\",\"num_hidden_layers\":%d,\"hidden_size\":%d,"
        "\"intermediate_size\":%d,\"num_attention_heads\":%d,\"max_position_embeddings\":%lld,"
        "\"type_vocab_size\":%lld,\"vocab_size\":%lld,\"hidden_act\":\"%s\","
        "\"layer_norm_eps\":%s" PITH_STR_FMT "}",
        c->s->arch->model_type, c->layers, c->hidden, c->inner, c->heads,
        c->s->arch->rotary ? (long long)pith__gguf_setting_count(c->s, "context_length", 2048)
                           : config_rows(c, "embeddings.position_embeddings.weight"),
        config_rows(c, "embeddings.token_type_embeddings.weight"),
        config_rows(c, "embeddings.word_embeddings.weight"), c->s->arch->rotary ? "silu" : "gelu",
        real_text(eps).text, PITH_STR_ALL(rotary));
    return json->data ? PITH_OK : pith__fail_memory(c->s->err, 256);
}

pith_status pith__gguf_config(pith_str *config, pith__gguf_settings *settings,
                              const pith__weights *weights, pith__arena *arena) {
    gguf_config c = { .s = settings, .weights = weights, .arena = arena };
    PITH_TRY(config_sizes(&c));
    return settings->arch->decoder ? config_decoder(config, &c) : config_encoder(config, &c);
}
