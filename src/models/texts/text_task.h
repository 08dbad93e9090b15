/* text_task.h - a call with texts, ready to be run by somebody else: which encoder, which job,
 * which heads. pith_encode and the functions of pith/score.h run theirs at once; the queue runs
 * those of many callers together (models/encode/shared_texts.h). */
#ifndef PITH_MODELS_TEXTS_TEXT_TASK_H
#define PITH_MODELS_TEXTS_TEXT_TASK_H

#include "models/encode/encoder.h"
#include "pith/encode.h"

enum { PITH_TEXT_TASK_USES = 4 };

typedef struct pith__text_task pith__text_task;
struct pith__text_task {
    pith__encoder *encoder;
    pith__encode_job job;
    pith__head_use uses[PITH_TEXT_TASK_USES];
    size_t use_count;
    float
        *rows; /* [job.count, width] dense vectors or scores, into which heads write; NULL: none */
    size_t width;       /* of a row */
    size_t token_bytes; /* what results besides rows take for each token of a text, about */
    /* Puts the results together when all texts were run. They live as long as the task. NULL: rows
     * are all there is. */
    pith_status (*gather)(const pith_encoded **encoded, pith__text_task *task, pith_error *err);
    void (*drop)(pith__text_task *task); /* frees the task and its results */
};

#endif
