/* pre_bert.c - BertPreTokenizer: white space separates, each punctuation character stands alone. */
#include "text/models/bert.h"

#include "base/unicode/tokenizer_characters.h"

static pith_status pre_bert_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t begin = piece.begin;
    (void)self;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith_utf8_next(&p);
        bool space = pith_char_is_space(c);
        if (!space && !pith_char_is_punctuation(c)) continue;
        pith_encoding_emit(enc, begin, at);
        begin = (uint32_t)(p - text);
        if (!space) pith_encoding_emit(enc, at, begin);
    }
    pith_encoding_emit(enc, begin, piece.end);
    return PITH_OK;
}

const pith_pretokenizer_desc pith_pretokenizer_BertPreTokenizer = { "BertPreTokenizer",
                                                                    PITH_STEP_LOCAL | PITH_STEP_CUTS, NULL,
                                                                    pre_bert_run, NULL };
