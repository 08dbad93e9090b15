/* cell_sampler.c - see cell_sampler.h. */
#include "tables/network/cell_sampler.h"

#include <string.h>

#include "base/mix.h"
/* Parents of parents that are followed, parents of a row, and lists of children of a sequence. */
enum { SAMPLE_DEPTH = 6, SAMPLE_PARENTS = 8, SAMPLE_LISTS = 128 };
#define SAMPLE_REFUSED UINT32_MAX

const char *const pith__attend_names[PITH_ATTEND_KINDS] = { "column", "feature", "neighbour",
                                                            "full" };

uint64_t pith__random_next(uint64_t *state) { return pith__mix64(*state += 0x9E3779B97F4A7C15u); }

uint64_t pith__random_state(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t state = a;
    state = pith__random_next(&state) ^ b;
    state = pith__random_next(&state) ^ c;
    state = pith__random_next(&state) ^ d;
    return pith__random_next(&state);
}

typedef struct sample_run {
    pith__pack *pack;
    const pith__rdb *rdb;
    const pith__rdb_task *task;
    const pith__sample_options *options;
    uint32_t seed, sequence;
    int64_t asked;
} sample_run;

bool pith__pack_begin(pith__pack *p, pith__arena *arena, uint32_t sequences,
                      const pith__sample_options *o) {
    memset(p, 0, sizeof *p);
    p->cell_room = sequences * o->cells;
    p->edge_room = p->cell_room * SAMPLE_PARENTS;
    p->cells = pith__arena_alloc(arena, p->cell_room * sizeof *p->cells);
    p->rows = pith__arena_alloc(arena, p->cell_room * sizeof *p->rows);
    p->edges = pith__arena_alloc(arena, p->edge_room * sizeof *p->edges);
    p->seeds = pith__arena_alloc(arena, (size_t)sequences * sizeof *p->seeds);
    p->asked = pith__arena_alloc(arena, (size_t)sequences * sizeof *p->asked);
    p->drawn = pith__arena_alloc(arena, SAMPLE_LISTS * (size_t)o->width * sizeof *p->drawn);
    return p->cells && p->rows && p->edges && p->seeds && p->asked && p->drawn;
}

/* Whether a cell may be seen. Labels of a task that splits by hash have no time: those of training
 * are seen. */
static bool sample_sees(const sample_run *s, uint32_t table, uint32_t column, uint32_t row) {
    const pith__rdb_column *c = &s->rdb->tables[table].columns[column];
    if (table == s->task->table && column == s->task->column && s->task->split == PITH_SPLIT_HASH &&
        pith__rdb_split(s->rdb, s->task, row) != PITH_TRAIN)
        return false;
    return c->known_column == PITH_KNOWN_WITH_ROW ||
           pith__rdb_known_at(s->rdb, table, column, row) < s->asked;
}

/* Puts the cells of a row into the pack: those that are known by the time of the question and not
 * hidden, and the target as a masked cell. */
static void sample_cells(sample_run *s, pith__row_place *place, uint32_t number) {
    const pith__rdb_table *t = &s->rdb->tables[place->table];
    const bool is_seed = place->table == s->task->table && place->row == s->seed;
    pith__pack *p = s->pack;
    place->first = p->cell_count;
    for (uint32_t c = 0; c < t->column_count; c++) {
        const bool target = is_seed && c == s->task->column;
        const bool hidden = t->first_cell + c >= s->options->hidden_from &&
                            t->first_cell + c < s->options->hidden_to;
        if (!target && (hidden || !sample_sees(s, place->table, c, place->row))) continue;
        if (target) p->seeds[s->sequence] = p->cell_count;
        const bool null = pith__rdb_is_null(&t->columns[c], place->row);
        uint8_t state = null ? PITH_CELL_NULL : PITH_CELL_VALUE;
        if (target) state = PITH_CELL_MASKED;
        p->cells[p->cell_count++] =
            (pith__cell){ place->table,      c,     place->row,          number,
                          t->first_cell + c, state, (uint8_t)s->sequence };
    }
    place->count = p->cell_count - place->first;
}

/* The number of a row that is there, or SAMPLE_REFUSED. */
static uint32_t sample_find(const pith__pack *p, uint32_t table, uint32_t row) {
    for (uint32_t i = p->first_row; i < p->row_count; i++)
        if (p->rows[i].table == table && p->rows[i].row == row) return i;
    return SAMPLE_REFUSED;
}

/* Adds a row, and its parents before it returns: at SAMPLE_DEPTH only links to those that are
 * there. Returns its number, or SAMPLE_REFUSED. */
static uint32_t sample_row(sample_run *s, uint32_t table, uint32_t row, int depth) {
    pith__pack *p = s->pack;
    const bool is_seed = table == s->task->table && row == s->seed;
    const int64_t time = pith__rdb_row_time(s->rdb, table, row);
    const uint32_t there = sample_find(p, table, row);
    if (there != SAMPLE_REFUSED) return there;
    if (!is_seed && (time == PITH_TIME_NULL || time >= s->asked)) return SAMPLE_REFUSED;
    const uint32_t columns = s->rdb->tables[table].column_count,
                   used = p->cell_count - p->first_cell;
    if (used + columns > s->options->cells || p->row_count - p->first_row >= s->options->cells)
        return SAMPLE_REFUSED;
    const uint32_t number = p->row_count++;
    p->rows[number] = (pith__row_place){ table, row, 0, 0 };
    sample_cells(s, &p->rows[number], number);
    uint32_t parents = 0;
    for (uint32_t k = 0; k < s->rdb->link_count && parents < SAMPLE_PARENTS; k++) {
        const pith__rdb_link *link = &s->rdb->links[k];
        if (link->child != table || link->up[row] == PITH_RDB_NONE) continue;
        const uint32_t parent = depth < SAMPLE_DEPTH
                                    ? sample_row(s, link->parent, link->up[row], depth + 1)
                                    : sample_find(p, link->parent, link->up[row]);
        if (parent == SAMPLE_REFUSED || parent == number || p->edge_count == p->edge_room) continue;
        p->edges[p->edge_count++] = (pith__edge){ number, parent };
        parents++;
    }
    return number;
}

/* The number of children in down[from, to) whose time is before `time`. */
static uint32_t sample_before(const sample_run *s, const pith__rdb_link *link, uint32_t from,
                              uint32_t to, int64_t time) {
    uint32_t low = from, high = to;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (pith__rdb_row_time(s->rdb, link->child, link->down[middle]) < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Draws `width` of n numbers, in ascending order. Source: Floyd's algorithm, CACM 30(9), 1987. */
static void sample_draw(uint32_t *drawn, uint32_t width, uint32_t n, uint64_t state) {
    uint32_t count = 0;
    for (uint32_t j = n - width; j < n; j++) {
        uint32_t x = (uint32_t)(((pith__random_next(&state) >> 32) * (j + 1)) >> 32), at = 0;
        while (at < count && drawn[at] < x) at++;
        if (at < count && drawn[at] == x) x = j, at = count;
        memmove(drawn + at + 1, drawn + at, (count - at) * sizeof *drawn);
        drawn[at] = x;
        count++;
    }
}

/* Children of a row by one foreign key. */
typedef struct sample_list {
    uint32_t table, count, *children; /* the latest first */
} sample_list;

/* Lists the children of a row that may be seen: those with a time before the asked one. If there
 * are more than `width`, the `latest` ones and a subset drawn from the others. Children are in the
 * order of time, so each bound is found by search. What is drawn follows from seed, epoch, asked
 * row and link, not from the order of calls. */
static uint32_t sample_children(const sample_run *s, uint32_t *children, uint32_t row,
                                uint32_t index) {
    const pith__rdb_link *link = &s->rdb->links[index];
    const uint32_t end = link->begin[row + 1], width = s->options->width;
    const uint32_t from = sample_before(s, link, link->begin[row], end, PITH_TIME_ALWAYS);
    const uint32_t to = sample_before(s, link, from, end, s->asked), n = to - from;
    uint32_t latest = width;
    if (n <= width)
        latest = n;
    else if (s->options->latest < width)
        latest = s->options->latest;
    const uint32_t others = n <= width ? 0 : width - latest;
    for (uint32_t i = 0; i < latest; i++) children[i] = link->down[to - 1 - i];
    sample_draw(children + latest, others, n - latest,
                pith__random_state(s->options->seed, s->options->epoch, s->seed, index));
    for (uint32_t i = latest; i < latest + others; i++)
        children[i] = link->down[from + children[i]];
    return latest + others;
}

/* Adds the children of rows [0, own) in turns: the first child of every list, then the second of
 * every list, and so on. Where the room for cells runs out, each list has given about as many. */
static void sample_all_children(sample_run *s, uint32_t own) {
    pith__pack *p = s->pack;
    sample_list lists[SAMPLE_LISTS];
    uint32_t count = 0, most = 0;
    for (uint32_t i = p->first_row; i < own; i++) {
        for (uint32_t k = 0; k < s->rdb->link_count && count < SAMPLE_LISTS; k++) {
            if (s->rdb->links[k].parent != p->rows[i].table) continue;
            sample_list *list = &lists[count];
            list->table = s->rdb->links[k].child;
            list->children = p->drawn + (size_t)count++ * s->options->width;
            list->count = sample_children(s, list->children, p->rows[i].row, k);
            if (list->count > most) most = list->count;
        }
    }
    for (uint32_t turn = 0; turn < most; turn++)
        for (uint32_t i = 0; i < count; i++)
            if (turn < lists[i].count)
                sample_row(s, lists[i].table, lists[i].children[turn],
                           s->options->lone_children ? SAMPLE_DEPTH : 0);
}

/* Where a task has a table of its own, the latest earlier label of each row that the sequence has
 * of the table that is asked about, beyond those whose children are there. */
static void sample_labels(sample_run *s, uint32_t own) {
    pith__pack *p = s->pack;
    const uint32_t end = p->row_count;
    for (uint32_t k = 0; k < s->rdb->link_count; k++) {
        const pith__rdb_link *link = &s->rdb->links[k];
        if (link->child != s->task->table) continue;
        for (uint32_t i = own; i < end; i++) {
            if (p->rows[i].table != link->parent) continue;
            const uint32_t begin = link->begin[p->rows[i].row],
                           last = link->begin[p->rows[i].row + 1];
            const uint32_t to = sample_before(s, link, begin, last, s->asked);
            if (to > begin) sample_row(s, link->child, link->down[to - 1], 0);
        }
    }
}

void pith__pack_add(pith__pack *pack, const pith__rdb *rdb, const pith__rdb_task *task,
                    uint32_t row, const pith__sample_options *options) {
    sample_run s = {
        pack, rdb, task, options, row, pack->sequences++, pith__rdb_asked_at(rdb, task, row)
    };
    pack->columns = rdb->column_count;
    pack->first_row = pack->row_count;
    pack->first_cell = pack->cell_count;
    pack->asked[s.sequence] = s.asked;
    sample_row(&s, task->table, row, 0);
    if (options->hide_children) return;
    /* The seed and those above it are there now; their children follow. */
    const uint32_t own = pack->row_count;
    sample_all_children(&s, own);
    if (task->made) sample_labels(&s, own);
}
