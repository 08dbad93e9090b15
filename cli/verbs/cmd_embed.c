/* cmd_embed.c - pith embed: texts to vectors, one text per line.
 *
 * Three windows of texts rotate: one is read, one embedded and one written, each by a thread of its
 * own. So no stage waits for the others, and memory is bounded by three windows. A window is closed
 * when it is full, and also when the next line is not there yet, so that a program can talk with
 * pith line by line through pipes. If a thread cannot be started, its work is done between the
 * slices.
 *
 * The texts of a window are embedded in slices, whose size is chosen to take less than a second.
 * Each slice is written at once, so a call that is killed loses at most one slice. A file that
 * appears only when it is complete needs no slices. */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_out.h"
#include "cli/arrays/split_files.h"
#include "cli/arrays/vector_layout.h"
#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/embed/embed_chunks.h"
#include "cli/embed/embed_images.h"
#include "cli/embed/embed_encodings.h"
#include "cli/embed/embed_settings.h"
#include "cli/input/kept_members.h"
#include "cli/input/bad_lines.h"
#include "cli/input/json_line.h"
#include "cli/output/output.h"
#include "cli/output/profile_file.h"
#include "cli/output/resume_record.h"

/* A window ends after this many texts or bytes of text. Larger windows keep more threads busy;
 * memory is three windows and their vectors, and the first result comes later. */
#define WINDOW_TEXTS ((size_t)1024)
#define WINDOW_BYTES ((size_t)4 << 20)
/* Bytes of a line that are kept. Models see less of a text than this; memory for one line stays
 * bounded. */
#define LINE_BYTES ((size_t)1 << 20)
/* One window is read, one embedded and one written. */
#define WINDOWS 3
/* How long a slice should take. A killed process loses the work of one slice, so longer slices lose
 * more. Shorter ones make threads wait for each other at their ends. docs/cli.md promises results
 * about every second. */
#define SLICE_SECONDS 0.8
/* The work of a text is estimated as its bytes plus this many, for what is done once per text. It
 * only decides where slices are cut. */
#define TEXT_COST 16

typedef struct window {
    enum { EMPTY, FILLED, DONE } state;
    bool last; /* nothing comes after it */
    bytes text;
    size_t *begins; /* count + 1 places in text */
    pith_str *texts;
    size_t count;
    size_t embedded;  /* texts whose vectors are there; changes under the lock until the window is
                         DONE */
    size_t written;   /* the writer's own */
    uint64_t cut;     /* lines longer than LINE_BYTES */
    uint64_t *hashes; /* [count + 1] of all inputs before each text */
    bytes kept;       /* of JSON objects that vectors are added to, what stands before the vector */
    size_t *kept_begins;
    bad_lines bad; /* the reader's, then the writer's */
    float *vectors;
} window;

typedef struct job {
    pith_model *model;
    pith_bm25 *bm25;  /* instead of the model; or NULL */
    json_t *pictures; /* what is told of pictures; or NULL */
    pith_embed_options options;
    size_t dim;
    const row_options *inputs;
    bool refuses_long;
    progress_line progress;
    text_input in;
    json_line json;
    vector_writer writer;
    uint64_t done;       /* texts whose vectors an earlier call has written */
    bool compares;       /* one more, whose vector is compared */
    uint64_t read, hash; /* inputs read so far, and their hash */
    uint64_t taken;      /* those of them that are texts, the reader's count */
    resume_record record;
    split_files files;
    const command *c;
    vector_layout layout;
    window windows[WINDOWS];
    bool reads, writes;   /* there is a thread for it */
    bool sliced;          /* the output can be read before it is complete */
    double budget;        /* what a slice may cost; 0: no slice has been measured */
    size_t length_max;    /* bytes of a text that count; 0: all */
    uint64_t rows;        /* the writer's count */
    uint64_t bad;         /* bad lines of all windows */
    pthread_mutex_t lock; /* of states and what follows */
    pthread_cond_t changed;
    bool stop;          /* nothing more is to be read */
    bool write_failed;  /* the output's own error says why; what was embedded is of no use any
                           more */
    char message[1400]; /* the first failure; "" none */
} job;

/* ---- the ring ---- */

static window *wait_for(job *j, size_t turn, int state) {
    window *w = &j->windows[turn % WINDOWS];
    pthread_mutex_lock(&j->lock);
    while ((int)w->state != state) pthread_cond_wait(&j->changed, &j->lock);
    pthread_mutex_unlock(&j->lock);
    return w;
}

static void hand_on(job *j, window *w, int state) {
    pthread_mutex_lock(&j->lock);
    w->state = state;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

static void note_failure(job *j, const char *message) {
    pthread_mutex_lock(&j->lock);
    if (!j->message[0]) pith__text_print(j->message, sizeof j->message, "%s", message);
    j->stop = true;
    pthread_mutex_unlock(&j->lock);
}

static void note_write_failure(job *j) {
    pthread_mutex_lock(&j->lock);
    j->stop = j->write_failed = true;
    pthread_mutex_unlock(&j->lock);
}

static bool is_set(job *j, const bool *flag) {
    pthread_mutex_lock(&j->lock);
    bool set = *flag;
    pthread_mutex_unlock(&j->lock);
    return set;
}

/* ---- reading ---- */

/* Appends the next line that is a text, or holds one, to text; as text_input_next. */
static int next_line(job *j, bytes *text, bool *cut) {
    size_t from = text->size;
    for (;;) {
        int state = text_input_next(&j->in, text, cut);
        if (state < 0 && !(j->inputs->errors && j->in.bad)) note_failure(j, j->in.message);
        if (state <= 0 || !j->inputs->objects) return state;
        if (!json_line_blank(bytes_text(text, from, text->size))) return 1;
        text->size = from;
    }
}

/* Notes a bad line, of which the window keeps nothing else; false: it ends the command. */
static bool pass_bad(job *j, window *w, const char *why) {
    char message[1400];
    w->text.size = w->begins[w->count];
    w->kept.size = w->kept_begins[w->count];
    if (bad_lines_add(&w->bad, w->count, &j->in, why, NULL)) return true;
    pith__text_print(message, sizeof message, "%s: %s", text_input_place(&j->in), why);
    note_failure(j, message);
    return false;
}

/* Keeps the cell of the row's id: its number where it has none. */
static void keep_cell(job *j, window *w) {
    const char delimiter = vector_delimiter(j->layout.format);
    if (j->json.id_value.size)
        json_line_cell(&j->json, &w->kept, j->json.id_value, delimiter);
    else
        bytes_print(&w->kept, "%llu", (unsigned long long)j->taken);
    bytes_add(&w->kept, &delimiter, 1);
}

/* Replaces the line at the end of w->text by the text in its field, and keeps the object. NULL, or
 * what is wrong. */
static const char *take_object(job *j, window *w, bool too_long) {
    static const char *const by_columns[] = { NULL };
    size_t from = w->begins[w->count];
    pith_str line = bytes_text(&w->text, from, w->text.size), text;
    if (too_long) return "the object is longer than 64 MiB";
    j->json.row = text_input_row(&j->in) > 0;
    if (!json_line_texts(&j->json, &text, line, by_columns, 1,
                         j->layout.format == FORMAT_JSONL ? &w->kept : NULL))
        return j->json.message;
    if (j->layout.ids)
        keep_cell(j, w);
    else
        bytes_print(&w->kept, "\"embedding\":");
    w->kept_begins[w->count + 1] = w->kept.size;
    const size_t size = (size_t)pith__text_most(text.data, text.size, LINE_BYTES);
    w->cut += size < text.size;
    /* it may be a part of the line */
    if (size) memmove(w->text.data + from, text.data, size);
    w->text.size = from + size;
    return NULL;
}

/* Adds an input to the hash; false if an earlier call had others, which is noted. */
static bool take_hash(job *j, const char *data, size_t size) {
    j->hash = resume_hash(j->hash, data, size);
    if (resume_record_agrees(&j->record, ++j->read, j->hash)) return true;
    note_failure(j, "the texts are others than those that the finished part was made of; give the "
                    "same texts, or "
                    "remove it to start over");
    return false;
}

/* Passes over the texts that are done; false when there are fewer. */
static bool skip_done(job *j) {
    bytes line = { NULL, 0, 0 };
    int state = 1;
    for (uint64_t i = 0; i < j->done && state > 0 && !is_set(j, &j->stop); i++) {
        line.size = 0;
        state = next_line(j, &line, NULL);
        if (state > 0 && !take_hash(j, line.data, line.size)) state = 0;
        j->taken++;
    }
    free(line.data);
    if (!state && !j->compares && !is_set(j, &j->stop)) /* else the last vector tells */
        note_failure(j, "the texts are fewer than those that the finished part was made of; give "
                        "the same texts, or "
                        "remove it to start over");
    return state > 0;
}

/* Reads a text into the window, or a bad line that is noted; false when there is none, or it ends
 * the command. */
static bool read_text(job *j, window *w) {
    bool cut = false;
    w->begins[w->count] = w->text.size;
    int state = next_line(j, &w->text, &cut);
    if (state < 0 && j->inputs->errors && j->in.bad) return pass_bad(j, w, j->in.message);
    if (state <= 0) return false;
    const pith_str line = bytes_text(&w->text, w->begins[w->count], w->text.size);
    if (!take_hash(j, line.data, line.size)) return false;
    const char *why = j->inputs->objects ? take_object(j, w, cut) : NULL;
    if (why) return pass_bad(j, w, why);
    w->cut += cut;
    j->taken++;
    w->begins[++w->count] = w->text.size;
    w->hashes[w->count] = j->hash;
    return true;
}

/* Fills a window; returns false when nothing comes after it. */
static bool read_window(job *j, window *w) {
    w->text.size = w->kept.size = w->count = w->cut = 0;
    bad_lines_clear(&w->bad);
    w->hashes[0] = j->hash;
    while (w->count < WINDOW_TEXTS &&
           w->text.size + w->kept.size + bad_lines_bytes(&w->bad) < WINDOW_BYTES) {
        if (is_set(j, &j->stop)) return false;
        if (w->count + w->bad.count && !text_input_ready(&j->in)) return true;
        if (!read_text(j, w)) return false;
    }
    return true;
}

static void read_turn(job *j, window *w, bool first) {
    uint64_t begin = pith_profile_now();
    w->last = (first && !skip_done(j)) || !read_window(j, w);
    pith_profile_phase(j->options.call.profile, "read texts", begin);
}

static void *reader(void *context) {
    job *j = context;
    bool last = false;
    for (size_t turn = 0; !last; turn++) {
        window *w = wait_for(j, turn, EMPTY);
        read_turn(j, w, !turn);
        last = w->last;
        hand_on(j, w, FILLED);
    }
    return NULL;
}

/* ---- writing ---- */

static bool write_rows(job *j, window *w, size_t from, size_t end) {
    const uint64_t most = j->files.rows ? j->files.rows : UINT64_MAX;
    while (from < end) {
        size_t n = end - from;
        if (j->writer.rows == most) {
            resume_record_note(&j->record, split_files_before(&j->files) + most, w->hashes[from]);
            if (!split_files_next(&j->files, &j->writer, &j->record, j->c)) return false;
        }
        if (n > most - j->writer.rows) n = (size_t)(most - j->writer.rows);
        if (!bad_lines_write(&w->bad, j->writer.out, from)) return false;
        if (n > bad_lines_next(&w->bad) - from) n = bad_lines_next(&w->bad) - from;
        if (!vector_writer_rows(&j->writer, w->vectors + from * j->dim, n,
                                j->inputs->objects ? w->kept.data : NULL, w->kept_begins + from))
            return false;
        from += n;
    }
    return output_flush(j->writer.out);
}

/* Writes the objects of bad lines behind the last row of a window. */
static void write_bad(job *j, window *w) {
    j->bad += w->bad.count;
    if (!w->bad.count ||
        (bad_lines_write(&w->bad, j->writer.out, SIZE_MAX) && output_flush(j->writer.out)))
        return;
    note_write_failure(j);
}

/* Writes the rows that are there and not written yet; true when the window is done with. */
static bool write_some(job *j, window *w) {
    pthread_mutex_lock(&j->lock);
    size_t from = w->written, end = w->written = w->embedded;
    bool good = !j->write_failed, done = w->state == DONE;
    pthread_mutex_unlock(&j->lock);
    if (good && end > from) {
        uint64_t begin = pith_profile_now();
        good = write_rows(j, w, from, end);
        if (good) resume_record_note(&j->record, j->rows + end - from, w->hashes[end]);
        if (!good) note_write_failure(j);
        pith_profile_phase(j->options.call.profile, "write", begin);
        j->rows += end - from;
    }
    if (done && good) write_bad(j, w);
    if (done && w->last)
        progress_line_end(&j->progress, j->rows, 0);
    else
        progress_line_show(&j->progress, j->rows, 0);
    if (done) w->embedded = w->written = 0;
    return done;
}

static void *writer(void *context) {
    job *j = context;
    bool last = false;
    for (size_t turn = 0; !last; turn++) {
        window *w = &j->windows[turn % WINDOWS];
        do {
            pthread_mutex_lock(&j->lock);
            while (w->state != DONE && w->embedded == w->written)
                pthread_cond_wait(&j->changed, &j->lock);
            pthread_mutex_unlock(&j->lock);
        } while (!write_some(j, w));
        last = w->last;
        hand_on(j, w, EMPTY);
    }
    return NULL;
}

/* ---- embedding ---- */

/* The texts from `first` on that make a slice: their number and cost. */
static size_t slice_of(const job *j, const window *w, size_t first, double *cost) {
    size_t n = 0;
    *cost = 0;
    do {
        size_t size = w->texts[first + n++].size;
        *cost += (double)(j->length_max && size > j->length_max ? j->length_max : size) + TEXT_COST;
    } while (first + n < w->count && (!j->sliced || *cost < j->budget));
    return n;
}

/* The next slice may cost what fits the time, but not many times as much as has been tried. */
static void set_budget(job *j, double cost, double seconds) {
    double tried = cost > j->budget ? cost : j->budget,
           fits = seconds > 0 ? cost / seconds * SLICE_SECONDS : 8 * tried;
    j->budget = fits < 8 * tried ? fits : 8 * tried;
}

/* Notes the failure if a text was cut and that is refused. first: the number of the first of these
 * texts. */
static bool refuse_long(job *j, const window *w, size_t at, size_t n, uint64_t first) {
    char message[1400] = "a text is longer than 1 MiB";
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    options.embed = &j->options;
    const bool cut = j->options.stats->truncated > 0;
    if (!j->refuses_long || !(cut || (w->cut && !j->length_max))) return false;
    if (cut)
        long_texts_refuse(message, sizeof message, j->model, w->texts + at, n, first, &options);
    note_failure(j, message);
    return true;
}

/* Embeds a window slice by slice, until one fails or cannot be written. first: the number of its
 * first text. */
static bool embed_window(job *j, window *w, uint64_t first) {
    pith_error err = PITH_ERROR_INIT;
    char message[1400];
    for (size_t i = 0; i < w->count; i++)
        w->texts[i] = bytes_text(&w->text, w->begins[i], w->begins[i + 1]);
    for (size_t at = 0, n; at < w->count; at += n) {
        double cost, begin = now_seconds();
        if (is_set(j, &j->write_failed)) return false;
        n = slice_of(j, w, at, &cost);
        if (pith_embed(w->vectors + at * j->dim, j->model, w->texts + at, n, &j->options, &err)) {
            pith__text_print(message, sizeof message, "texts %llu to %llu: %s",
                             (unsigned long long)(first + at + 1),
                             (unsigned long long)(first + at + n), err.message);
            note_failure(j, message);
            return false;
        }
        if (refuse_long(j, w, at, n, first + at + 1)) return false;
        set_budget(j, cost, now_seconds() - begin);
        pthread_mutex_lock(&j->lock);
        w->embedded = at + n;
        pthread_cond_broadcast(&j->changed);
        pthread_mutex_unlock(&j->lock);
        if (!j->writes) write_some(j, w);
    }
    return true;
}

/* The middle of the ring; returns the number of lines that were cut. */
static uint64_t embed_all(job *j) {
    bool last = false, good = true;
    uint64_t first = j->done, cut = 0;
    for (size_t turn = 0; !last; turn++) {
        window *w = &j->windows[turn % WINDOWS];
        wait_for(j, turn, j->reads ? FILLED : EMPTY);
        if (!j->reads) read_turn(j, w, !turn);
        good = good && embed_window(j, w, first); /* rows after a failure would stand in the wrong
                                                     place */
        first += w->count;
        cut += w->cut;
        last = w->last;
        hand_on(j, w, DONE);
        if (j->writes) continue;
        write_some(j, w);
        hand_on(j, w, EMPTY);
    }
    return cut;
}

static json_t *text_stats(const pith_embed_stats *s, double seconds) {
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:I}", "texts", (json_int_t)s->texts, "tokens",
                     (json_int_t)s->tokens, "padded_tokens", (json_int_t)s->padded_tokens,
                     "truncated", (json_int_t)s->truncated, "seconds", seconds, "tokens_per_second",
                     seconds > 0 ? (double)s->tokens / seconds : 0.0, "peak_bytes",
                     (json_int_t)s->peak_bytes);
}

static void make_windows(job *j) {
    for (size_t i = 0; i < WINDOWS; i++) {
        window *w = &j->windows[i];
        w->begins = grow(NULL, (WINDOW_TEXTS + 1) * sizeof *w->begins);
        w->kept_begins = grow(NULL, (WINDOW_TEXTS + 1) * sizeof *w->kept_begins);
        w->kept_begins[0] = 0;
        w->bad.how = j->inputs->errors;
        w->hashes = grow(NULL, (WINDOW_TEXTS + 1) * sizeof *w->hashes);
        w->texts = grow(NULL, WINDOW_TEXTS * sizeof *w->texts);
        w->vectors = grow(NULL, WINDOW_TEXTS * j->dim * sizeof *w->vectors);
    }
}

static void free_windows(job *j) {
    for (size_t i = 0; i < WINDOWS; i++) {
        window *w = &j->windows[i];
        free(w->text.data);
        free(w->kept.data);
        free(w->begins);
        free(w->kept_begins);
        bad_lines_free(&w->bad);
        free(w->hashes);
        free(w->texts);
        free(w->vectors);
    }
}

/* A small stack: the address space may be limited. */
static bool start_thread(pthread_t *thread, void *(*routine)(void *), job *j) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return false;
    bool good = !pthread_attr_setstacksize(&attr, (size_t)256 << 10) &&
                !pthread_create(thread, &attr, routine, j);
    pthread_attr_destroy(&attr);
    return good;
}

/* The ring with its two other threads. */
static void embed_work(job *j, pith_embed_stats *stats) {
    pthread_t threads[2];
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
    make_windows(j);
    size_t tokens = pith_embed_max_length(j->model, &j->options);
    j->length_max = 6 * tokens; /* few tokens are longer on average */
    j->rows = j->done;
    j->sliced = j->progress.on || j->writer.out->resumable || !j->writer.out->temporary;
    j->reads = start_thread(&threads[0], reader, j);
    j->writes = start_thread(&threads[1], writer, j);
    uint64_t cut = embed_all(j);
    if (!tokens) stats->truncated += cut; /* else the tokenizer counted them */
    if (j->writes) pthread_join(threads[1], NULL);
    if (j->reads) pthread_join(threads[0], NULL);
    free_windows(j);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
}

/* Everything from the open model on; out is open. */
static int embed_job(job *j, const command *c, output *out, pith_embed_stats *stats) {
    int code = EXIT_DONE;
    j->done = split_files_before(&j->files) + j->writer.rows;
    j->compares = vector_writer_unmet(&j->writer);
    embed_work(j, stats);
    bool unmet = vector_writer_unmet(&j->writer);
    if (j->message[0])
        code = fail(c, "%s", j->message);
    else if (j->writer.conversion.code)
        code = fail(c, "after %llu vectors: %s", (unsigned long long)j->rows,
                    j->writer.conversion.message);
    else if (unmet)
        code = fail(c,
                    "%s: its last vector is not that of text %llu; the texts, model or options "
                    "were others; remove it to "
                    "start over",
                    out->temporary, (unsigned long long)j->done + 1);
    if (j->message[0] && out->resumable)
        note("the finished part is in %s; run the same command again to continue", out->temporary);
    code = split_files_close(&j->files, out, &j->writer, &j->record, c, code);
    return bad_lines_end(j->bad, c, j->inputs->errors, code);
}

/* Opens the model and checks that it makes what is asked for under these options. */
static int open_model(job *j, const command *c, embed_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    int code = runtime_choice_check(c, &s->runtime);
    if (!code) code = work_begin(c, &s->work, &s->open);
    if (code) return code;
    s->open.call.profile = j->options.call.profile;
    runtime_choice_apply(&s->open, &s->runtime, s->embed.call.threads);
    pith_pin_threads(s->pin);
    if (pith_model_open(&j->model, s->model, &s->open, &err)) return fail_model(c, &err, s->model);
    if (!s->images) work_tell_max_length(j->model, &s->embed.max_length);
    /* embed_encodings.c and embed_pictures check the rest */
    if (embed_settings_what(s) != PITH_ENCODE_DENSE || s->images) return EXIT_DONE;
    j->dim = pith_embed_dim(j->model, &j->options);
    if (!pith_embed(NULL, j->model, NULL, 0, &j->options, &err)) return EXIT_DONE;
    pith_model_close(j->model);
    return fail(c, "%s", err.message);
}

/* One vector per text, written as it comes. Options that decide what a vector is are noted in a
 * record beside the output, so that --resume refuses to mix two kinds of vectors. */
static int embed_dense(job *j, const command *c, const embed_settings *s,
                       const string_list *files) {
    text_input_open(&j->in, files);
    j->in.limit = s->rows.objects ? JSON_LINE_BYTES : LINE_BYTES;
    json_line_init(&j->json, false);
    row_options_apply(&s->rows, &j->in, &j->json);
    kept_members_set(&j->json, s->keep, false);
    output out;
    bytes options_text = { NULL, 0, 0 };
    int code = vector_layout_make(&j->layout, c, &s->layout, j->dim);
    j->c = c;
    j->hash = RESUME_HASH;
    j->files =
        (split_files){ .path = s->output, .rows = (uint64_t)s->rows_per_file, .resume = s->resume };
    embed_settings_text(&options_text, s);
    if (!code)
        code = split_files_open(&j->files, &out, &j->writer, &j->record, c, &j->layout,
                                &options_text, files);
    if (!code) code = embed_job(j, c, &out, j->options.stats);
    free(options_text.data);
    vector_layout_free(&j->layout);
    text_input_close(&j->in);
    kept_members_free(&j->json);
    json_line_free(&j->json);
    return code;
}

/* Results other than one dense vector per text that is read as it is. */
static int embed_others(job *j, const command *c, const embed_settings *s,
                        const string_list *files) {
    text_batch b;
    embed_encodings kinds = { .c = c,
                              .model = j->model,
                              .bm25 = j->bm25,
                              .options = PITH_ENCODE_OPTIONS_INIT,
                              .refuses_long = s->longs.action == LONG_ERROR,
                              .format = (vector_format)s->layout.format,
                              .output = s->output,
                              .progress = &j->progress };
    embed_chunks chunks = { c,         j->model,     j->options, &s->longs, &s->layout,
                            s->output, &j->progress, s->resume,  0 };
    const bool chunked = s->longs.action == LONG_CHUNK;
    kinds.options.what = embed_settings_what(s);
    kinds.options.role = s->role;
    int code = s->bm25.language ? EXIT_DONE : bm25_check(c, &s->bm25);
    if (code) return code;
    bm25_set_numbers(&kinds.options, &s->bm25);
    kinds.options.embed = &j->options;
    kinds.options.call = j->options.call;
    kinds.options.call.size = sizeof kinds.options;
    text_batch_open(&b, &s->rows, NULL);
    b.keeps = s->rows.objects && s->layout.format == FORMAT_JSONL;
    kept_members_set(&b.json, s->keep, s->longs.result == CHUNKS_ROWS);
    code = chunked ? embed_chunks_run(&chunks, &b, files) : embed_encodings_run(&kinds, &b, files);
    if (chunked) j->options.stats->truncated += chunks.cut;
    code = bad_lines_end(b.bad.total, c, s->rows.errors, code);
    kept_members_free(&b.json);
    text_batch_close(&b);
    return code;
}

/* The pictures of folders and files, or paths from JSON lines. A call without pictures first checks
 * the model and the options, before any file is read. */
static int embed_pictures(job *j, const command *c, const embed_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    embed_images e = { .c = c,
                       .model = j->model,
                       .options = PITH_EMBED_IMAGES_OPTIONS_INIT,
                       .rows = &s->rows,
                       .objects = s->rows.jsonl,
                       .progress = &j->progress,
                       .max_pixels = s->max_pixels };
    e.options.call.threads = j->options.call.threads;
    e.options.pooling = j->options.pooling;
    e.options.normalize = j->options.normalize;
    e.options.dim = j->options.dim;
    e.options.call.profile = j->options.call.profile;
    if (pith_embed_images_dim(&j->dim, j->model, &e.options, &err) ||
        pith_embed_images(NULL, j->model, NULL, 0, &e.options, &err)) {
        fail(c, "%s", err.message);
        if (strstr(err.message, "no input of pixels"))
            note("pictures need another model: 'pith pull clip' fetches one, '-m clip' uses it");
        return EXIT_FAILED;
    }
    int code = vector_layout_make(&e.layout, c, &s->layout, j->dim);
    if (!code) code = embed_images_run(&e, s->output, s->resume);
    vector_layout_free(&e.layout);
    j->pictures = json_pack("{s:I, s:I, s:f, s:f}", "pictures", (json_int_t)e.done, "failed",
                            (json_int_t)e.failed, "seconds", e.seconds, "pictures_per_second",
                            e.seconds > 0 ? (double)e.done / e.seconds : 0.0);
    return code;
}

/* What all kinds of embedding have in common: profile, telemetry, the model or BM25, statistics.
 * The three kinds differ in how results are written. */
static int embed_files(const command *c, embed_settings *s, const string_list *files) {
    pith_embed_stats stats = { 0 };
    job j = { .options = s->embed, .inputs = &s->rows };
    j.options.batching = &s->work.batching;
    j.options.stats = &stats;
    j.refuses_long = s->longs.action == LONG_ERROR;
    if (s->longs.tokens) j.options.max_length = s->longs.tokens;
    int code = profile_open(&j.options.call.profile, c, s->work.profile, files);
    if (!code)
        code = telemetry_begin(&j.options.call.profile, c, s->runtime.telemetry,
                               s->embed.call.threads);
    if (code) return code;
    const char *stops = strcmp(s->model, DEFAULT_MODEL) ? s->model : NULL;
    code = s->bm25.language ? bm25_open(&j.bm25, c, stops, &s->bm25) : open_model(&j, c, s);
    if (code) {
        pith_profile_destroy(j.options.call.profile);
        return code;
    }
    if (j.model) telemetry_model(j.model);
    double began = now_seconds();
    progress_line_begin(&j.progress, s->images ? "pictures" : "texts", s->progress, s->rows.quiet,
                        s->output);
    const bool simple =
        embed_settings_what(s) == PITH_ENCODE_DENSE && s->longs.action != LONG_CHUNK;
    if (s->images)
        code = embed_pictures(&j, c, s);
    else
        code = (simple ? embed_dense : embed_others)(&j, c, s, files);
    if (!j.refuses_long && j.model)
        long_texts_warn(&s->longs, stats.truncated, pith_embed_max_length(j.model, &j.options));
    json_t *told = s->images ? j.pictures : text_stats(&stats, now_seconds() - began);
    code = work_stats(c, &s->work, told, j.model, files, code);
    pith_model_close(j.model);
    pith_bm25_close(j.bm25);
    telemetry_end(&j.options.call.profile);
    return profile_close(j.options.call.profile, c, code);
}

static int embed_run(int argc, char **argv) {
    const command *c = &command_embed;
    embed_settings s = { .work = WORK_SETTINGS_INIT,
                         .open = PITH_OPEN_OPTIONS_INIT,
                         .embed = PITH_EMBED_OPTIONS_INIT,
                         .bm25 = BM25_SETTINGS_INIT };
    string_list arguments = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &arguments);
    if (code >= 0) return code;
    code = embed_settings_check(c, &s, &arguments);
    if (!code) code = embed_files(c, &s, &s.rows.inputs);
    row_options_free(&s.rows);
    runtime_choice_free(&s.runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, embed_settings, member)

static const option options[] = {
    OPTION_SECTION("model"),
    AT(model, model),
    AT(prompt_name, embed.prompt_name),
    AT(pooling, embed.pooling),
    AT(normalize, embed.normalize),
    AT(dim, embed.dim),
    AT(max_length_embed, embed.max_length),
    OPTIONS_PASSES(embed_settings),
    AT(model_file, open.model_file),
    AT(route, open.route),
    OPTION_SECTION("result"),
    AT(dense, dense),
    AT(sparse, sparse),
    AT(multi_vector, multi_vector),
    AT(role, role),
    AT(tokens_embed, tokens),
    OPTION_SECTION("sparse vectors without a model"),
    AT(bm25, bm25.language),
    AT(bm25_k, bm25.k),
    AT(bm25_b, bm25.b),
    AT(bm25_avg_len, bm25.avg_len),
    AT(bm42_alpha, bm25.alpha),
    AT(bm25_max_word, bm25.token_max_length),
    AT(no_stemming, bm25.no_stemming),
    OPTION_SECTION("input"),
    AT(images, images),
    AT(max_pixels, max_pixels),
    AT(column, rows.columns),
    OPTIONS_ROWS(embed_settings, rows),
    AT(jsonl_embed, rows.jsonl),
    AT(keep, keep),
    AT(long, longs.action),
    AT(chunk_tokens, longs.tokens),
    AT(overlap, longs.overlap),
    AT(chunks, longs.result),
    OPTION_SECTION("output"),
    AT(output, output),
    AT(resume, resume),
    AT(rows_per_file, rows_per_file),
    AT(format, layout.format),
    AT(dtype, layout.type),
    AT(ranges, layout.ranges),
    AT(progress, progress),
    AT(quiet_texts, rows.quiet),
    OPTIONS_TOLD(embed_settings),
    OPTION_SECTION("work"),
    AT(threads, embed.call.threads),
    AT(pin, pin),
    AT(batch_tokens, embed.batch_tokens),
    OPTIONS_BATCHING(embed_settings),
    OPTIONS_MEMORY(embed_settings),
    OPTIONS_RUNTIME(embed_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "echo \"a cat sat on the mat\" | pith embed", "[0.13,0.02,...]" },
    { "pith embed -o vectors.npy texts.txt", "numpy.load gives [texts, dim]" },
    { "pith embed \"a cat\" \"a dog\"", "texts as arguments" },
    { "pith embed --column description --id sku -o v.jsonl products.csv",
      "one object per row, with \"id\" and \"embedding\"" },
    { "pith embed -m splade --sparse texts.txt",
      "{\"indices\": [2009, ...], \"values\": [0.4, ...]}" },
    { "pith embed --bm25 english -m Qdrant/bm25 texts.txt",
      "the same form; --role query for queries" },
    { "pith embed -m bge-m3 --dense --sparse texts.txt",
      "both, {\"dense\": [...], \"sparse\": {...}}" },
    { "pith embed --jsonl --field title books.jsonl", "adds \"embedding\" to each object" },
    { "find . -name '*.txt' -print0 | pith embed -0 --stats", "texts may hold newlines" },
    { "pith embed --long chunk --overlap 32 books.txt", "the mean of the chunks of each text" },
    { "pith embed -m clip-vit-base-patch32 --images photos/", "a vector per picture" },
    { "pith embed --resume -o out.jsonl many.txt", "continues after an interruption" },
    { NULL, NULL },
};

const command command_embed = {
    .name = "embed",
    .summary = "turn texts into vectors, one per line",
    .forms = "[-m MODEL] [options] [FILE...]\n[-m MODEL] [options] TEXT...",
    .takes = "FILE",
    .reads = "jpg|jpeg|png|webp|tif|tiff|jp2|j2k|heic|heif|avif|gif|bmp|ppm|pgm|pnm",
    .description =
        "Each line of the files, or of standard input, is a text. Files that end in .csv, .tsv or "
        ".parquet are tables, and .jsonl and .json lines of JSON objects: the text of a row is in "
        "--column. An argument that is no file is a text itself. With --images a picture is a "
        "file. Each text becomes one vector, or what the "
        "options under \"result\" ask for.\n"
        "What the name of -o ends in says how vectors are written: .jsonl, .npy, .csv, .tsv, .f32. "
        "For other results than dense vectors, -o x.npy makes x.offsets.npy, "
        "x.indices.npy and "
        "x.values.npy of --sparse; x.npy, x.offsets.npy and x.ids.npy of vectors of tokens.",
    .examples = examples,
    .options = options,
    .run = embed_run,
};
