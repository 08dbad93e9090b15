/* made_up_texts.c - see made_up_texts.h. */
#include "models/quantize/made_up_texts.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/str.h"
#include "base/unicode/tokenizer_characters.h"
#include "base/unicode/utf8.h"
#include "text/byte_spelling.h"

/* A script gets texts only if the vocabulary has at least this many pieces of it that begin a word.
 * With fewer, the texts would repeat the same words. */
enum { STARTS_MIN = 8 };
/* Texts of each length for a script, and for the largest one, which real texts use most. More texts
 * take longer. */
enum { TEXTS = 6, TEXTS_LARGEST = 24 };
/* If the pieces of a script have at least this many letters on average, they are syllables and
 * words, not letters. */
enum { LONG_PIECES = 2 };
static const int lengths[] = { 8, 14, 24, 40, 96 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* A piece of one script. */
typedef struct piece {
    pith_str text;
    int32_t id;
    int script;
    bool goes_on; /* a word */
} piece;

/* Pieces of one script: those that begin a word, then those that go on. */
typedef struct script {
    const piece *pieces;
    size_t starts, count;
    bool long_pieces;
} script;

/* ---- what the vocabulary has ---- */

/* The script all characters of a text have; 0: none, or several. */
static int script_of(pith_str text) {
    int found = 0;
    for (const char *p = text.data, *end = p + text.size; p < end;) {
        int s = pith__char_script(pith__utf8_next(&p));
        if (!s || (found && s != found)) return 0;
        found = s;
    }
    return found;
}

static bool takes_off(pith_str *text, const char *prefix) {
    size_t size = strlen(prefix);
    if (text->size <= size || memcmp(text->data, prefix, size) != 0) return false;
    *text = (pith_str){ text->data + size, text->size - size };
    return true;
}

/* How the vocabulary tells what begins a word from what goes on. */
typedef struct marks {
    bool bytes; /* characters stand for bytes, and a space begins a word */
    bool space; /* U+2581 begins a word */
} marks;

/* The token as text, in arena where it is not the vocabulary's; false: it is none. */
static bool made_up_texts_read_piece(piece *p, pith_str token, marks m, pith__arena *arena) {
    p->text = token;
    if (m.bytes) {
        char *plain = pith__arena_alloc(arena, token.size + 1);
        size_t size = plain ? pith__bytes_of_token(plain, token) : 0;
        p->text = (pith_str){ plain, size };
        p->goes_on = !takes_off(&p->text, " ");
    } else if (m.space) {
        p->goes_on = !takes_off(&p->text, "\xE2\x96\x81");
    } else {
        p->goes_on = takes_off(&p->text, "##");
    }
    if (!p->text.size || pith__utf8_valid_prefix(p->text.data, p->text.size) < p->text.size)
        return false;
    p->script = script_of(p->text);
    return p->script != 0;
}

/* By script, pieces that begin a word first, then by id: the order of frequency in most
 * vocabularies. */
static int by_script(const void *x, const void *y) {
    const piece *a = x, *b = y;
    if (a->script != b->script) return a->script < b->script ? -1 : 1;
    if (a->goes_on != b->goes_on) return a->goes_on ? 1 : -1;
    return a->id < b->id ? -1 : 1;
}

/* How a word's beginning is marked tells the kind of vocabulary: a byte for a blank, U+2581, or
 * "##" on what goes on. */
static pith_status read_pieces(piece **pieces, size_t *count, const pith_tokenizer *t,
                               pith__arena *arena, pith_error *err) {
    const int32_t size = pith__tokenizer_vocab_size(t);
    const marks m = { .bytes = pith__tokenizer_id(t, PITH_STR("\xC4\xA0")) >= 0,
                      .space = pith__tokenizer_id(t, PITH_STR("\xE2\x96\x81")) >= 0 };
    *pieces = pith__arena_array(arena, (size_t)size, sizeof **pieces);
    *count = 0;
    if (!*pieces) return pith__fail_memory(err, (size_t)size * sizeof **pieces);
    for (int32_t id = 0; id < size; id++) {
        piece p = { .id = id };
        pith_str token = pith__tokenizer_token(t, id);
        if (token.data && made_up_texts_read_piece(&p, token, m, arena)) (*pieces)[(*count)++] = p;
    }
    qsort(*pieces, *count, sizeof **pieces, by_script);
    return PITH_OK;
}

/* The scripts that have enough of them, the largest first. */
static pith_status find_scripts(script **scripts, size_t *count, const piece *pieces,
                                size_t piece_count, pith__arena *arena, pith_error *err) {
    size_t capacity = 0, largest = 0;
    void *grown = NULL;
    *scripts = NULL;
    *count = 0;
    for (size_t i = 0, end; i < piece_count; i = end) {
        script s = { .pieces = pieces + i };
        size_t letters = 0;
        for (end = i; end < piece_count && pieces[end].script == pieces[i].script; end++) {
            s.starts += !pieces[end].goes_on;
            for (size_t b = 0; b < pieces[end].text.size; b++)
                letters += (pieces[end].text.data[b] & 0xC0) != 0x80;
        }
        s.count = end - i;
        s.long_pieces = letters > LONG_PIECES * s.count;
        if (s.starts < STARTS_MIN) continue;
        if (!pith__arena_grow(arena, &grown, *count, &capacity, sizeof s))
            return pith__fail_memory(err, sizeof s);
        *scripts = grown;
        (*scripts)[(*count)++] = s;
        if (s.count > (*scripts)[largest].count) largest = *count - 1;
    }
    if (!*count)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the vocabulary has no legible words to make texts of");
    script first = (*scripts)[0];
    (*scripts)[0] = (*scripts)[largest];
    (*scripts)[largest] = first;
    return PITH_OK;
}

/* ---- the texts ---- */

/* xorshift64*, Vigna 2016: the same numbers everywhere. */
static uint32_t made_up_texts_draw(uint64_t *state, size_t below) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545F4914F6CDD1Du >> 32) * below >> 32);
}

typedef struct writer {
    char *text;
    size_t size, capacity;
} writer;

static void made_up_texts_put(writer *w, pith_str s) {
    if (w->capacity - w->size < s.size) return;
    memcpy(w->text + w->size, s.data, s.size);
    w->size += s.size;
}

/* How words of a text are chosen. */
typedef enum manner { FREQUENT, PLAIN, COMPOUND } manner;

/* Frequent words are drawn by drawing the bound several times, which prefers low ranks. Where
 * pieces are single letters, words have more of them. */
static int write_word(writer *w, const script *s, manner how, uint64_t *state) {
    size_t start = made_up_texts_draw(state, s->starts), on = s->count - s->starts;
    int more = 0;
    if (how == FREQUENT)
        start = made_up_texts_draw(
            state, made_up_texts_draw(state, made_up_texts_draw(state, s->starts) + 1) + 1);
    if (!s->long_pieces)
        more = (int)made_up_texts_draw(state, 10);
    else if (how == COMPOUND)
        more = 1 + (int)made_up_texts_draw(state, 3);
    else
        more = (int)made_up_texts_draw(state, 5) - 2;
    made_up_texts_put(w, s->pieces[start].text);
    if (more <= 0 || !on) return 1;
    for (int i = 0; i < more; i++)
        made_up_texts_put(w, s->pieces[s->starts + made_up_texts_draw(state, on)].text);
    return 1 + more;
}

/* Room for the longest pieces is taken at once, so that nothing is reallocated. */
static pith_status made_up_texts_write_text(pith_str *text, const script *s, int length,
                                            uint64_t *state, pith__arena *arena, pith_error *err) {
    size_t longest = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->pieces[i].text.size > longest) longest = s->pieces[i].text.size;
    writer w = { .capacity = ((size_t)length + 10) * (longest + 3) };
    w.text = pith__arena_alloc(arena, w.capacity + 1);
    if (!w.text) return pith__fail_memory(err, w.capacity);
    static const char *const signs[] = { ",", ".", "-", "'", "?", "!", ":", "(" };
    const manner how = (manner)made_up_texts_draw(state, 3);
    for (int pieces = 0; pieces < length;) {
        if (w.size) made_up_texts_put(&w, PITH_STR(" "));
        pieces += write_word(&w, s, how, state);
        if (made_up_texts_draw(state, 12)) continue;
        made_up_texts_put(
            &w, pith__str_of(signs[made_up_texts_draw(state, sizeof signs / sizeof *signs)]));
        pieces++;
    }
    if (made_up_texts_draw(state, 3)) made_up_texts_put(&w, PITH_STR("."));
    *text = (pith_str){ w.text, w.size };
    return PITH_OK;
}

pith_status pith__made_up_texts(pith_str **texts, size_t *count, const pith_tokenizer *tokenizer,
                                pith__arena *arena, pith_error *err) {
    piece *pieces;
    script *scripts;
    size_t piece_count, script_count;
    uint64_t state = 0x9E3779B97F4A7C15u;
    PITH_TRY(read_pieces(&pieces, &piece_count, tokenizer, arena, err));
    PITH_TRY(find_scripts(&scripts, &script_count, pieces, piece_count, arena, err));
    size_t total = (TEXTS_LARGEST + (script_count - 1) * TEXTS) * LENGTHS;
    *count = 0;
    *texts = pith__arena_array(arena, total, sizeof **texts);
    if (!*texts) return pith__fail_memory(err, total * sizeof **texts);
    /* Turn by turn, so that a part of them is as mixed as all. */
    for (size_t turn = 0; turn < TEXTS_LARGEST; turn++)
        for (size_t i = 0; i < script_count && (i == 0 || turn < TEXTS); i++)
            for (size_t l = 0; l < LENGTHS; l++)
                PITH_TRY(made_up_texts_write_text(&(*texts)[(*count)++], &scripts[i], lengths[l],
                                                  &state, arena, err));
    return PITH_OK;
}
