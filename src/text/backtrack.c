/* backtrack.c - see the header. */
#include "text/backtrack.h"

#include <stdio.h>

/* Tokens looked at per byte, before merging is the better way. */
enum { TRIES_PER_BYTE = 2, TRIES_LEAST = 16 };

/* Whether two tokens stay apart when their text is encoded: none of the pairs that ever meet at the place between them
 * merges before one of the two is itself merged on. Undoes the later merge first; of equal ones, the right one. */
static bool stay_apart(const pith_bpe_split *splits, const pith_merges *merges, int32_t left, int32_t right,
                       uint32_t limit) {
    for (;;) {
        if (pith_merges_find(merges, left, right, limit) != UINT32_MAX) return false;
        const pith_bpe_split *l = &splits[left], *r = &splits[right];
        uint32_t left_rank = l->rank, right_rank = r->rank;
        int32_t left_part = l->right, right_part = r->left;
        bool on_left = left_rank > right_rank;
        if (!(left_rank | right_rank)) return true;
        limit = on_left ? left_rank - 1 : right_rank;
        left = on_left ? left_part : left;
        right = on_left ? right : right_part;
    }
}

/* The longest token at the beginning of the text; 0: there is none. */
static inline uint32_t longest(const pith_trie *trie, const char *text, uint32_t size, int32_t *id) {
    pith_trie_slot slot = trie->slots[PITH_TRIE_ROOT];
    uint32_t best = 0;
    for (uint32_t i = 0; i < size && pith_trie_step(trie->slots, &slot, (unsigned char)text[i]); i++) {
        if (slot.value == PITH_TRIE_NONE) continue;
        if (slot.value & PITH_TRIE_TAIL) {
            uint32_t whole = pith_trie_tail(trie, slot.value ^ PITH_TRIE_TAIL, text, i + 1, size);
            if (!whole) break;
            *id = (int32_t)(slot.value ^ PITH_TRIE_TAIL);
            return whole;
        }
        *id = (int32_t)slot.value;
        best = i + 1;
    }
    return best;
}

size_t pith_backtrack_encode(const pith_backtrack *b, const pith_merges *merges, const char *text, uint32_t size,
                             pith_symbol *symbols) {
    uint32_t at = 0, room = size;
    size_t count = 0, tries = TRIES_PER_BYTE * (size_t)size + TRIES_LEAST;
    while (at < size) {
        int32_t id = 0;
        if (!tries--) return 0;
        uint32_t bytes = longest(&b->trie, text + at, room, &id);
        if (!bytes) {
            if (!count) return 0;
            room = symbols[--count].size;
            at -= room--;
            continue;
        }
        if (count && !stay_apart(b->splits, merges, symbols[count - 1].id, id, merges->count)) {
            room = bytes - 1;
            continue;
        }
        symbols[count++] = (pith_symbol){ id, bytes };
        at += bytes;
        room = size - at;
    }
    return count;
}

pith_status pith_backtrack_build(pith_backtrack *b, const pith_merges *merges, const int32_t symbols[256], int32_t id_count, pith_arena *arena, pith_arena *scratch,
                                 pith_error *err) {
    pith_bpe_split *splits = pith_arena_array(arena, (size_t)id_count, sizeof *splits);
    pith_str *keys = pith_arena_array(scratch, (size_t)id_count, sizeof *keys);
    size_t merge_count = merges->count;
    const pith_merge *by_rank = merges->merges;
    if (!splits || !keys) return pith_fail_memory(err, (size_t)id_count * sizeof *splits);
    for (int32_t i = 0; i < id_count; i++) splits[i].rank = UINT32_MAX;
    for (unsigned c = 0; c < 256; c++) {
        char *byte = pith_arena_alloc(scratch, 1);
        if (!byte) return pith_fail_memory(err, 1);
        *byte = (char)c;
        keys[symbols[c]] = (pith_str){ byte, 1 };
        splits[symbols[c]] = (pith_bpe_split){ -1, -1, 0 };
    }
    int odd = 0, never = 0, second = 0, apart = 0;
    for (size_t i = 0; i < merge_count; i++) {
        int32_t left = by_rank[i].left, right = by_rank[i].right, id = by_rank[i].id;
        if (splits[left].rank == UINT32_MAX || splits[right].rank == UINT32_MAX) { never++; continue; }
        if (splits[id].rank != UINT32_MAX) { second++; continue; }
        if (!stay_apart(splits, merges, left, right, (uint32_t)i)) { apart++; continue; }
        splits[id] = (pith_bpe_split){ left, right, (uint32_t)i + 1 };
        size_t size = keys[left].size + keys[right].size;
        char *text = pith_arena_alloc(scratch, size);
        if (!text) return pith_fail_memory(err, size);
        memcpy(text, keys[left].data, keys[left].size);
        memcpy(text + keys[left].size, keys[right].data, keys[right].size);
        keys[id] = (pith_str){ text, size };
    }
    int unreach = 0, harm = 0;
    for (size_t i = 0; i < merge_count; i++) {
        int32_t left = by_rank[i].left, right = by_rank[i].right;
        if (splits[left].rank == UINT32_MAX || splits[right].rank == UINT32_MAX) continue;
        if (splits[left].rank <= i && splits[right].rank <= i) continue;
        odd++;
        /* harmless where the two never meet */
        uint32_t limit = splits[left].rank > splits[right].rank ? splits[left].rank - 1 : splits[right].rank;
        (void)limit;
        if (stay_apart(splits, merges, left, right, (uint32_t)i)) harm++;
    }
    for (int32_t i = 0; i < id_count; i++) unreach += splits[i].rank == UINT32_MAX;
    fprintf(stderr, "merges %zu never %d second %d apart %d odd %d harm %d unreachable %d\n", merge_count, never, second, apart, odd, harm, unreach);
    b->splits = splits;
    return pith_trie_build(&b->trie, keys, (size_t)id_count, arena, scratch, err);
}
