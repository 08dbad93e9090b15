/* dec_strip.c - up to `start` and `stop` copies of a character go from the ends of each token. */
#include "text/decode.h"

typedef struct strip {
    pith_str character;
    int64_t start, stop;
} strip;

static pith_status run(const void *self, pith_decoding *d) {
    const strip *step = self;
    size_t size = step->character.size;
    for (size_t i = 0; i < d->count; i++) {
        pith_str *token = &d->tokens[i];
        for (int64_t n = 0; n < step->start; n++) {
            if (token->size < size || memcmp(token->data, step->character.data, size) != 0) break;
            token->data += size;
            token->size -= size;
        }
        for (int64_t n = 0; n < step->stop; n++) {
            if (token->size < size || memcmp(token->data + token->size - size, step->character.data, size) != 0) break;
            token->size -= size;
        }
    }
    return PITH_OK;
}

static void parse(const void **self, pith_json *j, pith_loader *loader) {
    strip *step = pith_arena_array(loader->arena, 1, sizeof *step);
    pith_str key;
    if (!step) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "content"))
            step->character = pith_decoder_string(j, loader);
        else if (pith_str_is(key, "start"))
            step->start = pith_json_int(j);
        else if (pith_str_is(key, "stop"))
            step->stop = pith_json_int(j);
        else
            pith_json_skip(j);
    }
    if (!j->failed && !step->character.size) pith_json_fail(j, PITH_ERR_FORMAT, "Strip without content");
    *self = step;
}

const pith_decoder_desc pith_decoder_Strip = { .name = "Strip", .parse = parse, .run = run };
