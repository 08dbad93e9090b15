/* csv_in.c - see csv_in.h. */
#include "cli/input/csv_in.h"

#include <stdlib.h>
#include <string.h>

int csv_in_open(csv_in *in, const command *c, const char *path) {
    *in = (csv_in){ .path = path, .next_line = 1 };
    int code = mapped_open(&in->file, c, path);
    /* a byte order mark */
    if (!code && in->file.size >= 3 && !memcmp(in->file.data, "\xef\xbb\xbf", 3)) in->at = 3;
    return code;
}

/* Past the end of a line, if there is one here. */
static bool csv_end_of_line(csv_in *in) {
    const unsigned char *p = in->file.data + in->at;
    const size_t left = in->file.size - in->at;
    const size_t n = left > 1 && p[0] == '\r' && p[1] == '\n' ? 2
                     : left && (*p == '\n' || *p == '\r')     ? 1
                                                              : 0;
    in->at += n;
    in->next_line += n > 0;
    return n > 0;
}

/* One field, with its NUL; the comma or the end of the line behind it stays. False: a quote is not
 * closed. */
static bool csv_field(csv_in *in) {
    const unsigned char *p = in->file.data;
    const bool quoted = in->at < in->file.size && p[in->at] == '"';
    bool closed = !quoted;
    in->at += quoted;
    for (; in->at < in->file.size; in->at++) {
        const unsigned char ch = p[in->at];
        if (closed && (ch == ',' || ch == '\n' || ch == '\r')) break;
        if (quoted && !closed && ch == '"') {
            closed = in->at + 1 >= in->file.size || p[in->at + 1] != '"';
            if (closed) continue;
            in->at++;
        }
        in->next_line += !closed && ch == '\n';
        bytes_add(&in->text, &p[in->at], 1);
    }
    bytes_add(&in->text, "", 1);
    return closed;
}

int csv_in_next(csv_in *in, const command *c, bool *there) {
    size_t places[CSV_FIELDS];
    while (csv_end_of_line(in)) {}
    *there = in->at < in->file.size;
    in->line = in->next_line;
    in->count = in->text.size = 0;
    for (bool more = *there; more;) {
        const size_t begin = in->text.size;
        if (!csv_field(in))
            return fail(c, "%s, line %zu: a quote is not closed", in->path, in->line);
        if (strlen(in->text.data + begin) + 1 != in->text.size - begin)
            return fail(c, "%s, line %zu: there is a NUL byte; the file must be text", in->path,
                        in->line);
        if (in->count < CSV_FIELDS)
            places[in->count++] = begin;
        else
            in->text.size = begin;
        more = in->at < in->file.size && in->file.data[in->at] == ',';
        in->at += more;
    }
    for (size_t i = 0; i < in->count; i++) in->fields[i] = in->text.data + places[i];
    return EXIT_DONE;
}

void csv_in_close(csv_in *in) {
    mapped_close(&in->file);
    free(in->text.data);
}
