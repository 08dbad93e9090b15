/* option_sources.c - see option_sources.h.
 *
 * A configuration may hold keys of any verb; those that this verb does not have are passed over. A
 * key that no verb has is an error, since it is a slip of the pen more often than not. */
#include "cli/options/option_sources.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/config_file.h"

/* Values that belong together. */
typedef struct preset {
    const char *name, *const *values;
} preset;

#define PRESET(name, help, ...) static const char *const preset_##name[] = { __VA_ARGS__, NULL };
#include "cli/options/presets.def"
#undef PRESET

static const preset presets[] = {
#define PRESET(name, help, ...) { #name, preset_##name },
#include "cli/options/presets.def"
#undef PRESET
};

static config_file config;

const char *config_in_use(void) { return config.path; }

void option_variable(char variable[64], const option_row *row) {
    snprintf(variable, 64, "PITH_%s", row->name);
    for (char *p = variable; *p; p++) *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

void option_key(char key[64], const option_row *row) {
    snprintf(key, 64, "%s", row->name);
    for (char *p = key; *p; p++)
        if (*p == '-') *p = '_';
}

/* What an environment variable says; NULL: nothing. An empty one counts as not set. */
static const char *source_variable(const option_row *row) {
    char variable[64];
    option_variable(variable, row);
    const char *text = getenv(variable);
    return text && *text ? text : NULL;
}

static int store_defaults(const command *c, void *settings) {
    int code = -1;
    for (const option *o = c->options; code < 0 && (o->row || o->heading); o++)
        if (o->row && o->row->initial)
            code = option_store(c, "the default", o, settings, o->row->initial);
    return code;
}

static int store_config(const command *c, void *settings) {
    char label[1200], key[64];
    int code = -1;
    for (const option *o = c->options; code < 0 && (o->row || o->heading); o++) {
        if (!o->row || !o->row->anywhere) continue;
        option_key(key, o->row);
        const char *text = config_text(&config, key);
        snprintf(label, sizeof label, "%s: %s", config.path ? config.path : "", key);
        if (text) code = option_store(c, label, o, settings, text);
    }
    return code;
}

static int store_environment(const command *c, void *settings) {
    char label[64];
    int code = -1;
    for (const option *o = c->options; code < 0 && (o->row || o->heading); o++) {
        const char *text = o->row && o->row->anywhere ? source_variable(o->row) : NULL;
        if (!text) continue;
        option_variable(label, o->row);
        code = option_store(c, label, o, settings, text);
    }
    return code;
}

static int store_preset(const command *c, void *settings, const preset *p) {
    char label[100];
    int code = -1;
    for (const char *const *value = p->values; *value && code < 0; value++) {
        const char *text = strchr(*value, '=') + 1;
        const bool lowers = text[-2] == '<';
        const size_t n = (size_t)(text - *value) - 1 - lowers;
        snprintf(label, sizeof label, "preset %s: %.*s", p->name, (int)n, *value);
        for (const option *o = c->options; code < 0 && (o->row || o->heading); o++)
            if (o->row && o->row->anywhere && strlen(o->row->name) == n &&
                !memcmp(o->row->name, *value, n))
                code = lowers ? option_lower(c, label, o, settings, text)
                              : option_store(c, label, o, settings, text);
    }
    return code;
}

/* The preset that counts; *layer is where it stands: 0 below the configuration, 1 below the
 * environment, 2 above it. A wrong name has been refused before. */
static const preset *find_preset(const char *by_flag, int *layer) {
    const char *by_variable = source_variable(&option_rows[ROW_preset]);
    const char *name = by_flag;
    *layer = 2;
    if (!by_flag && by_variable) {
        name = by_variable;
        *layer = 1;
    } else if (!by_flag) {
        name = config_text(&config, "preset");
        *layer = 0;
    }
    if (!name) return NULL;
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (!strcmp(presets[i].name, name)) return &presets[i];
    return NULL;
}

static bool has_sources(const command *c) {
    for (const option *o = c->options; o->row || o->heading; o++)
        if (o->row && o->row->anywhere) return true;
    return false;
}

int take_sources(const command *c, void *settings, const source_names *names) {
    static const option preset_option = { &option_rows[ROW_preset], OPTION_NOWHERE, NULL };
    int layer, code = store_defaults(c, settings);
    if (code >= 0 || !has_sources(c)) return code;
    code = config_open(&config, c, names->config);
    if (code >= 0) return code;
    if (names->preset) code = option_store(c, "--preset", &preset_option, settings, names->preset);
    if (code >= 0) return code;
    const preset *p = find_preset(names->preset, &layer);
    if (p && layer == 0) code = store_preset(c, settings, p);
    if (code < 0) code = store_config(c, settings);
    if (code < 0 && p && layer == 1) code = store_preset(c, settings, p);
    if (code < 0) code = store_environment(c, settings);
    if (code < 0 && p && layer == 2) code = store_preset(c, settings, p);
    return code;
}
