/* number_of_text.h - numbers that strings of a model's tensors hold. */
#ifndef PITH_ENGINE_OPS_SHARED_NUMBER_OF_TEXT_H
#define PITH_ENGINE_OPS_SHARED_NUMBER_OF_TEXT_H

#include <stdbool.h>

/* What strtod makes of all of a text in the locale "C", whatever the host has set. False if it is
 * no number. */
bool pith__number_of_text(double *number, const char *text);

#endif
