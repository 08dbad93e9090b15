/* module_transformer.c - Transformer: config.json and sentence_bert_config.json. The graph itself
 * is made by the reader of the folder (ONNX, or config.json with weights). */
#include "base/left_out_pieces.h"
#include "base/optional_part.h"
#include "formats/weights/adapter.h"
#include "models/architectures/hf_keys.h"
#include "models/modules/config_args.h"
#include "models/modules/module_transformer.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "pith/encode.h"

/* A maximum length above this counts as none: transformers writes 1e30 for "no limit". */
#define LENGTH_MAX (1 << 30)

static int32_t transformer_count(pith__json *j) {
    if (pith__json_null(j)) return 0;
    int64_t n = pith__json_int(j);
    return n > 0 && n < LENGTH_MAX ? (int32_t)n : 0;
}

/* Position tables of these families begin after the padding index. Source: transformers,
 * create_position_ids_from_input_ids. */
static bool positions_follow_padding(pith_str model_type) {
    static const char *const types[] = {
        "roberta",    "xlm-roberta",          "xlm-roberta-xl", "camembert", "mpnet",
        "longformer", "roberta-prelayernorm", "data2vec-text",  "ibert"
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (pith__str_is(model_type, types[i])) return true;
    return false;
}

typedef struct transformer_config {
    bool causal_name, causal, classifier;
    bool relative;       /* position_embedding_type is another than absolute: there is no table of
                            positions */
    pith_str model_type; /* "" if it is not given */
    pith_str task;       /* default_task; "" if it is not given */
} transformer_config;

static bool name_ends_in(pith_str name, const char *suffix) {
    const pith_str end = pith__str_of(suffix);
    return name.size >= end.size && !memcmp(name.data + name.size - end.size, end.data, end.size);
}

static void read_architectures(pith__json *j, transformer_config *c) {
    bool first = true;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        if (!first || pith__json_peek(j) != PITH_JSON_STRING) {
            pith__json_skip(j);
            continue;
        }
        pith_str name = pith__json_string(j);
        first = false;
        c->causal_name = name_ends_in(name, "ForCausalLM");
        c->classifier = name_ends_in(name, "ForSequenceClassification");
    }
}

/* Models of texts and pictures: what their sections for texts leave out. Sources: CLIPTextConfig,
 * SiglipTextConfig. */
static const struct {
    const char *model_type;
    int32_t positions, pad;
} text_sections[] = { { "clip", 77, 1 },
                      { "clip_text_model", 77, 1 },
                      { "siglip", 64, 1 },
                      { "siglip_text_model", 64, 1 } };

/* config.json of CLIP and SigLIP has sections for texts and pictures; this is what tokenizing needs
 * of the first. */
static void read_text_section(pith__json *j, pith__modules *m, int32_t *pad) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "max_position_embeddings"))
            m->positions = transformer_count(j);
        else if (pith__str_is(key, "pad_token_id") && pith__json_peek(j) == PITH_JSON_NUMBER)
            *pad = transformer_count(j);
        else
            pith__json_skip(j);
    }
}

static void complete_text_section(pith__modules *m, pith_str model_type, int32_t *pad) {
    for (size_t i = 0; i < sizeof text_sections / sizeof *text_sections; i++) {
        if (!pith__str_is(model_type, text_sections[i].model_type)) continue;
        if (!m->positions) m->positions = text_sections[i].positions;
        if (*pad < 0) *pad = text_sections[i].pad;
    }
}

/* What the class of transformers has where config.json leaves it out; 0: not known. */
static int32_t default_positions(pith__module_reader *r, pith_str model_type) {
    const pith__hf_keys *keys = pith__hf_keys_of_type(model_type);
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str value;
    if (!keys || !pith__hf_keys_default(&value, keys->reads, PITH_STR("max_position_embeddings")))
        return 0;
    pith__json_init(&j, value, NULL, r->arena, &err);
    return transformer_count(&j);
}

/* lora_adaptations: the tasks of a network, by number. */
static void read_tasks(pith__json *j, pith__module_reader *r) {
    pith__modules *m = r->modules;
    pith_str *tasks = NULL;
    size_t n = 0, capacity = 0;
    for (pith__json_array(j); pith__json_next_item(j);) {
        if (!pith__arena_grow(r->arena, (void **)&tasks, n, &capacity, sizeof *tasks)) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        tasks[n++] = pith__json_copy(j, r->arena, pith__json_string(j));
    }
    m->tasks = tasks;
    m->task_count = n;
}

/* What embedding needs of config.json; the network itself is built by models/checkpoint. Positions
 * behind a padding offset, as in RoBERTa, leave fewer for tokens. */
static void read_config(pith__json *j, pith__module_reader *r, void *to) {
    transformer_config *c = to;
    pith__modules *m = r->modules;
    pith_str key, model_type = PITH_STR("");
    int32_t pad = -1;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "max_position_embeddings"))
            m->positions = transformer_count(j);
        else if (pith__str_is(key, "pad_token_id") && pith__json_peek(j) == PITH_JSON_NUMBER)
            pad = transformer_count(j);
        else if (pith__str_is(key, "model_type") && pith__json_peek(j) == PITH_JSON_STRING)
            model_type = pith__json_string(j);
        else if (pith__str_is(key, "position_embedding_type") &&
                 pith__json_peek(j) == PITH_JSON_STRING)
            c->relative = !pith__str_is(pith__json_string(j), "absolute");
        else if (pith__str_is(key, "text_config") && pith__json_peek(j) == PITH_JSON_OBJECT)
            read_text_section(j, m, &pad);
        else if (pith__str_is(key, "architectures") && pith__json_peek(j) == PITH_JSON_ARRAY)
            read_architectures(j, c);
        else if (pith__str_is(key, "output_hidden_states") && pith__json_peek(j) == PITH_JSON_BOOL)
            r->layered = pith__json_bool(j);
        else if (pith__str_is(key, "lora_adaptations") && pith__json_peek(j) == PITH_JSON_ARRAY)
            read_tasks(j, r);
        else if (pith__str_is(key, "default_task") && pith__json_peek(j) == PITH_JSON_STRING)
            c->task = pith__json_copy(j, r->arena, pith__json_string(j));
        else if (pith__str_is(key, "is_causal") && pith__json_peek(j) == PITH_JSON_BOOL)
            c->causal = pith__json_bool(j);
        else
            pith__json_skip(j);
    }
    for (size_t i = 0; i < m->task_count; i++)
        if (pith__str_eq(m->tasks[i], c->task)) m->task = (int32_t)i;
    complete_text_section(m, model_type, &pad);
    if (!m->positions) m->positions = default_positions(r, model_type);
    c->model_type = pith__json_copy(j, r->arena, model_type);
    m->pad_token_id = pad < 0 ? 0 : pad;
    /* The families above pad with 1; MPNet's table begins there even if config.json names another
     * id. */
    int32_t first = pad < 0 || pith__str_is(model_type, "mpnet") ? 2 : pad + 1;
    if (positions_follow_padding(model_type) && !c->relative && m->positions > first)
        m->positions -= first;
}

/* A name that must be one of those that heads read, or null. third may be NULL. */
static void expect_any(pith__json *j, const char *key, const char *first, const char *second,
                       const char *third) {
    if (pith__json_null(j)) return;
    pith_str value = pith__json_string(j);
    if (j->failed || pith__str_is(value, first) || pith__str_is(value, second) ||
        (third && pith__str_is(value, third)))
        return;
    pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                    "%s '" PITH_STR_FMT "' is not supported; supported are %s%s%s and %s", key,
                    PITH_STR_ARG(value), first, third ? ", " : "", third ? second : "",
                    third ? third : second);
}

/* Hidden states are for dense vectors, logits of masked words for sparse ones, those of labels and
 * of the next word for scores. */
static void read_task(pith__json *j, pith__module_reader *r) {
    static const char *const names[] = { [PITH_TASK_FEATURES] = "feature-extraction",
                                         [PITH_TASK_FILL_MASK] = "fill-mask",
                                         [PITH_TASK_CLASSIFY] = "sequence-classification",
                                         [PITH_TASK_GENERATE] = "text-generation" };
    if (pith__json_null(j)) return;
    pith_str value = pith__json_string(j);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pith__str_is(value, names[i])) {
            r->task = (pith__module_task)i;
            return;
        }
    pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                    "transformer_task '" PITH_STR_FMT
                    "' is not supported; supported are feature-extraction, fill-mask, "
                    "sequence-classification and "
                    "text-generation",
                    PITH_STR_ARG(value));
}

/* "pooler_output" is taken only with get_text_features, which is checked when all keys are known.
 */
static void expect_output_name(pith__json *j, pith__module_reader *r) {
    pith__json ahead = *j;
    if (pith__json_peek(&ahead) == PITH_JSON_STRING &&
        pith__str_is(pith__json_string(&ahead), "pooler_output")) {
        pith__json_skip(j);
        r->pools = true;
    } else {
        expect_any(j, "method_output_name", "last_hidden_state", "logits", NULL);
    }
}

/* A name, or a list of one name. */
static void expect_output(pith__json *j, pith__module_reader *r) {
    int count = 0;
    if (pith__json_peek(j) != PITH_JSON_ARRAY) {
        expect_output_name(j, r);
        return;
    }
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        expect_output_name(j, r);
        if (count++)
            pith__json_fail(j, PITH_ERR_UNSUPPORTED, "a path of several names is not supported");
    }
}

/* How messages are written for the chat template. */
static void read_format(pith__json *j, pith__module_reader *r) {
    pith_str format = pith__json_string(j);
    if (pith__str_is(format, "flat"))
        r->messages = PITH_MESSAGES_FLAT;
    else if (pith__str_is(format, "structured"))
        r->messages = PITH_MESSAGES_STRUCTURED;
    else if (!pith__str_is(format, "auto"))
        pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                        "format '" PITH_STR_FMT
                        "' is not supported; supported are flat, structured and auto",
                        PITH_STR_ARG(format));
}

/* get_text_features of models of texts and pictures gives a vector in the space of both. Source:
 * CLIPModel. */
static void read_method(pith__json *j, pith__module_reader *r, bool text) {
    if (pith__json_null(j)) return;
    pith_str name = pith__json_string(j);
    if (j->failed || pith__str_is(name, "forward")) return;
    if (text && pith__str_is(name, "get_text_features"))
        r->features = true;
    else
        pith__json_fail(
            j, PITH_ERR_UNSUPPORTED, "method '" PITH_STR_FMT "' is not supported; supported %s",
            PITH_STR_ARG(name), text ? "are forward and get_text_features" : "is forward");
}

/* modality_config: texts must go through the network's forward, as they are or through a chat
 * template, or through get_text_features. */
static void read_modalities(pith__json *j, pith__module_reader *r) {
    pith_str key, inner;
    if (pith__json_null(j)) return;
    r->messages = PITH_MESSAGES_NONE;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        const bool message = pith__str_is(key, "message"), text = pith__str_is(key, "text");
        if (!message && !text) {
            pith__json_skip(j);
            continue;
        }
        if (message) r->messages = PITH_MESSAGES_AUTO;
        pith__json_object(j);
        while (pith__json_next_key(j, &inner)) {
            if (pith__str_is(inner, "method"))
                read_method(j, r, text);
            else if (pith__str_is(inner, "method_output_name"))
                expect_output(j, r);
            else if (message && pith__str_is(inner, "format"))
                read_format(j, r);
            else
                pith__json_skip(j);
        }
    }
}

/* processing_kwargs.chat_template: variables of the template, and what is done when a text is cut.
 */
static void read_variables(pith__json *j, pith__module_reader *r, int32_t *max_length) {
    pith__chat_variable *variables = NULL;
    size_t n = 0, capacity = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        const pith__json_kind kind = pith__json_peek(j);
        if (pith__str_is(key, "restore_suffix")) {
            r->modules->rerank.keeps_end = pith__json_bool(j);
        } else if (pith__str_is(key, "max_length")) {
            *max_length = (int32_t)pith__json_limit(j, LENGTH_MAX);
        } else if (kind == PITH_JSON_BOOL && !pith__str_is(key, "truncation") &&
                   !pith__str_is(key, "tokenize") && !pith__str_is(key, "continue_final_message")) {
            if (!pith__arena_grow(r->arena, (void **)&variables, n, &capacity, sizeof *variables)) {
                pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
                return;
            }
            variables[n].name = pith__json_copy(j, r->arena, key);
            variables[n].text = (pith_str){ NULL, 0 };
            variables[n++].flag = pith__json_bool(j);
        } else {
            pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                            "this setting of the chat template is not supported");
        }
    }
    r->variables = variables;
    r->variable_count = n;
}

/* processing_kwargs: how the tokenizer is called. The last limit counts. */
static void read_processing(pith__json *j, pith__module_reader *r, int32_t *max_length) {
    pith_str key, inner;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "chat_template")) {
            read_variables(j, r, max_length);
            continue;
        }
        if (!pith__str_is(key, "text") && !pith__str_is(key, "common")) {
            pith__json_skip(j);
            continue;
        }
        pith__json_object(j);
        while (pith__json_next_key(j, &inner)) {
            if (pith__str_is(inner, "max_length"))
                *max_length = (int32_t)pith__json_limit(j, LENGTH_MAX);
            else if (pith__str_is(inner, "padding") || pith__str_is(inner, "return_tensors") ||
                     pith__str_is(inner, "pad_to_multiple_of") ||
                     pith__str_is(inner, "logits_to_keep") ||
                     (pith__str_is(inner, "truncation") && pith__json_peek(j) != PITH_JSON_BOOL))
                pith__json_skip(j);
            else if (!pith__str_is(inner, "truncation") || !pith__json_bool(j))
                pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                                "this setting of the tokenizer is not supported");
        }
    }
}

/* Arguments of from_pretrained() that say how a model is loaded, and change no number. */
static bool argument_is_harmless(pith_str key) {
    static const char *const names[] = {
        "attn_implementation", "cache_dir",        "code_revision",     "device_map",
        "force_download",      "local_files_only", "low_cpu_mem_usage", "proxies",
        "resume_download",     "revision",         "subfolder",         "token",
        "trust_remote_code",   "use_fast",         "use_auth_token",    "use_cache",
        "use_safetensors",     "weights_only",     "output_attentions", "return_dict",
        "_attn_implementation"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pith__str_is(key, names[i])) return true;
    return false;
}

/* An argument that could change a vector and is not known. */
static void refuse_argument(pith__json *j, pith_str key) {
    if (argument_is_harmless(key))
        pith__json_skip(j);
    else if (!pith__json_null(j))
        pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                        "'" PITH_STR_FMT "' is not supported here; write it into the file that "
                        "it changes, config.json or tokenizer_config.json, and remove it here",
                        PITH_STR_ARG(key));
}

/* model_args, model_kwargs: how the weights are loaded. The dtype is that of the file in any case.
 */
static void read_model_args(pith__json *j) {
    pith_str key;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "torch_dtype") || pith__str_is(key, "dtype"))
            pith__json_skip(j);
        else
            refuse_argument(j, key);
    }
}

/* tokenizer_args, processor_kwargs: what the tokenizer is made with. */
static void read_tokenizer_args(pith__json *j, int32_t *max_length) {
    pith_str key;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "model_max_length"))
            *max_length = (int32_t)pith__json_limit(j, LENGTH_MAX);
        else
            refuse_argument(j, key);
    }
}

/* null: the length is that of other texts. */
static void read_role_length(pith__json *j, int32_t *length) {
    *length = pith__json_null(j) ? 0 : (int32_t)pith__json_limit(j, LENGTH_MAX);
}

/* query_expansion: queries are filled up to `length` tokens. "fixed" also cuts them there; with
 * "min", query_length does. */
static void read_expansion(pith__json *j, pith__module_reader *r) {
    pith__late_interaction *l = &r->modules->late;
    pith_str key;
    if (pith__json_null(j)) return;
    l->expands = true;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "strategy")) {
            pith_str strategy = pith__json_string(j);
            r->fills_only = pith__str_is(strategy, "min");
            if (!j->failed && !r->fills_only && !pith__str_is(strategy, "fixed"))
                pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                                "strategy '" PITH_STR_FMT
                                "' is not supported; supported are fixed and min",
                                PITH_STR_ARG(strategy));
        } else if (pith__str_is(key, "length")) {
            l->filled = (int32_t)pith__json_limit(j, LENGTH_MAX);
        } else if (pith__str_is(key, "attend")) {
            l->attends = pith__json_bool(j);
        } else if (pith__str_is(key, "token")) {
            l->filler = pith__json_null(j) ? PITH_STR("")
                                           : pith__json_copy(j, r->arena, pith__json_string(j));
        } else {
            pith__json_skip(j);
        }
    }
    if (!j->failed && !l->filled)
        pith__json_fail(j, PITH_ERR_FORMAT, "query_expansion has no length");
}

/* What the keys, in any order, make of the length of queries. */
static void complete_expansion(pith__module_reader *r) {
    pith__late_interaction *l = &r->modules->late;
    int32_t *cut = &l->lengths[PITH_ROLE_QUERY];
    if (!l->expands) return;
    if (!r->fills_only || (*cut && *cut < l->filled)) *cut = l->filled;
}

/* config_args, config_kwargs: settings that go before those of config.json. */
static void read_config_args(pith__json *j, pith__module_reader *r) {
    pith_str key;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "output_hidden_states") && pith__json_peek(j) == PITH_JSON_BOOL)
            r->layered = pith__json_bool(j);
        else if (!pith__config_arg_take(j, r, key))
            refuse_argument(j, key);
    }
}

/* sentence_embedding: the vector of a text, which models of texts and pictures give. */
static void read_output_name(pith__json *j, pith__module_reader *r) {
    pith__json ahead = *j;
    if (pith__json_peek(&ahead) == PITH_JSON_STRING &&
        pith__str_is(pith__json_string(&ahead), "sentence_embedding")) {
        pith__json_skip(j);
        r->vector = true;
    } else {
        expect_any(j, "module_output_name", "token_embeddings", "scores", "causal_logits");
    }
}

/* The module's own settings, under any of the names that sentence-transformers has used for the
 * file. Keys come in any order, so what depends on several of them is decided behind the loop. A
 * setting that could change a vector and is not known is an error; loading options are passed over.
 */
static void read_sentence_bert(pith__json *j, pith__module_reader *r, void *to) {
    pith__modules *m = r->modules;
    int32_t made = 0, called = 0; /* the tokenizer's own limits, which go before max_seq_length */
    bool older = false;           /* config_args is there, which counts instead of config_kwargs */
    pith_str key;
    (void)to;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "modality_config"))
            read_modalities(j, r);
        else if (pith__str_is(key, "processing_kwargs"))
            read_processing(j, r, &called);
        else if (pith__str_is(key, "tokenizer_args") || pith__str_is(key, "processor_kwargs"))
            read_tokenizer_args(j, &made);
        else if (pith__str_is(key, "query_length"))
            read_role_length(j, &m->late.lengths[PITH_ROLE_QUERY]);
        else if (pith__str_is(key, "document_length"))
            read_role_length(j, &m->late.lengths[PITH_ROLE_DOCUMENT]);
        else if (pith__str_is(key, "query_expansion"))
            read_expansion(j, r);
        else if (pith__str_is(key, "config_args") ||
                 (!older && pith__str_is(key, "config_kwargs"))) {
            older |= pith__str_is(key, "config_args");
            m->config_args = PITH_STR("");
            read_config_args(j, r);
        } else if (pith__str_is(key, "model_args") || pith__str_is(key, "model_kwargs"))
            read_model_args(j);
        else if (pith__str_is(key, "max_seq_length"))
            m->max_length = (int32_t)pith__json_limit(j, LENGTH_MAX);
        else if (pith__str_is(key, "do_lower_case"))
            m->lower_case = !pith__json_null(j) && pith__json_bool(j);
        else if (pith__str_is(key, "transformer_task"))
            read_task(j, r);
        else if (pith__str_is(key, "module_output_name"))
            read_output_name(j, r);
        else
            pith__json_skip(j);
    }
    complete_expansion(r);
    if (!j->failed && !r->features && (r->pools || r->vector))
        pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                        "%s is supported with the method 'get_text_features' only",
                        r->pools ? "method_output_name 'pooler_output'"
                                 : "module_output_name 'sentence_embedding'");
    if (made) m->max_length = made;
    if (called) m->max_length = called;
}

/* What older versions of sentence-transformers called the same file; the first that is there
 * counts. */
static pith_status read_limits(pith__module_reader *r, pith_str folder) {
    static const char *const names[] = { "bert",   "roberta",     "distilbert", "camembert",
                                         "albert", "xlm-roberta", "xlnet" };
    pith__module_keys keys = { .reads = "config_args config_kwargs do_lower_case document_length "
                                        "max_seq_length modality_config model_args "
                                        "model_kwargs module_output_name processing_kwargs "
                                        "processor_kwargs query_expansion.attend "
                                        "query_expansion.length query_expansion.strategy "
                                        "query_expansion.token query_expansion query_length "
                                        "tokenizer_args transformer_task",
                               .ignores = "backend unpad_inputs",
                               .sections = "query_expansion." };
    pith__modules *m = r->modules;
    bool there = false;
    pith_str name = PITH_STR("");
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !there; i++) {
        name = pith__arena_printf(r->arena, "sentence_%s_config.json", names[i]);
        if (!name.data) return pith__fail_memory(r->err, 64);
        PITH_TRY(pith__module_json(&there, r, folder, name.data, read_sentence_bert, NULL));
    }
    keys.file = name.data;
    PITH_TRY(pith__module_keys_check(r, folder, &keys));
    if (m->max_length) m->max_length_file = pith__module_path(r, folder, name.data);
    if (m->max_length && !m->max_length_file.data) return pith__fail_memory(r->err, folder.size);
    if (m->config_args.size)
        PITH_TRY(pith__module_decide(r, "before config.json", folder, name.data, "%s",
                                     m->config_args.data));
    return m->lower_case ? pith__module_decide(r, "lower case", folder, name.data, "yes") : PITH_OK;
}

/* What rerankers and classifiers may have: a chat template for pairs, or a card that says how they
 * judge. */
static pith_status transformer_chat(pith__module_reader *r, const transformer_config *c) {
    const bool card = c->causal_name && r->alone;
    if (!card && r->task != PITH_TASK_CLASSIFY && r->task != PITH_TASK_GENERATE) return PITH_OK;
    const pith__rerank_prompt_part *part = pith__part_find("chat");
    pith__part_used("chat");
    if (!part) PITH_TRY(pith__piece_check("parts", PITH_STR("chat"), r->err));
    if (!part)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED, "this build is without chat templates");
    if (card) PITH_TRY(part->card(r, c->model_type));
    return r->task == PITH_TASK_CLASSIFY || r->task == PITH_TASK_GENERATE ? part->chat(r) : PITH_OK;
}

/* A network with towers pools by itself. */
static pith_status transformer_features(pith__module_reader *r, pith_str model_type) {
    if (!r->features) return PITH_OK;
    for (size_t i = 0; i < sizeof text_sections / sizeof *text_sections; i++)
        if (pith__str_is(model_type, text_sections[i].model_type)) {
            r->stage = PITH_STAGE_VECTOR;
            return PITH_OK;
        }
    return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                      "modality_config.text.method: method 'get_text_features' is supported for "
                      "models of the types clip "
                      "and siglip, not "
                      "'" PITH_STR_FMT "'",
                      PITH_STR_ARG(model_type));
}

/* config.json of the folder, or of the network that the adapter in the folder belongs to. */
static pith_status transformer_config_read(pith__module_reader *r, pith_str folder,
                                           transformer_config *c) {
    pith__module_reader of_base = *r;
    pith__modules_source source = *r->source;
    pith_str dir = pith__str_of(source.dir), base;
    bool adapted, there;
    if (folder.size) PITH_TRY(pith__path_join(&dir, r->arena, source.dir, folder, r->err));
    PITH_TRY(pith__adapter_base(&base, &adapted, dir.data, r->arena, r->err));
    if (base.data == dir.data) {
        PITH_TRY(pith__module_json(&there, r, folder, "config.json", read_config, c));
        return adapted ? pith__module_decide(r, "adapter", folder, "adapter_config.json",
                                             "added to the weights next to it")
                       : PITH_OK;
    }
    source.dir = base.data;
    of_base.source = &source;
    PITH_TRY(pith__module_json(&there, &of_base, PITH_STR(""), "config.json", read_config, c));
    r->layered = of_base.layered;
    return pith__module_decide(r, "adapter", folder, "adapter_config.json",
                               "added to the weights of " PITH_STR_FMT, PITH_STR_ARG(base));
}

pith_status pith__module_transformer_read(pith__module_reader *r, pith_str folder, bool *causal) {
    transformer_config c = { .causal = true, .model_type = PITH_STR(""), .task = PITH_STR("") };
    PITH_TRY(pith__module_needs(r, PITH_STAGE_TEXT));
    r->stage = PITH_STAGE_ROWS;
    r->modules->folder = folder;
    PITH_TRY(transformer_config_read(r, folder, &c));
    PITH_TRY(read_limits(r, folder));
    if (c.classifier && r->alone) r->task = PITH_TASK_CLASSIFY;
    *causal = c.causal_name && c.causal;
    PITH_TRY(transformer_features(r, c.model_type));
    PITH_TRY(transformer_chat(r, &c));
    if (r->task == PITH_TASK_CLASSIFY || r->task == PITH_TASK_GENERATE) return PITH_OK;
    return r->messages > PITH_MESSAGES_NONE
               ? pith__fail(
                     r->err, PITH_ERR_UNSUPPORTED,
                     "modality_config.message: chat templates are supported for rerankers only")
               : PITH_OK;
}

static pith_status transformer_read(pith__module_reader *r, pith_str folder) {
    bool causal;
    return pith__module_transformer_read(r, folder, &causal);
}

/* The older name of a Transformer whose task is to fill in masked words. */
static pith_status mlm_transformer_read(pith__module_reader *r, pith_str folder) {
    PITH_TRY(transformer_read(r, folder));
    r->task = PITH_TASK_FILL_MASK;
    return PITH_OK;
}

const pith__module_class pith__module_class_mlm_transformer = { .name = "MLMTransformer",
                                                                .read = mlm_transformer_read };
const pith__module_class pith__module_class_transformer = { .name = "Transformer",
                                                            .read = transformer_read };
