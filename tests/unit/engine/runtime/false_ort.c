/* false_ort.c - libraries that say they are ONNX Runtime, for test_runtime_ort.c.
 *
 * FALSE_ORT_KIND: 0: without the symbol; 1: GetApi returns NULL; 2: version 1.3; 3: a library with
 * every function of engine/runtime/ort_slots.def. It runs any model as y = x + 1000 on its one
 * input "X" and output "Y", writes down what it is told, counts what it has made, and fails where
 * it is told to. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "false_ort.h"
#include "engine/runtime/ort_library.h"

#define EXPORT __attribute__((visibility("default")))
extern false_ort_state false_ort_state_now;
EXPORT false_ort_state false_ort_state_now;
#define state false_ort_state_now

#if FALSE_ORT_KIND > 0

struct ort_status {
    char text[100];
};
struct ort_value {
    float *data;
    bool owned;
    int64_t dims[PITH_MAX_RANK];
    size_t rank;
};
struct ort_shape {
    const ort_value *value;
};
struct ort_run_options {
    atomic_int ended;
};

static ort_status *fail_if_due(const char *what) {
    if (++state.calls_made != state.fail_at) return NULL;
    ort_status *s = malloc(sizeof *s);
    snprintf(s->text, sizeof s->text, "%s was told\nto fail", what);
    state.alive++;
    return s;
}
#define DUE                                                                                        \
    do {                                                                                           \
        ort_status *due = fail_if_due(__func__ + strlen("false_"));                                \
        if (due) return due;                                                                       \
    } while (0)

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    va_list list;
    size_t used = strlen(state.calls);
    va_start(list, format);
    vsnprintf(state.calls + used, sizeof state.calls - used, format, list);
    va_end(list);
}

static void note_settings(const char *name, const char *const *keys, const char *const *values,
                          size_t count) {
    note("%s", name);
    for (size_t i = 0; i < count; i++) note(" %s=%s", keys[i], values[i]);
    note("\n");
}

static void *made(size_t bytes) {
    state.alive++;
    return calloc(1, bytes ? bytes : 1);
}

static void release(void *object) {
    if (object) state.alive--;
    free(object);
}

static int false_GetErrorCode(const ort_status *s) { return (void)s, 1; }
static const char *false_GetErrorMessage(const ort_status *s) { return s->text; }
static ort_status *false_CreateEnvWithCustomLogger(ort_log_fn *log, void *user, int level,
                                                   const char *id, ort_env **env) {
    static char only;
    (void)log, (void)user, (void)level, (void)id;
    DUE;
    *env = (ort_env *)&only;
    return NULL;
}
static ort_status *false_CreateSession(const ort_env *env, const char *path,
                                       const ort_session_options *options, ort_session **session) {
    (void)env, (void)options;
    DUE;
    note("CreateSession %s\n", strrchr(path, '/') + 1);
    state.sessions++;
    *session = made(1);
    return NULL;
}
static ort_status *false_CreateSessionFromArray(const ort_env *env, const void *data, size_t size,
                                                const ort_session_options *options,
                                                ort_session **session) {
    (void)env, (void)data, (void)options;
    DUE;
    note("CreateSessionFromArray %zu\n", size);
    state.sessions++;
    *session = made(1);
    return NULL;
}
static ort_status *false_Run(ort_session *session, const ort_run_options *options,
                             const char *const *input_names, const ort_value *const *inputs,
                             size_t input_count, const char *const *output_names,
                             size_t output_count, ort_value **outputs) {
    (void)session;
    DUE;
    while (state.waits && !options->ended) usleep(1000);
    if (options->ended) {
        state.fail_at = state.calls_made + 1;
        return fail_if_due("Run was ended and");
    }
    if (input_count != 1 || output_count != 1 || strcmp(input_names[0], "X") ||
        strcmp(output_names[0], "Y"))
        abort();
    ort_value *y = made(sizeof *y);
    int64_t n = 1;
    *y = *inputs[0];
    for (size_t i = 0; i < y->rank; i++) n *= y->dims[i];
    y->data = malloc((size_t)n * sizeof(float) + 1);
    y->owned = true;
    for (int64_t i = 0; i < n; i++) y->data[i] = inputs[0]->data[i] + 1000;
    outputs[0] = y;
    return NULL;
}
static ort_status *false_CreateSessionOptions(ort_session_options **o) {
    DUE;
    *o = made(1);
    return NULL;
}
static ort_status *false_EnableProfiling(ort_session_options *o, const char *prefix) {
    (void)o;
    DUE;
    note("EnableProfiling %s\n", prefix);
    return NULL;
}
static ort_status *false_SetSessionLogSeverityLevel(ort_session_options *o, int level) {
    (void)o, (void)level;
    DUE;
    return NULL;
}
static ort_status *false_SetSessionGraphOptimizationLevel(ort_session_options *o, int level) {
    (void)o;
    DUE;
    note("level %d\n", level);
    return NULL;
}
static ort_status *false_SetIntraOpNumThreads(ort_session_options *o, int threads) {
    (void)o;
    DUE;
    note("threads %d\n", threads);
    return NULL;
}
static ort_status *false_SessionGetInputCount(const ort_session *s, size_t *count) {
    (void)s;
    DUE;
    *count = 1;
    return NULL;
}
static ort_status *false_SessionGetOutputCount(const ort_session *s, size_t *count) {
    return false_SessionGetInputCount(s, count);
}
static ort_status *false_SessionGetInputName(const ort_session *s, size_t i, ort_allocator *a,
                                             char **name) {
    (void)s, (void)i, (void)a;
    DUE;
    *name = made(2);
    strcpy(*name, "X");
    return NULL;
}
static ort_status *false_SessionGetOutputName(const ort_session *s, size_t i, ort_allocator *a,
                                              char **name) {
    return false_SessionGetInputName(s, i, a, name);
}
static ort_status *false_CreateRunOptions(ort_run_options **o) {
    DUE;
    *o = made(sizeof **o);
    return NULL;
}
static ort_status *false_RunOptionsSetTerminate(ort_run_options *o) {
    o->ended = 1;
    return NULL;
}
static ort_status *false_RunOptionsUnsetTerminate(ort_run_options *o) {
    o->ended = 0;
    return NULL;
}
static ort_status *false_CreateTensorWithDataAsOrtValue(const ort_memory_info *where, void *data,
                                                        size_t bytes, const int64_t *dims,
                                                        size_t rank, int type, ort_value **value) {
    (void)where, (void)bytes;
    DUE;
    if (type != PITH_F32) abort();
    *value = made(sizeof **value);
    (*value)->data = data;
    (*value)->rank = rank;
    memcpy((*value)->dims, dims, rank * sizeof *dims);
    return NULL;
}
static ort_status *false_IsTensor(const ort_value *value, int *is_tensor) {
    (void)value;
    DUE;
    *is_tensor = 1;
    return NULL;
}
static ort_status *false_GetTensorMutableData(ort_value *value, void **data) {
    DUE;
    *data = value->data;
    return NULL;
}
static ort_status *false_GetTensorElementType(const ort_shape *shape, int *type) {
    (void)shape;
    DUE;
    *type = PITH_F32;
    return NULL;
}
static ort_status *false_GetDimensionsCount(const ort_shape *shape, size_t *count) {
    DUE;
    *count = shape->value->rank;
    return NULL;
}
static ort_status *false_GetDimensions(const ort_shape *shape, int64_t *dims, size_t count) {
    DUE;
    memcpy(dims, shape->value->dims, count * sizeof *dims);
    return NULL;
}
static ort_status *false_GetTensorTypeAndShape(const ort_value *value, ort_shape **shape) {
    DUE;
    *shape = made(sizeof **shape);
    (*shape)->value = value;
    return NULL;
}
static ort_status *false_CreateCpuMemoryInfo(int allocator, int kind, ort_memory_info **where) {
    static char only;
    (void)allocator, (void)kind;
    DUE;
    *where = (ort_memory_info *)&only;
    return NULL;
}
static ort_status *false_AllocatorFree(ort_allocator *allocator, void *memory) {
    (void)allocator;
    release(memory);
    DUE;
    return NULL;
}
static ort_status *false_GetAllocatorWithDefaultOptions(ort_allocator **allocator) {
    static char only;
    DUE;
    *allocator = (ort_allocator *)&only;
    return NULL;
}
static void false_ReleaseStatus(ort_status *s) { release(s); }
static void false_ReleaseSession(ort_session *s) { release(s); }
static void false_ReleaseValue(ort_value *v) {
    if (v && v->owned) free(v->data);
    release(v);
}
static void false_ReleaseRunOptions(ort_run_options *o) { release(o); }
static void false_ReleaseTensorTypeAndShapeInfo(ort_shape *s) { release(s); }
static void false_ReleaseSessionOptions(ort_session_options *o) { release(o); }
static ort_status *false_GetAvailableProviders(char ***names, int *count) {
    static char name[] = "FalseExecutionProvider", *all[] = { name };
    *names = all;
    *count = 1;
    return NULL;
}
static ort_status *false_ReleaseAvailableProviders(char **names, int count) {
    return (void)names, (void)count, NULL;
}
static ort_status *false_AddSessionConfigEntry(ort_session_options *o, const char *key,
                                               const char *value) {
    (void)o;
    DUE;
    note("config %s=%s\n", key, value);
    return NULL;
}
#define OWN(kind, type)                                                                            \
    static ort_status *false_Create##kind##ProviderOptions(type **s) {                             \
        DUE;                                                                                       \
        *s = made(1);                                                                              \
        return NULL;                                                                               \
    }                                                                                              \
    static ort_status *false_Update##kind##ProviderOptions(                                        \
        type *s, const char *const *keys, const char *const *values, size_t count) {               \
        (void)s;                                                                                   \
        DUE;                                                                                       \
        note_settings(#kind " settings", keys, values, count);                                     \
        return NULL;                                                                               \
    }                                                                                              \
    static void false_Release##kind##ProviderOptions(type *s) { release(s); }                      \
    static ort_status *false_SessionOptionsAppendExecutionProvider_##kind##_V2(                    \
        ort_session_options *o, const type *s) {                                                   \
        (void)o, (void)s;                                                                          \
        DUE;                                                                                       \
        note("append " #kind "\n");                                                                \
        return NULL;                                                                               \
    }
OWN(CUDA, ort_cuda_options)
OWN(TensorRT, ort_tensorrt_options)
static ort_status *false_SessionOptionsAppendExecutionProvider(ort_session_options *o,
                                                               const char *provider,
                                                               const char *const *keys,
                                                               const char *const *values,
                                                               size_t count) {
    (void)o;
    if (state.unknown) {
        state.fail_at = state.calls_made + 1;
        return fail_if_due(provider);
    }
    DUE;
    note("append ");
    note_settings(provider, keys, values, count);
    return NULL;
}

static const void *table[300];

static const void *get_api(uint32_t version) {
    if (FALSE_ORT_KIND < 3 || version > ORT_API_ALL) return NULL;
#define SLOT(index, name, since, result, parameters) table[index] = (const void *)false_##name;
#include "engine/runtime/ort_slots.def"
#undef SLOT
    return table;
}

static const char *get_version(void) { return FALSE_ORT_KIND == 2 ? "1.3.1" : "1.99.0"; }

const ort_base *OrtGetApiBase(void);
EXPORT const ort_base *OrtGetApiBase(void) {
    static const ort_base base = { get_api, get_version };
    return &base;
}

#endif
