/* shared_library.h - libraries that are loaded when they are first needed. They are never unloaded. */
#ifndef PITH_BASE_SHARED_LIBRARY_H
#define PITH_BASE_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Loads the first of these libraries that is there, by its name or path. NULL: none is. errno stays as it was. */
void *pith_library_load(const char *const *names, size_t count);
/* Sets *function, a pointer to a function, to the one of this name. False: the library has none. */
bool pith_library_find(void *function, void *library, const char *name);

#endif
