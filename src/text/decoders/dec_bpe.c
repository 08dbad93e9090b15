/* dec_bpe.c - the decoder BPEDecoder: the suffix that ends a word becomes a space, except at the
 * end of the text. */
#include "text/decoders/decode.h"

static pith_status dec_bpe_run(const void *self, pith__decoding *d) {
    const pith_str *suffix = self;
    if (!suffix->size) return PITH_OK;
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        pith_str with = i + 1 == d->count ? PITH_STR("") : PITH_STR(" ");
        if (!pith__decoding_replace(d, &d->tokens[i], *suffix, with)) return PITH_ERR_MEMORY;
    }
    return PITH_OK;
}

static void dec_bpe_parse(const void **self, pith__json *j, pith__loader *loader) {
    static const pith_str usual = { "</w>", 4 };
    static const pith__decoder_field fields[] = { { "suffix", PITH_FIELD_STRING, 0 },
                                                  { NULL, 0, 0 } };
    *self = pith__decoder_parse(j, loader, &usual, sizeof usual, fields);
}

const pith__decoder_desc pith__decoder_BPEDecoder = { .name = "BPEDecoder",
                                                      .parse = dec_bpe_parse,
                                                      .run = dec_bpe_run };
