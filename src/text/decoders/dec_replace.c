/* dec_replace.c - the decoder Replace: matches of a pattern in a token become other text. */
#include "text/decoders/decode.h"
#include "text/regex/pattern.h"
#include "text/sources/key_report.h"

typedef struct replace {
    const pith__pattern *pattern;
    pith_str content;
} replace;

/* Rewrites one token with a pattern. The pattern works on an encoding, so the token is lent to one
 * that has no buffers of its own. A token without a match is left as it is. */
static pith_status replace_in(const replace *step, pith__decoding *d, pith_str *token) {
    pith__encoding enc = { .allocator = d->arena->allocator, .err = d->err };
    enc.text = (pith__text){ .data = (char *)(uintptr_t)token->data, .size = token->size };
    pith__piece piece = { 0, (uint32_t)token->size, -1 };
    pith__matches matches = pith__pattern_begin(step->pattern, &enc, piece);
    uint32_t begin, end, kept = 0;
    char *out = NULL;
    size_t size = 0, capacity = 0;
    int found = 1;
    if (token->size >= PITH_TEXT_MAX)
        return pith__fail(d->err, PITH_ERR_ARGUMENT, "a token of %zu bytes", token->size);
    for (size_t i = 0; found; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        found = pith__pattern_next(&matches, &begin, &end);
        if (found < 0) return d->err ? d->err->code : PITH_ERR_ARGUMENT;
        if (!found && !out) return PITH_OK;
        size_t copied = (found ? begin : piece.end) - kept, added = found ? step->content.size : 0;
        if (size + copied + added > capacity || !out) {
            capacity = 2 * (size + copied + added) + 16;
            char *grown = pith__arena_alloc(d->arena, capacity);
            if (!grown) return pith__fail_memory(d->err, capacity);
            if (size) memcpy(grown, out, size);
            out = grown;
        }
        memcpy(out + size, token->data + kept, copied);
        memcpy(out + size + copied, step->content.data, added);
        size += copied + added;
        kept = end;
    }
    *token = (pith_str){ out, size };
    return PITH_OK;
}

static pith_status dec_replace_run(const void *self, pith__decoding *d) {
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        PITH_TRY(replace_in(self, d, &d->tokens[i]));
    }
    return PITH_OK;
}

static void dec_replace_parse(const void **self, pith__json *j, pith__loader *loader) {
    replace *step = pith__arena_array(loader->arena, 1, sizeof *step);
    pith_str key;
    if (!step) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    step->content = PITH_STR("");
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "pattern"))
            step->pattern = pith__pattern_parse(j, loader);
        else if (pith__str_is(key, "content"))
            step->content = pith__json_copy(j, loader->arena, pith__json_string(j));
        else
            pith__key_other(j, loader, key, "");
    }
    if (!j->failed && !step->pattern) pith__json_fail(j, PITH_ERR_FORMAT, "Replace has no pattern");
    *self = step;
}

const pith__decoder_desc pith__decoder_Replace = { .name = "Replace",
                                                   .parse = dec_replace_parse,
                                                   .run = dec_replace_run };
