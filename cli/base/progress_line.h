/* progress_line.h - how far the work is, in a line on the terminal that the next one replaces.
 *
 * It is shown where somebody looks on and nothing else is written: standard error is a terminal,
 * and the results do not go to one. It begins after two seconds, so that short work stays
 * silent. */
#ifndef PITH_CLI_BASE_PROGRESS_LINE_H
#define PITH_CLI_BASE_PROGRESS_LINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress_line {
    bool on;
    const char *what; /* is counted, such as "texts" */
    double begun, shown, after;
    bool any;
    char heard[32]; /* what progress_line_hear was told */
} progress_line;

/* at_once: shown from the beginning, wherever the results go (--progress); quiet: never. output:
 * the file of the results; NULL or "-": standard output. */
void progress_line_begin(progress_line *p, const char *what, bool at_once, bool quiet,
                         const char *output);
/* total 0: not known. Costs nothing if it was called a moment ago. */
void progress_line_show(progress_line *p, uint64_t done, uint64_t total);
/* A pith_call's progress, whose user is the progress_line. Where another thing is counted than
 * before, its speed counts from there, and the two seconds from the first one. */
void progress_line_hear(void *line, const char *what, uint64_t done, uint64_t total);
/* Leaves the last line where it is, with a line end, if any was shown. */
void progress_line_end(progress_line *p, uint64_t done, uint64_t total);

#endif
