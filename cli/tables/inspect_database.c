/* inspect_database.c - see inspect_database.h. */
#include "cli/tables/inspect_database.h"

#include <jansson.h>
#include <pith/tables.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text_out.h"
#include "cli/base/message.h"
#include "cli/base/text_input.h"
#include "cli/drawing/drawing.h"
#include "cli/options/field_flags.h"
#include "cli/output/output.h"

static const char *database_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? shown(text) : "";
}

static long long database_number(const json_t *object, const char *key) {
    return (long long)json_integer_value(json_object_get(object, key));
}

bool inspect_is_database(const char *path) {
    char magic[8] = "";
    const size_t n = strlen(path);
    if (n > 4 && !strcmp(path + n - 4, ".rdb")) return true;
    FILE *f = fopen(path, "rb");
    const bool read = f && fread(magic, 1, sizeof magic, f) == sizeof magic;
    if (f) fclose(f);
    return read && !memcmp(magic, "PITHRDB", sizeof magic);
}

/* ---- for people ---- */

/* A time in seconds since 1970 as ISO 8601, or the number where no calendar has it. */
static void database_time(char *text, size_t size, double seconds) {
    const time_t t = fabs(seconds) < 1e14 ? (time_t)seconds : 0;
    struct tm parts;
    if (!(fabs(seconds) < 1e14) || !gmtime_r(&t, &parts) ||
        !strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts))
        snprintf(text, size, "%.0f s", seconds);
}

static void database_print_range(const json_t *column) {
    const json_t *least = json_object_get(column, "least"),
                 *greatest = json_object_get(column, "greatest");
    char from[64], to[64];
    if (!least || !greatest) return;
    if (!strcmp(database_text(column, "stype"), "timestamp")) {
        database_time(from, sizeof from, json_number_value(least));
        database_time(to, sizeof to, json_number_value(greatest));
        printf("%s to %s", from, to);
    } else {
        printf("%.6g to %.6g", json_number_value(least), json_number_value(greatest));
    }
}

static void database_print_statistics(const json_t *column) {
    const double mean = json_number_value(json_object_get(column, "mean")),
                 deviation = json_number_value(json_object_get(column, "deviation"));
    const char *stype = database_text(column, "stype");
    char text[64];
    if (!json_object_get(column, "mean") || !database_number(column, "distinct")) return;
    if (!strcmp(stype, "boolean")) {
        printf("%.1f %% yes", 100 * mean);
    } else if (!strcmp(stype, "timestamp")) {
        database_time(text, sizeof text, mean);
        printf(", mean %s, deviation %.4g days", text, deviation / 86400);
    } else {
        const bool log = json_is_true(json_object_get(column, "logarithm"));
        printf(", %smean %.6g, deviation %.6g", log ? "logarithm's " : "", mean, deviation);
    }
}

static void database_print_table(const json_t *table) {
    const json_t *columns = json_object_get(table, "columns");
    const char *time = database_text(table, "time");
    size_t i;
    json_t *column;
    int width = 6;
    json_array_foreach(columns, i, column) {
        const size_t n = strlen(database_text(column, "name"));
        if (n > (size_t)width) width = n < 40 ? (int)n : 40;
    }
    printf("\n%s: %lld rows%s%s\n", database_text(table, "name"), database_number(table, "rows"),
           *time ? ", time " : "", time);
    if (i) printf("  %-*s  %-11s  %8s  %8s\n", width, "column", "stype", "nulls", "distinct");
    json_array_foreach(columns, i, column) {
        printf("  %-*s  %-11s  %8lld  %8lld  ", width, database_text(column, "name"),
               database_text(column, "stype"), database_number(column, "nulls"),
               database_number(column, "distinct"));
        database_print_range(column);
        database_print_statistics(column);
        if (*database_text(column, "known_at"))
            printf("; known at %s", database_text(column, "known_at"));
        if (database_number(column, "known_delay_seconds"))
            printf(" + %lld s", database_number(column, "known_delay_seconds"));
        putchar('\n');
    }
}

static void database_print(const json_t *d, const char *path) {
    size_t i;
    json_t *item;
    const char *name = database_text(d, "name");
    printf("database %s%s%s: %zu tables, %lld texts, each a vector of %lld numbers by %s\n", path,
           *name ? ", " : "", name, json_array_size(json_object_get(d, "tables")),
           database_number(d, "texts"), database_number(d, "dim"), database_text(d, "embedder"));
    json_array_foreach(json_object_get(d, "tables"), i, item) database_print_table(item);
    json_array_foreach(json_object_get(d, "links"), i, item)
        printf("%s  %s -> %s: %lld nulls, %lld dangling\n", i ? "" : "\nforeign keys\n",
               database_text(item, "name"), database_text(item, "parent"),
               database_number(item, "nulls"), database_number(item, "dangling"));
    json_array_foreach(json_object_get(d, "tasks"), i, item)
        printf("%s  %s: %s.%s, %lld rows of training, %lld of validation, %lld of test\n",
               i ? "" : "\ntasks\n", database_text(item, "name"), database_text(item, "table"),
               database_text(item, "target"), database_number(item, "train"),
               database_number(item, "validation"), database_number(item, "test"));
    json_array_foreach(json_object_get(d, "warnings"), i, item) {
        char text[2000];
        pith__text_print(text, sizeof text, "%s", json_string_value(item));
        name_flags(&command_inspect, text);
        printf("%s  %s\n", i ? "" : "\nwarnings\n", text);
    }
}

/* ---- the whole ---- */

static int database_draw(const command *c, const json_t *d, const char *path, const char *svg) {
    const string_list inputs = { &path, 1 };
    output out;
    int code = output_open(&out, c, svg, &inputs);
    if (code) return code;
    const char *wrong = database_diagram(out.file, d);
    if (wrong) code = fail(c, "%s: %s", path, wrong);
    return output_close(&out, c, !wrong, code);
}

static int database_describe(const command *c, const char *path, bytes *text) {
    pith_error err = PITH_ERROR_INIT;
    pith_database *database;
    if (pith_database_open(&database, path, NULL, &err)) return fail(c, "%s", err.message);
    const pith_writer writer = bytes_writer(text);
    const pith_status status = pith_database_describe(database, NULL, &writer, &err);
    pith_database_close(database);
    return status ? fail(c, "%s", err.message) : EXIT_DONE;
}

int inspect_database(const command *c, const char *path, const char *svg, bool as_json) {
    bytes text = { NULL, 0, 0 };
    int code = database_describe(c, path, &text);
    json_t *d = code ? NULL : json_loadb(text.data, text.size, JSON_ALLOW_NUL, NULL);
    if (!code && !d) code = fail(c, "%s: the description cannot be read", path);
    if (!code && svg) code = database_draw(c, d, path, svg);
    const bool taken = svg && !strcmp(svg, "-"); /* standard output has the diagram */
    if (!code && as_json && !taken) {
        fwrite(text.data, 1, text.size, stdout);
        putchar('\n');
    }
    if (!code && !as_json && !taken) database_print(d, path);
    json_decref(d);
    free(text.data);
    return output_close_standard(c, code);
}
