/* parquet_tables.c - see parquet_tables.h. A Python program reads the files in pieces, so that memory is bounded. */
#include "cli/parquet_tables.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/relational_run.h"

extern char **environ;

/* Arguments: the directory and the one to fill. Dictionaries become their values, which CSV can hold. */
static const char parquet_program[] =
    "import os, sys\n"
    "try:\n"
    "    import pyarrow, pyarrow.csv, pyarrow.parquet\n"
    "except ImportError:\n"
    "    sys.exit(f'.parquet files need the package pyarrow, which {sys.executable} does not have; install it '\n"
    "             '(pip install pyarrow), or name another Python with --python')\n"
    "source, folder = sys.argv[1:]\n"
    "names = sorted(os.listdir(source))\n"
    "for name in names:\n"
    "    stem, end = os.path.splitext(name)\n"
    "    if end != '.parquet':\n"
    "        os.symlink(os.path.realpath(os.path.join(source, name)), os.path.join(folder, name))\n"
    "        continue\n"
    "    if stem + '.csv' in names:\n"
    "        sys.exit(f'{source} holds both {name} and {stem}.csv')\n"
    "    try:\n"
    "        file = pyarrow.parquet.ParquetFile(os.path.join(source, name))\n"
    "        kinds = pyarrow.types\n"
    "        fields = [(f.name, f.type.value_type if kinds.is_dictionary(f.type) else f.type) for f in "
    "file.schema_arrow]\n"
    "        for column, kind in fields:\n"
    "            if kinds.is_nested(kind) or kinds.is_binary(kind):\n"
    "                sys.exit(f'{source}/{name}: column {column!r} is of type {kind}, which no cell can hold')\n"
    "        schema = pyarrow.schema(fields)\n"
    "        with pyarrow.csv.CSVWriter(os.path.join(folder, stem + '.csv'), schema) as out:\n"
    "            for batch in file.iter_batches():\n"
    "                out.write_table(pyarrow.Table.from_batches([batch]).cast(schema))\n"
    "    except (OSError, pyarrow.ArrowException) as fault:\n"
    "        sys.exit(f'{source}/{name}: {fault}')\n";

static bool parquet_named(const char *name) {
    const size_t size = strlen(name);
    return size > 8 && !strcmp(name + size - 8, ".parquet");
}

static bool parquet_there(const char *source) {
    DIR *directory = opendir(source);
    bool there = false;
    for (const struct dirent *e; directory && !there && (e = readdir(directory));) there = parquet_named(e->d_name);
    if (directory) closedir(directory);
    return there;
}

void parquet_remove(char *folder) {
    DIR *directory = folder ? opendir(folder) : NULL;
    for (const struct dirent *e; directory && (e = readdir(directory));) {
        char *path = run_file(folder, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlink(path);
        free(path);
    }
    if (directory) closedir(directory);
    if (folder) rmdir(folder);
    free(folder);
}

/* Runs the program; its messages go to standard error. */
static int parquet_run(const command *c, const char *python, const char *source, const char *folder) {
    char *words[] = { (char *)(uintptr_t)python, (char *)(uintptr_t) "-c",  (char *)(uintptr_t)parquet_program,
                      (char *)(uintptr_t)source, (char *)(uintptr_t)folder, NULL };
    pid_t child;
    int state;
    const int fault = posix_spawnp(&child, python, NULL, NULL, words, environ);
    if (fault) return fail(c, ".parquet files are read by Python: %s: %s", python, strerror(fault));
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(state) && !WEXITSTATUS(state)) return EXIT_DONE;
    return fail(c, "%s: its .parquet files could not be read", source);
}

int parquet_unpack(char **folder, const command *c, const char *source, const char *python) {
    const char *place = getenv("TMPDIR");
    *folder = NULL;
    if (!parquet_there(source)) return EXIT_DONE;
    *folder = run_file(place && *place ? place : "/tmp", "pith-parquet-XXXXXX");
    if (!mkdtemp(*folder)) {
        const int code = fail(c, "%s: %s", *folder, strerror(errno));
        free(*folder);
        *folder = NULL;
        return code;
    }
    return parquet_run(c, python, source, *folder);
}
