/* completion.c - see completion.h. How a value is completed follows from its placeholder in the
 * help: FILE, DIR and MODEL complete paths, choices complete words, and anything else has no
 * completion. */
#include "cli/options/completion.h"

#include <string.h>

#include "cli/options/option_value.h"

#define MODEL_FOLDER "${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}/models"

/* "a|b|c" with spaces between the words. */
static void completion_words(FILE *out, const char *choices) {
    for (; *choices; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Text between single quotes: a quote ends them, stands by itself, and begins them again.
 * Characters of `escaped` get a backslash. */
static void completion_quoted(FILE *out, const char *text, const char *escaped) {
    for (; *text; text++) {
        if (strchr(escaped, *text)) fputc('\\', out);
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static bool completion_takes(const char *takes, const char *what) {
    return takes && !strcmp(takes, what);
}

/* ---- bash ---- */

static void bash_values(const command *c, FILE *out) {
    for (const option *o = c->options; o->row || o->heading; o++) {
        const option_row *row = o->row;
        if (!row || !row->takes || row->implied) continue;
        fputs("        ", out);
        if (row->letter) fprintf(out, "-%c|", row->letter);
        fprintf(out, "--%s%s%s) ", row->name, row->alias ? "|--" : "",
                row->alias ? row->alias : "");
        if (row->choices) {
            fputs("_pith_words \"", out);
            completion_words(out, row->choices);
            fputs("\"; ", out);
        } else if (completion_takes(row->takes, "MODEL") || completion_takes(row->takes, "FILE") ||
                   completion_takes(row->takes, "DIR")) {
            fprintf(out, "_pith_%s; ", row->takes);
        }
        fputs("return ;;\n", out);
    }
}

static void bash_print(FILE *out) {
    fputs("# Completion of pith for bash; made by 'pith --completion bash'.\n\n"
          "_pith_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
          "_pith_FILE() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
          "\"$current\"); }\n"
          "_pith_DIR() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "
          "\"$current\"); }\n"
          "_pith_MODEL() {\n"
          "    _pith_FILE\n"
          "    local folder=" MODEL_FOLDER " path\n"
          "    for path in \"$folder\"/\"$current\"*; do [[ -e $path ]] && "
          "COMPREPLY+=(\"${path##*/}\"); done\n"
          "}\n\n"
          "_pith() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} "
          "options= takes=\n"
          "    COMPREPLY=()\n"
          "    # --name=value arrives as three words\n"
          "    if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then "
          "previous=${COMP_WORDS[COMP_CWORD "
          "- 2]}; fi\n"
          "    if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help ]]; then\n"
          "        _pith_words \"",
          out);
    for (const command *const *verb = verbs; *verb; verb++) fprintf(out, "%s ", (*verb)->name);
    fputs("help --help --version\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", out);
    for (const command *const *verb = verbs; *verb; verb++) {
        fprintf(out, "    %s)\n        case $previous in\n", (*verb)->name);
        bash_values(*verb, out);
        fputs("        esac\n        options=\"", out);
        for (const option *o = (*verb)->options; o->row || o->heading; o++) {
            if (o->row) fprintf(out, "--%s ", o->row->name);
            if (o->row && o->row->alias) fprintf(out, "--%s ", o->row->alias);
            if (o->row && option_switched_off(o->row)) fprintf(out, "--no-%s ", o->row->name);
        }
        fprintf(out, "--help\" takes=%s ;;\n", (*verb)->takes ? (*verb)->takes : "");
    }
    fputs("    esac\n"
          "    if [[ $current == -* ]]; then _pith_words \"$options\"; elif [[ $takes ]]; then "
          "\"_pith_$takes\"; fi\n"
          "}\n\n"
          "complete -F _pith pith\n",
          out);
}

/* ---- zsh ---- */

/* What _arguments calls for a value, with the colon before it. */
static void zsh_action(FILE *out, const char *takes, const char *choices) {
    if (choices) {
        fputs(":(", out);
        completion_words(out, choices);
        fputc(')', out);
    } else {
        const char *words = ": ";
        if (completion_takes(takes, "MODEL"))
            words = ":_pith_models";
        else if (completion_takes(takes, "FILE"))
            words = ":_files";
        else if (completion_takes(takes, "DIR"))
            words = ":_files -/";
        fputs(words, out);
    }
}

static void zsh_option(const option_row *row, FILE *out) {
    const char *often = row->kind == OPTION_LIST ? "*" : "", *value = "";
    if (row->takes) value = row->implied ? "=-" : "=";
    if (row->letter && row->kind == OPTION_LIST)
        fprintf(out, "            '*'{-%c%s,--%s%s}'[", row->letter, row->takes ? "+" : "",
                row->name, value);
    else if (row->letter && row->alias)
        fprintf(out, "            '(-%c --%s --%s)'{-%c%s,--%s%s,--%s%s}'[", row->letter, row->name,
                row->alias, row->letter, row->takes ? "+" : "", row->name, value, row->alias,
                value);
    else if (row->letter)
        fprintf(out, "            '(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name,
                row->letter, row->takes ? "+" : "", row->name, value);
    else if (row->alias)
        fprintf(out, "            {--%s%s,--%s%s}'[", row->name, value, row->alias, value);
    else
        fprintf(out, "            '%s--%s%s[", often, row->name, value);
    completion_quoted(out, row->help, "[]\\");
    fputc(']', out);
    if (row->takes) {
        fprintf(out, "%s%s", row->implied ? "::" : ":", row->takes);
        zsh_action(out, row->takes, row->choices);
    }
    fputs("' \\\n", out);
    if (!option_switched_off(row)) return;
    fprintf(out, "            '--no-%s[not: ", row->name);
    completion_quoted(out, row->help, "[]\\");
    fputs("]' \\\n", out);
}

static void zsh_print(FILE *out) {
    fputs("#compdef pith\n# Completion of pith for zsh; made by 'pith --completion zsh'.\n\n"
          "_pith_models() {\n"
          "    local -a names\n"
          "    names=(\"" MODEL_FOLDER "\"/*(N:t))\n"
          "    compadd -a names\n"
          "    _files\n"
          "}\n\n"
          "_pith() {\n"
          "    local curcontext=$curcontext state\n"
          "    local -a verbs\n"
          "    verbs=(\n",
          out);
    for (const command *const *verb = verbs; *verb; verb++) {
        fprintf(out, "        '%s:", (*verb)->name);
        completion_quoted(out, (*verb)->summary, ":\\");
        fputs("'\n", out);
    }
    fputs("        'help:show the help of a command'\n"
          "    )\n"
          "    _arguments -C '(- *)--help[show help]' '(- *)--version[print the version]' "
          "'1:command:->verb' "
          "'*::argument:->rest' && return\n"
          "    if [[ $state == verb ]] || [[ $state == rest && $words[1] == help ]]; then\n"
          "        _describe command verbs\n"
          "        return\n"
          "    fi\n"
          "    case $words[1] in\n",
          out);
    for (const command *const *verb = verbs; *verb; verb++) {
        fprintf(out, "    %s)\n        _arguments -s \\\n", (*verb)->name);
        for (const option *o = (*verb)->options; o->row || o->heading; o++)
            if (o->row) zsh_option(o->row, out);
        fputs("            '(- *)'{-h,--help}'[show help]'", out);
        if ((*verb)->takes) {
            fprintf(out, " \\\n            '*:%s", (*verb)->takes);
            zsh_action(out, (*verb)->takes, NULL);
            fputc('\'', out);
        }
        fputs("\n        ;;\n", out);
    }
    fputs("    esac\n}\n\n_pith \"$@\"\n", out);
}

/* ---- fish ---- */

/* The flags of `complete` for a value. */
static void fish_value(FILE *out, const char *takes, const char *choices) {
    if (choices) {
        fputs(" -x -a '", out);
        completion_words(out, choices);
        fputc('\'', out);
    } else {
        const char *words = " -x";
        if (completion_takes(takes, "MODEL"))
            words = " -r -F -a '(__pith_models)'";
        else if (completion_takes(takes, "FILE"))
            words = " -r -F";
        else if (completion_takes(takes, "DIR"))
            words = " -x -a '(__fish_complete_directories)'";
        fputs(words, out);
    }
}

static void fish_verb(const command *c, FILE *out) {
    fprintf(out,
            "\ncomplete -c pith -n '__fish_use_subcommand; or __fish_seen_subcommand_from help' -a "
            "%s -d '",
            c->name);
    completion_quoted(out, c->summary, "");
    fputs("'\n", out);
    if (c->takes) {
        fprintf(out, "complete -c pith -n '__fish_seen_subcommand_from %s' -F", c->name);
        if (completion_takes(c->takes, "MODEL")) fputs(" -a '(__pith_models)'", out);
        fputc('\n', out);
    }
    for (const option *o = c->options; o->row || o->heading; o++) {
        const option_row *row = o->row;
        if (!row) continue;
        fprintf(out, "complete -c pith -n '__fish_seen_subcommand_from %s' -l %s", c->name,
                row->name);
        if (row->letter) fprintf(out, " -s %c", row->letter);
        if (row->takes && !row->implied) fish_value(out, row->takes, row->choices);
        if (option_switched_off(row)) fprintf(out, " -l no-%s", row->name);
        if (row->alias) fprintf(out, " -l %s", row->alias);
        fputs(" -d '", out);
        completion_quoted(out, row->help, "");
        fputs("'\n", out);
    }
}

static void fish_print(FILE *out) {
    fputs("# Completion of pith for fish; made by 'pith --completion fish'.\n\n"
          "function __pith_models\n"
          "    set -l folder ~/.cache/pith\n"
          "    set -q XDG_CACHE_HOME; and set folder $XDG_CACHE_HOME/pith\n"
          "    set -q PITH_CACHE; and set folder $PITH_CACHE\n"
          "    string replace -r '.*/' '' -- $folder/models/*\n"
          "end\n\n"
          "complete -c pith -f\n"
          "complete -c pith -n __fish_use_subcommand -l help -s h -d 'show help'\n"
          "complete -c pith -n __fish_use_subcommand -l version -d 'print the version'\n"
          "complete -c pith -n __fish_use_subcommand -a help -d 'show the help of a command'\n",
          out);
    for (const command *const *verb = verbs; *verb; verb++) fish_verb(*verb, out);
}

void completion_print(int shell, FILE *out) {
    static void (*const printers[])(FILE *) = { bash_print, zsh_print, fish_print };
    printers[shell](out);
}
