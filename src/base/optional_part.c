/* optional_part.c - see optional_part.h. */
#include "base/optional_part.h"

#include <stddef.h>
#include <string.h>

#include "base/piece_listener.h"

static const pith_part *part_of(const char *name) {
    const pith_part *const *at = pith_part_table;
    while (*at && strcmp((*at)->name, name)) at++;
    return *at;
}

const void *pith_part_find(const char *name) {
    const pith_part *part = part_of(name);
    return part ? part->functions : NULL;
}

void pith_part_used(const char *name) {
    const pith_part *part = part_of(name);
    if (part) pith_piece_used(part);
}
