/* known_models.h - the list of models that other tools and pages name, which known_models.def
 * holds.
 *
 * It is one text without pointers, so that it costs a start of the command nothing. */
#ifndef PITH_CLI_HUB_KNOWN_MODELS_H
#define PITH_CLI_HUB_KNOWN_MODELS_H

#include <stdbool.h>

enum {
    KNOWN_NAME,
    KNOWN_REPOSITORY, /* what is pulled */
    KNOWN_EXPORT,     /* another repository, which has the files that are listed */
    KNOWN_FILES,      /* separated by spaces */
    KNOWN_KIND,       /* dense, sparse, multi-vector, rerank, image */
    KNOWN_DIM,        /* of a vector; of sparse ones, the size of the vocabulary; "0": not known */
    KNOWN_POOLING,
    KNOWN_PROMPTS, /* needed, optional, none */
    KNOWN_TOKENIZER,
    KNOWN_LICENCE,
    KNOWN_SIZE, /* MB; "0": not known */
    KNOWN_LANGUAGES,
    KNOWN_LIST, /* which list names it */
    KNOWN_FIELDS
};

typedef struct known_model {
    char text[800];
    const char *field[KNOWN_FIELDS]; /* in text; "": not known */
} known_model;

/* Takes the next model of the list; *at begins as NULL. False at the end. */
bool known_next(known_model *m, const char **at);
/* The model of this name: as listed, else by what follows the slash. Neither looks at capitals. */
bool known_find(known_model *m, const char *name);

/* A row of models/hub/model_names.def. */
typedef struct short_name {
    char text[256];
    const char *name, *full;   /* in text; `full` has the organisation */
    const char *file, *sha256; /* the network to fetch, and its hash; "": not told */
} short_name;

/* Takes the next short name; *at begins as NULL. False at the end. */
bool short_next(short_name *s, const char **at);
/* The row with this short name, else with this full name, or with what follows its slash. Capitals
 * do not matter. */
bool short_find(short_name *s, const char *name);

#endif
