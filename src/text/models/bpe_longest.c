/* bpe_longest.c - finds tokens as longest matches, and checks each pair of neighbours. */
#include "text/models/bpe_longest.h"

#include "text/frozen_tokenizer.h"

/* Steps that a word may take, down the trie and through merges, before it is merged instead: about
 * twice what ordinary text takes. Runs of one character, of which the vocabulary has many lengths,
 * may need more. A higher limit makes the worst text slower; a lower one merges words that would
 * have been done soon. */
enum { STEPS_PER_BYTE = 8, STEPS_LEAST = 64 };
/* Steps of a long text between two looks at whether the call must end. */
enum { LOOK_STEPS = 1 << 16 };

/* Whether two tokens ever meet: whether no pair that stands between them while they are made merges
 * at once. Goes back in time: the later merge is undone first, of equal ones that on the right,
 * since merges of one rank go from left to right. Only merges of a lower rank than the one just
 * undone count, because a higher one would have come later. Takes no more steps than the tokens
 * have letters. */
static inline bool bpe_longest_meet(const pith__bpe_split *splits, const pith__merges *merges,
                                    int32_t left, int32_t right, int64_t *steps) {
    for (uint32_t limit;; --*steps) {
        const pith__bpe_split *l = &splits[left], *r = &splits[right];
        if (l->rank > r->rank) {
            limit = l->rank - 1;
            left = l->right;
        } else if (r->rank) {
            limit = r->rank;
            right = r->left;
        } else {
            return true;
        }
        if (pith__merges_find(merges, left, right, limit) != UINT32_MAX) return false;
    }
}

/* The longest token at the beginning of the text; -1: there is none. One walk down the trie meets
 * all tokens that begin here, and the last one met is the longest. What it reads is taken from
 * *steps. */
static inline int32_t bpe_longest_match(const pith__trie *trie, const char *text, uint32_t size,
                                        int64_t *steps) {
    pith__trie_slot slot = trie->slots[PITH_TRIE_ROOT];
    uint32_t i = 0;
    int32_t id = -1;
    while (i < size && pith__trie_step(trie->slots, &slot, (unsigned char)text[i])) {
        i++;
        if (slot.value == PITH_TRIE_NONE) continue;
        if (slot.value & PITH_TRIE_TAIL) {
            slot.value ^= PITH_TRIE_TAIL;
            pith_str key = pith__trie_key(trie, slot.value);
            if (key.size > size) break;
            while (i < key.size && key.data[i] == text[i]) i++;
            if (i < key.size) break;
        }
        id = (int32_t)slot.value;
    }
    *steps -= i;
    return id;
}

/* Whether the token may come next: the text after it is not known to lead nowhere, and the one
 * before stays apart. */
static inline bool fits(const pith__bpe_longest *b, const pith__merges *merges,
                        const pith__symbol *before, int32_t id, const uint64_t *dead, uint32_t end,
                        int64_t *steps) {
    --*steps;
    if (dead[end / 64] >> end % 64 & 1) return false;
    return !before || (pith__merges_find(merges, before->id, id, merges->count) == UINT32_MAX &&
                       bpe_longest_meet(b->splits, merges, before->id, id, steps));
}

/* Depth first, with the longest token first: the choice at each place goes from the longest match
 * to its shorter prefixes (`shorter`), and back to the token before if none fits. A place from
 * which no sequence leads on is noted in `dead`, so it is never tried twice. Since there is exactly
 * one valid sequence, the first one found is that of merging. `steps` bounds the work on texts that
 * go back a lot. */
size_t pith__bpe_longest_encode(const pith__bpe_longest *b, const pith__merges *merges,
                                pith_str text, pith__symbol *symbols, uint64_t *dead,
                                pith__encoding *enc) {
    const uint32_t size = (uint32_t)text.size;
    int64_t steps = STEPS_PER_BYTE * (int64_t)size + STEPS_LEAST;
    uint32_t at = 0;
    size_t count = 0;
    memset(dead, 0, pith__bpe_longest_words(size) * sizeof *dead);
    int64_t look = size > LOOK_STEPS ? steps - LOOK_STEPS : INT64_MIN;
    for (int32_t id = bpe_longest_match(&b->trie, text.data, size, &steps);;) {
        const pith__symbol *before = count ? &symbols[count - 1] : NULL;
        uint32_t bytes = 0;
        for (; id >= 0; id = b->splits[id].shorter) {
            bytes = (uint32_t)pith__trie_key(&b->trie, (uint32_t)id).size;
            if (bytes <= size - at && fits(b, merges, before, id, dead, at + bytes, &steps)) break;
        }
        if (steps < look) {
            if (pith__stop_asked(enc->stop)) enc->stopped = true;
            if (enc->stopped) return 0;
            look = steps - LOOK_STEPS;
        }
        if (steps < 0 || (id < 0 && !count)) return 0;
        if (id < 0) { /* only one sequence leads here, and it is none: the token before is too
                         long */
            dead[at / 64] |= 1ull << at % 64;
            id = symbols[--count].id;
            at -= symbols[count].size;
            continue;
        }
        symbols[count++] = (pith__symbol){ id, bytes };
        at += bytes;
        if (at == size) return count;
        id = bpe_longest_match(&b->trie, text.data + at, size - at, &steps);
    }
}

/* ---- building ---- */

typedef struct builder {
    pith__bpe_split *splits;
    pith_str *texts; /* by id; data NULL: encoding does not give the token */
} builder;

/* False: the token has another text already. */
static bool add_token(builder *b, int32_t id, pith__bpe_split split, pith_str text) {
    if (b->texts[id].data) return pith__str_eq(b->texts[id], text);
    b->splits[id] = split;
    b->texts[id] = text;
    return true;
}

/* Adds the tokens that merges make, in the order of rank. The two sides must be tokens already and
 * must meet when the merge's text is encoded alone; else the text becomes other tokens, and this
 * one is never given. *good: no token has two texts. */
static pith_status add_merged(builder *b, const pith__merges *merges, bool *good,
                              pith__arena *scratch, pith__stop *stop, pith_error *err) {
    int64_t steps = 0;
    for (uint32_t rank = 0; rank < merges->count && *good; rank++) {
        pith__merge m = merges->merges[rank];
        if (rank % 4096 == 0) PITH_TRY(pith__stop_check(stop, err));
        pith_str left = b->texts[m.left], right = b->texts[m.right];
        if (!left.data || !right.data ||
            !bpe_longest_meet(b->splits, merges, m.left, m.right, &steps))
            continue;
        char *text = pith__arena_alloc(scratch, left.size + right.size);
        if (!text) return pith__fail_memory(err, left.size + right.size);
        memcpy(text, left.data, left.size);
        memcpy(text + left.size, right.data, right.size);
        *good = add_token(b, m.id, (pith__bpe_split){ m.left, m.right, rank + 1, -1 },
                          (pith_str){ text, left.size + right.size });
    }
    return PITH_OK;
}

/* Whether all parts that encoding gives are made before the merges that take them. */
static bool in_order(const builder *b, const pith__merges *merges) {
    for (uint32_t rank = 0; rank < merges->count; rank++) {
        pith__merge m = merges->merges[rank];
        if (b->texts[m.left].data && b->texts[m.right].data &&
            (b->splits[m.left].rank > rank || b->splits[m.right].rank > rank))
            return false;
    }
    return true;
}

/* Texts of all tokens that encoding can give, a trie of them, and for each the longest other one
 * that it begins with. That one is found by matching the token's own text without its last byte. */
pith_status pith__bpe_longest_build(pith__bpe_longest *b, const pith__merges *merges,
                                    const pith__bpe_letter *letters, size_t letter_count,
                                    int32_t id_count, pith__arena *arena, pith__arena *scratch,
                                    pith__stop *stop, pith_error *err) {
    size_t count = (size_t)id_count;
    builder built = { pith__arena_alloc64(arena, count * sizeof *built.splits),
                      pith__arena_array(scratch, count, sizeof *built.texts) };
    if (!built.splits || !built.texts) return pith__fail_memory(err, count * sizeof *built.splits);
    for (size_t i = 0; i < count; i++)
        built.splits[i] = (pith__bpe_split){ -1, -1, UINT32_MAX, -1 };
    bool good = true;
    for (size_t i = 0; i < letter_count && good; i++)
        if (letters[i].id >= 0)
            good = add_token(&built, letters[i].id, (pith__bpe_split){ -1, -1, 0, -1 },
                             letters[i].text);
    PITH_TRY(add_merged(&built, merges, &good, scratch, stop, err));
    if (!good || !in_order(&built, merges)) return PITH_OK;
    PITH_TRY(pith__trie_build(&b->trie, built.texts, count, arena, scratch, stop, err));
    int64_t steps = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 4096 == 0) PITH_TRY(pith__stop_check(stop, err));
        if (built.texts[i].data)
            built.splits[i].shorter = bpe_longest_match(&b->trie, built.texts[i].data,
                                                        (uint32_t)built.texts[i].size - 1, &steps);
    }
    b->splits = built.splits;
    return PITH_OK;
}

void pith__bpe_longest_save(const pith__bpe_longest *b, pith__frozen_writer *writer) {
    pith__frozen_put(writer, "splits", b->splits, b->splits ? b->trie.key_count : 0,
                     sizeof *b->splits);
    if (b->splits) pith__trie_save(&b->trie, writer);
}

/* Whether a token has a text, and both ways from it end: to shorter ones and back through the
 * merges. */
static bool is_sound(const pith__bpe_split *splits, const pith__trie *trie, uint32_t id,
                     uint32_t merge_count) {
    const pith__bpe_split s = splits[id];
    const uint32_t count = trie->key_count, shorter = (uint32_t)s.shorter;
    const size_t size = pith__trie_key(trie, id).size;
    if (s.rank == UINT32_MAX) return true;
    if (!size ||
        (s.shorter >= 0 && (shorter >= count || pith__trie_key(trie, shorter).size >= size ||
                            splits[shorter].rank == UINT32_MAX)))
        return false;
    if (s.rank == 0) return true;
    return s.rank <= merge_count && (uint32_t)s.left < count && (uint32_t)s.right < count &&
           splits[s.left].rank < s.rank && splits[s.right].rank < s.rank;
}

/* Tables of a compiled file, which may be hostile: every way that is followed through them must
 * end, and every token that the trie can give must have a text (is_sound). */
pith_status pith__bpe_longest_open(pith__bpe_longest *b, const pith__merges *merges,
                                   int32_t id_count, pith__loader *loader) {
    size_t count;
    const pith__bpe_split *splits = pith__frozen_table(loader, "splits", sizeof *splits, &count);
    if (!splits) return loader->err->code;
    if (!count) return PITH_OK;
    PITH_TRY(pith__trie_open(&b->trie, loader));
    bool good = count == (size_t)id_count && b->trie.key_count == count;
    for (uint32_t i = 0; i < count && good; i++)
        good = is_sound(splits, &b->trie, i, merges->count);
    for (size_t i = 0; i < b->trie.slot_count && good; i++) {
        uint32_t key = b->trie.slots[i].value;
        good = key == PITH_TRIE_NONE || splits[key & ~PITH_TRIE_TAIL].rank != UINT32_MAX;
    }
    if (!good) return pith__frozen_damaged(loader, "splits");
    b->splits = splits;
    return PITH_OK;
}
