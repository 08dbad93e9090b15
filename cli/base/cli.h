/* cli.h - shared by all verbs: their declarations, options, messages and exit codes.
 *
 * A verb is one file cmd_<verb>.c ending in `const command command_<verb> = {…}`, and one line in
 * verbs.def. Parsing, --help, the manual page and shell completion are all made from the table of
 * its options. Results go to stdout or -o, messages to stderr. Exit codes: 0 success, 1 the work or
 * a part of it failed, 2 wrong usage. */
#ifndef PITH_CLI_BASE_CLI_H
#define PITH_CLI_BASE_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pith/pith.h>

#include "cli/base/seconds.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define DEFAULT_MODEL "all-MiniLM-L6-v2"

/* ---- declarations ---- */

typedef enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_SWITCH,  /* int32_t: 1 or 0; or what the verb's settings begin with */
    OPTION_WHETHER, /* int32_t, a pith_choice; or what the verb's settings begin with */
    OPTION_INT,     /* int32_t, within min and max */
    OPTION_MOST,    /* as OPTION_INT, but 0, which means none, is stored as -1 */
    OPTION_THREADS, /* as OPTION_INT; or "cores" or "max" */
    OPTION_SHARE,   /* int32_t, in per cent: a number from 0 to 1, rounded up; 0, which means never,
                       is stored as -1 */
    OPTION_FLOAT,   /* double, not negative */
    OPTION_AMOUNT,  /* as OPTION_FLOAT, but 0 is stored as -1: to the library, 0 is the default */
    OPTION_BYTES,   /* size_t: a number, then nothing, k, M or G (1024 each) */
    OPTION_STRING,  /* const char * */
    OPTION_LIST,    /* string_list: may be given many times */
    OPTION_CHOICE   /* int: index into choices "a|b|c" */
} option_kind;

/* What the file is for that an option names. */
typedef enum file_use {
    FILE_NONE,
    FILE_READ,     /* a file, or a folder of files */
    FILE_MODEL,    /* a model's file, directory or name */
    FILE_WRITTEN,  /* one file */
    FILE_NETWORK,  /* an .onnx file, with .data beside it, or the folder for both */
    FOLDER_WRITTEN /* a folder for files that the verb names */
} file_use;

typedef struct string_list {
    const char **items;
    size_t count;
} string_list;

/* One option: a row of options.def. */
typedef struct option_row {
    const char *id;
    const char *name;  /* without "--" */
    const char *alias; /* another name; NULL: none */
    char letter;       /* 0: none */
    option_kind kind;
    bool anywhere;       /* the environment and the configuration may set it too; a flag can then be
                            switched off, with --no-NAME */
    const char *takes;   /* stands for the value in help; shells complete FILE, DIR and MODEL; NULL:
                            a flag */
    file_use file;       /* what the value names is read or written */
    const char *implied; /* the value, if none is attached as in --name=value; NULL: a value must
                            follow */
    const char *initial; /* the default, read as a value is; NULL: what the verb's settings begin
                            with */
    const char *otherwise; /* the default in words, if initial does not say it */
    const char *help;      /* one sentence without a full stop and without the default */
    int64_t min, max;      /* of numbers; both 0: no range */
    const char *choices;   /* of OPTION_CHOICE; help and shells list them */
} option_row;

enum {
#define OPTION(id, field, test, ...) ROW_##id,
#include "cli/options/options.def"
#undef OPTION
    OPTION_ROWS
};
extern const option_row option_rows[OPTION_ROWS];

/* An option of a verb, or a heading above those that follow, or, with neither, the end of a table.
 */
typedef struct option {
    const option_row *row; /* NULL: a heading */
    size_t place;          /* offset of the value in the verb's settings */
    const char *heading;
} option;

/* Lines of a verb's table. settings_of_verb is the type of the verb's settings. */
#define OPTION_PLACE(id, settings_of_verb, member)                                                 \
    { &option_rows[ROW_##id], offsetof(settings_of_verb, member), NULL }
#define OPTION_SECTION(title)                                                                      \
    { NULL, 0, title }
#define OPTION_END                                                                                 \
    { NULL, 0, NULL }
/* Where the configuration is, and the preset; read by take_options. A verb with an option that may
 * be set elsewhere lists them, except where it has a --config or --preset of its own. */
#define OPTION_CONFIG                                                                              \
    { &option_rows[ROW_config], OPTION_NOWHERE, NULL }
#define OPTION_SOURCES                                                                             \
    OPTION_CONFIG, { &option_rows[ROW_preset], OPTION_NOWHERE, NULL }
#define OPTION_NOWHERE SIZE_MAX

typedef struct example {
    const char *line, *result; /* NULL ends a list */
} example;

typedef struct command {
    const char *name, *summary;
    const char *forms;       /* what may follow the name, one form per line */
    const char *takes;       /* arguments that shells complete: FILE, DIR, MODEL; NULL: others or
                                none */
    const char *reads;       /* endings "a|b" of the files that a folder as an argument stands for;
                                NULL: all */
    const char *description; /* paragraphs, one per line; so is notes, which follows the options */
    const char *notes;       /* or NULL */
    const example *examples;
    const option *options;
    int (*run)(int argc, char **argv); /* argv[0] is the verb */
} command;

#define VERB(name) extern const command command_##name;
#define LEFT_OUT(name, lines)
#include "cli/verbs.def"
#undef VERB
#undef LEFT_OUT

/* Every verb, in the order of verbs.def; NULL ends the list. */
extern const command *const verbs[];
/* The declaration of the program itself. It has no run. */
extern const command program;

/* ---- options of a call ---- */

/* Takes the verb's options and stores their values in settings: first their defaults, then what the
 * configuration says, then the environment, then the flags, which may stand anywhere in argv.
 * Values of a preset stand just below those of the source that names it. The other arguments move
 * to the front of argv, as *rest. The caller frees the items of an OPTION_LIST. If an option is
 * given twice, the last one counts. -h and --help print the help. Returns -1 to go on, else the
 * exit code. */
int take_options(const command *c, void *settings, int argc, char **argv, string_list *rest);

/* Whether a flag of the call has set the value at this place, and not only the configuration, the
 * environment or a preset. */
bool option_by_flag(const void *place);

/* The model named with -m (*model, else NULL) or in rest. Returns -1 to go on; *model is NULL if
 * neither names one. */
int take_model(const command *c, const char **model, const string_list *rest);

/* How many characters must be changed, added or taken away to make b out of a (Levenshtein);
 * SIZE_MAX for long ones. */
size_t spelling_distance(const char *a, const char *b);
/* Up to `length` characters of a text, as many as there is room for, with small letters of ASCII.
 */
void small_letters(char *out, size_t size, const char *text, size_t length);
/* True if a name is close to the typed one, and closer than *best, which is then set to its
 * distance. */
bool is_near(const char *typed, const char *name, size_t *best);

/* ---- messages ---- */

/* "pith embed: …" and a newline on stderr; returns EXIT_FAILED or EXIT_USAGE. */
int fail(const command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int usage(const command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the library's error, and if the model is not on this machine the nearest names and the
 * command that fetches it. Returns EXIT_FAILED. */
int fail_model(const command *c, const pith_error *err, const char *model);

/* A pith_log that writes warnings to stderr. */
extern const pith_log warnings;

/* realloc that never returns NULL: it ends the process if memory is out. */
void *grow(void *memory, size_t size);
/* Makes room for one more item in an array of count items, which began as NULL and grew with this
 * function only. Returns the array. */
void *grow_for(void *items, size_t count, size_t item_bytes);
void list_add(string_list *list, const char *item);

#endif
