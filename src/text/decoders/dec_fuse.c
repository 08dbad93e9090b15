/* dec_fuse.c - the decoder Fuse: all tokens become one. */
#include "text/decoders/decode.h"

static pith_status dec_fuse_run(const void *self, pith__decoding *d) {
    (void)self;
    return pith__decoding_fuse(d) ? PITH_OK : PITH_ERR_MEMORY;
}

const pith__decoder_desc pith__decoder_Fuse = { .name = "Fuse", .run = dec_fuse_run };
