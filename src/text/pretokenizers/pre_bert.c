/* pre_bert.c - BertPreTokenizer: white space separates, each punctuation character stands alone. */
#include "text/normalizers/norm_bert.h"

#include "base/unicode/tokenizer_characters.h"

static pith_status pre_bert_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t begin = piece.begin;
    (void)self;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith__utf8_next(&p);
        bool space = pith__char_is_space(c);
        if (!space && !pith__char_is_punctuation(c)) continue;
        if (pith__encoding_stops(enc, at)) return PITH_OK;
        pith__encoding_emit(enc, begin, at);
        begin = (uint32_t)(p - text);
        if (!space) pith__encoding_emit(enc, at, begin);
    }
    pith__encoding_emit(enc, begin, piece.end);
    return PITH_OK;
}

const pith__pretokenizer_desc pith__pretokenizer_BertPreTokenizer = {
    "BertPreTokenizer", PITH_STEP_LOCAL | PITH_STEP_CUTS, NULL, pre_bert_run, NULL
};
