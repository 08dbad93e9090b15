/* distinct_rows.c - see distinct_rows.h. Rows are found by a hash of their first bytes, in a table
 * with open addressing. */
#include "engine/ops/shared/distinct_rows.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/checksum.h"

/* Numbers of rows for which duplicates are searched. Fewer are a text or two and repeat little.
 * More are mostly one long text, in which the positions make all rows different. */
enum { ROWS_MIN = 16, ROWS_MAX = 4096 };
/* HASHED: bytes of a row that are hashed; the rest is compared. PROBES: slots a row looks at before
 * it counts as new. Larger numbers find more duplicates and cost more for rows that have none. */
enum { HASHED = 64, PROBES = 4 };
/* At least one row in WORTH must be a duplicate; otherwise moving the rows costs more than it
 * saves. */
enum { WORTH = 16 };

/* Where everything lies after the result: bytes from the beginning of memory. */
typedef struct layout {
    size_t place, first, slots, rows, end;
    uint32_t slot_count; /* a power of two */
} layout;

static layout distinct_rows_layout_of(int64_t m, int64_t k) {
    const size_t numbers = pith__round64((size_t)m * sizeof(int32_t));
    layout l = { .place = pith__round64(sizeof(pith__distinct_rows)), .slot_count = ROWS_MIN };
    while (l.slot_count < 2 * m) l.slot_count *= 2;
    l.first = l.place + numbers;
    l.slots = l.first + numbers;
    l.rows = l.slots + pith__round64(l.slot_count * sizeof(int32_t));
    l.end = l.rows + pith__round64((size_t)(m * k) * sizeof(float));
    return l;
}

size_t pith__distinct_rows_bytes(int64_t m, int64_t k) {
    return m < ROWS_MIN || m > ROWS_MAX || k > INT32_MAX ? 0 : distinct_rows_layout_of(m, k).end;
}

/* A row is looked for in at most PROBES slots, which bounds the work on rows with equal hashes: one
 * that is not found counts as new, which costs time but no bits. With too few duplicates the rows
 * stay where they are. */
const pith__distinct_rows *pith__distinct_rows_find(void *memory, const float *x, int64_t m,
                                                    int64_t k) {
    const layout l = distinct_rows_layout_of(m, k);
    const size_t bytes = (size_t)k * sizeof(float), hashed = bytes < HASHED ? bytes : HASHED;
    pith__distinct_rows *d = memory;
    char *const base = memory;
    int32_t *place = (void *)(base + l.place), *first = (void *)(base + l.first);
    int32_t *slots = (void *)(base + l.slots);
    float *rows = (void *)(base + l.rows);
    int32_t count = 0;
    memset(slots, -1, l.slot_count * sizeof *slots);
    for (int32_t i = 0; i < m; i++) {
        const float *row = x + i * k;
        uint32_t at = (uint32_t)pith__hash_of(row, hashed) % l.slot_count;
        int32_t same = -1;
        for (int probe = 0; probe < PROBES && slots[at] >= 0 && same < 0;
             probe++, at = (at + 1) % l.slot_count)
            if (!memcmp(x + first[slots[at]] * k, row, bytes)) same = slots[at];
        place[i] = same < 0 ? count : same;
        if (same >= 0) continue;
        if (slots[at] < 0) slots[at] = count;
        first[count++] = i;
    }
    const bool worth = m - count >= m / WORTH;
    if (worth) {
        for (int32_t j = 0; j < count; j++) memcpy(rows + j * k, x + first[j] * k, bytes);
    }
    *d = worth ? (pith__distinct_rows){ count, rows, place } : (pith__distinct_rows){ m, x, NULL };
    return d;
}

void pith__distinct_rows_spread(const pith__distinct_rows *d, float *y, int64_t m, int64_t n) {
    /* From the last on: none takes the place of one that is still read, for places are not after
     * their rows. */
    if (d->place) {
        for (int64_t i = m - 1; d->place[i] < i; i--)
            memcpy(y + i * n, y + d->place[i] * n, (size_t)n * sizeof *y);
    }
}
