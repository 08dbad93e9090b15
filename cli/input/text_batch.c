/* text_batch.c - see text_batch.h. */
#include "cli/input/text_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_out.h"

/* A batch ends after this many bytes. */
#define BATCH_BYTES ((size_t)4 << 20)

void text_batch_open(text_batch *b, const row_options *rows, const char *pair) {
    *b = (text_batch){ .fields = { NULL, pair }, .width = rows->objects ? 1 + (pair != NULL) : 0 };
    text_input_open(&b->in, &rows->inputs);
    b->in.limit = rows->objects ? JSON_LINE_BYTES : TEXT_BATCH_BYTES;
    json_line_init(&b->json, false);
    row_options_apply(rows, &b->in, &b->json);
    b->bad.how = rows->errors;
}

void text_batch_close(text_batch *b) {
    text_input_close(&b->in);
    json_line_free(&b->json);
    bad_lines_free(&b->bad);
    free(b->data.data);
    free(b->kept.data);
    free(b->kept_begins);
    free(b->ids.data);
    free(b->id_ends);
    free(b->begins);
    free(b->texts[0]);
    free(b->texts[1]);
}

/* The text without what lies beyond TEXT_BATCH_BYTES, cut between characters. */
static pith_str text_batch_cut(text_batch *b, pith_str text) {
    const size_t size = (size_t)pith__text_most(text.data, text.size, TEXT_BATCH_BYTES);
    b->cut += size < text.size;
    return (pith_str){ text.data, size };
}

/* Replaces the line, which begins at `from` in data, by the texts in its fields. */
static bool take_fields(text_batch *b, size_t from, bool too_long) {
    pith_str line = bytes_text(&b->data, from, b->data.size), texts[2];
    b->json.row = text_input_row(&b->in) > 0;
    const char *why = NULL;
    if (too_long)
        why = "the object is longer than 64 MiB";
    else if (!json_line_texts(&b->json, texts, line, b->fields, b->width,
                              b->keeps ? &b->kept : NULL))
        why = b->json.message;
    if (why) {
        pith__text_print(b->message, sizeof b->message, "%s: %s", text_input_place(&b->in), why);
        return false;
    }
    bytes_add(&b->ids, b->json.id_value.data, b->json.id_value.size);
    b->id_ends[b->count] = b->ids.size;
    bytes copies = { NULL, 0, 0 }; /* the texts may be parts of the line */
    for (size_t i = 0; i < b->width; i++) {
        pith_str text = text_batch_cut(b, texts[i]);
        bytes_add(&copies, text.data, text.size);
        b->begins[b->count * b->width + i + 1] = from + copies.size;
    }
    b->data.size = from;
    bytes_add(&b->data, copies.data, copies.size);
    free(copies.data);
    return true;
}

/* Takes back what a bad line has left, and notes the line. 1, or -1 if it ends the command. */
static int pass_bad(text_batch *b) {
    b->data.size = b->begins[b->count * (b->width ? b->width : 1)];
    b->kept.size = b->kept_begins[b->count];
    return bad_lines_add(&b->bad, b->count, &b->in, b->message, NULL) ? 1 : -1;
}

/* 1: a text was added, or a bad line was noted; 0: there is none; -1: message says why. */
static int take_line(text_batch *b) {
    const size_t from = b->data.size, width = b->width ? b->width : 1;
    bool cut;
    int state;
    b->begins = grow_for(b->begins, b->count, (width + 1) * sizeof *b->begins);
    b->kept_begins = grow_for(b->kept_begins, b->count, 2 * sizeof *b->kept_begins);
    b->id_ends = grow_for(b->id_ends, b->count, sizeof *b->id_ends);
    b->begins[b->count * width] = from;
    b->kept_begins[b->count] = b->kept.size;
    do {
        b->data.size = from;
        state = text_input_next(&b->in, &b->data, &cut);
        if (state < 0) pith__text_print(b->message, sizeof b->message, "%s", b->in.message);
        if (state < 0 && b->in.bad) return pass_bad(b);
        if (state <= 0) return state;
    } while (b->width && json_line_blank(bytes_text(&b->data, from, b->data.size)));
    b->begins[b->count * width + 1] = b->data.size;
    if (b->width && !take_fields(b, from, cut)) return pass_bad(b);
    b->cut += !b->width && cut;
    b->count++;
    return 1;
}

/* A batch ends when it is full, when its bytes are many, or when the next line is not there yet: a
 * program that asks through a pipe gets its answer at once. */
int text_batch_next(text_batch *b, size_t most) {
    const size_t width = b->width ? b->width : 1;
    int state = !b->ended;
    b->data.size = b->kept.size = b->ids.size = b->count = b->cut = 0;
    bad_lines_clear(&b->bad);
    while (state > 0 && b->count < most &&
           b->data.size + b->kept.size + b->ids.size + bad_lines_bytes(&b->bad) < BATCH_BYTES) {
        if (b->count + b->bad.count && !text_input_ready(&b->in)) break;
        state = take_line(b);
    }
    if (state < 0) return -1;
    b->ended = !state;
    for (size_t i = 0; i < width; i++) {
        b->texts[i] = grow(b->texts[i], (b->count + 1) * sizeof *b->texts[i]);
        for (size_t k = 0; k < b->count; k++) {
            const size_t *begin = &b->begins[k * width + i];
            b->texts[i][k] = bytes_text(&b->data, begin[0], begin[1]);
        }
    }
    if (b->count) b->kept_begins[b->count] = b->kept.size;
    return b->count + b->bad.count > 0;
}

pith_str text_batch_id(const text_batch *b, size_t index) {
    if (!b->width) return (pith_str){ NULL, 0 };
    return bytes_text(&b->ids, index ? b->id_ends[index - 1] : 0, b->id_ends[index]);
}
