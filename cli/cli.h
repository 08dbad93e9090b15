/* cli.h - shared by all verbs: their declarations, options, messages and exit codes.
 *
 * A verb is one file cmd_<verb>.c ending in `const command command_<verb> = {…}`, and one line in verbs.def. Parsing,
 * --help, the manual page and shell completion are all made from the table of its options. Results go to stdout or -o,
 * messages to stderr. Exit codes: 0 success, 1 the work or a part of it failed, 2 wrong usage. */
#ifndef PITH_CLI_CLI_H
#define PITH_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pith/pith.h>

#include "cli/seconds.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define DEFAULT_MODEL "all-MiniLM-L6-v2"
#define LOOP_LIMIT 1000000 /* iterations of one Loop, unless --loop-limit says otherwise */

/* ---- declarations ---- */

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_INT,    /* int32_t, within min and max */
    OPTION_FLOAT,  /* double, not negative */
    OPTION_BYTES,  /* size_t: a number, then nothing, k, M or G (1024 each) */
    OPTION_STRING, /* const char * */
    OPTION_LIST,   /* string_list: may be given many times */
    OPTION_CHOICE, /* int: index into choices "a|b|c" */
    OPTION_HEADING /* no option: its help is a heading above those that follow */
} option_kind;

typedef struct string_list {
    const char **items;
    size_t count;
} string_list;

typedef struct option {
    const char *name; /* without "--"; NULL ends a table */
    char letter;      /* 0: none */
    option_kind kind;
    size_t place;        /* offset of the value in the verb's settings */
    const char *takes;   /* stands for the value in help; shells complete FILE, DIR and MODEL; NULL: a flag */
    const char *help;    /* one sentence without a full stop; the default is in parentheses */
    int64_t min, max;    /* of OPTION_INT */
    const char *choices; /* of OPTION_CHOICE; help and shells list them */
} option;

typedef struct example {
    const char *line, *result; /* NULL ends a list */
} example;

typedef struct command {
    const char *name, *summary;
    const char *forms;       /* what may follow the name, one form per line */
    const char *takes;       /* arguments that shells complete: FILE, DIR, MODEL; NULL: others or none */
    const char *description; /* paragraphs, one per line; so is notes, which follows the options */
    const char *notes;       /* or NULL */
    const example *examples;
    const option *options;
    int (*run)(int argc, char **argv); /* argv[0] is the verb */
} command;

#define VERB(name) extern const command command_##name;
#include "cli/verbs.def"
#undef VERB

/* Every verb, in the order of verbs.def; NULL ends the list. */
extern const command *const verbs[];
/* The declaration of the program itself. It has no run. */
extern const command program;

/* ---- options of a call ---- */

/* Takes the verb's options from anywhere in argv and stores their values in settings. The other arguments move to the
 * front of argv, as *rest. The caller frees the items of an OPTION_LIST. If an option is given twice, the last one
 * counts. -h and --help print the help. Returns -1 to go on, else the exit code. */
int take_options(const command *c, void *settings, int argc, char **argv, string_list *rest);

/* The model named with -m (*model, else NULL) or in rest. Returns -1 to go on; *model is NULL if neither names one. */
int take_model(const command *c, const char **model, const string_list *rest);

/* True if a name is close to the typed one, and closer than *best, which is then set to its distance. */
bool is_near(const char *typed, const char *name, size_t *best);

/* ---- messages ---- */

/* "pith embed: …" and a newline on stderr; returns EXIT_FAILED or EXIT_USAGE. */
int fail(const command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int usage(const command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the library's error, with a hint if the model is not in the cache. Returns EXIT_FAILED. */
int fail_model(const command *c, const pith_error *err, const char *model);

/* A pith_log that writes warnings to stderr. */
extern const pith_log warnings;

/* realloc that never returns NULL: it ends the process if memory is out. */
void *grow(void *memory, size_t size);
/* Makes room for one more item in an array of count items, which began as NULL and grew with this function only.
 * Returns the array. */
void *grow_for(void *items, size_t count, size_t item_bytes);
void list_add(string_list *list, const char *item);

#endif
