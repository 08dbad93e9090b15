/* norm_bytelevel.c - the normalizer ByteLevel: every byte becomes its printable character. */
#include "text/byte_spelling.h"
#include "text/pipeline.h"

static pith_status norm_bytelevel_run(const void *self, pith_encoding *enc, pith_piece piece) {
    (void)self;
    if (!pith_encoding_reserve(enc, 2 * (size_t)(piece.end - piece.begin))) return PITH_OK;
    for (uint32_t i = piece.begin; i < piece.end; i++)
        pith_encoding_put_char(enc, pith_byte_char((unsigned char)enc->text.data[i]), i);
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_ByteLevel = { "ByteLevel", PITH_STEP_LOCAL, NULL, norm_bytelevel_run, NULL };
