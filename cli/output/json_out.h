/* json_out.h - the one JSON object that a command prints with --json. */
#ifndef PITH_CLI_OUTPUT_JSON_OUT_H
#define PITH_CLI_OUTPUT_JSON_OUT_H

#include <jansson.h>

#include "cli/base/text_input.h"

/* A string from bytes that may not be UTF-8, such as the name of a file. */
json_t *json_text(const char *text);
/* Appends a text as a JSON string; bytes that are not UTF-8 become U+FFFD. */
void json_quote(bytes *out, pith_str text);
/* Prints the object to stdout and frees it. */
void json_print(json_t *object);

/* From now on the first failure is printed as {"error": message}, unless an object has been printed
 * before it. */
void json_failures(void);
void json_print_failure(const char *message);

#endif
