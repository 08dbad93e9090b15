/* model_wordpiece.c - WordPiece: takes the longest known piece from the left, repeatedly. If a rest
 * is unknown, the whole word is unknown.
 *
 * Prefix hashes make every candidate a constant-time probe. A table of the lengths that tokens with
 * the same first three bytes have leaves few candidates. A word costs at most (its bytes) times
 * (the longest token): linear in the text. */
#include "text/models/model_wordpiece.h"
#include "text/sources/key_report.h"

#include "text/frozen_tokenizer.h"

static uint32_t start_of(const char *p) {
    uint32_t bytes = (uint32_t)(unsigned char)p[0] << 16 | (uint32_t)(unsigned char)p[1] << 8 |
                     (unsigned char)p[2];
    return bytes * 0x9E3779B1u >> 20;
}

static int32_t probe(const pith__wordpiece *w, const char *word, const uint64_t *hashes,
                     uint32_t begin, uint32_t size) {
    uint64_t power = w->powers[size], hash = hashes[begin + size] - hashes[begin] * power;
    if (!begin) return pith__vocab_find(&w->vocab, hash, PITH_STR(""), word, size);
    return pith__vocab_find(&w->vocab, hash + w->prefix_hash * power, w->prefix, word + begin,
                            size);
}

/* Greedy longest match from the left, as in BERT's WordPiece. `lengths` has one bit for each length
 * that tokens with the same first three bytes have; bit 31 stands for all lengths above 30.
 * Candidates are probed from the longest down. Returns 0 if a rest is unknown, which makes the
 * whole word unknown. */
size_t pith__wordpiece_split(const pith__wordpiece *w, const char *word, uint32_t size,
                             const uint64_t *hashes, int32_t *ids, uint32_t *ends) {
    size_t count = 0;
    for (uint32_t begin = 0; begin < size;) {
        uint32_t rest = size - begin < w->longest ? size - begin : w->longest, lengths = 6;
        int32_t id = -1;
        if (rest > 2) lengths |= w->lengths[begin > 0][start_of(word + begin)];
        lengths &= rest < 31 ? (2u << rest) - 2 : ~1u;
        uint32_t n = rest;
        while (lengths >> 31 && n > 30 && id < 0) id = probe(w, word, hashes, begin, n--);
        if (id >= 0) n++;
        for (lengths &= ~(1u << 31); id < 0 && lengths; lengths &= ~(1u << n)) {
            n = 31 - (uint32_t)__builtin_clz(lengths);
            id = probe(w, word, hashes, begin, n);
        }
        if (id < 0) return 0;
        begin += n;
        ids[count] = id;
        ends[count++] = begin;
    }
    return count;
}

/* Notes which lengths occur among the tokens with the same first three bytes, one bit each, for
 * tokens that begin words and for those that continue them. A search then probes only these
 * lengths. The highest bit stands for all lengths that have none of their own. */
static pith_status note_lengths(pith__wordpiece *w, const pith__vocab_builder *vocab,
                                pith__loader *loader) {
    uint32_t(*lengths)[PITH_WORDPIECE_STARTS] =
        pith__arena_array(loader->arena, 2, sizeof *lengths);
    if (!lengths) return pith__fail_memory(loader->err, 2 * sizeof *lengths);
    w->lengths = (const uint32_t(*)[PITH_WORDPIECE_STARTS])lengths;
    for (size_t i = 0; i < vocab->count; i++) {
        pith_str text = { vocab->entries[i].text, vocab->entries[i].size };
        for (int k = 0; k < 2; k++) {
            size_t skip = k ? w->prefix.size : 0;
            if (text.size < skip + 3 || (k && memcmp(text.data, w->prefix.data, skip) != 0))
                continue;
            size_t n = text.size - skip;
            lengths[k][start_of(text.data + skip)] |= 1u << (n < 31 ? n : 31);
        }
    }
    return PITH_OK;
}

static pith_status open_lengths(pith__wordpiece *w, pith__loader *loader) {
    size_t count;
    const uint32_t *lengths = pith__frozen_table(loader, "lengths", sizeof *lengths, &count);
    if (!lengths) return loader->err->code;
    w->lengths = (const uint32_t(*)[PITH_WORDPIECE_STARTS])lengths;
    return count == 2 * PITH_WORDPIECE_STARTS ? PITH_OK : pith__frozen_damaged(loader, "lengths");
}

pith_status pith__wordpiece_no_unk(const pith__wordpiece *w, pith_error *err) {
    return pith__fail(
        err, PITH_ERR_RUN,
        "a word is not in the vocabulary, and neither is the unknown token \"" PITH_STR_FMT "\"",
        PITH_STR_ARG(w->unk_token));
}

/* `longest` bounds the candidates: no token is longer than the longest of the vocabulary, and no
 * word longer than max_chars characters of at most four bytes is looked at. */
pith_status pith__wordpiece_build(const pith__wordpiece **wordpiece, pith__loader *loader,
                                  const pith__vocab_builder *vocab, pith_str unk_token,
                                  pith_str prefix, int64_t max_chars) {
    pith__wordpiece *w = pith__arena_array(loader->arena, 1, sizeof *w);
    if (!w) return pith__fail_memory(loader->err, sizeof *w);
    PITH_TRY(pith__vocab_take(&w->vocab, vocab, loader));
    w->unk_token = pith__arena_str(loader->arena, unk_token);
    w->unk_id = pith__vocab_id(&w->vocab, unk_token);
    w->prefix = pith__arena_str(loader->arena, prefix);
    w->prefix_hash = pith__vocab_hash(0, prefix.data, prefix.size);
    w->max_chars =
        max_chars < PITH_WORDPIECE_CHARS_MAX ? (uint32_t)max_chars : PITH_WORDPIECE_CHARS_MAX;
    w->longest = w->vocab.longest < 4 * w->max_chars ? w->vocab.longest : 4 * w->max_chars;
    w->powers = pith__arena_alloc(loader->arena, ((size_t)w->longest + 1) * sizeof *w->powers);
    if (!w->powers || !w->unk_token.data || !w->prefix.data)
        return pith__fail_memory(loader->err, w->longest * sizeof *w->powers);
    PITH_TRY(loader->frozen.data ? open_lengths(w, loader) : note_lengths(w, vocab, loader));
    uint64_t power = 1;
    for (uint32_t i = 0; i <= w->longest; i++, power *= PITH_VOCAB_PRIME) w->powers[i] = power;
    *wordpiece = w;
    return PITH_OK;
}

static void model_wordpiece_parse(const void **self, pith__json *j, pith__loader *loader) {
    pith__vocab_builder vocab = { .scratch = loader->scratch };
    pith_str key, unk = PITH_STR("[UNK]"), prefix = PITH_STR("##");
    int64_t max_chars = 100;
    bool has_vocab = false;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "vocab")) {
            pith__vocab_parse(&vocab, j);
            has_vocab = true;
        } else if (pith__str_is(key, "unk_token"))
            unk = pith__json_string(j);
        else if (pith__str_is(key, "continuing_subword_prefix"))
            prefix = pith__json_string(j);
        else if (pith__str_is(key, "max_input_chars_per_word"))
            max_chars = pith__json_int(j);
        else
            pith__key_other(j, loader, key, "");
    }
    if (!j->failed && !has_vocab && !loader->frozen.data)
        pith__json_fail(j, PITH_ERR_FORMAT, "no vocab");
    if (!j->failed && (max_chars < 0 || prefix.size > 64))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "continuing_subword_prefix or max_input_chars_per_word out of range");
    if (j->failed) return;
    const pith__wordpiece *w = NULL;
    if (pith__wordpiece_build(&w, loader, &vocab, unk, prefix, max_chars)) j->failed = true;
    *self = w;
}

/* A word with more characters than max_input_chars_per_word is unknown without being looked up.
 * Prefix hashes and the ends of tokens share one scratch block. */
static pith_status model_wordpiece_encode(const void *self, pith__encoding *enc,
                                          pith__piece piece) {
    const pith__wordpiece *w = self;
    const char *word = enc->text.data + piece.begin;
    uint32_t size = piece.end - piece.begin, chars = 0;
    for (uint32_t i = 0; i < size && chars <= w->max_chars; i++) chars += (word[i] & 0xC0) != 0x80;
    size_t count = 0;
    if (chars <= w->max_chars) {
        uint64_t *hashes = pith__encoding_scratch(
            enc, 0, ((size_t)size + 1) * (sizeof *hashes + sizeof(uint32_t)));
        if (!hashes || !pith__encoding_room(enc, size))
            return pith__fail_memory(enc->err, size * sizeof *hashes);
        uint32_t *ends = (uint32_t *)(hashes + size + 1);
        hashes[0] = 0;
        for (uint32_t i = 0; i < size; i++)
            hashes[i + 1] = pith__vocab_step(hashes[i], (unsigned char)word[i]);
        int32_t *ids = enc->ids + enc->count;
        count = pith__wordpiece_split(w, word, size, hashes, ids, ends);
        for (size_t i = 0; i < count; i++)
            pith__encoding_token(enc, ids[i], piece.begin + (i ? ends[i - 1] : 0),
                                 piece.begin + ends[i]);
    }
    if (count) return PITH_OK;
    if (w->unk_id < 0) return pith__wordpiece_no_unk(w, enc->err);
    pith__encoding_token(enc, w->unk_id, piece.begin, piece.end);
    return PITH_OK;
}

static void model_wordpiece_save(const void *self, pith__frozen_writer *writer) {
    const pith__wordpiece *w = self;
    pith__frozen_put_string(writer, "unk_token", w->unk_token);
    pith__frozen_put_string(writer, "continuing_subword_prefix", w->prefix);
    pith__frozen_put_int(writer, "max_input_chars_per_word", w->max_chars);
    pith__vocab_save(&w->vocab, writer);
    pith__frozen_put(writer, "lengths", w->lengths, 2, sizeof *w->lengths);
}

const pith__model_desc pith__model_WordPiece = {
    .name = "WordPiece",
    .parse = model_wordpiece_parse,
    .save = model_wordpiece_save,
    .encode = model_wordpiece_encode,
    .id = pith__vocab_model_id,
    .token = pith__vocab_model_token,
    .size = pith__vocab_model_size,
    .count = pith__vocab_model_count,
    .fuse = pith__bert_fuse,
    .encode_fused = pith__bert_encode_fused,
    .unfuse = pith__bert_unfuse,
};
