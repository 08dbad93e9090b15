/* embed_chunks.c - see embed_chunks.h.
 *
 * Chunks of a batch of texts wait until there are enough of them for a call. The sums of a text
 * whose chunks are spread over calls are kept between them, so memory does not grow with the length
 * of a text. A text of one chunk keeps its vector to the bit. */
#include "cli/embed/embed_chunks.h"

#include "cli/base/message.h"

#include <stdlib.h>
#include <string.h>

/* Texts of a batch, and chunks of a call. */
#define BATCH_TEXTS ((size_t)256)
#define CALL_CHUNKS ((size_t)512)

typedef struct waiting_chunk {
    size_t text;   /* of the batch */
    size_t number; /* of the text's chunks */
    pith_chunk at;
} waiting_chunk;

typedef struct chunk_job {
    const embed_chunks *e;
    text_batch *b;
    vector_writer writer;
    size_t dim, count; /* chunks that wait */
    uint64_t before;   /* texts before this batch */
    bool stopped;      /* a write failed; the message comes when the output is closed */
    waiting_chunk *waiting;
    pith_str *parts;
    float *vectors, *mean;
    double *sums;
    uint64_t tokens; /* of the chunks in sums */
    bytes prefix;
} chunk_job;

/* The cell of a text's id: its number where it has none. */
static void chunks_id(chunk_job *j, size_t text) {
    const char delimiter = vector_delimiter(j->writer.layout.format);
    const pith_str id = text_batch_id(j->b, text);
    if (id.size)
        json_line_cell(&j->b->json, &j->prefix, id, delimiter);
    else
        bytes_print(&j->prefix, "%llu", (unsigned long long)(j->before + text));
    bytes_add(&j->prefix, &delimiter, 1);
}

/* A row of the result; chunk NULL: of a whole text. False: it could not be written. */
static bool chunks_put(chunk_job *j, const float *vector, const waiting_chunk *w,
                       bool row_of_chunk) {
    text_batch *b = j->b;
    j->prefix.size = 0;
    if (!bad_lines_write(&b->bad, j->writer.out, w->text)) return false;
    if (j->writer.layout.ids) {
        chunks_id(j, w->text);
        const size_t cell[] = { 0, j->prefix.size };
        return vector_writer_rows(&j->writer, vector, 1, j->prefix.data, cell);
    }
    if (b->keeps)
        bytes_add(&j->prefix, b->kept.data + b->kept_begins[w->text],
                  b->kept_begins[w->text + 1] - b->kept_begins[w->text]);
    else if (row_of_chunk)
        bytes_print(&j->prefix, "{\"text\": %llu, ", (unsigned long long)(j->before + w->text));
    if (row_of_chunk)
        bytes_print(&j->prefix, "\"chunk\": %zu, \"begin\": %zu, \"end\": %zu, ", w->number,
                    w->at.begin, w->at.end);
    if (j->prefix.size) bytes_print(&j->prefix, "\"embedding\":");
    const size_t places[] = { 0, j->prefix.size };
    return vector_writer_rows(&j->writer, vector, 1, j->prefix.size ? j->prefix.data : NULL,
                              places);
}

/* Adds a chunk's vector to those before it, and writes the mean after the last one. */
static bool chunks_add(chunk_job *j, const float *vector, const waiting_chunk *w, pith_error *err) {
    if (!w->number && w->at.last) return chunks_put(j, vector, w, false);
    if (!w->number) memset(j->sums, 0, j->dim * sizeof *j->sums);
    if (!w->number) j->tokens = 0;
    const size_t tokens = w->at.tokens ? w->at.tokens : 1;
    for (size_t i = 0; i < j->dim; i++) j->sums[i] += (double)tokens * (double)vector[i];
    j->tokens += tokens;
    if (!w->at.last) return true;
    return !pith_chunk_mean(j->mean, j->e->model, j->sums, j->tokens, &j->e->options, err) &&
           chunks_put(j, j->mean, w, false);
}

/* Embeds the chunks that wait. An exit code. */
static int chunks_flush(chunk_job *j) {
    const embed_chunks *e = j->e;
    pith_error err = PITH_ERROR_INIT;
    bool good = true;
    if (!j->count) return EXIT_DONE;
    if (pith_embed(j->vectors, e->model, j->parts, j->count, &e->options, &err))
        return fail(e->c, "texts %llu to %llu: %s",
                    (unsigned long long)(j->before + j->waiting[0].text + 1),
                    (unsigned long long)(j->before + j->waiting[j->count - 1].text + 1),
                    err.message);
    for (size_t i = 0; i < j->count && good; i++) {
        const float *vector = j->vectors + i * j->dim;
        good = e->how->result == CHUNKS_ROWS ? chunks_put(j, vector, &j->waiting[i], true)
                                             : chunks_add(j, vector, &j->waiting[i], &err);
    }
    j->count = 0;
    if (good) return EXIT_DONE;
    if (!err.code) err = j->writer.conversion;
    j->stopped = !err.code;
    if (j->stopped) return EXIT_DONE;
    return fail(e->c, "after %llu vectors: %s", (unsigned long long)j->writer.rows, err.message);
}

static int chunks_text(chunk_job *j, size_t text) {
    const embed_chunks *e = j->e;
    const pith_str whole = j->b->texts[0][text];
    pith_error err = PITH_ERROR_INIT;
    pith_chunk_options options = PITH_CHUNK_OPTIONS_INIT;
    pith_chunk chunk = PITH_CHUNK_INIT;
    int code = EXIT_DONE;
    options.overlap = e->how->overlap;
    options.embed = &e->options;
    for (size_t number = 0; !chunk.last; number++) {
        if (code || j->stopped) break;
        if (pith_chunk_text(&chunk, e->model, whole, &options, &err))
            return fail(e->c, "text %llu: %s", (unsigned long long)(j->before + text + 1),
                        err.message);
        j->waiting[j->count] = (waiting_chunk){ text, number, chunk };
        j->parts[j->count++] = (pith_str){ whole.data + chunk.begin, chunk.end - chunk.begin };
        if (j->count == CALL_CHUNKS) code = chunks_flush(j);
    }
    return code;
}

/* Passes over the texts whose vectors are there. */
static int chunks_skip(chunk_job *j, text_batch *b) {
    for (uint64_t left = j->writer.rows; left; left -= b->count) {
        const int state = text_batch_next(b, left < BATCH_TEXTS ? (size_t)left : BATCH_TEXTS);
        if (state < 0) return fail(j->e->c, "%s", b->message);
        if (!state) break;
        j->before += b->count;
    }
    return EXIT_DONE;
}

static int chunks_batches(chunk_job *j, embed_chunks *e, text_batch *b) {
    int code = EXIT_DONE, state = 0;
    while (!code && !j->stopped && (state = text_batch_next(b, BATCH_TEXTS)) > 0) {
        for (size_t i = 0; i < b->count; i++) {
            if (code || j->stopped) break;
            code = chunks_text(j, i);
        }
        if (!code && !j->stopped) code = chunks_flush(j);
        if (!code && !j->stopped) j->stopped = !bad_lines_write(&b->bad, j->writer.out, SIZE_MAX);
        if (!code) j->stopped |= !output_flush(j->writer.out);
        j->before += b->count;
        progress_line_show(e->progress, j->before, 0);
        e->cut += b->cut;
    }
    if (!code && state < 0) code = fail(e->c, "%s", b->message);
    return code;
}

/* Refuses options that no text could be chunked under, before there is an output. */
static int chunks_check(const embed_chunks *e) {
    pith_error err = PITH_ERROR_INIT;
    pith_chunk_options options = PITH_CHUNK_OPTIONS_INIT;
    pith_chunk chunk = PITH_CHUNK_INIT;
    const size_t most = pith_embed_max_length(e->model, &e->options);
    const int32_t wanted = e->options.max_length;
    if (wanted && most != (size_t)wanted)
        return fail(e->c, "--chunk-tokens %d: the model takes at most %zu tokens", wanted, most);
    options.overlap = e->how->overlap;
    options.embed = &e->options;
    if (!pith_chunk_text(&chunk, e->model, (pith_str){ "", 0 }, &options, &err)) return EXIT_DONE;
    return fail(e->c, "%s", err.message);
}

static int chunks_write(embed_chunks *e, text_batch *b, output *out, const vector_layout *layout) {
    const size_t dim = layout->dim;
    chunk_job j = { .e = e, .b = b, .dim = dim };
    int code = vector_writer_open(&j.writer, e->c, out, layout);
    if (code) return code;
    j.waiting = grow(NULL, CALL_CHUNKS * sizeof *j.waiting);
    j.parts = grow(NULL, CALL_CHUNKS * sizeof *j.parts);
    j.vectors = grow(NULL, CALL_CHUNKS * dim * sizeof *j.vectors);
    j.mean = grow(NULL, dim * sizeof *j.mean);
    j.sums = grow(NULL, dim * sizeof *j.sums);
    code = chunks_skip(&j, b);
    if (!code) code = chunks_batches(&j, e, b);
    progress_line_end(e->progress, j.before, 0);
    if (!code && vector_writer_unmet(&j.writer))
        code = fail(e->c,
                    "%s: its last vector is not that of text %llu; the texts, model or options "
                    "were others; remove it to "
                    "start over",
                    out->temporary, (unsigned long long)j.writer.rows + 1);
    vector_writer_close(&j.writer);
    free(j.waiting);
    free(j.parts);
    free(j.vectors);
    free(j.mean);
    free(j.sums);
    free(j.prefix.data);
    return code;
}

int embed_chunks_run(embed_chunks *e, text_batch *b, const string_list *files) {
    output out;
    vector_layout layout;
    int code = chunks_check(e);
    if (!code)
        code = vector_layout_make(&layout, e->c, e->layout, pith_embed_dim(e->model, &e->options));
    if (code) return code;
    code = (e->resume ? output_resume : output_open)(&out, e->c, e->output, files);
    if (!code) {
        code = chunks_write(e, b, &out, &layout);
        if (code && e->resume)
            note("the finished part is in %s; run the same command again to continue",
                 out.temporary);
        code = output_close(&out, e->c, true, code);
    }
    vector_layout_free(&layout);
    return code;
}
