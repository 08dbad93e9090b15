/* run_steps.c - one text through all stages: added tokens, normalizers, added tokens in normalised
 * text, pre-tokenizers, model. Each stage maps the list of pieces to the next one. A fused model
 * replaces all stages but the first. */
#include "text/run_steps.h"

#include "base/piece_listener.h"
#include "text/added_tokens.h"
#include "text/encoding.h"
#include "text/post_processing.h"

static bool is_ascii(const char *p, size_t size) {
    uint64_t seen = 0, word;
    for (; size >= 8; p += 8, size -= 8) {
        memcpy(&word, p, 8);
        seen |= word;
    }
    for (; size; p++, size--) seen |= (unsigned char)*p;
    return !(seen & 0x8080808080808080u);
}

/* What a step noted in the encoding. */
static pith_status steps_status(pith__encoding *enc) {
    if (enc->stopped) return pith__stop_check(enc->stop, enc->err);
    return enc->out_of_memory ? pith__fail_memory(enc->err, enc->text.size) : PITH_OK;
}

/* Bytes of a slice of a piece, for steps that need not see all of it: a call that must end ends
 * between two of them. */
enum { STEPS_SLICE = 1 << 16 };

static pith_status steps_normalize_piece(const pith__text_step *step, pith__encoding *enc,
                                         pith__piece piece) {
    const pith__normalizer_desc *desc = step->desc;
    if (!enc->stop || !(desc->flags & PITH_STEP_EACH)) return desc->run(step->self, enc, piece);
    pith__piece slice = { piece.begin, piece.begin, piece.id };
    do {
        slice.end = piece.end - slice.begin > STEPS_SLICE ? slice.begin + STEPS_SLICE : piece.end;
        while (slice.end < piece.end && (enc->text.data[slice.end] & 0xC0) == 0x80) slice.end++;
        PITH_TRY(desc->run(step->self, enc, slice));
        slice.begin = slice.end;
    } while (slice.end < piece.end && !pith__encoding_stops(enc, slice.end));
    return PITH_OK;
}

/* Each normalizer writes all pieces to the other buffer, which then becomes the text. Added tokens
 * are copied unchanged. A normalizer that leaves ASCII alone is skipped for ASCII text. */
pith_status pith__normalize(pith__encoding *enc) {
    const pith__step_list *list = &enc->tokenizer->normalizers;
    for (size_t s = 0; s < list->count; s++) {
        const pith__normalizer_desc *desc = list->steps[s].desc;
        if (desc->flags & PITH_STEP_ASCII_NOOP && is_ascii(enc->text.data, enc->text.size))
            continue;
        pith__encoding_restart(enc);
        for (size_t i = 0; i < enc->piece_count; i++) {
            pith__piece *piece = &enc->pieces[i];
            (void)pith__encoding_stops(enc, piece->begin);
            uint32_t begin = (uint32_t)enc->out.size;
            if (piece->id >= 0)
                pith__encoding_copy(enc, piece->begin, piece->end);
            else
                PITH_TRY(steps_normalize_piece(&list->steps[s], enc, *piece));
            if (enc->out_of_memory || enc->stopped) return steps_status(enc);
            piece->begin = begin;
            piece->end = (uint32_t)enc->out.size;
        }
        if (enc->out.size >= PITH_TEXT_MAX)
            return pith__fail(enc->err, PITH_ERR_MEMORY,
                              "the normalised text is larger than %u bytes", PITH_TEXT_MAX);
        pith__encoding_swap_text(enc);
    }
    return PITH_OK;
}

/* Each pre-tokenizer maps the list of pieces to the next one. Only a few rewrite text; the buffers
 * are swapped for these alone. */
static pith_status pretokenize(pith__encoding *enc) {
    const pith__step_list *list = &enc->tokenizer->pretokenizers;
    for (size_t s = 0; s < list->count; s++) {
        const pith__pretokenizer_desc *desc = list->steps[s].desc;
        if (desc->flags & PITH_STEP_ASCII_NOOP && is_ascii(enc->text.data, enc->text.size))
            continue;
        bool rewrites = desc->flags & PITH_STEP_REWRITES;
        pith__encoding_restart(enc);
        for (size_t i = 0; i < enc->piece_count; i++) {
            pith__piece piece = enc->pieces[i];
            (void)pith__encoding_stops(enc, piece.begin);
            if (piece.id < 0)
                PITH_TRY(desc->run(list->steps[s].self, enc, piece));
            else {
                if (rewrites) {
                    uint32_t begin = (uint32_t)enc->out.size;
                    pith__encoding_copy(enc, piece.begin, piece.end);
                    piece.begin = begin;
                    piece.end = (uint32_t)enc->out.size;
                }
                pith__encoding_emit_piece(enc, piece);
            }
            if (enc->out_of_memory || enc->stopped) return steps_status(enc);
        }
        pith__encoding_swap_pieces(enc);
        if (enc->out.size >= PITH_TEXT_MAX)
            return pith__fail(enc->err, PITH_ERR_MEMORY,
                              "the rewritten text is larger than %u bytes", PITH_TEXT_MAX);
        if (rewrites) pith__encoding_swap_text(enc);
    }
    return PITH_OK;
}

/* An added token. Where offsets are trimmed it is marked: the model may give the same id to other
 * text. */
static void steps_put_added(pith__encoding *enc, pith__piece piece) {
    pith__encoding_token(enc, piece.id, piece.begin, piece.end);
    if (enc->offsets && enc->tokenizer->post_processing->trim)
        enc->words[enc->count - 1] |= PITH_WORD_ADDED;
}

/* The fused model reads the source itself. It gives up by setting `unfused` when it meets a text it
 * has no rules for; the caller then starts again step by step. */
static pith_status encode_fused(pith__encoding *enc) {
    const pith_tokenizer *t = enc->tokenizer;
    enc->source_offsets = true;
    pith__encoding_restart(enc);
    for (size_t i = 0; i < enc->piece_count; i++) {
        if (enc->count > enc->limit || enc->unfused) break;
        if (pith__encoding_stops(enc, enc->pieces[i].begin)) break;
        pith__piece piece = enc->pieces[i];
        if (piece.id < 0)
            PITH_TRY(t->model->encode_fused(t->fused, enc, piece));
        else if (pith__encoding_room(enc, 1)) {
            steps_put_added(enc, piece);
            enc->word++;
        }
        if (enc->out_of_memory) return steps_status(enc);
    }
    return steps_status(enc);
}

/* All stages one after another. Encoding ends when the limit is passed: the tokens beyond it would
 * be cut off anyway. */
static pith_status encode_steps(pith__encoding *enc) {
    const pith_tokenizer *t = enc->tokenizer;
    PITH_TRY(pith__normalize(enc));
    if (t->normalizers.count) { /* pieces that became empty go now */
        for (size_t i = 0; i < enc->piece_count; i++)
            if (enc->pieces[i].begin != enc->pieces[i].end)
                pith__encoding_emit_piece(enc, enc->pieces[i]);
        pith__encoding_swap_pieces(enc);
    }
    if (!pith__added_tokens_split(enc, t->added_tokens, &t->added_tokens->normalized))
        return steps_status(enc);
    PITH_TRY(pretokenize(enc));
    pith__encoding_restart(enc);
    for (size_t i = 0; i < enc->piece_count; i++) {
        if (enc->count > enc->limit) break;
        if (pith__encoding_stops(enc, enc->pieces[i].begin)) break;
        pith__piece piece = enc->pieces[i];
        enc->word = (int32_t)i;
        size_t size = piece.end - piece.begin;
        if (!pith__encoding_room(enc, (size < PITH_PIECE_ROOM ? size : PITH_PIECE_ROOM) + 8))
            return steps_status(enc);
        if (piece.id >= 0)
            steps_put_added(enc, piece);
        else
            PITH_TRY(t->model->encode(t->model_self, enc, piece));
        if (enc->out_of_memory) return steps_status(enc);
    }
    return steps_status(enc);
}

/* A token's place in the text to that in the source. */
static void find_in_source(pith__encoding *enc, size_t i) {
    uint32_t end;
    if (enc->begin[i] < enc->end[i]) {
        pith__encoding_range(enc, enc->begin[i], enc->end[i], &enc->begin[i], &enc->end[i]);
    } else if (enc->begin[i] < enc->text.size) {
        pith__encoding_range(enc, enc->begin[i], enc->begin[i] + 1, &enc->begin[i], &end);
        enc->end[i] = enc->begin[i];
    } else {
        enc->begin[i] = enc->end[i] = (uint32_t)enc->source.size;
    }
}

/* One text from bytes to tokens. Offsets are positions in the rewritten text until the end, when
 * they are mapped back to the source and, where the post-processor asks for it, trimmed of white
 * space. */
pith_status pith__encode_text(pith__encoding *enc, pith_str text, bool offsets) {
    const pith_tokenizer *t = enc->tokenizer;
    size_t first = enc->count;
    if (text.size >= PITH_TEXT_MAX)
        return pith__fail(enc->err, PITH_ERR_ARGUMENT,
                          "a text of %zu bytes (at most %u are allowed)", text.size,
                          PITH_TEXT_MAX - 1);
    bool origins = offsets || t->needs_origins;
    if (!pith__encoding_begin(enc, text, origins) ||
        !pith__added_tokens_split(enc, t->added_tokens, &t->added_tokens->raw))
        return steps_status(enc);
    enc->unfused = !t->fused;
    if (t->fused) PITH_TRY(encode_fused(enc));
    if (t->fused && enc->unfused) {
        enc->count = first;
        if (!pith__encoding_begin(enc, text, origins) ||
            !pith__added_tokens_split(enc, t->added_tokens, &t->added_tokens->raw))
            return steps_status(enc);
    }
    if (enc->unfused) PITH_TRY(encode_steps(enc));
    enc->offsets = offsets;
    if (!offsets) return PITH_OK;
    if (enc->source_offsets && !t->post_processing->trim) return PITH_OK;
    pith__encoding_restart(enc);
    for (size_t i = first; i < enc->count; i++) {
        if (pith__encoding_stops(enc, i)) return steps_status(enc);
        pith_str slice = { enc->text.data + enc->begin[i], enc->end[i] - enc->begin[i] };
        if (!enc->source_offsets) find_in_source(enc, i);
        if (!t->post_processing->trim ||
            !(enc->words[i] & PITH_WORD_ADDED || enc->ids[i] == t->unknown_id))
            continue;
        enc->words[i] |= PITH_WORD_ADDED;
        pith__trim_added(enc, i, slice);
    }
    return PITH_OK;
}

#define FIND(table, wanted)                                                                        \
    do {                                                                                           \
        for (size_t i = 0; table[i]; i++)                                                          \
            if (pith__str_is(wanted, table[i]->name)) {                                            \
                pith__piece_used(table[i]);                                                        \
                return table[i];                                                                   \
            }                                                                                      \
        return NULL;                                                                               \
    } while (0)

const pith__normalizer_desc *pith__normalizer_find(pith_str name) {
    FIND(pith__normalizer_table, name);
}
const pith__pretokenizer_desc *pith__pretokenizer_find(pith_str name) {
    FIND(pith__pretokenizer_table, name);
}
const pith__model_desc *pith__model_find(pith_str name) { FIND(pith__model_table, name); }
const pith__decoder_desc *pith__decoder_find(pith_str name) { FIND(pith__decoder_table, name); }
