/* answer_quality.h - how well answers fit what is true, whoever gives them. */
#ifndef PITH_TABLES_NETWORK_ANSWER_QUALITY_H
#define PITH_TABLES_NETWORK_ANSWER_QUALITY_H

#include "tables/database/task_target.h"

/* Fills all of metrics: NaN where a member does not go with the kind of target, or there are no
 * rows. answers are [count][outputs]: logits, numbers in the target's units, shares. Scratch is
 * taken from the arena and given back. stop may be NULL. */
pith_status pith__answer_quality(pith_relational_metrics *metrics, const pith__target *target,
                                 const double *answers, const uint32_t *rows, size_t count,
                                 pith__stop *stop, pith__arena *arena, pith_error *err);

#endif
