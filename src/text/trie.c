/* trie.c - building the double array.
 *
 * Keys are sorted, so a node is a range of keys that share their first bytes. Nodes are placed depth first: a range's
 * distinct next bytes need a base for which all slots base ^ byte are free. Within a block of 256 slots all 256 bases
 * are tried at once: the free bits, permuted by xor with each byte, are and-ed. Only the last few blocks with room are
 * looked at, which bounds the work per node; the many nodes with one child fill the holes. */
#include "text/trie.h"

#include "text/image.h"

enum { MAX_SLOTS = 1 << 24, BLOCK = 256, OPEN_BLOCKS = 6 };

typedef struct entry {
    uint64_t prefix; /* first eight bytes, big-endian, padded with zeros */
    uint32_t index, size;
} entry;

typedef struct range {
    uint32_t begin, end; /* of entries */
    uint32_t depth, slot;
} range;

typedef struct block {
    pith_trie_slot slots[BLOCK];
    uint64_t free[4], base_free[4]; /* bits: slots and bases not taken */
    unsigned free_count;
} block;

typedef struct builder {
    pith_arena *scratch;
    const pith_str *keys;
    block *blocks;
    size_t block_count, block_capacity;
    uint32_t open[OPEN_BLOCKS]; /* blocks worth looking at; the oldest is given up for a new one */
    size_t open_count;
} builder;

static bool entry_after(const builder *b, const entry *x, const entry *y) {
    if (x->prefix != y->prefix) return x->prefix > y->prefix;
    pith_str s = b->keys[x->index], t = b->keys[y->index];
    size_t shorter = s.size < t.size ? s.size : t.size;
    int order = memcmp(s.data, t.data, shorter);
    if (order) return order > 0;
    return s.size != t.size ? s.size > t.size : x->index > y->index;
}

/* Merge sort; returns whichever of the two arrays holds the result. */
static entry *sort_entries(const builder *b, entry *from, entry *to, size_t count) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t at = 0; at < count; at += 2 * width) {
            size_t i = at, middle = at + width < count ? at + width : count, j = middle;
            size_t end = at + 2 * width < count ? at + 2 * width : count;
            for (size_t k = at; k < end; k++)
                to[k] = j == end || (i < middle && !entry_after(b, &from[i], &from[j])) ? from[i++] : from[j++];
        }
        entry *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* bits[i] of the result is bits[i ^ by] of a 256-bit set. */
static void xor_permute(uint64_t out[4], const uint64_t in[4], unsigned by) {
    static const uint64_t low[6] = { 0x5555555555555555u, 0x3333333333333333u, 0x0F0F0F0F0F0F0F0Fu,
                                     0x00FF00FF00FF00FFu, 0x0000FFFF0000FFFFu, 0x00000000FFFFFFFFu };
    for (unsigned w = 0; w < 4; w++) out[w] = in[w ^ by >> 6];
    for (unsigned k = 0; k < 6; k++)
        for (unsigned w = 0; by >> k & 1 && w < 4; w++)
            out[w] = (out[w] & low[k]) << (1u << k) | (out[w] >> (1u << k) & low[k]);
}

static bool add_block(builder *b) {
    if (!pith_arena_grow(b->scratch, (void **)&b->blocks, b->block_count, &b->block_capacity, sizeof *b->blocks))
        return false;
    block *new_block = &b->blocks[b->block_count];
    for (unsigned i = 0; i < BLOCK; i++) new_block->slots[i] = (pith_trie_slot){ 0, PITH_TRIE_NONE };
    memset(new_block->free, 0xFF, sizeof new_block->free);
    memset(new_block->base_free, 0xFF, sizeof new_block->base_free);
    new_block->free_count = BLOCK;
    if (b->open_count == OPEN_BLOCKS) memmove(b->open, b->open + 1, --b->open_count * sizeof *b->open);
    b->open[b->open_count++] = (uint32_t)b->block_count++;
    return true;
}

static pith_trie_slot *slot_at(const builder *b, uint32_t slot) { return &b->blocks[slot / BLOCK].slots[slot % BLOCK]; }

static bool is_set(const uint64_t bits[4], unsigned at) { return bits[at >> 6] >> (at & 63) & 1; }

/* A base in the block whose slots for all labels are free, BLOCK if there is none. */
static unsigned find_base(const block *in, const unsigned char *labels, unsigned count) {
    uint64_t fits[4], shifted[4];
    if (count == 1) {
        for (unsigned w = 0; w < 4; w++)
            for (uint64_t left = in->free[w]; left; left &= left - 1) {
                unsigned base = (w * 64 + (unsigned)__builtin_ctzll(left)) ^ labels[0];
                if (is_set(in->base_free, base)) return base;
            }
        return BLOCK;
    }
    /* A crowded block hardly ever has a place for several. */
    if (in->free_count < 4 * count && in->free_count < BLOCK) return BLOCK;
    memcpy(fits, in->base_free, sizeof fits);
    for (unsigned i = 0; i < count && (fits[0] | fits[1] | fits[2] | fits[3]); i++) {
        xor_permute(shifted, in->free, labels[i]);
        for (int w = 0; w < 4; w++) fits[w] &= shifted[w];
    }
    for (unsigned w = 0; w < 4; w++)
        if (fits[w]) return w * 64 + (unsigned)__builtin_ctzll(fits[w]);
    return BLOCK;
}

/* Finds and takes a base and its slots. UINT32_MAX: no memory or too many slots. */
static uint32_t take_base(builder *b, const unsigned char *labels, unsigned count) {
    unsigned base = BLOCK;
    size_t o = 0;
    while (o < b->open_count && (base = find_base(&b->blocks[b->open[o]], labels, count)) == BLOCK) o++;
    if (base == BLOCK) {
        if (b->block_count == MAX_SLOTS / BLOCK || !add_block(b)) return UINT32_MAX;
        o = b->open_count - 1;
        base = 0;
    }
    uint32_t found = b->open[o] * BLOCK + base;
    block *in = &b->blocks[b->open[o]];
    in->base_free[base >> 6] &= ~(1ull << (base & 63));
    for (unsigned i = 0; i < count; i++) {
        unsigned at = base ^ labels[i];
        in->free[at >> 6] &= ~(1ull << (at & 63));
    }
    in->free_count -= count;
    if (!in->free_count) memmove(b->open + o, b->open + o + 1, (--b->open_count - o) * sizeof *b->open);
    return found;
}

/* Gives free slots the label they would have under a base that no node has, so that no walk enters them. There is such
 * a base because every taken one has a slot of its own. */
static void close_block(block *in) {
    unsigned base = 0;
    while (base < BLOCK && !is_set(in->base_free, base)) base++;
    for (unsigned i = 0; i < BLOCK; i++)
        if (is_set(in->free, i)) in->slots[i].base_label = (i ^ base) & 0xFF;
}

static pith_status place_nodes(builder *b, const entry *entries, size_t count, pith_error *err) {
    size_t capacity = 0, depth = 0;
    range *stack = NULL;
    if (!pith_arena_grow(b->scratch, (void **)&stack, depth, &capacity, sizeof *stack))
        return pith_fail_memory(err, sizeof *stack);
    stack[depth++] = (range){ 0, (uint32_t)count, 0, PITH_TRIE_ROOT };
    while (depth) {
        range r = stack[--depth];
        /* Shorter keys come first, equal ones in the order of their indices. */
        for (; r.begin < r.end && entries[r.begin].size == r.depth; r.begin++)
            slot_at(b, r.slot)->value = entries[r.begin].index;
        if (r.begin == r.end) continue;
        unsigned char labels[256];
        uint32_t first[257];
        unsigned label_count = 0;
        for (uint32_t i = r.begin; i < r.end; i++) {
            unsigned char c = r.depth < 8 ? (unsigned char)(entries[i].prefix >> (56 - 8 * r.depth))
                                          : (unsigned char)b->keys[entries[i].index].data[r.depth];
            if (label_count && labels[label_count - 1] == c) continue;
            labels[label_count] = c;
            first[label_count++] = i;
        }
        first[label_count] = r.end;
        uint32_t base = take_base(b, labels, label_count);
        if (base == UINT32_MAX && b->block_count == MAX_SLOTS / BLOCK)
            return pith_fail(err, PITH_ERR_UNSUPPORTED, "the vocabulary needs a trie of more than 2^24 nodes");
        if (base == UINT32_MAX) return pith_fail_memory(err, b->block_count * sizeof *b->blocks);
        slot_at(b, r.slot)->base_label |= base << 8;
        for (unsigned i = label_count; i--;) {
            uint32_t slot = base ^ labels[i];
            slot_at(b, slot)->base_label = labels[i];
            if (!pith_arena_grow(b->scratch, (void **)&stack, depth, &capacity, sizeof *stack))
                return pith_fail_memory(err, depth * sizeof *stack);
            stack[depth++] = (range){ first[i], first[i + 1], r.depth + 1, slot };
        }
    }
    return PITH_OK;
}

pith_status pith_trie_build(pith_trie *trie, const pith_str *keys, size_t count, pith_arena *arena, pith_arena *scratch,
                            pith_error *err) {
    builder b = { .scratch = scratch, .keys = keys };
    entry *entries = pith_arena_array(scratch, count, 2 * sizeof *entries);
    if (!entries || count > INT32_MAX) return pith_fail_memory(err, count * 2 * sizeof *entries);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t prefix = 0;
        for (size_t k = 0; k < 8; k++) prefix = prefix << 8 | (k < keys[i].size ? (unsigned char)keys[i].data[k] : 0);
        if (keys[i].size) entries[used++] = (entry){ prefix, (uint32_t)i, (uint32_t)keys[i].size };
    }
    const entry *sorted = sort_entries(&b, entries, entries + count, used);
    if (!add_block(&b) || !add_block(&b)) return pith_fail_memory(err, 2 * sizeof *b.blocks);
    /* Leaves have base 0, which no other node may get; nor base 1, which close_block needs. */
    memset(b.blocks[0].base_free, 0, sizeof b.blocks[0].base_free);
    b.blocks[0].base_free[0] = 2;
    b.open[0] = b.open[1];
    b.open_count = 1;
    b.blocks[1].free[0] &= ~1ull; /* the root */
    b.blocks[1].free_count--;
    PITH_TRY(place_nodes(&b, sorted, used, err));
    size_t bytes = b.block_count * sizeof b.blocks->slots;
    pith_trie_slot *slots = pith_arena_alloc64(arena, bytes);
    if (!slots) return pith_fail_memory(err, bytes);
    for (size_t i = 0; i < b.block_count; i++) {
        close_block(&b.blocks[i]);
        memcpy(slots + i * BLOCK, b.blocks[i].slots, sizeof b.blocks->slots);
    }
    *trie = (pith_trie){ slots, (uint32_t)(b.block_count * BLOCK) };
    return PITH_OK;
}

void pith_trie_save(const pith_trie *trie, pith_image_writer *writer) {
    pith_image_put(writer, "trie", trie->slots, trie->count, sizeof *trie->slots);
}

pith_status pith_trie_open(pith_trie *trie, uint32_t value_count, pith_loader *loader) {
    size_t count;
    uint32_t bad = 0;
    if (!(trie->slots = pith_image_table(loader, "trie", sizeof *trie->slots, &count))) return loader->err->code;
    if (count < 2 * BLOCK || count % BLOCK || count > MAX_SLOTS) return pith_image_damaged(loader, "trie");
    trie->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        bad |= trie->slots[i].base_label >> 8 >= count;
        bad |= trie->slots[i].value + 1 > value_count; /* PITH_TRIE_NONE is -1 */
    }
    return bad ? pith_image_damaged(loader, "trie") : PITH_OK;
}
