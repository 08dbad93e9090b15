/* optional_part.c - see optional_part.h. */
#include "base/optional_part.h"

#include <stddef.h>
#include <string.h>

#include "base/piece_listener.h"

static const pith__part *part_of(const char *name) {
    const pith__part *const *at = pith__part_table;
    while (*at && strcmp((*at)->name, name)) at++;
    return *at;
}

const void *pith__part_find(const char *name) {
    const pith__part *part = part_of(name);
    return part ? part->functions : NULL;
}

void pith__part_used(const char *name) {
    const pith__part *part = part_of(name);
    if (part) pith__piece_used(part);
}
