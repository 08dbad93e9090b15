/* cell_value.c - see cell_value.h. */
#include "tables/schema/cell_value.h"

#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "base/formats/read_double.h"
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

bool pith__cell_number(double *number, pith_str cell) {
    double x;
    if (cell.size >= 64 || !pith__read_number(&x, cell) || !isfinite(x)) return false;
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
