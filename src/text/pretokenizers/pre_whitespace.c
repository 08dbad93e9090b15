/* pre_whitespace.c - WhitespaceSplit cuts at white space; Whitespace gives the matches of
 * \w+|[^\w\s]+. */
#include "base/unicode/tokenizer_characters.h"
#include "text/pipeline.h"

/* Emits runs of equal class; class 0 is white space. */
static void runs(pith__encoding *enc, pith__piece piece, bool words) {
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t begin = piece.begin;
    int last = 0;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith__utf8_next(&p);
        int class = 2;
        if (pith__char_is_space(c))
            class = 0;
        else if (words && pith__char_is_word(c))
            class = 1;
        if (class == last) continue;
        if (pith__encoding_stops(enc, at)) return;
        if (last) pith__encoding_emit(enc, begin, at);
        begin = at;
        last = class;
    }
    if (last) pith__encoding_emit(enc, begin, piece.end);
}

static pith_status pre_whitespace_run(const void *self, pith__encoding *enc, pith__piece piece) {
    (void)self;
    runs(enc, piece, true);
    return PITH_OK;
}

static pith_status pre_whitespace_run_split(const void *self, pith__encoding *enc,
                                            pith__piece piece) {
    (void)self;
    runs(enc, piece, false);
    return PITH_OK;
}

const pith__pretokenizer_desc pith__pretokenizer_Whitespace = { "Whitespace",
                                                                PITH_STEP_LOCAL | PITH_STEP_CUTS,
                                                                NULL, pre_whitespace_run, NULL };
const pith__pretokenizer_desc pith__pretokenizer_WhitespaceSplit = {
    "WhitespaceSplit", PITH_STEP_LOCAL | PITH_STEP_CUTS, NULL, pre_whitespace_run_split, NULL
};
