/* dec_ctc.c - repeated tokens count once, the pad token stands for nothing, the delimiter for a space. */
#include "text/decode.h"

typedef struct ctc {
    pith_str pad, delimiter;
    bool clean_up;
} ctc;

static pith_status run(const void *self, pith_decoding *d) {
    const ctc *step = self;
    size_t kept = 0;
    pith_str last = { NULL, 0 };
    for (size_t i = 0; i < d->count; i++) {
        pith_str token = d->tokens[i];
        if (i && pith_str_eq(token, last)) continue;
        last = token;
        if (step->pad.size && !pith_decoding_replace(d, &token, step->pad, PITH_STR(""))) return PITH_ERR_MEMORY;
        if (step->clean_up && !pith_decoding_clean_up(d, &token)) return PITH_ERR_MEMORY;
        if (step->clean_up && step->delimiter.size && !pith_decoding_replace(d, &token, step->delimiter, PITH_STR(" ")))
            return PITH_ERR_MEMORY;
        if (token.size) d->tokens[kept++] = token;
    }
    d->count = kept;
    return PITH_OK;
}

static void parse(const void **self, pith_json *j, pith_loader *loader) {
    ctc *step = pith_arena_array(loader->arena, 1, sizeof *step);
    pith_str key;
    if (!step) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    *step = (ctc){ PITH_STR("<pad>"), PITH_STR("|"), true };
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "pad_token"))
            step->pad = pith_decoder_string(j, loader);
        else if (pith_str_is(key, "word_delimiter_token"))
            step->delimiter = pith_decoder_string(j, loader);
        else if (pith_str_is(key, "cleanup"))
            step->clean_up = pith_json_bool(j);
        else
            pith_json_skip(j);
    }
    *self = step;
}

const pith_decoder_desc pith_decoder_CTC = { .name = "CTC", .parse = parse, .run = run };
