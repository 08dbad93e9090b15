/* trie.c - builds the double array.
 *
 * Keys are sorted, so a node is a range of keys that share their first bytes, and a range of one
 * key is a tail. Nodes are placed depth first: the distinct next bytes of a range need a base for
 * which all slots base ^ byte are free. Within a block of 256 slots all 256 bases are tried at
 * once: the free bits, permuted by xor with each byte, are combined by and. Only the last few
 * blocks with room are searched, which bounds the work per node. The many nodes with one child fill
 * the holes. */
#include "text/trie.h"

#include "text/frozen_tokenizer.h"

/* MAX_SLOTS: slots that a base can address. BLOCK: slots whose bases are tried at once, one per
 * byte value. OPEN_BLOCKS: blocks with room that are searched; more make the table a little denser
 * and building slower. */
enum { MAX_SLOTS = 1 << 24, BLOCK = 256, OPEN_BLOCKS = 3 };

typedef struct entry {
    uint64_t prefix; /* first eight bytes, big-endian, padded with zeros */
    uint32_t index, size;
} entry;

typedef struct range {
    uint32_t begin, end; /* of entries */
    uint32_t depth, slot;
} range;

typedef struct block {
    pith__trie_slot slots[BLOCK];
    uint64_t free[4], base_free[4]; /* bits: slots and bases not taken */
    unsigned free_count;
} block;

typedef struct builder {
    pith__arena *scratch;
    const pith__trie *trie; /* its keys */
    block *blocks;
    size_t block_count, block_capacity;
    uint32_t open[OPEN_BLOCKS]; /* blocks worth looking at; the oldest is given up for a new one */
    size_t open_count;
} builder;

static bool entry_after(const builder *b, const entry *x, const entry *y) {
    pith_str s = pith__trie_key(b->trie, x->index), t = pith__trie_key(b->trie, y->index);
    size_t shorter = s.size < t.size ? s.size : t.size;
    int order = memcmp(s.data, t.data, shorter);
    if (order) return order > 0;
    return s.size != t.size ? s.size > t.size : x->index > y->index;
}

/* Sorts entries whose first eight bytes are equal: a merge sort, result in from. Others have been
 * put in order by these bytes alone. */
static void sort_ties(const builder *b, entry *from, entry *to, size_t count) {
    entry *begin = from;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t at = 0; at < count; at += 2 * width) {
            size_t i = at, middle = at + width < count ? at + width : count, j = middle;
            size_t end = at + 2 * width < count ? at + 2 * width : count;
            for (size_t k = at; k < end; k++)
                to[k] = j == end || (i < middle && !entry_after(b, &from[i], &from[j])) ? from[i++]
                                                                                        : from[j++];
        }
        entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != begin) memcpy(begin, from, count * sizeof *begin);
}

/* By prefix, a byte at a time from the last one, then by what follows it. Returns whichever array
 * holds the result. */
static entry *sort_entries(const builder *b, entry *from, entry *to, size_t count) {
    uint32_t counts[8][256] = { { 0 } };
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < 8; k++) counts[k][from[i].prefix >> 8 * k & 0xFF]++;
    for (unsigned k = 0; k < 8; k++) {
        uint32_t *at = counts[k], sum = 0;
        for (unsigned c = 0; c < 256; c++) {
            uint32_t n = at[c];
            at[c] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++) to[at[from[i].prefix >> 8 * k & 0xFF]++] = from[i];
        entry *swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && from[end].prefix == from[i].prefix;) end++;
        if (end > i + 1) sort_ties(b, from + i, to + i, end - i);
    }
    return from;
}

/* Keeps the last of equal keys; returns how many are left. */
static size_t drop_repeated(const builder *b, entry *entries, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || entries[i].prefix != entries[i + 1].prefix ||
            entries[i].size != entries[i + 1].size ||
            !pith__str_eq(pith__trie_key(b->trie, entries[i].index),
                          pith__trie_key(b->trie, entries[i + 1].index)))
            entries[kept++] = entries[i];
    return kept;
}

/* bits[i] of the result is bits[i ^ by] of a 256-bit set. */
static void xor_permute(uint64_t out[4], const uint64_t in[4], unsigned by) {
    static const uint64_t low[6] = {
        0x5555555555555555u, 0x3333333333333333u, 0x0F0F0F0F0F0F0F0Fu,
        0x00FF00FF00FF00FFu, 0x0000FFFF0000FFFFu, 0x00000000FFFFFFFFu
    };
    for (unsigned w = 0; w < 4; w++) out[w] = in[w ^ by >> 6];
    for (unsigned k = 0; k < 6; k++)
        if (by >> k & 1)
            for (unsigned w = 0; w < 4; w++)
                out[w] = (out[w] & low[k]) << (1u << k) | (out[w] >> (1u << k) & low[k]);
}

static bool add_block(builder *b) {
    if (!pith__arena_grow(b->scratch, (void **)&b->blocks, b->block_count, &b->block_capacity,
                          sizeof *b->blocks))
        return false;
    block *new_block = &b->blocks[b->block_count];
    for (unsigned i = 0; i < BLOCK; i++)
        new_block->slots[i] = (pith__trie_slot){ 0, PITH_TRIE_NONE };
    memset(new_block->free, 0xFF, sizeof new_block->free);
    memset(new_block->base_free, 0xFF, sizeof new_block->base_free);
    new_block->free_count = BLOCK;
    if (b->open_count == OPEN_BLOCKS)
        memmove(b->open, b->open + 1, --b->open_count * sizeof *b->open);
    b->open[b->open_count++] = (uint32_t)b->block_count++;
    return true;
}

static pith__trie_slot *slot_at(const builder *b, uint32_t slot) {
    return &b->blocks[slot / BLOCK].slots[slot % BLOCK];
}

static bool trie_is_set(const uint64_t bits[4], unsigned at) {
    return bits[at >> 6] >> (at & 63) & 1;
}

/* A base in the block whose slots for all labels are free, BLOCK if there is none. Slot base ^
 * label is free for all labels at once where the free bits, permuted by xor with each label, are
 * all set: an AND of four words per label tries 256 bases. For one label any free slot gives the
 * base. */
static unsigned find_base(const block *in, const unsigned char *labels, unsigned count) {
    uint64_t fits[4], shifted[4];
    if (count == 1) {
        for (unsigned w = 0; w < 4; w++)
            for (uint64_t left = in->free[w]; left; left &= left - 1) {
                unsigned base = (w * 64 + (unsigned)__builtin_ctzll(left)) ^ labels[0];
                if (trie_is_set(in->base_free, base)) return base;
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
    while (o < b->open_count && (base = find_base(&b->blocks[b->open[o]], labels, count)) == BLOCK)
        o++;
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
    if (!in->free_count)
        memmove(b->open + o, b->open + o + 1, (--b->open_count - o) * sizeof *b->open);
    return found;
}

/* Gives free slots the label they would have under a base that no node has, so that no walk enters
 * them. There is such a base because every taken one has a slot of its own. */
static void close_block(block *in) {
    unsigned base = 0;
    while (base < BLOCK && !trie_is_set(in->base_free, base)) base++;
    for (unsigned i = 0; i < BLOCK; i++)
        if (trie_is_set(in->free, i)) in->slots[i].base_label = (i ^ base) & 0xFF;
}

static unsigned char byte_at(const builder *b, const entry *e, uint32_t depth) {
    return (unsigned char)(depth < 8
                               ? e->prefix >> (56 - 8 * depth)
                               : (unsigned char)b->trie->text[b->trie->starts[e->index] + depth]);
}

/* The first entry whose byte is not that of entry i: most groups are short or all there is. */
static uint32_t group_end(const builder *b, const entry *entries, uint32_t i, uint32_t end,
                          uint32_t depth) {
    unsigned char c = byte_at(b, &entries[i], depth);
    if (byte_at(b, &entries[end - 1], depth) == c) return end;
    uint32_t low = i, step = 1; /* entry low has the byte */
    while (step < end - low && byte_at(b, &entries[low + step], depth) == c) {
        low += step;
        step *= 2;
    }
    for (; step; step /= 2)
        if (step < end - low && byte_at(b, &entries[low + step], depth) == c) low += step;
    return low + 1;
}

/* Places all nodes, depth first with a stack of ranges in place of recursion, since a hostile
 * vocabulary can be as deep as its longest string. Children are pushed in reverse, so that they are
 * placed in the order of their labels. */
static pith_status place_nodes(builder *b, const entry *entries, size_t count, pith__stop *stop,
                               pith_error *err) {
    size_t capacity = 0, depth = 0, placed = 0;
    range *stack = NULL;
    if (!pith__arena_grow(b->scratch, (void **)&stack, depth, &capacity, sizeof *stack))
        return pith__fail_memory(err, sizeof *stack);
    stack[depth++] = (range){ 0, (uint32_t)count, 0, PITH_TRIE_ROOT };
    while (depth) {
        range r = stack[--depth];
        if (placed++ % 4096 == 0) PITH_TRY(pith__stop_check(stop, err));
        /* The key that ends here comes first. */
        if (r.begin < r.end && entries[r.begin].size == r.depth)
            slot_at(b, r.slot)->value = entries[r.begin++].index;
        else if (r.end - r.begin == 1 && r.depth) {
            slot_at(b, r.slot)->value = entries[r.begin].index | PITH_TRIE_TAIL;
            continue;
        }
        if (r.begin == r.end) continue;
        unsigned char labels[256];
        uint32_t first[257];
        unsigned label_count = 0;
        for (uint32_t i = r.begin; i < r.end; i = group_end(b, entries, i, r.end, r.depth)) {
            labels[label_count] = byte_at(b, &entries[i], r.depth);
            first[label_count++] = i;
        }
        first[label_count] = r.end;
        uint32_t base = take_base(b, labels, label_count);
        if (base == UINT32_MAX && b->block_count == MAX_SLOTS / BLOCK)
            return pith__fail(err, PITH_ERR_UNSUPPORTED,
                              "the vocabulary needs a trie of more than 2^24 nodes");
        if (base == UINT32_MAX) return pith__fail_memory(err, b->block_count * sizeof *b->blocks);
        slot_at(b, r.slot)->base_label |= base << 8;
        for (unsigned i = label_count; i--;) {
            uint32_t slot = base ^ labels[i];
            slot_at(b, slot)->base_label = labels[i];
            if (!pith__arena_grow(b->scratch, (void **)&stack, depth, &capacity, sizeof *stack))
                return pith__fail_memory(err, depth * sizeof *stack);
            stack[depth++] = (range){ first[i], first[i + 1], r.depth + 1, slot };
        }
    }
    return PITH_OK;
}

/* Copies the keys, so that they lie one after the other. */
static pith_status copy_keys(pith__trie *trie, const pith_str *keys, size_t count,
                             pith__arena *arena, pith_error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += keys[i].size;
    if (bytes > INT32_MAX || count > INT32_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "a vocabulary of %zu pieces and %zu bytes",
                          count, bytes);
    uint32_t *starts = pith__arena_alloc64(arena, (count + 1) * sizeof *starts), at = 0;
    char *text = pith__arena_alloc64(arena, bytes);
    if (!starts || !text) return pith__fail_memory(err, bytes + (count + 1) * sizeof *starts);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].size) memcpy(text + at, keys[i].data, keys[i].size);
        starts[i] = at;
        at += (uint32_t)keys[i].size;
    }
    starts[count] = at;
    trie->key_count = (uint32_t)count;
    trie->starts = starts;
    trie->text = text;
    return PITH_OK;
}

/* Strings go in with their first eight bytes as a number, by which they are
 * sorted. Empty strings are left out, and of equal ones the last is kept. */
pith_status pith__trie_build(pith__trie *trie, const pith_str *keys, size_t count,
                             pith__arena *arena, pith__arena *scratch, pith__stop *stop,
                             pith_error *err) {
    builder b = { .scratch = scratch, .trie = trie };
    PITH_TRY(copy_keys(trie, keys, count, arena, err));
    entry *entries = pith__arena_alloc(scratch, count * 2 * sizeof *entries);
    if (!entries) return pith__fail_memory(err, count * 2 * sizeof *entries);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t prefix = 0;
        for (size_t k = 0; k < 8; k++)
            prefix = prefix << 8 | (k < keys[i].size ? (unsigned char)keys[i].data[k] : 0);
        if (keys[i].size) entries[used++] = (entry){ prefix, (uint32_t)i, (uint32_t)keys[i].size };
    }
    entry *sorted = sort_entries(&b, entries, entries + count, used);
    used = drop_repeated(&b, sorted, used);
    if (!add_block(&b) || !add_block(&b)) return pith__fail_memory(err, 2 * sizeof *b.blocks);
    /* Leaves have base 0, which no other node may get; nor base 1, which close_block needs. */
    memset(b.blocks[0].base_free, 0, sizeof b.blocks[0].base_free);
    b.blocks[0].base_free[0] = 2;
    b.open[0] = b.open[1];
    b.open_count = 1;
    /* The root has a slot, and label 0, though it is no node's child: no node may have the base
     * that leads there. */
    b.blocks[1].free[0] &= ~1ull;
    b.blocks[1].base_free[0] &= ~1ull;
    b.blocks[1].free_count--;
    PITH_TRY(place_nodes(&b, sorted, used, stop, err));
    size_t bytes = b.block_count * sizeof b.blocks->slots;
    pith__trie_slot *slots = pith__arena_alloc64(arena, bytes);
    if (!slots) return pith__fail_memory(err, bytes);
    for (size_t i = 0; i < b.block_count; i++) {
        close_block(&b.blocks[i]);
        memcpy(slots + i * BLOCK, b.blocks[i].slots, sizeof b.blocks->slots);
    }
    trie->slots = slots;
    trie->slot_count = (uint32_t)(b.block_count * BLOCK);
    return PITH_OK;
}

void pith__trie_save(const pith__trie *trie, pith__frozen_writer *writer) {
    pith__frozen_put(writer, "trie.slots", trie->slots, trie->slot_count, sizeof *trie->slots);
    pith__frozen_put(writer, "trie.starts", trie->starts, (size_t)trie->key_count + 1,
                     sizeof *trie->starts);
    pith__frozen_put(writer, "trie.text", trie->text, trie->starts[trie->key_count], 1);
}

/* Takes the tables of a frozen tokenizer. Every index is checked here once, so that a walk needs no
 * bounds checks even if the file is hostile. */
pith_status pith__trie_open(pith__trie *trie, pith__loader *loader) {
    size_t slot_count, start_count, bytes;
    if (!(trie->slots =
              pith__frozen_table(loader, "trie.slots", sizeof *trie->slots, &slot_count)) ||
        !(trie->starts =
              pith__frozen_table(loader, "trie.starts", sizeof *trie->starts, &start_count)) ||
        !(trie->text = pith__frozen_table(loader, "trie.text", 1, &bytes)))
        return loader->err->code;
    if (slot_count < 2 * BLOCK || slot_count % BLOCK || slot_count > MAX_SLOTS)
        return pith__frozen_damaged(loader, "trie.slots");
    if (start_count < 1 || start_count > PITH_TOKEN_ID_MAX)
        return pith__frozen_damaged(loader, "trie.starts");
    trie->slot_count = (uint32_t)slot_count;
    trie->key_count = (uint32_t)start_count - 1;
    uint32_t bad = 0;
    for (size_t i = 0; i < slot_count; i++) {
        uint32_t value = trie->slots[i].value;
        bad |= trie->slots[i].base_label >> 8 >= slot_count;
        bad |= value != PITH_TRIE_NONE && (value & ~PITH_TRIE_TAIL) >= trie->key_count;
    }
    if (bad) return pith__frozen_damaged(loader, "trie.slots");
    for (size_t i = 0; i < trie->key_count; i++) bad |= trie->starts[i] > trie->starts[i + 1];
    return bad || trie->starts[trie->key_count] > bytes
               ? pith__frozen_damaged(loader, "trie.starts")
               : PITH_OK;
}
