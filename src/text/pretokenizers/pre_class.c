/* pre_class.c - Punctuation, Digits, CharDelimiterSplit: cuts at characters of one class. */
#include "base/unicode/tokenizer_characters.h"
#include "text/pipeline.h"
#include "text/sources/key_report.h"

typedef struct class_split {
    bool (*is)(uint32_t c); /* NULL: the delimiter */
    uint32_t delimiter;
    pith__behavior behavior;
} class_split;

static class_split *pre_class_make(const void **self, pith__json *j, pith__loader *loader,
                                   class_split init) {
    class_split *s = pith__arena_array(loader->arena, 1, sizeof *s);
    if (s)
        *s = init;
    else
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
    *self = s;
    return s;
}

static void parse_punctuation(const void **self, pith__json *j, pith__loader *loader) {
    class_split *s = pre_class_make(
        self, j, loader, (class_split){ pith__char_is_punctuation, 0, PITH_SPLIT_ISOLATED });
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "behavior"))
            s->behavior = pith__json_behavior(j);
        else
            pith__key_other(j, loader, key, "");
    }
}

static void parse_digits(const void **self, pith__json *j, pith__loader *loader) {
    class_split *s = pre_class_make(
        self, j, loader, (class_split){ pith__char_is_numeric, 0, PITH_SPLIT_CONTIGUOUS });
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "individual_digits"))
            s->behavior = pith__json_bool(j) ? PITH_SPLIT_ISOLATED : PITH_SPLIT_CONTIGUOUS;
        else
            pith__key_other(j, loader, key, "");
    }
}

static void parse_delimiter(const void **self, pith__json *j, pith__loader *loader) {
    class_split *s = pre_class_make(self, j, loader, (class_split){ NULL, 0, PITH_SPLIT_REMOVED });
    bool found = false;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "delimiter")) {
            pith_str c = pith__json_string(j);
            if (j->failed || !c.size) break;
            const char *p = c.data;
            s->delimiter = pith__utf8_next(&p);
            found = p == c.data + c.size;
        } else
            pith__key_other(j, loader, key, "");
    }
    if (!found) pith__json_fail(j, PITH_ERR_FORMAT, "delimiter is not one character");
}

static pith_status pre_class_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const class_split *s = self;
    const char *text = enc->text.data, *end = text + piece.end;
    pith__splitter splitter;
    pith__split_begin(&splitter, enc, piece, s->behavior, false);
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith__utf8_next(&p);
        if (pith__encoding_stops(enc, at)) return PITH_OK;
        if (s->is ? s->is(c) : c == s->delimiter)
            pith__split_match(&splitter, at, (uint32_t)(p - text));
    }
    pith__split_end(&splitter);
    return PITH_OK;
}

const pith__pretokenizer_desc pith__pretokenizer_CharDelimiterSplit = {
    "CharDelimiterSplit", PITH_STEP_LOCAL, parse_delimiter, pre_class_run, NULL
};
const pith__pretokenizer_desc pith__pretokenizer_Digits = { "Digits", PITH_STEP_LOCAL, parse_digits,
                                                            pre_class_run, NULL };
const pith__pretokenizer_desc pith__pretokenizer_Punctuation = { "Punctuation", PITH_STEP_LOCAL,
                                                                 parse_punctuation, pre_class_run,
                                                                 NULL };
