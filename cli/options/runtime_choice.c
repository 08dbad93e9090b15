/* runtime_choice.c - see runtime_choice.h. */
#include "cli/options/runtime_choice.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/message.h"

static const char *const runtime_names[] = { "builtin", "ort", "auto" };

/* A variable that is set and not empty. */
static const char *variable(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* Splits "cuda:device_id=0,arena=1,cpu" at the commas that begin a name. */
static void split_devices(runtime_choice *choice) {
    const size_t size = strlen(choice->devices) + 1;
    char *part = choice->names = grow(NULL, size);
    memcpy(part, choice->devices, size);
    for (char *next; part; part = next) {
        size_t length = strcspn(part, ",");
        while (part[length]) { /* a part with '=' and without a name before it is one more
                                  setting */
            const char *follows = part + length + 1;
            const size_t n = strcspn(follows, ",:=");
            if (follows[n] != '=') break;
            length += 1 + strcspn(follows, ",");
        }
        next = part[length] ? part + length + 1 : NULL;
        part[length] = 0;
        list_add(&choice->providers, part);
    }
}

int runtime_choice_check(const command *c, const runtime_choice *choice) {
    const struct {
        const char *flag;
        const void *place;
    } flags[] = { { "runtime-strict", &choice->strict }, { "ort-library", &choice->library },
                  { "ort-python", &choice->python },     { "ort-level", &choice->level },
                  { "ort-config", &choice->entries },    { "ort-profile", &choice->profile } };
    if (choice->name) return EXIT_DONE;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (option_by_flag(flags[i].place))
            return usage(c, "--%s goes with --runtime ort or auto", flags[i].flag);
    return EXIT_DONE;
}

void runtime_choice_apply(pith_open_options *open, runtime_choice *choice, int32_t threads) {
    pith_runtime_options options = PITH_RUNTIME_OPTIONS_INIT;
    options.strict = choice->strict;
    options.ort_library = choice->library;
    if (!choice->library && !choice->python) options.ort_library = variable("ORT_DYLIB_PATH");
    options.ort_python = choice->python ? choice->python : variable("VIRTUAL_ENV");
    options.ort_optimization = choice->level;
    options.ort_threads = threads;
    const char *devices = choice->devices;
    if (devices) split_devices(choice);
    if (devices && !strcmp(devices, "auto"))
        choice->providers.count = 0; /* the library's default */
    if (strcmp(runtime_names[choice->name], "ort") != 0) open->devices = devices;
    options.providers = choice->providers.items;
    options.provider_count = choice->providers.count;
    options.settings = choice->entries.items;
    options.setting_count = choice->entries.count;
    options.ort_profile = choice->profile;
    choice->options = options;
    open->runtime = runtime_names[choice->name];
    open->runtime_options = &choice->options;
}

void runtime_choice_free(runtime_choice *choice) {
    free(choice->providers.items);
    free(choice->names);
    free(choice->entries.items);
    *choice = (runtime_choice){ 0 };
}
