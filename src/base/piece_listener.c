/* piece_listener.c - see piece_listener.h. */
#include "base/piece_listener.h"

_Atomic(pith_piece_fn *) pith_piece_listener;
