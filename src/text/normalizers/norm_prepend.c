/* norm_prepend.c - Prepend: a fixed text before every piece that is not empty. */
#include "text/pipeline.h"
#include "text/sources/key_report.h"

static void norm_prepend_parse(const void **self, pith__json *j, pith__loader *loader) {
    pith_str *text = pith__arena_array(loader->arena, 1, sizeof *text), key;
    pith__json_object(j);
    while (text && pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "prepend"))
            *text = pith__json_copy(j, loader->arena, pith__json_string(j));
        else
            pith__key_other(j, loader, key, "");
    }
    if (!text)
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
    else if (!j->failed && !text->data)
        pith__json_fail(j, PITH_ERR_FORMAT, "prepend is missing");
    *self = text;
}

static pith_status prepend(const void *self, pith__encoding *enc, pith__piece piece) {
    const pith_str *text = self;
    if (piece.begin < piece.end) pith__encoding_put(enc, text->data, text->size, piece.begin);
    pith__encoding_copy(enc, piece.begin, piece.end);
    return PITH_OK;
}

const pith__normalizer_desc pith__normalizer_Prepend = { "Prepend", PITH_STEP_LOCAL,
                                                         norm_prepend_parse, prepend, NULL };
