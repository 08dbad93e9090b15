/* bpe.c - merging the symbols of a word in the order of rank, then position.
 *
 * Short words: ranks of neighbours in an array, the lowest found by looking at all. Long words: symbols form a linked
 * list, and candidate pairs wait in one queue per rank. A new pair is nearly always further right than the last one of
 * its rank, so a queue is a plain list in ascending order; the rare pair that comes too late goes to a binary heap, and
 * the lower of the two heads is next. A bit tree finds the lowest rank that waits. Candidates that an earlier merge
 * destroyed are noticed when their turn comes. A text of one repeated letter thus costs hardly more than any other. */
#include "text/bpe.h"

enum { SHORT_WORD = 32, LEVELS = 5 }; /* above some 50 symbols queues win */

static const uint32_t none = UINT32_MAX;

pith_status pith_merges_build(pith_merges *table, const pith_merge *merges, size_t count, uint64_t seed,
                              pith_arena *arena, pith_error *err) {
    size_t slot_count = count + count / 2 + 8;
    if (count > 1u << 28) return pith_fail(err, PITH_ERR_UNSUPPORTED, "%zu merges", count);
    pith_merge *slots = pith_arena_array(arena, slot_count, sizeof *slots);
    if (!slots) return pith_fail_memory(err, slot_count * sizeof *slots);
    *table = (pith_merges){ slots, (uint32_t)slot_count, (uint32_t)count, seed };
    for (size_t i = 0; i < slot_count; i++) slots[i].left = -1;
    for (size_t i = 0; i < count; i++) {
        const pith_merge *merge = &merges[i];
        const pith_merge *earlier = pith_merges_find(table, merge->left, merge->right);
        if (earlier) return pith_fail(err, PITH_ERR_FORMAT, "merges[%zu] repeats merges[%u]", i, earlier->rank);
        uint32_t at = pith_merges_home(table, merge->left, merge->right);
        while (slots[at].left >= 0) at = at + 1 == slot_count ? 0 : at + 1;
        slots[at] = (pith_merge){ merge->left, merge->right, merge->id, (uint32_t)i };
    }
    return PITH_OK;
}

static size_t merge_short(const pith_merges *table, pith_symbol *symbols, size_t count) {
    uint32_t ranks[SHORT_WORD];
    int32_t ids[SHORT_WORD];
    for (size_t i = 0; i + 1 < count; i++) {
        const pith_merge *merge = pith_merges_find(table, symbols[i].id, symbols[i + 1].id);
        ranks[i] = merge ? merge->rank : none;
        ids[i] = merge ? merge->id : 0;
    }
    while (count > 1) {
        size_t lowest = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[lowest]) lowest = i;
        if (ranks[lowest] == none) break;
        symbols[lowest].id = ids[lowest];
        symbols[lowest].size += symbols[lowest + 1].size;
        count--;
        for (size_t i = lowest + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
            ranks[i] = ranks[i + 1];
            ids[i] = ids[i + 1];
        }
        for (size_t i = lowest ? lowest - 1 : 0; i <= lowest && i + 1 < count; i++) {
            const pith_merge *merge = pith_merges_find(table, symbols[i].id, symbols[i + 1].id);
            ranks[i] = merge ? merge->rank : none;
            ids[i] = merge ? merge->id : 0;
        }
    }
    return count;
}

/* A symbol of a long word; size 0: merged into its left neighbour. */
typedef struct link {
    int32_t id;
    uint32_t size, previous, next;
} link;

/* Indices of waiting entries, plus one; 0: none. */
typedef struct queue {
    uint32_t head, tail;
} queue;

typedef struct waiting {
    uint32_t at, next;
} waiting;

typedef struct merger {
    const pith_merges *table;
    link *links;
    queue *queues;           /* by rank; all empty between words */
    uint64_t *bits[LEVELS];  /* bits[0]: ranks whose queue is not empty; bits[k]: words of bits[k - 1] that are not 0 */
    waiting *entries;
    uint32_t entry_count, free_entry;
    uint64_t *heap; /* rank << 32 | at */
    size_t heap_count;
} merger;

static void heap_push(merger *m, uint64_t key) {
    size_t i = m->heap_count++;
    for (; i && m->heap[(i - 1) / 2] > key; i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = key;
}

static void heap_pop(merger *m) {
    uint64_t key = m->heap[--m->heap_count];
    size_t i = 0, child;
    for (; (child = 2 * i + 1) < m->heap_count; i = child) {
        child += child + 1 < m->heap_count && m->heap[child + 1] < m->heap[child];
        if (m->heap[child] >= key) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = key;
}

static void push(merger *m, uint32_t at) {
    const link *left = &m->links[at];
    if (left->next == none) return;
    const pith_merge *merge = pith_merges_find(m->table, left->id, m->links[left->next].id);
    if (!merge) return;
    queue *q = &m->queues[merge->rank];
    if (q->head && m->entries[q->tail - 1].at > at) {
        heap_push(m, (uint64_t)merge->rank << 32 | at);
        return;
    }
    uint32_t entry = m->free_entry;
    if (entry) m->free_entry = m->entries[entry - 1].next;
    else entry = ++m->entry_count;
    m->entries[entry - 1] = (waiting){ at, 0 };
    if (q->head) {
        m->entries[q->tail - 1].next = entry;
    } else {
        q->head = entry;
        uint32_t bit = merge->rank;
        for (int level = 0; level < LEVELS; level++, bit >>= 6) m->bits[level][bit >> 6] |= 1ull << (bit & 63);
    }
    q->tail = entry;
}

/* The next candidate as rank << 32 | at, UINT64_MAX if none waits. */
static uint64_t pop(merger *m) {
    uint64_t from_heap = m->heap_count ? m->heap[0] : UINT64_MAX, from_queue = UINT64_MAX;
    uint32_t rank = 0;
    if (m->bits[LEVELS - 1][0]) {
        for (int level = LEVELS; level--;) rank = rank << 6 | (uint32_t)__builtin_ctzll(m->bits[level][rank]);
        from_queue = (uint64_t)rank << 32 | m->entries[m->queues[rank].head - 1].at;
    }
    if (from_heap <= from_queue) {
        if (m->heap_count) heap_pop(m);
        return from_heap;
    }
    queue *q = &m->queues[rank];
    uint32_t entry = q->head;
    q->head = m->entries[entry - 1].next;
    m->entries[entry - 1].next = m->free_entry;
    m->free_entry = entry;
    uint32_t bit = rank;
    bool empty = !q->head;
    for (int level = 0; level < LEVELS && empty; level++, bit >>= 6) {
        m->bits[level][bit >> 6] &= ~(1ull << (bit & 63));
        empty = !m->bits[level][bit >> 6];
    }
    return from_queue;
}

static bool merger_init(merger *m, const pith_merges *table, pith_call *call, size_t count) {
    size_t words[LEVELS], all_words = 0, queues = table->rank_count, below = queues;
    for (int level = 0; level < LEVELS; level++) {
        words[level] = below / 64 + 1;
        all_words += words[level];
        below = words[level];
    }
    /* A merge takes one waiting pair away and adds at most two, so 2 * count is the most that ever waits. */
    m->table = table;
    m->links = pith_call_scratch(call, 1, count * (sizeof *m->links + 2 * sizeof *m->entries));
    uint64_t *bits = pith_call_scratch(call, 2, all_words * sizeof *bits + queues * sizeof *m->queues);
    m->heap = pith_call_scratch(call, 3, 2 * count * sizeof *m->heap);
    if (!m->links || !bits || !m->heap) return false;
    m->entries = (waiting *)(m->links + count);
    for (int level = 0; level < LEVELS; level++) {
        m->bits[level] = bits;
        bits += words[level];
    }
    m->queues = (queue *)bits;
    m->entry_count = m->free_entry = 0;
    m->heap_count = 0;
    return true;
}

static size_t merge_long(const pith_merges *table, pith_call *call, pith_symbol *symbols, size_t count) {
    merger m;
    if (!merger_init(&m, table, call, count)) return SIZE_MAX;
    link *links = m.links;
    for (uint32_t i = 0; i < count; i++)
        links[i] = (link){ symbols[i].id, symbols[i].size, i - 1, i + 1 < count ? i + 1 : none };
    for (uint32_t i = 0; i < count; i++) push(&m, i);
    for (uint64_t key; (key = pop(&m)) != UINT64_MAX;) {
        uint32_t at = (uint32_t)key, next = links[at].next;
        if (!links[at].size || next == none) continue;
        const pith_merge *merge = pith_merges_find(table, links[at].id, links[next].id);
        if (!merge || merge->rank != key >> 32) continue;
        links[at].id = merge->id;
        links[at].size += links[next].size;
        links[at].next = links[next].next;
        links[next].size = 0;
        if (links[at].next != none) links[links[at].next].previous = at;
        if (links[at].previous != none) push(&m, links[at].previous);
        push(&m, at);
    }
    size_t left = 0;
    for (uint32_t i = 0; i != none; i = links[i].next) symbols[left++] = (pith_symbol){ links[i].id, links[i].size };
    return left;
}

size_t pith_bpe_merge(const pith_merges *table, pith_call *call, pith_symbol *symbols, size_t count) {
    return count <= SHORT_WORD ? merge_short(table, symbols, count) : merge_long(table, call, symbols, count);
}
