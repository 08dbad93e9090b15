/* read_double.h - the double that a decimal number is nearest to. */
#ifndef PITH_BASE_FORMATS_READ_DOUBLE_H
#define PITH_BASE_FORMATS_READ_DOUBLE_H

#include "pith/types.h"

/* text is a number as JSON writes it, of any length. Rounds to nearest, ties to even; too large
 * numbers are infinite. */
double pith__read_double(pith_str text);

#endif
