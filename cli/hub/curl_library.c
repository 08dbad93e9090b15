/* curl_library.c - see curl_library.h. */
#include "cli/hub/curl_library.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/os/shared_library.h"

const char *curl_may_not_load(void) {
    return pith__library_unsafe_entry().data
               ? "LD_LIBRARY_PATH has an entry that begins in the current folder, and libraries "
                 "lie there; write whole paths, without a colon at either end"
               : NULL;
}

const curl_library *curl_load(const command *c) {
    static curl_library library;
    static const struct {
        const char *name;
        size_t place;
    } wanted[] = {
        { "curl_easy_init", offsetof(curl_library, easy_init) },
        { "curl_easy_setopt", offsetof(curl_library, easy_setopt) },
        { "curl_easy_perform", offsetof(curl_library, easy_perform) },
        { "curl_easy_getinfo", offsetof(curl_library, easy_getinfo) },
        { "curl_easy_reset", offsetof(curl_library, easy_reset) },
        { "curl_easy_cleanup", offsetof(curl_library, easy_cleanup) },
        { "curl_easy_strerror", offsetof(curl_library, easy_strerror) },
        { "curl_slist_append", offsetof(curl_library, slist_append) },
        { "curl_slist_free_all", offsetof(curl_library, slist_free_all) },
        { "curl_global_init", offsetof(curl_library, global_init) },
    };
    static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
    if (library.easy_init) return &library;
    void *handle = NULL;
    const char *why = curl_may_not_load();
    if (why) {
        fail(c, "libcurl is not loaded: %s", why);
        return NULL;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !handle; i++)
        handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fail(c, "libcurl.so.4 cannot be loaded; install the package libcurl4 (%s)", dlerror());
        return NULL;
    }
    curl_library found;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *function = dlsym(handle, wanted[i].name);
        if (!function) {
            fail(c, "libcurl has no %s; install the package libcurl4 again", wanted[i].name);
            return NULL;
        }
        *(void **)((char *)&found + wanted[i].place) = function;
    }
    if (found.global_init(3)) { /* TLS and sockets */
        fail(c, "libcurl cannot be started");
        return NULL;
    }
    library = found;
    return &library;
}
