/* shared_library.c - see shared_library.h. */
#include "base/os/shared_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text_out.h"

/* Whether the folder, "" for the current one, holds a file or folder that the loader may look at.
 */
static bool library_folder_holds(const char *folder, size_t size) {
    static const char *const kinds[] = { "*.so", "*.so.*", "glibc-hwcaps", "tls" };
    char pattern[PATH_MAX];
    glob_t found;
    bool holds = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !holds; i++) {
        const int length = snprintf(pattern, sizeof pattern, "%.*s%s%s", (int)size, folder,
                                    size ? "/" : "", kinds[i]);
        if (length < 0 || (size_t)length >= sizeof pattern) return true;
        holds = !glob(pattern, GLOB_NOSORT, NULL, &found);
        globfree(&found);
    }
    return holds;
}

pith_str pith__library_unsafe_entry(void) {
    const char *at = secure_getenv("LD_LIBRARY_PATH");
    if (at && !*at) at = NULL;
    for (; at; at = at[strcspn(at, ":;")] ? at + strcspn(at, ":;") + 1 : NULL) {
        const size_t size = strcspn(at, ":;");
        const bool whole = *at == '/' || !strncmp(at, "$ORIGIN", 7) || !strncmp(at, "${ORIGIN}", 9);
        if (!whole && library_folder_holds(at, size)) return (pith_str){ at, size };
    }
    return (pith_str){ NULL, 0 };
}

pith_status pith__library_safe(pith_error *err) {
    const pith_str entry = pith__library_unsafe_entry();
    if (!entry.data) return PITH_OK;
    return pith__fail(
        err, PITH_ERR_UNSUPPORTED,
        "no library is loaded, since LD_LIBRARY_PATH has the entry '" PITH_CUT_FMT
        "', %s, and libraries lie there; write whole paths, without a colon at either end",
        PITH_CUT(entry, 200),
        entry.size ? "which begins in the current folder" : "which is the current folder");
}

void *pith__library_load(const char *const *names, size_t count) {
    void *library = NULL;
    const int saved = errno;
    for (size_t i = 0; i < count && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    errno = saved;
    return library;
}

/* ISO C has no conversion from an object's address to a function's. */
bool pith__library_find(void *function, void *library, const char *name) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

const char *pith__library_fill(void *table, void *library, const char *names) {
    char *member = table;
    for (; *names; names += strlen(names) + 1, member += sizeof(void (*)(void)))
        if (!pith__library_find(member, library, names)) return names;
    return NULL;
}
