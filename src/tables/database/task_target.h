/* task_target.h - what a task asks for, and what an answer of so many numbers means.
 *
 *     boolean   a logit of yes
 *     number    standard deviations from the mean of training
 *     rank      a number of which only the order counts: the share of the training labels that are
 *               smaller, as the uniform distribution with mean 0 and deviation 1
 *     class     a logit for each category of the column */
#ifndef PITH_TABLES_DATABASE_TASK_TARGET_H
#define PITH_TABLES_DATABASE_TASK_TARGET_H

#include "pith/tables.h"
#include "tables/database/rdb.h"

enum { PITH_TARGET_CLASSES = PITH_RDB_CLASSES_MOST };

typedef struct pith__target {
    const pith__rdb *rdb;
    const pith__rdb_task *task;
    const pith__rdb_column *column;
    pith_relational_target kind;
    int outputs;       /* 1, or the number of classes */
    uint32_t *classes; /* [outputs] strings of the column, in the order of their texts; or
                          PITH_RDB_UNKNOWN */
    double *shares;    /* [outputs] of the training labels */
    double *ranks;     /* [rank_count] the training labels, ascending */
    uint32_t rank_count;
} pith__target;

/* Reads what the training rows say. Fails for a category with less than 2 or more than 64 values.
 * stop may be NULL. */
pith_status pith__target_make(pith__target *target, const pith__rdb *rdb,
                              const pith__rdb_task *task, pith__stop *stop, pith__arena *arena,
                              pith_error *err);
/* The label of a row that has one: 0 or 1, a number, a share from 0 to 1, the number of a class; -1
 * is a class that the model does not know. */
double pith__target_truth(const pith__target *target, uint32_t row);
/* What the network is to say of a number or a rank. */
double pith__target_scaled(const pith__target *target, uint32_t row);
/* A number or share that the network's answer means; a logit stays what it is. */
double pith__target_answer(const pith__target *target, double answer);
/* Of numbers and ranks: an answer times factor plus shift is what it means; of a logarithm, the
 * logarithm of that. */
void pith__target_units(double *factor, double *shift, const pith__target *target);
/* The loss of an answer [outputs], and its derivatives d[outputs]: cross-entropy, or Huber's with 1
 * as bound. */
double pith__target_loss(float *d, const pith__target *target, uint32_t row, const float *answer);
/* Logits become probabilities, in place: answer[outputs]. */
void pith__target_probabilities(const pith__target *target, double *answer);
/* The text of a class, without the name of its column. */
pith_str pith__target_class_name(const pith__target *target, int index);

#endif
