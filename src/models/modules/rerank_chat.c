/* rerank_chat.c - the chat template of a reranker: where it stands, with which variables it runs,
 * and whether it has room for a query and a document.
 *
 * sentence-transformers gives every pair to the tokenizer's chat template if there is one, unless
 * modality_config says that texts go without. A template for conversations has no room for a pair.
 * With it, a classifier takes pairs as its tokenizer joins them, as sentence-transformers did
 * before it knew templates, unless the template names the roles of pairs. Sources:
 * sentence-transformers 6.2, base/modality.py and base/modules/transformer.py; transformers 4.57.1,
 * tokenization_utils_base.py (which file a template stands in, and its variables). */
#include <string.h>

#include "base/error.h"
#include "base/optional_part.h"
#include "base/str.h"
#include "models/modules/module_class.h"

typedef struct chat_source {
    pith_str text; /* data is NULL: there is no template */
    const char *file;
    pith__chat_variable *variables;
    size_t count, capacity;
} chat_source;

/* ---- files ---- */

static void chat_source_add(pith__json *j, pith__module_reader *r, chat_source *s,
                            pith__chat_variable variable) {
    void *variables = s->variables;
    if (!pith__arena_grow(r->arena, &variables, s->count, &s->capacity, sizeof variable)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    s->variables = variables;
    s->variables[s->count++] = variable;
}

static bool chat_source_is_token(pith_str key) {
    static const char *const names[] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pith__str_is(key, names[i])) return true;
    return false;
}

/* "[SEP]", {"content": "[SEP]", …} or null. */
static void chat_source_read_token(pith__json *j, pith__module_reader *r, chat_source *s,
                                   pith_str key) {
    pith_str inner, text = { NULL, 0 };
    pith_str name = pith__json_copy(j, r->arena, key);
    if (pith__json_peek(j) == PITH_JSON_STRING) {
        text = pith__json_copy(j, r->arena, pith__json_string(j));
    } else if (pith__json_peek(j) == PITH_JSON_OBJECT) {
        for (pith__json_object(j); pith__json_next_key(j, &inner);)
            if (pith__str_is(inner, "content") && pith__json_peek(j) == PITH_JSON_STRING)
                text = pith__json_copy(j, r->arena, pith__json_string(j));
            else
                pith__json_skip(j);
    } else {
        pith__json_skip(j);
    }
    if (text.data) chat_source_add(j, r, s, (pith__chat_variable){ .name = name, .text = text });
}

/* A template, or a list of {"name": …, "template": …}, of which the one named "default" counts. */
static pith_str chat_source_read_template(pith__json *j, pith__module_reader *r) {
    pith_str found = { NULL, 0 }, key;
    if (pith__json_null(j)) return found;
    if (pith__json_peek(j) == PITH_JSON_STRING)
        return pith__json_copy(j, r->arena, pith__json_string(j));
    for (pith__json_array(j); pith__json_next_item(j);) {
        pith_str name = PITH_STR(""), text = PITH_STR("");
        for (pith__json_object(j); pith__json_next_key(j, &key);)
            if (pith__str_is(key, "name"))
                name = pith__json_string(j);
            else if (pith__str_is(key, "template"))
                text = pith__json_string(j);
            else
                pith__json_skip(j);
        if (pith__str_is(name, "default")) found = pith__json_copy(j, r->arena, text);
    }
    return found;
}

static void chat_source_read_config(pith__json *j, pith__module_reader *r, void *to) {
    chat_source *s = to;
    pith_str key;
    for (pith__json_object(j); pith__json_next_key(j, &key);)
        if (pith__str_is(key, "chat_template"))
            s->text = chat_source_read_template(j, r);
        else if (chat_source_is_token(key))
            chat_source_read_token(j, r, s, key);
        else
            pith__json_skip(j);
}

/* chat_template.jinja goes before the template in tokenizer_config.json. */
static pith_status chat_source_read(chat_source *s, pith__module_reader *r) {
    const pith_str folder = r->modules->folder;
    pith_str path, name = pith__module_path(r, folder, "chat_template.jinja");
    pith__file file;
    bool there;
    if (!name.data) return pith__fail_memory(r->err, folder.size);
    PITH_TRY(
        pith__module_json(&there, r, folder, "tokenizer_config.json", chat_source_read_config, s));
    s->file = "tokenizer_config.json";
    PITH_TRY(pith__file_find(&there, &path, r->arena, r->source->dir, name.data, r->err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__file_open(&file, path.data, false, r->source->allocator, r->err));
    const bool fits = file.size <= PITH_CHAT_BYTES_MAX;
    if (fits) s->text = pith__arena_str(r->arena, (pith_str){ (const char *)file.data, file.size });
    s->file = "chat_template.jinja";
    pith__file_close(&file);
    if (!fits)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED, "%s: it is longer than %d bytes", s->file,
                          PITH_CHAT_BYTES_MAX);
    return s->text.data ? PITH_OK : pith__fail_memory(r->err, PITH_CHAT_BYTES_MAX);
}

/* ---- running ---- */

static bool chat_source_has(pith_str text, const char *part) {
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= text.size; i++)
        if (!memcmp(text.data + i, part, n)) return true;
    return false;
}

/* Whether a template that says nothing else takes contents as lists. */
static bool chat_source_is_structured(pith_str text) {
    static const char *const signs[] = { "content[0]", ".type",     "'type'",
                                         "\"type\"",   "item.type", "message.content[" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (chat_source_has(text, signs[i])) return true;
    return false;
}

/* Runs the template in memory of its own and keeps the result. */
static pith_status chat_source_run(pith__chat_form *form, const chat_source *s,
                                   const pith__module_reader *r, bool instructed, pith_error *err) {
    const pith__chat_settings settings = {
        .instructed = instructed,
        .structured = r->messages == PITH_MESSAGES_STRUCTURED ||
                      (r->messages != PITH_MESSAGES_FLAT && chat_source_is_structured(s->text)),
        .variables = s->variables,
        .variable_count = s->count,
    };
    pith__arena scratch;
    pith__chat_form made = { NULL, 0 };
    pith__arena_init(&scratch, r->source->allocator);
    pith_status status = pith__chat_template_run(&made, s->text, s->file, &settings, &scratch, err);
    if (!status) status = pith__chat_form_copy(form, &made, r->arena, err);
    pith__arena_free(&scratch);
    return status;
}

/* Variables of the settings go after those of the tokenizer, and so before them. */
static pith_status chat_source_add_settings(chat_source *s, pith__module_reader *r) {
    for (size_t i = 0; i < r->variable_count; i++) {
        void *variables = s->variables;
        if (!pith__arena_grow(r->arena, &variables, s->count, &s->capacity, sizeof *s->variables))
            return pith__fail_memory(r->err, sizeof *s->variables);
        s->variables = variables;
        s->variables[s->count++] = r->variables[i];
    }
    return PITH_OK;
}

pith_status pith__rerank_chat_read(pith__module_reader *r) {
    pith__rerank_prompt *rerank = &r->modules->rerank;
    chat_source s = { .text = { NULL, 0 } };
    pith_error fault = PITH_ERROR_INIT;
    /* or a tokenizer is opened alone */
    if (r->messages == PITH_MESSAGES_NONE || !r->source->files) return PITH_OK;
    PITH_TRY(chat_source_read(&s, r));
    const bool asked = r->messages != PITH_MESSAGES_UNKNOWN;
    if (!s.text.data && asked)
        return pith__fail(
            r->err, PITH_ERR_NOT_FOUND,
            "modality_config.message asks for a chat template, but neither chat_template.jinja nor "
            "tokenizer_config.json has one");
    if (!s.text.data) return PITH_OK;
    PITH_TRY(chat_source_add_settings(&s, r));
    pith_status status = chat_source_run(&rerank->chat[0], &s, r, false, &fault);
    const bool named =
        chat_source_has(s.text, "'document'") || chat_source_has(s.text, "\"document\"");
    if (status == PITH_ERR_UNSUPPORTED && r->task == PITH_TASK_CLASSIFY && !asked && !named)
        return PITH_OK;
    if (status) return pith__fail(r->err, status, "%s", fault.message);
    status = chat_source_run(&rerank->chat[1], &s, r, true, &fault);
    if (status == PITH_ERR_UNSUPPORTED)
        rerank->chat[1] = (pith__chat_form){ NULL, 0 };
    else if (status)
        return pith__fail(r->err, status, "%s", fault.message);
    rerank->form = PITH_RERANK_CHAT;
    return pith__module_decide(r, "chat template", r->modules->folder, s.file,
                               "query and document");
}

const pith__part pith__part_chat = {
    "chat", &(const pith__rerank_prompt_part){ pith__rerank_prompt_read, pith__rerank_chat_read }
};
