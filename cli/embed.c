/* embed.c - pith embed: texts to vectors, one a line.
 *
 * Three windows go round: one is being read, one embedded, one written, each by a thread of its own, so that none waits
 * for the others and memory is bounded by three windows. A window is closed when it is full, and also when the next
 * line is not there yet, so that a program can talk with pith line by line through pipes. */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/profile_file.h"
#include "cli/vectors.h"

/* A window's bounds. More texts fill more threads; memory is three times this and the vectors. */
#define WINDOW_TEXTS ((size_t)1024)
#define WINDOW_BYTES ((size_t)4 << 20)
/* Kept of a line: no model sees more of a text than this. */
#define LINE_BYTES ((size_t)1 << 20)
/* An object is held whole. */
#define OBJECT_BYTES ((size_t)64 << 20)
#define WINDOWS 3

static const char help[];

static int run(int argc, char **argv);

const command command_embed = { "embed", "texts to vectors, one a line", help, run };

static const char help[] =
    "usage: pith embed [-m MODEL] [options] [FILE...]\n"
    "\n"
    "Each line of the files (or of standard input) is a text; each becomes one vector.\n"
    "\n"
    "  echo \"a cat sat on the mat\" | pith embed                   [0.13,0.02,...]\n"
    "  pith embed --format npy -o vectors.npy texts.txt           numpy.load gives [texts, dim]\n"
    "  pith embed --jsonl --field title books.jsonl               each object with \"embedding\" added\n"
    "  find . -name '*.txt' -print0 | pith embed -0 --stats       texts may hold newlines\n"
    "  pith embed --resume -o out.jsonl many.txt                  the same again after an interruption: goes on\n"
    "\n"
    "model\n"
    "  -m, --model MODEL      directory, .onnx file or name in the model cache (" DEFAULT_MODEL ")\n"
    "  --prompt-name NAME     put the model's prompt of this name before each text (\"\" for none)\n"
    "  --pooling HOW          model|cls|mean|max|last (as the model says)\n"
    "  --no-normalize         vectors as they come, not of length 1\n"
    "  --dim N                only the first N components\n"
    "  --max-length N         tokens a text is cut at (the model's)\n"
    "  --level N              optimisation level 0 to 3 (3)\n"
    "  --precision HOW        auto|f32|int8|bf16: arithmetic of the dense layers (auto: f32); in 8 bits a file that\n"
    "                         pith compile --precision int8 has made is nearer to f32, and opens in milliseconds\n"
    "input\n"
    "  -0, --null             texts end with a NUL byte instead of a newline\n"
    "  --jsonl                lines are JSON objects, --field names the text in them (\"text\")\n"
    "  --invalid HOW          error|replace: what is done with bytes that are not UTF-8 (error)\n"
    "output\n"
    "  -o, --output FILE      appears under this name when it is complete\n"
    "  --resume               with -o: vectors grow in FILE.part; after an interruption the same command goes on "
    "there\n"
    "  --format HOW           jsonl|npy|f32|csv; f32 is raw little-endian rows (jsonl)\n"
    "  --stats                one JSON object on standard error: texts, tokens, padded_tokens, truncated, seconds,\n"
    "                         tokens_per_second, peak_bytes\n"
    "  --progress             a line that counts texts, if standard error is a terminal\n"
    "  --profile FILE         a Chrome trace of every step and phase, for ui.perfetto.dev\n"
    "work\n"
    "  -t, --threads N        (all the process may use)\n"
    "  --pin                  each thread stays on a processor; for machines that do nothing else\n"
    "  --batch-tokens N       tokens run at once by one thread (128 to 512, by its L2); changes memory and speed,\n"
    "                         never a vector\n"
    "  --memory-limit SIZE    bytes the model and its work may hold, as in 200M; mapped files are not counted.\n"
    "                         Less is run at once where that helps, otherwise it is an error\n";

typedef struct window {
    enum { EMPTY, FILLED, DONE } state;
    bool last; /* nothing comes after it */
    bytes text;
    size_t *begins; /* count + 1 places in text */
    pith_str *texts;
    size_t count;
    uint64_t cut;       /* lines longer than LINE_BYTES */
    pith_str *prefixes; /* with --jsonl: the objects that vectors are added to */
    float *vectors;
} window;

typedef struct job {
    pith_model *model;
    pith_embed_options options;
    size_t dim;
    bool jsonl, progress;
    const char *field;
    text_input in;
    vector_writer writer;
    uint64_t done; /* texts whose vectors an earlier call has written */
    window windows[WINDOWS];
    pthread_mutex_t lock; /* of states and what follows */
    pthread_cond_t changed;
    bool stop;          /* nothing more is to be read */
    bool write_failed;  /* the output's own error says why; what was embedded is of no use any more */
    char message[1200]; /* the first failure; "" none */
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
    if (!j->message[0]) snprintf(j->message, sizeof j->message, "%s", message);
    j->stop = true;
    pthread_mutex_unlock(&j->lock);
}

static bool stopping(job *j) {
    pthread_mutex_lock(&j->lock);
    bool stop = j->stop;
    pthread_mutex_unlock(&j->lock);
    return stop;
}

static void drop_rows(const job *j, window *w) {
    for (size_t i = 0; j->jsonl && i < w->count; i++) free((char *)(uintptr_t)w->prefixes[i].data);
    w->count = 0;
}

/* ---- reading ---- */

/* Replaces the line at the end of w->text by the text in its field, and keeps the object. */
static bool take_object(job *j, window *w, char *message, size_t message_size) {
    size_t from = w->begins[w->count];
    json_error_t fault;
    json_t *object = json_loadb(w->text.data + from, w->text.size - from, JSON_ALLOW_NUL, &fault);
    json_t *field = object ? json_object_get(object, j->field) : NULL;
    if (!json_is_object(object) || !json_is_string(field)) {
        if (!object)
            snprintf(message, message_size, "%s: %s", text_input_place(&j->in), fault.text);
        else
            snprintf(message, message_size, "%s: %s '%s'", text_input_place(&j->in),
                     json_is_object(object) ? "no string in the field" : "not an object with the field", j->field);
        json_decref(object);
        return false;
    }
    w->text.size = from;
    size_t size = json_string_length(field);
    if (size > LINE_BYTES) {
        size = LINE_BYTES;
        while (size && ((unsigned char)json_string_value(field)[size] & 0xC0) == 0x80) size--;
        w->cut++;
    }
    bytes_add(&w->text, json_string_value(field), size);
    json_object_del(object, "embedding");
    char *kept = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(object);
    if (!kept) return snprintf(message, message_size, "out of memory"), false;
    bytes prefix = { NULL, 0, 0 };
    bytes_add(&prefix, kept, strlen(kept) - 1);
    bytes_print(&prefix, "%s\"embedding\":", prefix.size > 1 ? "," : "");
    free(kept);
    w->prefixes[w->count] = (pith_str){ prefix.data, prefix.size };
    return true;
}

/* Passes over the texts that are done; false when there are fewer. */
static bool skip_done(job *j) {
    bytes line = { NULL, 0, 0 };
    int state = 1;
    for (uint64_t i = 0; i < j->done && state > 0 && !stopping(j); i++) {
        line.size = 0;
        state = text_input_next(&j->in, &line, NULL);
    }
    if (state < 0) note_failure(j, j->in.message);
    free(line.data);
    return state > 0;
}

/* Fills a window; returns false when nothing comes after it. */
static bool read_window(job *j, window *w) {
    char fault[700];
    w->text.size = w->count = w->cut = 0;
    while (w->count < WINDOW_TEXTS && w->text.size < WINDOW_BYTES) {
        bool cut = false;
        if (stopping(j)) return false;
        if (w->count && !text_input_ready(&j->in)) return true;
        w->begins[w->count] = w->text.size;
        int state = text_input_next(&j->in, &w->text, &cut);
        if (state < 0) note_failure(j, j->in.message);
        if (state <= 0) return false;
        if (j->jsonl && !take_object(j, w, fault, sizeof fault)) {
            note_failure(j, fault);
            return false;
        }
        w->cut += cut;
        w->begins[++w->count] = w->text.size;
    }
    return true;
}

static void *reader(void *context) {
    job *j = context;
    for (size_t turn = 0;; turn++) {
        window *w = wait_for(j, turn, EMPTY);
        uint64_t begin = pith_profile_now();
        w->last = !(turn || skip_done(j)) || !read_window(j, w);
        pith_profile_phase(j->options.profile, "read texts", begin);
        bool last = w->last;
        hand_on(j, w, FILLED);
        if (last) return NULL;
    }
}

/* ---- writing ---- */

static void *writer(void *context) {
    job *j = context;
    bool good = true, last = false;
    uint64_t rows = j->done;
    double shown = 0;
    for (size_t turn = 0; !last; turn++) {
        window *w = wait_for(j, turn, DONE);
        uint64_t begin = pith_profile_now();
        if (good) good = vector_writer_rows(&j->writer, w->vectors, w->count, j->jsonl ? w->prefixes : NULL);
        if (good && !w->last && j->writer.format != FORMAT_NPY) good = output_flush(j->writer.out);
        if (!good) {
            pthread_mutex_lock(&j->lock);
            j->stop = j->write_failed = true;
            pthread_mutex_unlock(&j->lock);
        }
        pith_profile_phase(j->options.profile, "write", begin);
        rows += w->count;
        drop_rows(j, w);
        if (j->progress && (now_seconds() - shown > 0.2 || w->last)) {
            fprintf(stderr, "\r%llu texts", (unsigned long long)rows);
            if (w->last) fputc('\n', stderr);
            shown = now_seconds();
        }
        last = w->last;
        hand_on(j, w, EMPTY);
    }
    return NULL;
}

/* ---- embedding ---- */

static void embed_window(job *j, window *w, uint64_t first) {
    pith_error err = PITH_ERROR_INIT;
    char message[1200];
    for (size_t i = 0; i < w->count; i++)
        w->texts[i] = (pith_str){ w->text.data + w->begins[i], w->begins[i + 1] - w->begins[i] };
    if (!w->count || !pith_embed(w->vectors, j->model, w->texts, w->count, &j->options, &err)) return;
    snprintf(message, sizeof message, "texts %llu to %llu: %s", (unsigned long long)first + 1,
             (unsigned long long)(first + w->count), err.message);
    note_failure(j, message);
    drop_rows(j, w);
}

/* The middle of the ring; returns the number of lines that were cut. */
static uint64_t embed_all(job *j) {
    bool last = false, broken = false;
    uint64_t first = j->done, cut = 0;
    for (size_t turn = 0; !last; turn++) {
        window *w = wait_for(j, turn, FILLED);
        pthread_mutex_lock(&j->lock);
        broken |= j->write_failed;
        pthread_mutex_unlock(&j->lock);
        size_t count = w->count;
        if (broken) drop_rows(j, w);
        embed_window(j, w, first);
        broken |= w->count < count; /* rows after a failure would stand in the wrong place */
        first += count;
        cut += w->cut;
        last = w->last;
        hand_on(j, w, DONE);
    }
    return cut;
}

static void print_stats(const pith_embed_stats *s, double seconds) {
    json_t *stats = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:I}", "texts", (json_int_t)s->texts, "tokens",
                              (json_int_t)s->tokens, "padded_tokens", (json_int_t)s->padded_tokens, "truncated",
                              (json_int_t)s->truncated, "seconds", seconds, "tokens_per_second",
                              seconds > 0 ? (double)s->tokens / seconds : 0.0, "peak_bytes", (json_int_t)s->peak_bytes);
    char *text = json_dumps(stats, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(stats);
}

/* The ring with its two other threads. */
static void work(job *j, pith_embed_stats *stats) {
    pthread_t threads[2];
    for (size_t i = 0; i < WINDOWS; i++) {
        window *w = &j->windows[i];
        w->begins = grow(NULL, (WINDOW_TEXTS + 1) * sizeof *w->begins);
        w->texts = grow(NULL, WINDOW_TEXTS * sizeof *w->texts);
        w->prefixes = grow(NULL, WINDOW_TEXTS * sizeof *w->prefixes);
        w->vectors = grow(NULL, WINDOW_TEXTS * j->dim * sizeof *w->vectors);
    }
    bool reading = !pthread_create(&threads[0], NULL, reader, j);
    if (reading && !pthread_create(&threads[1], NULL, writer, j)) {
        uint64_t cut = embed_all(j);
        if (!pith_embed_max_length(j->model, &j->options))
            stats->truncated += cut; /* else the tokenizer counted them */
        pthread_join(threads[1], NULL);
        pthread_join(threads[0], NULL);
    } else {
        fputs("pith: threads cannot be made\n", stderr);
        exit(EXIT_FAILED); /* a reader may be waiting for input for ever */
    }
    for (size_t i = 0; i < WINDOWS; i++) {
        window *w = &j->windows[i];
        free(w->text.data);
        free(w->begins);
        free(w->texts);
        free(w->prefixes);
        free(w->vectors);
    }
}

static int run(int argc, char **argv) {
    const command *c = &command_embed;
    const char *model = DEFAULT_MODEL, *output_path = NULL, *profile_path = NULL;
    bool no_normalize = false, null = false, stats_wanted = false, pin = false, resumed = false;
    int format = FORMAT_JSONL, invalid = 0, pooling = 0;
    string_list files = { NULL, 0 };
    pith_open_options open_options = PITH_OPEN_OPTIONS_INIT;
    pith_embed_stats stats = { 0 };
    job j = { .options = PITH_EMBED_OPTIONS_INIT, .field = "text" };
    bool progress = false;
    const option options[] = {
        { "model", 'm', OPTION_STRING, &model, 0, 0, NULL },
        { "prompt-name", 0, OPTION_STRING, &j.options.prompt_name, 0, 0, NULL },
        { "pooling", 0, OPTION_CHOICE, &pooling, 0, 0, "model|cls|mean|max|last" },
        { "no-normalize", 0, OPTION_FLAG, &no_normalize, 0, 0, NULL },
        { "dim", 0, OPTION_INT, &j.options.dim, 1, INT32_MAX, NULL },
        { "max-length", 0, OPTION_INT, &j.options.max_length, 1, INT32_MAX, NULL },
        { "level", 0, OPTION_INT, &open_options.optimization, 0, 3, NULL },
        { "precision", 0, OPTION_CHOICE, &open_options.precision, 0, 0, PRECISIONS },
        { "null", '0', OPTION_FLAG, &null, 0, 0, NULL },
        { "jsonl", 0, OPTION_FLAG, &j.jsonl, 0, 0, NULL },
        { "field", 0, OPTION_STRING, &j.field, 0, 0, NULL },
        { "invalid", 0, OPTION_CHOICE, &invalid, 0, 0, "error|replace" },
        { "output", 'o', OPTION_STRING, &output_path, 0, 0, NULL },
        { "resume", 0, OPTION_FLAG, &resumed, 0, 0, NULL },
        { "format", 0, OPTION_CHOICE, &format, 0, 0, VECTOR_FORMATS },
        { "stats", 0, OPTION_FLAG, &stats_wanted, 0, 0, NULL },
        { "progress", 0, OPTION_FLAG, &progress, 0, 0, NULL },
        { "profile", 0, OPTION_STRING, &profile_path, 0, 0, NULL },
        { "threads", 't', OPTION_INT, &j.options.threads, 1, 4096, NULL },
        { "pin", 0, OPTION_FLAG, &pin, 0, 0, NULL },
        { "batch-tokens", 0, OPTION_INT, &j.options.batch_tokens, 1, INT32_MAX, NULL },
        { "memory-limit", 0, OPTION_BYTES, &open_options.memory_limit, 0, 0, NULL },
        { "", 0, OPTION_FLAG, NULL, 0, 0, NULL },
    };
    int code = take_options(c, options, argc, argv, &files);
    if (code >= 0) return code;
    if (j.jsonl && format == FORMAT_CSV) return usage(c, "--jsonl and --format csv do not go together");
    if (j.jsonl && null) return usage(c, "--jsonl and -0 do not go together");
    if (resumed && (!output_path || !strcmp(output_path, "-"))) return usage(c, "--resume wants -o FILE");
    j.options.pooling = pooling;
    j.options.normalize = no_normalize ? 0 : -1;
    j.options.stats = &stats;
    j.progress = progress && isatty(STDERR_FILENO);
    open_options.log = &warnings;

    pith_error err = PITH_ERROR_INIT;
    code = profile_open(&j.options.profile, c, profile_path);
    if (code) return code;
    open_options.profile = j.options.profile;
    pith_pin_threads(pin);
    if (pith_model_open(&j.model, model, &open_options, &err)) {
        pith_profile_destroy(j.options.profile);
        return fail_model(c, &err, model);
    }
    double began = now_seconds();
    j.dim = pith_embed_dim(j.model, &j.options);
    if (pith_embed(NULL, j.model, NULL, 0, &j.options, &err)) { /* options and model alone */
        pith_model_close(j.model);
        pith_profile_destroy(j.options.profile);
        return fail(c, "%s", err.message);
    }
    output out;
    code = resumed ? output_resume(&out, c, output_path) : output_open(&out, c, output_path);
    if (!code && (code = vector_writer_open(&j.writer, c, &out, (vector_format)format, j.dim)))
        output_close(&out, c, false, code);
    if (!code) {
        j.done = j.writer.rows;
        text_input_open(&j.in, &files);
        j.in.separator = null ? 0 : '\n';
        j.in.replace = invalid == 1;
        j.in.limit = j.jsonl ? OBJECT_BYTES : LINE_BYTES;
        pthread_mutex_init(&j.lock, NULL);
        pthread_cond_init(&j.changed, NULL);
        work(&j, &stats);
        bool unmet = vector_writer_unmet(&j.writer);
        vector_writer_close(&j.writer);
        text_input_close(&j.in);
        if (j.message[0]) {
            code = fail(c, "%s", j.message);
        } else if (unmet) {
            code = fail(c, "%s: its last vector is not that of text %llu: other texts, model or options made it",
                        out.temporary, (unsigned long long)j.done + 1);
        }
        if (j.message[0] && resumed)
            fprintf(stderr, "what is done stays in %s: the same command goes on there\n", out.temporary);
        code = output_close(&out, c, true, code);
        if (stats_wanted) print_stats(&stats, now_seconds() - began);
        pthread_cond_destroy(&j.changed);
        pthread_mutex_destroy(&j.lock);
    }
    pith_model_close(j.model);
    return profile_close(j.options.profile, c, profile_path, code);
}
