/* bytes.h - a growing run of bytes, which ends the process if memory is out. */
#ifndef PITH_CLI_BASE_BYTES_H
#define PITH_CLI_BASE_BYTES_H

#include "cli/base/cli.h"

typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

void bytes_reserve(bytes *b, size_t more);
void bytes_add(bytes *b, const void *data, size_t size);
/* Those at `begin` to before `end`; where there are none yet, the text is "", not NULL. */
pith_str bytes_text(const bytes *b, size_t begin, size_t end);
/* Puts U+FFFD in the place of what is not UTF-8 behind `from`, one for each maximal part of a
 * character. */
void bytes_replace_invalid(bytes *b, size_t from);
/* Adds to b what the library writes; b must outlive the writer. */
pith_writer bytes_writer(bytes *b);
void bytes_print(bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
