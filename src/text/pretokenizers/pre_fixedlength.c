/* pre_fixedlength.c - FixedLength: pieces of a fixed number of characters; the last one may be shorter. */
#include "text/sources/key_report.h"
#include "text/pipeline.h"

static void pre_fixedlength_parse(const void **self, pith_json *j, pith_loader *loader) {
    int64_t *length = pith_arena_array(loader->arena, 1, sizeof *length);
    pith_str key;
    if (!length) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    *length = 5;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "length"))
            *length = pith_json_int(j);
        else
            pith_key_other(j, loader, key, "");
    }
    if (!j->failed && *length < 1) pith_json_fail(j, PITH_ERR_FORMAT, "length must be at least 1");
    *self = length;
}

static pith_status pre_fixedlength_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const int64_t *length = self;
    const char *text = enc->text.data, *end = text + piece.end;
    for (const char *p = text + piece.begin; p < end;) {
        const char *begin = p;
        for (int64_t i = 0; i < *length && p < end; i++) pith_utf8_next(&p);
        pith_encoding_emit(enc, (uint32_t)(begin - text), (uint32_t)(p - text));
    }
    return PITH_OK;
}

const pith_pretokenizer_desc pith_pretokenizer_FixedLength = { "FixedLength", 0, pre_fixedlength_parse,
                                                               pre_fixedlength_run, NULL };
