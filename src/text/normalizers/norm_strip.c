/* norm_strip.c - Strip removes white space at the ends; StripAccents removes every mark. */
#include "base/unicode/tokenizer_characters.h"
#include "text/pipeline.h"
#include "text/sources/key_report.h"

typedef struct strip {
    bool left, right;
} strip;

static void norm_strip_parse(const void **self, pith__json *j, pith__loader *loader) {
    strip *s = pith__arena_array(loader->arena, 1, sizeof *s);
    pith_str key;
    if (!s) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "strip_left"))
            s->left = pith__json_bool(j);
        else if (pith__str_is(key, "strip_right"))
            s->right = pith__json_bool(j);
        else
            pith__key_other(j, loader, key, "");
    }
    *self = s;
}

static pith_status norm_strip_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const strip *s = self;
    const char *text = enc->text.data, *begin = text + piece.begin, *end = text + piece.end;
    if (s->left)
        for (const char *p = begin; p < end && pith__char_is_space(pith__utf8_next(&p));) begin = p;
    while (s->right && end > begin) {
        const char *p = end;
        do p--;
        while ((*p & 0xC0) == 0x80);
        const char *c = p;
        if (!pith__char_is_space(pith__utf8_next(&c))) break;
        end = p;
    }
    pith__encoding_copy(enc, (uint32_t)(begin - text), (uint32_t)(end - text));
    return PITH_OK;
}

static pith_status run_accents(const void *self, pith__encoding *enc, pith__piece piece) {
    const char *text = enc->text.data, *end = text + piece.end, *copied = text + piece.begin;
    (void)self;
    for (const char *p = copied; p < end;) {
        const char *at = p;
        if (!pith__char_is_mark(pith__utf8_next(&p))) continue;
        pith__encoding_copy(enc, (uint32_t)(copied - text), (uint32_t)(at - text));
        copied = p;
    }
    pith__encoding_copy(enc, (uint32_t)(copied - text), piece.end);
    return PITH_OK;
}

const pith__normalizer_desc pith__normalizer_Strip = { "Strip", PITH_STEP_LOCAL, norm_strip_parse,
                                                       norm_strip_run, NULL };
const pith__normalizer_desc pith__normalizer_StripAccents = {
    "StripAccents", PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL | PITH_STEP_EACH, NULL, run_accents, NULL
};
