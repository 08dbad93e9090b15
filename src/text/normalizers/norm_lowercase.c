/* norm_lowercase.c - the lower case of each character on its own (no final sigma), as in Rust's
 * char::to_lowercase. */
#include "base/unicode/tokenizer_characters.h"

#include "text/pipeline.h"

static pith_status norm_lowercase_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const char *text = enc->text.data, *end = text + piece.end;
    (void)self;
    /* No character becomes twice as long. */
    if (!pith__encoding_reserve(enc, 2 * (size_t)(piece.end - piece.begin))) return PITH_OK;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t from = (uint32_t)(p - text), lower[2];
        size_t begin = enc->out.size;
        char *out = enc->out.data + begin;
        if (*p >= 0)
            *out++ = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p), p++;
        else
            for (size_t i = 0, n = pith__char_lower(pith__utf8_next(&p), lower); i < n; i++)
                out += pith__utf8_put(out, lower[i]);
        enc->out.size = (size_t)(out - enc->out.data);
        if (enc->offsets) pith__encoding_origin(enc, begin, enc->out.size - begin, from);
    }
    return PITH_OK;
}

const pith__normalizer_desc pith__normalizer_Lowercase = { "Lowercase",
                                                           PITH_STEP_LOCAL | PITH_STEP_EACH, NULL,
                                                           norm_lowercase_run, NULL };
