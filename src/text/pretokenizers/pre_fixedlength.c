/* pre_fixedlength.c - FixedLength: pieces of a fixed number of characters; the last one may be
 * shorter. */
#include "text/pipeline.h"
#include "text/sources/key_report.h"

static void pre_fixedlength_parse(const void **self, pith__json *j, pith__loader *loader) {
    int64_t *length = pith__arena_array(loader->arena, 1, sizeof *length);
    pith_str key;
    if (!length) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    *length = 5;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "length"))
            *length = pith__json_int(j);
        else
            pith__key_other(j, loader, key, "");
    }
    if (!j->failed && *length < 1) pith__json_fail(j, PITH_ERR_FORMAT, "length must be at least 1");
    *self = length;
}

static pith_status pre_fixedlength_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const int64_t *length = self;
    const char *text = enc->text.data, *end = text + piece.end;
    for (const char *p = text + piece.begin; p < end;) {
        const char *begin = p;
        if (pith__encoding_stops(enc, (size_t)(p - text))) return PITH_OK;
        for (int64_t i = 0; i < *length && p < end; i++) pith__utf8_next(&p);
        pith__encoding_emit(enc, (uint32_t)(begin - text), (uint32_t)(p - text));
    }
    return PITH_OK;
}

const pith__pretokenizer_desc pith__pretokenizer_FixedLength = { "FixedLength", 0,
                                                                 pre_fixedlength_parse,
                                                                 pre_fixedlength_run, NULL };
