/* model_wordlevel.c - WordLevel: a piece is a token, or it is unknown. */
#include "text/frozen_tokenizer.h"
#include "text/sources/key_report.h"
#include "text/vocab.h"

typedef struct wordlevel {
    pith__vocab vocab; /* first: vocab.h */
    pith_str unk_token;
    int32_t unk_id;
} wordlevel;

static void model_wordlevel_parse(const void **self, pith__json *j, pith__loader *loader) {
    pith__vocab_builder vocab = { .scratch = loader->scratch };
    pith_str key, unk = PITH_STR("<unk>");
    bool has_vocab = false;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "vocab")) {
            pith__vocab_parse(&vocab, j);
            has_vocab = true;
        } else if (pith__str_is(key, "unk_token"))
            unk = pith__json_string(j);
        else
            pith__key_other(j, loader, key, "");
    }
    if (!j->failed && !has_vocab && !loader->frozen.data)
        pith__json_fail(j, PITH_ERR_FORMAT, "no vocab");
    if (j->failed) return;
    wordlevel *w = pith__arena_array(loader->arena, 1, sizeof *w);
    if (!w || !(w->unk_token = pith__arena_str(loader->arena, unk)).data) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    if (pith__vocab_take(&w->vocab, &vocab, loader)) {
        j->failed = true;
        return;
    }
    w->unk_id = pith__vocab_id(&w->vocab, unk);
    *self = w;
}

static pith_status model_wordlevel_encode(const void *self, pith__encoding *enc,
                                          pith__piece piece) {
    const wordlevel *w = self;
    int32_t found = pith__vocab_id(
        &w->vocab, (pith_str){ enc->text.data + piece.begin, piece.end - piece.begin });
    if (found < 0) found = w->unk_id;
    if (found < 0)
        return pith__fail(enc->err, PITH_ERR_RUN,
                          "a word is not in the vocabulary, and neither is the unknown token");
    pith__encoding_token(enc, found, piece.begin, piece.end);
    return PITH_OK;
}

static void model_wordlevel_save(const void *self, pith__frozen_writer *writer) {
    const wordlevel *w = self;
    pith__frozen_put_string(writer, "unk_token", w->unk_token);
    pith__vocab_save(&w->vocab, writer);
}

const pith__model_desc pith__model_WordLevel = {
    .name = "WordLevel",
    .parse = model_wordlevel_parse,
    .save = model_wordlevel_save,
    .encode = model_wordlevel_encode,
    .id = pith__vocab_model_id,
    .token = pith__vocab_model_token,
    .size = pith__vocab_model_size,
    .count = pith__vocab_model_count,
};
