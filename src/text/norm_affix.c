/* norm_affix.c - Prepend and Append: a fixed text at one end of every piece. */
#include "text/pipeline.h"

static void norm_affix_parse(const void **self, pith_json *j, pith_loader *loader) {
    pith_str *text = pith_arena_array(loader->arena, 1, sizeof *text), key;
    pith_json_object(j);
    while (text && pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "prepend") || pith_str_is(key, "append"))
            *text = pith_json_copy(j, loader->arena, pith_json_string(j));
        else
            pith_json_skip(j);
    }
    if (!text)
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
    else if (!j->failed && !text->data)
        pith_json_fail(j, PITH_ERR_FORMAT, "no text to put in");
    *self = text;
}

static pith_status prepend(const void *self, pith_encoding *enc, pith_piece piece) {
    const pith_str *text = self;
    if (piece.begin < piece.end) pith_encoding_put(enc, text->data, text->size, piece.begin);
    pith_encoding_copy(enc, piece.begin, piece.end);
    return PITH_OK;
}

static pith_status append(const void *self, pith_encoding *enc, pith_piece piece) {
    const pith_str *text = self;
    pith_encoding_copy(enc, piece.begin, piece.end);
    pith_encoding_put(enc, text->data, text->size, piece.end > piece.begin ? piece.end - 1 : PITH_ORIGIN_EMPTY);
    return PITH_OK;
}

const pith_normalizer_desc pith_normalizer_Append = { "Append", 0, norm_affix_parse, append, NULL };
const pith_normalizer_desc pith_normalizer_Prepend = { "Prepend", PITH_STEP_LOCAL, norm_affix_parse, prepend, NULL };
