/* norm_bytelevel.c - the normalizer ByteLevel: every byte becomes its printable character. */
#include "text/byte_spelling.h"
#include "text/pipeline.h"

static pith_status norm_bytelevel_run(const void *self, pith__encoding *enc, pith__piece piece) {
    (void)self;
    if (!pith__encoding_reserve(enc, 2 * (size_t)(piece.end - piece.begin))) return PITH_OK;
    for (uint32_t i = piece.begin; i < piece.end; i++)
        pith__encoding_put_char(enc, pith__byte_char((unsigned char)enc->text.data[i]), i);
    return PITH_OK;
}

const pith__normalizer_desc pith__normalizer_ByteLevel = { "ByteLevel",
                                                           PITH_STEP_LOCAL | PITH_STEP_EACH, NULL,
                                                           norm_bytelevel_run, NULL };
