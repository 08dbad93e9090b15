/* norm_bert.c - BertNormalizer, split into its steps when it is read: cleaning, NFD, marks, lower
 * case. */
#include "text/normalizers/norm_bert.h"

#include "base/unicode/tokenizer_characters.h"
#include "text/sources/key_report.h"

/* Hugging Face's list, which begins extension E late and knows no later extension. */
bool pith__char_is_ideograph(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
}

/* What _clean_text and _tokenize_chinese_chars of BERT do: control characters go, white space
 * becomes a space, and ideographs get spaces around them. */
static pith_status clean(const void *self, pith__encoding *enc, pith__piece piece) {
    const pith__bert_options *o = self;
    const char *text = enc->text.data, *end = text + piece.end;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t from = (uint32_t)(p - text), c = pith__utf8_next(&p);
        if (o->clean_text) {
            bool blank = c == '\t' || c == '\n' || c == '\r';
            if (c == 0 || c == 0xFFFD || (!blank && pith__char_is_other(c))) continue;
            if (pith__char_is_space(c)) c = ' ';
        }
        bool ideograph = o->chinese_chars && pith__char_is_ideograph(c);
        if (ideograph) pith__encoding_put(enc, " ", 1, from);
        pith__encoding_put_char(enc, c, from);
        if (ideograph) pith__encoding_put(enc, " ", 1, from);
    }
    return PITH_OK;
}

static pith_status strip(const void *self, pith__encoding *enc, pith__piece piece) {
    const char *text = enc->text.data, *end = text + piece.end, *copied = text + piece.begin;
    (void)self;
    for (const char *p = copied; p < end;) {
        const char *at = p;
        if (!pith__char_is_nonspacing(pith__utf8_next(&p))) continue;
        pith__encoding_copy(enc, (uint32_t)(copied - text), (uint32_t)(at - text));
        copied = p;
    }
    pith__encoding_copy(enc, (uint32_t)(copied - text), piece.end);
    return PITH_OK;
}

const pith__normalizer_desc pith__bert_clean = { "BertNormalizer: clean",
                                                 PITH_STEP_LOCAL | PITH_STEP_EACH, NULL, clean,
                                                 NULL };
const pith__normalizer_desc pith__bert_strip = { "BertNormalizer: strip",
                                                 PITH_STEP_ASCII_NOOP | PITH_STEP_LOCAL |
                                                     PITH_STEP_EACH,
                                                 NULL, strip, NULL };

static void norm_bert_parse(const void **self, pith__json *j, pith__loader *loader) {
    pith__bert_options *o = pith__arena_array(loader->arena, 1, sizeof *o);
    int accents = -1;
    bool lowercase = true;
    pith_str key;
    *self = PITH_STEP_REPLACED;
    if (!o) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    *o = (pith__bert_options){ true, true };
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "clean_text"))
            o->clean_text = pith__json_bool(j);
        else if (pith__str_is(key, "handle_chinese_chars"))
            o->chinese_chars = pith__json_bool(j);
        else if (pith__str_is(key, "lowercase"))
            lowercase = pith__json_bool(j);
        else if (pith__str_is(key, "strip_accents"))
            accents = pith__json_null(j) ? -1 : pith__json_bool(j);
        else
            pith__key_other(j, loader, key, "");
    }
    bool ok = pith__loader_add_normalizer(loader, &pith__bert_clean, o);
    if (accents < 0 ? lowercase : accents)
        ok = ok && pith__loader_add_normalizer(loader, &pith__normalizer_NFD, NULL) &&
             pith__loader_add_normalizer(loader, &pith__bert_strip, NULL);
    if (lowercase)
        ok = ok && pith__loader_add_normalizer(loader, &pith__normalizer_Lowercase, NULL);
    if (!ok) pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
}

const pith__normalizer_desc pith__normalizer_BertNormalizer = { "BertNormalizer", 0,
                                                                norm_bert_parse, NULL, NULL };
