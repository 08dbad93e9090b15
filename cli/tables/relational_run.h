/* relational_run.h - the directory of a training run: run.json says what it is, model.bin holds the
 * model and the state of its training, best.bin the model that answered the validation rows best,
 * log.jsonl what happened. kept.rdb is what the model needs of its database to answer about a later
 * one, and schema.json the database's schema. baseline.bin is there if a baseline answers, as
 * run.json then says. Paths in run.json are relative to the directory. */
#ifndef PITH_CLI_TABLES_RELATIONAL_RUN_H
#define PITH_CLI_TABLES_RELATIONAL_RUN_H

#include <jansson.h>

#include "cli/base/cli.h"
#include "cli/tables/database_source.h"

typedef struct relational_run {
    const char *path;
    json_t *about; /* run.json: database, task, seed, config; of several databases arrays of the
                      first two; and once it is known validation, the losses of the model and of
                      baselines, and answers, which of them was chosen */
    pith_database **databases;
    size_t database_count; /* that are open */
    pith_relational *model;
} relational_run;

/* What run.json calls the model. */
#define RUN_TRANSFORMER "transformer"

/* "RUN/name" from malloc. */
char *run_file(const char *run, const char *name);
/* The path of a file as run.json names it: from the directory of the run, which need not be there
 * yet; from malloc. */
char *run_relative(const char *run, const char *file);
/* Whether two strings, or arrays of strings, name the same files. */
bool run_same_files(const char *run, const json_t *a, const json_t *b);
/* Opens the databases named by a string or an array of strings. folder: what the names are relative
 * to; NULL: the current directory. */
int run_open_databases(relational_run *run, const command *c, const char *folder,
                       const json_t *names);
/* The bytes of a model file, or of the best or else the last model of a run, from malloc; NULL with
 * errno. */
void *run_model_bytes(const char *path, size_t *size);
/* Opens the database of a run, its best or else its last model, and the baseline that answers.
 * EXIT_DONE, or another exit code after a message. */
int run_open(relational_run *run, const command *c, const char *path);
/* The same over another database: a database file, or a source, of which one is made for the time
 * being. database may be NULL: the run's own. */
int run_open_over(relational_run *run, const command *c, const char *path, const char *database,
                  const database_making *how);
/* The name of the baseline that answers in the place of the model; NULL: the model does. */
const char *run_answers(const relational_run *run);
/* Fails where the network is wanted and a baseline answers. what: what wants it. */
int run_needs_network(const relational_run *run, const command *c, const char *what);
/* Says on standard error if a baseline did better on the validation rows than the model that
 * answers. */
void run_tell_better(const relational_run *run, const command *c);
/* Writes run.json. */
int run_write_about(const relational_run *run, const command *c);
/* The model of a file of the run, if there is one; *there says so. The database is open. */
int run_load(relational_run *run, const command *c, const char *name, bool *there);
int run_save(const relational_run *run, const command *c, const char *name);
/* Saves the baseline that answers. */
int run_save_baseline(const relational_run *run, const command *c);
/* Saves kept.rdb and schema.json. */
int run_keep(const relational_run *run, const command *c);
void run_close(relational_run *run);
/* Adds the numbers of an evaluation that are there; intervals as arrays. */
void run_add_metrics(json_t *object, const pith_relational_metrics *metrics);

#endif
