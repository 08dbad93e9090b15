/* parquet_tables.c - see parquet_tables.h. A Python program reads the files in pieces, so that
 * memory is bounded. */
#include "cli/tables/parquet_tables.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/python_program.h"
#include "cli/tables/relational_run.h"

/* Arguments: the directory as it is shown, its real path and the directory to fill. Dictionaries
 * become their values, which CSV can hold. Memory and the size of a .csv file are bounded by a
 * multiple of the .parquet file's size. */
static const char parquet_program[] = PYTHON_ARROW
    "shown, source, folder = sys.argv[1:]\n"
    "names = sorted(os.listdir(source))\n"
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

static int parquet_run(const command *c, const char *python, const char *shown, const char *source,
                       const char *folder) {
    const char *const arguments[] = { shown, source, folder, NULL };
    pid_t child;
    const int fault = python_program_start(&child, python, parquet_program, arguments, -1);
    if (fault) return fail(c, ".parquet files are read by Python: %s: %s", python, strerror(fault));
    if (python_program_end(child)) return EXIT_DONE;
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
    char message[400], *found = python_program_find(python, real, message, sizeof message);
    int code = found ? parquet_make(t, c, source, real) : fail(c, "%s", message);
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
