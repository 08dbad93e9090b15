/* ort_library.c - see ort_library.h.
 *
 * A path that is given is the only one that is tried. Else the first file that exists is taken, and
 * if it cannot be used, that is the error: a broken library is not passed over. The loader's own
 * path comes last, by the library's name, which has no slash, so the working directory is never
 * looked at. Libraries are kept in a list for the whole process, behind a lock that is held while
 * one is loaded. */
#include "engine/runtime/ort_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/os/shared_library.h"
#include "base/str.h"
#include "base/text_out.h"

#define ORT_SYMBOL "OrtGetApiBase"
static const char *const ort_names[] = { "libonnxruntime.so.1", "libonnxruntime.so" };
enum { ORT_NAMES = 2 };

static pthread_mutex_t ort_lock = PTHREAD_MUTEX_INITIALIZER;
static pith__ort *ort_loaded; /* behind ort_lock; never freed */

/* The search for one library. */
typedef struct ort_search {
    pith__arena arena;
    pith__text_out tried; /* the places that were looked at */
    char text[700];
    const char *found; /* a file that exists, or a name for the loader */
} ort_search;

/* The library prints its messages itself unless it is given a function for them. Errors come back
 * as statuses. */
static void ort_log_nothing(void *user, int level, const char *category, const char *id,
                            const char *place, const char *message) {
    (void)user, (void)level, (void)category, (void)id, (void)place, (void)message;
}

/* Those of the library's OrtErrorCode that have a status of their own. */
enum {
    ORT_INVALID_ARGUMENT = 2,
    ORT_NO_SUCHFILE = 3,
    ORT_INVALID_PROTOBUF = 7,
    ORT_NO_KERNEL = 9,
    ORT_INVALID_GRAPH = 10
};

static pith_status ort_code(int code) {
    switch (code) {
    case ORT_INVALID_ARGUMENT: return PITH_ERR_ARGUMENT;
    case ORT_NO_SUCHFILE: return PITH_ERR_NOT_FOUND;
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH: return PITH_ERR_FORMAT;
    case ORT_NO_KERNEL: return PITH_ERR_UNSUPPORTED;
    default: return PITH_ERR_RUN;
    }
}

pith_status pith__ort_check(const pith__ort *ort, ort_status *status, const char *what,
                            pith_error *err) {
    if (!status) return PITH_OK;
    const pith_status code = ort_code(ort->GetErrorCode(status));
    char text[800];
    snprintf(text, sizeof text, "%s", ort->GetErrorMessage(status));
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' ';
    ort->ReleaseStatus(status);
    return pith__fail(err, code, "ONNX Runtime, %s: %s", what, text);
}

/* ---- loading ---- */

/* Fills in the functions that the library's version of the interface has. */
static void ort_take_slots(pith__ort *ort, const void *const *table) {
#define SLOT(index, name, since, result, parameters)                                               \
    if ((since) <= ort->api) memcpy(&ort->name, &table[index], sizeof ort->name);
#include "engine/runtime/ort_slots.def"
#undef SLOT
}

/* The library prints a line when it is asked for a version that it does not have, so its own
 * version is read first: library 1.N has the versions 1 to N. */
static const void *ort_table(pith__ort *ort, uint32_t version) {
    unsigned major = 0, minor = 0;
    if (sscanf(ort->version, "%u.%u", &major, &minor) == 2 && major == 1 && minor < version)
        return NULL;
    return ort->base->get_api(version);
}

static pith_status ort_begin(pith__ort *ort, pith_error *err) {
    const char *version = ort->base->get_version ? ort->base->get_version() : NULL;
    ort->version = strdup(version ? version : "?");
    if (!ort->version) return pith__fail_memory(err, 16);
    const void *table = ort_table(ort, ort->api = ORT_API_ALL);
    if (!table) table = ort_table(ort, ort->api = ORT_API_NEEDED);
    if (!table)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "%s: version %s is too old: it does not have version %d of the interface; install "
            "onnxruntime 1.%d or newer",
            ort->path, ort->version, ORT_API_NEEDED, ORT_API_NEEDED);
    ort_take_slots(ort, table);
    PITH_TRY(pith__ort_check(
        ort,
        ort->CreateEnvWithCustomLogger(ort_log_nothing, NULL, ORT_LOG_ERROR, "pith", &ort->env),
        ort->path, err));
    PITH_TRY(pith__ort_check(
        ort, ort->CreateCpuMemoryInfo(ORT_ALLOCATOR_DEVICE, ORT_MEMORY_DEFAULT, &ort->host),
        ort->path, err));
    return pith__ort_check(ort, ort->GetAllocatorWithDefaultOptions(&ort->allocator), ort->path,
                           err);
}

/* The handle is never closed. */
static pith_status ort_open(pith__ort *ort, pith_error *err) {
    PITH_TRY(pith__library_safe(err));
    void *handle = dlopen(ort->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        return pith__fail(err, strchr(ort->path, '/') ? PITH_ERR_UNSUPPORTED : PITH_ERR_NOT_FOUND,
                          "%s: the loader says: %s", ort->path, why ? why : "nothing");
    }
    const ort_base *(*get_base)(void);
    if (pith__library_find(&get_base, handle, ORT_SYMBOL)) ort->base = get_base();
    if (!ort->base || !ort->base->get_api)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: this library is not ONNX Runtime: it has no " ORT_SYMBOL, ort->path);
    return ort_begin(ort, err);
}

/* The lock is held. A library that failed is not kept, and tried again the next time. */
static pith_status ort_get(const pith__ort **ort, const char *path, pith_error *err) {
    for (pith__ort *known = ort_loaded; known; known = known->next) {
        if (strcmp(known->path, path)) continue;
        *ort = known;
        return PITH_OK;
    }
    pith__ort *made = calloc(1, sizeof *made);
    char *own = strdup(path);
    pith_status status = PITH_OK;
    if (!made || !own) status = pith__fail_memory(err, sizeof *made);
    if (!status) {
        made->path = own;
        status = ort_open(made, err);
    }
    if (status) {
        if (made) free((char *)(uintptr_t)made->version);
        free(own);
        free(made);
        return status;
    }
    made->next = ort_loaded;
    ort_loaded = made;
    *ort = made;
    return PITH_OK;
}

/* ---- searching ---- */

/* Takes folder/name if it is a file. */
static void ort_look(ort_search *s, const char *folder, const char *name) {
    if (s->found) return;
    pith_str path = pith__arena_printf(&s->arena, "%s/%s", folder, name);
    if (path.data && pith__file_exists(path.data)) s->found = path.data;
}

static void ort_look_in_program(ort_search *s) {
    char folder[4096];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return;
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash) return;
    *slash = 0;
    for (int i = 0; i < ORT_NAMES; i++) ort_look(s, folder, ort_names[i]);
    pith__text_put(&s->tried, "%s%s/libonnxruntime.so*", s->tried.used ? ", " : "", folder);
}

/* The last of the sorted names in the package's folder that begin like the library's. */
static void ort_look_in_package(ort_search *s, const char *packages) {
    pith_str folder = pith__arena_printf(&s->arena, "%s/onnxruntime/capi", packages), *names;
    size_t count = 0;
    pith_error ignored;
    if (s->found || !folder.data || !pith__dir_exists(folder.data) ||
        pith__dir_names(&names, &count, folder.data, &s->arena, &ignored))
        return;
    for (size_t i = count; i--;)
        if (!strncmp(names[i].data, "libonnxruntime.so", strlen("libonnxruntime.so")))
            ort_look(s, folder.data, names[i].data);
}

/* An environment has its packages in lib/python3.N/site-packages; a folder with packages is taken,
 * too. */
static void ort_look_in_python(ort_search *s, const char *python) {
    pith_str lib = pith__arena_printf(&s->arena, "%s/lib", python), *names;
    size_t count = 0;
    pith_error ignored;
    pith__text_put(&s->tried, "%s%s (the package onnxruntime)", s->tried.used ? ", " : "", python);
    if (!lib.data) return;
    if (pith__dir_exists(lib.data) &&
        pith__dir_names(&names, &count, lib.data, &s->arena, &ignored))
        count = 0;
    for (size_t i = count; i--;) {
        if (strncmp(names[i].data, "python3", 7)) continue;
        pith_str packages =
            pith__arena_printf(&s->arena, "%s/%s/site-packages", lib.data, names[i].data);
        if (packages.data) ort_look_in_package(s, packages.data);
    }
    ort_look_in_package(s, python);
}

static pith_status ort_search_all(const pith__ort **ort, ort_search *s,
                                  const pith_runtime_options *o, pith_error *err) {
    ort_look_in_program(s);
    if (o->ort_python) ort_look_in_python(s, o->ort_python);
    if (s->found) return ort_get(ort, s->found, err);
    pith_status status = PITH_OK;
    for (int i = 0; i < ORT_NAMES; i++) {
        status = ort_get(ort, ort_names[i], err);
        if (status != PITH_ERR_NOT_FOUND) return status;
    }
    return pith__fail_at(err, status, "the library of ONNX Runtime is not there: %s, ", s->text);
}

static pith_status ort_given(const pith__ort **ort, const char *path, pith_error *err) {
    char here[4096];
    if (!pith__file_exists(path))
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "pith_runtime_options.ort_library: %s: there is no such file; give the "
                          "path of libonnxruntime.so",
                          path);
    /* Without a slash dlopen would search the system's folders. */
    int length = snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (length < 0 || (size_t)length >= sizeof here)
        return pith__fail(err, PITH_ERR_ARGUMENT, "ort_library is longer than %zu bytes",
                          sizeof here - 1);
    return ort_get(ort, here, err);
}

pith_status pith__ort_load(const pith__ort **ort, const pith_runtime_options *options,
                           pith_error *err) {
    if (getauxval(AT_SECURE))
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "no library is loaded into a program that runs with the rights of another user");
    ort_search search = { .found = NULL };
    search.tried = pith__text_begin(search.text, sizeof search.text);
    pith__arena_init(&search.arena, &pith__allocator_default);
    pthread_mutex_lock(&ort_lock);
    pith_status status = options->ort_library ? ort_given(ort, options->ort_library, err)
                                              : ort_search_all(ort, &search, options, err);
    pthread_mutex_unlock(&ort_lock);
    pith__arena_free(&search.arena);
    return status;
}
