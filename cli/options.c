/* options.c - command line options from a table, messages, and small helpers that all verbs use. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/help.h"
#include "cli/json_out.h"

/* The verb that runs, for messages of functions that all share. */
static const command *current;

static void print_message(const command *c, const char *format, va_list list) {
    char text[2000];
    vsnprintf(text, sizeof text, format, list);
    fprintf(stderr, "pith%s%s: %s\n", *c->name ? " " : "", c->name, text);
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
    fprintf(stderr, "'pith %s%s--help' shows how it is used\n", c->name, *c->name ? " " : "");
    return EXIT_USAGE;
}

int fail_model(const command *c, const pith_error *err, const char *model) {
    fail(c, "%s", err->message);
    if (err->code == PITH_ERR_NOT_FOUND && !strcmp(model, DEFAULT_MODEL))
        fputs(
            "'make model' in Pith's source folder fetches this model; give the directory of any other model with -m\n",
            stderr);
    else if (err->code == PITH_ERR_NOT_FOUND && *model && !strchr("./~", *model) && access(model, F_OK) &&
             strstr(err->message, "no model '"))
        fprintf(stderr, "'pith pull %s' fetches it from the hub\n", model);
    return EXIT_FAILED;
}

static void write_warning(void *user, pith_log_level level, const char *text) {
    (void)user;
    if (level == PITH_LOG_WARNING) fprintf(stderr, "warning: %s\n", text);
}

const pith_log warnings = { write_warning, NULL };

void *grow(void *memory, size_t size) {
    void *grown = realloc(memory, size ? size : 1);
    if (!grown) {
        fprintf(stderr, "pith %s: out of memory\n", current ? current->name : "");
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

static int option_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (int index = 0;; index++) {
        size_t n = strcspn(choices, "|");
        if (n == length && !memcmp(choices, text, n)) return index;
        if (!choices[n]) return -1;
        choices += n + 1;
    }
}

/* "4000", "512k", "1.5G": bytes; false if it is none of these, or nothing. */
static bool parse_bytes(size_t *size, const char *text) {
    static const char units[] = "kMG";
    char *end;
    double x = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (*end && (!unit || end[1])) return false;
    if (unit) x *= (double)((size_t)1024 << 10 * (unit - units));
    if (end == text || !(x >= 1) || x > 1e18) return false;
    *size = (size_t)x;
    return true;
}

/* Stores the option's text in the settings; -1 or the exit code. */
static int option_store(const command *c, const option *o, void *settings, const char *text) {
    void *value = (char *)settings + o->place;
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPTION_HEADING: break;
    case OPTION_FLAG: *(bool *)value = true; return -1;
    case OPTION_STRING: *(const char **)value = text; return -1;
    case OPTION_LIST: list_add(value, text); return -1;
    case OPTION_INT: {
        long long n = strtoll(text, &end, 10);
        if (!*text || *end || errno || n < o->min || n > o->max)
            return usage(c, "--%s takes a number from %lld to %lld, not '%s'", o->name, (long long)o->min,
                         (long long)o->max, text);
        *(int32_t *)value = (int32_t)n;
        return -1;
    }
    case OPTION_FLOAT: {
        double x = strtod(text, &end);
        if (!*text || *end || !(x >= 0) || isinf(x))
            return usage(c, "--%s takes a number that is not negative, not '%s'", o->name, text);
        *(double *)value = x;
        return -1;
    }
    case OPTION_BYTES:
        if (parse_bytes(value, text)) return -1;
        return usage(c, "--%s takes bytes as in 4000, 512k, 64M or 2G, not '%s'", o->name, text);
    case OPTION_CHOICE: {
        int index = option_choice(o->choices, text);
        if (index < 0) return usage(c, "--%s is one of %s, not '%s'", o->name, o->choices, text);
        *(int *)value = index;
        return -1;
    }
    }
    return -1;
}

/* The option an argument names, and its attached value ("--name=value", "-nvalue") or NULL. */
static const option *option_find(const option *options, const char *argument, const char **value) {
    *value = NULL;
    for (const option *o = options; o->name; o++) {
        size_t n = strlen(o->name);
        if (!n) continue; /* a heading */
        if (argument[1] == '-') {
            if (strncmp(argument + 2, o->name, n)) continue;
            if (argument[2 + n] == '=') *value = argument + 3 + n;
            if (*value || !argument[2 + n]) return o;
        } else if (o->letter && argument[1] == o->letter) {
            if (argument[2]) *value = argument + 2;
            return o;
        }
    }
    return NULL;
}

/* How many characters must be changed, added or taken away to make b out of a (Levenshtein). */
static size_t spelling_distance(const char *a, const char *b) {
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

bool is_near(const char *typed, const char *name, size_t *best) {
    size_t n = strlen(typed), d = n > 2 && !strncmp(typed, name, n) ? 1 : spelling_distance(typed, name);
    if (d > 2 || d >= n || d >= *best) return false;
    *best = d;
    return true;
}

static int option_unknown(const command *c, const option *options, const char *argument) {
    char typed[40] = "";
    size_t best = SIZE_MAX;
    const char *near = NULL;
    if (argument[1] == '-') snprintf(typed, sizeof typed, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    for (const option *o = options; o->name; o++)
        if (is_near(typed, o->name, &best)) near = o->name;
    if (near) return usage(c, "unknown option '%s'; did you mean --%s?", argument, near);
    return usage(c, "unknown option '%s'", argument);
}

/* The value that follows an option, or NULL after a message. */
static const char *option_next_value(const command *c, const option *options, const option *o, const char *next) {
    const char *attached;
    if (!next)
        usage(c, "--%s needs a value", o->name);
    else if (next[0] == '-' && next[1] && (option_find(options, next, &attached) || !strcmp(next, "--help")))
        usage(c, "--%s needs a value, but '%s' is an option; write --%s=%s if it is the value", o->name, next, o->name,
              next);
    else
        return next;
    return NULL;
}

/* Whether the verb knows --json and it is given; what is wrong with other options is then told in JSON too. */
static void look_for_json(const option *options, int argc, char **argv) {
    for (const option *o = options; o->name; o++)
        for (int i = 1; i < argc && !strcmp(o->name, "json") && strcmp(argv[i], "--"); i++)
            if (!strcmp(argv[i], "--json")) json_failures();
}

int take_model(const command *c, const char **model, const string_list *rest) {
    if (rest->count > 1)
        return usage(c, "give one model, not %zu ('%s' and '%s')", rest->count, rest->items[0], rest->items[1]);
    if (rest->count && *model) return usage(c, "give the model once: with -m or without it, not both");
    if (rest->count) *model = rest->items[0];
    return -1;
}

int take_options(const command *c, void *settings, int argc, char **argv, string_list *rest) {
    const option *options = c->options;
    bool only_rest = false;
    current = c;
    look_for_json(options, argc, argv);
    *rest = (string_list){ (const char **)argv + 1, 0 };
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i], *value;
        if (only_rest || argument[0] != '-' || !argument[1]) {
            rest->items[rest->count++] = argument; /* after what is still to be read */
            continue;
        }
        if (!strcmp(argument, "--")) {
            only_rest = true;
            continue;
        }
        if (!strcmp(argument, "-h") || !strcmp(argument, "--help")) return help_print(c, stdout);
        const option *o = option_find(options, argument, &value);
        if (!o) return option_unknown(c, options, argument);
        if (o->kind == OPTION_FLAG && value) return usage(c, "--%s takes no value", o->name);
        if (o->kind != OPTION_FLAG && !value) {
            value = option_next_value(c, options, o, argv[++i]);
            if (!value) return EXIT_USAGE;
        }
        int code = option_store(c, o, settings, value);
        if (code >= 0) return code;
    }
    return -1;
}
