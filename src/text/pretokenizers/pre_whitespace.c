/* pre_whitespace.c - WhitespaceSplit cuts at white space; Whitespace gives the matches of \w+|[^\w\s]+. */
#include "text/pipeline.h"
#include "base/unicode/tokenizer_characters.h"

/* Emits runs of equal class; class 0 is white space. */
static void runs(pith_encoding *enc, pith_piece piece, bool words) {
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t begin = piece.begin;
    int last = 0;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith_utf8_next(&p);
        int class = pith_char_is_space(c) ? 0 : words && pith_char_is_word(c) ? 1 : 2;
        if (class == last) continue;
        if (last) pith_encoding_emit(enc, begin, at);
        begin = at;
        last = class;
    }
    if (last) pith_encoding_emit(enc, begin, piece.end);
}

static pith_status pre_whitespace_run(const void *self, pith_encoding *enc, pith_piece piece) {
    (void)self;
    runs(enc, piece, true);
    return PITH_OK;
}

static pith_status pre_whitespace_run_split(const void *self, pith_encoding *enc, pith_piece piece) {
    (void)self;
    runs(enc, piece, false);
    return PITH_OK;
}

const pith_pretokenizer_desc pith_pretokenizer_Whitespace = { "Whitespace", PITH_STEP_LOCAL | PITH_STEP_CUTS, NULL,
                                                              pre_whitespace_run, NULL };
const pith_pretokenizer_desc pith_pretokenizer_WhitespaceSplit = { "WhitespaceSplit", PITH_STEP_LOCAL | PITH_STEP_CUTS,
                                                                   NULL, pre_whitespace_run_split, NULL };
