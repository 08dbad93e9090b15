/* cmd_list.c - pith list: the models on this machine. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/hub/local_models.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

typedef struct list_settings {
    const char *kind;
    bool json;
} list_settings;

static bool list_wanted(const local_model *m, const list_settings *s, const string_list *words) {
    const char *kind = s->kind ? local_model_kind(m) : NULL;
    if (s->kind && (!kind || strcmp(kind, s->kind) != 0)) return false;
    for (size_t i = 0; i < words->count; i++)
        if (!strcasestr(m->name, words->items[i])) return false;
    return true;
}

/* The time in UTC, as ISO 8601 has it, or to the minute here; "-" if it is not known. */
static void list_time(char text[32], const local_model *m, bool iso) {
    const time_t when = local_model_time(m);
    struct tm parts;
    strcpy(text, "-");
    if (!when || !(iso ? gmtime_r(&when, &parts) : localtime_r(&when, &parts))) return;
    strftime(text, 32, iso ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M", &parts);
}

static json_t *list_object(const local_model *m) {
    char when[32];
    const char *kind = local_model_kind(m);
    list_time(when, m, true);
    return json_pack("{s:o, s:o, s:I, s:o, s:s, s:s}", "name", json_text(m->name), "kind",
                     kind ? json_string(kind) : json_null(), "bytes",
                     (json_int_t)local_model_bytes(m->path), "path", json_text(m->path), "modified",
                     when, "cache", m->others ? "huggingface" : "pith");
}

static void list_print_row(const local_model *m, int width) {
    char when[32];
    const char *kind = local_model_kind(m);
    list_time(when, m, false);
    printf("%-*s  %-12s  %8.1f  %-16s  %s\n", width, shown(m->name), kind ? kind : "-",
           (double)local_model_bytes(m->path) / 1e6, when, shown(m->path));
}

static void list_print_table(const local_models *m, const list_settings *s,
                             const string_list *words) {
    int width = 4;
    for (size_t i = 0; i < m->count; i++)
        if (list_wanted(&m->items[i], s, words) && (int)strlen(m->items[i].name) > width)
            width = (int)strlen(m->items[i].name);
    printf("%-*s  %-12s  %8s  %-16s  path\n", width, "name", "kind", "MB", "when");
    for (size_t i = 0; i < m->count; i++)
        if (list_wanted(&m->items[i], s, words)) list_print_row(&m->items[i], width);
}

static int list_run(int argc, char **argv) {
    const command *c = &command_list;
    list_settings s = { NULL, false };
    string_list words;
    local_models m;
    size_t count = 0;
    int code = take_options(c, &s, argc, argv, &words);
    if (code >= 0) return code;
    local_models_find(&m);
    json_t *list = json_array();
    for (size_t i = 0; i < m.count; i++) {
        if (!list_wanted(&m.items[i], &s, &words)) continue;
        count++;
        if (s.json) json_array_append_new(list, list_object(&m.items[i]));
    }
    if (s.json)
        json_print(json_pack("{s:O}", "models", list));
    else if (count)
        list_print_table(&m, &s, &words);
    else
        note("no model %s; 'pith pull minilm' fetches one, 'pith models' lists others",
             m.count ? "on this machine has such a name and kind" : "is on this machine");
    json_decref(list);
    local_models_free(&m);
    return output_close_standard(c, EXIT_DONE);
}

#define AT(id, member) OPTION_PLACE(id, list_settings, member)

static const option options[] = {
    AT(kind_list, kind),
    AT(json_list, json),
    OPTION_END,
};

static const example examples[] = {
    { "pith list", "all models on this machine" },
    { "pith list bge", "those with a word in their name" },
    { "pith list --json", "as JSON, with bytes and times" },
    { NULL, NULL },
};

const command command_list = {
    .name = "list",
    .summary = "list the models on this machine: name, kind, size, time, path",
    .forms = "[options] [WORD...]",
    .description = "Prints the models of the model cache, and those that Hugging Face's tools have "
                   "in theirs, which Pith uses in place. -m accepts each of these names, in any "
                   "case, with or without its organisation.",
    .notes = "- means unknown. 'pith remove NAME' removes a model of the model cache.",
    .examples = examples,
    .options = options,
    .run = list_run,
};
