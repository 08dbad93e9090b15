/* csv_out.h - fields of CSV (RFC 4180). */
#ifndef PITH_CLI_OUTPUT_CSV_OUT_H
#define PITH_CLI_OUTPUT_CSV_OUT_H

#include "cli/base/text_input.h"

/* Appends a text, in quotes if it has a comma, a quote or a line end in it. */
void csv_put(bytes *out, const char *text);

#endif
