/* float_text.h - floats as text. */
#ifndef PITH_CLI_BASE_FLOAT_TEXT_H
#define PITH_CLI_BASE_FLOAT_TEXT_H

#include <stddef.h>

/* Characters of the longest number, the final NUL included. */
enum { NUMBER_CHARS = 17 };

/* Writes x as printf's %.9g does, from which the float can be read back, and returns the number of
 * characters. */
size_t number_print(char text[NUMBER_CHARS], float x);

#endif
