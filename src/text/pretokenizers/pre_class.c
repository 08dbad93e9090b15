/* pre_class.c - Punctuation, Digits, CharDelimiterSplit: cuts at characters of one class. */
#include "text/sources/key_report.h"
#include "text/pipeline.h"
#include "base/unicode/tokenizer_characters.h"

typedef struct class_split {
    bool (*is)(uint32_t c); /* NULL: the delimiter */
    uint32_t delimiter;
    pith_behavior behavior;
} class_split;

static class_split *pre_class_make(const void **self, pith_json *j, pith_loader *loader, class_split init) {
    class_split *s = pith_arena_array(loader->arena, 1, sizeof *s);
    if (s)
        *s = init;
    else
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
    *self = s;
    return s;
}

static void parse_punctuation(const void **self, pith_json *j, pith_loader *loader) {
    class_split *s = pre_class_make(self, j, loader, (class_split){ pith_char_is_punctuation, 0, PITH_SPLIT_ISOLATED });
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "behavior"))
            s->behavior = pith_json_behavior(j);
        else
            pith_key_other(j, loader, key, "");
    }
}

static void parse_digits(const void **self, pith_json *j, pith_loader *loader) {
    class_split *s = pre_class_make(self, j, loader, (class_split){ pith_char_is_numeric, 0, PITH_SPLIT_CONTIGUOUS });
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "individual_digits"))
            s->behavior = pith_json_bool(j) ? PITH_SPLIT_ISOLATED : PITH_SPLIT_CONTIGUOUS;
        else
            pith_key_other(j, loader, key, "");
    }
}

static void parse_delimiter(const void **self, pith_json *j, pith_loader *loader) {
    class_split *s = pre_class_make(self, j, loader, (class_split){ NULL, 0, PITH_SPLIT_REMOVED });
    bool found = false;
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "delimiter")) {
            pith_str c = pith_json_string(j);
            if (j->failed || !c.size) break;
            const char *p = c.data;
            s->delimiter = pith_utf8_next(&p);
            found = p == c.data + c.size;
        } else
            pith_key_other(j, loader, key, "");
    }
    if (!found) pith_json_fail(j, PITH_ERR_FORMAT, "delimiter is not one character");
}

static pith_status pre_class_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const class_split *s = self;
    const char *text = enc->text.data, *end = text + piece.end;
    pith_splitter splitter;
    pith_split_begin(&splitter, enc, piece, s->behavior, false);
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith_utf8_next(&p);
        if (s->is ? s->is(c) : c == s->delimiter) pith_split_match(&splitter, at, (uint32_t)(p - text));
    }
    pith_split_end(&splitter);
    return PITH_OK;
}

const pith_pretokenizer_desc pith_pretokenizer_CharDelimiterSplit = { "CharDelimiterSplit", PITH_STEP_LOCAL,
                                                                      parse_delimiter, pre_class_run, NULL };
const pith_pretokenizer_desc pith_pretokenizer_Digits = { "Digits", PITH_STEP_LOCAL, parse_digits, pre_class_run,
                                                          NULL };
const pith_pretokenizer_desc pith_pretokenizer_Punctuation = { "Punctuation", PITH_STEP_LOCAL, parse_punctuation,
                                                               pre_class_run, NULL };
