/* pre_bytelevel.c - the pre-tokenizer ByteLevel: GPT-2's cuts, and every byte spelled as one
 * character.
 *
 * Up to three steps: a space before each piece that does not begin with one (it belongs to the
 * character it precedes), the cuts, the spelling. A model that reads bytes drops the last step, and
 * most texts are then not rewritten at all. */
#include "text/byte_spelling.h"
#include "text/pretokenizers/pre_bytelevel.h"
#include "text/regex/known_regex.h"
#include "text/sources/key_report.h"

static pith_status add_space(const void *self, pith__encoding *enc, pith__piece piece) {
    (void)self;
    uint32_t begin = (uint32_t)enc->out.size;
    if (piece.begin < piece.end && enc->text.data[piece.begin] != ' ')
        pith__encoding_put_char(enc, ' ', piece.begin);
    pith__encoding_copy(enc, piece.begin, piece.end);
    pith__encoding_emit(enc, begin, (uint32_t)enc->out.size);
    return PITH_OK;
}

static pith_status pre_bytelevel_cut(const void *self, pith__encoding *enc, pith__piece piece) {
    (void)self;
    uint32_t begin = piece.begin, end;
    for (; pith__known_regex_next(&pith__scan_gpt2, enc->text.data, begin, piece.end, &begin, &end);
         begin = end) {
        if (pith__encoding_stops(enc, begin)) return PITH_OK;
        pith__encoding_emit(enc, begin, end);
    }
    return PITH_OK;
}

static pith_status pre_bytelevel_spell(const void *self, pith__encoding *enc, pith__piece piece) {
    (void)self;
    uint32_t begin = (uint32_t)enc->out.size;
    for (uint32_t i = piece.begin; i < piece.end; i++) {
        if (i % 4096 == 0 && pith__encoding_stops(enc, i)) return PITH_OK;
        pith__encoding_put_char(enc, pith__byte_char((unsigned char)enc->text.data[i]), i);
    }
    pith__encoding_emit(enc, begin, (uint32_t)enc->out.size);
    return PITH_OK;
}

static const pith__pretokenizer_desc space_desc = { .flags = PITH_STEP_REWRITES | PITH_STEP_LOCAL,
                                                    .run = add_space };
static const pith__pretokenizer_desc cut_desc = { .flags = PITH_STEP_LOCAL | PITH_STEP_CUTS,
                                                  .run = pre_bytelevel_cut };

static void pre_bytelevel_add_step(pith__json *j, pith__loader *loader,
                                   const pith__pretokenizer_desc *desc) {
    pith__step_list *list = &loader->tokenizer->pretokenizers;
    if (pith__arena_grow(loader->arena, (void **)&list->steps, list->count, &list->capacity,
                         sizeof *list->steps))
        list->steps[list->count++] = (pith__text_step){ desc, NULL };
    else
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
}

static void pre_bytelevel_parse(const void **self, pith__json *j, pith__loader *loader) {
    bool space = true, cuts = true;
    pith_str key;
    (void)self;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "add_prefix_space"))
            space = pith__json_bool(j);
        else if (pith__str_is(key, "use_regex"))
            cuts = pith__json_bool(j);
        else
            pith__key_other(j, loader, key, "trim_offsets");
    }
    if (space) pre_bytelevel_add_step(j, loader, &space_desc);
    if (cuts) pre_bytelevel_add_step(j, loader, &cut_desc);
}

const pith__pretokenizer_desc pith__pretokenizer_ByteLevel = {
    .name = "ByteLevel",
    .flags = PITH_STEP_REWRITES,
    .parse = pre_bytelevel_parse,
    .run = pre_bytelevel_spell,
};
