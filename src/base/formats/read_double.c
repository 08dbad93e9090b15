/* read_double.c - reads numbers with whole numbers of as many bits as it takes. The C library's
 * strtod_l does it too, but takes 40 kB of a static program, and an object for the locale.
 *
 * Numbers of up to 19 digits and a small exponent, which are most, need no more than 128 bits, or
 * one operation that rounds once.
 *
 * Others are digits * 10^exponent. Negative powers of ten are powers of two and of five: the
 * digits are moved up until 64 bits are left of their quotient by the power of five. What a
 * division leaves only decides ties. */
#include "base/formats/read_double.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* DIGITS: those behind decide ties only, since the middle of two doubles has at most 767. LIMBS:
 * for so many digits, and the quotient of them by the largest power of five. */
enum { DIGITS = 800, LIMBS = 192, LEAST = -330, MOST = 310, FIVES = 13 };
enum { POWERS = PITH_POWERS_OF_TEN };

const double pith__powers_of_ten[POWERS] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

typedef struct wide {
    uint32_t limbs[LIMBS]; /* the lowest first */
    size_t count;
} wide;

static void wide_times(wide *w, uint32_t by, uint32_t more) {
    uint64_t carry = more;
    for (size_t i = 0; i < w->count; i++) {
        carry += (uint64_t)w->limbs[i] * by;
        w->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && w->count < LIMBS) w->limbs[w->count++] = (uint32_t)carry;
}

/* Returns the remainder. */
static uint32_t wide_over(wide *w, uint32_t by) {
    uint64_t rest = 0;
    for (size_t i = w->count; i-- > 0;) {
        rest = rest << 32 | w->limbs[i];
        w->limbs[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    while (w->count && !w->limbs[w->count - 1]) w->count--;
    return (uint32_t)rest;
}

static void wide_up(wide *w, size_t bits) {
    const size_t limbs = bits / 32;
    wide_times(w, UINT32_C(1) << bits % 32, 0);
    if (!w->count || w->count + limbs > LIMBS) return;
    memmove(w->limbs + limbs, w->limbs, w->count * sizeof *w->limbs);
    memset(w->limbs, 0, limbs * sizeof *w->limbs);
    w->count += limbs;
}

static int wide_bits(const wide *w) {
    return w->count ? (int)(32 * w->count) - __builtin_clz(w->limbs[w->count - 1]) : 0;
}

static uint32_t wide_bit(const wide *w, int at) { return w->limbs[at / 32] >> at % 32 & 1; }

/* w * 2^exponent, and a bit more if `more` is set, rounded to nearest with ties to even. `more`
 * stands for all that was cut off before, and only decides a tie. A number below the normal range
 * keeps fewer bits, which makes its rounding the one rounding there is. */
static double read_double_round(const wide *w, int exponent, bool more) {
    const int bits = wide_bits(w), top = bits - 1 + exponent;
    const int keep = top >= -1022 ? 53 : 53 - (-1022 - top), drop = bits - keep;
    uint64_t mantissa = 0;
    if (keep < 0) return 0;
    for (int i = bits; i-- > (drop > 0 ? drop : 0);) mantissa = mantissa << 1 | wide_bit(w, i);
    if (drop <= 0) return (double)mantissa; /* a small whole number: the exponent is 0 */
    for (int i = 0; i < drop - 1 && !more; i++) more = wide_bit(w, i);
    mantissa += wide_bit(w, drop - 1) && (more || (mantissa & 1));
    uint64_t biased = 0; /* of a subnormal number */
    if (mantissa >= UINT64_C(1) << 52) {
        biased = (uint64_t)(drop + exponent + 1075);
        if (mantissa >> 53) {
            mantissa >>= 1;
            biased++;
        }
        if (biased >= 2047) return INFINITY;
        mantissa -= UINT64_C(1) << 52;
    }
    double value;
    mantissa |= biased << 52;
    memcpy(&value, &mantissa, sizeof value);
    return value;
}

/* The digits, and their power of ten. Returns whether digits that were left out are not all zero.
 */
static bool read_double_scan(pith_str text, wide *w, int64_t *exponent, int *count) {
    bool fraction = false, more = false;
    size_t i = 0;
    for (; i < text.size && text.data[i] != 'e' && text.data[i] != 'E'; i++) {
        const char c = text.data[i];
        fraction = fraction || c == '.';
        if (c < '0' || c > '9') continue;
        if (*count < DIGITS) {
            *count += *count || c != '0';
            wide_times(w, 10, (uint32_t)(c - '0'));
            *exponent -= fraction;
        } else {
            more = more || c != '0';
            *exponent += !fraction;
        }
    }
    if (i + 1 >= text.size) return more;
    const bool negative = text.data[++i] == '-';
    int64_t written = 0;
    for (i += text.data[i] == '-' || text.data[i] == '+'; i < text.size; i++)
        if (written < INT32_MAX) written = written * 10 + (text.data[i] - '0');
    *exponent += negative ? -written : written;
    return more;
}

/* The general way. Positive powers of ten are multiplied in. For negative ones the digits are moved
 * up by so many bits that at least 64 are left after the divisions by five (7 / 3 bits is more than
 * a five has), and the powers of two only move the exponent. Numbers beyond MOST or below LEAST are
 * infinity or 0 without any of it, which also limits the work for hostile exponents. */
double pith__read_double(pith_str text) {
    wide w = { .count = 0 };
    int64_t exponent = 0;
    int count = 0, up = 0;
    bool more = read_double_scan(text, &w, &exponent, &count);
    double value = 0;
    if (count && count + exponent > MOST) {
        value = INFINITY;
    } else if (count && count + exponent > LEAST) {
        for (; exponent > 0; exponent--) wide_times(&w, 10, 0);
        if (exponent < 0) {
            int fives = (int)-exponent;
            up = fives * 7 / 3 + 66;
            wide_up(&w, (size_t)up);
            for (; fives >= FIVES; fives -= FIVES) more = wide_over(&w, 1220703125) || more;
            for (; fives > 0; fives--) more = wide_over(&w, 5) || more;
        }
        value = read_double_round(&w, (int)exponent - up, more);
    }
    return text.size && text.data[0] == '-' ? -value : value;
}

/* Nearest double of mantissa * 10^exponent, exactly rounded, for |exponent| <= 27. Powers of five
 * up to 27 fit in 64 bits, so the quotient or product is exact in 128 bits but for a remainder,
 * which only matters as a sticky bit. */
static double read_number_exactly(uint64_t mantissa, int exponent) {
    if (!mantissa) return 0;
    uint64_t five = 1;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--) five *= 5;
    unsigned __int128 product;
    int shift = exponent;
    bool sticky = false;
    if (exponent >= 0) {
        product = (unsigned __int128)mantissa * five;
    } else {
        int up = __builtin_clzll(mantissa);
        const unsigned __int128 whole = (unsigned __int128)(mantissa << up) << 63;
        product = whole / five;
        sticky = product * five != whole;
        shift -= up + 63;
    }
    uint64_t high = (uint64_t)(product >> 64);
    int excess =
        128 - 54 - (high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)product));
    if (excess > 0) {
        sticky |= (product & (((unsigned __int128)1 << excess) - 1)) != 0;
        product >>= excess;
        shift += excess;
    }
    /* At most 54 bits are left, the last of them half a unit. Exponents this small neither over-
     * nor underflow. */
    uint64_t bits = (uint64_t)product;
    if (excess > 0) {
        bool up = (bits & 1) && (sticky || (bits & 2));
        bits = (bits >> 1) + up;
        shift++;
    }
    const uint64_t power = (uint64_t)(shift + 1023) << 52;
    double two;
    memcpy(&two, &power, sizeof two);
    return (double)bits * two;
}

/* Adds the number behind an "e"; false if there is none, or more than it. */
static bool read_exponent(int64_t *exponent, const char *p, const char *end) {
    const bool negative = p < end && *p == '-';
    int written = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9') return false;
        if (written < 10000) written = written * 10 + (*p - '0');
    }
    *exponent += negative ? -written : written;
    return true;
}

/* Goes behind the digits at *p, which become the last of number. */
static inline size_t read_digits(uint64_t *number, const char **p, const char *end) {
    const char *begin = *p;
    for (unsigned digit; *p < end && (digit = (unsigned)**p - '0') <= 9; ++*p)
        *number = *number * 10 + digit;
    return (size_t)(*p - begin);
}

/* Three ways. Up to 19 digits whose number fits 53 bits and a power of ten that a double holds
 * exactly: one multiplication or division rounds once (W. D. Clinger, "How to read floating point
 * numbers accurately"). Somewhat larger ones in integers of 128 bits. Else whole numbers of any
 * size. */
bool pith__read_number(double *number, pith_str text) {
    if (!text.size) return false; /* data may be NULL */
    const char *p = text.data, *end = p + text.size;
    const bool negative = *p == '-';
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    if (*p == '-' || *p == '+') p++;
    const char *begin = p;
    size_t digits = read_digits(&mantissa, &p, end);
    if (p < end && *p == '.') {
        p++;
        const size_t behind = read_digits(&mantissa, &p, end);
        exponent = -(int64_t)behind;
        digits += behind;
    }
    if (!digits) return false;
    if (p < end && ((*p != 'e' && *p != 'E') || !read_exponent(&exponent, p + 1, end)))
        return false;
    if (digits > 19) /* but for zeros at the beginning, they may not fit */
        for (; begin < end && (*begin == '0' || *begin == '.'); begin++) digits -= *begin == '0';
    double value;
    if (digits <= 19 && mantissa <= UINT64_C(1) << 53 && exponent > -POWERS && exponent < POWERS)
        value = exponent < 0 ? (double)mantissa / pith__powers_of_ten[-exponent]
                             : (double)mantissa * pith__powers_of_ten[exponent];
    else if (digits <= 19 && exponent >= -27 && exponent <= 27)
        value = read_number_exactly(mantissa, (int)exponent);
    else
        value = fabs(pith__read_double(text));
    *number = negative ? -value : value;
    return true;
}
