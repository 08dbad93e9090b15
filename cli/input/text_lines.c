/* text_lines.c - see text_lines.h. The file is mapped; only where lines begin is held in memory. */
#include "cli/input/text_lines.h"

#include <stdlib.h>
#include <string.h>

int text_lines_open(text_lines *lines, const command *c, const char *path, char separator) {
    *lines = (text_lines){ .separator = separator };
    int code = map_file(&lines->file, c, path);
    if (code) return code;
    size_t capacity = 1024, at = 0;
    const char *data = (const char *)lines->file.data;
    lines->begins = grow(NULL, capacity * sizeof *lines->begins);
    lines->begins[0] = 0;
    while (at < lines->file.size) {
        const char *end = memchr(data + at, separator, lines->file.size - at);
        at = end ? (size_t)(end - data) + 1 : lines->file.size;
        if (++lines->count == capacity) {
            capacity *= 2;
            lines->begins = grow(lines->begins, capacity * sizeof *lines->begins);
        }
        lines->begins[lines->count] = at;
    }
    return EXIT_DONE;
}

void text_lines_close(text_lines *lines) {
    pith__file_close(&lines->file);
    free(lines->begins);
    *lines = (text_lines){ 0 };
}

pith_str text_lines_get(const text_lines *lines, size_t index) {
    const char *data = (const char *)lines->file.data + lines->begins[index];
    size_t size = lines->begins[index + 1] - lines->begins[index];
    if (size && data[size - 1] == lines->separator) size--;
    if (lines->separator == '\n' && size && data[size - 1] == '\r') size--;
    return (pith_str){ data, size };
}
