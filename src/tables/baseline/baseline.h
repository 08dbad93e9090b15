/* baseline.h - predictors that a model has to beat: the constant, the mean of earlier labels of the
 * same parent, and boosted trees over features of the row, with those of its parents, with
 * aggregates of the children of both.
 *
 * They share the database's file and the measures with the model, and nothing else: no feature, no
 * sampler, no training. They see what the model may see: rows and cells that are known before the
 * question is asked. */
#ifndef PITH_TABLES_BASELINE_BASELINE_H
#define PITH_TABLES_BASELINE_BASELINE_H

#include "pith/tables.h"
#include "tables/baseline/features.h"
#include "tables/baseline/boosted_trees.h"

typedef enum pith__baseline_kind {
    PITH_BASELINE_CONSTANT,
    PITH_BASELINE_ENTITY,
    PITH_BASELINE_ROW,
    PITH_BASELINE_PARENTS,
    PITH_BASELINE_AGGREGATES,
    PITH_BASELINE_COUNT
} pith__baseline_kind;
extern const char *const pith__baseline_names[PITH_BASELINE_COUNT];

typedef struct pith__baseline {
    pith__baseline_kind kind;
    const pith__rdb *rdb;
    const pith__rdb_task *task;
    const pith_allocator *allocator; /* must outlive the baseline */
    pith__arena arena;
    int threads;
    const pith__work *work; /* of the call that runs; nothing of it is used afterwards */
    pith__target *target;
    pith__forest_loss loss;
    double middle, spread;             /* of numbers: trees see the distance from the middle in
                                          spreads */
    double start[PITH_TARGET_CLASSES]; /* the answer without anything else: logits, or 0 */
    const uint32_t *train, *validation;
    size_t train_count, validation_count;
    pith__feature_list features; /* of the entity: the groups that are read, one for each output */
    size_t entity;               /* of the entity: the first of these among all groups of
                                    aggregates */
    double weight;               /* of the entity: earlier labels that the constant counts as much
                                    as */
    pith__feature_bins *bins;    /* [features.count] */
    bool *category;              /* [features.count] */
    pith__forest forest;
} pith__baseline;

/* Learns from the rows of training, and chooses sizes by those of validation. The database must
 * stay open. The number of threads changes no bit. *baseline is the caller's, who frees it whatever
 * comes. */
pith_status pith__baseline_fit(pith__baseline *baseline, const pith__rdb *rdb,
                               const pith__rdb_task *task, pith__baseline_kind kind,
                               const pith__work *work, const pith_allocator *allocator,
                               pith_error *err);
void pith__baseline_free(pith__baseline *baseline);
/* answers[count][outputs] of the target: logits, or numbers in the target's units, or shares.
 * Features are computed anew from the database, with as many threads as when the baseline was
 * made. */
pith_status pith__baseline_answer(double *answers, pith__baseline *baseline, const uint32_t *rows,
                                  size_t count, const pith__work *work, pith_error *err);
/* What a baseline has learned, as bytes. */
pith_status pith__baseline_save(const pith__baseline *baseline, const pith_writer *writer,
                                pith__stop *stop, pith_error *err);
/* Opens them for a task of the same database, or of one that follows it
 * (tables/database/rdb_keep.h). *baseline is the caller's, who frees it whatever comes. */
pith_status pith__baseline_load(pith__baseline *baseline, const pith__rdb *rdb,
                                const pith__rdb_task *task, const void *bytes, size_t size,
                                const pith__work *work, const pith_allocator *allocator,
                                pith_error *err);
/* For the two that make a baseline: an empty one with its target, and for trees its features and
 * places for bins. */
pith_status pith__baseline_begin(pith__baseline *baseline, const pith__rdb *rdb,
                                 const pith__rdb_task *task, pith__baseline_kind kind,
                                 const pith__work *work, const pith_allocator *allocator,
                                 pith_error *err);
pith_status pith__baseline_trees_begin(pith__baseline *baseline, pith_error *err);
/* Reads the labels of the group with this number, and of those behind it one for each other output.
 */
pith_status pith__baseline_entity_take(pith__baseline *baseline, const pith__feature_list *list,
                                       size_t group, double weight, pith_error *err);
/* Learns, answers the rows of a part and measures the answers. */
pith_status pith__baseline_measure(pith_relational_metrics *metrics, const pith__rdb *rdb,
                                   const pith__rdb_task *task, int32_t kind, int32_t split,
                                   const pith__work *work, const pith_allocator *allocator,
                                   pith_error *err);

#endif
