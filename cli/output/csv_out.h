/* csv_out.h - cells of CSV (RFC 4180), and of TSV, which are quoted in the same way. */
#ifndef PITH_CLI_OUTPUT_CSV_OUT_H
#define PITH_CLI_OUTPUT_CSV_OUT_H

#include "cli/base/bytes.h"

/* Appends a text, in quotes if it has a comma, a quote or a line end in it. */
void csv_put(bytes *out, const char *text);
/* The same with another delimiter. */
void csv_put_text(bytes *out, pith_str text, char delimiter);

#endif
