/* norm_lowercase.c - each character's lower case by itself (no final sigma), as Rust's char::to_lowercase has it. */
#include "text/unicode.h"

#include "text/pipeline.h"

static pith_status run(const void *self, pith_call *call, pith_piece piece) {
    const char *text = call->text.data, *end = text + piece.end;
    (void)self;
    if (!pith_call_reserve(call, piece.end - piece.begin)) return PITH_OK;
    for (const char *p = text + piece.begin; p < end;) {
        const char *at = p;
        pith_text *out = &call->out;
        if (*p >= 0 && pith_call_reserve(call, (size_t)(end - p))) {
            for (; p < end && *p >= 0; p++) out->data[out->size++] = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
            uint32_t from = (uint32_t)(at - text), count = (uint32_t)(p - at);
            for (uint32_t i = 0; i < count && call->offsets; i++)
                pith_call_origin(call, out->size - count + i, 1, from + i);
            continue;
        }
        uint32_t lower[2];
        size_t n = pith_char_lower(pith_utf8_next(&p), lower);
        for (size_t i = 0; i < n; i++) pith_call_put_char(call, lower[i], (uint32_t)(at - text));
    }
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_Lowercase = { "Lowercase", 0, NULL, run };
