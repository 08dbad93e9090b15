/* safe_text.h - words of files and arguments in messages, safe to show on a terminal. */
#ifndef PITH_CLI_BASE_SAFE_TEXT_H
#define PITH_CLI_BASE_SAFE_TEXT_H

#include <stddef.h>

/* Prints to message[size], as the library prints its own messages: control characters and bytes
 * that are not UTF-8 appear as \xNN, and a message that is too long is cut. */
void cleaned_print(char *message, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
