/* api_select.c - the public functions of pith/select.h. */
#include "api/entry.h"
#include "select/used_pieces.h"

pith_status pith_pieces_record(pith_error *err) { return pith__pieces_begin(err); }

pith_status pith_pieces_read(void (*piece)(void *user, const pith_build_piece *piece), void *user,
                             pith_error *err) {
    return pith__pieces_end(piece, user, err);
}

pith_status pith_pieces_list(void (*piece)(void *user, const pith_build_piece *piece), void *user,
                             pith_error *err) {
    return pith__pieces_all(piece, user, err);
}
