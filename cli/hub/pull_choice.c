/* pull_choice.c - see pull_choice.h. */
#include "cli/hub/pull_choice.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* Weights in the order in which they are looked for: the file, and a pattern of all that belong to
 * it. */
static const struct {
    const char *file, *with;
} pull_weights[] = {
    { "model.onnx", "model.onnx*" },
    { "onnx/model.onnx", "onnx/model.onnx*" },
    { "model.safetensors", "model.safetensors" },
    { "model.safetensors.index.json", "model-*.safetensors" },
    { "0_*/model.safetensors", "0_*/model.safetensors" },
    { "pytorch_model.bin", "pytorch_model.bin" },
    { "pytorch_model.bin.index.json", "pytorch_model-*.bin" },
    { "*.onnx", "*.onnx*" },
    { "onnx/*.onnx", "onnx/*.onnx*" },
};

static bool pull_fits(const char *pattern, const char *name) {
    return !fnmatch(pattern, name, FNM_PATHNAME);
}

static bool pull_is_asked_for(const char *name, const string_list *patterns) {
    const char *slash = strrchr(name, '/');
    for (size_t i = 0; i < patterns->count; i++)
        if (!fnmatch(patterns->items[i], name, 0) ||
            (slash && !fnmatch(patterns->items[i], slash + 1, 0)))
            return true;
    return false;
}

/* Configuration, tokenizers, tables, and the weights of modules that follow the network (2_Dense).
 */
static bool pull_is_part(const char *name) {
    static const char *const patterns[] = { "*.json",
                                            "*.txt",
                                            "*.model",
                                            "*.jinja",
                                            "artifact.metadata",
                                            "[0-9]*_*/*.json",
                                            "[0-9]*_*/*.txt",
                                            "[1-9]*_*/*.safetensors",
                                            "[1-9]*_*/pytorch_model.bin",
                                            "0_StaticEmbedding/*.safetensors" };
    static const char *const never[] = { "*.index.json", "*train*.json",   "openvino*",
                                         "*.onnx.json",  "CMakeLists.txt", "*requirements*.txt" };
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (pull_fits(never[i], name)) return false;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (pull_fits(patterns[i], name)) return true;
    return false;
}

static size_t pull_want(hub_listing *l, const char *pattern) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        bool fits = pull_fits(pattern, l->files[i].name);
        l->files[i].wanted |= fits;
        count += fits;
    }
    return count;
}

static bool pull_want_listed(hub_listing *l, const char *listed) {
    char name[512];
    bool first = true;
    for (const char *at = listed; at && *at;) {
        size_t n = strcspn(at, " ");
        if (n >= sizeof name) return false;
        memcpy(name, at, n);
        name[n] = 0;
        if (!pull_want(l, name) && first) return false;
        first = false;
        at += n + (at[n] != 0);
    }
    return !first;
}

/* The best weights. Wildcards in the first column take the file that comes first only. */
static void pull_want_weights(hub_listing *l) {
    for (size_t k = 0; k < sizeof pull_weights / sizeof pull_weights[0]; k++)
        for (size_t i = 0; i < l->count; i++) {
            if (!pull_fits(pull_weights[k].file, l->files[i].name)) continue;
            l->files[i].wanted = true;
            if (!strncmp(pull_weights[k].with, "onnx/*", 6) || pull_weights[k].with[0] == '*') {
                char with[600];
                snprintf(with, sizeof with, "%s[._]data*", l->files[i].name);
                pull_want(l, with);
            } else {
                pull_want(l, pull_weights[k].with);
            }
            return;
        }
}

size_t pull_choose(hub_listing *l, bool all, const string_list *patterns, const char *listed) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const char *name = l->files[i].name;
        if (all || patterns->count)
            l->files[i].wanted = all || pull_is_asked_for(name, patterns);
        else
            l->files[i].wanted = pull_is_part(name);
    }
    if (!all && !patterns->count && !pull_want_listed(l, listed)) pull_want_weights(l);
    for (size_t i = 0; i < l->count; i++) count += l->files[i].wanted;
    return count;
}
