/* config_files.c - see config_files.h. Every key of tokenizer_config.json is read, or in the list
 * of those that change no id, or told to the log. */
#include "text/sources/config_files.h"

#include "base/log.h"
#include "base/os/file.h"
#include "text/added_tokens.h"
#include "text/post_processing.h"
#include "text/sources/key_report.h"
#include "text/sources/tokenizer_source.h"

pith__tokenizer_config *pith__tokenizer_config_create(pith__arena *arena) {
    pith__tokenizer_config *c = pith__arena_array(arena, 1, sizeof *c);
    if (!c) return NULL;
    c->do_lower_case = c->strip_accents = c->tokenize_chinese_chars = c->add_bos_token =
        c->add_eos_token = -1;
    c->keep_accents = c->add_prefix_space = c->legacy = c->clean_up_tokenization_spaces = -1;
    c->split_by_punct = c->split_special_tokens = c->left = c->typed = c->extra_ids = -1;
    return c;
}

const pith__named_token *pith__tokenizer_config_named(const pith__tokenizer_config *config,
                                                      const char *key) {
    for (size_t i = 0; i < config->named_count; i++)
        if (pith__str_is(config->named[i].key, key)) return &config->named[i];
    return NULL;
}

/* Flags that an object leaves out: a special token is looked for in the text as it is. */
void pith__named_token_parse(pith__named_token *token, pith__json *j, pith__arena *arena) {
    pith_str key;
    uint32_t said = 0;
    token->content = (pith_str){ NULL, 0 };
    token->flags = 0;
    token->object = pith__json_peek(j) == PITH_JSON_OBJECT;
    if (!token->object) {
        token->content = pith__json_copy(j, arena, pith__json_string(j));
        token->flags = PITH_ADDED_SPECIAL;
        return;
    }
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        size_t i = 0;
        while (i < PITH_ADDED_FLAGS && !pith__str_is(key, pith__added_flags[i].key)) i++;
        if (i < PITH_ADDED_FLAGS) {
            said |= pith__added_flags[i].flag;
            token->flags |= pith__json_bool(j) ? pith__added_flags[i].flag : 0;
        } else if (pith__str_is(key, "content"))
            token->content = pith__json_copy(j, arena, pith__json_string(j));
        else
            pith__json_skip(j);
    }
    if (!(said & PITH_ADDED_NORMALIZED) && said & PITH_ADDED_SPECIAL &&
        !(token->flags & PITH_ADDED_SPECIAL))
        token->flags |= PITH_ADDED_NORMALIZED;
    token->special = token->flags & PITH_ADDED_SPECIAL;
    token->flags |= PITH_ADDED_SPECIAL;
}

/* ---- tokenizer_config.json and special_tokens_map.json ---- */

/* Keys that change no id: what they are about is decoding, padding, generation, the files
 * themselves, or an option that only Python's own tokenizers have. */
static const char *const harmless[] = {
    "_commit_hash",
    "add_dummy_prefix_space",
    "align_message",
    "backend",
    "chat_control_tokens",
    "chat_template",
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
    "cls_token_box",
    "device_map",
    "do_basic_tokenize",
    "errors",
    "files_loaded",
    "from_slow",
    "full_tokenizer_file",
    "init_inputs",
    "is_fast",
    "is_local",
    "language",
    "local_files_only",
    "max_length",
    "max_question_length",
    "monolingual_vocab_file",
    "name_or_path",
    "never_split",
    "offset",
    "only_label_first_subword",
    "pad_to_multiple_of",
    "pad_token_box",
    "pad_token_label",
    "pad_token_type_id",
    "padding",
    "padding_side",
    "predict_timestamps",
    "processor_class",
    "response_schema",
    "response_template",
    "return_attention_mask",
    "sep_token_box",
    "source_spm",
    "spaces_between_special_tokens",
    "special_tokens_map_file",
    "stride",
    "target_spm",
    "task",
    "tgt_lang",
    "tokenizer_file",
    "torch_dtype",
    "transformers_version",
    "trim_offsets",
    "truncation_strategy",
    "trust_remote_code",
    "unk_id",
    "use_default_system_prompt",
    "use_fast",
    "verbose",
    "vocab_file",
    "vocab_size",
    "vocab_type",
    "merges_file",
};

static bool is_harmless(pith_str key) {
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (pith__str_is(key, harmless[i])) return true;
    return false;
}

static bool ends_in_token(pith_str key) {
    return key.size > 6 && memcmp(key.data + key.size - 6, "_token", 6) == 0;
}

/* Keeps a special token under its key, such as "cls_token". A later file's value replaces an
 * earlier one. */
static void config_named(pith__json *j, pith__loader *loader, pith_str key) {
    pith__tokenizer_config *c = loader->config;
    pith__named_token token = { .key = pith__json_copy(j, loader->arena, key) };
    size_t i = 0;
    if (!pith__json_null(j)) pith__named_token_parse(&token, j, loader->arena);
    if (j->failed) return;
    while (i < c->named_count && !pith__str_eq(c->named[i].key, key)) i++;
    if (i == c->named_count && !pith__arena_grow(loader->arena, (void **)&c->named, i,
                                                 &c->named_capacity, sizeof *c->named)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    c->named_count += i == c->named_count;
    c->named[i] = token;
}

/* Flags that have no value, or null, are -1: the tokenizer class then decides. */
static bool config_flag(pith__json *j, pith__tokenizer_config *c, pith_str key) {
    const struct {
        const char *key;
        int *flag;
    } flags[] = {
        { "do_lower_case", &c->do_lower_case },
        { "strip_accents", &c->strip_accents },
        { "tokenize_chinese_chars", &c->tokenize_chinese_chars },
        { "keep_accents", &c->keep_accents },
        { "add_bos_token", &c->add_bos_token },
        { "add_eos_token", &c->add_eos_token },
        { "add_prefix_space", &c->add_prefix_space },
        { "legacy", &c->legacy },
        { "clean_up_tokenization_spaces", &c->clean_up_tokenization_spaces },
        { "split_special_tokens", &c->split_special_tokens },
        { "split_by_punct", &c->split_by_punct },
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!pith__str_is(key, flags[i].key)) continue;
        *flags[i].flag = pith__json_null(j) ? -1 : pith__json_bool(j);
        return true;
    }
    return false;
}

/* Parts that are read only once the model is known are kept as their JSON text. */
static bool config_json(pith__json *j, pith__loader *loader, pith_str key, bool of_map) {
    pith__tokenizer_config *c = loader->config;
    const struct {
        const char *key;
        pith_str *json;
    } parts[] = {
        { "added_tokens_decoder", &c->added_tokens },
        { "additional_special_tokens", &c->additional },
        { "extra_special_tokens", of_map ? &c->extra_of_map : &c->extra },
        { "model_specific_special_tokens", &c->own },
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!pith__str_is(key, parts[i].key)) continue;
        if (!pith__json_null(j))
            *parts[i].json = pith__json_copy(j, loader->arena, pith__json_raw(j));
        return true;
    }
    return false;
}

/* truncation_side, model_input_names, and names. */
static bool config_other(pith__json *j, pith__loader *loader, pith_str key) {
    pith__tokenizer_config *c = loader->config;
    if (pith__str_is(key, "truncation_side")) {
        pith_str side = pith__json_string(j);
        c->left = pith__str_is(side, "left");
        if (!c->left && !pith__str_is(side, "right"))
            pith__json_fail(j, PITH_ERR_FORMAT, "\"" PITH_STR_FMT "\" is neither left nor right",
                            PITH_STR_ARG(side));
    } else if (pith__str_is(key, "model_input_names") && pith__json_peek(j) == PITH_JSON_ARRAY) {
        c->typed = 0;
        pith__json_array(j);
        while (pith__json_next_item(j))
            c->typed |= pith__str_is(pith__json_string(j), "token_type_ids");
    } else if (pith__str_is(key, "tokenizer_class") && pith__json_peek(j) == PITH_JSON_STRING)
        c->tokenizer_class = pith__json_copy(j, loader->arena, pith__json_string(j));
    else if (pith__str_is(key, "extra_ids"))
        c->extra_ids = pith__json_null(j) ? -1 : pith__json_id(j);
    else if (pith__str_is(key, "pith_truncates"))
        c->truncates = pith__json_bool(j);
    else if (pith__str_is(key, "src_lang") && pith__json_peek(j) == PITH_JSON_STRING)
        c->src_lang = pith__json_copy(j, loader->arena, pith__json_string(j));
    else if (pith__str_is(key, "model_max_length") || pith__str_is(key, "max_len"))
        c->model_max_length = pith__json_limit(j, PITH_TEXT_MAX);
    else
        return false;
    return true;
}

/* remove_space: white space is removed by all tokenizers, so true says nothing. sp_model_kwargs: an
 * empty object says nothing; what else may be in it samples tokens by chance. */
static bool says_nothing(pith__json *j, pith_str key) {
    pith_str raw = pith__json_raw(j);
    if (pith__str_is(key, "remove_space"))
        return pith__str_is(raw, "true") || pith__str_is(raw, "null");
    for (size_t i = 0; i < raw.size; i++)
        if (!memchr("{}[] \t\r\n", raw.data[i], 9))
            return pith__str_is(raw, "null") || pith__str_is(raw, "false");
    return true;
}

/* Code beside the model that makes tokens, which is not run. */
static void config_code(pith__json *j, const pith__loader *loader, const char *name) {
    pith_str key, code = PITH_STR("");
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (!pith__str_is(key, "AutoTokenizer")) {
            pith__json_skip(j);
            continue;
        }
        if (pith__json_peek(j) == PITH_JSON_STRING) {
            code = pith__json_string(j);
            continue;
        }
        for (pith__json_array(j); pith__json_next_item(j);)
            if (pith__json_peek(j) == PITH_JSON_STRING)
                code = pith__json_string(j);
            else
                pith__json_skip(j);
    }
    if (code.size)
        pith__log_write(loader->log, PITH_LOG_WARNING,
                        "%s: auto_map names '" PITH_STR_FMT
                        "', code that comes with the tokenizer, which is not run; tokens are those "
                        "of the tokenizer's "
                        "other files, and differ if that code changes them",
                        name, PITH_STR_ARG(code));
}

static void config_warn(const pith__loader *loader, const char *name, pith_str key) {
    pith__log_write(loader->log, PITH_LOG_WARNING,
                    "%s: \"" PITH_STR_FMT
                    "\" is not known and changes nothing; if it changes tokens in the model's own "
                    "package, these differ",
                    name, PITH_STR_ARG(key));
}

/* Reads tokenizer_config.json or special_tokens_map.json. Files written by Python may hold NaN and
 * Infinity, which the scanner is told to accept. Every key gets a verdict for the report: read,
 * harmless, or unknown. */
static pith_status config_parse(pith__loader *loader, const char *name, pith_str bytes,
                                bool of_map) {
    pith__tokenizer_config *c = loader->config;
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    pith_str key;
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    pith__json_init(j, bytes, name, loader->scratch, loader->err);
    j->stop = loader->stop;
    j->python = true;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        pith__json_kind kind = pith__json_peek(j);
        c->written_by_5 |= pith__str_is(key, "backend");
        pith__key_fate fate = PITH_KEY_READ;
        if (pith__str_is(key, "auto_map") && kind == PITH_JSON_OBJECT)
            config_code(j, loader, name);
        else if (ends_in_token(key) &&
                 (kind == PITH_JSON_STRING || kind == PITH_JSON_OBJECT || kind == PITH_JSON_NULL))
            config_named(j, loader, key);
        else if (!config_flag(j, c, key) && !config_json(j, loader, key, of_map) &&
                 !config_other(j, loader, key)) {
            fate = is_harmless(key) ? PITH_KEY_IGNORED : PITH_KEY_UNKNOWN;
            if (fate == PITH_KEY_IGNORED)
                pith__json_skip(j);
            else if (says_nothing(j, key))
                fate = PITH_KEY_IGNORED;
            else
                config_warn(loader, name, key);
        }
        if (pith__key_note(loader, name, key, fate))
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
    }
    pith__json_finish(j);
    return j->failed ? loader->err->code : PITH_OK;
}

pith_status pith__tokenizer_config_parse(pith__loader *loader, const char *name, pith_str bytes) {
    return config_parse(loader, name, bytes, false);
}

static pith_status read_special_tokens_map(pith__loader *loader, const char *name, pith_str bytes) {
    return config_parse(loader, name, bytes, true);
}

/* config.json of the model, which may name the class. */
static pith_status read_model_config(pith__loader *loader, const char *name, pith_str bytes) {
    pith__tokenizer_config *c = loader->config;
    pith__json *j = pith__arena_alloc(loader->scratch, sizeof *j);
    pith_str key, class_name = { NULL, 0 };
    if (!j) return pith__fail_memory(loader->err, sizeof *j);
    pith__json_init(j, bytes, name, loader->scratch, loader->err);
    j->stop = loader->stop;
    j->python = true;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "tokenizer_class") && pith__json_peek(j) == PITH_JSON_STRING)
            class_name = pith__json_copy(j, loader->arena, pith__json_string(j));
        else if (pith__str_is(key, "model_type") && pith__json_peek(j) == PITH_JSON_STRING)
            c->model_type = pith__json_copy(j, loader->arena, pith__json_string(j));
        else
            pith__json_skip(j);
    }
    pith__json_finish(j);
    if (!c->tokenizer_class.data) c->tokenizer_class = class_name;
    return j->failed ? loader->err->code : PITH_OK;
}

/* added_tokens.json: what became added_tokens_decoder. */
static pith_status read_added_tokens(pith__loader *loader, const char *name, pith_str bytes) {
    (void)name;
    loader->config->old_added_tokens = pith__arena_str(loader->arena, bytes);
    return loader->config->old_added_tokens.data ? PITH_OK
                                                 : pith__fail_memory(loader->err, bytes.size);
}

typedef pith_status read_config_fn(pith__loader *loader, const char *name, pith_str bytes);

/* Reads a file of the directory, or nothing if it is not there. */
static pith_status read_config_file(pith__loader *loader, const char *dir, const char *name,
                                    read_config_fn *fn, bool copy) {
    pith_str path;
    pith__file file;
    bool there;
    PITH_TRY(pith__file_find(&there, &path, loader->scratch, dir, name, loader->err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__source_open(&file, loader, path.data, copy));
    pith_status status = fn(loader, name, (pith_str){ (const char *)file.data, file.size });
    pith__file_close(&file);
    return status;
}

static void config_take_named(pith__tokenizer_config *c) {
    const struct {
        const char *key;
        pith_str *token;
    } tokens[] = {
        { "unk_token", &c->unk_token },   { "bos_token", &c->bos_token },
        { "eos_token", &c->eos_token },   { "cls_token", &c->cls_token },
        { "sep_token", &c->sep_token },   { "pad_token", &c->pad_token },
        { "mask_token", &c->mask_token },
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        const pith__named_token *named = pith__tokenizer_config_named(c, tokens[i].key);
        if (named) *tokens[i].token = named->content;
    }
}

pith_status pith__tokenizer_config_read(pith__loader *loader, const char *dir, bool copy) {
    pith__tokenizer_config *c = loader->config;
    PITH_TRY(
        read_config_file(loader, dir, "tokenizer_config.json", pith__tokenizer_config_parse, copy));
    if (!c->added_tokens.data) {
        PITH_TRY(read_config_file(loader, dir, "special_tokens_map.json", read_special_tokens_map,
                                  copy));
        PITH_TRY(read_config_file(loader, dir, "added_tokens.json", read_added_tokens, copy));
    }
    PITH_TRY(read_config_file(loader, dir, "config.json", read_model_config, copy));
    config_take_named(c);
    return PITH_OK;
}
