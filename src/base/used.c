/* used.c - see used.h. */
#include "base/used.h"

_Atomic(pith_piece_fn *) pith_piece_listener;
