/* tables.h - models of the rows of a relational database.
 *
 *     pith_database_options how = PITH_DATABASE_OPTIONS_INIT;
 *     // "shop" is a directory of CSV files
 *     if (pith_database_make("shop", &how, &writer, &err)) puts(err.message);
 *     pith_database *db;
 *     if (pith_database_open(&db, "shop.rdb", NULL, &err)) puts(err.message);
 *
 * A database file holds the typed columns of all tables, their foreign keys in both directions,
 * statistics and a vector for each text. A model reads the rows that are linked to a row and known
 * when a question about it is asked, and answers it. docs/relational.md leads from a directory of
 * CSV files to predictions. */
#ifndef PITH_TABLES_H
#define PITH_TABLES_H

#include "pith/call.h"
#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- databases ---- */

/* Any number of threads may use it at once. */
typedef struct pith_database pith_database;

/* What turns texts into vectors. embed fills vectors, float[count][dim], and returns PITH_OK, or
 * fails with a message in err; it is called on the calling thread, with up to 1024 texts of about
 * the same length. The library cannot end it early: a slow embed looks itself at what
 * ends the call, and returns PITH_ERR_CANCELLED or PITH_ERR_DEADLINE. A plain value: it never
 * grows. */
typedef struct pith_text_embedder {
    const char *name; /* is stored in the database */
    size_t dim;       /* 1 to 16384 */
    pith_status (*embed)(void *user, float *vectors, const pith_str *texts, size_t count,
                         pith_error *err);
    void *user;
} pith_text_embedder;

/* In the call context, threads, log and profile have no effect. Progress reports "tables" that were
 * begun, "rows" that were read so far (total 0), and "texts" that have a vector. */
typedef struct pith_database_options {
    pith_call call;
    const char *schema;                 /* file of the schema; NULL: schema.json of the source if it
                                           is there, else the schema is inferred */
    const pith_text_embedder *embedder; /* NULL: words are hashed into vectors of 384 numbers, which
                                           needs no model */
    /* Told of what is likely to make answers wrong, which is also among the database's warnings.
     * The text is gone after the call; user is call.user. NULL: no warnings. */
    void (*warn)(void *user, const char *text);
} pith_database_options;

#define PITH_DATABASE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_database_options)

/* The functions below that have a call context accept NULL for it. Log and profile have no effect,
 * nor has the allocator where a handle brings its own. A call that is ended early leaves handles
 * and files as they were, unless it says otherwise. */

/* Infers the schema of a source and writes it as JSON, which people edit and
 * pith_database_options.schema names. Progress reports "rows" that were read so far. */
PITH_API pith_status pith_database_draft(const char *source, const pith_call *call,
                                         const pith_writer *writer, pith_error *err);
/* Reads a source and hands the bytes of a database file to the writer, in order. A source is a
 * directory or zip archive of CSV and TSV files (plain, gzip or Zstandard), an SQLite file, or a
 * postgresql:// address. The bytes depend on the source, the schema and the vectors of the embedder
 * alone. */
PITH_API pith_status pith_database_make(const char *source, const pith_database_options *options,
                                        const pith_writer *writer, pith_error *err);

/* Maps a database file and checks it. The file must stay as it is until the database is closed. The
 * caller owns *database, which any number of threads may use at once. Models of it have its
 * allocator. */
PITH_API pith_status pith_database_open(pith_database **database, const char *path,
                                        const pith_call *call, pith_error *err);
/* NULL is allowed. No model of the database may be there. */
PITH_API void pith_database_close(pith_database *database);
/* Writes a description as one JSON object: tables, columns with their statistics, links, tasks,
 * warnings. docs/cli.md lists its keys under inspect. Nothing is written before everything that can
 * fail but writing has been done. */
PITH_API pith_status pith_database_describe(const pith_database *database, const pith_call *call,
                                            const pith_writer *writer, pith_error *err);

/* The schema that the database was made with, as JSON without spaces, which belongs to the
 * database; size is 0 if it was inferred, or if an earlier version made the file. */
PITH_API pith_str pith_database_schema(const pith_database *database);

/* ---- models ---- */

/* A model of one task of a database, with what its training needs to continue. One thread may use
 * it at a time. */
typedef struct pith_relational pith_relational;

typedef enum pith_relational_split {
    PITH_SPLIT_OF_TRAINING = 0,
    PITH_SPLIT_OF_VALIDATION = 1,
    PITH_SPLIT_OF_TEST = 2
} pith_relational_split;

/* Makes an untrained model for a task of the database, which must stay open. config is JSON
 * (docs/relational.md lists its members); NULL: the defaults. seed decides first values, the order
 * of rows and the subsets of linked rows. */
PITH_API pith_status pith_relational_create(pith_relational **model, const pith_database *database,
                                            const char *task, const char *config, uint64_t seed,
                                            const pith_call *call, pith_error *err);
/* Makes a model of what pith_relational_save wrote, for the same database. bytes are copied. */
PITH_API pith_status pith_relational_load(pith_relational **model, const pith_database *database,
                                          const void *bytes, size_t size, const pith_call *call,
                                          pith_error *err);
/* As pith_relational_create and pith_relational_load, of a task of each of several databases, which
 * all must stay open: tasks[count]. The tasks are learned in turns. Their texts must have the same
 * embedder, and their answers be of the same kind. All else that a model does is about the first.
  */
PITH_API pith_status pith_relational_create_over(pith_relational **model,
                                                 const pith_database *const *databases,
                                                 const char *const *tasks, size_t count,
                                                 const char *config, uint64_t seed,
                                                 const pith_call *call, pith_error *err);
PITH_API pith_status pith_relational_load_over(pith_relational **model,
                                               const pith_database *const *databases, size_t count,
                                               const void *bytes, size_t size,
                                               const pith_call *call, pith_error *err);
/* Gives a model the parameters that pith_relational_save wrote, of a model of any database that has
 * the same shape, embedder and kind of answer. Its training is still to begin. */
PITH_API pith_status pith_relational_start_from(pith_relational *model, const void *bytes,
                                                size_t size, const pith_call *call,
                                                pith_error *err);
/* The configuration of a model that pith_relational_save wrote: it belongs to bytes. data is NULL
 * for the defaults. */
PITH_API pith_status pith_relational_config(pith_str *config, const void *bytes, size_t size,
                                            const pith_call *call, pith_error *err);
/* Hands the model, and the state of its training, to the writer. Training that continues from it
 * has the same bits as training that was never interrupted. Once all steps are done the file holds
 * the parameters alone. */
PITH_API pith_status pith_relational_save(const pith_relational *model, const pith_call *call,
                                          const pith_writer *writer, pith_error *err);
/* NULL is allowed. */
PITH_API void pith_relational_destroy(pith_relational *model);

/* The target of a question, and the form of its answer. */
typedef enum pith_relational_target {
    PITH_TARGET_BOOLEAN = 0, /* the probability of yes */
    PITH_TARGET_NUMBER = 1,  /* a number in the target's units */
    PITH_TARGET_RANK = 2,    /* the share of the training labels that are smaller, from 0 to 1 */
    PITH_TARGET_CLASS = 3    /* a probability for each class */
} pith_relational_target;

/* Hands what a model keeps of its database to the writer: a database file without rows. With it the
 * model can be opened over a later database, whose rows were not there at training. */
PITH_API pith_status pith_relational_keep(const pith_relational *model, const pith_call *call,
                                          const pith_writer *writer, pith_error *err);
/* Gives a database the statistics of its columns, the split and the classes that a model keeps, so
 * that pith_relational_load opens the model over it. The database must have the schema and the
 * embedder of the model's (PITH_ERR_ARGUMENT names the first difference), and is for models of that
 * database alone from then on; no model of it may be there. Entities and categories that training
 * has not seen are read as what they are: rows without known labels, texts; labels of other classes
 * are in no part. The caller closes both; kept may be closed first. */
PITH_API pith_status pith_database_follow(pith_database *database, const pith_database *kept,
                                          const pith_call *call, pith_error *err);

/* The state of training. */
typedef struct pith_relational_state {
    size_t size;
    int64_t step, steps;      /* done, and planned by the configuration */
    int64_t parameters, rows; /* numbers that are learned; rows of the training part */
    uint64_t cells;           /* that the model has read since it was opened */
    int32_t target;           /* pith_relational_target */
    int32_t outputs;          /* numbers of an answer: 1, or the number of classes */
} pith_relational_state;

#define PITH_RELATIONAL_STATE_INIT PITH_SIZED_INIT(pith_relational_state)

/* Fills a struct that was initialised with PITH_RELATIONAL_STATE_INIT; one without a size stays as
 * it is. */
PITH_API void pith_relational_get_state(pith_relational_state *state, const pith_relational *model);

/* Trains for so many steps, at most up to the planned number, and sets *loss to the mean loss of
 * these. The number of threads changes no bit. If the call is ended early, the steps that are done
 * count, and the one that was begun leaves no trace: a later call comes to the same bits.
 * Progress reports "steps" of this call. */
PITH_API pith_status pith_relational_train(double *loss, pith_relational *model, int64_t steps,
                                           const pith_call *call, pith_error *err);

/* How well answers fit. Members that do not go with the kind of target are NaN; so are all if there
 * are no rows. [0] is the value, [1] and [2] bound the middle 95 % of 1000 bootstrap samples of the
 * rows. */
typedef struct pith_relational_metrics {
    size_t size;
    int64_t rows;
    double auroc[3], logloss[3], accuracy; /* of booleans; except auroc, of classes too */
    double mae[3], r2, constant_mae;    /* of numbers, in their own units, and of ranks; constant:
                                           the usual answer */
    double base_rate, constant_logloss; /* of booleans the share of yes; and the loss of training's
                                           shares */
    double spearman[3];                 /* of numbers and ranks: the correlation of their ranks */
    double macro_f1;                    /* of classes: the mean over those that are there */
} pith_relational_metrics;

#define PITH_RELATIONAL_METRICS_INIT PITH_SIZED_INIT(pith_relational_metrics)

/* Fills a struct that was initialised with PITH_RELATIONAL_METRICS_INIT. Progress reports "rows".
 */
PITH_API pith_status pith_relational_evaluate(pith_relational_metrics *metrics,
                                              pith_relational *model, int32_t split,
                                              const pith_call *call, pith_error *err);

/* Sets *count to the number of rows of a part and, if rows is not NULL, rows[*count] to their
 * numbers and labels[*count] to what is true of them: 0 or 1, a number, a share, the number of a
 * class. */
PITH_API pith_status pith_relational_part(uint32_t *rows, double *labels, size_t *count,
                                          const pith_relational *model, int32_t split,
                                          const pith_call *call, pith_error *err);
/* How much the model's loss rises where the cells of a column, or of a whole table, are hidden from
 * every context, on up to so many rows of a part. each is called for every column and table, the
 * largest rise first; of a table the column's data is NULL. Names belong to the database. The loss
 * is cross-entropy, or of numbers and ranks Huber's of the distance in standard deviations.
 * Progress reports "columns" and tables that were hidden. */
PITH_API pith_status pith_relational_importance(pith_relational *model, int32_t split, size_t rows,
                                                const pith_call *call,
                                                void (*each)(void *user, pith_str table,
                                                             pith_str column, double rise),
                                                void *user, pith_error *err);

/* What a model has to beat: predictors that learn the model's task from the same rows and see what
 * it may see. Returns the name of a baseline, or NULL beyond the last: 0 is the constant, 1 the
 * mean of earlier labels that share a parent, 2 to 4 are boosted trees over the row, with its
 * parents, with aggregates of the children of both. Valid as long as the process. */
PITH_API const char *pith_baseline_name(int32_t baseline);
/* Trains a baseline for the model's task and measures it on a part of the rows. metrics are as in
 * pith_relational_evaluate. Progress reports "features" that are computed, and "trees" that are
 * grown: their total is the most, since growing ends when more trees do not help. */
PITH_API pith_status pith_baseline_evaluate(pith_relational_metrics *metrics,
                                            const pith_relational *model, int32_t baseline,
                                            int32_t split, const pith_call *call, pith_error *err);

/* Trains a baseline, which from then on answers instead of the network: in
 * pith_relational_predict and pith_relational_evaluate. -1: the network answers again. If it fails
 * or is ended early, the one that answered before still does. */
PITH_API pith_status pith_relational_answer_by(pith_relational *model, int32_t baseline,
                                               const pith_call *call, pith_error *err);
/* Hands the baseline that answers to the writer, and lets a saved one answer: of the same task and
 * the same database, or of one that follows it. bytes are copied. */
PITH_API pith_status pith_relational_save_baseline(const pith_relational *model,
                                                   const pith_call *call, const pith_writer *writer,
                                                   pith_error *err);
PITH_API pith_status pith_relational_load_baseline(pith_relational *model, const void *bytes,
                                                   size_t size, const pith_call *call,
                                                   pith_error *err);

/* Sets *row to the row of the task's table that has this primary key; several columns are joined
 * with U+001F. Without a primary key it is the row's number, from 0. */
PITH_API pith_status pith_relational_find_row(uint32_t *row, const pith_relational *model,
                                              pith_str key, const pith_call *call, pith_error *err);
/* The name of a class, which belongs to the database; data is NULL beyond the last, and where the
 * target is no class. */
PITH_API pith_str pith_relational_class(const pith_relational *model, int32_t index);
/* Answers the question about each row: answers[count][outputs], see pith_relational_target. The
 * target's cell of the row is not read. An answer has the same bits whatever other
 * rows are asked. If the call is ended early, answers hold nothing of use. Progress reports "rows".
 * */
PITH_API pith_status pith_relational_predict(float *answers, pith_relational *model,
                                             const uint32_t *rows, size_t count,
                                             const pith_call *call, pith_error *err);

/* Hands the network to the writer as an ONNX file, which other engines run; docs/relational.md
 * lists its inputs. Its output is what pith_relational_predict gives. */
PITH_API pith_status pith_relational_export(const pith_relational *model, const pith_call *call,
                                            const pith_writer *writer, pith_error *err);
/* Hands each input of that network for 1 to 255 rows, which together have at most 16384 cells.
 * Values are gone after the call. */
PITH_API pith_status pith_relational_inputs(pith_relational *model, const uint32_t *rows,
                                            size_t count, const pith_call *call,
                                            void (*each)(void *user, const char *name,
                                                         const pith_tensor *value),
                                            void *user, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
