/* norm_nmt.c - Nmt: SentencePiece's nmt rules. Control characters are dropped, and unusual spaces
 * become plain ones. */
#include "text/pipeline.h"

static bool dropped(uint32_t c) {
    return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
}

static bool blank(uint32_t c) {
    return c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static pith_status norm_nmt_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const char *text = enc->text.data, *end = text + piece.end;
    (void)self;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text), c = pith__utf8_next(&p);
        if (!dropped(c)) pith__encoding_put_char(enc, blank(c) ? ' ' : c, at);
    }
    return PITH_OK;
}

const pith__normalizer_desc pith__normalizer_Nmt = { "Nmt", PITH_STEP_LOCAL | PITH_STEP_EACH, NULL,
                                                     norm_nmt_run, NULL };
