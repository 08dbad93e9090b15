/* runtime_choice.c - see runtime_choice.h. */
#include "cli/runtime_choice.h"

#include <stdlib.h>

static const char *const runtime_names[] = { "builtin", "ort", "auto" };

/* A variable that is set and not empty. */
static const char *variable(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

void runtime_choice_apply(pith_open_options *open, runtime_choice *choice, int32_t threads) {
    pith_runtime_options options = PITH_RUNTIME_OPTIONS_INIT;
    options.strict = choice->strict;
    options.ort_library = choice->library ? choice->library : choice->python ? NULL : variable("ORT_DYLIB_PATH");
    options.ort_python = choice->python ? choice->python : variable("VIRTUAL_ENV");
    options.ort_optimization = choice->level;
    options.ort_threads = threads;
    options.providers = choice->providers.items;
    options.provider_count = choice->providers.count;
    options.settings = choice->settings.items;
    options.setting_count = choice->settings.count;
    options.ort_profile = choice->profile;
    choice->options = options;
    open->runtime = runtime_names[choice->name];
    open->runtime_options = &choice->options;
}

void runtime_choice_free(runtime_choice *choice) {
    free(choice->providers.items);
    free(choice->settings.items);
}
