/* op_mutants.c - opens the models that op_mutants.py writes, at levels 0 and 3, asks for costs and runs them: each
 * gives an error or a result in bounded time and memory.
 *
 * usage: op_mutants.py FOLDER... | op_mutants [SAVE]
 * A child process does the work; one that ends or takes more than HANG_SECONDS is named and replaced. Models that did
 * so are kept in the folder SAVE. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_ones.h"

enum { NAME_MAX_BYTES = 1024, MODEL_MAX_BYTES = 4 << 20, HANG_SECONDS = 10 };
/* The sanitizers slow a process down by up to twenty times. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_UNDEFINED__
enum { PATIENCE = 12 };
#else
enum { PATIENCE = 1 };
#endif

/* In memory that both processes see. */
typedef struct job {
    char name[NAME_MAX_BYTES + 1];
    uint32_t size;
    run_counts counts;
    unsigned char model[MODEL_MAX_BYTES];
} job;

typedef struct worker {
    pid_t pid;
    int to, from; /* a byte for each job, and one back */
} worker;

static void work(job *j, int in, int out) {
    char go;
    while (read(in, &go, 1) == 1) {
        for (int level = 0; level <= 3; level += 3) open_and_run_at(j->model, j->size, level, &j->counts);
        if (write(out, &go, 1) != 1) break;
    }
    _exit(0);
}

static bool start(worker *w, job *j) {
    int to[2], from[2];
    if (pipe(to) || pipe(from)) return false;
    w->pid = fork();
    if (w->pid == 0) {
        close(to[1]);
        close(from[0]);
        work(j, to[0], from[1]);
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

static bool read_part(void *data, uint32_t *size, uint32_t most) {
    unsigned char length[4];
    if (fread(length, 1, 4, stdin) != 4) return false;
    *size = length[0] | (uint32_t)length[1] << 8 | (uint32_t)length[2] << 16 | (uint32_t)length[3] << 24;
    return *size <= most && fread(data, 1, *size, stdin) == *size;
}

static void save(const char *folder, unsigned long number, const job *j) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%lu.onnx", folder, number);
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(j->model, 1, j->size, f);
    fclose(f);
}

/* What became of the job that both see, or NULL if all is well. */
static const char *run_job(worker *w) {
    static char text[100];
    char done = 0;
    struct pollfd wait = { w->from, POLLIN, 0 };
    if (write(w->to, &done, 1) == 1 && poll(&wait, 1, HANG_SECONDS * PATIENCE * 1000) == 0) {
        kill(w->pid, SIGKILL);
        stop(w);
        return "hangs";
    }
    if (read(w->from, &done, 1) == 1) return NULL;
    int status = stop(w);
    snprintf(text, sizeof text, "ended the process with %s %d", WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return text;
}

int main(int argc, char **argv) {
    job *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned long count = 0, bad = 0;
    uint32_t length;
    worker w;
    signal(SIGPIPE, SIG_IGN);
    if (j == MAP_FAILED || !start(&w, j)) return fprintf(stderr, "out of memory\n"), 2;
    while (read_part(j->name, &length, NAME_MAX_BYTES) && read_part(j->model, &j->size, MODEL_MAX_BYTES)) {
        j->name[length] = 0;
        count++;
        const char *what = run_job(&w);
        if (!what) continue;
        printf("%lu %s: %s\n", count, j->name, what);
        fflush(stdout);
        bad++;
        if (argc > 1) save(argv[1], count, j);
        if (!start(&w, j)) return fprintf(stderr, "out of memory\n"), 2;
    }
    int status = stop(&w);
    printf("%lu mutants: %zu opened, %zu runs, %zu runs refused, %lu bad\n", count, j->counts.opened, j->counts.ran,
           j->counts.refused, bad);
    return bad || status || !count || !j->counts.ran;
}
