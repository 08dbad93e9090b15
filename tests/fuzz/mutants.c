/* mutants.c - opens and uses the broken models, tokenizers and directories that op_mutants.py and
 * mutants.py write: each gives an error or a result in bounded time and memory.
 *
 * usage: mutants.py … | mutants [SAVE] A mutant comes as four bytes of length and a list of
 * strings, each behind four bytes of length: its name, what is done with it, then the paths and
 * contents of its files. A path that ends in / is a directory, one that ends in @ a symbolic link
 * to the contents. A child process does the work; one that ends, or works on a mutant for more than
 * HANG_SECONDS, is named and replaced. Mutants of which that is true are kept in the folder SAVE,
 * as they came. */
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compiled_use.h"

enum {
    JOB_MAX_BYTES = 16 << 20,
    PATH_MAX_BYTES = 1024,
    HANG_SECONDS = 10,
    STUCK_SECONDS = 300,
    USES = 4
};

#ifdef PITH_SANITIZED
/* Memory that goes past the limited allocator ends the process too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "hard_rss_limit_mb=1500:quarantine_size_mb=64:allocator_may_return_null=0";
}
#endif

/* In memory that both processes see. */
typedef struct job {
    uint32_t size;
    size_t count[USES];
    run_counts counts[USES];
    char bytes[JOB_MAX_BYTES];
} job;

typedef struct worker {
    pid_t pid;
    int to, from; /* a byte for each job, and one back */
} worker;

/* ---- what a mutant is ---- */

static uint32_t u32_of(const void *bytes) {
    const unsigned char *p = bytes;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The string at *at, which moves behind it; data is NULL at the end. */
static pith_str next_string(const job *j, size_t *at) {
    if (j->size - *at < 4) return (pith_str){ NULL, 0 };
    uint32_t size = u32_of(j->bytes + *at);
    if (size > j->size - *at - 4) return (pith_str){ NULL, 0 };
    pith_str s = { j->bytes + *at + 4, size };
    *at += 4 + (size_t)size;
    return s;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    return ftw->level ? remove(path) : 0;
}

/* A file, a directory or a link below the folder, whose parent is made if need be. */
static void put_file(const char *folder, pith_str name, pith_str contents) {
    char path[PATH_MAX_BYTES], target[PATH_MAX_BYTES];
    size_t length =
        (size_t)snprintf(path, sizeof path, "%s/%.*s", folder, (int)name.size, name.data);
    if (length >= sizeof path) abort();
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    char last = path[length - 1];
    if (last == '/') return;
    if (last == '@') path[length - 1] = 0;
    snprintf(target, sizeof target, "%.*s", (int)contents.size, contents.data);
    FILE *f = last == '@' ? NULL : fopen(path, "wb");
    if (last == '@' ? symlink(target, path)
                    : !f || fwrite(contents.data, 1, contents.size, f) != contents.size)
        abort();
    if (f && fclose(f)) abort();
}

/* The files of the mutant in the folder, and no others. */
static void put_files(const char *folder, const job *j, size_t at) {
    pith_str name, contents;
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    while ((name = next_string(j, &at)).data && (contents = next_string(j, &at)).data)
        put_file(folder, name, contents);
}

/* ---- what is done with it ---- */

#define DEMAND(condition) ((condition) ? (void)0 : abort())

static char long_text[20001];
#define TEXT(literal)                                                                              \
    { literal, sizeof literal - 1 }
static const pith_str texts[] = {
    TEXT(""),
    TEXT("a cat sat  [MASK] <s>12! Caf\xC3\xA9 don't"),
    TEXT("\0 e\xCC\x81\xEF\xB7\xBA "
         "\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7\t\xC2\x85\xE2\x80\xA8"
         "\xE4\xBD\xA0\xEF\xBF\xBD\xF4\x8F\xBF\xBF \xD7\xA9\xD8\xA7"),
    TEXT(long_text),
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void detokenize(const pith_tokenizer *t, const pith_tokens *tokens) {
    pith_error err = PITH_ERROR_INIT;
    for (int32_t skip = 0; skip < 2; skip++) {
        char *text;
        size_t size;
        if (pith_detokenize(&text, &size, t, tokens->ids, tokens->count, skip, NULL, &err))
            DEMAND(err.message[0]);
        else
            pith_text_free(t, text);
    }
    for (size_t i = 0; i < tokens->count && i < 100; i++) pith_token_text(t, tokens->ids[i]);
}

/* What fuzz_tokenizer.c demands: the same tokens with and without offsets, which lie in the text.
 */
static void tokenize(const pith_tokenizer *t, pith_str text, pith_tokens *with,
                     pith_tokens *without, run_counts *c) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_status status = pith_tokenize(with, t, text, NULL, &options, &err);
    *(status ? &c->refused : &c->ran) += 1;
    if (status) DEMAND(err.message[0]);
    options.no_offsets = 1;
    DEMAND(pith_tokenize(without, t, text, NULL, &options, &err) == status);
    if (!status) {
        DEMAND(with->count == without->count);
        DEMAND(!with->count || !memcmp(with->ids, without->ids, with->count * sizeof *with->ids));
        for (size_t i = 0; i < with->count; i++)
            DEMAND(with->begin[i] <= text.size && with->end[i] <= text.size);
        detokenize(t, with);
    }
    options.raw = 1;
    options.no_offsets = 0;
    pith_tokenize(with, t, text, &texts[1], &options, &err);
}

/* All texts, padded to each other and in windows, where the file says so. */
static void tokenize_all(const pith_tokenizer *t, pith_tokens *tokens) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    size_t ends[TEXTS];
    options.raw = options.overflow = 1;
    for (options.call.threads = 1; options.call.threads < 3; options.call.threads++)
        if (pith_tokenize_batch(tokens, ends, t, texts, NULL, TEXTS, &options, &err))
            DEMAND(err.message[0]);
}

static void use_tokenizer(const char *path, run_counts *c) {
    pith_open_options options = limited_options(3);
    pith_error err = PITH_ERROR_INIT;
    pith_tokenizer *t;
    pith_tokens with = PITH_TOKENS_INIT, without = PITH_TOKENS_INIT;
    int32_t limit;
    if (pith_tokenizer_open(&t, path, &options, &err)) {
        DEMAND(err.message[0]);
        return;
    }
    c->opened++;
    bytes_allowed = 4 * (size_t)MEMORY_LIMIT; /* the tokens are the caller's own */
    if (pith_tokenizer_limit(&limit, t, path, &err)) DEMAND(err.message[0]);
    for (size_t i = 0; i < TEXTS; i++) tokenize(t, texts[i], &with, &without, c);
    tokenize_all(t, &with);
    pith_tokens_free(&with);
    pith_tokens_free(&without);
    pith_tokenizer_close(t);
    bytes_allowed = MEMORY_LIMIT;
}

static void use_directory(const char *path, run_counts *c) {
    pith_open_options options = limited_options(3);
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (pith_model_open(&model, path, &options, &err)) {
        DEMAND(err.message[0]);
        return;
    }
    c->opened++;
    describe_model(model);
    embed_two(model);
    run_model(model, c);
    pith_model_close(model);
}

/* As written, then optimised. */
static void use_graph(const void *data, size_t size, run_counts *c) {
    for (int level = 0; level <= 3; level += 3) open_and_run_at(data, size, level, c);
}

typedef struct use {
    const char *name;
    void (*file)(const void *data, size_t size, run_counts *c); /* with its only file, or NULL */
    void (*folder)(const char *path, run_counts *c);
} use;

static const use uses[] = {
    { "graph", use_graph, NULL },
    { "compiled", use_compiled, NULL },
    { "tokenizer", NULL, use_tokenizer },
    { "directory", NULL, use_directory },
};

static size_t use_of(const job *j) {
    size_t at = 0;
    next_string(j, &at); /* its name */
    pith_str name = next_string(j, &at);
    for (size_t i = 0; i < USES; i++)
        if (name.size == strlen(uses[i].name) && !memcmp(name.data, uses[i].name, name.size))
            return i;
    abort();
}

static void use_mutant(job *j, const char *folder) {
    size_t at = 0, i = use_of(j);
    next_string(j, &at);
    next_string(j, &at);
    if (uses[i].folder) {
        put_files(folder, j, at);
        uses[i].folder(folder, &j->counts[i]);
        return;
    }
    next_string(j, &at);
    pith_str file = next_string(j, &at);
    void *copy = malloc(file.size + !file.size); /* reading past the end shows under the address
                                                    sanitizer */
    if (!copy) abort();
    if (file.size) memcpy(copy, file.data, file.size);
    uses[i].file(copy, file.size, &j->counts[i]);
    free(copy);
}

/* ---- the two processes ---- */

static void work(job *j, const char *folder, int in, int out) {
    char go;
    while (read(in, &go, 1) == 1) {
        use_mutant(j, folder);
        DEMAND(bytes_held == 0);
        if (write(out, &go, 1) != 1) break;
    }
    exit(0); /* after a look for leaks */
}

static bool start(worker *w, job *j, const char *folder) {
    int to[2], from[2];
    if (pipe(to) || pipe(from)) return false;
    w->pid = fork();
    if (w->pid == 0) {
        close(to[1]);
        close(from[0]);
        work(j, folder, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    w->to = to[1];
    w->from = from[0];
    return w->pid > 0;
}

static int stop(worker *w) {
    int status = 0;
    close(w->to);
    close(w->from);
    waitpid(w->pid, &status, 0);
    return status;
}

/* False at the end of the input. */
static bool read_job(job *j) {
    unsigned char length[4];
    if (fread(length, 1, 4, stdin) != 4) return false;
    j->size = u32_of(length);
    if (j->size <= JOB_MAX_BYTES && fread(j->bytes, 1, j->size, stdin) == j->size) return true;
    fprintf(stderr, "a mutant of %u bytes is too long or cut off\n", j->size);
    exit(2);
}

static void save(const char *folder, unsigned long number, const job *j) {
    char path[PATH_MAX_BYTES];
    unsigned char length[4] = { (unsigned char)j->size, (unsigned char)(j->size >> 8),
                                (unsigned char)(j->size >> 16), (unsigned char)(j->size >> 24) };
    snprintf(path, sizeof path, "%s/%lu.mutant", folder, number);
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(length, 1, 4, f);
    fwrite(j->bytes, 1, j->size, f);
    fclose(f);
}

/* Seconds of processor time the child has used, in all its threads. */
static double seconds_of(const worker *w) {
    clockid_t clock;
    struct timespec t = { 0 };
    if (!clock_getcpuclockid(w->pid, &clock)) clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What became of the job that both see, or NULL if all is well. */
static const char *run_job(worker *w, double *seconds) {
    static char text[100];
    char done = 0;
    struct pollfd wait = { w->from, POLLIN, 0 };
    double before = seconds_of(w);
    *seconds = 0;
    for (int waited = write(w->to, &done, 1) == 1 ? 0 : STUCK_SECONDS; waited < STUCK_SECONDS;
         waited++) {
        int ready = poll(&wait, 1, 1000);
        *seconds = seconds_of(w) - before;
        if (ready) break;
        if (*seconds < HANG_SECONDS && waited < STUCK_SECONDS - 1) continue;
        kill(w->pid, SIGKILL);
        stop(w);
        return "hangs";
    }
    if (read(w->from, &done, 1) == 1) return NULL;
    int status = stop(w);
    snprintf(text, sizeof text, "ended the process with %s %d",
             WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return text;
}

int main(int argc, char **argv) {
    job *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned long count = 0, bad = 0;
    double seconds, slowest = 0;
    char folder[] = "/tmp/mutants-XXXXXX", slow[200] = "";
    worker w;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i + 1 < sizeof long_text; i++) long_text[i] = i % 1000 ? 'a' : ' ';
    if (j == MAP_FAILED || !mkdtemp(folder) || !start(&w, j, folder))
        return fprintf(stderr, "out of memory\n"), 2;
    while (read_job(j)) {
        size_t at = 0;
        pith_str name = next_string(j, &at);
        count++;
        j->count[use_of(j)]++;
        const char *what = run_job(&w, &seconds);
        if (seconds > slowest) {
            slowest = seconds;
            snprintf(slow, sizeof slow, "%.*s", (int)name.size, name.data);
        }
        if (!what) continue;
        printf("%lu %.*s: %s\n", count, (int)name.size, name.data, what);
        fflush(stdout);
        bad++;
        if (argc > 1) save(argv[1], count, j);
        if (!start(&w, j, folder)) return fprintf(stderr, "out of memory\n"), 2;
    }
    int status = stop(&w);
    j->size = 0;
    put_files(folder, j, 0);
    rmdir(folder);
    size_t ran = 0;
    for (size_t i = 0; i < USES; i++) {
        const run_counts *c = &j->counts[i];
        if (j->count[i])
            printf("%s: %zu mutants, %zu opened, %zu runs, %zu runs refused\n", uses[i].name,
                   j->count[i], c->opened, c->ran, c->refused);
        ran += c->ran;
    }
    printf("%lu mutants, %lu bad; the slowest took %.1f s: %s\n", count, bad, slowest, slow);
    return bad || status || !ran;
}
