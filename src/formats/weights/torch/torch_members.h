/* torch_members.h - the members of a zip archive of torch.save, which are stored as they are.
 *
 * Checksums are not compared. Compressed and encrypted members, members that overlap and names that
 * come twice are errors. */
#ifndef PITH_FORMATS_WEIGHTS_TORCH_TORCH_MEMBERS_H
#define PITH_FORMATS_WEIGHTS_TORCH_TORCH_MEMBERS_H

#include "base/memory/memory.h"
#include "base/memory/span_map.h"

typedef struct pith__torch_member {
    pith_str name, bytes; /* spans of the file */
} pith__torch_member;

typedef struct pith__torch_members {
    pith__torch_member *at; /* by their place in the file */
    size_t count;
    pith__map names; /* to the index */
} pith__torch_members;

bool pith__torch_is_zip(pith_str file); /* by its first bytes */
/* Finds all members; the arrays are in the arena. Errors do not name the file. */
pith_status pith__torch_members_read(pith__torch_members *members, pith_str file,
                                     pith__arena *arena, pith_error *err);
/* data is NULL if there is no such member. */
pith_str pith__torch_members_find(const pith__torch_members *members, pith_str name);

#endif
