/* curl_library.c - see curl_library.h. */
#include "cli/hub/curl_library.h"

#include <dlfcn.h>

const char *curl_may_not_load(void) {
    return pith__library_unsafe_entry().data
               ? "LD_LIBRARY_PATH has an entry that begins in the current folder, and libraries "
                 "lie there; write whole paths, without a colon at either end"
               : NULL;
}

const curl_library *curl_load(const command *c) {
    static curl_library library;
    static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
    if (library.easy_init) return &library;
    const char *why = curl_may_not_load();
    if (why) {
        fail(c, "libcurl is not loaded: %s", why);
        return NULL;
    }
    void *handle = pith__library_load(files, sizeof files / sizeof *files);
    if (!handle) {
        fail(c, "libcurl.so.4 cannot be loaded; install the package libcurl4 (%s)", dlerror());
        return NULL;
    }
    curl_library found;
    const char *lacks = pith__library_fill(&found, handle, CURL_FUNCTIONS(PITH_LIBRARY_NAME));
    if (lacks) {
        fail(c, "libcurl has no %s; install the package libcurl4 again", lacks);
        return NULL;
    }
    if (found.global_init(CURL_GLOBAL_ALL)) {
        fail(c, "libcurl cannot be started");
        return NULL;
    }
    library = found;
    return &library;
}
