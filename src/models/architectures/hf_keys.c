/* hf_keys.c - see hf_keys.h. tests/comparisons/compare_configs.py compares the lists of all
 * families with the configuration classes of transformers. */
#include "models/architectures/hf_keys.h"

#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text_out.h"

/* What any config.json may have: attributes of PretrainedConfig, of generation, and notes of tools.
 * Those that other files of Pith read (labels.c, hf_tasks.c, module_transformer.c) are here too. */
static const char hf_keys_common[] =
    "_attn_implementation _attn_implementation_autoset _commit_hash _experts_implementation "
    "_name_or_path "
    "_num_labels _output_attentions adapters architectures attn_implementation bad_words_ids "
    "begin_suppress_tokens "
    "bos_token_id chunk_size_feed_forward cls_token_id decoder_start_token_id directionality "
    "diversity_penalty "
    "do_sample dtype early_stopping encoder_no_repeat_ngram_size eos_token_id "
    "exponential_decay_length_penalty "
    "finetuning_task forced_bos_token_id forced_eos_token_id generation_max_length "
    "gradient_checkpointing "
    "hidden_dropout_prob id2label initializer_factor initializer_range is_encoder_decoder label2id "
    "language "
    "length_penalty mask_token_id max_length min_length model_max_length model_type name "
    "no_repeat_ngram_size "
    "num_beam_groups num_beams num_labels num_return_sequences output_attentions "
    "output_hidden_states output_past "
    "output_scores pad_token_id pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers "
    "pooler_size_per_head "
    "pooler_type prefix problem_type remove_invalid_values repetition_penalty return_dict "
    "return_dict_in_generate "
    "sbert_ce_default_activation_function sentence_transformers sep_token_id suppress_tokens "
    "task_specific_params "
    "temperature tf_legacy_loss tie_encoder_decoder tie_word_embeddings tokenizer_class top_k "
    "top_p torch_dtype "
    "torchscript transformers.js_config transformers_version typical_p unk_token_id use_bfloat16 "
    "use_cache "
    "use_return_dict";
/* What PretrainedConfig has and no network here does. */
static const char hf_keys_common_fixed[] =
    "add_cross_attention=false cross_attention_hidden_size=null is_decoder=false pruned_heads={} "
    "quantization_config=null";

/* The next word of a list: a key and, behind '=', a value. */
static bool hf_keys_next(const char **list, pith_str *key, pith_str *value) {
    const char *p = *list ? *list : "";
    p += strspn(p, " ");
    size_t size = strcspn(p, " "), name = strcspn(p, " =");
    *key = (pith_str){ p, name };
    *value = (pith_str){ p + name + (name < size), size - name - (name < size) };
    *list = p + size;
    return size > 0;
}

bool pith__hf_keys_find(pith_str *value, const char *list, pith_str wanted) {
    pith_str key;
    while (hf_keys_next(&list, &key, value))
        if (pith__str_eq(key, wanted)) return true;
    return false;
}

bool pith__hf_keys_default(pith_str *value, const char *reads, pith_str key) {
    return pith__hf_keys_find(value, reads, key) && value->size;
}

const pith__hf_keys *pith__hf_keys_of_type(pith_str model_type) {
    for (size_t i = 0; i < pith__hf_family_count; i++) {
        const pith__hf_family *family = pith__hf_family_table[i];
        if (!family->takes && pith__str_is(model_type, family->model_type)) return family->keys;
    }
    return NULL;
}

/* ---- one key ---- */

typedef struct hf_keys_check {
    const pith__hf_keys *keys;
    pith__hf_config *config;
    pith__hf_key_list read, ignored, unknown;
    pith_str code;
    const char *section; /* before the names of keys: "text_config."; "": of the file itself */
    pith__arena *arena;
    const pith_log *log;
    pith_error *err;
} hf_keys_check;

/* Byte by byte through the arena's growth, since lists of keys are short. */
static bool hf_keys_append(pith__hf_key_list *list, pith__arena *arena, pith_str text) {
    for (size_t i = 0; i < text.size; i++) {
        void *grown = list->text;
        if (!pith__arena_grow(arena, &grown, list->size, &list->capacity, 1)) return false;
        list->text = grown;
        list->text[list->size++] = text.data[i];
    }
    return true;
}

pith_status pith__hf_key_list_add(pith__hf_key_list *list, const char *section, pith_str key,
                                  pith__arena *arena, pith_error *err) {
    bool done = (!list->size || hf_keys_append(list, arena, PITH_STR(", "))) &&
                hf_keys_append(list, arena, pith__str_of(section)) &&
                hf_keys_append(list, arena, key);
    return done ? PITH_OK : pith__fail_memory(err, key.size);
}

static pith_status hf_keys_note(hf_keys_check *c, pith__hf_key_list *list, pith_str key) {
    return pith__hf_key_list_add(list, c->section, key, c->arena, c->err);
}

/* Is the value at the scanner, which is consumed, this text or null? Numbers count by their value.
 */
static bool hf_keys_same(pith__json *j, pith_str text) {
    pith__json_kind kind = pith__json_peek(j);
    if (kind == PITH_JSON_STRING) return pith__str_eq(pith__json_string(j), text);
    if (kind == PITH_JSON_NUMBER) {
        pith_error err = PITH_ERROR_INIT;
        pith__json other;
        pith__json_init(&other, text, NULL, j->arena, &err);
        return pith__json_double(j) == pith__json_double(&other) && !other.failed;
    }
    pith_str raw = pith__json_raw(j);
    return kind == PITH_JSON_NULL || pith__str_eq(raw, text);
}

/* ---- auto_map ---- */

/* "folder--file.Class" in a list of "Class" or "file.Class". */
static bool hf_keys_names_code(const char *list, pith_str code) {
    pith_str word, value;
    size_t at = code.size;
    for (size_t i = 0; i + 1 < code.size; i++)
        if (code.data[i] == '-' && code.data[i + 1] == '-')
            code = (pith_str){ code.data + i + 2, code.size - i - 2 };
    for (at = code.size; at && code.data[at - 1] != '.';) at--;
    pith_str class = { code.data + at, code.size - at };
    while (hf_keys_next(&list, &word, &value))
        if (pith__str_eq(word, code) || pith__str_eq(word, class)) return true;
    return false;
}

/* Only the classes of vectors and of scores of pairs are run. */
static pith_status hf_keys_code(hf_keys_check *c, pith__json *j, const pith__hf_family *family) {
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        bool network = pith__str_is(key, "AutoModel"),
             pairs = pith__str_is(key, "AutoModelForSequenceClassification");
        if ((!network && !(pairs && c->config->classifier)) ||
            pith__json_peek(j) != PITH_JSON_STRING) {
            pith__json_skip(j);
            continue;
        }
        pith_str code = pith__json_copy(j, c->arena, pith__json_string(j));
        bool two_ways = hf_keys_names_code(c->keys->two_ways, code);
        c->config->both_ways |= two_ways;
        if (network) c->code = code;
        if (two_ways || hf_keys_names_code(c->keys->code, code)) continue;
        return pith__fail(
            c->err, PITH_ERR_UNSUPPORTED,
            "config.json: auto_map: " PITH_STR_FMT " is '" PITH_STR_FMT
            "', code that comes with the model, which is not run and not known; if it computes "
            "what "
            "transformers' own class for model_type '%s' does, remove auto_map from config.json",
            PITH_STR_ARG(key), PITH_STR_ARG(code), family->model_type);
    }
    return PITH_OK;
}

/* ---- all keys ---- */

static pith_status hf_keys_take(hf_keys_check *c, pith__json *j, pith_str key,
                                const pith__hf_family *family);

/* An object whose keys have lists of their own. */
static pith_status hf_keys_section(hf_keys_check *c, pith__json *j, pith_str key,
                                   const pith__hf_keys *keys, const pith__hf_family *family) {
    hf_keys_check inner = *c; /* its lists go on where these end */
    pith_str name = pith__arena_printf(c->arena, PITH_STR_FMT ".", PITH_STR_ARG(key)), item;
    if (!name.data) return pith__fail_memory(c->err, key.size);
    inner.section = name.data;
    inner.keys = keys;
    for (pith__json_object(j); pith__json_next_key(j, &item);)
        PITH_TRY(hf_keys_take(&inner, j, item, family));
    inner.section = c->section;
    inner.keys = c->keys;
    *c = inner;
    return PITH_OK;
}

/* What becomes of one key: read by the family, required to have one value, ignored as known to
 * change no vector, or unknown, which is a warning. Code beside the weights must be one whose class
 * is known. */
static pith_status hf_keys_take(hf_keys_check *c, pith__json *j, pith_str key,
                                const pith__hf_family *family) {
    const pith__hf_keys *k = c->keys;
    pith_str value;
    if (pith__str_is(key, "auto_map") && pith__json_peek(j) == PITH_JSON_OBJECT) {
        PITH_TRY(hf_keys_note(c, &c->read, key));
        return hf_keys_code(c, j, family);
    }
    const pith__hf_keys *part = pith__str_is(key, "text_config") ? k->text : k->vision;
    if (part && (pith__str_is(key, "text_config") || pith__str_is(key, "vision_config")) &&
        pith__json_peek(j) == PITH_JSON_OBJECT)
        return hf_keys_section(c, j, key, part, family);
    if (pith__hf_keys_find(&value, k->reads, key)) {
        pith__json_skip(j);
        return hf_keys_note(c, &c->read, key);
    }
    if (pith__hf_keys_find(&value, k->fixed, key) ||
        pith__hf_keys_find(&value, hf_keys_common_fixed, key)) {
        PITH_TRY(hf_keys_note(c, &c->read, key));
        pith__json before = *j;
        pith_str raw = pith__json_raw(&before);
        if (hf_keys_same(j, value)) return PITH_OK;
        return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                          "config.json: %s" PITH_STR_FMT " is " PITH_CUT_FMT "; only " PITH_STR_FMT
                          " is supported",
                          c->section, PITH_STR_ARG(key), PITH_CUT(raw, 80), PITH_STR_ARG(value));
    }
    pith__json_skip(j);
    if (pith__hf_keys_find(&value, k->ignores, key) ||
        pith__hf_keys_find(&value, hf_keys_common, key))
        return hf_keys_note(c, &c->ignored, key);
    pith__log_write(c->log, PITH_LOG_WARNING,
                    "config.json: '%s" PITH_STR_FMT
                    "' is not known for model_type '%s' and is ignored",
                    c->section, PITH_STR_ARG(key), family->model_type);
    return hf_keys_note(c, &c->unknown, key);
}

/* Every key of config.json is looked at, because a setting that is silently passed over gives
 * vectors that look right and are not. */
pith_status pith__hf_keys_check(pith__hf_report *report, pith__hf_config *config,
                                const pith__hf_family *family, pith__arena *arena,
                                const pith_log *log, pith_error *err) {
    static const pith__hf_keys none = { .reads = NULL };
    hf_keys_check c = { .keys = family->keys ? family->keys : &none,
                        .config = config,
                        .section = "",
                        .code = PITH_STR(""),
                        .arena = arena,
                        .log = log,
                        .err = err };
    pith_error fault = PITH_ERROR_INIT;
    pith__json *j = pith__arena_alloc(arena, sizeof *j);
    pith_str key;
    if (!j) return pith__fail_memory(err, sizeof *j);
    pith__json_init(j, config->text, "config.json", arena, &fault);
    j->python = true;
    for (pith__json_object(j); pith__json_next_key(j, &key);)
        PITH_TRY(hf_keys_take(&c, j, key, family));
    if (report)
        *report = (pith__hf_report){ .read = { c.read.text, c.read.size },
                                     .ignored = { c.ignored.text, c.ignored.size },
                                     .unknown = { c.unknown.text, c.unknown.size },
                                     .code = c.code };
    return j->failed ? pith__fail(err, fault.code, "%s", fault.message) : PITH_OK;
}
