/* left_out_pieces.h - the pieces that a selective build was made without, and the message that
 * names them.
 *
 * A build made from a list (docs/selective-build.md) keeps a hash of every piece it leaves out. So
 * a look-up that finds nothing can tell "this build was made without it", which a line in the list
 * mends, from "Pith does not have it". */
#ifndef PITH_BASE_LEFT_OUT_PIECES_H
#define PITH_BASE_LEFT_OUT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/private_symbol.h"
#include "base/str.h"

/* From select/dropped.def, which is empty in a complete build; defined by select/tables.c. */
extern const uint32_t pith__dropped_table[];
extern const size_t pith__dropped_count;
/* "readers onnx" and so on, one zero-terminated string behind the other, then an empty one: the
 * pieces of small kinds, which models name in other words than lists do. */
extern const char pith__dropped_names[];
/* The same for passes, ragged rules and instruction sets, without which the results stay the same.
 * Descriptions of models name them; nothing else refers to them. */
extern const char pith__dropped_speed[];

/* Whether this build was made without the piece. kind is that of the list ("operators"), name that
 * of the list's line ("com.microsoft::Gelu"; a kernel's has its dtype, "gemm f32"). Not for the
 * small kinds. */
bool pith__piece_is_dropped(const char *kind, pith_str name);

/* Pieces that were needed and are not there. Begins as { 0 }. Lines beyond the room are counted
 * only. */
typedef struct pith__lacks {
    size_t count, unnamed;
    char text[PITH_ERROR_MESSAGE_SIZE - 320];
} pith__lacks;

/* Adds a piece, unless it was added before. place says what needs it, such as the node; "": nothing
 * to say. */
void pith__lacks_note(pith__lacks *lacks, const char *kind, pith_str name, const char *place);
/* PITH_OK if nothing was noted. Else an error that names the lines to add to the build's list. */
PITH_PRIVATE pith_status pith__lacks_check(const pith__lacks *lacks, pith_error *err);
/* The error for one piece, if the build was made without it; else PITH_OK. Of the small kinds, name
 * may be what models write, such as "xlm-roberta" or "CLIPModel": '-', '_' and capitals make no
 * difference. */
pith_status pith__piece_check(const char *kind, pith_str name, pith_error *err);
/* The same with what needs the piece, such as an option; place as in pith__lacks_note. */
pith_status pith__piece_check_for(const char *kind, pith_str name, const char *place,
                                  pith_error *err);
/* Where only the content of a file says which piece it takes: the error for all pieces of the kind
 * that the build was made without, since it may be any of them; else PITH_OK. */
pith_status pith__piece_check_any(const char *kind, pith_error *err);

/* Whether an error is one of these, also behind other words. */
bool pith__error_is_lack(const pith_error *err);

#endif
