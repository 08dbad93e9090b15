/* private_symbol.h - what the shared libraries of Pith take from each other.
 *
 * All that no public header declares is hidden in libpith.so, but for the declarations that carry
 * this mark. They are the private symbols that libpith-tables.so needs, and only those: the version
 * of the ELF symbols (PITH_PRIVATE_ and the release) lets no library of another release link with
 * them. Within libpith.so they are protected: nothing can take their place, so a call costs what it
 * costs without the mark. The sources of libpith-tables define PITH_OF_TABLES, because what is
 * protected must be defined in the library that refers to it. */
#ifndef PITH_BASE_PRIVATE_SYMBOL_H
#define PITH_BASE_PRIVATE_SYMBOL_H

#if !defined(__ELF__)
#define PITH_PRIVATE
#elif defined(PITH_OF_TABLES)
#define PITH_PRIVATE __attribute__((visibility("default")))
#else
#define PITH_PRIVATE __attribute__((visibility("protected")))
#endif

#endif
