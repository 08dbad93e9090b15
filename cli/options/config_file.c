/* config_file.c - see config_file.h. */
#include "cli/options/config_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/option_sources.h"

/* A configuration has a line for each option; a larger file is something else. */
#define CONFIG_BYTES ((size_t)1 << 20)

static char *config_path_below(const char *folder, const char *below) {
    size_t size = strlen(folder) + strlen(below) + 1;
    char *path = grow(NULL, size);
    snprintf(path, size, "%s%s", folder, below);
    return path;
}

/* Where to look; *must: the file was named. NULL: nowhere. */
static const char *config_place(const char *named, bool *must) {
    const char *variable = getenv("PITH_CONFIG"), *folder = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    *must = true;
    if (named) return *named ? named : NULL;
    if (variable && *variable) return variable;
    *must = false;
    if (folder && *folder) return config_path_below(folder, "/pith/config.json");
    return home && *home ? config_path_below(home, "/.config/pith/config.json") : NULL;
}

/* The bytes of the file, which the caller frees; NULL: it is not there, or *code is set after a
 * message. */
static char *config_read(size_t *size, const command *c, const char *path, bool must, int *code) {
    FILE *file = fopen(path, "re");
    if (!file) {
        /* A process may run for somebody who must not look into this home. */
        if (must || (errno != ENOENT && errno != ENOTDIR && errno != EACCES))
            *code = fail(c, "the configuration %s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    char *text = grow(NULL, CONFIG_BYTES + 1);
    *size = fread(text, 1, CONFIG_BYTES + 1, file);
    if (ferror(file))
        *code = fail(c, "the configuration %s cannot be read: %s", path, strerror(errno));
    else if (*size > CONFIG_BYTES)
        *code = fail(c, "the configuration %s is larger than 1 MiB", path);
    fclose(file);
    if (*code < 0) return text;
    free(text);
    return NULL;
}

/* The value as a flag would give it; NULL: it is no text, number or truth value. */
static const char *config_value(const json_t *value) {
    char number[40];
    if (json_is_boolean(value)) return json_is_true(value) ? "true" : "false";
    if (json_is_string(value)) return config_path_below(json_string_value(value), "");
    if (!json_is_number(value)) return NULL;
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else
        snprintf(number, sizeof number, "%.17g", json_real_value(value));
    return config_path_below(number, "");
}

/* The row whose key it is, or, with *near, that whose key is spelled most like it. */
static const option_row *config_row(const char *key, char near[64]) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        char known[64];
        if (!option_rows[i].anywhere) continue;
        option_key(known, &option_rows[i]);
        size_t distance = spelling_distance(key, known);
        if (!distance) return &option_rows[i];
        if (distance >= best) continue;
        best = distance;
        memcpy(near, known, 64);
    }
    return NULL;
}

static int config_add(config_file *f, const command *c, const char *key, const json_t *value) {
    char near[64] = "", range[200];
    const option_row *row = config_row(key, near);
    if (!row) {
        const char *advice = *near ? "; did you mean \"" : "; docs/options.md lists the keys";
        return usage(c, "%s: \"%s\" is no option%s%s%s", f->path, key, advice, near,
                     *near ? "\"?" : "");
    }
    const char *text = config_value(value);
    option_range(range, sizeof range, row);
    if (!text) {
        const char *kind = "null";
        if (json_is_array(value)) kind = "an array";
        if (json_is_object(value)) kind = "an object";
        return usage(c, "%s: %s %s, not %s", f->path, key, *range ? range : "must be a text", kind);
    }
    f->entries = grow_for(f->entries, f->count, sizeof *f->entries);
    f->entries[f->count++] = (config_entry){ config_path_below(key, ""), text };
    return -1;
}

/* Reads the configuration. Values are checked when a verb takes them, since the same key may belong
 * to several verbs. "preset" is checked here, before presets are looked up. */
int config_open(config_file *f, const command *c, const char *named) {
    static const option preset = { &option_rows[ROW_preset], OPTION_NOWHERE, NULL };
    char label[1200];
    bool must;
    int code = -1;
    size_t size;
    const char *path = f->place = config_place(named, &must), *key, *text;
    char *bytes = path ? config_read(&size, c, path, must, &code) : NULL;
    json_error_t why;
    json_t *root, *value;
    if (!bytes) return code;
    f->path = path;
    root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
    free(bytes);
    if (!root) return usage(c, "%s:%d:%d: %s", path, why.line, why.column, why.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return usage(c, "%s: the configuration is one JSON object, such as {\"threads\": 4}", path);
    }
    json_object_foreach(root, key, value) {
        if (code < 0) code = config_add(f, c, key, value);
    }
    json_decref(root);
    snprintf(label, sizeof label, "%s: preset", path);
    if (code < 0 && (text = config_text(f, "preset")))
        code = option_store(c, label, &preset, NULL, text);
    return code;
}

const char *config_text(const config_file *f, const char *key) {
    for (size_t i = 0; i < f->count; i++)
        if (!strcmp(f->entries[i].key, key)) return f->entries[i].text;
    return NULL;
}
