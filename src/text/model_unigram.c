/* model_unigram.c - the cut of a piece into vocabulary pieces whose scores sum highest (Kudo 2018).
 *
 * Viterbi over the bytes of the piece: from every character a walk down the trie gives the pieces that begin there, and
 * each of them may be the best way to reach its end. A character that is no piece of its own costs the lowest score
 * minus 10. Sums are made in f64 in the order of the text and only a higher one replaces, as in Hugging Face
 * tokenizers, so ties fall the same way; scores are read as its JSON reader reads them. Runs of unknown characters
 * become one token, or their bytes' tokens. Sampling is left out. */
#include "text/unigram.h"

#include <math.h>

#include "text/bytes.h"
#include "text/image.h"
#include "text/trie.h"
#include "text/word_cache.h"

static const double unknown_penalty = 10.0;
enum { UNREACHED = -1 };

struct pith_unigram {
    pith_trie trie;
    const double *scores;
    const uint32_t *starts; /* [count + 1]: piece i is text[starts[i], starts[i + 1]) */
    const char *text;
    uint32_t count;
    int32_t unk_id; /* -1: none */
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

static void find_bytes(pith_unigram *model) {
    for (unsigned b = 0; b < 256; b++) {
        pith_byte_token token = pith_byte_token_of(b);
        model->byte_ids[b] = (int32_t)pith_trie_get(&model->trie, (pith_str){ token.text, sizeof token.text });
    }
}

const pith_unigram *pith_unigram_build(const pith_str *pieces, const double *scores, size_t count, int32_t unk_id,
                                       bool byte_fallback, pith_loader *loader) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += pieces[i].size;
    if (bytes > INT32_MAX || count > INT32_MAX) {
        pith_fail(loader->err, PITH_ERR_UNSUPPORTED, "a vocabulary of %zu pieces and %zu bytes", count, bytes);
        return NULL;
    }
    pith_unigram *model = pith_arena_array(loader->arena, 1, sizeof *model);
    uint32_t *starts = pith_arena_array(loader->arena, count + 1, sizeof *starts);
    double *own_scores = pith_arena_array(loader->arena, count, sizeof *own_scores);
    char *text = pith_arena_alloc(loader->arena, bytes);
    pith_str *own_pieces = pith_arena_array(loader->scratch, count, sizeof *own_pieces);
    if (!model || !starts || !own_scores || !text || !own_pieces) {
        pith_fail_memory(loader->err, bytes + count * (sizeof *starts + sizeof *own_scores + sizeof *own_pieces));
        return NULL;
    }
    double lowest = INFINITY;
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].size) memcpy(text + at, pieces[i].data, pieces[i].size);
        own_pieces[i] = (pith_str){ text + at, pieces[i].size };
        starts[i] = at;
        at += (uint32_t)pieces[i].size;
        own_scores[i] = scores[i];
        if (scores[i] < lowest) lowest = scores[i];
    }
    starts[count] = at;
    *model = (pith_unigram){ .scores = own_scores,
                             .starts = starts,
                             .text = text,
                             .count = (uint32_t)count,
                             .unk_id = unk_id,
                             .unk_score = lowest - unknown_penalty,
                             .byte_fallback = byte_fallback };
    if (pith_trie_build(&model->trie, own_pieces, count, loader->arena, loader->scratch, loader->err)) return NULL;
    find_bytes(model);
    return model;
}

/* The same out of an image. */
static const pith_unigram *open_tables(int64_t unk_id, bool byte_fallback, pith_loader *loader) {
    size_t count, start_count, bytes;
    pith_unigram *model = pith_arena_array(loader->arena, 1, sizeof *model);
    if (!model) {
        pith_fail_memory(loader->err, sizeof *model);
        return NULL;
    }
    if (!(model->scores = pith_image_table(loader, "scores", sizeof *model->scores, &count)) ||
        !(model->starts = pith_image_table(loader, "starts", sizeof *model->starts, &start_count)) ||
        !(model->text = pith_image_table(loader, "text", 1, &bytes)))
        return NULL;
    bool good = count < PITH_TOKEN_ID_MAX && start_count == count + 1 && unk_id < (int64_t)count;
    double lowest = INFINITY;
    for (size_t i = 0; good && i < count; i++) {
        good = model->starts[i] <= model->starts[i + 1];
        if (model->scores[i] < lowest) lowest = model->scores[i];
    }
    if (!good || model->starts[count] > bytes) {
        pith_image_damaged(loader, "starts");
        return NULL;
    }
    if (pith_trie_open(&model->trie, (uint32_t)count, loader)) return NULL;
    model->count = (uint32_t)count;
    model->unk_id = (int32_t)unk_id;
    model->unk_score = lowest - unknown_penalty;
    model->byte_fallback = byte_fallback;
    find_bytes(model);
    return model;
}

static void save(const void *self, pith_image_writer *writer) {
    const pith_unigram *model = self;
    if (model->unk_id >= 0) pith_image_put_int(writer, "unk_id", model->unk_id);
    pith_image_put_bool(writer, "byte_fallback", model->byte_fallback);
    pith_image_put(writer, "scores", model->scores, model->count, sizeof *model->scores);
    pith_image_put(writer, "starts", model->starts, (size_t)model->count + 1, sizeof *model->starts);
    pith_image_put(writer, "text", model->text, model->starts[model->count], 1);
    pith_trie_save(&model->trie, writer);
}

/* One token for a run of unknown characters: itself if the vocabulary has it, its bytes' tokens, or the unknown one. */
static bool emit_unknown(const pith_unigram *model, pith_call *call, const char *text, uint32_t begin, uint32_t end) {
    int32_t id = (int32_t)pith_trie_get(&model->trie, (pith_str){ text + begin, end - begin });
    if (id < 0 && model->byte_fallback) {
        uint32_t known = begin;
        while (known < end && model->byte_ids[(unsigned char)text[known]] >= 0) known++;
        if (known == end) {
            for (uint32_t i = begin; i < end; i++)
                pith_call_token(call, model->byte_ids[(unsigned char)text[i]], begin, end);
            return true;
        }
    }
    if (id < 0) id = model->unk_id;
    if (id < 0) return false;
    pith_call_token(call, id, begin, end);
    return true;
}

static void find_best_path(const pith_unigram *model, node *best, const char *text, uint32_t size) {
    const pith_trie_slot *slots = model->trie.slots, root = slots[PITH_TRIE_ROOT];
    const double *scores = model->scores;
    for (uint32_t i = 0; i <= size; i++) best[i] = (node){ -INFINITY, UNREACHED, 0 };
    best[0].score = 0;
    for (uint32_t at = 0; at < size;) {
        const char *after = text + at;
        pith_utf8_next(&after);
        uint32_t char_end = (uint32_t)(after - text);
        double score_here = best[at].score;
        bool has_char = false;
        pith_trie_slot slot = root;
        for (uint32_t i = at; i < size && pith_trie_step(slots, &slot, (unsigned char)text[i]); i++) {
            if (slot.value == PITH_TRIE_NONE) continue;
            node *reached = &best[i + 1];
            double score = scores[slot.value] + score_here;
            if (score > reached->score || reached->other == UNREACHED)
                *reached = (node){ score, (int32_t)at, (int32_t)slot.value };
            has_char |= i + 1 == char_end;
        }
        if (!has_char) {
            node *reached = &best[char_end];
            double score = model->unk_score + score_here;
            if (score > reached->score || reached->other == UNREACHED)
                *reached = (node){ score, (int32_t)at, model->unk_id };
        }
        at = char_end;
    }
}

static pith_status encode_word(const pith_unigram *model, pith_call *call, pith_piece piece) {
    uint32_t size = piece.end - piece.begin;
    node *best = pith_call_scratch(call, 0, (size + (size_t)1) * sizeof *best);
    if (!best) return PITH_ERR_MEMORY;
    find_best_path(model, best, call->text.data + piece.begin, size);
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
            pith_call_token(call, id, piece.begin + at, piece.begin + end);
        } else {
            while (end < size && best[end].id == id) end = (uint32_t)best[end].other;
            if (!emit_unknown(model, call, call->text.data, piece.begin + at, piece.begin + end))
                return pith_fail(call->err, PITH_ERR_ARGUMENT,
                                 "the text has a character outside the vocabulary, and the model has no unk_id");
        }
        at = end;
    }
    return PITH_OK;
}

static pith_status encode(const void *self, pith_call *call, pith_piece piece) {
    size_t size = piece.end - piece.begin;
    if (size > PITH_WORD_BYTES) return encode_word(self, call, piece);
    pith_word *word = pith_word_place(call, call->text.data + piece.begin, size);
    if (!word) return PITH_ERR_MEMORY;
    if (pith_word_emit(word, call, piece.begin, size)) return PITH_OK;
    size_t first = call->count;
    PITH_TRY(encode_word(self, call, piece));
    pith_word_store(word, call, first, piece.begin, size);
    return PITH_OK;
}

static int32_t token_id(const void *self, pith_str token) {
    const pith_unigram *model = self;
    return token.size ? (int32_t)pith_trie_get(&model->trie, token) : -1;
}

static pith_str token_text(const void *self, int32_t id) {
    const pith_unigram *model = self;
    if (id < 0 || (uint32_t)id >= model->count) return (pith_str){ NULL, 0 };
    return (pith_str){ model->text + model->starts[id], model->starts[id + 1] - model->starts[id] };
}

static int32_t vocab_size(const void *self) { return (int32_t)((const pith_unigram *)self)->count; }

/* As serde_json reads a number: digits into 64 bits as long as they fit, then one multiplication or division. This is
 * not always the nearest double, but it is the one Hugging Face tokenizers computes with. */
static double read_score(pith_json *j) {
    static const double powers[23] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (pith_json_peek(j) != PITH_JSON_NUMBER) return pith_json_double(j);
    const char *p = j->p;
    bool negative = *p == '-', fraction = false, full = false;
    uint64_t digits = 0;
    int places = 0;
    for (p += negative; p < j->end && (*p == '.' || (*p >= '0' && *p <= '9')); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        uint64_t digit = (uint64_t)(*p - '0'), more;
        full = full || __builtin_mul_overflow(digits, 10, &more) || __builtin_add_overflow(more, digit, &more);
        if (full && !fraction) return pith_json_double(j);
        if (full) continue;
        digits = more;
        places += fraction;
    }
    if (p == j->end || *p == 'e' || *p == 'E' || places >= 23) return pith_json_double(j);
    pith_json_skip(j);
    double value = (double)digits / powers[places];
    return negative ? -value : value;
}

static void parse(const void **self, pith_json *j, pith_loader *loader) {
    pith_str *pieces = NULL, key;
    double *scores = NULL;
    size_t count = 0, piece_capacity = 0, score_capacity = 0;
    int64_t unk_id = -1;
    bool byte_fallback = false, has_vocab = false;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "unk_id")) {
            if (!pith_json_null(j)) {
                unk_id = pith_json_int(j);
                if (unk_id < 0) pith_json_fail(j, PITH_ERR_FORMAT, "unk_id is negative");
            }
        } else if (pith_str_is(key, "byte_fallback")) {
            byte_fallback = pith_json_bool(j);
        } else if (pith_str_is(key, "vocab")) {
            has_vocab = true;
            count = 0;
            for (pith_json_array(j); pith_json_next_item(j); count++) {
                if (!pith_arena_grow(loader->scratch, (void **)&pieces, count, &piece_capacity, sizeof *pieces) ||
                    !pith_arena_grow(loader->scratch, (void **)&scores, count, &score_capacity, sizeof *scores)) {
                    pith_json_fail(j, PITH_ERR_MEMORY, "out of memory after %zu pieces", count);
                    break;
                }
                pith_json_array(j);
                bool complete = pith_json_next_item(j);
                if (complete) pieces[count] = pith_json_string(j);
                complete = complete && pith_json_next_item(j);
                if (complete) scores[count] = read_score(j);
                if (!complete || pith_json_next_item(j))
                    pith_json_fail(j, PITH_ERR_FORMAT, "not a piece and its score");
            }
        } else {
            pith_json_skip(j);
        }
    }
    if (j->failed) return;
    if (loader->image.data) {
        *self = open_tables(unk_id, byte_fallback, loader);
        if (!*self) j->failed = true;
    } else if (!has_vocab) {
        pith_json_fail(j, PITH_ERR_FORMAT, "no vocab");
    } else if (unk_id >= (int64_t)count) {
        pith_json_fail(j, PITH_ERR_FORMAT, "unk_id %lld is outside the vocabulary of %zu", (long long)unk_id, count);
    } else {
        *self = pith_unigram_build(pieces, scores, count, (int32_t)unk_id, byte_fallback, loader);
        if (!*self) j->failed = true;
    }
}

const pith_model_desc pith_model_Unigram = {
    .name = "Unigram",
    .parse = parse,
    .save = save,
    .encode = encode,
    .id = token_id,
    .token = token_text,
    .size = vocab_size,
};
