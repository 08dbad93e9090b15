/* option_value.c - see option_value.h. */
#include "cli/options/option_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/other_tools.h"

bool option_heeded(const option_row *row) {
#ifdef PITH_DEAF /* for tests/cli/deaf.py */
    const char *ignored = getenv("PITH_DEAF_TO");
    return !ignored || strcmp(ignored, row->id) != 0;
#else
    (void)row;
    return true;
#endif
}

const option_row option_rows[OPTION_ROWS] = {
#define OPTION(row, field, test, ...) [ROW_##row] = { .id = #row, __VA_ARGS__ },
#include "cli/options/options.def"
#undef OPTION
};

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

static bool parse_int(int32_t *value, const option_row *row, const char *text) {
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!*text || *end || errno || n < row->min || n > row->max) return false;
    *value = (int32_t)n;
    return true;
}

static bool parse_threads(int32_t *value, const option_row *row, const char *text) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    const bool max = !strcmp(text, "max");
    if (!max && strcmp(text, "cores")) return parse_int(value, row, text);
    pith_cpu_report(&cpu, NULL);
    *value = cpu.cores < cpu.threads ? cpu.cores : cpu.threads;
    if (max) *value = cpu.cpus;
    return true;
}

/* A number from 0 to most. */
static bool parse_float(double *value, double most, const char *text) {
    char *end;
    double x = strtod(text, &end);
    if (!*text || *end || !(x >= 0) || x > most || isinf(x)) return false;
    *value = x;
    return true;
}

static bool parse_share(int32_t *percent, const char *text) {
    double x;
    if (!parse_float(&x, 1, text)) return false;
    *percent = x > 0 ? (int32_t)ceil(100 * x - 1e-9) : -1;
    return true;
}

static int parse_bool(const char *text) {
    static const char *const words[2][4] = { { "false", "0", "no", "off" },
                                             { "true", "1", "yes", "on" } };
    for (int i = 0; i < 8; i++)
        if (!strcmp(text, words[i / 4][i % 4])) return i / 4;
    return -1;
}

/* Converts the text by the kind of the option. False if it is no such value; the caller knows the
 * range to tell. */
static bool option_parse(void *value, const option_row *row, const char *text) {
    int index;
    switch (row->kind) {
    case OPTION_FLAG:
        if ((index = parse_bool(text)) >= 0) *(bool *)value = index;
        return index >= 0;
    case OPTION_SWITCH:
        if ((index = parse_bool(text)) >= 0) *(int32_t *)value = index;
        return index >= 0;
    case OPTION_WHETHER:
        if ((index = parse_bool(text)) >= 0)
            *(int32_t *)value = index ? PITH_CHOICE_YES : PITH_CHOICE_NO;
        return index >= 0;
    case OPTION_STRING: *(const char **)value = text; return true;
    case OPTION_LIST: list_add(value, text); return true;
    case OPTION_INT: return parse_int(value, row, text);
    case OPTION_MOST:
        if (!parse_int(value, row, text)) return false;
        if (!*(int32_t *)value) *(int32_t *)value = -1;
        return true;
    case OPTION_THREADS: return parse_threads(value, row, text);
    case OPTION_SHARE: return parse_share(value, text);
    case OPTION_FLOAT: return parse_float(value, HUGE_VAL, text);
    case OPTION_AMOUNT:
        if (!parse_float(value, HUGE_VAL, text)) return false;
        if (!(*(double *)value > 0)) *(double *)value = -1;
        return true;
    case OPTION_BYTES: return parse_bytes(value, text);
    case OPTION_CHOICE:
        if ((index = option_choice(row->choices, text)) >= 0) *(int *)value = index;
        return index >= 0;
    }
    return false;
}

void option_range(char *range, size_t size, const option_row *row) {
    const long long min = row->min, max = row->max;
    *range = 0;
    switch (row->kind) {
    case OPTION_FLAG:
    case OPTION_SWITCH:
    case OPTION_WHETHER: snprintf(range, size, "must be true or false"); break;
    case OPTION_STRING:
    case OPTION_LIST: break;
    case OPTION_INT:
    case OPTION_MOST: snprintf(range, size, "must be a number from %lld to %lld", min, max); break;
    case OPTION_THREADS:
        snprintf(range, size, "must be a number from %lld to %lld, cores or max", min, max);
        break;
    case OPTION_SHARE: snprintf(range, size, "must be a number from 0 to 1"); break;
    case OPTION_FLOAT:
    case OPTION_AMOUNT: snprintf(range, size, "must be a number that is not negative"); break;
    case OPTION_BYTES: snprintf(range, size, "must be bytes as in 4000, 512k, 64M or 2G"); break;
    case OPTION_CHOICE: snprintf(range, size, "is one of %s", row->choices); break;
    }
}

/* A number where a name is wanted: NULL, or the option --NAME-threshold if the command has it. */
static const char *option_threshold(const command *c, const option_row *row, const char *text) {
    char *end;
    if (row->kind != OPTION_CHOICE || !row->name) return NULL;
    strtod(text, &end);
    const size_t length = strlen(row->name);
    if (end == text || *end) return NULL;
    for (const option *o = c->options; o->row || o->heading; o++)
        if (o->row && o->row->name && !strncmp(o->row->name, row->name, length) &&
            !strcmp(o->row->name + length, "-threshold"))
            return o->row->name;
    return NULL;
}

int option_store(const command *c, const char *label, const option *o, void *settings,
                 const char *text) {
    char range[200], hint[400];
    union {
        int32_t number;
        double real;
        size_t bytes;
        const char *string;
        string_list list;
    } unused = { .list = { NULL, 0 } };
    const bool ignored = o->place == OPTION_NOWHERE || !option_heeded(o->row);
    bool good = option_parse(ignored ? (void *)&unused : (char *)settings + o->place, o->row, text);
    if (ignored && o->row->kind == OPTION_LIST) free(unused.list.items);
    if (good) return -1;
    option_range(range, sizeof range, o->row);
    const char *threshold = option_threshold(c, o->row, text);
    if (threshold)
        return usage(c, "%s %s, not '%s'; a threshold is given by --%s", label, range, text,
                     threshold);
    if (!other_value(hint, sizeof hint, o->row, text)) *hint = 0;
    return usage(c, "%s %s, not '%s'%s", label, range, text, hint);
}

/* Whether a number that is there is lower than another of the same kind. 0 stands for none, and -1
 * of OPTION_SHARE too; of OPTION_MOST it is the lowest. */
static bool option_is_lower(int64_t there, int64_t other, option_kind kind) {
    if (kind == OPTION_MOST && there < 0) return true;
    return there > 0 && there < other;
}

int option_lower(const command *c, const char *label, const option *o, void *settings,
                 const char *text) {
    void *place = (char *)settings + o->place;
    const option_kind kind = o->row->kind;
    const size_t size = kind == OPTION_BYTES ? sizeof(size_t) : sizeof(int32_t);
    int32_t number = 0;
    size_t bytes = 0;
    memcpy(kind == OPTION_BYTES ? (void *)&bytes : (void *)&number, place, size);
    int code = option_store(c, label, o, settings, text);
    if (code >= 0) return code;
    const int64_t there = kind == OPTION_BYTES ? (int64_t)bytes : number;
    const int64_t other = kind == OPTION_BYTES ? (int64_t) * (size_t *)place : *(int32_t *)place;
    if (option_is_lower(there, other, kind))
        memcpy(place, kind == OPTION_BYTES ? (void *)&bytes : (void *)&number, size);
    return -1;
}
