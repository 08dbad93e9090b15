/* time_format.c - see time_format.h. Dates are three parts in an order that the form decides; a
 * time of day and a zone may follow in all forms. */
#include "tables/schema/time_format.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tables/schema/cell_value.h"

const char *const pith__time_format_names[PITH_TIME_FORMATS] = { "auto",
                                                                 "iso",
                                                                 "compact",
                                                                 "month/day/year",
                                                                 "day/month/year",
                                                                 "month name",
                                                                 "epoch_seconds",
                                                                 "epoch_milliseconds",
                                                                 "epoch_microseconds",
                                                                 "epoch_nanoseconds" };

typedef struct time_scan {
    const char *p, *end;
} time_scan;

/* From least to most digits. */
static bool scan_digits(time_scan *s, int least, int most, int *value) {
    int n = 0;
    *value = 0;
    for (; n < most && s->p < s->end && *s->p >= '0' && *s->p <= '9'; n++)
        *value = *value * 10 + (*s->p++ - '0');
    return n >= least;
}

static bool scan_is(time_scan *s, const char *any) {
    if (s->p == s->end || !*s->p || !strchr(any, *s->p)) return false;
    s->p++;
    return true;
}

/* A word in any case, which no letter follows. */
static bool scan_word(time_scan *s, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || strncasecmp(s->p, word, n) != 0) return false;
    if (s->p + n < s->end && ((s->p[n] | 32) >= 'a' && (s->p[n] | 32) <= 'z')) return false;
    s->p += n;
    return true;
}

static void scan_spaces(time_scan *s) {
    while (scan_is(s, " ")) continue;
}

static bool scan_zone(time_scan *s, int64_t *zone) {
    int hours, minutes = 0;
    *zone = 0;
    scan_spaces(s);
    if (s->p == s->end || scan_word(s, "z") || scan_word(s, "utc") || scan_word(s, "gmt"))
        return true;
    const int sign = *s->p == '-' ? -1 : 1;
    if (!scan_is(s, "+-") || !scan_digits(s, 2, 2, &hours)) return false;
    scan_is(s, ":");
    if (s->p < s->end && !scan_digits(s, 2, 2, &minutes)) return false;
    *zone = sign * (hours * 3600 + minutes * 60);
    return hours < 24 && minutes < 60;
}

/* A time of day behind a date, if there is one, and all that follows: *seconds of the day in UTC.
 */
static bool scan_clock(time_scan *s, bool compact, int64_t *seconds) {
    int hour, minute = 0, second = 0;
    int64_t zone = 0;
    *seconds = 0;
    if (s->p == s->end) return true;
    const char *from = s->p;
    scan_is(s, ",");
    if (!scan_is(s, "Tt") && !scan_is(s, " ") && !compact) return false;
    scan_spaces(s);
    if (!scan_digits(s, 1, 2, &hour)) {
        s->p = from; /* a zone alone */
        return scan_zone(s, seconds) && (*seconds = -*seconds, s->p == s->end);
    }
    if (!compact && !scan_is(s, ":")) return false;
    if (compact) scan_is(s, ":");
    if (!scan_digits(s, 2, 2, &minute)) return false;
    if ((scan_is(s, ":") || compact) && s->p < s->end && *s->p >= '0' && *s->p <= '9' &&
        !scan_digits(s, 2, 2, &second))
        return false;
    if (scan_is(s, ".,"))
        while (s->p < s->end && *s->p >= '0' && *s->p <= '9') s->p++;
    scan_spaces(s);
    const bool morning = scan_word(s, "am"), evening = !morning && scan_word(s, "pm");
    if ((morning || evening) && (hour < 1 || hour > 12)) return false;
    if (morning || evening) hour = hour % 12 + (evening ? 12 : 0);
    if (!scan_zone(s, &zone) || s->p != s->end || hour > 23 || minute > 59 || second > 60)
        return false;
    *seconds = hour * 3600 + minute * 60 + second - zone;
    return true;
}

/* The number of a month by its English name or the first three letters of it; 0: none. */
static int scan_month(time_scan *s) {
    static const char *const names[] = { "january",   "february", "march",    "april",
                                         "may",       "june",     "july",     "august",
                                         "september", "october",  "november", "december" };
    for (int i = 0; i < 12; i++) {
        const char brief[] = { names[i][0], names[i][1], names[i][2], 0 };
        if (scan_word(s, names[i]) || scan_word(s, brief)) return scan_is(s, "."), i + 1;
    }
    return 0;
}

static void scan_weekday(time_scan *s) {
    static const char *const names[] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" };
    for (int i = 0; i < 7; i++)
        if (scan_word(s, names[i])) {
            scan_is(s, ",");
            scan_spaces(s);
            return;
        }
}

/* A year at the end of a date. Of two digits, 69 to 99 are 1969 to 1999, as in POSIX. */
static bool scan_year(time_scan *s, int *year) {
    const char *from = s->p;
    if (!scan_digits(s, 2, 4, year) || s->p - from == 3) return false;
    if (s->p - from == 2) *year += *year < 69 ? 2000 : 1900;
    return true;
}

/* "31 Jan 2024", "31-Jan-2024", "Jan 31, 2024", with a day of the week before it. */
static bool scan_named(time_scan *s, int *year, int *month, int *day) {
    scan_weekday(s);
    const bool first = s->p < s->end && *s->p >= '0' && *s->p <= '9';
    if (first && (!scan_digits(s, 1, 2, day) || !scan_is(s, " -/."))) return false;
    scan_spaces(s);
    *month = scan_month(s);
    if (!*month) return false;
    scan_is(s, first ? " -/," : " ");
    if (!first && (!scan_digits(s, 1, 2, day) || (scan_is(s, ","), !scan_is(s, " ")))) return false;
    scan_spaces(s);
    return scan_year(s, year);
}

/* Three numbers that the same sign divides. */
static bool scan_divided(time_scan *s, bool year_first, int parts[3]) {
    if (!scan_digits(s, year_first ? 4 : 1, year_first ? 4 : 2, &parts[0]) || s->p == s->end)
        return false;
    const char sign[2] = { *s->p, 0 };
    if (!scan_is(s, "-/.") || !scan_digits(s, 1, 2, &parts[1]) || !scan_is(s, sign)) return false;
    if (year_first) return scan_digits(s, 1, 2, &parts[2]);
    return scan_year(s, &parts[2]);
}

static bool scan_date(time_scan *s, pith__time_format format, int *year, int *month, int *day) {
    int x[3];
    switch (format) {
    case PITH_TIME_COMPACT:
        return scan_digits(s, 4, 4, year) && scan_digits(s, 2, 2, month) &&
               scan_digits(s, 2, 2, day);
    case PITH_TIME_NAMED: return scan_named(s, year, month, day);
    case PITH_TIME_MONTH_FIRST:
    case PITH_TIME_DAY_FIRST:
        if (!scan_divided(s, false, x)) return false;
        *year = x[2];
        *month = format == PITH_TIME_MONTH_FIRST ? x[0] : x[1];
        *day = format == PITH_TIME_MONTH_FIRST ? x[1] : x[0];
        return true;
    default:
        if (!scan_divided(s, true, x)) return false;
        *year = x[0], *month = x[1], *day = x[2];
        return true;
    }
}

/* A count of 1/units seconds since 1970. Whole numbers are exact; others, as 1706713200.5, are
 * rounded down. */
static bool time_since(int64_t *seconds, pith_str cell, int64_t units) {
    double number;
    int64_t whole = 0;
    size_t i = cell.size && cell.data[0] == '-';
    const bool minus = i;
    if (!pith__cell_number(&number, cell)) return false;
    for (;
         i < cell.size && cell.data[i] >= '0' && cell.data[i] <= '9' && whole < INT64_MAX / 10 - 9;
         i++)
        whole = whole * 10 + (cell.data[i] - '0');
    if (i < cell.size) { /* a fraction or an exponent */
        if (number < -9e18 || number > 9e18) return false;
        whole = (int64_t)number - (number < (double)(int64_t)number);
    } else if (minus) {
        whole = -whole;
    }
    *seconds = whole / units - (whole % units < 0);
    return *seconds >= -62135596800 && *seconds <= 253402300799;
}

bool pith__time_parse(int64_t *seconds, pith_str cell, pith__time_format format) {
    static const int64_t units[] = { 1, 1000, 1000000, 1000000000 };
    time_scan s = { cell.data, cell.data + cell.size };
    int year = 0, month = 0, day = 0;
    int64_t days, clock;
    if (format >= PITH_TIME_SECONDS)
        return time_since(seconds, cell, units[format - PITH_TIME_SECONDS]);
    if (!scan_date(&s, format, &year, &month, &day) || !pith__date_days(&days, year, month, day))
        return false;
    if (!scan_clock(&s, format == PITH_TIME_COMPACT, &clock)) return false;
    *seconds = days * 86400 + clock;
    return true;
}

unsigned pith__time_formats(unsigned possible, pith_str cell) {
    const int64_t y1900 = -2208988800, y2000 = 946684800, y2100 = 4102444800;
    for (int f = PITH_TIME_ISO; f < PITH_TIME_FORMATS; f++) {
        int64_t seconds;
        if (!(possible & 1u << f)) continue;
        bool fits = pith__time_parse(&seconds, cell, (pith__time_format)f);
        if (fits && f == PITH_TIME_COMPACT) fits = seconds >= y1900 && seconds < y2100;
        if (fits && f >= PITH_TIME_SECONDS) fits = seconds >= y2000 && seconds < y2100;
        if (!fits) possible &= ~(1u << f);
    }
    return possible;
}

pith__time_format pith__time_format_of(unsigned possible) {
    int found = PITH_TIME_AUTO, count = 0;
    for (int f = PITH_TIME_ISO; f < PITH_TIME_FORMATS; f++)
        if (possible & 1u << f) found = f, count++;
    return count == 1 ? (pith__time_format)found : PITH_TIME_AUTO;
}
