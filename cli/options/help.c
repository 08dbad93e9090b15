/* help.c - see help.h. */
#include "cli/options/help.h"

#include <string.h>

#include "cli/options/option_value.h"

/* Columns: the width of a line, and the widest left column of options and of examples. If the left
 * side is wider, its text begins on the next line. */
enum { HELP_WIDTH = 100, HELP_LEFT_MAX = 26, HELP_EXAMPLE_MAX = 60 };

/* Prints words from a column on; lines after the first are indented. A newline begins another
 * paragraph. */
static void help_words(FILE *out, const char *text, size_t column, size_t indent) {
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (!first && column + 1 + n > HELP_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, n, out);
        column += n;
        first = text[n] == '\n';
        if (first) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        text += n + (text[n] != 0);
    }
    fputc('\n', out);
}

/* "-m, --model MODEL", "--stats[=FORM]", "--[no-]pin". */
static int help_spell(char *text, size_t size, const option_row *row) {
    char letter[8] = "", alias[40] = "";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    if (row->alias) snprintf(alias, sizeof alias, "--%s, ", row->alias);
    const char *before = "";
    if (row->takes) before = row->implied ? "[=" : " ";
    return snprintf(text, size, "%s%s--%s%s%s%s%s", letter, alias,
                    option_switched_off(row) ? "[no-]" : "", row->name, before,
                    row->takes ? row->takes : "", row->implied ? "]" : "");
}

void help_meaning(char *text, size_t size, const option_row *row) {
    const char *usual = row->otherwise ? row->otherwise : row->initial;
    if (row->kind == OPTION_SWITCH && usual == row->initial)
        usual = !strcmp(usual, "true") ? "on" : "off";
    snprintf(text, size, "%s%s%s%s%s%s", row->choices ? row->choices : "", row->choices ? ": " : "",
             row->help, usual ? " (" : "", usual ? usual : "", usual ? ")" : "");
}

static void help_options(const option *options, FILE *out) {
    char text[600];
    size_t left = 0;
    for (const option *o = options; o->row || o->heading; o++) {
        size_t n = o->row ? (size_t)help_spell(text, sizeof text, o->row) : 0;
        if (n > left && n <= HELP_LEFT_MAX) left = n;
    }
    for (const option *o = options; o->row || o->heading; o++) {
        if (!o->row) {
            fprintf(out, "%s\n", o->heading);
            continue;
        }
        int n = help_spell(text, sizeof text, o->row);
        fprintf(out, "  %-*s", (int)left, text);
        if ((size_t)n > left) fprintf(out, "\n  %*s", (int)left, "");
        fputs("  ", out);
        help_meaning(text, sizeof text, o->row);
        help_words(out, text, left + 4, left + 4);
    }
}

static void help_examples(const example *examples, FILE *out) {
    size_t left = 0;
    for (const example *e = examples; e->line; e++) {
        size_t n = strlen(e->line);
        if (n > left && n <= HELP_EXAMPLE_MAX) left = n;
    }
    for (const example *e = examples; e->line; e++)
        fprintf(out, "  %-*s%s%s\n", e->result ? (int)left : 0, e->line, e->result ? "  " : "",
                e->result ? e->result : "");
}

static void help_forms(const command *c, FILE *out) {
    for (const char *form = c->forms; *form;) {
        size_t n = strcspn(form, "\n");
        fprintf(out, "%s pith %s%s%.*s\n", form == c->forms ? "usage:" : "      ", c->name,
                *c->name ? " " : "", (int)n, form);
        form += n + (form[n] != 0);
    }
}

int help_print(const command *c, FILE *out) {
    help_forms(c, out);
    fputc('\n', out);
    help_words(out, c->description, 0, 0);
    fputc('\n', out);
    help_examples(c->examples, out);
    if (c == &program) {
        fputs("\ncommands ('pith COMMAND --help' shows options and examples)\n", out);
        for (const command *const *verb = verbs; *verb; verb++)
            fprintf(out, "  %-12s %s\n", (*verb)->name, (*verb)->summary);
    }
    fputs(!c->options->row ? "\n" : "\noptions\n", out);
    help_options(c->options, out);
    if (c->notes) {
        fputc('\n', out);
        help_words(out, c->notes, 0, 0);
    }
    return fflush(out) ? EXIT_FAILED : EXIT_DONE;
}
