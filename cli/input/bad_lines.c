/* bad_lines.c - see bad_lines.h. */
#include "cli/input/bad_lines.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/message.h"
#include "cli/output/json_out.h"

/* Lines of a call that are left out with a message each. */
enum { SKIPPED_SHOWN = 5 };

void bad_lines_free(bad_lines *b) {
    free(b->lines);
    free(b->objects.data);
}

size_t bad_lines_bytes(const bad_lines *b) { return b->objects.size + b->count * sizeof *b->lines; }

void bad_lines_clear(bad_lines *b) { b->count = b->written = b->objects.size = 0; }

/* {"file": "a.csv", "row": 2, "line": 3, "error": "..."} */
static void bad_lines_object(bad_lines *b, const text_input *in, const char *message,
                             const char *members) {
    const char *place = text_input_place(in), *path = text_input_path(in);
    const size_t size = strlen(place);
    if (!strncmp(message, place, size) && !strncmp(message + size, ": ", 2)) message += size + 2;
    bytes_print(&b->objects, "{%s", members ? members : "");
    if (path) {
        bytes_print(&b->objects, "\"file\": ");
        json_quote(&b->objects, (pith_str){ path, strlen(path) });
        bytes_print(&b->objects, ", ");
    }
    if (text_input_row(in))
        bytes_print(&b->objects, "\"row\": %llu, ", (unsigned long long)text_input_row(in));
    bytes_print(&b->objects, "\"line\": %llu, \"error\": ", (unsigned long long)in->line);
    json_quote(&b->objects, (pith_str){ message, strlen(message) });
    bytes_print(&b->objects, "}\n");
}

/* Says which line is left out, if it is one of the first. */
static void bad_lines_tell(const text_input *in, const char *message) {
    static unsigned told; /* lines are read by one thread */
    const char *place = text_input_place(in);
    const bool placed = !strncmp(message, place, strlen(place));
    if (told++ < SKIPPED_SHOWN)
        note("%s%s%s; left out", placed ? "" : place, placed ? "" : ": ", message);
}

bool bad_lines_add(bad_lines *b, size_t row, const text_input *in, const char *message,
                   const char *members) {
    if (b->how == ERRORS_STOP) return false;
    if (b->how == ERRORS_REPORT)
        bad_lines_object(b, in, message, members);
    else
        bad_lines_tell(in, message);
    b->lines = grow_for(b->lines, b->count, sizeof *b->lines);
    b->lines[b->count++] = (bad_line){ row, b->objects.size };
    b->total++;
    return true;
}

size_t bad_lines_next(const bad_lines *b) {
    return b->written < b->count ? b->lines[b->written].row : SIZE_MAX;
}

pith_str bad_lines_take(bad_lines *b, size_t row) {
    const size_t from = b->written ? b->lines[b->written - 1].end : 0;
    size_t end = from;
    for (; b->written < b->count && b->lines[b->written].row <= row; b->written++)
        end = b->lines[b->written].end;
    return end > from ? (pith_str){ b->objects.data + from, end - from } : (pith_str){ "", 0 };
}

bool bad_lines_write(bad_lines *b, output *out, size_t row) {
    const pith_str objects = bad_lines_take(b, row);
    return !objects.size || output_write(out, objects.data, objects.size);
}

int bad_lines_end(uint64_t total, const command *c, int how, int code) {
    if (code || !total) return code;
    if (how == ERRORS_SKIP)
        return fail(c, "%llu %s left out", (unsigned long long)total,
                    total == 1 ? "line was" : "lines were");
    return fail(c, "%llu %s no result; the output has an object with \"error\" for each",
                (unsigned long long)total, total == 1 ? "line has" : "lines have");
}
