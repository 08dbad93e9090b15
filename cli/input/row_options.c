/* row_options.c - see row_options.h. */
#include "cli/input/row_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/message.h"

/* Whether an argument looks like the name of a file: with a slash, with an end that is known, or
 * one word with some end, which may be a slip. */
static bool looks_named(const char *argument) {
    const char *dot = strrchr(argument, '.');
    const size_t end = dot ? strlen(dot + 1) : 0;
    if (strchr(argument, '/') || file_kind_of(argument)) return true;
    return dot > argument && end && end <= 8 && !strpbrk(argument, " \t\r\n");
}

/* Whether an argument is a text: no such file is there, and it looks like the name of none. */
static bool is_text(const char *argument) {
    struct stat st;
    if (!*argument || !strcmp(argument, "-") || !stat(argument, &st)) return false;
    if (errno == ENAMETOOLONG) return true;
    return errno == ENOENT && !looks_named(argument);
}

/* Adds a copy of `text` behind a prefix. */
static void add_input(row_options *o, const char *prefix, const char *text) {
    char *item = grow(NULL, strlen(prefix) + strlen(text) + 1);
    list_add(&o->inputs, strcat(strcpy(item, prefix), text));
}

static const char text_mark[] = { TEXT_MARK, 0 };

static void add_inputs(const command *c, row_options *o, const string_list *arguments) {
    const char *first = NULL;
    size_t texts = 0;
    for (size_t i = 0; i < arguments->count; i++) {
        const char *argument = arguments->items[i];
        const bool text = is_text(argument);
        if (text && !texts++) first = argument;
        if (text)
            add_input(o, text_mark, argument);
        else
            add_input(o, *argument == TEXT_MARK ? "./" : "", argument);
    }
    for (size_t i = 0; i < o->texts.count; i++) add_input(o, text_mark, o->texts.items[i]);
    if (!texts || o->quiet) return;
    note("pith %s: there is no file '" PITH_CUT_FMT
         "', so %s taken as %s; --text says so without this note",
         c->name, PITH_CUT(pith__str_of(first), 60),
         texts == 1 ? "it is" : "it and the others like it are", texts == 1 ? "a text" : "texts");
}

bool row_options_table(const char *path) {
    const file_kind *kind = file_kind_of(path);
    return kind && (kind->form == TEXT_CSV || kind->form == TEXT_TSV || kind->form == TEXT_PARQUET);
}

/* Whether an input has columns. */
static bool has_columns(const row_options *o, const char *input) {
    if (*input == TEXT_MARK) return false;
    const file_kind *kind = strcmp(input, "-") ? file_kind_of(input) : NULL;
    return o->jsonl || (kind && kind->form == TEXT_OBJECTS) || (kind && row_options_table(input));
}

static const char *name_of(const char *input) {
    if (*input == TEXT_MARK) return "a text as an argument";
    return strcmp(input, "-") ? input : "standard input";
}

/* What does not go together. */
static int check_inputs(const command *c, row_options *o) {
    const char *lines = NULL, *columns = NULL;
    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *input = o->inputs.items[i];
        if (o->jsonl && *input != TEXT_MARK && row_options_table(input))
            return usage(c, "%s is a table by its name, not lines of JSON; leave out --jsonl",
                         input);
        if (has_columns(o, input))
            columns = columns ? columns : input;
        else
            lines = lines ? lines : input;
    }
    if (lines && columns)
        return usage(c, "%s has lines and %s has columns; read them in two calls", name_of(lines),
                     name_of(columns));
    o->objects = columns || (o->jsonl && !lines);
    if (o->jsonl && lines) return usage(c, "--jsonl and texts as arguments do not go together");
    if (o->jsonl && o->null) return usage(c, "--jsonl and -0 do not go together");
    if (o->objects && o->null) return usage(c, "-0 goes with lines, and %s has columns", columns);
    if (!o->objects && (o->columns.count || o->id))
        return usage(c, "--column and --id go with --jsonl, and with files that have columns: "
                        ".csv, .tsv, .jsonl, .parquet");
    if (o->columns.count > JSON_LINE_COLUMNS)
        return usage(c, "--column may be given %d times", JSON_LINE_COLUMNS);
    return EXIT_DONE;
}

void row_options_files(row_options *o, const string_list *files) {
    for (size_t i = 0; i < files->count; i++)
        add_input(o, *files->items[i] == TEXT_MARK ? "./" : "", files->items[i]);
    o->objects = o->jsonl;
}

int row_options_take(const command *c, row_options *o, const string_list *arguments) {
    add_inputs(c, o, arguments);
    return check_inputs(c, o);
}

void row_options_free(row_options *o) {
    for (size_t i = 0; i < o->inputs.count; i++) free((char *)(uintptr_t)o->inputs.items[i]);
    free(o->inputs.items);
    free(o->columns.items);
    free(o->texts.items);
    o->inputs = o->columns = o->texts = (string_list){ NULL, 0 };
}

void row_options_apply(const row_options *o, text_input *in, json_line *line) {
    in->separator = o->null ? 0 : '\n';
    in->quiet = o->quiet;
    in->replace = line->replace = o->invalid == 1;
    in->tables = o->objects;
    in->arguments = true;
    in->guesses = !o->columns.count && !o->quiet;
    in->python = o->python;
    line->columns = &o->columns;
    line->id = o->id;
}

char *row_options_columns(const row_options *o) {
    bytes all = { NULL, 0, 0 };
    for (size_t i = 0; i < o->columns.count; i++) {
        if (i) bytes_add(&all, ",", 1);
        bytes_add(&all, o->columns.items[i], strlen(o->columns.items[i]));
    }
    if (all.size) bytes_add(&all, "", 1);
    return all.data;
}
