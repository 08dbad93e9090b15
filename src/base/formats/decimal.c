/* decimal.c - see decimal.h.
 *
 * The C library prints in the host's locale, and the point of that is replaced. An object for the
 * locale "C" would be larger, so only those who read numbers have one. Floats of ordinary size are
 * written without printf, in exact double arithmetic: a float times or divided by a power of ten up
 * to 10^22 is rounded once. */
#include "base/formats/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/read_double.h"

/* Digits of every float and double (C11 FLT_DECIMAL_DIG, DBL_DECIMAL_DIG), and those that are tried
 * first: a normal number with fewer is the nearest one of so many digits, and zeros at the end are
 * left out. */
enum { F32_DIGITS_FIRST = 6, F32_DIGITS = 9, F64_DIGITS_FIRST = 15, F64_DIGITS = 17 };

size_t pith__decimal_print(char text[PITH_DECIMAL_CHARS], int digits, double x) {
    const size_t size = (size_t)snprintf(text, PITH_DECIMAL_CHARS, "%.*g", digits, x);
    char *point = text + strspn(text, "+-0123456789aefin"); /* "e", "inf" and "nan" have letters */
    if (!*point) return size;
    const size_t bytes = strcspn(point, "0123456789");
    *point = '.';
    memmove(point + 1, point + bytes, strlen(point + bytes) + 1);
    return size + 1 - bytes;
}

/* ---- the fewest digits ---- */

pith_status pith__decimal_begin(pith__decimal *d, pith_error *err) {
    d->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return d->plain ? PITH_OK : pith__fail_memory(err, 0);
}

void pith__decimal_end(pith__decimal *d) {
    if (d->plain) freelocale(d->plain);
    d->plain = (locale_t)0;
}

/* "digits" times 10^(exponent - count + 1) as %g writes it, trailing zeros left out. */
static size_t decimal_put_digits(char *text, const char *digits, int count, int exponent) {
    char *out = text;
    while (count > 1 && digits[count - 1] == '0') count--;
    if (exponent >= -4 && exponent < 0) {
        memcpy(out, "0.000", 6);
        out += 1 - exponent;
        memcpy(out, digits, (size_t)count);
        out += count;
    } else if (exponent >= 0 && exponent < F32_DIGITS) {
        const int whole = exponent + 1 < count ? exponent + 1 : count;
        memcpy(out, digits, (size_t)whole);
        out += whole;
        for (int i = count; i <= exponent; i++) *out++ = '0';
        if (count > whole) *out++ = '.';
        memcpy(out, digits + whole, (size_t)(count - whole));
        out += count - whole;
    } else {
        *out++ = digits[0];
        if (count > 1) *out++ = '.';
        memcpy(out, digits + 1, (size_t)count - 1);
        out += count - 1;
        out +=
            sprintf(out, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
    }
    *out = 0;
    return (size_t)(out - text);
}

/* a > 0 with as many digits if they are read back as a; the exponent is that of a's first digit, or
 * one less. 0: they are not. */
static size_t decimal_try(char *text, float a, int digits, int exponent) {
    char buffer[F32_DIGITS + 2];
    const int shift = digits - 1 - exponent;
    const double power = pith__powers_of_ten[shift < 0 ? -shift : shift];
    const double scaled = shift < 0 ? (double)a / power : (double)a * power;
    uint64_t number = (uint64_t)llrint(scaled);
    const double back = shift < 0 ? (double)number * power : (double)number / power;
    /* Three roundings that agree: the decimal number is not beside the middle of two floats, where
     * rounding to double first could matter. */
    if ((float)back != a || (float)(back * (1 + 0x1p-50)) != a ||
        (float)(back * (1 - 0x1p-50)) != a)
        return 0;
    int count = 0;
    for (uint64_t rest = number; rest; rest /= 10) count++;
    for (int i = count; i-- > 0; number /= 10) buffer[i] = (char)('0' + number % 10);
    return decimal_put_digits(text, buffer, count, exponent + count - digits);
}

static bool decimal_reaches(double a, int exponent) {
    return exponent < 0 ? a * pith__powers_of_ten[-exponent] >= 1
                        : a >= pith__powers_of_ten[exponent];
}

static size_t decimal_put_odd(char *text, double x) {
    return (size_t)sprintf(text, "%s%s", signbit(x) ? "-" : "", isnan(x) ? "nan" : "inf");
}

/* The shortest text that reads back as x: digits are tried from few to many, since most floats need
 * close to the fewest. Within the range where double arithmetic is exact enough, digits are made
 * and checked by it; outside of it by printf and strtof, in a locale that writes a point. */
size_t pith__decimal_put_f32(const pith__decimal *d, char *text, float x) {
    const float a = fabsf(x);
    size_t sign = signbit(x) != 0, size = 0;
    if (!isfinite(x)) return decimal_put_odd(text, (double)x);
    if (sign) *text = '-';
    if (a == 0) return (size_t)sprintf(text + sign, "0") + sign;
    if (a >= 1e-12F && a < 1e18F) {
        int exponent = -12;
        while (decimal_reaches((double)a, exponent + 1)) exponent++;
        for (int digits = F32_DIGITS_FIRST; digits <= F32_DIGITS && !size; digits++)
            size = decimal_try(text + sign, a, digits, exponent);
        if (size) return size + sign;
    }
    for (int digits = isnormal(x) ? F32_DIGITS_FIRST : 1; digits <= F32_DIGITS; digits++) {
        size = pith__decimal_print(text, digits, (double)x);
        if (strtof_l(text, NULL, d->plain) == x) break;
    }
    return size;
}

size_t pith__decimal_put_f64(const pith__decimal *d, char *text, double x) {
    size_t size = 0;
    if (!isfinite(x)) return decimal_put_odd(text, x);
    for (int digits = isnormal(x) ? F64_DIGITS_FIRST : 1; digits <= F64_DIGITS; digits++) {
        size = pith__decimal_print(text, digits, x);
        if (strtod_l(text, NULL, d->plain) == x) break;
    }
    return size;
}

/* strtod takes more than this: white space, a plus, hexadecimal numbers, "nan(…)". */
static bool decimal_is_plain(const char *text) {
    if (*text == '-') text++;
    if (*text < '0' || *text > '9') {
        for (const char *p = text; *p; p++)
            if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'))) return false;
        return true; /* strtod knows three such words */
    }
    return text[strspn(text, "0123456789.eE+-")] == 0;
}

bool pith__decimal_get_f32(const pith__decimal *d, float *x, const char *text) {
    char *end;
    if (!decimal_is_plain(text)) return false;
    *x = strtof_l(text, &end, d->plain);
    return end != text && !*end && (!isinf(*x) || !strpbrk(text, "0123456789"));
}

bool pith__decimal_get_f64(const pith__decimal *d, double *x, const char *text) {
    char *end;
    if (!decimal_is_plain(text)) return false;
    *x = strtod_l(text, &end, d->plain);
    return end != text && !*end && (!isinf(*x) || !strpbrk(text, "0123456789"));
}
