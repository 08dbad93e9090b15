/* features.h - numbers about a row that trees can read: its own cells, those of its parents, and
 * aggregates of the children of both.
 *
 * A group is one source of numbers: a way up from the row that is asked, then perhaps down to
 * children, then perhaps up again to a parent of each child, and a column there. This is deep
 * feature synthesis of depth 2. Source: Kanter and Veeramachaneni, Deep Feature Synthesis, DSAA
 * 2015.
 *
 * What may be seen is decided here, apart from the sampler of the model: a row only if its time is
 * before the question is asked, a cell only if it is known by then, the label of the row itself
 * never. */
#ifndef PITH_TABLES_BASELINE_FEATURES_H
#define PITH_TABLES_BASELINE_FEATURES_H

#include "base/work.h"
#include "tables/database/task_target.h"

enum { PITH_FEATURE_UPS = 3, PITH_FEATURE_MOST = 6 /* columns of a group */ };

/* Which features a predictor reads: those of its level and of the lower ones. */
enum { PITH_FEATURE_ROW, PITH_FEATURE_PARENTS, PITH_FEATURE_AGGREGATES };

typedef struct pith__feature_group {
    uint32_t up[PITH_FEATURE_UPS];
    int ups;
    uint32_t down, over;    /* links, or PITH_RDB_NONE */
    uint32_t table, column; /* of the cells; column PITH_RDB_NONE: the rows are counted */
    bool target;            /* the cells are labels of the task */
    int label;              /* of classes: whether they are this one */
    int first, count;       /* its columns are first to first + count - 1 of the list */
    bool category[PITH_FEATURE_MOST];
} pith__feature_group;

typedef struct pith__feature_list {
    const pith__target *target;
    const pith__rdb *rdb;
    const pith__rdb_task *task;
    pith__feature_group *groups;
    size_t group_count;
    int count; /* columns of all groups */
} pith__feature_list;

/* Rows that are asked, with their times and their order by time. */
typedef struct pith__feature_seeds {
    const uint32_t *rows;
    int64_t *asked;
    uint32_t *order;
    size_t count;
    pith__stop *stop; /* of the call that asks; may be NULL */
} pith__feature_seeds;

/* Lists the groups up to a level, in the arena. Fails if memory is out or there are more than 4096
 * columns. */
pith_status pith__features_list(pith__feature_list *list, const pith__target *target, int level,
                                pith__arena *arena, pith_error *err);
/* False if memory is out or the call must end. */
bool pith__feature_seeds_make(pith__feature_seeds *seeds, const pith__rdb *rdb,
                              const pith__rdb_task *task, const uint32_t *rows, size_t count,
                              pith__stop *stop, pith__arena *arena);
/* values[group.count][seeds.count]; NaN where there is nothing to see. False if memory is out or
 * the call must end. What lies in the arena afterwards is scratch. */
bool pith__feature_values(double *values, const pith__feature_list *list,
                          const pith__feature_group *group, const pith__feature_seeds *seeds,
                          pith__arena *arena);

/* ---- shared by the two files that compute values ---- */

/* The parent's row at the end of the way up, or PITH_RDB_NONE. */
uint32_t pith__feature_climb(const pith__feature_list *list, const pith__feature_group *group,
                             uint32_t row, int64_t asked);
/* From when on a cell, or with column PITH_RDB_NONE a row, may be seen; INT64_MAX: never. */
int64_t pith__feature_seen_from(const pith__rdb *rdb, uint32_t table, uint32_t column,
                                uint32_t row);
/* Whether the label of `row` may be seen by the row that is asked, if its time allows it. Tasks
 * without times and split by hash show training labels alone, and to rows of training those of
 * other folds: where a row sees the labels of all others, what is missing tells its own. */
bool pith__feature_label(const pith__feature_list *list, uint32_t seed, uint32_t row);
enum { PITH_FEATURE_FOLDS = 5 };
uint32_t pith__feature_fold(uint32_t row);
/* A cell as a number: that of a category is the number of its text, NaN is a null. */
double pith__feature_cell(const pith__rdb_column *column, uint32_t row);
bool pith__feature_aggregate(double *values, const pith__feature_list *list,
                             const pith__feature_group *group, const pith__feature_seeds *seeds,
                             pith__arena *arena);

#endif
