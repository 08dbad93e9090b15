/* config_file.h - the configuration: a JSON object whose keys are names of options. */
#ifndef PITH_CLI_OPTIONS_CONFIG_FILE_H
#define PITH_CLI_OPTIONS_CONFIG_FILE_H

#include "cli/base/cli.h"

typedef struct config_entry {
    const char *key, *text;
} config_entry;

typedef struct config_file {
    const char *place; /* where it was looked for; NULL: nowhere */
    const char *path;  /* the same, or NULL: there is none */
    config_entry *entries;
    size_t count;
} config_file;

/* Reads the file `named`, else $PITH_CONFIG, else $XDG_CONFIG_HOME/pith/config.json, else
 * ~/.config/pith/config.json. Only a file that was named must exist; an empty name stands for none.
 * It is kept as long as the process. Returns -1 to go on, else the exit code after a message: a
 * file that cannot be read, is no JSON object, or has a key that is no option's. */
int config_open(config_file *f, const command *c, const char *named);

/* The value of a key as the text of a flag would give it; NULL: it has none. */
const char *config_text(const config_file *f, const char *key);

#endif
