/* relational_run.h - the directory of a training run: run.json says what it is, model.bin holds the model and the state
 * of its training, best.bin, with early stopping, the model that answered the validation rows best, log.jsonl what
 * happened. */
#ifndef PITH_CLI_RELATIONAL_RUN_H
#define PITH_CLI_RELATIONAL_RUN_H

#include <jansson.h>

#include "cli/cli.h"

typedef struct relational_run {
    const char *path;
    json_t *about; /* run.json: database, task, seed, config; of several databases arrays of the first two */
    pith_database **databases;
    size_t database_count; /* that are open */
    pith_relational *model;
} relational_run;

/* "RUN/name" from malloc. */
char *run_file(const char *run, const char *name);
/* Opens the databases named by a string or an array of strings. */
int run_open_databases(relational_run *run, const command *c, const json_t *names);
/* The bytes of a model file, or of the best or else the last model of a run, from malloc; NULL with errno. */
void *run_model_bytes(const char *path, size_t *size);
/* Opens the database of a run and its best or else its last model. EXIT_DONE, or another exit code after a message. */
int run_open(relational_run *run, const command *c, const char *path);
/* The model of a file of the run, if there is one; *there says so. The database is open. */
int run_load(relational_run *run, const command *c, const char *name, bool *there);
int run_save(const relational_run *run, const command *c, const char *name);
void run_close(relational_run *run);
/* Adds the numbers of an evaluation that are there; intervals as arrays. */
void run_add_metrics(json_t *object, const pith_relational_metrics *metrics);

#endif
