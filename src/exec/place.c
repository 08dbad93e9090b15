/* place.c - a walk through the steps that gives and takes memory as an allocator would: the smallest free block that
 * fits, else the end of the buffer. Free blocks are sorted by offset and never touch each other. */
#include "exec/place.h"

#include <stdint.h>
#include <string.h>

#include "base/checked.h"

typedef struct block {
    size_t offset, bytes;
} block;

typedef struct space {
    block *blocks;
    size_t count, end;
} space;

static bool take(space *s, size_t bytes, size_t *offset) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->count; i++) {
        if (s->blocks[i].bytes >= bytes && (best == SIZE_MAX || s->blocks[i].bytes < s->blocks[best].bytes)) best = i;
    }
    if (best != SIZE_MAX) {
        block *b = &s->blocks[best];
        *offset = b->offset;
        b->offset += bytes;
        b->bytes -= bytes;
        if (!b->bytes) memmove(b, b + 1, (--s->count - best) * sizeof *b);
        return true;
    }
    /* A free block at the end grows. */
    size_t begin = s->end;
    if (s->count && s->blocks[s->count - 1].offset + s->blocks[s->count - 1].bytes == s->end) {
        begin = s->blocks[--s->count].offset;
    }
    *offset = begin;
    return !pith_add_overflows(begin, bytes, &s->end);
}

static void give(space *s, size_t offset, size_t bytes) {
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->blocks[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool before = low > 0 && s->blocks[low - 1].offset + s->blocks[low - 1].bytes == offset;
    bool after = low < s->count && offset + bytes == s->blocks[low].offset;
    if (before && after) {
        s->blocks[low - 1].bytes += bytes + s->blocks[low].bytes;
        memmove(&s->blocks[low], &s->blocks[low + 1], (--s->count - low) * sizeof(block));
    } else if (before) {
        s->blocks[low - 1].bytes += bytes;
    } else if (after) {
        s->blocks[low].offset = offset;
        s->blocks[low].bytes += bytes;
    } else {
        memmove(&s->blocks[low + 1], &s->blocks[low], (s->count++ - low) * sizeof(block));
        s->blocks[low] = (block){ offset, bytes };
    }
}

pith_status pith_slots_place(pith_slot *slots, size_t count, size_t steps, size_t *total, pith_arena *scratch) {
    space s = { .blocks = pith_arena_array(scratch, count + 1, sizeof *s.blocks) };
    /* Slots that end at a step, a chain of 1 + index. */
    size_t *first = pith_arena_array(scratch, steps + 1, sizeof *first);
    size_t *next = pith_arena_array(scratch, count, sizeof *next);
    if (!s.blocks || !first || !next) return PITH_ERR_MEMORY;
    size_t at = 0;
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = step ? first[step - 1] : 0; i; i = next[i - 1]) {
            give(&s, slots[i - 1].offset, slots[i - 1].bytes);
        }
        for (; at < count && slots[at].begin == step; at++) {
            if (pith_add_overflows(slots[at].bytes, 63, &slots[at].bytes)) return PITH_ERR_MEMORY;
            slots[at].bytes &= ~(size_t)63;
            if (slots[at].bytes == 0) slots[at].bytes = 64;
            if (!take(&s, slots[at].bytes, &slots[at].offset)) return PITH_ERR_MEMORY;
            next[at] = first[slots[at].end];
            first[slots[at].end] = at + 1;
        }
    }
    *total = s.end;
    return PITH_OK;
}
