/* float_text.c - floats as "%.9g", several times faster than printf for numbers of ordinary size.
 *
 * A float is m 2^e with m below 2^24. For 10^-4 <= x < 2^23, nine digits need x 10^k with k at most
 * 12. So m 10^k fits 64 bits, and shifting it right by -e leaves the digits and the exact remainder
 * to round by (ties to even). All other numbers go through printf. */
#include "cli/base/float_text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 9 };

size_t number_print(char text[NUMBER_CHARS], float x) {
    static const double limits[] = { 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6 };
    static const uint64_t powers[] = { 1000000000000, 100000000000, 10000000000, 1000000000,
                                       100000000,     10000000,     1000000,     100000,
                                       10000,         1000,         100 };
    const double a = fabs((double)x);
    if (!(a >= limits[0] && a < 0x1p23))
        return (size_t)snprintf(text, NUMBER_CHARS, "%.9g", (double)x);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int i = 0, shift = 150 - (int)(bits >> 23 & 0xFF);
    while (i < 10 && a >= limits[i + 1]) i++;
    uint64_t product = ((bits & 0x7FFFFF) | 0x800000) * powers[i], digits = product >> shift;
    uint64_t rest = product & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
    digits += rest > half || (rest == half && (digits & 1));
    if (digits == 1000000000) digits /= 10, i++;
    int point = i - 3; /* digits before the point; zeros follow it where this is below 1 */
    char decimal[DIGITS], *p = text;
    for (int d = DIGITS - 1; d >= 0; d--, digits /= 10) decimal[d] = (char)('0' + digits % 10);
    int count = DIGITS;
    while (count > 1 && count > point && decimal[count - 1] == '0') count--;
    if (x < 0) *p++ = '-';
    if (point < 1) {
        *p++ = '0', *p++ = '.';
        for (int z = point; z < 0; z++) *p++ = '0';
        point = 0;
    }
    for (int d = 0; d < count; d++) {
        if (d == point && d > 0) *p++ = '.';
        *p++ = decimal[d];
    }
    *p = 0;
    return (size_t)(p - text);
}
