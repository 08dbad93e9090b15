/* trainer.h - a model with the state of its training. */
#ifndef PITH_TABLES_NETWORK_TRAINER_H
#define PITH_TABLES_NETWORK_TRAINER_H

#include "base/memory/span_map.h"
#include "base/work.h"
#include "pith/tables.h"
#include "tables/network/network.h"

enum { PITH_TRAINER_THREADS = 64 };
#define PITH_TRAINER_ANSWERS UINT64_MAX /* the epoch that contexts of answers are drawn for */

/* What stands in a cell, for a network that was exported. */
enum {
    PITH_CELL_OF_NUMBER,
    PITH_CELL_OF_BOOLEAN,
    PITH_CELL_OF_TIME,
    PITH_CELL_OF_TEXT,
    PITH_CELL_OF_MASK,
    PITH_CELL_OF_NULL
};

typedef struct pith__trainer_config {
    pith__network_shape shape;
    pith__sample_options sample;
    int32_t batch, steps, warmup;
    double rate, decay, clip;
} pith__trainer_config;

/* Memory of one thread. */
typedef struct pith__trainer_worker {
    pith__arena arena;
    uint32_t *slots;
    size_t held; /* bytes of the chunk that is kept */
} pith__trainer_worker;

/* A task of a database that a model learns. */
typedef struct pith__trainer_source {
    const pith__rdb *rdb;
    const pith__rdb_task *task;
    pith__target target;
    uint32_t *rows, *order; /* of the training part; their order in an epoch */
    uint32_t row_count;
    int64_t order_epoch; /* -1: none yet */
} pith__trainer_source;

/* A task by its name, and its database. */
typedef struct pith__trainer_question {
    const pith__rdb *rdb;
    pith_str task;
} pith__trainer_question;

/* What answers instead of the network: it fills answers[count][outputs] with logits, numbers in the
 * target's units or shares. */
typedef struct pith__answerer {
    pith_status (*answer)(double *answers, void *state, const uint32_t *rows, size_t count,
                          const pith__work *work, pith_error *err);
    void (*close)(void *state); /* once, when the model is closed or gets another one */
    void *state;
} pith__answerer;

struct pith_relational {
    pith_allocator allocator;
    pith__arena arena;
    pith__trainer_source *sources; /* what is learned, at least one */
    uint32_t *source_order;        /* [source_count] in which they take turns */
    uint32_t source_count;
    int64_t turn; /* that source_order is for; -1: none yet */
    /* Those of the first source, which answers are about. */
    const pith__rdb *rdb;
    const pith__rdb_task *task;
    pith__target target;
    pith__trainer_config config;
    pith_str config_text;
    uint64_t seed;
    pith__network network;
    float *first_moments, *second_moments; /* [network.size] of AdamW */
    float *gradients;                      /* [packs of a batch, network.size] */
    int64_t step;
    uint64_t cells;
    pith__answerer answerer; /* answer is NULL: the network */
    pith__map *keys;         /* rows by key; its slots are NULL until the first key is looked up */
    pith__trainer_worker workers[PITH_TRAINER_THREADS];
    int worker_count;
};

/* Reads a configuration over the defaults; text.data may be NULL. */
pith_status pith__trainer_configure(pith__trainer_config *config, pith_str text, pith__arena *arena,
                                    pith_error *err);

/* stop, here and below: may be NULL. Several questions are learned in turns; their answers and
 * texts must be of the same kind. */
pith_status pith__trainer_create(pith_relational **model, const pith__trainer_question *questions,
                                 size_t count, pith_str config, uint64_t seed, pith__stop *stop,
                                 const pith_allocator *allocator, pith_error *err);
void pith__trainer_free(pith_relational *model);
pith_status pith__trainer_train(double *loss, pith_relational *r, int64_t steps,
                                const pith__work *work, pith_error *err);
/* The network's answers as they are, [count][outputs]: see task_target.h. */
pith_status pith__trainer_answer(float *answers, pith_relational *r, const uint32_t *rows,
                                 size_t count, const pith__work *work, pith_error *err);
/* The same from whoever answers, in the target's units; of yes or no and of classes still logits.
 * Scratch is taken from the arena and given back. */
pith_status pith__trainer_say(double *answers, pith_relational *r, const uint32_t *rows,
                              size_t count, const pith__work *work, pith_error *err);
/* From now on somebody else answers; with NULL the network does again. */
void pith__trainer_answer_by(pith_relational *r, const pith__answerer *answerer);
pith_status pith__trainer_predict(float *answers, pith_relational *r, const uint32_t *rows,
                                  size_t count, const pith__work *work, pith_error *err);
pith_status pith__trainer_evaluate(pith_relational_metrics *metrics, pith_relational *r,
                                   int32_t split, const pith__work *work, pith_error *err);
/* See pith_relational_inputs. */
pith_status pith__trainer_inputs(pith_relational *r, const uint32_t *rows, size_t count,
                                 void (*each)(void *user, const char *name,
                                              const pith_tensor *value),
                                 void *user, pith__stop *stop, pith_error *err);
/* See pith_relational_part. */
pith_status pith__trainer_part(uint32_t *rows, double *labels, size_t *count,
                               const pith_relational *r, int32_t split, pith__stop *stop,
                               pith_error *err);
/* See pith_relational_importance. */
pith_status pith__trainer_importance(pith_relational *r, int32_t split, size_t most,
                                     const pith__work *work,
                                     void (*each)(void *user, pith_str table, pith_str column,
                                                  double rise),
                                     void *user, pith_error *err);
pith_status pith__trainer_find(uint32_t *row, const pith_relational *r, pith_str key,
                               pith__stop *stop, pith_error *err);
pith_status pith__trainer_save(const pith_relational *r, const pith_writer *writer,
                               pith__stop *stop, pith_error *err);
/* See pith_relational_keep. */
pith_status pith__trainer_keep(const pith_relational *r, const pith_writer *writer,
                               pith__stop *stop, pith_error *err);
/* rdbs: those that the model was made for, in the same order. */
pith_status pith__trainer_load(pith_relational **model, const pith__rdb *const *rdbs, size_t count,
                               const void *bytes, size_t size, pith__stop *stop,
                               const pith_allocator *allocator, pith_error *err);
/* Takes the parameters of a saved model of any database. */
pith_status pith__trainer_start(pith_relational *r, const void *bytes, size_t size,
                                pith__stop *stop, pith_error *err);
/* The configuration in a saved model; data is NULL if it has the defaults. It belongs to bytes. */
pith_status pith__trainer_config_text(pith_str *config, const void *bytes, size_t size,
                                      pith__stop *stop, pith_error *err);
void pith__trainer_state(pith_relational_state *state, const pith_relational *r);

/* Makes the workers ready; returns how many threads to use, or 0 if memory is out. */
int pith__trainer_workers(pith_relational *r, int32_t threads);

#endif
