/* norm_prepend.c - Prepend: a fixed text before every piece that is not empty. */
#include "text/sources/key_report.h"
#include "text/pipeline.h"

static void norm_prepend_parse(const void **self, pith_json *j, pith_loader *loader) {
    pith_str *text = pith_arena_array(loader->arena, 1, sizeof *text), key;
    pith_json_object(j);
    while (text && pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "prepend"))
            *text = pith_json_copy(j, loader->arena, pith_json_string(j));
        else
            pith_key_other(j, loader, key, "");
    }
    if (!text)
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
    else if (!j->failed && !text->data)
        pith_json_fail(j, PITH_ERR_FORMAT, "prepend is missing");
    *self = text;
}

static pith_status prepend(const void *self, pith_encoding *enc, pith_piece piece) {
    const pith_str *text = self;
    if (piece.begin < piece.end) pith_encoding_put(enc, text->data, text->size, piece.begin);
    pith_encoding_copy(enc, piece.begin, piece.end);
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_Prepend = { "Prepend", PITH_STEP_LOCAL, norm_prepend_parse, prepend, NULL };
