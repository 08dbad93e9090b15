/* dec_ctc.c - the decoder CTC: repeated tokens count once, the pad token is dropped, the delimiter
 * becomes a space. */
#include "text/decoders/decode.h"

typedef struct ctc {
    pith_str pad, delimiter;
    bool clean_up;
} ctc;

/* Repeated tokens are compared before the pad token is taken out, so "a <pad> a" keeps both
 * letters. */
static pith_status dec_ctc_run(const void *self, pith__decoding *d) {
    const ctc *step = self;
    size_t kept = 0;
    pith_str last = { NULL, 0 };
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        pith_str token = d->tokens[i];
        if (i && pith__str_eq(token, last)) continue;
        last = token;
        if (step->pad.size && !pith__decoding_replace(d, &token, step->pad, PITH_STR("")))
            return PITH_ERR_MEMORY;
        if (step->clean_up && !pith__decoding_clean_up(d, &token)) return PITH_ERR_MEMORY;
        if (step->clean_up && step->delimiter.size &&
            !pith__decoding_replace(d, &token, step->delimiter, PITH_STR(" ")))
            return PITH_ERR_MEMORY;
        if (token.size) d->tokens[kept++] = token;
    }
    d->count = kept;
    return PITH_OK;
}

static void dec_ctc_parse(const void **self, pith__json *j, pith__loader *loader) {
    static const ctc usual = { { "<pad>", 5 }, { "|", 1 }, true };
    static const pith__decoder_field fields[] = {
        { "pad_token", PITH_FIELD_STRING, offsetof(ctc, pad) },
        { "word_delimiter_token", PITH_FIELD_STRING, offsetof(ctc, delimiter) },
        { "cleanup", PITH_FIELD_BOOL, offsetof(ctc, clean_up) },
        { NULL, 0, 0 },
    };
    *self = pith__decoder_parse(j, loader, &usual, sizeof usual, fields);
}

const pith__decoder_desc pith__decoder_CTC = { .name = "CTC",
                                               .parse = dec_ctc_parse,
                                               .run = dec_ctc_run };
