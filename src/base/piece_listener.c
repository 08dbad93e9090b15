/* piece_listener.c - see piece_listener.h. */
#include "base/piece_listener.h"

_Atomic(pith__piece_fn *) pith__piece_listener;
