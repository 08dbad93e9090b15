/* bpe_merges.c - merges the symbols of a word in the order of rank, then position.
 *
 * Symbols stay where they are. Links skip those that were merged into their left neighbour. To find
 * the next pair, a short word looks at all pairs. A longer word keeps a tree over the places, with
 * the lowest rank at its root: from there a walk down finds the leftmost place of that rank, or a
 * walk onward from the last one. A merge changes three places. If their neighbours have the same
 * rank, as in a text of one repeated letter, nothing above them changes. So there are no stale
 * candidates. */
#include "text/models/bpe_merges.h"

#include "text/frozen_tokenizer.h"

/* Words of fewer symbols look at all pairs; from about 20 on the tree is faster. */
enum { SHORT_WORD = 20 };
/* In words of more symbols it is looked, between merges, whether the call must end. */
enum { LOOK_SYMBOLS = 4096 };

static const uint32_t none = UINT32_MAX;

/* PROBE_LIMIT: how many buckets a pair may lie from its own. Real merges stay below 10, so a table
 * that exceeds it is hostile and refused. MERGES_MAX: more cannot be numbered. */
enum { PROBE_LIMIT = 128, MERGES_MAX = 1 << 28 };

static uint32_t buckets_for(size_t count) {
    uint32_t buckets = 2;
    while (buckets * (PITH_MERGE_BUCKET / 2) < count) buckets *= 2;
    return buckets;
}

/* All but the slots' contents. */
static pith__merges table_of(const pith__merge *merges, size_t count, const uint32_t *slots) {
    uint32_t ranks = 1;
    while (ranks < count) ranks = 2 * ranks + 1;
    return (pith__merges){ merges, slots, (uint32_t)count, buckets_for(count) - 1, ranks };
}

/* A hash table with buckets of PITH_MERGE_BUCKET slots, probed one after the other. Slots are 32
 * bits: the rank, and as many bits of the hash as fit above it, which spare most comparisons with
 * the merge itself. Half of the slots stay empty, so that most searches end in their first bucket.
 */
pith_status pith__merges_build(pith__merges *table, const pith__merge *merges, size_t count,
                               pith__arena *arena, pith__stop *stop, pith_error *err) {
    if (count > MERGES_MAX) return pith__fail(err, PITH_ERR_UNSUPPORTED, "%zu merges", count);
    size_t slot_count = (size_t)buckets_for(count) * PITH_MERGE_BUCKET;
    uint32_t *slots = pith__arena_alloc64(arena, slot_count * sizeof *slots);
    if (!slots) return pith__fail_memory(err, slot_count * sizeof *slots);
    memset(slots, 0xFF, slot_count * sizeof *slots);
    *table = table_of(merges, count, slots);
    for (uint32_t rank = 0; rank < count; rank++) {
        const pith__merge *m = &merges[rank];
        if (rank % 4096 == 0) PITH_TRY(pith__stop_check(stop, err));
        uint32_t other = pith__merges_find(table, m->left, m->right, rank), probes = 0,
                 used = PITH_MERGE_BUCKET;
        if (other != UINT32_MAX)
            return pith__fail(err, PITH_ERR_FORMAT, "merges[%u] repeats merges[%u]", rank, other);
        uint64_t hash = pith__merges_hash(m->left, m->right);
        uint32_t *bucket = slots;
        for (; used == PITH_MERGE_BUCKET; probes++) {
            bucket = slots +
                     (size_t)(((uint32_t)(hash >> 32) + probes) & table->last) * PITH_MERGE_BUCKET;
            for (used = 0; used < PITH_MERGE_BUCKET && bucket[used] != UINT32_MAX;) used++;
            if (probes == PROBE_LIMIT)
                return pith__fail(err, PITH_ERR_FORMAT, "the merges collide (at merges[%u])", rank);
        }
        bucket[used] = ((uint32_t)hash & ~table->ranks) | rank;
    }
    return PITH_OK;
}

void pith__merges_save(const pith__merges *table, pith__frozen_writer *writer) {
    size_t slots = ((size_t)table->last + 1) * PITH_MERGE_BUCKET;
    pith__frozen_put(writer, "merges", table->merges, table->count, sizeof *table->merges);
    pith__frozen_put(writer, "merges.slots", table->slots, slots, sizeof *table->slots);
}

/* Checks what a search relies on, since the file may be damaged: ids within the vocabulary, and an
 * empty slot within a bounded number of buckets from any place, or a search would not end. */
pith_status pith__merges_open(pith__merges *table, int32_t id_count, pith__loader *loader) {
    size_t count, slot_count;
    const pith__merge *merges = pith__frozen_table(loader, "merges", sizeof *merges, &count);
    const uint32_t *slots = pith__frozen_table(loader, "merges.slots", sizeof *slots, &slot_count);
    if (!merges || !slots) return loader->err->code;
    if (count > MERGES_MAX || slot_count != (size_t)buckets_for(count) * PITH_MERGE_BUCKET)
        return pith__frozen_damaged(loader, "merges");
    *table = table_of(merges, count, slots);
    size_t full = 0, most = 0; /* full buckets in a row: what a search may have to pass */
    bool good = true;
    for (size_t i = 0; i < count; i++)
        good &= (uint32_t)merges[i].id < (uint32_t)id_count &&
                (uint32_t)merges[i].left < (uint32_t)id_count &&
                (uint32_t)merges[i].right < (uint32_t)id_count;
    for (size_t i = PITH_MERGE_BUCKET - 1; i < slot_count; i += PITH_MERGE_BUCKET) {
        full = slots[i] == UINT32_MAX ? 0 : full + 1;
        most = full > most ? full : most;
    }
    good &= most < slot_count / PITH_MERGE_BUCKET && most <= 2 * PROBE_LIMIT;
    return good ? PITH_OK : pith__frozen_damaged(loader, "merges");
}

/* The rank of a pair, and what it becomes; UINT32_MAX: it does not merge. */
static inline uint32_t pair_rank(const pith__merges *table, int32_t left, int32_t right,
                                 int32_t *id) {
    uint32_t rank = pith__merges_find(table, left, right, table->count);
    if (rank != UINT32_MAX) *id = table->merges[rank].id;
    return rank;
}

/* Looks at all pairs for each merge: quadratic, but without any structure to keep, and faster for
 * words of this length. Symbols behind a merge move up. */
static size_t merge_short(const pith__merges *table, pith__symbol *symbols, size_t count) {
    uint32_t ranks[SHORT_WORD];
    int32_t ids[SHORT_WORD];
    for (size_t i = 0; i + 1 < count; i++)
        ranks[i] = pair_rank(table, symbols[i].id, symbols[i + 1].id, &ids[i]);
    while (count > 1) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[at]) at = i;
        if (ranks[at] == UINT32_MAX) break;
        symbols[at].id = ids[at];
        symbols[at].size += symbols[at + 1].size;
        count--;
        for (size_t i = at + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
            ranks[i] = ranks[i + 1];
            ids[i] = ids[i + 1];
        }
        if (at + 1 < count)
            ranks[at] = pair_rank(table, symbols[at].id, symbols[at + 1].id, &ids[at]);
        if (at) ranks[at - 1] = pair_rank(table, symbols[at - 1].id, symbols[at].id, &ids[at - 1]);
    }
    return count;
}

/* A symbol of a long word and its neighbours that are left; merged: what it becomes with the next
 * one. Its size is that of all symbols up to the next one. */
typedef struct link {
    int32_t id, merged;
    uint32_t previous, next;
} link;

/* The least of all ranks is tree[1]; those of the places are tree[leaves] and up, leaves a power of
 * two. */
static inline void set_rank(uint32_t *tree, size_t leaves, uint32_t at, uint32_t rank) {
    size_t i = leaves + at;
    for (tree[i] = rank; i > 1; i /= 2) {
        uint32_t least = tree[i] < tree[i ^ 1] ? tree[i] : tree[i ^ 1];
        if (tree[i / 2] == least) return;
        tree[i / 2] = least;
    }
}

/* The leftmost place of the least rank. */
static inline uint32_t first_least(const uint32_t *tree, size_t leaves) {
    size_t i = 1;
    while (i < leaves) i = 2 * i + (tree[2 * i] > tree[2 * i + 1]);
    return (uint32_t)(i - leaves);
}

/* The same where no place up to `at` has that rank: usually a few steps away. */
static inline uint32_t next_least(const uint32_t *tree, size_t leaves, uint32_t at) {
    size_t i = leaves + at;
    while (i & 1 || tree[i + 1] != tree[1]) i /= 2;
    for (i++; i < leaves;) i = 2 * i + (tree[2 * i] != tree[1]);
    return (uint32_t)(i - leaves);
}

/* A tournament tree over the places: leaf i is the rank of the pair that begins at symbol i, a node
 * the lower of its two. A merge costs log n, so a word of any length takes n log n, where a scan
 * for each merge would be quadratic on hostile input. While the least rank stays the same, the walk
 * goes onward from the last place instead of from the root. The sizes of merged symbols are added
 * up at the end from the links. */
static size_t merge_long(const pith__merges *table, pith__encoding *enc, pith__symbol *symbols,
                         size_t count) {
    size_t leaves = 16;
    while (leaves < count) leaves *= 2;
    link *links = pith__encoding_scratch(enc, 1, count * sizeof *links);
    uint32_t *tree = pith__encoding_scratch(enc, 2, 2 * leaves * sizeof *tree);
    if (!links || !tree) return SIZE_MAX;
    const bool looks = count > LOOK_SYMBOLS;
    if (looks) pith__encoding_restart(enc);
    for (uint32_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        if (looks && pith__encoding_stops(enc, i)) return SIZE_MAX;
        links[i] = (link){ symbols[i].id, 0, i - 1, last ? none : i + 1 };
        tree[leaves + i] =
            last ? none : pair_rank(table, symbols[i].id, symbols[i + 1].id, &links[i].merged);
    }
    memset(tree + leaves + count, 0xFF, (leaves - count) * sizeof *tree);
    for (size_t i = leaves; --i;)
        tree[i] = tree[2 * i] < tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
    bool onward = false;
    size_t merged = 0;
    if (looks) pith__encoding_restart(enc);
    for (uint32_t at = 0; tree[1] != none; merged++) {
        if (looks && pith__encoding_stops(enc, merged)) return SIZE_MAX;
        uint32_t least = tree[1], rank = none, left_rank = none;
        at = onward ? next_least(tree, leaves, at) : first_least(tree, leaves);
        uint32_t right = links[at].next, after = links[right].next, left = links[at].previous;
        links[at].id = links[at].merged;
        links[at].next = after;
        set_rank(tree, leaves, right, none);
        if (after != none) {
            links[after].previous = at;
            rank = pair_rank(table, links[at].id, links[after].id, &links[at].merged);
        }
        set_rank(tree, leaves, at, rank);
        if (left != none) {
            left_rank = pair_rank(table, links[left].id, links[at].id, &links[left].merged);
            set_rank(tree, leaves, left, left_rank);
        }
        onward = tree[1] == least && rank != least && left_rank != least;
    }
    size_t kept = 0;
    for (uint32_t i = 0, next; i != none; i = next) {
        uint32_t size = 0;
        next = links[i].next;
        for (uint32_t k = i; k < count && k != next; k++) size += symbols[k].size;
        symbols[kept++] = (pith__symbol){ links[i].id, size };
    }
    if (looks) pith__encoding_restart(enc);
    return kept;
}

size_t pith__bpe_merge(const pith__merges *table, pith__encoding *enc, pith__symbol *symbols,
                       size_t count) {
    return count <= SHORT_WORD ? merge_short(table, symbols, count)
                               : merge_long(table, enc, symbols, count);
}
