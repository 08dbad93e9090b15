/* dec_wordpiece.c - the decoder WordPiece: joins tokens by spaces. Tokens that continue a word lose
 * their prefix instead. */
#include "text/decoders/decode.h"

typedef struct wordpiece {
    pith_str prefix;
    bool clean_up;
} wordpiece;

/* The first token never loses its prefix, not even "##a": the peer looks at all tokens but the
 * first. */
static pith_status dec_wordpiece_run(const void *self, pith__decoding *d) {
    const wordpiece *step = self;
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        pith_str *token = &d->tokens[i];
        if (i && token->size >= step->prefix.size &&
            memcmp(token->data, step->prefix.data, step->prefix.size) == 0) {
            token->data += step->prefix.size;
            token->size -= step->prefix.size;
        } else if (i) {
            char *spaced = pith__arena_alloc(d->arena, token->size + 1);
            if (!spaced) return pith__fail_memory(d->err, token->size + 1);
            spaced[0] = ' ';
            memcpy(spaced + 1, token->data, token->size);
            *token = (pith_str){ spaced, token->size + 1 };
        }
        if (step->clean_up && !pith__decoding_clean_up(d, token)) return PITH_ERR_MEMORY;
    }
    return PITH_OK;
}

static void dec_wordpiece_parse(const void **self, pith__json *j, pith__loader *loader) {
    static const wordpiece usual = { { "##", 2 }, true };
    static const pith__decoder_field fields[] = {
        { "prefix", PITH_FIELD_STRING, offsetof(wordpiece, prefix) },
        { "cleanup", PITH_FIELD_BOOL, offsetof(wordpiece, clean_up) },
        { NULL, 0, 0 },
    };
    *self = pith__decoder_parse(j, loader, &usual, sizeof usual, fields);
}

const pith__decoder_desc pith__decoder_WordPiece = { .name = "WordPiece",
                                                     .parse = dec_wordpiece_parse,
                                                     .run = dec_wordpiece_run };
