/* help.c - see help.h. */
#include "cli/options/help.h"

#include <string.h>

#include "cli/options/option_value.h"

/* Columns: the width of a line, and the widest left column of options and of examples. If the left
 * side is wider, its text begins on the next line. */
enum { HELP_WIDTH = 100, HELP_LEFT_MAX = 26, HELP_EXAMPLE_MAX = 60 };
/* Of the short help: examples, and at most as many options. */
enum { HELP_EXAMPLES = 3, HELP_MAIN = 16 };

/* Subjects with their verbs, and verbs with their main options. */
typedef struct help_list {
    const char *title, *names;
} help_list;

static const help_list groups[] = {
#define HELP_GROUP(title, verbs) { title, verbs },
#define HELP_VERB(verb, options)
#include "cli/options/help_groups.def"
#undef HELP_GROUP
#undef HELP_VERB
};

static const help_list mains[] = {
#define HELP_GROUP(title, verbs)
#define HELP_VERB(verb, options) { #verb, options },
#include "cli/options/help_groups.def"
#undef HELP_GROUP
#undef HELP_VERB
};

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

/* Whether a word is one of "a b c". */
static bool help_names(const char *words, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = words; (at = strstr(at, name)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

/* The option of this name of n characters, or with this alias; NULL: there is none. */
static const option *help_find(const option *options, const char *name, size_t n) {
    for (const option *o = options; o->row || o->heading; o++) {
        if (!o->row) continue;
        const char *names[] = { o->row->name, o->row->alias };
        for (size_t i = 0; i < 2 && names[i]; i++)
            if (strlen(names[i]) == n && !memcmp(names[i], name, n)) return o;
    }
    return NULL;
}

static size_t help_count(const option *options) {
    size_t count = 0;
    for (; options->row || options->heading; options++) count += options->row != NULL;
    return count;
}

/* The larger of two widths of the left column, unless an option is too wide for it. */
static size_t help_wider(size_t left, const option_row *row) {
    char text[600];
    const size_t n = (size_t)help_spell(text, sizeof text, row);
    return n > left && n <= HELP_LEFT_MAX ? n : left;
}

static void help_option(const option_row *row, size_t left, FILE *out) {
    char text[600];
    int n = help_spell(text, sizeof text, row);
    fprintf(out, "  %-*s", (int)left, text);
    if ((size_t)n > left) fprintf(out, "\n  %*s", (int)left, "");
    fputs("  ", out);
    help_meaning(text, sizeof text, row);
    help_words(out, text, left + 4, left + 4);
}

static void help_options(const option *options, FILE *out) {
    size_t left = 0;
    for (const option *o = options; o->row || o->heading; o++)
        if (o->row) left = help_wider(left, o->row);
    for (const option *o = options; o->row || o->heading; o++)
        if (o->row)
            help_option(o->row, left, out);
        else
            fprintf(out, "%s\n", o->heading);
}

/* The options of these names, in their order. */
static void help_main_options(const option *options, const char *names, FILE *out) {
    const option *found[HELP_MAIN];
    size_t count = 0, left = 0;
    for (const char *at = names; *at && count < HELP_MAIN;) {
        const size_t n = strcspn(at, " ");
        if ((found[count] = help_find(options, at, n)))
            left = help_wider(left, found[count++]->row);
        at += n + (at[n] != 0);
    }
    for (size_t i = 0; i < count; i++) help_option(found[i]->row, left, out);
}

/* most: how many are shown. */
static void help_examples(const example *examples, size_t most, FILE *out) {
    size_t left = 0;
    const example *const end = examples + most;
    for (const example *e = examples; e < end && e->line; e++) {
        size_t n = strlen(e->line);
        if (n > left && n <= HELP_EXAMPLE_MAX) left = n;
    }
    for (const example *e = examples; e < end && e->line; e++)
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

/* Everything about a verb or the program. */
static void help_all(const command *c, FILE *out) {
    help_words(out, c->description, 0, 0);
    fputc('\n', out);
    help_examples(c->examples, SIZE_MAX / sizeof *c->examples, out);
    if (c == &program) {
        fputs("\ncommands ('pith COMMAND --help' shows examples and options)\n", out);
        for (const command *const *verb = verbs; *verb; verb++)
            fprintf(out, "  %-12s %s\n", (*verb)->name, (*verb)->summary);
    }
    fputs(!c->options->row ? "\n" : "\noptions\n", out);
    help_options(c->options, out);
    if (c->notes) {
        fputc('\n', out);
        help_words(out, c->notes, 0, 0);
    }
}

/* A subject and its verbs, if there are any; names begins with a space. */
static void help_group(const char *title, const char *names, FILE *out) {
    if (*names) fprintf(out, "  %-15s%s\n", title, names);
}

/* The verbs of this build by subject; those of none come last. */
static void help_groups(FILE *out) {
    char others[HELP_WIDTH] = "";
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        char names[HELP_WIDTH] = "";
        for (const char *at = groups[i].names; *at;) {
            const size_t n = strcspn(at, " "), size = strlen(names);
            for (const command *const *verb = verbs; *verb; verb++)
                if (strlen((*verb)->name) == n && !memcmp((*verb)->name, at, n))
                    snprintf(names + size, sizeof names - size, " %s", (*verb)->name);
            at += n + (at[n] != 0);
        }
        help_group(groups[i].title, names, out);
    }
    for (const command *const *verb = verbs; *verb; verb++) {
        const size_t size = strlen(others);
        bool grouped = false;
        for (size_t i = 0; i < sizeof groups / sizeof groups[0] && !grouped; i++)
            grouped = help_names(groups[i].names, (*verb)->name);
        if (!grouped) snprintf(others + size, sizeof others - size, " %s", (*verb)->name);
    }
    help_group("others", others, out);
}

static void help_program(FILE *out) {
    help_words(out, program.description, 0, 0);
    fputc('\n', out);
    help_examples(program.examples, HELP_EXAMPLES, out);
    fputc('\n', out);
    help_groups(out);
    fputs("\n'pith COMMAND --help' shows examples and the main options of a command,\n"
          "'pith --help all' what each command does. 'pith --version' prints the version.\n",
          out);
}

/* The names of the verb's main options; NULL: the table does not have it. */
static const char *help_main(const command *c) {
    for (size_t i = 0; i < sizeof mains / sizeof mains[0]; i++)
        if (!strcmp(mains[i].title, c->name)) return mains[i].names;
    return NULL;
}

static void help_short(const command *c, const char *names, FILE *out) {
    const char *end = strchr(c->description, '\n');
    char purpose[1000];
    snprintf(purpose, sizeof purpose, "%.*s",
             (int)(end ? (size_t)(end - c->description) : strlen(c->description)), c->description);
    help_words(out, purpose, 0, 0);
    fputc('\n', out);
    help_examples(c->examples, HELP_EXAMPLES, out);
    fputs("\noptions\n", out);
    help_main_options(c->options, names, out);
    fprintf(out, "\n'pith %s --help all' shows all %zu options and more examples.\n", c->name,
            help_count(c->options));
}

int help_print(const command *c, bool all, FILE *out) {
    const char *names = help_main(c);
    help_forms(c, out);
    fputc('\n', out);
    if (all || (c != &program && !names))
        help_all(c, out);
    else if (c == &program)
        help_program(out);
    else
        help_short(c, names, out);
    return fflush(out) ? EXIT_FAILED : EXIT_DONE;
}

int help_version(void) {
    printf("pith %s\n", pith_version());
    return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
}
