/* steps.c - one text through all stages: added tokens, normalizers, added tokens in normalised text, pre-tokenizers,
 * model. Each stage maps the list of pieces to the next one; a fused model takes the place of all but the first. */
#include "text/steps.h"

#include "text/added.h"
#include "text/call.h"
#include "text/framing.h"

static bool is_ascii(const char *p, size_t size) {
    uint64_t seen = 0, word;
    for (; size >= 8; p += 8, size -= 8) {
        memcpy(&word, p, 8);
        seen |= word;
    }
    for (; size; p++, size--) seen |= (unsigned char)*p;
    return !(seen & 0x8080808080808080u);
}

static pith_status memory_status(pith_call *call) {
    return call->out_of_memory ? pith_fail_memory(call->err, call->text.size) : PITH_OK;
}

pith_status pith_normalize(pith_call *call) {
    const pith_step_list *list = &call->tokenizer->normalizers;
    for (size_t s = 0; s < list->count; s++) {
        const pith_normalizer_desc *desc = list->steps[s].desc;
        if (desc->flags & PITH_STEP_ASCII_NOOP && is_ascii(call->text.data, call->text.size)) continue;
        for (size_t i = 0; i < call->piece_count; i++) {
            pith_piece *piece = &call->pieces[i];
            uint32_t begin = (uint32_t)call->out.size;
            if (piece->id >= 0)
                pith_call_copy(call, piece->begin, piece->end);
            else
                PITH_TRY(desc->run(list->steps[s].self, call, *piece));
            if (call->out_of_memory) return memory_status(call);
            piece->begin = begin;
            piece->end = (uint32_t)call->out.size;
        }
        if (call->out.size >= PITH_TEXT_MAX)
            return pith_fail(call->err, PITH_ERR_MEMORY, "the normalised text is larger than %u bytes", PITH_TEXT_MAX);
        pith_call_swap_text(call);
    }
    return PITH_OK;
}

static pith_status pretokenize(pith_call *call) {
    const pith_step_list *list = &call->tokenizer->pretokenizers;
    for (size_t s = 0; s < list->count; s++) {
        const pith_pretokenizer_desc *desc = list->steps[s].desc;
        if (desc->flags & PITH_STEP_ASCII_NOOP && is_ascii(call->text.data, call->text.size)) continue;
        bool rewrites = desc->flags & PITH_STEP_REWRITES;
        for (size_t i = 0; i < call->piece_count; i++) {
            pith_piece piece = call->pieces[i];
            if (piece.id < 0)
                PITH_TRY(desc->run(list->steps[s].self, call, piece));
            else {
                if (rewrites) {
                    uint32_t begin = (uint32_t)call->out.size;
                    pith_call_copy(call, piece.begin, piece.end);
                    piece.begin = begin;
                    piece.end = (uint32_t)call->out.size;
                }
                pith_call_emit_piece(call, piece);
            }
            if (call->out_of_memory) return memory_status(call);
        }
        pith_call_swap_pieces(call);
        if (call->out.size >= PITH_TEXT_MAX)
            return pith_fail(call->err, PITH_ERR_MEMORY, "the rewritten text is larger than %u bytes", PITH_TEXT_MAX);
        if (rewrites) pith_call_swap_text(call);
    }
    return PITH_OK;
}

/* An added token. Where offsets are trimmed it is marked: the model may give the same id to other text. */
static void put_added(pith_call *call, pith_piece piece) {
    pith_call_token(call, piece.id, piece.begin, piece.end);
    if (call->offsets && call->tokenizer->framing->trim) call->words[call->count - 1] |= PITH_WORD_ADDED;
}

static pith_status encode_fused(pith_call *call) {
    const pith_tokenizer *t = call->tokenizer;
    call->source_offsets = true;
    for (size_t i = 0; i < call->piece_count && call->count <= call->limit && !call->unfused; i++) {
        pith_piece piece = call->pieces[i];
        if (piece.id < 0)
            PITH_TRY(t->model->encode_fused(t->fused, call, piece));
        else if (pith_call_room(call, 1)) {
            put_added(call, piece);
            call->word++;
        }
        if (call->out_of_memory) return memory_status(call);
    }
    return PITH_OK;
}

static pith_status encode_steps(pith_call *call) {
    const pith_tokenizer *t = call->tokenizer;
    PITH_TRY(pith_normalize(call));
    if (t->normalizers.count) { /* pieces that became empty go now */
        for (size_t i = 0; i < call->piece_count; i++)
            if (call->pieces[i].begin != call->pieces[i].end) pith_call_emit_piece(call, call->pieces[i]);
        pith_call_swap_pieces(call);
    }
    if (!pith_added_split(call, t->added, &t->added->normalized)) return memory_status(call);
    PITH_TRY(pretokenize(call));
    for (size_t i = 0; i < call->piece_count && call->count <= call->limit; i++) {
        pith_piece piece = call->pieces[i];
        call->word = (int32_t)i;
        size_t size = piece.end - piece.begin;
        if (!pith_call_room(call, (size < PITH_PIECE_ROOM ? size : PITH_PIECE_ROOM) + 8)) return memory_status(call);
        if (piece.id >= 0)
            put_added(call, piece);
        else
            PITH_TRY(t->model->encode(t->model_self, call, piece));
        if (call->out_of_memory) return memory_status(call);
    }
    return PITH_OK;
}

/* A token's place in the text to that in the source. */
static void find_in_source(pith_call *call, size_t i) {
    uint32_t end;
    if (call->begin[i] < call->end[i]) {
        pith_call_range(call, call->begin[i], call->end[i], &call->begin[i], &call->end[i]);
    } else if (call->begin[i] < call->text.size) {
        pith_call_range(call, call->begin[i], call->begin[i] + 1, &call->begin[i], &end);
        call->end[i] = call->begin[i];
    } else {
        call->begin[i] = call->end[i] = (uint32_t)call->source.size;
    }
}

pith_status pith_encode_text(pith_call *call, pith_str text, bool offsets) {
    const pith_tokenizer *t = call->tokenizer;
    size_t first = call->count;
    if (text.size >= PITH_TEXT_MAX)
        return pith_fail(call->err, PITH_ERR_ARGUMENT, "a text of %zu bytes (at most %u are allowed)", text.size,
                         PITH_TEXT_MAX - 1);
    bool origins = offsets || t->needs_origins;
    if (!pith_call_begin(call, text, origins) || !pith_added_split(call, t->added, &t->added->raw))
        return memory_status(call);
    call->unfused = !t->fused;
    if (t->fused) PITH_TRY(encode_fused(call));
    if (t->fused && call->unfused) {
        call->count = first;
        if (!pith_call_begin(call, text, origins) || !pith_added_split(call, t->added, &t->added->raw))
            return memory_status(call);
    }
    if (call->unfused) PITH_TRY(encode_steps(call));
    call->offsets = offsets;
    if (!offsets) return PITH_OK;
    for (size_t i = first; i < call->count && (!call->source_offsets || t->framing->trim); i++) {
        pith_str slice = { call->text.data + call->begin[i], call->end[i] - call->begin[i] };
        if (!call->source_offsets) find_in_source(call, i);
        if (!t->framing->trim || !(call->words[i] & PITH_WORD_ADDED || call->ids[i] == t->unknown_id)) continue;
        call->words[i] |= PITH_WORD_ADDED;
        pith_trim_added(call, i, slice);
    }
    return PITH_OK;
}

#define FIND(table, wanted)                                                                                            \
    do {                                                                                                               \
        for (size_t i = 0; table[i]; i++)                                                                              \
            if (pith_str_is(wanted, table[i]->name)) return table[i];                                                  \
        return NULL;                                                                                                   \
    } while (0)

const pith_normalizer_desc *pith_normalizer_find(pith_str name) { FIND(pith_normalizer_table, name); }
const pith_pretokenizer_desc *pith_pretokenizer_find(pith_str name) { FIND(pith_pretokenizer_table, name); }
const pith_model_desc *pith_model_find(pith_str name) { FIND(pith_model_table, name); }
const pith_decoder_desc *pith_decoder_find(pith_str name) { FIND(pith_decoder_table, name); }
