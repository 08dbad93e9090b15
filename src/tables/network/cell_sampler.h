/* cell_sampler.h - the cells that a model reads to answer a question about a row.
 *
 * A sequence is the seed row, its parents and theirs, and children of all these with their parents:
 * rows that are linked to the seed. A row enters only if its time is before the question is asked,
 * in both directions, and a cell only if it is known by then; the target of the seed is masked.
 * Where a parent has more children than `width`, the `latest` of them and a subset of the others
 * are taken, which is drawn by (seed of the run, epoch, row), so that a sequence depends on nothing
 * else. Children enter in turns, the latest of each parent and foreign key first, until the
 * sequence is full. */
#ifndef PITH_TABLES_NETWORK_CELL_SAMPLER_H
#define PITH_TABLES_NETWORK_CELL_SAMPLER_H

#include "tables/database/rdb.h"

enum {
    PITH_ATTEND_COLUMN = 1,
    PITH_ATTEND_FEATURE = 2,
    PITH_ATTEND_NEIGHBOUR = 4,
    PITH_ATTEND_FULL = 8,
    PITH_ATTEND_KINDS = 4
};

/* "column", "feature", "neighbour", "full". */
extern const char *const pith__attend_names[PITH_ATTEND_KINDS];

typedef struct pith__sample_options {
    uint32_t width, cells; /* children of a parent, cells of a sequence: the most */
    uint32_t latest;       /* of width: the children with the latest times */
    bool lone_children;    /* children come without those of their parents that are not there yet */
    uint64_t seed, epoch;
    bool ages_alone;                 /* of a time its age is seen and not the year */
    bool hide_children, no_text;     /* for ablations */
    uint32_t hidden_from, hidden_to; /* columns of the database, by number, that are left out; the
                                        asked cell stays */
} pith__sample_options;

enum pith__cell_state { PITH_CELL_VALUE, PITH_CELL_NULL, PITH_CELL_MASKED };

typedef struct pith__cell {
    uint32_t table, column, row, place; /* place: number of the row in the pack */
    uint32_t number;                    /* of the column in the database */
    uint8_t state, sequence;
} pith__cell;

typedef struct pith__row_place {
    uint32_t table, row, first, count; /* its cells */
} pith__row_place;

typedef struct pith__edge {
    uint32_t child, parent; /* numbers of rows in the pack */
} pith__edge;

/* Lists of keys for each cell of the pack, one for each kind of attention. */
typedef struct pith__key_list {
    uint32_t *begin, *keys; /* begin: [cells + 1] */
} pith__key_list;

/* Sequences one after the other, without padding. */
typedef struct pith__pack {
    pith__cell *cells;
    pith__row_place *rows;
    pith__edge *edges;
    uint32_t cell_count, row_count, edge_count, cell_room, edge_room;
    uint32_t first_row, first_cell; /* of the sequence that grows */
    uint32_t *seeds;                /* cell of each sequence that is asked */
    int64_t *asked;                 /* when each is asked; INT64_MAX: after everything */
    uint32_t *drawn;                /* children that wait for their turn */
    uint32_t sequences, columns;    /* columns: of the database */
    pith__key_list lists[PITH_ATTEND_KINDS];
} pith__pack;

/* An empty pack for so many sequences, in the arena. False if memory is out. */
bool pith__pack_begin(pith__pack *pack, pith__arena *arena, uint32_t sequences,
                      const pith__sample_options *options);
/* Adds the sequence of a row of the task's table. */
void pith__pack_add(pith__pack *pack, const pith__rdb *rdb, const pith__rdb_task *task,
                    uint32_t row, const pith__sample_options *options);
/* Lists the keys of all cells: kinds is a set of PITH_ATTEND_*. False if memory is out. */
bool pith__pack_list(pith__pack *pack, pith__arena *arena, unsigned kinds);

/* A number drawn from a state that goes on. Source: SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
 */
uint64_t pith__random_next(uint64_t *state);
/* A state that the numbers decide. */
uint64_t pith__random_state(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

#endif
