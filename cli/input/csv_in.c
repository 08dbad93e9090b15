/* csv_in.c - see csv_in.h. */
#include "cli/input/csv_in.h"

#include <stdlib.h>
#include <string.h>

int csv_in_open(csv_in *in, const command *c, const char *path) {
    *in = (csv_in){ .path = path, .next_line = 1 };
    pith__arena_init(&in->arena, &pith__allocator_default);
    const int code = map_file(&in->file, c, path);
    if (code) return code;
    in->scan = pith__csv_begin((pith_str){ (const char *)in->file.data, in->file.size }, ',');
    in->scan.loose = true;
    in->scan.arena = &in->arena;
    return EXIT_DONE;
}

int csv_in_next(csv_in *in, const command *c, bool *there) {
    size_t places[CSV_FIELDS];
    while (pith__csv_blank(&in->scan)) in->next_line++;
    *there = in->scan.at < in->scan.end;
    in->line = in->next_line;
    in->count = in->text.size = 0;
    pith__arena_reset(&in->arena);
    for (bool more = *there; more;) {
        pith_str cell;
        const pith__csv_after after = pith__csv_next(&in->scan, &cell);
        if (after == PITH_CSV_FAULT)
            return fail(c, "%s, line %zu: a quote is not closed", in->path, in->line);
        if (after == PITH_CSV_MEMORY)
            return fail(c, "%s, line %zu: out of memory", in->path, in->line);
        if (memchr(cell.data, 0, cell.size))
            return fail(c, "%s, line %zu: there is a NUL byte; the file must be text", in->path,
                        in->line);
        if (in->count < CSV_FIELDS) {
            places[in->count++] = in->text.size;
            bytes_add(&in->text, cell.data, cell.size);
            bytes_add(&in->text, "", 1);
        }
        for (size_t i = 0; i < cell.size; i++) in->next_line += cell.data[i] == '\n';
        more = after == PITH_CSV_CELL;
        in->next_line += !more;
    }
    for (size_t i = 0; i < in->count; i++) in->fields[i] = in->text.data + places[i];
    return EXIT_DONE;
}

void csv_in_close(csv_in *in) {
    pith__file_close(&in->file);
    pith__arena_free(&in->arena);
    free(in->text.data);
}
