/* open_texts.c - the part "texts": what makes a model embed text, its tokenizer and the encoder. */
#include "base/error.h"
#include "base/piece_listener.h"
#include "base/str.h"
#include "models/open/open_model.h"
#include "models/pictures/picture_view.h"
#include "models/save/save_model.h"
#include "models/save/save_words.h"

void pith__texts_note_use(void) {
    const pith__head *dense;
    pith__part_used("texts");
    if (!pith__head_find(&dense, "dense", NULL)) pith__piece_used(dense);
}

/* Of a model that is not compiled. */
static pith_status texts_of_sources(pith_model *m, pith_error *err) {
    if (m->text_modules) return m->text_modules->tokenizer(m, err);
    PITH_TRY(pith__piece_check("parts", PITH_STR("text_modules"), err));
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "this build embeds texts with compiled models only");
}

/* A compiled model may have come with the reason why it does not embed. */
static pith_status texts_open(pith_model *m, pith_error *err) {
    if (m->no_text.code) return m->no_text.code;
    if (m->options.flags & PITH_OPEN_INNER)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model was opened with its inner values as outputs");
    if (m->graph->input_count == 1 && pith__model_is_pixels(m->graph->inputs[0]))
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "its input is a picture; pith_embed_images of pith/image.h embeds pictures");
    PITH_TRY(m->compiled.writer ? pith__compiled_tokenizer(&m->tokenizer, &m->compiled, &m->options,
                                                           &m->arena, err)
                                : texts_of_sources(m, err));
    if (!m->text.output_count)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "not a text encoder: no output has one vector per text or per token");
    PITH_TRY(pith__text_view_make_encoder(&m->text, m, m->making.stop, err));
    pith__texts_note_use();
    if (m->compiled.writer) return PITH_OK;
    pith__part_used("text_modules");
    return m->text_modules->note(m, err);
}

static pith_status texts_load(pith_model *m, const pith__constant_spans_in *weights,
                              pith_error *err) {
    const pith_str *sections = m->compiled.sections;
    if (sections[PITH_SECTION_TEXT].data)
        PITH_TRY(pith__model_load_graph(&m->text.ragged, m, PITH_SECTION_TEXT, weights, err));
    return pith__save_words_read(&m->word_model, sections[PITH_SECTION_WORDS], weights, &m->arena,
                                 err);
}

static void texts_close(pith_model *m) {
    while (m->views) {
        pith__text_view *next = m->views->next;
        pith__text_view_free(m->views);
        pith__memory_free(m->options.call.allocator, m->views);
        m->views = next;
    }
    pith__text_view_free(&m->text);
    pith__tokenizer_unload(m->tokenizer);
}

static const pith__text_part part_texts_functions = { .load = texts_load,
                                                      .open = texts_open,
                                                      .close = texts_close };
const pith__part pith__part_texts = { "texts", &part_texts_functions };
