/* dec_strip.c - the decoder Strip: removes up to `start` and `stop` copies of a character from the
 * ends of each token. */
#include "text/decoders/decode.h"

typedef struct strip {
    pith_str character;
    int64_t start, stop;
} strip;

/* Tokens are spans, so removing characters from their ends copies nothing. */
static pith_status dec_strip_run(const void *self, pith__decoding *d) {
    const strip *step = self;
    size_t size = step->character.size;
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        pith_str *token = &d->tokens[i];
        for (int64_t n = 0; n < step->start; n++) {
            if (token->size < size || memcmp(token->data, step->character.data, size) != 0) break;
            token->data += size;
            token->size -= size;
        }
        for (int64_t n = 0; n < step->stop; n++) {
            if (token->size < size ||
                memcmp(token->data + token->size - size, step->character.data, size) != 0)
                break;
            token->size -= size;
        }
    }
    return PITH_OK;
}

static void dec_strip_parse(const void **self, pith__json *j, pith__loader *loader) {
    static const strip usual = { { "", 0 }, 0, 0 };
    static const pith__decoder_field fields[] = {
        { "content", PITH_FIELD_STRING, offsetof(strip, character) },
        { "start", PITH_FIELD_INT, offsetof(strip, start) },
        { "stop", PITH_FIELD_INT, offsetof(strip, stop) },
        { NULL, 0, 0 },
    };
    strip *step = pith__decoder_parse(j, loader, &usual, sizeof usual, fields);
    if (step && !step->character.size) pith__json_fail(j, PITH_ERR_FORMAT, "Strip has no content");
    *self = step;
}

const pith__decoder_desc pith__decoder_Strip = { .name = "Strip",
                                                 .parse = dec_strip_parse,
                                                 .run = dec_strip_run };
