/* model_unigram.c - cuts a piece into the vocabulary pieces with the highest sum of scores (Kudo
 * 2018).
 *
 * Viterbi over the bytes of the piece: from every character a walk down the trie gives the
 * vocabulary pieces that begin there, and each of them may be the best way to reach its end. A
 * character that is not in the vocabulary costs the lowest score minus 10. Sums are made in f64 in
 * the order of the text, and only a higher sum replaces one, as in Hugging Face tokenizers, so ties
 * fall the same way. Scores are read as its JSON reader reads them. Runs of unknown characters
 * become one token, or the tokens of their bytes. Sampling is left out.
 *
 * A long piece goes through in windows. If no vocabulary piece lies across a place, every path
 * leads through it, and everything before it is settled: its tokens are emitted, and the next
 * window begins there with the sum so far. So memory does not grow with the piece, unless it has no
 * such place. */
#include "text/models/model_unigram.h"
#include "text/sources/key_report.h"

#include <math.h>

#include "base/formats/read_double.h"
#include "text/byte_spelling.h"
#include "text/frozen_tokenizer.h"
#include "text/models/word_cache.h"
#include "text/trie.h"

/* What a character outside of the vocabulary costs below the lowest score; SentencePiece's
 * kUnkPenalty. */
static const double unknown_penalty = 10.0;
enum { UNREACHED = -1 };
/* Bytes of a window. It doubles as long as nothing in it is settled. Smaller windows read more
 * bytes twice; larger ones need more memory. */
enum { WINDOW = 1 << 16 };
/* In longer windows it is looked whether the call must end; shorter ones end soon. */
enum { LOOK_FROM = 1 << 12 };

struct pith__unigram {
    pith__trie trie;
    const double *scores; /* of the trie's keys */
    int32_t unk_id;       /* -1: none */
    double unk_score;
    bool byte_fallback;
    int32_t byte_ids[256]; /* of "<0x00>" …; -1 where missing */
};

/* The best way to reach a byte; on the way back, the piece that leaves it. */
typedef struct node {
    double score;
    int32_t other; /* where the piece begins; on the way back, where it ends */
    int32_t id;
} node;

/* What follows from the trie and the rest. */
static void model_unigram_finish(pith__unigram *model, const double *scores, int32_t unk_id,
                                 bool byte_fallback) {
    double lowest = INFINITY;
    for (uint32_t i = 0; i < model->trie.key_count; i++)
        if (scores[i] < lowest) lowest = scores[i];
    model->scores = scores;
    model->unk_id = unk_id;
    model->unk_score = lowest - unknown_penalty;
    model->byte_fallback = byte_fallback;
    for (unsigned b = 0; b < 256; b++) {
        pith__byte_token token = pith__byte_token_of(b);
        model->byte_ids[b] =
            (int32_t)pith__trie_get(&model->trie, (pith_str){ token.text, sizeof token.text });
    }
}

const pith__unigram *pith__unigram_build(const pith_str *pieces, const double *scores, size_t count,
                                         int32_t unk_id, bool byte_fallback, pith__loader *loader) {
    pith__unigram *model = pith__arena_array(loader->arena, 1, sizeof *model);
    double *own_scores = pith__arena_alloc64(loader->arena, count * sizeof *own_scores);
    if (!model || !own_scores) {
        pith__fail_memory(loader->err, count * sizeof *own_scores);
        return NULL;
    }
    if (count) memcpy(own_scores, scores, count * sizeof *own_scores);
    if (pith__trie_build(&model->trie, pieces, count, loader->arena, loader->scratch, loader->stop,
                         loader->err))
        return NULL;
    loader->tokenizer->unknown_id = unk_id;
    model_unigram_finish(model, own_scores, unk_id, byte_fallback);
    return model;
}

/* The same out of a frozen tokenizer. */
static const pith__unigram *open_tables(int64_t unk_id, bool byte_fallback, pith__loader *loader) {
    size_t count;
    pith__unigram *model = pith__arena_array(loader->arena, 1, sizeof *model);
    const double *scores = pith__frozen_table(loader, "scores", sizeof *scores, &count);
    if (!model) pith__fail_memory(loader->err, sizeof *model);
    if (!model || !scores || pith__trie_open(&model->trie, loader)) return NULL;
    if (count != model->trie.key_count || unk_id >= (int64_t)count) {
        pith__frozen_damaged(loader, "scores");
        return NULL;
    }
    loader->tokenizer->unknown_id = (int32_t)unk_id;
    model_unigram_finish(model, scores, (int32_t)unk_id, byte_fallback);
    return model;
}

static void model_unigram_save(const void *self, pith__frozen_writer *writer) {
    const pith__unigram *model = self;
    if (model->unk_id >= 0) pith__frozen_put_int(writer, "unk_id", model->unk_id);
    pith__frozen_put_bool(writer, "byte_fallback", model->byte_fallback);
    pith__frozen_put(writer, "scores", model->scores, model->trie.key_count, sizeof *model->scores);
    pith__trie_save(&model->trie, writer);
}

/* One token for a run of unknown characters: itself if the vocabulary has it, its bytes' tokens, or
 * the unknown one. */
static bool emit_unknown(const pith__unigram *model, pith__encoding *enc, const char *text,
                         uint32_t begin, uint32_t end) {
    int32_t id = (int32_t)pith__trie_get(&model->trie, (pith_str){ text + begin, end - begin });
    if (id < 0 && model->byte_fallback) {
        uint32_t known = begin;
        while (known < end && model->byte_ids[(unsigned char)text[known]] >= 0) known++;
        if (known == end) {
            for (uint32_t i = begin; i < end; i++)
                pith__encoding_token(enc, model->byte_ids[(unsigned char)text[i]], begin, end);
            return true;
        }
    }
    if (id < 0) id = model->unk_id;
    if (id < 0) return false;
    pith__encoding_token(enc, id, begin, end);
    return true;
}

/* The best ways through text[0, size), the first of which begins with the sum best[0].score.
 * Returns how much of it is settled: all of a whole piece, else up to the last place that no
 * vocabulary piece crosses. best[i] keeps the highest sum of any way that ends at byte i and the
 * place that it comes from; places within a character stay unreached. Where the vocabulary piece
 * that is being matched may go on beyond the window, nothing more can be said, and the walk stops.
 */
static uint32_t find_best_path(const pith__unigram *model, pith__encoding *enc, node *best,
                               const char *text, uint32_t size, bool whole) {
    const pith__trie_slot *slots = model->trie.slots, root = slots[PITH_TRIE_ROOT];
    const double *scores = model->scores;
    uint32_t settled = 0, reach = 0; /* reach: where the longest way so far ends */
    for (uint32_t i = 1; i <= size; i++) best[i] = (node){ -INFINITY, UNREACHED, 0 };
    if (size > LOOK_FROM) pith__encoding_restart(enc);
    for (uint32_t at = 0; at < size;) {
        if (pith__encoding_stops(enc, at)) return 0;
        const char *after = text + at;
        pith__utf8_next(&after);
        uint32_t char_end = (uint32_t)(after - text), i = at;
        double score_here = best[at].score;
        bool has_char = false, short_of = false;
        pith__trie_slot slot = root;
        /* Unknown characters go together: the place between two of them is none. */
        if (at == reach && at && best[at].id != model->unk_id) settled = at;
        for (; i < size && pith__trie_step(slots, &slot, (unsigned char)text[i]); i++) {
            if (slot.value == PITH_TRIE_NONE) continue;
            uint32_t id = slot.value, end = i + 1;
            if (id & PITH_TRIE_TAIL) {
                id ^= PITH_TRIE_TAIL;
                uint32_t key_size =
                    pith__trie_tail(&model->trie, id, text + at, end - at, size - at);
                short_of = pith__trie_key(&model->trie, id).size > size - at;
                if (!key_size) break;
                end = at + key_size;
            }
            node *reached = &best[end];
            double score = scores[id] + score_here;
            if (score > reached->score || reached->other == UNREACHED)
                *reached = (node){ score, (int32_t)at, (int32_t)id };
            has_char |= end == char_end;
            if (end > reach) reach = end;
        }
        /* a piece may go on after the window */
        if (!whole && (i == size || short_of)) return settled;
        if (!has_char) {
            node *reached = &best[char_end];
            double score = model->unk_score + score_here;
            if (score > reached->score || reached->other == UNREACHED)
                *reached = (node){ score, (int32_t)at, model->unk_id };
            if (char_end > reach) reach = char_end;
        }
        at = char_end;
    }
    return whole ? size : settled;
}

/* The tokens of the best way to best[size]; text: where the way begins in enc->text. Links lead
 * from the end to the beginning, so they are turned round in place first. Unknown characters next
 * to each other become one token. */
static pith_status emit_path(const pith__unigram *model, pith__encoding *enc, node *best,
                             uint32_t text, uint32_t size) {
    if (!pith__encoding_room(enc, size)) return PITH_ERR_MEMORY;
    node last = best[size];
    for (uint32_t end = size; end;) {
        uint32_t begin = (uint32_t)last.other;
        node before = best[begin];
        best[begin] = (node){ 0, (int32_t)end, last.id };
        last = before;
        end = begin;
    }
    for (uint32_t at = 0; at < size;) {
        uint32_t end = (uint32_t)best[at].other;
        int32_t id = best[at].id;
        if (id != model->unk_id) {
            pith__encoding_token(enc, id, text + at, text + end);
        } else {
            while (end < size && best[end].id == id) end = (uint32_t)best[end].other;
            if (!emit_unknown(model, enc, enc->text.data, text + at, text + end))
                return pith__fail(
                    enc->err, PITH_ERR_ARGUMENT,
                    "the text has a character outside the vocabulary, and the model has no unk_id");
        }
        at = end;
    }
    return PITH_OK;
}

/* Goes through a piece in windows. Each ends at the last settled place, and the next begins there
 * with the sum so far, so that sums and ties are those of one pass over the piece. A window without
 * such a place is made again, twice as long. */
static pith_status model_unigram_encode_word(const void *self, pith__encoding *enc,
                                             pith__piece piece) {
    const pith__unigram *model = self;
    uint32_t window = WINDOW;
    double score = 0;
    uint32_t begin = piece.begin;
    while (begin < piece.end && enc->count <= enc->limit) {
        if (pith__encoding_stops(enc, begin)) return PITH_ERR_CANCELLED;
        const char *text = enc->text.data + begin;
        uint32_t rest = piece.end - begin, size = rest < window ? rest : window;
        while (size < rest && (text[size] & 0xC0) == 0x80) size++; /* a character is not cut */
        node *best = pith__encoding_scratch(enc, 0, (size + (size_t)1) * sizeof *best);
        if (!best) return PITH_ERR_MEMORY;
        best[0] = (node){ score, UNREACHED, 0 };
        uint32_t settled = find_best_path(model, enc, best, text, size, size == rest);
        if (enc->stopped) return PITH_ERR_CANCELLED;
        if (settled) {
            score = best[settled].score;
            PITH_TRY(emit_path(model, enc, best, begin, settled));
        }
        if (!settled) window = window > PITH_TEXT_MAX / 2 ? PITH_TEXT_MAX : window * 2;
        begin += settled;
    }
    return PITH_OK;
}

static pith_status model_unigram_encode(const void *self, pith__encoding *enc, pith__piece piece) {
    return pith__word_encode(self, enc, piece, model_unigram_encode_word);
}

static int32_t token_id(const void *self, pith_str token) {
    const pith__unigram *model = self;
    return token.size ? (int32_t)pith__trie_get(&model->trie, token) : -1;
}

static pith_str token_text(const void *self, int32_t id) {
    const pith__unigram *model = self;
    if (id < 0 || (uint32_t)id >= model->trie.key_count) return (pith_str){ NULL, 0 };
    return pith__trie_key(&model->trie, (uint32_t)id);
}

static int32_t vocab_size(const void *self) {
    return (int32_t)((const pith__unigram *)self)->trie.key_count;
}

/* As serde_json reads a number: digits into 64 bits as long as they fit, then one multiplication or
 * division. This is not always the nearest double, but it is the one Hugging Face tokenizers
 * computes with. */
static double read_score(pith__json *j) {
    if (pith__json_peek(j) != PITH_JSON_NUMBER) return pith__json_double(j);
    const char *p = j->at;
    bool negative = *p == '-', fraction = false, full = false;
    uint64_t digits = 0;
    int places = 0;
    for (p += negative; p < j->end; p++) {
        unsigned digit = (unsigned)*p - '0';
        if (digit > 9) {
            if (*p != '.' || fraction) break;
            fraction = true;
            continue;
        }
        if (digits >= UINT64_MAX / 10) { /* room for a digit more, or just not */
            uint64_t more;
            full = full || __builtin_mul_overflow(digits, 10, &more) ||
                   __builtin_add_overflow(more, digit, &more);
            if (full && !fraction) return pith__json_double(j);
            if (full) continue;
        }
        digits = digits * 10 + digit;
        places += fraction;
    }
    if (p == j->end || *p == 'e' || *p == 'E' || places >= PITH_POWERS_OF_TEN)
        return pith__json_double(j);
    pith__json_skip(j);
    double value = (double)digits / pith__powers_of_ten[places];
    return negative ? -value : value;
}

static void model_unigram_parse(const void **self, pith__json *j, pith__loader *loader) {
    pith_str *pieces = NULL, key;
    double *scores = NULL;
    size_t count = 0, piece_capacity = 0, score_capacity = 0;
    int64_t unk_id = -1;
    bool byte_fallback = false, has_vocab = false;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "unk_id")) {
            if (!pith__json_null(j)) {
                unk_id = pith__json_int(j);
                if (unk_id < 0) pith__json_fail(j, PITH_ERR_FORMAT, "unk_id is negative");
            }
        } else if (pith__str_is(key, "byte_fallback")) {
            byte_fallback = pith__json_bool(j);
        } else if (pith__str_is(key, "vocab")) {
            has_vocab = true;
            count = 0;
            for (pith__json_array(j); pith__json_next_item(j); count++) {
                if (!pith__arena_grow(loader->scratch, (void **)&pieces, count, &piece_capacity,
                                      sizeof *pieces) ||
                    !pith__arena_grow(loader->scratch, (void **)&scores, count, &score_capacity,
                                      sizeof *scores)) {
                    pith__json_fail(j, PITH_ERR_MEMORY, "out of memory after %zu pieces", count);
                    break;
                }
                pith__json_array(j);
                bool complete = pith__json_next_item(j);
                if (complete) pieces[count] = pith__json_string(j);
                complete = complete && pith__json_next_item(j);
                if (complete) scores[count] = read_score(j);
                if (!complete || pith__json_next_item(j))
                    pith__json_fail(j, PITH_ERR_FORMAT, "not a piece and its score");
            }
        } else {
            pith__key_other(j, loader, key, "");
        }
    }
    if (j->failed) return;
    if (loader->frozen.data) {
        *self = open_tables(unk_id, byte_fallback, loader);
        if (!*self) j->failed = true;
    } else if (!has_vocab) {
        pith__json_fail(j, PITH_ERR_FORMAT, "no vocab");
    } else if (unk_id >= (int64_t)count) {
        pith__json_fail(j, PITH_ERR_FORMAT, "unk_id %lld is outside the vocabulary of %zu",
                        (long long)unk_id, count);
    } else {
        *self = pith__unigram_build(pieces, scores, count, (int32_t)unk_id, byte_fallback, loader);
        if (!*self) j->failed = true;
    }
}

const pith__model_desc pith__model_Unigram = {
    .name = "Unigram",
    .parse = model_unigram_parse,
    .save = model_unigram_save,
    .encode = model_unigram_encode,
    .id = token_id,
    .token = token_text,
    .size = vocab_size,
};
