/* manual.c - see manual.h. Only macros of man(7) that groff and mandoc share are used. */
#include "cli/options/manual.h"

#include <ctype.h>
#include <string.h>

#include "cli/options/help.h"
#include "cli/options/option_value.h"

/* Characters that roff would take for its own: a minus is no hyphen, a backslash begins an escape,
 * and so does a dot or an apostrophe at the beginning of a line. */
static void manual_text(FILE *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        bool begins = !i || text[i - 1] == '\n';
        if (begins && (text[i] == '.' || text[i] == '\'')) fputs("\\&", out);
        if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '\n')
            fputs("\n.PP\n", out);
        else
            fputc(text[i], out);
    }
}

static void manual_line(FILE *out, const char *text) {
    manual_text(out, text, strlen(text));
    fputc('\n', out);
}

static void manual_heading(FILE *out, const char *name) {
    fputs(".SH ", out);
    for (; *name; name++) fputc(toupper((unsigned char)*name), out);
    fputc('\n', out);
}

static void manual_synopsis(const command *c, FILE *out) {
    manual_heading(out, "synopsis");
    for (const char *form = c->forms; *form;) {
        size_t n = strcspn(form, "\n");
        if (form > c->forms) fputs(".br\n", out);
        fprintf(out, "\\fBpith%s%s\\fR ", *c->name ? " " : "", c->name);
        manual_text(out, form, n);
        fputc('\n', out);
        form += n + (form[n] != 0);
    }
}

static void manual_option_name(FILE *out, const char *before, const char *name) {
    fprintf(out, "%s\\fB\\-\\-", before);
    manual_text(out, name, strlen(name));
    fputs("\\fR", out);
}

/* Section OPTIONS. The sentence of an option is that of --help, so that the two cannot differ. */
static void manual_options(const option *options, FILE *out) {
    manual_heading(out, "options");
    char text[600];
    for (const option *o = options; o->row || o->heading; o++) {
        const option_row *row = o->row;
        if (!row) {
            fprintf(out, ".SS %c%s\n", toupper((unsigned char)o->heading[0]), o->heading + 1);
            continue;
        }
        fputs(".TP\n", out);
        if (row->letter) fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
        manual_option_name(out, "", row->name);
        if (row->takes)
            fprintf(out, "%s\\fI%s\\fR%s", row->implied ? "[=" : " ", row->takes,
                    row->implied ? "]" : "");
        if (option_switched_off(row))
            manual_option_name(out, ", ", "no-"), manual_text(out, row->name, strlen(row->name));
        if (row->alias) manual_option_name(out, ", ", row->alias);
        fputc('\n', out);
        help_meaning(text, sizeof text, row);
        manual_line(out, text);
    }
}

static void manual_examples(const example *examples, FILE *out) {
    manual_heading(out, "examples");
    fputs(".nf\n", out);
    for (const example *e = examples; e->line; e++) {
        manual_text(out, e->line, strlen(e->line));
        if (e->result) {
            fputs("    # ", out);
            manual_text(out, e->result, strlen(e->result));
        }
        fputc('\n', out);
    }
    fputs(".fi\n", out);
}

static void manual_environment(FILE *out) {
    manual_heading(out, "environment");
    fputs(".TP\n.B PITH_CONFIG\nThe file with options; see pith help embed, and docs/options.md "
          "for its keys. Most "
          "options "
          "that are not about one call have a variable too, such as PITH_THREADS.\n"
          ".TP\n.B PITH_CACHE\nThe folder of the model cache. Without it the cache is "
          "$XDG_CACHE_HOME/pith, else "
          "~/.cache/pith.\n"
          ".TP\n.B PITH_ISA\nThe newest instruction set that is used: scalar, avx2, avx512 or "
          "neon. It changes speed. It "
          "changes vectors only in bf16.\n",
          out);
}

static void manual_see_also(const command *c, FILE *out) {
    manual_heading(out, "see also");
    if (c != &program) {
        fputs(".BR pith (1)\n", out);
        return;
    }
    for (const command *const *verb = verbs; *verb; verb++)
        fprintf(out, ".BR pith\\-%s (1)%s\n", (*verb)->name, verb[1] ? "," : "");
}

/* The page of one verb, or of the program itself, which lists all verbs in addition. */
void manual_print(const command *c, FILE *out) {
    fputs(".\\\" Made by 'pith --man'; the text is in the source of the command.\n.TH PITH", out);
    if (*c->name) fputc('-', out);
    for (const char *p = c->name; *p; p++) fputc(toupper((unsigned char)*p), out);
    fprintf(out, " 1 " PITH_RELEASE_DATE " \"pith %s\" \"Pith Manual\"\n", pith_version());
    manual_heading(out, "name");
    fprintf(out, "pith%s%s \\- ", *c->name ? "\\-" : "", c->name);
    manual_line(out, c->summary);
    manual_synopsis(c, out);
    manual_heading(out, "description");
    manual_line(out, c->description);
    if (c == &program) {
        manual_heading(out, "commands");
        for (const command *const *verb = verbs; *verb; verb++) {
            fprintf(out, ".TP\n.BR pith\\-%s (1)\n", (*verb)->name);
            manual_line(out, (*verb)->summary);
        }
    }
    manual_options(c->options, out);
    if (c->notes) {
        manual_heading(out, "notes");
        manual_line(out, c->notes);
    }
    manual_examples(c->examples, out);
    manual_heading(out, "exit status");
    fputs("0 if everything is done, 1 if the work or a part of it failed, 2 for wrong usage.\n",
          out);
    if (c == &program) manual_environment(out);
    manual_see_also(c, out);
}
