/* cmd_info.c - pith info: the machine and the build, as pith sees them. The table is the JSON
 * object, a line each. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/shared_library.h"
#include "cli/base/cli.h"
#include "cli/hub/curl_library.h"
#include "cli/options/option_sources.h"
#include "cli/options/runtime_choice.h"
#include "cli/options/work_options.h"
#include "cli/output/output.h"

typedef struct info_settings {
    const char *model;
    bool json, stats;
    work_settings work;
    pith_open_options open;
} info_settings;

/* "a b" as ["a", "b"]. */
static json_t *info_words(const char *words) {
    json_t *list = json_array();
    while (*words) {
        size_t n = strcspn(words, " ");
        json_array_append_new(list, json_stringn(words, n));
        words += n + (words[n] != 0);
    }
    return list;
}

/* A number, or null if it is 0, which stands for unknown or for no limit. */
static json_t *info_number(uint64_t n) { return n ? json_integer((json_int_t)n) : json_null(); }

static json_t *info_processor(void) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:i, s:o, s:i, s:I, s:I, s:I}", "model", cpu.model,
                     "isa", cpu.isa, "isas", info_words(cpu.isas), "extensions",
                     info_words(cpu.features), "cores", (int)cpu.cores, "hardware_threads",
                     (int)cpu.cpus, "cpu_quota", info_number((uint64_t)cpu.quota), "usable_threads",
                     (int)cpu.threads, "l1d_bytes", (json_int_t)cpu.l1d_bytes, "l2_bytes",
                     (json_int_t)cpu.l2_bytes, "l3_bytes", (json_int_t)cpu.l3_bytes);
}

static json_t *info_memory(void) {
    pith_memory_info memory = PITH_MEMORY_INFO_INIT;
    pith_memory_report(&memory, NULL, NULL);
    return json_pack("{s:o, s:o, s:o, s:o, s:f, s:f}", "bytes", info_number(memory.total),
                     "available_bytes", info_number(memory.available), "group_limit_bytes",
                     info_number(memory.group_limit), "group_used_bytes",
                     info_number(memory.group_used), "used", memory.used, "stalled",
                     memory.stalled);
}

/* {"found": true, ...} or {"found": false, "why": "..."} */
static json_t *info_library(bool found, const char *key, const char *value) {
    return json_pack("{s:b, s:s}", "found", found, found ? key : "why", value);
}

static json_t *info_curl(void) {
    const char *why = curl_may_not_load();
    if (why) return info_library(false, NULL, why);
    void *handle = pith__library_load((const char *const[]){ "libcurl.so.4" }, 1);
    if (!handle)
        return info_library(
            false, NULL, "libcurl.so.4 cannot be loaded; `pith pull` needs the package libcurl4");
    __typeof__(&curl_version) version;
    return info_library(true, "version",
                        pith__library_find(&version, handle, "curl_version") ? version() : "");
}

/* The library that --runtime ort would load. */
static json_t *info_onnxruntime(void) {
    pith_error err = PITH_ERROR_INIT;
    pith_runtime_report report = PITH_RUNTIME_REPORT_INIT;
    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    runtime_choice choice = { 0 };
    runtime_choice_apply(&open, &choice, 0);
    const bool found = !pith_runtime_probe(&report, "ort", open.runtime_options, &err);
    json_t *library = info_library(found, "version", found ? report.version : err.message);
    if (found) json_object_set_new(library, "path", json_string(report.library));
    runtime_choice_free(&choice);
    return library;
}

static json_t *info_libraries(const pith_build_info *build) {
    json_t *images = info_library(*build->images, "version", pith_version());
    if (*build->images) json_object_set_new(images, "formats", info_words(build->images));
    if (*build->images_missing)
        json_object_set_new(images, "why", json_string(build->images_missing));
    return json_pack("{s:o, s:o, s:o, s:o}", "jansson",
                     info_library(true, "version", jansson_version_str()), "curl", info_curl(),
                     "pith_image", images, "onnxruntime", info_onnxruntime());
}

static json_t *info_make(void) {
    pith_build_info build = PITH_BUILD_INFO_INIT;
    char cache[4096];
    pith_build_report(&build, NULL);
    const bool cached = !pith_model_locate(cache, sizeof cache, NULL, NULL);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?}", "version",
                     pith_version(), "compiler", build.compiler, "processor", info_processor(),
                     "memory", info_memory(), "runtimes", info_words(build.runtimes), "backends",
                     info_words(build.backends), "extra_operators",
                     info_words(build.extra_operators), "libraries", info_libraries(&build),
                     "cache", cached ? cache : NULL, "config", config_in_use());
}

/* Embeds two texts one after the other and adds what the model counted. */
static int info_stats(const command *c, info_settings *s, json_t *info) {
    static const pith_str texts[] = { { "a cat sat on the mat", 20 },
                                      { "a dog ran after the ball", 24 } };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    bytes text = { NULL, 0, 0 };
    int code = work_begin(c, &s->work, &s->open);
    if (code) return code;
    if (pith_model_open(&model, s->model, &s->open, &err)) return fail_model(c, &err, s->model);
    size_t dim = pith_embed_dim(model, NULL);
    float *vector = grow(NULL, dim * sizeof *vector + 1);
    for (size_t i = 0; i < 2 && !code; i++)
        if (pith_embed(vector, model, &texts[i], 1, NULL, &err)) code = fail(c, "%s", err.message);
    if (!code) work_numbers(&text, model, PITH_STATISTICS_JSON);
    if (!code) json_object_set_new(info, "statistics", json_loadb(text.data, text.size, 0, NULL));
    free(text.data);
    free(vector);
    pith_model_close(model);
    return code;
}

/* A line for each value that is no object: "processor.isa    avx2". */
static void info_print(const char *prefix, const json_t *value) {
    const char *key;
    json_t *member;
    size_t i;
    char name[200];
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, member) {
            snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
            info_print(name, member);
        }
        return;
    }
    printf("%-34s ", prefix);
    if (json_is_string(value)) printf("%s", json_string_value(value));
    if (json_is_boolean(value)) printf("%s", json_is_true(value) ? "yes" : "no");
    if (json_is_integer(value)) printf("%lld", (long long)json_integer_value(value));
    if (json_is_real(value)) printf("%.6g", json_real_value(value));
    if (json_is_null(value) || (json_is_array(value) && !json_array_size(value))) printf("-");
    json_array_foreach(value, i, member) printf("%s%s", i ? ", " : "", json_string_value(member));
    putchar('\n');
}

static int info_run(int argc, char **argv) {
    const command *c = &command_info;
    info_settings s = { .work = WORK_SETTINGS_INIT, .open = PITH_OPEN_OPTIONS_INIT };
    string_list rest = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &rest);
    if (code >= 0) return code;
    if (rest.count) return usage(c, "takes no arguments, but '%s' is given", rest.items[0]);
    json_t *info = info_make();
    code = s.stats ? info_stats(c, &s, info) : EXIT_DONE;
    char *text =
        s.json && !code
            ? json_dumps(info, JSON_PRESERVE_ORDER | JSON_INDENT(2) | JSON_REAL_PRECISION(6))
            : NULL;
    if (text) puts(text);
    if (!s.json && !code) info_print("", info);
    free(text);
    json_decref(info);
    return output_close_standard(c, code);
}

#define AT(id, member) OPTION_PLACE(id, info_settings, member)

static const option options[] = {
    AT(json, json),        AT(stats_info, stats),
    AT(model_info, model), OPTIONS_MEMORY(info_settings),
    OPTION_SOURCES,        OPTION_END,
};

static const example examples[] = {
    { "pith info", "a line for each fact" },
    { "pith info --json", "the same as one object" },
    { "pith info --stats", "also what a model counts" },
    { NULL, NULL },
};

const command command_info = {
    .name = "info",
    .summary = "what pith finds on this machine, and what this build has",
    .forms = "[options]",
    .description = "Prints the processor, its instruction sets, caches and cores, memory, the "
                   "limits of control groups, "
                   "runtimes, backends, libraries that were found and why others were not, the "
                   "model cache, the "
                   "configuration that is in use, version and compiler. A limit that is not set is "
                   "null, or - in the "
                   "table.",
    .examples = examples,
    .options = options,
    .run = info_run,
};
