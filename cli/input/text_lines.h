/* text_lines.h - the lines of a file by number. */
#ifndef PITH_CLI_INPUT_TEXT_LINES_H
#define PITH_CLI_INPUT_TEXT_LINES_H

#include "cli/base/mapped_file.h"

typedef struct text_lines {
    pith__file file;
    size_t *begins; /* [count + 1] */
    size_t count;
    char separator;
} text_lines;

/* separator: '\n', or NUL with -0. EXIT_DONE, or another exit code after a message. */
int text_lines_open(text_lines *lines, const command *c, const char *path, char separator);
void text_lines_close(text_lines *lines);
/* A line without its end, nor a CR before a newline. It may hold any bytes. */
pith_str text_lines_get(const text_lines *lines, size_t index);

#endif
