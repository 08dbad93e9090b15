/* python_program.c - see python_program.h. */
#include "cli/base/python_program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text_out.h"
#include "cli/base/cli.h"

extern char **environ;

/* "folder/name", from malloc. */
static char *python_path(const char *folder, const char *name) {
    char *path = grow(NULL, strlen(folder) + strlen(name) + 2);
    sprintf(path, "%s/%s", folder, name);
    return path;
}

static bool python_same_folder(const char *folder, const char *other) {
    struct stat a, b;
    return other && !stat(folder, &a) && !stat(other, &b) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static char *python_search(const char *name, const char *beside) {
    const char *path = getenv("PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    for (size_t n; *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        char *folder = n && *path == '/' ? strndup(path, n) : NULL,
             *file = folder ? python_path(folder, name) : NULL;
        struct stat about;
        const bool found = file && !access(file, X_OK) && !stat(file, &about) &&
                           S_ISREG(about.st_mode) && !python_same_folder(folder, ".") &&
                           !python_same_folder(folder, beside);
        free(folder);
        if (found) return file;
        free(file);
    }
    return NULL;
}

/* The child runs in another folder, so the path is made full. Links stay, since an environment of
 * Python is found by them. */
static char *python_named(const char *name) {
    char *here = *name == '/' ? strdup("") : getcwd(NULL, 0),
         *whole = here ? python_path(here, name + (*name == '/')) : NULL;
    free(here);
    return whole;
}

char *python_program_find(const char *name, const char *beside, char *message, size_t size) {
    char *found = strchr(name, '/') ? python_named(name) : python_search(name, beside);
    if (!found)
        pith__text_print(message, size,
                         ".parquet files are read by Python: no '%s' is in the folders of PATH "
                         "that are named in full; name one with --python",
                         name);
    return found;
}

int python_program_start(pid_t *child, const char *python, const char *text,
                         const char *const *arguments, int out) {
    char *words[9] = { (char *)(uintptr_t)python, (char *)(uintptr_t) "-I",
                       (char *)(uintptr_t) "-c", (char *)(uintptr_t)text };
    posix_spawn_file_actions_t actions;
    for (size_t i = 0; i < 4 && arguments[i]; i++) words[4 + i] = (char *)(uintptr_t)arguments[i];
    int fault = posix_spawn_file_actions_init(&actions);
    if (fault) return fault;
    fault = posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (!fault) fault = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!fault && out >= 0) fault = posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (!fault) fault = posix_spawn(child, python, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return fault;
}

bool python_program_end(pid_t child) {
    int state;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR) return false;
    return WIFEXITED(state) && !WEXITSTATUS(state);
}
