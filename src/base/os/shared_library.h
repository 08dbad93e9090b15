/* shared_library.h - libraries that are loaded when they are first needed. They are never unloaded.
 */
#ifndef PITH_BASE_OS_SHARED_LIBRARY_H
#define PITH_BASE_OS_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"
#include "pith/types.h"

/* The first entry of LD_LIBRARY_PATH that is empty or no absolute path, which the loader takes from
 * the current folder on, if the folder that it names holds a shared library: what lies beside the
 * data would be loaded, perhaps only for what the library needs itself. Without such a file the
 * entry decides nothing. data is NULL if there is none; else it points into the variable, which is
 * taken as it is now. */
pith_str pith__library_unsafe_entry(void);
/* Fails with PITH_ERR_UNSUPPORTED if there is such an entry. Called before anything is loaded. */
PITH_PRIVATE pith_status pith__library_safe(pith_error *err);
/* Loads the first of these libraries that is there, by its name or path. NULL: none is. errno stays
 * as it was. */
PITH_PRIVATE void *pith__library_load(const char *const *names, size_t count);

/* A table of a library's functions. The header of the library declares them, so the compiler checks
 * how they are called; they are found when the library is loaded. A list names them, each by what
 * the names of the library begin with (which may be nothing) and the rest, which is the member's
 * name:
 *
 *   #define ZSTD_FUNCTIONS(F) F(ZSTD_, createDStream) F(ZSTD_, freeDStream)
 *   typedef struct zstd_library { ZSTD_FUNCTIONS(PITH_LIBRARY_MEMBER) } zstd_library;
 *   const char *lacks = pith__library_fill(&table, library, ZSTD_FUNCTIONS(PITH_LIBRARY_NAME));
 */
#define PITH_LIBRARY_MEMBER(prefix, name) __typeof__(&prefix##name) name;
#define PITH_LIBRARY_NAME(prefix, name) #prefix #name "\0"
/* Fills a table, all of whose members are such functions in the order of the names. Returns the
 * first name that the library lacks, or NULL. */
PITH_PRIVATE const char *pith__library_fill(void *table, void *library, const char *names);
/* Sets *function, a pointer to a function, to the one of this name. False: the library has none. */
bool pith__library_find(void *function, void *library, const char *name);

#endif
