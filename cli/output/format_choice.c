/* format_choice.c - see format_choice.h. */
#include "cli/output/format_choice.h"

#include <stdio.h>
#include <string.h>

#include "cli/base/file_kinds.h"

/* The number of a name in "a|b|c"; -1: it is none of them. */
static int format_number(const char *choices, const char *name, size_t size) {
    for (int number = 0; *choices; number++) {
        const size_t n = strcspn(choices, "|");
        if (n == size && !memcmp(choices, name, size)) return number;
        choices += n + (choices[n] == '|');
    }
    return -1;
}

/* The first of the names "a|b" that is a choice; -1: none is. */
static int format_first(const char *choices, const char *names) {
    int found = -1;
    while (*names && found < 0) {
        const size_t n = strcspn(names, "|");
        found = format_number(choices, names, n);
        names += n + (names[n] == '|');
    }
    return found;
}

/* What the file's name says of formats; NULL: nothing. */
static const file_kind *format_kind(const char *path) {
    const file_kind *kind = path && strcmp(path, "-") ? file_kind_of(path) : NULL;
    return kind && kind->formats ? kind : NULL;
}

/* "jsonl, csv or tsv" for "jsonl|csv|tsv". */
static void format_list(char *out, size_t size, const char *choices) {
    size_t used = 0;
    out[0] = 0;
    while (*choices && used + 40 < size) {
        const size_t n = strcspn(choices, "|");
        const bool last = !choices[n];
        const char *comma = last ? " or " : ", ";
        if (!used) comma = "";
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", comma, (int)n, choices);
        choices += n + !last;
    }
}

static int format_refuse(const command *c, const char *path, const file_kind *kind,
                         const char *choices) {
    char list[200];
    format_list(list, sizeof list, choices);
    return usage(c, "-o %s: results are written as %s here, not as %s; give the file another name",
                 path, list, kind->suffix + 1);
}

int format_choose(const command *c, int *format, const char *path) {
    const file_kind *kind = format_kind(path);
    const option *o = c->options;
    while ((o->row || o->heading) && !(o->row && !strcmp(o->row->name, "format"))) o++;
    if (!kind || !o->row) return EXIT_DONE;
    const char *choices = o->row->choices;
    const int wanted = format_first(choices, kind->formats);
    if (!option_by_flag(format)) {
        if (wanted < 0) return format_refuse(c, path, kind, choices);
        *format = wanted;
        return EXIT_DONE;
    }
    const char *given = choices;
    for (int i = 0; i < *format; i++) given = strchr(given, '|') + 1;
    const size_t size = strcspn(given, "|");
    if (format_number(kind->formats, given, size) >= 0) return EXIT_DONE;
    return usage(c,
                 "--format %.*s and the name %s contradict each other; leave out --format, or give "
                 "the file another name",
                 (int)size, given, path);
}

int format_only(const command *c, const char *format, const char *path) {
    const file_kind *kind = format_kind(path);
    return !kind || format_first(format, kind->formats) >= 0 ? EXIT_DONE
                                                             : format_refuse(c, path, kind, format);
}
