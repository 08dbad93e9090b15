/* ort_session.c - see ort_session.h.
 *
 * Execution providers come in the order of the list. CUDA and TensorRT have functions of their own
 * in the library's interface, all others share one. */
#include "engine/runtime/ort_session.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"

/* The setting that says where the external data of a model in memory is. */
#define ORT_DATA_FOLDER "session.model_external_initializers_file_folder_path"

/* The most settings of one provider. */
enum { ORT_SETTINGS_MOST = 32 };

/* A provider of the list: "cuda:device_id=0,gpu_mem_limit=1000". */
typedef struct ort_provider {
    char text[1024]; /* holds the strings below */
    const char *name;
    const char *keys[ORT_SETTINGS_MOST], *values[ORT_SETTINGS_MOST];
    size_t count;
} ort_provider;

/* The names that the library's common function knows, for names as people write them. */
static const struct {
    const char *given, *known;
} ort_known[] = {
    { "azure", "AZURE" },     { "coreml", "CoreML" },   { "directml", "DML" },
    { "dml", "DML" },         { "js", "JS" },           { "openvino", "OpenVINO" },
    { "qnn", "QNN" },         { "vitisai", "VitisAI" }, { "webgpu", "WebGPU" },
    { "xnnpack", "XNNPACK" },
};

static pith_status ort_provider_read(ort_provider *p, const char *text, pith_error *err) {
    static const char suffix[] = "ExecutionProvider";
    int length = snprintf(p->text, sizeof p->text, "%s", text);
    p->name = p->text;
    p->count = 0;
    if (!*text || (size_t)length >= sizeof p->text)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "pith_runtime_options.providers: '" PITH_CUT_FMT
                          "' is empty or longer than %zu bytes",
                          PITH_CUT(pith__str_of(text), 60), sizeof p->text - 1);
    char *rest = strchr(p->text, ':');
    if (rest) *rest++ = 0;
    size_t size = strlen(p->text);
    if (size > strlen(suffix) && !strcmp(p->text + size - strlen(suffix), suffix))
        p->text[size - strlen(suffix)] = 0;
    for (size_t i = 0; i < sizeof ort_known / sizeof *ort_known; i++)
        if (!strcasecmp(p->name, ort_known[i].given)) p->name = ort_known[i].known;
    while (rest && *rest) {
        char *next = strchr(rest, ','), *equal = strchr(rest, '=');
        if (next) *next++ = 0;
        if (!equal || (next && equal >= next) || p->count == ORT_SETTINGS_MOST)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "pith_runtime_options.providers: '%s' needs key=value settings with "
                              "commas between them, at most %d; not '%s'",
                              p->name, ORT_SETTINGS_MOST, rest);
        *equal = 0;
        p->keys[p->count] = rest;
        p->values[p->count++] = equal + 1;
        rest = next;
    }
    return PITH_OK;
}

static pith_status ort_too_old(const pith__ort *ort, const char *what, pith_error *err) {
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "ONNX Runtime %s is too old for the provider %s",
                      ort->version, what);
}

static pith_status ort_add_cuda(const pith__ort *ort, ort_session_options *o, const ort_provider *p,
                                pith_error *err) {
    ort_cuda_options *settings;
    if (!ort->SessionOptionsAppendExecutionProvider_CUDA_V2) return ort_too_old(ort, p->name, err);
    PITH_TRY(pith__ort_check(ort, ort->CreateCUDAProviderOptions(&settings), p->name, err));
    pith_status status = PITH_OK;
    if (p->count)
        status = pith__ort_check(
            ort, ort->UpdateCUDAProviderOptions(settings, p->keys, p->values, p->count), p->name,
            err);
    if (!status)
        status = pith__ort_check(
            ort, ort->SessionOptionsAppendExecutionProvider_CUDA_V2(o, settings), p->name, err);
    ort->ReleaseCUDAProviderOptions(settings);
    return status;
}

static pith_status ort_add_tensorrt(const pith__ort *ort, ort_session_options *o,
                                    const ort_provider *p, pith_error *err) {
    ort_tensorrt_options *settings;
    if (!ort->SessionOptionsAppendExecutionProvider_TensorRT_V2)
        return ort_too_old(ort, p->name, err);
    PITH_TRY(pith__ort_check(ort, ort->CreateTensorRTProviderOptions(&settings), p->name, err));
    pith_status status = PITH_OK;
    if (p->count)
        status = pith__ort_check(
            ort, ort->UpdateTensorRTProviderOptions(settings, p->keys, p->values, p->count),
            p->name, err);
    if (!status)
        status = pith__ort_check(
            ort, ort->SessionOptionsAppendExecutionProvider_TensorRT_V2(o, settings), p->name, err);
    ort->ReleaseTensorRTProviderOptions(settings);
    return status;
}

static pith_status ort_add_provider(const pith__ort *ort, ort_session_options *o,
                                    const ort_provider *p, pith_error *err) {
    if (!strcasecmp(p->name, "cpu")) return PITH_OK; /* it is always there, behind the others */
    if (!strcasecmp(p->name, "cuda")) return ort_add_cuda(ort, o, p, err);
    if (!strcasecmp(p->name, "tensorrt")) return ort_add_tensorrt(ort, o, p, err);
    if (!ort->SessionOptionsAppendExecutionProvider) return ort_too_old(ort, p->name, err);
    return pith__ort_check(
        ort, ort->SessionOptionsAppendExecutionProvider(o, p->name, p->keys, p->values, p->count),
        p->name, err);
}

/* "CPUExecutionProvider, …" of the library. */
static void ort_list_providers(pith__text_out *out, const pith__ort *ort) {
    char **names;
    int count;
    pith_error ignored;
    if (!ort->GetAvailableProviders ||
        pith__ort_check(ort, ort->GetAvailableProviders(&names, &count), "providers", &ignored))
        return;
    for (int i = 0; i < count; i++) pith__text_put(out, "%s%s", i ? ", " : "", names[i]);
    (void)pith__ort_check(ort, ort->ReleaseAvailableProviders(names, count), "providers", &ignored);
}

static pith_status ort_add_providers(const pith__ort *ort, ort_session_options *o,
                                     const pith__program_source *source, pith__text_out *providers,
                                     bool quiet, pith_error *err) {
    const pith_runtime_options *given = source->options;
    pith_error why = PITH_ERROR_INIT; /* of the last one that is passed over */
    for (size_t i = 0; i < given->provider_count; i++) {
        ort_provider p;
        pith_error fault = PITH_ERROR_INIT;
        PITH_TRY(ort_provider_read(&p, given->providers[i], err));
        const bool added = !ort_add_provider(ort, o, &p, &fault);
        pith__count(source->counters, PITH_COUNT_device_choices, 1);
        if (!added) pith__count(source->counters, PITH_COUNT_device_fallbacks, 1);
        if (added)
            pith__text_put(providers, "%s%s", providers->used ? "," : "", p.name);
        else if (!quiet)
            pith__log_write(source->log, PITH_LOG_WARNING, "the provider %s is skipped: %s", p.name,
                            fault.message);
        why = fault;
    }
    if (providers->used) return PITH_OK;
    if (!given->provider_count) {
        pith__count(source->counters, PITH_COUNT_device_choices, 1);
        pith__text_put(providers, "cpu");
        return PITH_OK;
    }
    char list[300];
    pith__text_out has = pith__text_begin(list, sizeof list);
    ort_list_providers(&has, ort);
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "none of the providers can be used (" PITH_STR_FMT "); %s has %s",
                      PITH_STR_ARG(pith__str_of(why.message)), ort->path, list);
}

static pith_status ort_add_settings(const pith__ort *ort, ort_session_options *o,
                                    const pith_runtime_options *given, pith_error *err) {
    char key[256];
    for (size_t i = 0; i < given->setting_count; i++) {
        const char *setting = given->settings[i], *equal = strchr(setting, '=');
        size_t size = equal ? (size_t)(equal - setting) : 0;
        if (!size || size >= sizeof key)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "pith_runtime_options.settings: '" PITH_CUT_FMT
                              "' is not of the form key=value",
                              PITH_CUT(pith__str_of(setting), 60));
        memcpy(key, setting, size);
        key[size] = 0;
        PITH_TRY(pith__ort_check(ort, ort->AddSessionConfigEntry(o, key, equal + 1), setting, err));
    }
    return PITH_OK;
}

/* As many as Pith's own calls may have: ONNX Runtime makes as many as it is asked for. */
enum { ORT_THREADS_MOST = 512 };

static pith_status ort_fill_options(const pith__ort *ort, ort_session_options *o,
                                    const pith__program_source *source, int threads,
                                    pith_error *err) {
    static const int levels[] = { ORT_OPTIMIZE_ALL, ORT_OPTIMIZE_NONE, ORT_OPTIMIZE_BASIC,
                                  ORT_OPTIMIZE_EXTENDED, ORT_OPTIMIZE_ALL };
    const pith_runtime_options *given = source->options;
    if (given->ort_optimization < 0 || given->ort_optimization > 4)
        return pith__fail(err, PITH_ERR_ARGUMENT, "ort_optimization %d is not between 0 and 4",
                          given->ort_optimization);
    if (given->ort_threads < 0 || given->ort_threads > ORT_THREADS_MOST)
        return pith__fail(err, PITH_ERR_ARGUMENT, "ort_threads %d is not between 0 and %d",
                          given->ort_threads, ORT_THREADS_MOST);
    PITH_TRY(
        pith__ort_check(ort, ort->SetSessionLogSeverityLevel(o, ORT_LOG_ERROR), "log level", err));
    PITH_TRY(pith__ort_check(
        ort, ort->SetSessionGraphOptimizationLevel(o, levels[given->ort_optimization]),
        "optimisation level", err));
    PITH_TRY(pith__ort_check(ort, ort->SetIntraOpNumThreads(o, threads), "threads", err));
    if (given->ort_profile)
        PITH_TRY(pith__ort_check(ort, ort->EnableProfiling(o, given->ort_profile),
                                 given->ort_profile, err));
    if (!source->path && source->folder)
        PITH_TRY(pith__ort_check(
            ort, ort->AddSessionConfigEntry(o, ORT_DATA_FOLDER, source->folder), "settings", err));
    return ort_add_settings(ort, o, given, err);
}

pith_status pith__ort_session_create(ort_session **session, pith__text_out *providers,
                                     const pith__ort *ort, const pith__program_source *source,
                                     int threads, bool quiet, pith_error *err) {
    ort_session_options *o;
    PITH_TRY(pith__ort_check(ort, ort->CreateSessionOptions(&o), "options", err));
    pith_status status = ort_fill_options(ort, o, source, threads, err);
    if (!status) status = ort_add_providers(ort, o, source, providers, quiet, err);
    if (!status && source->path)
        status = pith__ort_check(ort, ort->CreateSession(ort->env, source->path, o, session),
                                 "opening the model", err);
    else if (!status)
        status = pith__ort_check(ort,
                                 ort->CreateSessionFromArray(ort->env, source->bytes.data,
                                                             source->bytes.size, o, session),
                                 "opening the model", err);
    ort->ReleaseSessionOptions(o);
    return status;
}
