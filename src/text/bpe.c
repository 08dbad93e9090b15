/* bpe.c - merging the symbols of a word in the order of rank, then position.
 *
 * Symbols stay where they are; those merged into their left neighbour are skipped by links. Which pair is next: in
 * short words all are looked at; in longer ones a tournament tree over the places holds the winner at its root, and a
 * merge replays the three places it touches. There are no stale candidates, and a text of one repeated letter costs
 * hardly more than any other. */
#include "text/bpe.h"

#include "text/image.h"

enum { SHORT_WORD = 20 }; /* from some 20 symbols on the tree is faster */

static const uint32_t none = UINT32_MAX;

/* Longest way from a pair's place to its slot, in slots; honest merges stay below 100. */
enum { PROBE_LIMIT = 1024, SLOTS_MAX = 1 << 29 };

pith_status pith_merges_build(pith_merges *table, const pith_merge *merges, size_t count, pith_arena *arena,
                              pith_error *err) {
    size_t slot_count = 16;
    if (count > SLOTS_MAX / 2) return pith_fail(err, PITH_ERR_UNSUPPORTED, "%zu merges", count);
    while (slot_count < count + count / 2) slot_count *= 2;
    pith_merge *slots = pith_arena_alloc64(arena, slot_count * sizeof *slots);
    if (!slots) return pith_fail_memory(err, slot_count * sizeof *slots);
    memset(slots, 0xFF, slot_count * sizeof *slots);
    *table = (pith_merges){ slots, (uint32_t)(slot_count - 1) };
    for (size_t i = 0; i < count; i++) {
        uint32_t at = pith_merges_home(table, merges[i].pair), probes = 0;
        for (; slots[at].pair != UINT64_MAX && slots[at].pair != merges[i].pair; at = (at + 1) & table->mask)
            if (++probes > PROBE_LIMIT)
                return pith_fail(err, PITH_ERR_FORMAT, "the merges collide (at merges[%zu])", i);
        if (slots[at].pair == merges[i].pair)
            return pith_fail(err, PITH_ERR_FORMAT, "merges[%zu] repeats merges[%u]", i, slots[at].rank);
        slots[at] = (pith_merge){ merges[i].pair, merges[i].id, (uint32_t)i };
    }
    return PITH_OK;
}

void pith_merges_save(const pith_merges *table, pith_image_writer *writer) {
    pith_image_put(writer, "merges", table->slots, (size_t)table->mask + 1, sizeof *table->slots);
}

pith_status pith_merges_open(pith_merges *table, int32_t id_count, pith_loader *loader) {
    size_t count;
    uint32_t run = 0, longest_run = 0;
    bool good = true;
    if (!(table->slots = pith_image_table(loader, "merges", sizeof *table->slots, &count))) return loader->err->code;
    if (count < 2 || count & (count - 1) || count > SLOTS_MAX) return pith_image_damaged(loader, "merges");
    table->mask = (uint32_t)count - 1;
    for (size_t i = 0; i < count; i++) {
        bool used = table->slots[i].pair != UINT64_MAX;
        good &= !used || (uint32_t)table->slots[i].id < (uint32_t)id_count;
        run = used ? run + 1 : 0;
        longest_run = run > longest_run ? run : longest_run;
    }
    /* A table without an end of its searches would be one long run. */
    return good && longest_run < count && longest_run <= 2 * PROBE_LIMIT ? PITH_OK
                                                                         : pith_image_damaged(loader, "merges");
}

/* Where the pair that begins at a symbol stands among all: rank << 32 | place; UINT64_MAX: it does not merge. */
static inline uint64_t pair_key(const pith_merges *table, int32_t left, int32_t right, uint32_t at, int32_t *id) {
    const pith_merge *merge = pith_merges_find(table, pith_pair(left, right));
    if (!merge) return UINT64_MAX;
    *id = merge->id;
    return (uint64_t)merge->rank << 32 | at;
}

static size_t merge_short(const pith_merges *table, pith_symbol *symbols, size_t count) {
    uint64_t keys[SHORT_WORD];
    int32_t ids[SHORT_WORD];
    for (size_t i = 0; i + 1 < count; i++) keys[i] = pair_key(table, symbols[i].id, symbols[i + 1].id, 0, &ids[i]);
    while (count > 1) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (keys[i] < keys[at]) at = i;
        if (keys[at] == UINT64_MAX) break;
        symbols[at].id = ids[at];
        symbols[at].size += symbols[at + 1].size;
        count--;
        for (size_t i = at + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
            keys[i] = keys[i + 1];
            ids[i] = ids[i + 1];
        }
        if (at + 1 < count) keys[at] = pair_key(table, symbols[at].id, symbols[at + 1].id, 0, &ids[at]);
        if (at) keys[at - 1] = pair_key(table, symbols[at - 1].id, symbols[at].id, 0, &ids[at - 1]);
    }
    return count;
}

/* A symbol of a long word and its neighbours that are left; merged: what it becomes with the next one. */
typedef struct link {
    int32_t id, merged;
    uint32_t size, previous, next;
} link;

/* The least of all keys is tree[1], those of the places are tree[count] and up. */
static inline void set_key(uint64_t *tree, size_t count, uint32_t at, uint64_t key) {
    size_t i = count + at;
    for (tree[i] = key; i > 1; i /= 2) {
        uint64_t least = tree[i] < tree[i ^ 1] ? tree[i] : tree[i ^ 1];
        if (tree[i / 2] == least) return;
        tree[i / 2] = least;
    }
}

static size_t merge_long(const pith_merges *table, pith_call *call, pith_symbol *symbols, size_t count) {
    link *links = pith_call_scratch(call, 1, count * sizeof *links);
    uint64_t *tree = pith_call_scratch(call, 2, 2 * count * sizeof *tree);
    if (!links || !tree) return SIZE_MAX;
    for (uint32_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        links[i] = (link){ symbols[i].id, 0, symbols[i].size, i - 1, last ? none : i + 1 };
        tree[count + i] = last ? UINT64_MAX : pair_key(table, symbols[i].id, symbols[i + 1].id, i, &links[i].merged);
    }
    for (size_t i = count; --i;) tree[i] = tree[2 * i] < tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
    while (tree[1] != UINT64_MAX) {
        uint32_t at = (uint32_t)tree[1], right = links[at].next, after = links[right].next, left = links[at].previous;
        uint64_t key = UINT64_MAX;
        links[at].id = links[at].merged;
        links[at].size += links[right].size;
        links[at].next = after;
        set_key(tree, count, right, UINT64_MAX);
        if (after != none) {
            links[after].previous = at;
            key = pair_key(table, links[at].id, links[after].id, at, &links[at].merged);
        }
        set_key(tree, count, at, key);
        if (left != none)
            set_key(tree, count, left, pair_key(table, links[left].id, links[at].id, left, &links[left].merged));
    }
    size_t kept = 0;
    for (uint32_t i = 0; i != none; i = links[i].next) symbols[kept++] = (pith_symbol){ links[i].id, links[i].size };
    return kept;
}

size_t pith_bpe_merge(const pith_merges *table, pith_call *call, pith_symbol *symbols, size_t count) {
    return count <= SHORT_WORD ? merge_short(table, symbols, count) : merge_long(table, call, symbols, count);
}
