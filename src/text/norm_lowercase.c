/* norm_lowercase.c - each character's lower case by itself (no final sigma), as Rust's char::to_lowercase has it. */
#include "text/unicode.h"

#include "text/pipeline.h"

static pith_status run(const void *self, pith_call *call, pith_piece piece) {
    const char *text = call->text.data, *end = text + piece.end;
    (void)self;
    /* No character becomes twice as long. */
    if (!pith_call_reserve(call, 2 * (size_t)(piece.end - piece.begin))) return PITH_OK;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t from = (uint32_t)(p - text), lower[2];
        size_t begin = call->out.size;
        char *out = call->out.data + begin;
        if (*p >= 0)
            *out++ = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p), p++;
        else
            for (size_t i = 0, n = pith_char_lower(pith_utf8_next(&p), lower); i < n; i++)
                out += pith_utf8_put(out, lower[i]);
        call->out.size = (size_t)(out - call->out.data);
        if (call->offsets) pith_call_origin(call, begin, call->out.size - begin, from);
    }
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_Lowercase = { "Lowercase", PITH_STEP_LOCAL, NULL, run, NULL };
