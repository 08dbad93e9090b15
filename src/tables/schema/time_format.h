/* time_format.h - the ways to write a point in time that columns of files use, and which of them a
 * column uses.
 *
 * A column has one form. It is the only one that reads all of its cells; where several do, as of
 * 01/02/2024, the schema must say which (`format`). Times without an offset are UTC. */
#ifndef PITH_TABLES_SCHEMA_TIME_FORMAT_H
#define PITH_TABLES_SCHEMA_TIME_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/memory.h"

typedef enum pith__time_format {
    PITH_TIME_AUTO,    /* what reads all cells */
    PITH_TIME_ISO,     /* 2024-01-31, 2024/01/31 15:13:52 UTC */
    PITH_TIME_COMPACT, /* 20240131, 20240131T151352Z, 202401311513 */
    PITH_TIME_MONTH_FIRST,
    PITH_TIME_DAY_FIRST, /* 31/01/2024, 31.01.24 3:13 PM */
    PITH_TIME_NAMED,     /* 31 Jan 2024, Jan 31, 2024, Wed, 31 Jan 2024 15:13:52 GMT */
    PITH_TIME_SECONDS,   /* since 1970, perhaps with a fraction, which is cut off */
    PITH_TIME_MILLISECONDS,
    PITH_TIME_MICROSECONDS,
    PITH_TIME_NANOSECONDS,
    PITH_TIME_FORMATS
} pith__time_format;
extern const char *const pith__time_format_names[PITH_TIME_FORMATS];

/* Reads a time that is written in this form; AUTO is ISO. False if the cell is none, or not from
 * the years 1 to 9999. */
bool pith__time_parse(int64_t *seconds, pith_str cell, pith__time_format format);

/* The forms, a bit each, that a column may have; begin with PITH_TIME_ANY and take each cell that
 * is no null. Numbers since 1970 count if they are of the years 2000 to 2100: smaller ones are as
 * likely to be amounts. */
#define PITH_TIME_ANY ((1u << PITH_TIME_FORMATS) - 2)
unsigned pith__time_formats(unsigned possible, pith_str cell);
/* The form that a set leaves: the only one; AUTO if there is none or if they contradict each other.
 */
pith__time_format pith__time_format_of(unsigned possible);

#endif
