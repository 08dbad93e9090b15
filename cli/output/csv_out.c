/* csv_out.c - see csv_out.h. */
#include "cli/output/csv_out.h"

#include <string.h>

void csv_put_text(bytes *out, pith_str text, char delimiter) {
    bool plain = true;
    for (size_t i = 0; i < text.size && plain; i++)
        plain = text.data[i] != delimiter && text.data[i] && !strchr("\"\r\n", text.data[i]);
    if (plain) {
        bytes_add(out, text.data, text.size);
        return;
    }
    bytes_add(out, "\"", 1);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"') bytes_add(out, "\"", 1);
        bytes_add(out, &text.data[i], 1);
    }
    bytes_add(out, "\"", 1);
}

void csv_put(bytes *out, const char *text) {
    csv_put_text(out, (pith_str){ text, strlen(text) }, ',');
}
