/* option_sources.h - values of options from anywhere but the flags: defaults, the configuration,
 * the environment and presets. */
#ifndef PITH_CLI_OPTIONS_OPTION_SOURCES_H
#define PITH_CLI_OPTIONS_OPTION_SOURCES_H

#include "cli/options/option_value.h"

/* What the flags name; NULL: nothing. */
typedef struct source_names {
    const char *config, *preset;
} source_names;

/* Stores the defaults of the verb's options, then what the configuration says, then the
 * environment. The values of the preset that counts come right after those of the source below the
 * one that names it. Returns -1 to go on, else the exit code. */
int take_sources(const command *c, void *settings, const source_names *names);

/* The configuration that the call has read; NULL: none. */
const char *config_in_use(void);

/* "PITH_BATCH_TOKENS" and "batch_tokens" of "batch-tokens". */
void option_variable(char variable[64], const option_row *row);
void option_key(char key[64], const option_row *row);

#endif
