/* cmd_remove.c - pith remove: models out of the model cache.
 *
 * Only what is directly in <cache>/models, or in an organisation's folder there, is removed. The
 * model gets a hidden name first, so that no other process opens a part of it, and the lock of
 * `pith pull` is held meanwhile. Symbolic links are removed and never followed. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/base/remove_tree.h"
#include "cli/hub/local_models.h"
#include "cli/hub/pull_place.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

typedef struct remove_settings {
    bool json;
} remove_settings;

/* Whether a path is the directory, or below it; both may be NULL. */
static bool remove_is_below(const char *path, const char *directory) {
    const size_t n = directory ? strlen(directory) : 0;
    return path && n && !strncmp(path, directory, n) && (!path[n] || path[n] == '/');
}

/* The model of the list that a name means; NULL after a message. */
static const local_model *remove_find(const command *c, const local_models *m, const char *name) {
    char path[PATH_MAX], *real, *other;
    pith_error err = PITH_ERROR_INIT;
    const local_model *found = NULL;
    for (size_t i = 0; i < m->count; i++)
        if (!strcmp(m->items[i].name, name) && !m->items[i].others) return &m->items[i];
    if (pith_model_locate(path, sizeof path, name, &err)) {
        fail(c, "%s", err.message);
        note("'pith list' shows the models on this machine");
        return NULL;
    }
    real = realpath(path, NULL);
    for (size_t i = 0; i < m->count && !found; i++) {
        other = realpath(m->items[i].path, NULL);
        /* of the other cache, path is a snapshot below the model's directory */
        if (remove_is_below(real, other)) found = &m->items[i];
        free(other);
    }
    free(real);
    if (found && !found->others) return found;
    if (found)
        fail(c, "%s is in the cache of Hugging Face's tools, %s; remove it with them", found->name,
             found->path);
    else
        fail(c, "%s is not in the model cache; remove it with rm", path);
    return NULL;
}

/* ---- who needs it ---- */

/* Whether the model at `path` reads files below `real`: it is a link to them, or an adapter to a
 * network that is there. */
static bool remove_is_needed_by(const char *path, const char *real) {
    char base[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    char *there = realpath(path, NULL), config[PATH_MAX];
    bool needed = remove_is_below(there, real);
    free(there);
    snprintf(config, sizeof config, "%s/adapter_config.json", path);
    json_t *adapter = needed ? NULL : json_load_file(config, 0, NULL);
    const char *name = json_string_value(json_object_get(adapter, "base_model_name_or_path"));
    if (name && !pith_model_locate(base, sizeof base, name, &err)) {
        there = realpath(base, NULL);
        needed = there && !strcmp(there, real);
        free(there);
    }
    json_decref(adapter);
    return needed;
}

/* EXIT_DONE, or EXIT_FAILED after a message that names a model which needs this one. */
static int remove_check(const command *c, const local_models *m, const local_model *model) {
    struct stat st;
    int code = EXIT_DONE;
    if (lstat(model->path, &st)) return fail(c, "%s: %s", model->path, strerror(errno));
    if (S_ISLNK(st.st_mode)) return EXIT_DONE; /* what it leads to stays */
    char *real = realpath(model->path, NULL);
    if (!real) return fail(c, "%s: %s", model->path, strerror(errno));
    for (size_t i = 0; i < m->count && !code; i++)
        if (&m->items[i] != model && remove_is_needed_by(m->items[i].path, real))
            code = fail(c, "%s needs %s; remove %s first", m->items[i].name, model->name,
                        m->items[i].name);
    free(real);
    return code;
}

/* ---- removing ---- */

/* With the lock held. */
static int remove_from_cache(const command *c, const local_model *model, const pull_place *place) {
    char hidden[PATH_MAX];
    snprintf(hidden, sizeof hidden, "%s/.%s.%ld.removed", place->folder, place->base,
             (long)getpid());
    if (rename(model->path, hidden))
        return fail(c, "%s cannot be removed: %s", model->path, strerror(errno));
    if (remove_tree(hidden))
        return fail(c, "%s: %s; the rest of it stays there", hidden, strerror(errno));
    return EXIT_DONE;
}

static int remove_model(const command *c, const local_models *m, const char *name, json_t *told) {
    pull_place place = { .lock = -1 };
    struct stat st;
    const local_model *model = remove_find(c, m, name);
    if (!model) return EXIT_FAILED;
    const bool link = !lstat(model->path, &st) && S_ISLNK(st.st_mode);
    const uint64_t freed = link ? 0 : local_model_bytes(model->path);
    int code = remove_check(c, m, model);
    if (!code) code = pull_place_open(&place, c, model->name);
    if (!code) code = remove_from_cache(c, model, &place);
    pull_place_close(&place);
    if (code) return code;
    if (told)
        json_array_append_new(told,
                              json_pack("{s:o, s:o, s:I}", "name", json_text(model->name), "path",
                                        json_text(model->path), "bytes", (json_int_t)freed));
    else if (link)
        printf("removed %s, a link; what it leads to stays\n", shown(model->name));
    else
        printf("removed %s: %.1f MB freed\n", shown(model->name), (double)freed / 1e6);
    return EXIT_DONE;
}

static int remove_run(int argc, char **argv) {
    const command *c = &command_remove;
    remove_settings s = { false };
    string_list names;
    int code = take_options(c, &s, argc, argv, &names);
    if (code >= 0) return code;
    if (!names.count) return usage(c, "give the name of a model; 'pith list' shows them");
    for (size_t i = 0; i < names.count; i++)
        if (!*names.items[i] || strchr("./~", *names.items[i]) || strstr(names.items[i], ".."))
            return usage(c, "'%s' is a path; give a name of 'pith list'", names.items[i]);
    json_t *told = s.json ? json_array() : NULL;
    code = EXIT_DONE;
    for (size_t i = 0; i < names.count; i++) {
        local_models m;
        local_models_find(&m);
        const int one = remove_model(c, &m, names.items[i], told);
        if (one) code = one;
        local_models_free(&m);
    }
    if (told && !code) json_print(json_pack("{s:O}", "removed", told));
    json_decref(told);
    return output_close_standard(c, code);
}

#define AT(id, member) OPTION_PLACE(id, remove_settings, member)

static const option options[] = {
    AT(json_remove, json),
    OPTION_END,
};

static const example examples[] = {
    { "pith remove bge-small-en-v1.5", "says how much was freed" },
    { "pith remove BAAI/bge-m3 splade", "two models" },
    { "pith remove minilm --json", NULL },
    { NULL, NULL },
};

const command command_remove = {
    .name = "remove",
    .summary = "remove models from the model cache",
    .forms = "NAME...",
    .takes = "MODEL",
    .description = "Removes models that 'pith pull' fetched or that were put into the model cache, "
                   "and says how many bytes that frees. It does not ask. A model that another one "
                   "needs, such as the network of an adapter, stays. Nothing outside the model "
                   "cache is removed: not the models of Hugging Face's tools, and not what a link "
                   "leads to.",
    .examples = examples,
    .options = options,
    .run = remove_run,
};
