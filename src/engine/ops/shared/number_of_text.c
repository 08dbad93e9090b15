/* number_of_text.c - see number_of_text.h. */
#include "engine/ops/shared/number_of_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/formats/read_double.h"
#include "base/str.h"

bool pith__number_of_text(double *number, const char *text) {
    char *end;
    text += strspn(text, " \t\n\v\f\r");
    if (pith__read_number(number, pith__str_of(text))) return true;
    *number = strtod(text, &end); /* "inf", "nan", hexadecimal */
    return end != text && !*end;
}
