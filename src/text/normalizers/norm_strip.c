/* norm_strip.c - Strip removes white space at the ends; StripAccents removes every mark. */
#include "text/sources/key_report.h"
#include "text/pipeline.h"
#include "base/unicode/tokenizer_characters.h"

typedef struct strip {
    bool left, right;
} strip;

static void norm_strip_parse(const void **self, pith_json *j, pith_loader *loader) {
    strip *s = pith_arena_array(loader->arena, 1, sizeof *s);
    pith_str key;
    if (!s) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "strip_left"))
            s->left = pith_json_bool(j);
        else if (pith_str_is(key, "strip_right"))
            s->right = pith_json_bool(j);
        else
            pith_key_other(j, loader, key, "");
    }
    *self = s;
}

static pith_status norm_strip_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const strip *s = self;
    const char *text = enc->text.data, *begin = text + piece.begin, *end = text + piece.end;
    for (const char *p = begin; s->left && p < end && pith_char_is_space(pith_utf8_next(&p));) begin = p;
    while (s->right && end > begin) {
        const char *p = end;
        do p--;
        while ((*p & 0xC0) == 0x80);
        const char *c = p;
        if (!pith_char_is_space(pith_utf8_next(&c))) break;
        end = p;
    }
    pith_encoding_copy(enc, (uint32_t)(begin - text), (uint32_t)(end - text));
    return PITH_OK;
}

static pith_status run_accents(const void *self, pith_encoding *enc, pith_piece piece) {
    const char *text = enc->text.data, *end = text + piece.end, *copied = text + piece.begin;
    (void)self;
    for (const char *p = copied; p < end;) {
        const char *at = p;
        if (!pith_char_is_mark(pith_utf8_next(&p))) continue;
        pith_encoding_copy(enc, (uint32_t)(copied - text), (uint32_t)(at - text));
        copied = p;
    }
    pith_encoding_copy(enc, (uint32_t)(copied - text), piece.end);
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_Strip = { "Strip", PITH_STEP_LOCAL, norm_strip_parse, norm_strip_run, NULL };
const pith_normalizer_desc pith_normalizer_StripAccents = { "StripAccents", PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL,
                                                            NULL, run_accents, NULL };
