/* tokenizer_source.c - opens the files of tokenizers; special tokens and frames of those that have
 * no tokenizer.json. */
#include "text/sources/tokenizer_source.h"

#include "text/sources/token_class.h"

pith_status pith__source_check_size(const pith__loader *loader, const char *name, uint64_t size) {
    if (size <= PITH_TOKENIZER_FILE_MAX) return PITH_OK;
    return pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                      "%s: %llu bytes are too many for a file of a tokenizer", name,
                      (unsigned long long)size);
}

pith_status pith__source_open(pith__file *file, const pith__loader *loader, const char *path,
                              bool copy) {
    PITH_TRY(pith__source_check_size(loader, path, pith__file_size(path, loader->allocator)));
    return pith__file_open(file, path, copy, loader->allocator, loader->err);
}

pith_status pith__source_special(pith__loader *loader, pith_str token, uint32_t flags) {
    const pith__tokenizer_config *c = loader->config;
    for (size_t i = 0; i < c->named_count; i++)
        if (c->named[i].object && c->named[i].content.data &&
            pith__str_eq(c->named[i].content, token))
            flags = c->named[i].flags;
    return pith__loader_add_token(loader, token, -1, PITH_ADDED_SPECIAL | flags);
}

static pith_str frame_pieces(pith__arena *arena, const char *pieces, const char *types) {
    pith_str json = PITH_STR("");
    for (size_t i = 0; pieces[i] && json.data; i++)
        json = pith__arena_printf(arena, "%s%s{\"%s\":{\"id\":\"%c\",\"type_id\":%c}}", json.data,
                                  i ? "," : "", pieces[i] >= 'A' ? "Sequence" : "SpecialToken",
                                  pieces[i], types[i]);
    return json;
}

pith_status pith__source_frame(pith__loader *loader, const pith_str *tokens,
                               const pith__source_template *frame) {
    const pith_tokenizer *t = loader->tokenizer;
    pith_str singles = frame_pieces(loader->scratch, frame->single, frame->single_types),
             names = PITH_STR("");
    pith_str pairs = frame_pieces(loader->scratch, frame->pair, frame->pair_types);
    for (const char *p = frame->single, *other = frame->pair; names.data; p++) {
        if (!*p && other) {
            p = other;
            other = NULL;
        }
        if (!*p) break;
        if (*p >= 'A' || (!other && strchr(frame->single, *p))) continue;
        int32_t id = t->model->id(t->model_self, tokens[*p - '0']);
        if (id < 0) return PITH_OK;
        names = pith__arena_printf(loader->scratch, "%s%s\"%c\":{\"ids\":[%d]}", names.data,
                                   names.size ? "," : "", *p, id);
    }
    if (!singles.data || !pairs.data || !names.data) return pith__fail_memory(loader->err, 1024);
    pith_str json =
        pith__arena_printf(loader->scratch,
                           "{\"type\":\"TemplateProcessing\",\"single\":[%s],\"pair\":[%s],"
                           "\"special_tokens\":{%s}}",
                           singles.data, pairs.data, names.data);
    return json.data ? pith__loader_add(loader, "post_processor", json)
                     : pith__fail_memory(loader->err, 1024);
}

/* ---- classes ---- */

/* Whether the class's name is that of a row, with or without "Fast". */
static bool class_is(pith_str class_name, const char *row) {
    size_t size = strlen(row);
    if (class_name.size < size || memcmp(class_name.data, row, size) != 0) return false;
    return class_name.size == size ||
           (class_name.size == size + 4 && memcmp(class_name.data + size, "Fast", 4) == 0);
}

/* Whether a row is the class of a model type: "xlm-roberta" is XLMRobertaTokenizer, "big_bird"
 * BigBirdTokenizer. */
bool pith__source_type_is(pith_str type, const char *row) {
    for (size_t i = 0; i < type.size; i++) {
        char c = type.data[i], r = *row;
        if (c == '-' || c == '_') continue;
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (r >= 'A' && r <= 'Z') r = (char)(r - 'A' + 'a');
        if (c != r) return false;
        row++;
    }
    return strcmp(row, "Tokenizer") == 0;
}

pith_status pith__source_class(const void **row, const pith__loader *loader, const void *table,
                               size_t count, size_t row_size, const char *file) {
    const pith__tokenizer_config *c = loader->config;
    bool by_class = c->tokenizer_class.data;
    pith_str wanted = by_class ? c->tokenizer_class : pith__token_class_of_type(c->model_type);
    by_class = wanted.data;
    if (!by_class) wanted = c->model_type;
    *row = NULL;
    if (!wanted.data) return PITH_OK;
    for (size_t i = 0; i < count; i++) {
        const void *candidate = (const char *)table + i * row_size;
        const char *name = *(const char *const *)candidate;
        if (by_class ? !class_is(wanted, name) : !pith__source_type_is(wanted, name)) continue;
        *row = candidate;
        return PITH_OK;
    }
    return pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                      "%s: this build cannot make a " PITH_STR_FMT
                      "%s from %s; put the tokenizer.json of "
                      "the model there (save_pretrained of transformers writes one)",
                      loader->path, PITH_STR_ARG(wanted), by_class ? "" : " (model_type)", file);
}
