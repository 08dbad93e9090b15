/* json_number.h - fractions in JSON that is written. */
#ifndef PITH_BASE_FORMATS_JSON_NUMBER_H
#define PITH_BASE_FORMATS_JSON_NUMBER_H

#include "base/formats/json_write.h"

/* Nine digits, in any locale; null for a number that is not finite. */
void pith__json_key_double(pith__json_out *out, const char *name, double x);

#endif
