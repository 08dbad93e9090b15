/* options.c - command line options from a table; messages; small helpers of all commands. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void message(const command *c, const char *format, va_list list) {
    fprintf(stderr, "pith %s: ", c->name);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}

int fail(const command *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    message(c, format, list);
    va_end(list);
    return EXIT_FAILED;
}

int usage(const command *c, const char *format, ...) {
    va_list list;
    va_start(list, format);
    message(c, format, list);
    va_end(list);
    fprintf(stderr, "'pith %s --help' shows how it is used\n", c->name);
    return EXIT_USAGE;
}

int fail_model(const command *c, const pith_error *err, const char *model) {
    fail(c, "%s", err->message);
    if (err->code == PITH_ERR_NOT_FOUND && !strcmp(model, DEFAULT_MODEL))
        fputs("'make model' in Pith's source folder fetches this model; -m takes the directory of any other\n", stderr);
    return EXIT_FAILED;
}

static void write_warning(void *user, pith_log_level level, const char *text) {
    (void)user;
    if (level == PITH_LOG_WARNING) fprintf(stderr, "warning: %s\n", text);
}

const pith_log warnings = { write_warning, NULL };

void *grow(void *memory, size_t bytes) {
    void *grown = realloc(memory, bytes ? bytes : 1);
    if (!grown) {
        fputs("pith: out of memory\n", stderr);
        exit(EXIT_FAILED);
    }
    return grown;
}

double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void list_add(string_list *list, const char *item) {
    list->items = grow(list->items, (list->count + 1) * sizeof *list->items);
    list->items[list->count++] = item;
}

static int choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    for (int index = 0;; index++) {
        size_t n = strcspn(choices, "|");
        if (n == length && !memcmp(choices, text, n)) return index;
        if (!choices[n]) return -1;
        choices += n + 1;
    }
}

/* "4000", "512k", "1.5G": bytes; false if it is none of these, or nothing. */
static bool parse_bytes(size_t *bytes, const char *text) {
    static const char units[] = "kMG";
    char *end;
    double x = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (*end && (!unit || end[1])) return false;
    if (unit) x *= (double)((size_t)1024 << 10 * (unit - units));
    if (end == text || !(x >= 1) || x > 1e18) return false;
    *bytes = (size_t)x;
    return true;
}

/* Stores the option's text; -1 or the exit code. */
static int store(const command *c, const option *o, const char *text) {
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)o->value = true; return -1;
    case OPTION_STRING: *(const char **)o->value = text; return -1;
    case OPTION_LIST: list_add(o->value, text); return -1;
    case OPTION_INT: {
        long long n = strtoll(text, &end, 10);
        if (!*text || *end || errno || n < o->min || n > o->max)
            return usage(c, "--%s takes a number from %lld to %lld, not '%s'", o->name, (long long)o->min,
                         (long long)o->max, text);
        *(int32_t *)o->value = (int32_t)n;
        return -1;
    }
    case OPTION_FLOAT: {
        double x = strtod(text, &end);
        if (!*text || *end || !(x >= 0) || isinf(x)) return usage(c, "--%s takes a number, not '%s'", o->name, text);
        *(double *)o->value = x;
        return -1;
    }
    case OPTION_BYTES:
        if (parse_bytes(o->value, text)) return -1;
        return usage(c, "--%s takes bytes as in 4000, 512k, 64M or 2G, not '%s'", o->name, text);
    case OPTION_CHOICE: {
        int index = choice(o->choices, text);
        if (index < 0) return usage(c, "--%s is one of %s, not '%s'", o->name, o->choices, text);
        *(int *)o->value = index;
        return -1;
    }
    }
    return -1;
}

/* The option an argument names, and its attached value ("--name=value", "-nvalue") or NULL. */
static const option *find(const option *options, const char *argument, const char **value) {
    *value = NULL;
    for (const option *o = options; o->name[0]; o++) {
        size_t n = strlen(o->name);
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

int take_options(const command *c, const option *options, int argc, char **argv, string_list *rest) {
    bool only_rest = false;
    *rest = (string_list){ (const char **)argv + 1, 0 };
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i], *value;
        if (only_rest || argument[0] != '-' || !argument[1]) {
            rest->items[rest->count++] = argument; /* behind what is still to be read */
            continue;
        }
        if (!strcmp(argument, "--")) {
            only_rest = true;
            continue;
        }
        if (!strcmp(argument, "-h") || !strcmp(argument, "--help")) {
            fputs(c->help, stdout);
            return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
        }
        const option *o = find(options, argument, &value);
        if (!o) return usage(c, "unknown option '%s'", argument);
        if (o->kind == OPTION_FLAG && value) return usage(c, "--%s takes no value", o->name);
        if (o->kind != OPTION_FLAG && !value) {
            if (i + 1 == argc) return usage(c, "--%s wants a value", o->name);
            value = argv[++i];
        }
        int code = store(c, o, value);
        if (code >= 0) return code;
    }
    return -1;
}
