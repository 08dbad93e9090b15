/* progress_line.c - see progress_line.h. */
#include "cli/base/progress_line.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/message.h"
#include "cli/base/seconds.h"

/* Seconds before the first line, and between two. */
#define PROGRESS_AFTER 2.0
#define PROGRESS_EVERY 0.2

void progress_line_begin(progress_line *p, const char *what, bool at_once, bool quiet,
                         const char *output) {
    const bool terminal = isatty(STDERR_FILENO) == 1,
               apart = (output && strcmp(output, "-") != 0) || isatty(STDOUT_FILENO) != 1;
    *p = (progress_line){ .on = terminal && !quiet && (at_once || apart),
                          .what = what,
                          .begun = now_seconds(),
                          .after = at_once ? 0 : PROGRESS_AFTER };
}

static void progress_print(progress_line *p, uint64_t done, uint64_t total) {
    const double seconds = now_seconds() - p->begun;
    char of[40] = "", speed[60] = "";
    if (total) snprintf(of, sizeof of, " of %llu", (unsigned long long)total);
    if (seconds >= 1) snprintf(speed, sizeof speed, ", %.0f per second", (double)done / seconds);
    fprintf(stderr, "\r%llu%s %s%s\033[K", (unsigned long long)done, of, p->what, speed);
    note_over_line();
    p->any = true;
}

void progress_line_show(progress_line *p, uint64_t done, uint64_t total) {
    if (!p->on) return;
    const double now = now_seconds();
    if (now - p->begun < p->after || now - p->shown <= PROGRESS_EVERY) return;
    progress_print(p, done, total);
    p->shown = now;
}

void progress_line_hear(void *line, const char *what, uint64_t done, uint64_t total) {
    progress_line *p = line;
    const double now = now_seconds(), waited = now - p->begun;
    if (strcmp(what, p->what) != 0) {
        p->after = waited < p->after ? p->after - waited : 0;
        p->begun = now;
        snprintf(p->heard, sizeof p->heard, "%s", what);
        p->what = p->heard;
    }
    progress_line_show(p, done, total);
}

void progress_line_end(progress_line *p, uint64_t done, uint64_t total) {
    if (!p->on || (!p->any && p->after > 0)) return;
    progress_print(p, done, total);
    note_line_end();
    p->on = false;
}
