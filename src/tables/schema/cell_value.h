/* cell_value.h - what the text of a cell means: a number, a yes or no, a point in time. */
#ifndef PITH_TABLES_SCHEMA_CELL_VALUE_H
#define PITH_TABLES_SCHEMA_CELL_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

/* The time of a null, before every other one. */
#define PITH_TIME_NULL INT64_MIN

/* True for the empty cell and, in columns of numbers, times and booleans, for NA, N/A, NaN, NULL,
 * None and \N in any case. */
bool pith__cell_is_null(pith_str cell);
/* A finite decimal number. */
bool pith__cell_number(double *number, pith_str cell);
/* true, false, t, f, yes, no, y, n, 1, 0 in any case. */
bool pith__cell_boolean(bool *yes, pith_str cell);
/* Days since 1970 of a date of the years 1 to 9999; false if there is no such day. Source: Howard
 * Hinnant, chrono-compatible low-level date algorithms, days_from_civil. */
bool pith__date_days(int64_t *days, int year, int month, int day);
/* Seconds since 1970 of an ISO 8601 date, or date and time with 'T' or a space between, to the
 * minute or the second, with an optional fraction (cut off) and an optional "Z", "UTC" or offset.
 * Without an offset the time is taken as UTC. Years are 1 to 9999. time_format.h reads other
 * forms. */
bool pith__cell_time(int64_t *seconds, pith_str cell);

/* Writes "2023-05-30T15:13:52" with the given character in the middle, and returns its length.
 * Times outside the years 1 to 9999 are written as the nearest in them. */
enum { PITH_TIME_CHARS = 24 };
size_t pith__time_print(char *text, int64_t seconds, char middle);

#endif
