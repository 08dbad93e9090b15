/* dec_bpe.c - the suffix that ends a word becomes a space, except at the end of the text. */
#include "text/decode.h"

static pith_status run(const void *self, pith_decoding *d) {
    const pith_str *suffix = self;
    for (size_t i = 0; i < d->count && suffix->size; i++) {
        pith_str with = i + 1 == d->count ? PITH_STR("") : PITH_STR(" ");
        if (!pith_decoding_replace(d, &d->tokens[i], *suffix, with)) return PITH_ERR_MEMORY;
    }
    return PITH_OK;
}

static void parse(const void **self, pith_json *j, pith_loader *loader) {
    pith_str *suffix = pith_arena_array(loader->arena, 1, sizeof *suffix), key;
    if (!suffix) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    *suffix = PITH_STR("</w>");
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "suffix"))
            *suffix = pith_decoder_string(j, loader);
        else
            pith_json_skip(j);
    }
    *self = suffix;
}

const pith_decoder_desc pith_decoder_BPEDecoder = { .name = "BPEDecoder", .parse = parse, .run = run };
