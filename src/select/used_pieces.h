/* used_pieces.h - notes which entries of the lists are used, for pith/select.h. */
#ifndef PITH_SELECT_USED_PIECES_H
#define PITH_SELECT_USED_PIECES_H

#include "pith/select.h"

pith_status pith__pieces_begin(pith_error *err);
pith_status pith__pieces_end(void (*piece)(void *user, const pith_build_piece *piece), void *user,
                             pith_error *err);
/* Every entry, in the same order; operators without their dtypes. */
pith_status pith__pieces_all(void (*piece)(void *user, const pith_build_piece *piece), void *user,
                             pith_error *err);

#endif
