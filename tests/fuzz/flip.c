/* flip.c - models with one byte wrong, opened and run: an error or a result, in bounded time.
 *
 * usage: flip SECONDS SEED FOLDER... Models are FOLDER/<name>/model.onnx. A child process does the
 * work and notes in shared memory what it is at, so that its end names model, place and byte
 * whatever happened to it. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os/file.h"
#include "run_ones.h"

enum { HANG_SECONDS = 300, SIZE_MAX_BYTES = 1 << 20 };

typedef struct note {
    char path[1024];
    size_t at;
    unsigned char byte;
    unsigned long runs;
    run_counts counts;
} note;

static uint32_t random_number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static size_t list(char ***paths, int count, char **folders) {
    size_t n = 0, capacity = 0;
    for (int i = 0; i < count; i++) {
        struct dirent **entries;
        int found = scandir(folders[i], &entries, NULL, alphasort);
        for (int k = 0; k < found; k++) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s/model.onnx", folders[i], entries[k]->d_name);
            free(entries[k]);
            if (access(path, R_OK)) continue;
            if (n == capacity)
                *paths = realloc(*paths, (capacity = 2 * capacity + 64) * sizeof **paths);
            (*paths)[n++] = strdup(path);
        }
        if (found >= 0) free(entries);
    }
    return n;
}

static void work(note *now, char **paths, size_t count, uint64_t seed, time_t end) {
    while (time(NULL) < end) {
        pith__file file;
        snprintf(now->path, sizeof now->path, "%s", paths[random_number(&seed) % count]);
        if (pith__file_open(&file, now->path, false, NULL, NULL)) continue;
        unsigned char *bytes = file.size && file.size < SIZE_MAX_BYTES ? malloc(file.size) : NULL;
        if (bytes) {
            memcpy(bytes, file.data, file.size);
            now->at = random_number(&seed) % file.size;
            /* Small steps turn types, shapes and lengths into their neighbours. */
            now->byte = (unsigned char)(random_number(&seed) % 2
                                            ? bytes[now->at] + random_number(&seed) % 9 - 4
                                            : random_number(&seed));
            bytes[now->at] = now->byte;
            open_and_run(bytes, file.size, &now->counts);
            now->runs++;
            free(bytes);
        }
        pith__file_close(&file);
    }
}

int main(int argc, char **argv) {
    char **paths = NULL;
    size_t count = argc > 3 ? list(&paths, argc - 3, argv + 3) : 0;
    note *now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!count || now == MAP_FAILED)
        return fprintf(stderr, "usage: flip SECONDS SEED FOLDER...\n"), 2;
    time_t end = time(NULL) + atoi(argv[1]);
    pid_t child = fork();
    if (child == 0) {
        work(now, paths, count, strtoull(argv[2], NULL, 10), end);
        for (size_t i = 0; i < count; i++) free(paths[i]);
        free(paths);
        exit(0);
    }
    int status = 0, hung = 0;
    unsigned long seen = 0;
    time_t since = time(NULL);
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        if (now->runs != seen) seen = now->runs, since = time(NULL);
        hung = time(NULL) - since > HANG_SECONDS;
        if (hung) kill(child, SIGKILL);
        usleep(100000);
    }
    for (size_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
    printf("seed %s: %lu models with a byte changed: %zu opened, %zu runs, %zu runs refused\n",
           argv[2], now->runs, now->counts.opened, now->counts.ran, now->counts.refused);
    if (child > 0 && WIFEXITED(status) && !WEXITSTATUS(status) && now->counts.ran) return 0;
    printf("%s, byte %zu set to %u: %s\n", now->path, now->at, now->byte,
           hung ? "hangs" : "ended the process");
    return 1;
}
