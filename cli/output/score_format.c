/* score_format.c - see score_format.h. */
#include "cli/output/score_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/float_text.h"

int score_check(const command *c, int format, int errors) {
    if (format == SCORES_JSONL || errors != 1) return EXIT_DONE;
    return usage(c, "--errors report goes with --format jsonl; --errors skip leaves bad lines out");
}

char score_delimiter(int format) { return format == SCORES_TSV ? '\t' : ','; }

bool score_header(output *out, int format, const char *names) {
    bytes line = { NULL, 0, 0 };
    bytes_add(&line, names, strlen(names));
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] == ',') line.data[i] = score_delimiter(format);
    bytes_add(&line, "\n", 1);
    const bool good = output_header(out, line.data, line.size);
    free(line.data);
    return good;
}

void score_cell(bytes *out, float score) {
    char number[NUMBER_CHARS];
    if (isfinite(score)) bytes_add(out, number, number_print(number, score));
}
