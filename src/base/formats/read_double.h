/* read_double.h - the double that a decimal number is nearest to. */
#ifndef PITH_BASE_FORMATS_READ_DOUBLE_H
#define PITH_BASE_FORMATS_READ_DOUBLE_H

#include <stdbool.h>

#include "base/private_symbol.h"
#include "pith/types.h"

/* text is a number as JSON writes it, of any length. Rounds to nearest, ties to even; too large
 * numbers are infinite. */
double pith__read_double(pith_str text);

/* The same, faster for numbers of up to 19 digits, of all of a text: a sign, digits with a point
 * before, among or behind them, and an exponent. False if it is something else. */
PITH_PRIVATE bool pith__read_number(double *number, pith_str text);

/* 10^0 to 10^22, which are doubles. */
enum { PITH_POWERS_OF_TEN = 23 };
extern const double pith__powers_of_ten[PITH_POWERS_OF_TEN];

#endif
