/* row_options.h - which texts a verb reads: lines, or columns of tables and of JSON objects, from
 * files, standard input and arguments. The one place for the options that say so. */
#ifndef PITH_CLI_INPUT_ROW_OPTIONS_H
#define PITH_CLI_INPUT_ROW_OPTIONS_H

#include "cli/input/json_line.h"

typedef struct row_options {
    string_list columns, texts; /* --column, --text */
    const char *id, *python;
    bool null, jsonl, quiet;
    int invalid, errors;
    string_list inputs; /* set by row_options_take: files, "-", and texts behind TEXT_MARK; none:
                           standard input */
    bool objects;       /* and this: each line is an object, or a row of a table */
} row_options;

/* Rows of a verb's table. settings: the type of its settings; member: the row_options in it. */
#define OPTIONS_ROWS(settings, member)                                                             \
    OPTION_PLACE(id_column, settings, member.id),                                                  \
        OPTION_PLACE(text_given, settings, member.texts),                                          \
        OPTION_PLACE(null, settings, member.null),                                                 \
        OPTION_PLACE(invalid, settings, member.invalid),                                           \
        OPTION_PLACE(errors, settings, member.errors),                                             \
        OPTION_PLACE(python, settings, member.python)

/* Takes the arguments of a call, all of which are files. objects: as jsonl says. */
void row_options_files(row_options *o, const string_list *files);
/* Takes the arguments of a call. One that is no file, and does not look like the name of one, is a
 * text, which a note says. EXIT_DONE, or EXIT_USAGE after a message that says what does not go
 * together. */
int row_options_take(const command *c, row_options *o, const string_list *arguments);
void row_options_free(row_options *o);

/* Whether the file is a table by its name, whose rows are read as objects. */
bool row_options_table(const char *path);
/* Sets what an open input and the reader of its objects need. */
void row_options_apply(const row_options *o, text_input *in, json_line *line);
/* The columns as one text, "title,body"; NULL: none are named. From malloc. */
char *row_options_columns(const row_options *o);

#endif
