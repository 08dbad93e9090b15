/* optional_part.h - parts of the library that a selective build may be without, and that are no
 * pieces of another list.
 *
 * The code around a part finds it here, by name, and does without it or says that it is missing. So
 * a program links a part only if its list (select/parts.def) names it. */
#ifndef PITH_BASE_OPTIONAL_PART_H
#define PITH_BASE_OPTIONAL_PART_H

typedef struct pith__part {
    const char *name;
    const void *functions; /* a struct of the part's own */
} pith__part;

/* Ends with NULL. Made from select/parts.def by select/tables.c. */
extern const pith__part *const pith__part_table[];

/* The functions of a part; NULL: this build is without it. */
const void *pith__part_find(const char *name);
/* Notes for `pith select` that the part was of use (base/piece_listener.h). */
void pith__part_used(const char *name);

#endif
