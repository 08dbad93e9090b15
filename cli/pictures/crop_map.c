/* crop_map.c - see crop_map.h. */
#include "cli/pictures/crop_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input/csv_in.h"

enum { MAP_FILE, MAP_NAME, MAP_X, MAP_Y, MAP_W, MAP_H, MAP_COLUMNS };
static const char *const column_names[MAP_COLUMNS] = { "file", "name", "x", "y", "w", "h" };

static int read_header(size_t *columns, csv_in *in, const command *c) {
    bool there;
    int code = csv_in_next(in, c, &there);
    if (code) return code;
    for (int k = 0; k < MAP_COLUMNS; k++) columns[k] = CSV_FIELDS;
    for (size_t i = 0; i < in->count; i++) {
        for (int k = 0; k < MAP_COLUMNS; k++)
            if (!strcmp(in->fields[i], column_names[k])) columns[k] = i;
        if (!strcmp(in->fields[i], "crop") && columns[MAP_NAME] == CSV_FIELDS)
            columns[MAP_NAME] = i;
    }
    if (columns[MAP_FILE] == CSV_FIELDS || columns[MAP_NAME] == CSV_FIELDS)
        return fail(c,
                    "%s: its first line must name the columns, among them file and name; x, y, w, "
                    "h are a box",
                    in->path);
    return EXIT_DONE;
}

/* "" if the record ends before it, or there is no such column. */
static const char *field(const csv_in *in, size_t column) {
    return column < in->count ? in->fields[column] : "";
}

static char *copy(const char *text) { return strcpy(grow(NULL, strlen(text) + 1), text); }

/* Below the folder: not absolute, no ".." on the way, no folder's name. */
static bool name_is_below(const char *name) {
    const size_t size = strlen(name);
    if (!size || *name == '/' || name[size - 1] == '/') return false;
    for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        const size_t n = strcspn(part, "/");
        if (n == 2 && part[0] == '.' && part[1] == '.') return false;
    }
    return true;
}

/* Eyes, nose and mouth where they are in most faces: level, at two fifths of the height. */
static void fill_landmarks(pith_face *f) {
    static const float places[PITH_FACE_LANDMARKS][2] = {
        { 0.3f, 0.4f }, { 0.7f, 0.4f }, { 0.5f, 0.6f }, { 0.35f, 0.8f }, { 0.65f, 0.8f }
    };
    for (int i = 0; i < PITH_FACE_LANDMARKS; i++) {
        f->landmarks[i][0] = f->box[0] + places[i][0] * f->box[2];
        f->landmarks[i][1] = f->box[1] + places[i][1] * f->box[3];
    }
    f->score = 1;
}

static int read_box(crop_entry *e, const csv_in *in, const size_t *columns, const command *c) {
    int given = 0;
    for (int k = 0; k < 4; k++) given += *field(in, columns[MAP_X + k]) != 0;
    if (!given) return EXIT_DONE;
    for (int k = 0; k < 4; k++) {
        const char *text = field(in, columns[MAP_X + k]);
        char *end;
        const double number = strtod(text, &end);
        if (!*text || *end || !(fabs(number) < 1e9) || (k > 1 && !(number > 0)))
            return fail(
                c,
                "%s, line %zu: the box has %s='%s'; x, y, w and h must be numbers, w and h above 0",
                in->path, in->line, column_names[MAP_X + k], text);
        e->face.box[k] = (float)number;
    }
    e->has_box = true;
    fill_landmarks(&e->face);
    return EXIT_DONE;
}

static int read_entry(crop_map *map, const csv_in *in, const size_t *columns, const command *c) {
    const char *path = field(in, columns[MAP_FILE]), *name = field(in, columns[MAP_NAME]);
    crop_entry e = { .has_box = false };
    if (!*path) return fail(c, "%s, line %zu: there is no file", in->path, in->line);
    if (!name_is_below(name))
        return fail(c, "%s, line %zu: the name '%s' must be a file below the folder of the crops",
                    in->path, in->line, name);
    int code = read_box(&e, in, columns, c);
    if (code) return code;
    e.path = copy(path);
    e.name = copy(name);
    map->items = grow_for(map->items, map->count, sizeof *map->items);
    map->items[map->count++] = e;
    map->unknown += !e.has_box;
    return EXIT_DONE;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_names(const crop_map *map, const command *c, const char *path) {
    const char **names = grow(NULL, map->count * sizeof *names), *twice = NULL;
    for (size_t i = 0; i < map->count; i++) names[i] = map->items[i].name;
    if (map->count) qsort(names, map->count, sizeof *names, by_text);
    for (size_t i = 1; i < map->count && !twice; i++)
        if (!strcmp(names[i - 1], names[i])) twice = names[i];
    free(names);
    return twice ? fail(c, "%s: the name '%s' is there twice", path, twice) : EXIT_DONE;
}

int crop_map_read(crop_map *map, const command *c, const char *path) {
    csv_in in;
    size_t columns[MAP_COLUMNS];
    bool there = true;
    *map = (crop_map){ .count = 0 };
    int code = csv_in_open(&in, c, path);
    if (!code) code = read_header(columns, &in, c);
    while (!code && there) {
        code = csv_in_next(&in, c, &there);
        if (!code && there) code = read_entry(map, &in, columns, c);
    }
    csv_in_close(&in);
    if (!code && !map->count) code = fail(c, "%s: there is no picture in it", path);
    return code ? code : check_names(map, c, path);
}

void crop_map_free(crop_map *map) {
    for (size_t i = 0; i < map->count; i++) {
        free(map->items[i].path);
        free(map->items[i].name);
    }
    free(map->items);
}
