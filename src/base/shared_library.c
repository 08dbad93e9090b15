/* shared_library.c - see shared_library.h. */
#include "base/shared_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

void *pith_library_load(const char *const *names, size_t count) {
    void *library = NULL;
    const int saved = errno;
    for (size_t i = 0; i < count && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    errno = saved;
    return library;
}

/* ISO C has no conversion from an object's address to a function's. */
bool pith_library_find(void *function, void *library, const char *name) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}
