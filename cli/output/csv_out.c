/* csv_out.c - see csv_out.h. */
#include "cli/output/csv_out.h"

#include <string.h>

void csv_put(bytes *out, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        bytes_add(out, text, strlen(text));
        return;
    }
    bytes_add(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"') bytes_add(out, "\"", 1);
        bytes_add(out, text, 1);
    }
    bytes_add(out, "\"", 1);
}
