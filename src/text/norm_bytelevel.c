/* norm_bytelevel.c - the normalizer ByteLevel: every byte becomes its printable character. */
#include "text/bytes.h"
#include "text/pipeline.h"

static pith_status run(const void *self, pith_call *call, pith_piece piece) {
    (void)self;
    if (!pith_call_reserve(call, 2 * (size_t)(piece.end - piece.begin))) return PITH_OK;
    for (uint32_t i = piece.begin; i < piece.end; i++)
        pith_call_put_char(call, pith_byte_char((unsigned char)call->text.data[i]), i);
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_ByteLevel = { "ByteLevel", PITH_STEP_LOCAL, NULL, run, NULL };
