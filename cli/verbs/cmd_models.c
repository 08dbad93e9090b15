/* cmd_models.c - pith models: the list of known models, as a table or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/hub/known_models.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

static const char *const models_keys[KNOWN_FIELDS] = {
    "name",    "repository", "export",  "files", "kind",      "dim",  "pooling",
    "prompts", "tokenizer",  "licence", "MB",    "languages", "list",
};

typedef struct models_settings {
    const char *kind;
    bool json;
} models_settings;

/* Whether each word is a part of one of the fields. */
static bool models_match(const known_model *m, const string_list *words) {
    for (size_t i = 0; i < words->count; i++) {
        bool found = false;
        for (int k = 0; k < KNOWN_FIELDS && !found; k++)
            found = strcasestr(m->field[k], words->items[i]) != NULL;
        if (!found) return false;
    }
    return true;
}

static bool models_wanted(const known_model *m, const models_settings *s,
                          const string_list *words) {
    return (!s->kind || !strcmp(s->kind, m->field[KNOWN_KIND])) && models_match(m, words);
}

/* What is not known is null. Files are an array. */
static json_t *models_object(const known_model *m) {
    json_t *object = json_object(), *files = json_array();
    for (int k = 0; k < KNOWN_FIELDS; k++) {
        const char *text = m->field[k];
        if (k == KNOWN_FILES)
            json_object_set(object, models_keys[k], files);
        else if (k == KNOWN_SIZE)
            json_object_set_new(object, "bytes",
                                atoi(text) ? json_integer(atoll(text) * 1000000) : json_null());
        else if (k == KNOWN_DIM)
            json_object_set_new(object, models_keys[k],
                                atoi(text) ? json_integer(atoi(text)) : json_null());
        else
            json_object_set_new(object, models_keys[k], *text ? json_string(text) : json_null());
    }
    for (const char *file = m->field[KNOWN_FILES]; *file;) {
        size_t n = strcspn(file, " ");
        json_array_append_new(files, json_stringn(file, n));
        file += n + (file[n] != 0);
    }
    json_decref(files);
    return object;
}

/* Repositories and files are left to --json: they would make lines too long. */
static bool models_is_column(int k) {
    return k != KNOWN_REPOSITORY && k != KNOWN_EXPORT && k != KNOWN_FILES && k != KNOWN_LIST;
}

static const char *models_cell(const known_model *m, int k) {
    const char *text = m ? m->field[k] : models_keys[k];
    return *text && strcmp(text, "0") ? text : "-";
}

static void models_print_row(const known_model *m, const int *widths) {
    for (int k = 0; k < KNOWN_FIELDS; k++) {
        if (!models_is_column(k)) continue;
        bool number = k == KNOWN_DIM || k == KNOWN_SIZE;
        if (k == KNOWN_LANGUAGES)
            printf("%s\n", models_cell(m, k));
        else
            printf("%*s  ", number ? widths[k] : -widths[k], models_cell(m, k));
    }
}

static void models_print_table(const models_settings *s, const string_list *words) {
    int widths[KNOWN_FIELDS];
    known_model m;
    const char *at = NULL;
    for (int k = 0; k < KNOWN_FIELDS; k++) widths[k] = (int)strlen(models_keys[k]);
    while (known_next(&m, &at))
        for (int k = 0; k < KNOWN_FIELDS && models_wanted(&m, s, words); k++)
            if ((int)strlen(m.field[k]) > widths[k]) widths[k] = (int)strlen(m.field[k]);
    models_print_row(NULL, widths);
    for (at = NULL; known_next(&m, &at);)
        if (models_wanted(&m, s, words)) models_print_row(&m, widths);
}

static bool models_is_verb(const char *word) {
    for (const command *const *verb = verbs; *verb; verb++)
        if (!strcmp(word, (*verb)->name)) return true;
    return false;
}

static int models_run(int argc, char **argv) {
    const command *c = &command_models;
    models_settings s = { NULL, false };
    string_list words;
    known_model m;
    short_name row;
    const char *at = NULL;
    size_t count = 0;
    int code = take_options(c, &s, argc, argv, &words);
    if (code >= 0) return code;
    json_t *list = json_array();
    while (known_next(&m, &at)) {
        if (!models_wanted(&m, &s, &words)) continue;
        count++;
        if (s.json) json_array_append_new(list, models_object(&m));
    }
    if (!count) {
        json_decref(list);
        if (words.count && models_is_verb(words.items[0]))
            return fail(c,
                        "no model of the list has all of these words; '%s' is a command of its "
                        "own: pith %s",
                        words.items[0], words.items[0]);
        if (words.count == 1 && !s.kind && short_find(&row, words.items[0]))
            return fail(c, "%s is not in the list, but 'pith pull %s' fetches it from %s", row.name,
                        row.name, row.full);
        return fail(
            c, "no model of the list has all of these words; 'pith models' shows the whole list");
    }
    if (s.json)
        json_print(json_pack("{s:o}", "models", list));
    else
        models_print_table(&s, &words);
    if (!s.json) json_decref(list);
    return output_close_standard(c, EXIT_DONE);
}

#define AT(id, member) OPTION_PLACE(id, models_settings, member)

static const option options[] = {
    AT(kind, kind),
    AT(json_models, json),
    OPTION_END,
};

static const example examples[] = {
    { "pith models", "the whole list" },
    { "pith models multilingual --kind dense", "those with a word in any column" },
    { "pith models bge small --json", "as JSON" },
    { NULL, NULL },
};

const command command_models = {
    .name = "models",
    .summary = "list known models: dimension, pooling, licence, size, languages",
    .forms = "[options] [WORD...]",
    .description = "Prints the models that fastembed, fastembed-rs and sentence-transformers name, "
                   "without a network. "
                   "A model need not be in the list to be used or pulled.",
    .notes = "- means unknown. 'pith inspect' shows what the files of a model on this machine say.",
    .examples = examples,
    .options = options,
    .run = models_run,
};
