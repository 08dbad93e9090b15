/* options.c - the flags of a call, messages, and small helpers that all verbs use. */
#include "cli/base/cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_out.h"
#include "cli/base/message.h"
#include "cli/options/field_flags.h"
#include "cli/options/help.h"
#include "cli/options/option_sources.h"
#include "cli/options/other_tools.h"
#include "cli/output/call_files.h"
#include "cli/output/json_out.h"

/* The verb that runs, for messages of functions that all share. */
static const command *current;

static void print_message(const command *c, const char *format, va_list list) {
    char text[2000];
    pith__text_format(text, sizeof text, format, list);
    name_flags(c, text);
    hide_passwords(text);
    note("pith%s%s: %s", *c->name ? " " : "", c->name, text);
    json_print_failure(text);
}

int fail(const command *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    print_message(c, format, list);
    va_end(list);
    return EXIT_FAILED;
}

int usage(const command *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    print_message(c, format, list);
    va_end(list);
    note("'pith %s%s--help' shows how it is used", c->name, *c->name ? " " : "");
    return EXIT_USAGE;
}

static void write_warning(void *user, pith_log_level level, const char *text) {
    char shown[2000];
    (void)user;
    if (level != PITH_LOG_WARNING) return;
    pith__text_print(shown, sizeof shown, "%s", text);
    if (current) name_flags(current, shown);
    note("warning: %s", shown);
}

const pith_log warnings = { write_warning, NULL };

void *grow(void *memory, size_t size) {
    void *grown = realloc(memory, size ? size : 1);
    if (!grown) {
        note("pith %s: out of memory", current ? current->name : "");
        exit(EXIT_FAILED);
    }
    return grown;
}

void *grow_for(void *items, size_t count, size_t item_bytes) {
    if (count & (count - 1)) return items;
    return grow(items, (count ? 2 * count : 1) * item_bytes);
}

void list_add(string_list *list, const char *item) {
    list->items = grow_for(list->items, list->count, sizeof *list->items);
    list->items[list->count++] = item;
}

size_t spelling_distance(const char *a, const char *b) {
    size_t row[40], n = strlen(b);
    if (n >= 40 || strlen(a) >= 40) return SIZE_MAX;
    for (size_t k = 0; k <= n; k++) row[k] = k;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0]++;
        for (size_t k = 0; k < n; k++) {
            size_t change = corner + (a[i] != b[k]), above = row[k + 1] + 1, left = row[k] + 1;
            corner = row[k + 1];
            row[k + 1] = change < above ? change : above;
            if (left < row[k + 1]) row[k + 1] = left;
        }
    }
    return row[n];
}

/* A flag of the call. */
typedef struct given_flag {
    const option *option;
    const char *text;
} given_flag;

/* What the flags of the call have set: addresses in the verb's settings. */
static const void **set_by_flags;
static size_t set_by_flags_count;

bool option_by_flag(const void *place) {
    for (size_t i = 0; i < set_by_flags_count; i++)
        if (set_by_flags[i] == place) return true;
    return false;
}

/* The length of the name that the argument begins with, if it is a name of this row after "--" and
 * is followed by "=" or nothing; else 0. */
static size_t option_named(const option_row *row, const char *argument) {
    const char *names[] = { row->name, row->alias };
    for (size_t i = 0; i < 2 && names[i]; i++) {
        size_t n = strlen(names[i]);
        if (!strncmp(argument, names[i], n) && (argument[n] == '=' || !argument[n])) return n;
    }
    return 0;
}

/* The option an argument names, and its attached value ("--name=value", "-nvalue", "false" of
 * "--no-name") or NULL. */
static const option *option_find(const option *options, const char *argument, const char **value) {
    *value = NULL;
    for (const option *o = options; o->row || o->heading; o++) {
        if (!o->row) continue;
        if (argument[1] == '-') {
            const bool off = option_switched_off(o->row) && !strncmp(argument + 2, "no-", 3);
            size_t n = option_named(o->row, argument + 2);
            if (n && argument[2 + n] == '=') *value = argument + 3 + n;
            if (n) return o;
            if (off && !strcmp(argument + 5, o->row->name)) return *value = "false", o;
        } else if (o->row->letter && argument[1] == o->row->letter) {
            if (argument[2]) *value = argument + 2;
            return o;
        }
    }
    return NULL;
}

void small_letters(char *out, size_t size, const char *text, size_t length) {
    size_t n = 0;
    for (; n < length && text[n] && n + 1 < size; n++)
        out[n] = (char)tolower((unsigned char)text[n]);
    out[n] = 0;
}

bool is_near(const char *typed, const char *name, size_t *best) {
    size_t n = strlen(typed),
           d = n > 2 && !strncmp(typed, name, n) ? 1 : spelling_distance(typed, name);
    if (d > 2 || d >= n || d >= *best) return false;
    *best = d;
    return true;
}

/* The first verb that has the option of this argument; NULL: none has it. */
static const command *option_owner(const char *argument) {
    const char *attached;
    for (const command *const *verb = verbs; *verb; verb++)
        if (option_find((*verb)->options, argument, &attached)) return *verb;
    return NULL;
}

/* An option before any verb. */
static int option_too_early(const command *c, const char *argument) {
    const command *owner = option_owner(argument);
    char hint[500];
    if (!strcmp(argument, "-v")) return usage(c, "unknown option '-v'; -V prints the version");
    if (other_option(hint, sizeof hint, c, argument))
        return usage(c, "unknown option '%s'%s", argument, hint);
    if (owner)
        return usage(c, "options of a command follow its name: pith %s %s ...", owner->name,
                     argument);
    return usage(c, "unknown option '%s'", argument);
}

static int option_unknown(const command *c, const option *options, const char *argument) {
    char typed[40] = "", hint[500];
    size_t best = SIZE_MAX;
    const char *near = NULL;
    if (argument[1] == '-')
        small_letters(typed, sizeof typed, argument + 2, strcspn(argument + 2, "="));
    for (const option *o = options; o->row || o->heading; o++)
        if (o->row && is_near(typed, o->row->name, &best)) near = o->row->name;
    if ((!near || strcmp(near, typed) != 0) && other_option(hint, sizeof hint, c, argument))
        return usage(c, "unknown option '%s'%s", argument, hint);
    if (near) return usage(c, "unknown option '%s'; did you mean --%s?", argument, near);
    const command *owner = option_owner(argument);
    if (owner && argument[1] == '-')
        return usage(c, "unknown option '%s'; 'pith %s' has it", argument, owner->name);
    return usage(c, "unknown option '%s'", argument);
}

/* The value that follows an option, or NULL after a message. */
static const char *option_next_value(const command *c, const option *o, const char *next) {
    const char *attached, *name = o->row->name;
    if (!next)
        usage(c, "--%s needs a value", name);
    else if (next[0] == '-' && next[1] &&
             (option_find(c->options, next, &attached) || !strcmp(next, "--help")))
        usage(c, "--%s needs a value, but '%s' is an option; write --%s=%s if it is the value",
              name, next, name, next);
    else
        return next;
    return NULL;
}

/* Whether the verb knows --json and it is given; what is wrong with other options is then told in
 * JSON too. */
static void look_for_json(const option *options, int argc, char **argv) {
    for (const option *o = options; o->row || o->heading; o++) {
        if (!o->row || argc < 2 || strcmp(o->row->name, "json") != 0) continue;
        for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
            if (!strcmp(argv[i], "--json")) json_failures();
    }
}

int take_model(const command *c, const char **model, const string_list *rest) {
    if (rest->count > 1)
        return usage(c, "give one model, not %zu ('%s' and '%s')", rest->count, rest->items[0],
                     rest->items[1]);
    if (rest->count && option_by_flag(model))
        return usage(c, "give the model once: with -m or without it, not both");
    if (rest->count) *model = rest->items[0];
    return -1;
}

/* What -h, --help, -V and --version print, wherever they stand: the exit code. -1: the argument is
 * none of them. */
static int take_question(const command *c, const char *argument, const char *next) {
    const bool help = !strcmp(argument, "-h") || !strcmp(argument, "--help");
    if (help && option_heeded(&option_rows[ROW_help]))
        return help_print(c, next && !strcmp(next, "all"), stdout);
    if (!strcmp(argument, "--help=all")) return help_print(c, true, stdout);
    if (!*c->name || (strcmp(argument, "-V") && strcmp(argument, "--version"))) return -1;
    return help_version();
}

/* The option of an argument, which may have had another name before. */
static const option *take_option(const command *c, const char *argument, const char **value) {
    const option *o = option_find(c->options, argument, value);
    if (o) return o;
    o = old_option(c, argument, value);
    if (o)
        note("pith %s: %.*s is called --%s now", c->name, (int)strcspn(argument, "="), argument,
             o->row->name);
    return o;
}

/* Reads the flag at argv[*i] and its value. -1 to go on, else the exit code. */
static int take_flag(const command *c, given_flag *flag, int *i, char **argv) {
    const char *argument = argv[*i], *value;
    int code = take_question(c, argument, argv[*i + 1]);
    if (code >= 0) return code;
    const option *o = take_option(c, argument, &value);
    if (!o && !*c->name) return option_too_early(c, argument);
    if (!o) return option_unknown(c, c->options, argument);
    const bool plain = !o->row->takes;
    if (plain && value && !option_switched_off(o->row))
        return usage(c, "--%s takes no value", o->row->name);
    if (!value && (plain || o->row->implied)) value = plain ? "true" : o->row->implied;
    if (!value) value = option_next_value(c, o, argv[++*i]);
    if (!value) return EXIT_USAGE;
    *flag = (given_flag){ o, value };
    return -1;
}

/* Finds the flags among the arguments: flags[*count], and the rest. */
static int take_flags(const command *c, given_flag *flags, size_t *count, int argc, char **argv,
                      string_list *rest) {
    bool only_rest = false;
    *rest = (string_list){ (const char **)argv + 1, 0 };
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (only_rest || argument[0] != '-' || !argument[1]) {
            rest->items[rest->count++] = argument; /* after what is still to be read */
            continue;
        }
        if (!strcmp(argument, "--")) {
            only_rest = true;
            continue;
        }
        int code = take_flag(c, &flags[*count], &i, argv);
        if (code >= 0) return code;
        ++*count;
    }
    return -1;
}

static int store_flags(const command *c, void *settings, const given_flag *flags, size_t count) {
    char label[64];
    set_by_flags = grow(set_by_flags, count * sizeof *set_by_flags);
    set_by_flags_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (flags[i].option->place == OPTION_NOWHERE) continue;
        snprintf(label, sizeof label, "--%s", flags[i].option->row->name);
        int code = option_store(c, label, flags[i].option, settings, flags[i].text);
        if (code >= 0) return code;
        set_by_flags[set_by_flags_count++] = (char *)settings + flags[i].option->place;
    }
    return -1;
}

int take_options(const command *c, void *settings, int argc, char **argv, string_list *rest) {
    given_flag *flags = grow(NULL, (size_t)argc * sizeof *flags);
    size_t count = 0;
    source_names names = { NULL, NULL };
    current = c;
    look_for_json(c->options, argc, argv);
    int code = take_flags(c, flags, &count, argc, argv, rest);
    for (size_t i = 0; i < count; i++) {
        if (!option_heeded(flags[i].option->row)) continue;
        if (flags[i].option->row == &option_rows[ROW_config]) names.config = flags[i].text;
        if (flags[i].option->row == &option_rows[ROW_preset]) names.preset = flags[i].text;
    }
    if (code < 0) code = take_sources(c, settings, &names);
    if (code < 0) code = store_flags(c, settings, flags, count);
    free(flags);
    return code < 0 ? call_files_declare(c, settings, rest, config_in_use()) : code;
}
