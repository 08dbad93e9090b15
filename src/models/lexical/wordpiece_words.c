/* wordpiece_words.c - see wordpiece_words.h. Source: _reconstruct_bpe of fastembed 0.9. There,
 * tokens whose text so far is empty stay with the next word; so they do here. */
#include "models/lexical/wordpiece_words.h"

#include <string.h>

#include "base/error.h"

typedef struct pieces_state {
    pith__wordpiece_words *pieces;
    char *text;          /* of the words so far and of the open one, one after the other */
    size_t begin, end;   /* of the open word in text */
    size_t first, taken; /* its tokens in order */
} pieces_state;

static void pieces_close(pieces_state *s) {
    if (s->begin == s->end) return;
    s->pieces->words[s->pieces->count++] =
        (pith__wordpiece_word){ { s->text + s->begin, s->end - s->begin }, s->first, s->taken };
    s->begin = s->end;
    s->first = s->taken;
}

pith_status pith__wordpiece_words_join(pith__wordpiece_words *pieces,
                                       const pith__wordpiece_source *source, const int32_t *ids,
                                       size_t count, bool keep_special, pith__arena *arena,
                                       pith_error *err) {
    pieces_state s = { .pieces = pieces };
    size_t bytes = 0;
    pith_str *tokens = pith__arena_array(arena, count, sizeof *tokens);
    pieces->count = 0;
    pieces->words = pith__arena_array(arena, count, sizeof *pieces->words);
    pieces->order = pith__arena_array(arena, count, sizeof *pieces->order);
    if (!tokens || !pieces->words || !pieces->order)
        return pith__fail_memory(err, count * sizeof *pieces->words);
    for (size_t i = 0; i < count; i++) {
        bool special = false;
        tokens[i] = source->token(source->tokenizer, ids[i], &special);
        if (special && !keep_special) tokens[i].data = NULL;
        if (tokens[i].data) bytes += tokens[i].size;
    }
    s.text = pith__arena_alloc(arena, bytes);
    if (!s.text) return pith__fail_memory(err, bytes);
    for (size_t i = 0; i < count; i++) {
        pith_str token = tokens[i];
        if (!token.data) continue;
        if (token.size >= 2 && !memcmp(token.data, "##", 2)) {
            token.data += 2;
            token.size -= 2;
        } else {
            pieces_close(&s);
        }
        if (token.size) memcpy(s.text + s.end, token.data, token.size);
        s.end += token.size;
        pieces->order[s.taken++] = i;
    }
    pieces_close(&s);
    return PITH_OK;
}
