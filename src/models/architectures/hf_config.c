/* hf_config.c - reads config.json in one pass with a table of keys. Other keys are skipped here;
 * hf_keys.c says what becomes of them. */
#include "models/architectures/hf_config.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/str.h"
#include "models/architectures/family.h"
#include "models/architectures/hf_keys.h"

typedef enum { INT, REAL, BOOL, STRING } kind;

#define AT(member) offsetof(pith__hf_config, member)

static const struct {
    const char *key;
    kind kind;
    size_t at;
} keys[] = {
    { "activation", STRING, AT(hidden_act) },
    { "activation_function", STRING, AT(hidden_act) },
    { "dim", INT, AT(hidden_size) },
    { "hidden_act", STRING, AT(hidden_act) },
    { "hidden_dim", INT, AT(intermediate_size) },
    { "hidden_size", INT, AT(hidden_size) },
    { "intermediate_size", INT, AT(intermediate_size) },
    { "is_decoder", BOOL, AT(is_decoder) },
    { "layer_norm_eps", REAL, AT(layer_norm_eps) },
    { "layer_norm_epsilon", REAL, AT(layer_norm_eps) },
    { "max_position_embeddings", INT, AT(positions) },
    { "model_type", STRING, AT(model_type) },
    { "n_embd", INT, AT(hidden_size) },
    { "n_head", INT, AT(heads) },
    { "n_heads", INT, AT(heads) },
    { "n_inner", INT, AT(intermediate_size) },
    { "n_layer", INT, AT(layers) },
    { "n_layers", INT, AT(layers) },
    { "n_positions", INT, AT(positions) },
    { "num_attention_heads", INT, AT(heads) },
    { "num_hidden_layers", INT, AT(layers) },
    { "pad_token_id", INT, AT(pad_token_id) },
    { "position_embedding_type", STRING, AT(position_embedding_type) },
    { "relative_attention_num_buckets", INT, AT(relative_buckets) },
    { "type_vocab_size", INT, AT(types) },
    { "vocab_size", INT, AT(vocab_size) },
};

static bool hf_config_ends_in(pith_str name, const char *suffix) {
    const size_t size = strlen(suffix);
    return name.size >= size && !memcmp(name.data + name.size - size, suffix, size);
}

static void hf_config_read_value(pith__json *j, kind what, void *to) {
    switch (what) {
    case INT: *(int64_t *)to = pith__json_int(j); break;
    case REAL: *(double *)to = pith__json_double(j); break;
    case BOOL: *(bool *)to = pith__json_bool(j); break;
    case STRING: *(pith_str *)to = pith__json_string(j); break;
    }
}

/* Reads an object of keys into *config. A value of null counts as none, but for a padding token. */
static void hf_config_read_keys(pith__json *j, pith__hf_config *config) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        size_t i = 0, count = sizeof keys / sizeof *keys;
        while (i < count && !pith__str_is(key, keys[i].key)) i++;
        if (pith__str_is(key, "use_flash_attn")) config->flash = true;
        if (i == count && pith__str_is(key, "architectures") &&
            pith__json_peek(j) == PITH_JSON_ARRAY) {
            for (pith__json_array(j); pith__json_next_item(j);)
                if (pith__json_peek(j) == PITH_JSON_STRING)
                    config->classifier |=
                        hf_config_ends_in(pith__json_string(j), "ForSequenceClassification");
                else
                    pith__json_skip(j);
        } else if (i == count)
            pith__json_skip(j);
        else if (!pith__json_null(j))
            hf_config_read_value(j, keys[i].kind, (char *)config + keys[i].at);
        else if (keys[i].at == AT(pad_token_id))
            config->pad_token_id = -1;
    }
    pith__json_finish(j);
}

pith_status pith__hf_config_read(pith__hf_config *config, pith_str text, const char *name,
                                 pith__arena *arena, pith_error *err) {
    pith_error local = PITH_ERROR_INIT;
    pith__json j;
    *config = (pith__hf_config){ .model_type = PITH_STR(""),
                                 .hidden_act = PITH_STR("gelu"),
                                 .position_embedding_type = PITH_STR("absolute"),
                                 .layer_norm_eps = 1e-12,
                                 .pad_token_id = -1,
                                 .text = text,
                                 .arena = arena,
                                 .name = name };
    pith__json_init(&j, text, name, arena, err ? err : &local);
    j.python = true;
    hf_config_read_keys(&j, config);
    return j.failed ? j.err->code : PITH_OK;
}

pith_status pith__hf_config_complete(pith__hf_config *config, const char *reads, pith_error *err) {
    pith_error local = PITH_ERROR_INIT;
    pith__json j;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        pith_str value;
        if (!pith__hf_keys_default(&value, reads, pith__str_of(keys[i].key))) continue;
        if (keys[i].kind == STRING) {
            *(pith_str *)((char *)config + keys[i].at) = value;
            continue;
        }
        pith__json_init(&j, value, config->name, config->arena, err ? err : &local);
        hf_config_read_value(&j, keys[i].kind, (char *)config + keys[i].at);
    }
    config->reads = reads;
    pith__json_init(&j, config->text, config->name, config->arena, err ? err : &local);
    j.python = true;
    hf_config_read_keys(&j, config);
    return j.failed ? j.err->code : PITH_OK;
}

bool pith__hf_config_has(const pith__hf_config *config, const char *wanted) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str key;
    bool found = false;
    pith__json_init(&j, config->text, config->name, config->arena, &err);
    j.python = true;
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        found |= pith__str_is(key, wanted);
        pith__json_skip(&j);
    }
    return found;
}

bool pith__hf_takes_jina_bert(const pith__hf_config *config) {
    return pith__str_is(config->position_embedding_type, "alibi");
}

/* use_flash_attn is a setting of that code alone. */
bool pith__hf_takes_jina_xlm_roberta(const pith__hf_config *config) {
    return config->flash || pith__str_is(config->position_embedding_type, "rotary");
}

/* The code beside the weights of NomicBERT writes the names of GPT-2; transformers 5 does not. */
bool pith__hf_takes_nomic_native(const pith__hf_config *config) {
    return !pith__hf_config_has(config, "n_embd") &&
           !pith__hf_config_has(config, "rotary_emb_fraction") &&
           !pith__hf_config_has(config, "auto_map");
}
