/* option_value.h - the text of an option as a value in a verb's settings. */
#ifndef PITH_CLI_OPTIONS_OPTION_VALUE_H
#define PITH_CLI_OPTIONS_OPTION_VALUE_H

#include "cli/base/cli.h"

/* Reads text and stores it at the option's place. label says in a message where the text comes
 * from: "--threads". The value may point into text. Returns -1 to go on, else the exit code. */
int option_store(const command *c, const char *label, const option *o, void *settings,
                 const char *text);

/* The same for a number of OPTION_INT, OPTION_MOST, OPTION_SHARE or OPTION_BYTES, but a lower one
 * that is there stays. */
int option_lower(const command *c, const char *label, const option *o, void *settings,
                 const char *text);

/* Whether the option has an effect: it always has one, but for the option that a test leaves out.
 */
bool option_heeded(const option_row *row);

/* What values there are, as a part of a sentence: "must be a number from 1 to 4096"; "" for any
 * text. */
void option_range(char *range, size_t size, const option_row *row);

/* An OPTION_AMOUNT as a float: what is too small for one is 0, which is stored as -1, too. */
static inline float option_amount(double x) { return (float)x < 0 || (float)x > 0 ? (float)x : -1; }

/* Whether --no-NAME switches it off. */
static inline bool option_switched_off(const option_row *row) {
    return row->kind == OPTION_SWITCH || row->kind == OPTION_WHETHER ||
           (row->kind == OPTION_FLAG && row->anywhere);
}

#endif
