/* parquet_tables.c - see parquet_tables.h. A Python program reads the files in pieces, so that
 * memory is bounded. */
#include "cli/tables/parquet_tables.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tables/relational_run.h"

extern char **environ;

/* Arguments: the directory as it is shown, its real path and the directory to fill. Dictionaries
 * become their values, which CSV can hold. Older versions of pyarrow unpickle, and so run, what the
 * metadata of a file hold. Memory and the size of a .csv file are bounded by a multiple of the
 * .parquet file's size. */
static const char parquet_program[] =
    "import errno, os, re, resource, sys\n"
    "try:\n"
    "    import pyarrow, pyarrow.csv, pyarrow.parquet\n"
    "except ImportError:\n"
    "    sys.exit(f'.parquet files need the package pyarrow, which {sys.executable} does not have; "
    "install it '\n"
    "             '(pip install pyarrow), or name another Python with --python')\n"
    "if [int(n) for n in re.findall('[0-9]+', pyarrow.__version__)[:3]] < [14, 0, 1]:\n"
    "    sys.exit(f'pyarrow {pyarrow.__version__} runs code that a .parquet file holds; install "
    "14.0.1 or newer')\n"
    "shown, source, folder = sys.argv[1:]\n"
    "names = sorted(os.listdir(source))\n"
    "def bound(which, most):\n"
    "    hard = resource.getrlimit(which)[1]\n"
    "    resource.setrlimit(which, (most if hard < 0 else min(most, hard), hard))\n"
    "for name in names:\n"
    "    stem, end = os.path.splitext(name)\n"
    "    path = os.path.join(source, name)\n"
    "    if end != '.parquet':\n"
    "        os.symlink(os.path.realpath(path), os.path.join(folder, name))\n"
    "        continue\n"
    "    if stem + '.csv' in names:\n"
    "        sys.exit(f'{shown} holds both {name} and {stem}.csv')\n"
    "    try:\n"
    "        if not os.path.isfile(path):\n"
    "            sys.exit(f'{shown}/{name} is no file')\n"
    "        bound(resource.RLIMIT_FSIZE, 1000 * os.path.getsize(path) + (64 << 20))\n"
    "        bound(resource.RLIMIT_DATA, 64 * os.path.getsize(path) + (2 << 30))\n"
    "        file = pyarrow.parquet.ParquetFile(path)\n"
    "        kinds = pyarrow.types\n"
    "        fields = [(f.name, f.type.value_type if kinds.is_dictionary(f.type) else f.type) for "
    "f in "
    "file.schema_arrow]\n"
    "        for column, kind in fields:\n"
    "            if kinds.is_nested(kind) or kinds.is_binary(kind):\n"
    "                sys.exit(f'{shown}/{name}: column {column!r} is of type {kind}, which no cell "
    "can hold')\n"
    "        schema = pyarrow.schema(fields)\n"
    "        with pyarrow.csv.CSVWriter(os.path.join(folder, stem + '.csv'), schema) as out:\n"
    "            for batch in file.iter_batches(batch_size=4096):\n"
    "                out.write_table(pyarrow.Table.from_batches([batch]).cast(schema))\n"
    "    except (OSError, MemoryError, pyarrow.ArrowException) as fault:\n"
    "        if getattr(fault, 'errno', 0) == errno.EFBIG:\n"
    "            sys.exit(f'{shown}/{name} holds more than 1000 times its size as text; make it a "
    ".csv file first')\n"
    "        sys.exit(f'{shown}/{name}: {fault}')\n";

static bool parquet_named(const char *name) {
    const size_t size = strlen(name);
    return size > 8 && !strcmp(name + size - 8, ".parquet");
}

static bool parquet_there(const char *source) {
    DIR *directory = opendir(source);
    if (!directory) return false;
    bool there = false;

    for (const struct dirent *e; !there && (e = readdir(directory));)
        there = parquet_named(e->d_name);
    closedir(directory);
    return there;
}

/* ---- the interpreter ---- */

static bool parquet_same(const char *folder, const char *other) {
    struct stat a, b;
    return !stat(folder, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The program of that name in the folders of PATH, from malloc, or NULL. Folders that are not named
 * in full, the current directory and the source are left out: what lies beside the data is not
 * run. */
static char *parquet_search(const char *name, const char *source) {
    const char *path = getenv("PATH");
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    for (size_t n; *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        char *folder = n && *path == '/' ? strndup(path, n) : NULL,
             *file = folder ? run_file(folder, name) : NULL;
        struct stat about;
        const bool found = file && !access(file, X_OK) && !stat(file, &about) &&
                           S_ISREG(about.st_mode) && !parquet_same(folder, ".") &&
                           !parquet_same(folder, source);
        free(folder);
        if (found) return file;
        free(file);
    }
    return NULL;
}

/* A program that is named with a slash, in full: the child runs in another folder. Links stay,
 * since an environment of Python is found by them. */
static char *parquet_named_program(const char *name) {
    char *here = *name == '/' ? strdup("") : getcwd(NULL, 0),
         *whole = here ? run_file(here, name + (*name == '/')) : NULL;
    free(here);
    return whole;
}

/* Runs the program in the root folder, isolated: no variable PYTHON…, no packages of the user, no
 * current directory. Its messages go to standard error. */
static int parquet_run(const command *c, const char *python, const char *shown, const char *source,
                       const char *folder) {
    char *words[] = { (char *)(uintptr_t)python, (char *)(uintptr_t) "-I",
                      (char *)(uintptr_t) "-c",  (char *)(uintptr_t)parquet_program,
                      (char *)(uintptr_t)shown,  (char *)(uintptr_t)source,
                      (char *)(uintptr_t)folder, NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int state, fault = posix_spawn_file_actions_init(&actions);
    if (!fault) {
        fault = posix_spawn_file_actions_addchdir_np(&actions, "/");
        if (!fault) fault = posix_spawn(&child, python, &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (fault) return fail(c, ".parquet files are read by Python: %s: %s", python, strerror(fault));
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(state) && !WEXITSTATUS(state)) return EXIT_DONE;
    return fail(c, "%s: its .parquet files could not be read", shown);
}

/* ---- the directory that is filled ---- */

void parquet_remove(parquet_tables *t) {
    DIR *directory = t->source ? opendir(t->source) : NULL;
    if (directory)
        for (const struct dirent *e; (e = readdir(directory));) {
            char *path = run_file(t->source, e->d_name);
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlink(path);
            free(path);
        }
    if (directory) closedir(directory);
    if (t->source) rmdir(t->source);
    if (t->folder) rmdir(t->folder);
    free(t->source);
    free(t->folder);
    *t = (parquet_tables){ NULL, NULL };
}

/* The last name of the path, or of the real one if it ends with a dot. Free it. */
static char *parquet_name(const char *source, const char *real) {
    size_t end = strlen(source);
    while (end && source[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && source[begin - 1] != '/') begin--;
    const bool dots = begin == end || (source[begin] == '.' &&
                                       strspn(source + begin, "./") == strlen(source + begin));
    return dots ? strdup(strrchr(real, '/') + 1) : strndup(source + begin, end - begin);
}

/* A directory of the source's name, after which the database is called. */
static int parquet_make(parquet_tables *t, const command *c, const char *source, const char *real) {
    const char *place = getenv("TMPDIR");
    char *name = parquet_name(source, real);
    char *made = run_file(place && *place ? place : "/tmp", "pith-parquet-XXXXXX");
    const bool done = mkdtemp(made) != NULL;
    int code = done ? EXIT_DONE : fail(c, "%s: %s", made, strerror(errno));
    if (done) t->folder = realpath(made, NULL);
    if (t->folder && name) t->source = run_file(t->folder, *name ? name : "root");
    if (done && (!t->source || mkdir(t->source, 0700)))
        code = fail(c, "%s: %s", made, strerror(errno));
    free(made);
    free(name);
    return code;
}

int parquet_unpack(parquet_tables *t, const command *c, const char *source, const char *python) {
    *t = (parquet_tables){ NULL, NULL };
    if (!parquet_there(source)) return EXIT_DONE;
    char *real = realpath(source, NULL);
    if (!real) return fail(c, "%s: %s", source, strerror(errno));
    char *found =
        strchr(python, '/') ? parquet_named_program(python) : parquet_search(python, real);
    int code = found ? parquet_make(t, c, source, real)
                     : fail(c,
                            ".parquet files are read by Python: no '%s' is in the folders of PATH "
                            "that are named in "
                            "full; name one with --python",
                            python);
    if (!code) code = parquet_run(c, found, source, real, t->source);
    free(found);
    free(real);
    return code;
}

int parquet_fail(const parquet_tables *t, const command *c, const char *source,
                 const char *message) {
    const char *at = t->source ? strstr(message, t->source) : NULL;
    if (!at) return fail(c, "%s", message);
    return fail(c, "%.*s%s%s", (int)(at - message), message, source, at + strlen(t->source));
}
