/* completion.c - see completion.h. How a value is completed follows from its placeholder in the help: FILE, DIR and
 * MODEL complete paths, choices complete words, and anything else has no completion. */
#include "cli/completion.h"

#include <string.h>

#include "cli/cli.h"

#define MODEL_FOLDER "${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}/models"

/* "a|b|c" with spaces between the words. */
static void completion_words(FILE *out, const char *choices) {
    for (; *choices; choices++) fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Text between single quotes: a quote ends them, stands by itself, and begins them again. Characters of `escaped` get a
 * backslash. */
static void completion_quoted(FILE *out, const char *text, const char *escaped) {
    for (; *text; text++) {
        if (strchr(escaped, *text)) fputc('\\', out);
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static bool completion_takes(const char *takes, const char *what) { return takes && !strcmp(takes, what); }

/* ---- bash ---- */

static void bash_values(const command *c, FILE *out) {
    for (const option *o = c->options; o->name; o++) {
        if (!o->takes) continue;
        fputs("        ", out);
        if (o->letter) fprintf(out, "-%c|", o->letter);
        fprintf(out, "--%s) ", o->name);
        if (o->choices) {
            fputs("_pith_words \"", out);
            completion_words(out, o->choices);
            fputs("\"; ", out);
        } else if (completion_takes(o->takes, "MODEL") || completion_takes(o->takes, "FILE") ||
                   completion_takes(o->takes, "DIR")) {
            fprintf(out, "_pith_%s; ", o->takes);
        }
        fputs("return ;;\n", out);
    }
}

static void bash_print(FILE *out) {
    fputs("# Completion of pith for bash; made by 'pith --completion bash'.\n\n"
          "_pith_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
          "_pith_FILE() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); }\n"
          "_pith_DIR() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$current\"); }\n"
          "_pith_MODEL() {\n"
          "    _pith_FILE\n"
          "    local folder=" MODEL_FOLDER " path\n"
          "    for path in \"$folder\"/\"$current\"*; do [[ -e $path ]] && COMPREPLY+=(\"${path##*/}\"); done\n"
          "}\n\n"
          "_pith() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options= takes=\n"
          "    COMPREPLY=()\n"
          "    # --name=value arrives as three words\n"
          "    if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD "
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
        for (const option *o = (*verb)->options; o->name; o++)
            if (o->kind != OPTION_HEADING) fprintf(out, "--%s ", o->name);
        fprintf(out, "--help\" takes=%s ;;\n", (*verb)->takes ? (*verb)->takes : "");
    }
    fputs("    esac\n"
          "    if [[ $current == -* ]]; then _pith_words \"$options\"; elif [[ $takes ]]; then \"_pith_$takes\"; fi\n"
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
        fputs(completion_takes(takes, "MODEL")  ? ":_pith_models"
              : completion_takes(takes, "FILE") ? ":_files"
              : completion_takes(takes, "DIR")  ? ":_files -/"
                                                : ": ",
              out);
    }
}

static void zsh_option(const option *o, FILE *out) {
    const char *often = o->kind == OPTION_LIST ? "*" : "", *value = o->takes ? "=" : "";
    if (o->letter && o->kind == OPTION_LIST)
        fprintf(out, "            '*'{-%c%s,--%s%s}'[", o->letter, o->takes ? "+" : "", o->name, value);
    else if (o->letter)
        fprintf(out, "            '(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, o->takes ? "+" : "",
                o->name, value);
    else
        fprintf(out, "            '%s--%s%s[", often, o->name, value);
    completion_quoted(out, o->help, "[]\\");
    fputc(']', out);
    if (o->takes) {
        fprintf(out, ":%s", o->takes);
        zsh_action(out, o->takes, o->choices);
    }
    fputs("' \\\n", out);
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
          "    _arguments -C '(- *)--help[show help]' '(- *)--version[print the version]' '1:command:->verb' "
          "'*::argument:->rest' && return\n"
          "    if [[ $state == verb ]] || [[ $state == rest && $words[1] == help ]]; then\n"
          "        _describe command verbs\n"
          "        return\n"
          "    fi\n"
          "    case $words[1] in\n",
          out);
    for (const command *const *verb = verbs; *verb; verb++) {
        fprintf(out, "    %s)\n        _arguments -s \\\n", (*verb)->name);
        for (const option *o = (*verb)->options; o->name; o++)
            if (o->kind != OPTION_HEADING) zsh_option(o, out);
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
        fputs(completion_takes(takes, "MODEL")  ? " -r -F -a '(__pith_models)'"
              : completion_takes(takes, "FILE") ? " -r -F"
              : completion_takes(takes, "DIR")  ? " -x -a '(__fish_complete_directories)'"
                                                : " -x",
              out);
    }
}

static void fish_verb(const command *c, FILE *out) {
    fprintf(out, "\ncomplete -c pith -n '__fish_use_subcommand; or __fish_seen_subcommand_from help' -a %s -d '",
            c->name);
    completion_quoted(out, c->summary, "");
    fputs("'\n", out);
    if (c->takes) {
        fprintf(out, "complete -c pith -n '__fish_seen_subcommand_from %s' -F", c->name);
        if (completion_takes(c->takes, "MODEL")) fputs(" -a '(__pith_models)'", out);
        fputc('\n', out);
    }
    for (const option *o = c->options; o->name; o++) {
        if (o->kind == OPTION_HEADING) continue;
        fprintf(out, "complete -c pith -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
        if (o->letter) fprintf(out, " -s %c", o->letter);
        if (o->takes) fish_value(out, o->takes, o->choices);
        fputs(" -d '", out);
        completion_quoted(out, o->help, "");
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
