/* cell_value.c - see cell_value.h. */
#include "tables/schema/cell_value.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/str.h"
#include "tables/schema/time_format.h"

static bool cell_among(pith_str cell, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == cell.size && !strncasecmp(words[i], cell.data, cell.size))
            return true;
    return false;
}
#define AMONG(cell, words) cell_among(cell, words, sizeof words / sizeof *words)

bool pith__cell_is_null(pith_str cell) {
    static const char *const words[] = { "NA", "N/A", "NaN", "NULL", "None", "\\N" };
    return !cell.size || AMONG(cell, words);
}

/* Up to 15 digits with a point somewhere: one exact division, correctly rounded. */
static bool cell_short_number(double *number, pith_str cell) {
    static const double tens[] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
    const bool minus = cell.size && cell.data[0] == '-';
    int64_t mantissa = 0;
    int digits = 0, behind = -1;
    for (size_t i = minus; i < cell.size; i++) {
        const char c = cell.data[i];
        if (c == '.' && behind < 0) {
            behind = 0;
        } else if (c >= '0' && c <= '9' && digits < 15) {
            mantissa = mantissa * 10 + (c - '0');
            digits++;
            behind += behind >= 0;
        } else {
            return false;
        }
    }
    if (!digits) return false;
    const double x = (double)mantissa / tens[behind > 0 ? behind : 0];
    *number = minus ? -x : x;
    return true;
}

bool pith__cell_number(double *number, pith_str cell) {
    char text[64], *end;
    double x;
    if (cell_short_number(number, cell)) return true;
    if (!cell.size || cell.size >= sizeof text) return false;
    for (size_t i = 0; i < cell.size; i++) /* no hexadecimal, no "inf", no leading space */
        if (!strchr("0123456789+-.eE", cell.data[i]) || !cell.data[i]) return false;
    memcpy(text, cell.data, cell.size);
    text[cell.size] = 0;
    /* the host's may have a decimal comma */
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c) return false;
    x = strtod_l(text, &end, c);
    freelocale(c);
    if (*end || !isfinite(x)) return false;
    *number = x;
    return true;
}

bool pith__cell_boolean(bool *yes, pith_str cell) {
    static const char *const trues[] = { "true", "t", "yes", "y", "1" }, *const falses[] = {
        "false", "f", "no", "n", "0"
    };
    *yes = AMONG(cell, trues);
    return *yes || AMONG(cell, falses);
}

static int64_t time_days(int year, int month, int day) {
    const int y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400;
    const int of_era = y - era * 400,
              of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool pith__date_days(int64_t *days, int year, int month, int day) {
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (year < 1 || month < 1 || month > 12 || day < 1) return false;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > lengths[month - 1] + (month == 2 && leap)) return false;
    *days = time_days(year, month, day);
    return true;
}

bool pith__cell_time(int64_t *seconds, pith_str cell) {
    return pith__time_parse(seconds, cell, PITH_TIME_ISO);
}

/* Source of the calendar: Hinnant, chrono-compatible low-level date algorithms. */
size_t pith__time_print(char *text, int64_t seconds, char middle) {
    const int64_t first = -62135596800, last = 253402300799;
    int64_t s = seconds;
    if (seconds < first)
        s = first;
    else if (seconds > last)
        s = last;
    /* days from the first of March of the year 0 */
    const int64_t day = (s - first) / 86400, z = day + 306;
    const int second = (int)((s - first) % 86400);
    const int64_t era = z / 146097, of_era = z % 146097;
    const int64_t of = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int of_year = (int)(of_era - (365 * of + of / 4 - of / 100)),
              mp = (5 * of_year + 2) / 153;
    const int month = mp < 10 ? mp + 3 : mp - 9, year = (int)(of + era * 400) + (month <= 2);
    return (size_t)snprintf(text, PITH_TIME_CHARS, "%04d-%02d-%02d%c%02d:%02d:%02d", year % 10000,
                            month, of_year - (153 * mp + 2) / 5 + 1, middle, second / 3600,
                            second / 60 % 60, second % 60);
}
