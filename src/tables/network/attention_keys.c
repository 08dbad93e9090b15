/* attention_keys.c - the keys that each cell of a pack reads, one list for each kind of attention.
 * Cells of a column and rows by their links are found once, so that the work grows with the keys
 * alone. */
#include <string.h>

#include "tables/network/cell_sampler.h"

/* Rows at the other end of the edges of each row, in the order of the edges. */
typedef struct key_rows {
    uint32_t *begin, *rows; /* begin: [rows + 1] */
} key_rows;

typedef struct key_index {
    const pith__pack *pack;
    /* Of each cell: the first cell of its sequence that has its column, and the next one or 0. */
    uint32_t *first, *next;
    uint32_t *count; /* [cells] of the first one: how many there are */
    uint32_t *end;   /* [cells] where the cell's sequence ends */
    key_rows parents, children;
} key_index;

/* Chains the cells of each column within each sequence, in one pass: `last` keeps the last cell
 * seen of every column, counted from 1, and is never cleared between sequences, because a place
 * before the sequence's begin is void. */
static void key_columns(key_index *x, uint32_t *last) {
    const pith__pack *p = x->pack;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < p->cell_count; i++) {
        const uint32_t number = p->cells[i].number, before = last[number];
        /* last counts from 1, and what it says of an earlier sequence is void. */
        const bool later = before > begin;
        x->first[i] = later ? x->first[before - 1] : i;
        x->next[i] = 0;
        x->count[i] = 0;
        x->count[x->first[i]]++;
        if (later) x->next[before - 1] = i;
        last[number] = i + 1;
        if (i + 1 < p->cell_count && p->cells[i + 1].sequence == p->cells[i].sequence) continue;
        for (; begin <= i; begin++) x->end[begin] = i + 1;
    }
}

static uint32_t key_end(const pith__edge *e, bool up) { return up ? e->parent : e->child; }

/* up: the parents of each row; else the children. */
static bool key_edges(key_rows *list, const pith__pack *p, pith__arena *arena, bool up) {
    list->begin = pith__arena_array(arena, (size_t)p->row_count + 2, sizeof *list->begin);
    list->rows = pith__arena_alloc(arena, ((size_t)p->edge_count + 1) * sizeof *list->rows);
    if (!list->begin || !list->rows) return false;
    for (uint32_t e = 0; e < p->edge_count; e++) list->begin[key_end(&p->edges[e], !up) + 2]++;
    for (uint32_t r = 2; r < p->row_count + 2; r++) list->begin[r] += list->begin[r - 1];
    for (uint32_t e = 0; e < p->edge_count; e++)
        list->rows[list->begin[key_end(&p->edges[e], !up) + 1]++] = key_end(&p->edges[e], up);
    return true;
}

static bool key_index_make(key_index *x, const pith__pack *p, pith__arena *arena) {
    const size_t bytes = ((size_t)p->cell_count + 1) * sizeof *x->first;
    uint32_t *last = pith__arena_array(arena, (size_t)p->columns + 1, sizeof *last);
    x->pack = p;
    x->first = pith__arena_alloc(arena, bytes);
    x->next = pith__arena_alloc(arena, bytes);
    x->count = pith__arena_alloc(arena, bytes);
    x->end = pith__arena_alloc(arena, bytes);
    if (!last || !x->first || !x->next || !x->count || !x->end) return false;
    key_columns(x, last);
    return key_edges(&x->parents, p, arena, true) && key_edges(&x->children, p, arena, false);
}

static uint32_t *key_put_row(uint32_t *keys, const pith__row_place *row) {
    for (uint32_t i = 0; i < row->count; i++) *keys++ = row->first + i;
    return keys;
}

static uint32_t *key_put_rows(uint32_t *keys, const pith__pack *p, const key_rows *rows,
                              uint32_t of) {
    for (uint32_t i = rows->begin[of]; i < rows->begin[of + 1]; i++)
        keys = key_put_row(keys, &p->rows[rows->rows[i]]);
    return keys;
}

/* Writes the keys of a cell and returns where the next ones go. */
static uint32_t *key_put(uint32_t *keys, const key_index *x, unsigned kind, uint32_t cell,
                         uint32_t begin) {
    const pith__pack *p = x->pack;
    const uint32_t place = p->cells[cell].place;
    switch (kind) {
    case PITH_ATTEND_COLUMN: {
        uint32_t i = x->first[cell];
        do *keys++ = i;
        while ((i = x->next[i]));
        return keys;
    }
    case PITH_ATTEND_FEATURE:
        keys = key_put_row(keys, &p->rows[place]);
        return key_put_rows(keys, p, &x->parents, place);
    case PITH_ATTEND_NEIGHBOUR:
        *keys++ = cell; /* so that no list is empty */
        return key_put_rows(keys, p, &x->children, place);
    default:
        for (uint32_t i = begin; i < x->end[cell]; i++) *keys++ = i;
        return keys;
    }
}

static size_t key_rows_cells(const pith__pack *p, const key_rows *rows, uint32_t of) {
    size_t count = 0;
    for (uint32_t i = rows->begin[of]; i < rows->begin[of + 1]; i++)
        count += p->rows[rows->rows[i]].count;
    return count;
}

/* The number of keys of all cells, from the counts of columns, rows and sequences alone, so that
 * the list is allocated once and filled without checks. */
static size_t key_total(const key_index *x, unsigned kind) {
    const pith__pack *p = x->pack;
    size_t total = 0;
    switch (kind) {
    case PITH_ATTEND_COLUMN:
        for (uint32_t i = 0; i < p->cell_count; i++) total += x->count[x->first[i]];
        break;
    case PITH_ATTEND_FEATURE:
        for (uint32_t r = 0; r < p->row_count; r++)
            total += p->rows[r].count * (p->rows[r].count + key_rows_cells(p, &x->parents, r));
        break;
    case PITH_ATTEND_NEIGHBOUR:
        total = p->cell_count;
        for (uint32_t r = 0; r < p->row_count; r++)
            total += p->rows[r].count * key_rows_cells(p, &x->children, r);
        break;
    case PITH_ATTEND_FULL:
        for (uint32_t i = 0; i < p->cell_count; i = x->end[i])
            total += (size_t)(x->end[i] - i) * (x->end[i] - i);
        break;
    default: break;
    }
    return total;
}

/* The keys of all cells one after the other, and where those of each begin (compressed rows).
 * `begin` is where the cell's sequence begins: a cell reads no other sequence's cells. */
static bool key_list_make(pith__key_list *list, const key_index *x, unsigned kind,
                          pith__arena *arena) {
    const pith__pack *p = x->pack;
    const size_t total = key_total(x, kind);
    list->begin = pith__arena_alloc(arena, ((size_t)p->cell_count + 1) * sizeof *list->begin);
    list->keys =
        total < UINT32_MAX ? pith__arena_alloc(arena, (total + 1) * sizeof *list->keys) : NULL;
    if (!list->begin || !list->keys) return false;
    uint32_t *keys = list->keys, begin = 0;
    for (uint32_t cell = 0; cell < p->cell_count; cell++) {
        if (cell && x->end[cell - 1] == cell) begin = cell;
        list->begin[cell] = (uint32_t)(keys - list->keys);
        keys = key_put(keys, x, kind, cell, begin);
    }
    list->begin[p->cell_count] = (uint32_t)(keys - list->keys);
    return true;
}

bool pith__pack_list(pith__pack *pack, pith__arena *arena, unsigned kinds) {
    key_index x;
    if (!key_index_make(&x, pack, arena)) return false;
    for (unsigned k = 0; k < PITH_ATTEND_KINDS; k++)
        if (kinds & 1u << k && !key_list_make(&pack->lists[k], &x, 1u << k, arena)) return false;
    return true;
}
