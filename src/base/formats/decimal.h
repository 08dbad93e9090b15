/* decimal.h - floats as decimal text and back, whatever locale the host has set: with as many
 * digits as the caller says, or with the fewest that are read back as the same number.
 *
 *   size = pith__decimal_print(text, 3, 0.1234);    "0.123"
 *
 *   pith__decimal d;
 *   PITH_TRY(pith__decimal_begin(&d, err));
 *   size = pith__decimal_put_f32(&d, text, 0.1f);   "0.1"
 *   pith__decimal_end(&d);
 *
 * Numbers look as C's %g writes them; NaN and infinities are "nan", "-nan", "inf" and "-inf". What
 * is read is rounded once, to nearest even. */
#ifndef PITH_BASE_FORMATS_DECIMAL_H
#define PITH_BASE_FORMATS_DECIMAL_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/private_symbol.h"
#include "pith/types.h"

/* The most bytes that are written, with the NUL. */
#define PITH_DECIMAL_CHARS 32

/* What printf writes for %.*g in the locale "C", with at most 17 digits. Returns the length. */
PITH_PRIVATE size_t pith__decimal_print(char text[PITH_DECIMAL_CHARS], int digits, double x);

typedef struct pith__decimal {
    locale_t plain; /* the locale "C" */
} pith__decimal;

pith_status pith__decimal_begin(pith__decimal *d, pith_error *err);
void pith__decimal_end(pith__decimal *d);

/* Write the fewest digits, with a NUL, and return the length. */
size_t pith__decimal_put_f32(const pith__decimal *d, char *text, float x);
size_t pith__decimal_put_f64(const pith__decimal *d, char *text, double x);

/* Read all of a NUL-terminated text: digits with one point and an exponent, "nan", "inf" or
 * "infinity" in either case, with a minus or not. False if it is something else, or a finite number
 * beyond the type's largest. */
bool pith__decimal_get_f32(const pith__decimal *d, float *x, const char *text);
bool pith__decimal_get_f64(const pith__decimal *d, double *x, const char *text);

#endif
