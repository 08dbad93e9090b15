/* text_chunks.c - cutting a text into chunks that a model does not cut.
 *
 * The tokens of a piece differ from those of the same bytes within a longer text: words may be cut,
 * and the piece gets a beginning of its own. So tokens of the rest of the text only say where a cut
 * may be, the last one first; the bytes up to there are then tokenised as a text of their own, and
 * a cut that fits is taken. Only a slice of the rest is looked at, so the work is in proportion to
 * the text. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "models/encode/encoder_state.h"
#include "text/token_rows.h"

/* Bytes of the rest of a text that are looked at first, for each token of a chunk. Where they hold
 * too few tokens, more are. */
#define SLICE_TOKEN_BYTES ((size_t)8)
#define SLICE_BYTES_MIN ((size_t)256)

typedef struct chunk_search {
    const pith__encoder *e;
    pith_str text, prompt;
    int32_t max_length, overlap;
    pith__stop *stop;
    pith_tokens tokens; /* of the bytes encoded last; after chunk_encode, only those of the text
                           itself */
    pith__arena arena;  /* the prompt and these bytes */
} chunk_search;

static size_t chunk_align(pith_str text, size_t at) {
    while (at < text.size && ((uint8_t)text.data[at] & 0xc0) == 0x80) at++;
    return at;
}

/* Leaves special tokens and those of the prompt out of s->tokens, and moves the others to their
 * place in the text. */
static void chunk_keep_text(chunk_search *s, size_t begin) {
    pith_tokens *t = &s->tokens;
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->special[i] || t->end[i] <= s->prompt.size) continue;
        size_t from = t->begin[i] > s->prompt.size ? t->begin[i] - s->prompt.size : 0;
        t->begin[n] = (uint32_t)chunk_align(s->text, begin + from);
        t->end[n] = (uint32_t)chunk_align(s->text, begin + t->end[i] - s->prompt.size);
        t->word_ids[n++] = t->word_ids[i];
    }
    t->count = n;
}

/* The tokens of the text's bytes behind the prompt, up to max_length in all. */
static pith_status chunk_encode(chunk_search *s, size_t begin, size_t end, int32_t max_length,
                                pith_error *err) {
    pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
    pith_str part = { s->text.data + begin, end - begin };
    o.max_length = max_length;
    o.left = -1; /* chunks go from the beginning on */
    o.no_specials = s->e->parts.modules->no_specials;
    if (s->prompt.size) {
        size_t size;
        if (pith__add_overflows(s->prompt.size, part.size, &size))
            return pith__fail_memory(err, SIZE_MAX);
        pith__arena_reset(&s->arena);
        char *both = pith__arena_alloc(&s->arena, size);
        if (!both) return pith__fail_memory(err, size);
        memcpy(both, s->prompt.data, s->prompt.size);
        if (part.size) memcpy(both + s->prompt.size, part.data, part.size);
        part = (pith_str){ both, size };
    }
    pith_status status =
        pith__tokenizer_encode(&s->tokens, s->e->parts.tokenizer, part, NULL, &o, s->stop, err);
    if (status)
        return begin && !pith__status_stops(status)
                   ? pith__fail_at(err, status, "the text from byte %zu on: ", begin)
                   : status;
    chunk_keep_text(s, begin);
    return PITH_OK;
}

/* Whether the model takes these bytes whole; then they are the chunk's. */
static pith_status chunk_try(bool *fits, pith_chunk *chunk, chunk_search *s, size_t begin,
                             size_t end, pith_error *err) {
    const pith_str part = { s->text.data + begin, end - begin };
    *fits = pith__encode_cut_characters(s->e, s->max_length, part).size == part.size;
    if (!*fits) return PITH_OK;
    PITH_TRY(chunk_encode(s, begin, end, s->max_length, err));
    *fits = !s->tokens.truncated;
    if (!*fits) return PITH_OK;
    chunk->begin = begin;
    chunk->end = end;
    chunk->tokens = s->tokens.count;
    return PITH_OK;
}

/* A bounded copy of where tokens begin and end, which trying a cut overwrites. */
typedef struct chunk_cuts {
    size_t count;
    uint32_t *begin, *end;
    int32_t *words;
} chunk_cuts;

static pith_status chunk_copy_cuts(chunk_cuts *cuts, const pith_tokens *t, pith__arena *arena,
                                   pith_error *err) {
    cuts->count = t->count;
    cuts->begin = pith__arena_array(arena, t->count + 1, sizeof *cuts->begin);
    cuts->end = pith__arena_array(arena, t->count + 1, sizeof *cuts->end);
    cuts->words = pith__arena_array(arena, t->count + 1, sizeof *cuts->words);
    if (!cuts->begin || !cuts->end || !cuts->words)
        return pith__fail_memory(err, t->count * 3 * sizeof *cuts->begin);
    memcpy(cuts->begin, t->begin, t->count * sizeof *cuts->begin);
    memcpy(cuts->end, t->end, t->count * sizeof *cuts->end);
    memcpy(cuts->words, t->word_ids, t->count * sizeof *cuts->words);
    return PITH_OK;
}

static bool chunk_word_begins(const chunk_cuts *cuts, size_t i) {
    return cuts->words[i] != cuts->words[i - 1];
}

/* Where the chunk after one that ends before token j begins. */
static void chunk_set_next(pith_chunk *chunk, const chunk_search *s, const chunk_cuts *cuts,
                           size_t j) {
    const size_t overlap = (size_t)s->overlap;
    size_t i = j > overlap ? j - overlap : 1;
    chunk->fresh = cuts->begin[j] > chunk->end ? cuts->begin[j] : chunk->end;
    while (i < j && !chunk_word_begins(cuts, i)) i++;
    chunk->next = i < j && cuts->begin[i] > chunk->begin ? cuts->begin[i] : chunk->fresh;
    if (chunk->next > chunk->fresh) chunk->next = chunk->fresh;
}

/* Takes the last cut, at the end of a word if that leaves half a chunk; if its bytes do not fit,
 * one before it, by growing steps, so that no text takes long. *found is false if none fits that
 * ends behind `behind`. */
static pith_status chunk_take(bool *found, pith_chunk *chunk, chunk_search *s,
                              const chunk_cuts *cuts, size_t begin, size_t behind,
                              pith_error *err) {
    *found = false;
    const size_t last = cuts->count ? cuts->count - 1 : 0, beyond = behind > begin ? behind : begin;
    const size_t half = (last + 1) / 2;
    size_t least = 1, j = last;
    while (least <= last && cuts->end[least - 1] <= beyond) least++;
    while (j > half && !chunk_word_begins(cuts, j)) j--;
    if (j < least || !chunk_word_begins(cuts, j)) j = last;
    for (size_t step = 1; j >= least; step *= 2) {
        PITH_TRY(chunk_try(found, chunk, s, begin, cuts->end[j - 1], err));
        if (*found) chunk_set_next(chunk, s, cuts, j);
        if (*found || j == least) return PITH_OK;
        j = j - least > step ? j - step : least;
    }
    return PITH_OK;
}

/* The chunk that begins at a place and ends behind another one. *found is false if there is none. A
 * whole text, or the end of one, is tried first. Then a slice of the rest is tokenised, twice as
 * long each time, until it holds more tokens than a chunk or ends with the text. The places between
 * its tokens are where cuts are tried (chunk_take). */
static pith_status chunk_from(bool *found, pith_chunk *chunk, chunk_search *s, size_t begin,
                              size_t behind, pith_error *err) {
    const size_t rest = s->text.size - begin;
    size_t slice = (size_t)s->max_length * SLICE_TOKEN_BYTES + SLICE_BYTES_MIN;
    bool whole = !begin; /* a whole text that fits is one chunk, however few tokens its bytes are */
    for (;; slice *= 2) {
        if (slice >= rest) slice = rest;
        const size_t end = chunk_align(s->text, begin + slice);
        *found = false;
        if (whole || (begin && end == s->text.size))
            PITH_TRY(chunk_try(found, chunk, s, begin, s->text.size, err));
        chunk->last = *found;
        if (*found) return PITH_OK;
        whole = false;
        PITH_TRY(chunk_encode(s, begin, end,
                              s->max_length < INT32_MAX ? s->max_length + 1 : s->max_length, err));
        if (s->tokens.truncated || end == s->text.size) break;
    }
    pith__arena arena;
    chunk_cuts cuts;
    pith__arena_init(&arena, s->e->parts.executor.allocator);
    pith_status status = chunk_copy_cuts(&cuts, &s->tokens, &arena, err);
    if (!status) status = chunk_take(found, chunk, s, &cuts, begin, behind, err);
    pith__arena_free(&arena);
    return status;
}

static pith_status chunk_next(pith_chunk *chunk, chunk_search *s, pith_error *err) {
    const pith_chunk before = *chunk;
    bool found;
    PITH_TRY(chunk_from(&found, chunk, s, before.next, before.end, err));
    if (!found && before.next != before.fresh)
        PITH_TRY(chunk_from(&found, chunk, s, before.fresh, before.end, err));
    if (found) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "chunks of %d tokens have no room for the character at byte %zu behind the "
                      "prompt and special "
                      "tokens; allow more",
                      s->max_length, before.fresh);
}

/* Checks that the overlap leaves half of a chunk. */
static pith_status chunk_check(chunk_search *s, pith_error *err) {
    if (s->overlap < 0) return pith__fail(err, PITH_ERR_ARGUMENT, "overlap must not be negative");
    if (s->text.size > UINT32_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "the text is longer than 4 GiB");
    if (!s->overlap || !s->max_length) return PITH_OK;
    /* An empty text has the tokens of the prompt and the special ones. */
    pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
    o.no_specials = s->e->parts.modules->no_specials;
    PITH_TRY(pith__tokenizer_encode(&s->tokens, s->e->parts.tokenizer, s->prompt, NULL, &o, s->stop,
                                    err));
    const int64_t room = s->max_length - (int64_t)s->tokens.count;
    if (2 * (int64_t)s->overlap < room) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "an overlap of %d tokens is too much: chunks hold %lld tokens of a text, of "
                      "which less than half may "
                      "be repeated",
                      s->overlap, (long long)(room > 0 ? room : 0));
}

pith_status pith__encoder_next_chunk(pith_chunk *chunk, const pith__encoder *e, pith_str text,
                                     int32_t max_length, int32_t overlap, const char *prompt_name,
                                     pith__stop *stop, pith_error *err) {
    chunk_search s = { .e = e, .text = text, .overlap = overlap, .stop = stop };
    s.tokens = (pith_tokens)PITH_TOKENS_INIT;
    s.max_length = pith__encoder_max_length(e, max_length);
    pith_chunk next = *chunk;
    pith__arena_init(&s.arena, e->parts.executor.allocator);
    pith_status status = pith__stop_check(stop, err);
    if (!status) status = pith__encode_prompt(&s.prompt, e->parts.modules, prompt_name, err);
    if (!status) status = chunk_check(&s, err);
    if (!status && (chunk->last || chunk->next > text.size || chunk->fresh > text.size ||
                    chunk->end > text.size))
        status = pith__fail(err, PITH_ERR_ARGUMENT,
                            "no chunk follows this one; begin with PITH_CHUNK_INIT");
    if (!status) status = chunk_next(&next, &s, err);
    if (!status) *chunk = next;
    pith__token_rows_free(&s.tokens);
    pith__arena_free(&s.arena);
    return status;
}
