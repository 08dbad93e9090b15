/* build_info.c - see build_info.h. */
#include "models/describe/build_info.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "engine/backend/backend.h"
#include "engine/ops/custom/custom.h"
#include "engine/runtime/runtime.h"
#include "images/decoder_module.h"

#define TEXT_OF_VALUE(x) #x
#define TEXT_OF(x) TEXT_OF_VALUE(x)
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER                                                                                   \
    "gcc " TEXT_OF(__GNUC__) "." TEXT_OF(__GNUC_MINOR__) "." TEXT_OF(__GNUC_PATCHLEVEL__)
#endif

static char runtimes[256], backends[256], images[128], images_missing[PITH_ERROR_MESSAGE_SIZE],
    extra_operators[2048];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build_info_word(char *words, size_t size, const char *word) {
    size_t n = strlen(words);
    if (n + strlen(word) + 2 > size) return;
    snprintf(words + n, size - n, "%s%s", n ? " " : "", word);
}

static void build_info_find(void) {
    static const char *const formats[] = { "JPEG", "PNG", "WebP", "TIFF", "JPEG 2000" };
    pith_error err = PITH_ERROR_INIT;
    const pith_image_codec *codec;
    for (size_t i = 0; i < pith__runtime_table_count; i++)
        build_info_word(runtimes, sizeof runtimes, pith__runtime_table[i]->name);
    for (size_t i = 0; i < pith__backend_table_count; i++)
        build_info_word(backends, sizeof backends, pith__backend_table[i]->name);
    for (const pith__extra_op *extra = pith__extra_op_table; extra->op; extra++)
        build_info_word(extra_operators, sizeof extra_operators, extra->name);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!pith__picture_codec(&codec, formats[i], NULL, &err))
            build_info_word(images, sizeof images,
                            strchr(formats[i], ' ') ? "JPEG2000" : formats[i]);
        else if (!*images_missing)
            snprintf(images_missing, sizeof images_missing, "%s", err.message);
}

pith_status pith__build_info_fill(pith_build_info *info, pith_error *err) {
    pthread_once(&once, build_info_find);
    pith_build_info mine = { info->size, COMPILER,       runtimes,       backends,
                             images,     images_missing, extra_operators };
    if (mine.size < sizeof mine.size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the struct has no size; initialise it with PITH_BUILD_INFO_INIT");
    memcpy(info, &mine, mine.size < sizeof mine ? mine.size : sizeof mine);
    return PITH_OK;
}

pith_status pith__build_find_runtime(pith_runtime_report *report, const char *name,
                                     const pith_runtime_options *options, pith_error *err) {
    pith_runtime_options o = PITH_RUNTIME_OPTIONS_INIT;
    pith_runtime_report mine = PITH_RUNTIME_REPORT_INIT;
    const pith__runtime *runtime;
    PITH_TAKE_OPTIONS(o, options, err);
    if (report->size < sizeof report->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the report has no size; initialise it with its _INIT macro");
    PITH_TRY(pith__runtime_find(&runtime, name, err));
    mine.name = mine.requested = runtime->name;
    mine.reason = mine.library = mine.version = mine.providers = "";
    if (runtime->ready) PITH_TRY(runtime->ready(&mine, &o, err));
    mine.size = report->size;
    memcpy(report, &mine, mine.size < sizeof mine ? mine.size : sizeof mine);
    return PITH_OK;
}
