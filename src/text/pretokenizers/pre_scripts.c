/* pre_scripts.c - UnicodeScripts: cuts where the script changes. Characters without a script (0)
 * belong to the piece before them. At the start of a text Hugging Face tokenizers drops them, and
 * so do we. */
#include "base/unicode/tokenizer_characters.h"
#include "text/pipeline.h"

static pith_status pre_scripts_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const char *text = enc->text.data, *end = text + piece.end;
    uint32_t begin = piece.end;
    int last = 0;
    (void)self;
    for (const char *p = text + piece.begin; p < end;) {
        uint32_t at = (uint32_t)(p - text);
        if (pith__encoding_stops(enc, at)) return PITH_OK;
        int script = pith__char_script(pith__utf8_next(&p));
        if (!script || script == last) continue;
        if (last) pith__encoding_emit(enc, begin, at);
        begin = at;
        last = script;
    }
    pith__encoding_emit(enc, begin, piece.end);
    return PITH_OK;
}

const pith__pretokenizer_desc pith__pretokenizer_UnicodeScripts = { "UnicodeScripts", 0, NULL,
                                                                    pre_scripts_run, NULL };
