/* pre_scripts.c - UnicodeScripts: cuts where the script changes. Characters without a script (0) belong to the piece
 * before them. At the start of a text Hugging Face tokenizers drops them, and so do we. */
#include "text/pipeline.h"
#include "base/unicode/tokenizer_characters.h"

static pith_status pre_scripts_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t begin = piece.end;
    int last = 0;
    (void)self;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text);
        int script = pith_char_script(pith_utf8_next(&p));
        if (!script || script == last) continue;
        if (last) pith_encoding_emit(enc, begin, at);
        begin = at;
        last = script;
    }
    pith_encoding_emit(enc, begin, piece.end);
    return PITH_OK;
}

const pith_pretokenizer_desc pith_pretokenizer_UnicodeScripts = { "UnicodeScripts", 0, NULL, pre_scripts_run, NULL };
