/* text_table.c - see text_table.h. */
#include "cli/input/text_table.h"

#include <stdlib.h>
#include <string.h>

#include "cli/input/bad_lines.h"

/* Bytes of a line that are kept, as `pith embed` does. */
#define LINE_BYTES ((size_t)1 << 20)

bool text_table_objects(const char *path) {
    const file_kind *kind = file_kind_of(path);
    return kind && kind->form != TEXT_LINES;
}

static bool take_object(text_table *t, const text_input *in, size_t from, bool cut) {
    static const char *const by_columns[] = { NULL };
    pith_str text;
    t->json.row = text_input_row(in) > 0;
    if (cut) snprintf(t->json.message, sizeof t->json.message, "the object is longer than 64 MiB");
    return !cut && json_line_texts(&t->json, &text, bytes_text(&t->kept, from, t->kept.size),
                                   by_columns, 1, NULL);
}

/* Reads all lines or rows into memory. */
static int read_all(text_table *t, const command *c, text_input *in, const row_options *o) {
    bad_lines bad = { .how = o->errors == ERRORS_SKIP ? ERRORS_SKIP : ERRORS_STOP };
    int state, code = EXIT_DONE;
    bool cut;
    for (size_t from = 0; !code; from = t->kept.size) {
        state = text_input_next(in, &t->kept, &cut);
        if (!state || (state < 0 && !in->bad)) break;
        if (state > 0 && t->objects && json_line_blank(bytes_text(&t->kept, from, t->kept.size))) {
            t->kept.size = from;
            continue;
        }
        const char *why = state < 0 ? in->message : NULL;
        if (!why && t->objects && !take_object(t, in, from, cut)) why = t->json.message;
        if (!why) {
            t->ends = grow_for(t->ends, t->count, sizeof *t->ends);
            t->ends[t->count++] = t->kept.size;
            continue;
        }
        t->kept.size = from;
        bad_lines_clear(&bad);
        if (bad_lines_add(&bad, 0, in, why, NULL)) continue;
        code = fail(c, "%s%s%s", state < 0 ? "" : text_input_place(in), state < 0 ? "" : ": ", why);
    }
    if (!code && state < 0) code = fail(c, "%s", in->message);
    t->skipped = bad.total;
    bad_lines_free(&bad);
    return code;
}

int text_table_open(text_table *t, const command *c, const char *path, const row_options *o,
                    bool whole) {
    const char *const paths[] = { path };
    const string_list list = { (const char **)(uintptr_t)paths, 1 };
    *t = (text_table){ .open = true, .objects = text_table_objects(path) };
    json_line_init(&t->json, o->invalid == 1);
    if (!whole && !t->objects) {
        const int code = text_lines_open(&t->lines, c, path, o->null ? 0 : '\n');
        t->count = t->lines.count;
        return code;
    }
    text_input in;
    text_input_open(&in, &list);
    row_options_apply(o, &in, &t->json);
    in.tables = t->objects;
    in.arguments = false;
    in.limit = t->objects ? JSON_LINE_BYTES : LINE_BYTES;
    const int code = read_all(t, c, &in, o);
    text_input_close(&in);
    return code;
}

void text_table_close(text_table *t) {
    if (!t->open) return;
    text_lines_close(&t->lines);
    json_line_free(&t->json);
    free(t->kept.data);
    free(t->ends);
    *t = (text_table){ .open = false };
}

static pith_str line_of(const text_table *t, size_t index) {
    return bytes_text(&t->kept, index ? t->ends[index - 1] : 0, t->ends[index]);
}

/* Reads the object again, which was read without a fault before. */
static pith_str object_text(text_table *t, size_t index) {
    static const char *const by_columns[] = { NULL };
    pith_str text = { "", 0 };
    json_line_texts(&t->json, &text, line_of(t, index), by_columns, 1, NULL);
    return text;
}

pith_str text_table_text(text_table *t, size_t index) {
    if (t->lines.begins) return text_lines_get(&t->lines, index);
    return t->objects ? object_text(t, index) : line_of(t, index);
}

pith_str text_table_id(text_table *t, size_t index) {
    if (!t->objects) return (pith_str){ NULL, 0 };
    object_text(t, index);
    return t->json.id_value;
}

pith_str text_table_field(text_table *t, size_t index, const char *name) {
    return t->objects ? json_line_member(&t->json, line_of(t, index), name) : (pith_str){ NULL, 0 };
}

bool text_table_has(text_table *t, size_t index, const char *name) {
    return json_line_has(&t->json, line_of(t, index), name);
}
