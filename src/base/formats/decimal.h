/* decimal.h - floats as decimal text and back, whatever locale the host has set.
 *
 *   pith_decimal d;
 *   PITH_TRY(pith_decimal_begin(&d, err));
 *   size = pith_decimal_put_f32(&d, text, 0.1f);   "0.1"
 *   pith_decimal_end(&d);
 *
 * What is written has the fewest digits that are read back as the same number, as C's %g has them; NaN and infinities
 * are "nan", "-nan", "inf" and "-inf". What is read is rounded once, to nearest even. */
#ifndef PITH_BASE_FORMATS_DECIMAL_H
#define PITH_BASE_FORMATS_DECIMAL_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

#include "pith/types.h"

/* The most bytes that are written, with the NUL. */
#define PITH_DECIMAL_CHARS 32

typedef struct pith_decimal {
    locale_t plain; /* the locale "C" */
} pith_decimal;

pith_status pith_decimal_begin(pith_decimal *d, pith_error *err);
void pith_decimal_end(pith_decimal *d);

/* Write a NUL-terminated text and return its length. */
size_t pith_decimal_put_f32(const pith_decimal *d, char *text, float x);
size_t pith_decimal_put_f64(const pith_decimal *d, char *text, double x);

/* Read all of a NUL-terminated text: digits with one point and an exponent, "nan", "inf" or "infinity" in either case,
 * with a minus or not. False if it is something else, or a finite number beyond the type's largest. */
bool pith_decimal_get_f32(const pith_decimal *d, float *x, const char *text);
bool pith_decimal_get_f64(const pith_decimal *d, double *x, const char *text);

#endif
