/* parquet_rows.c - see parquet_rows.h. */
#include "cli/base/parquet_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_out.h"
#include "cli/base/message.h"
#include "cli/base/python_program.h"

/* Arguments: the path as it is shown, and the real one. Dictionaries become their values, which CSV
 * can hold. Memory is bounded by a multiple of the size of the file. A reader that goes away ends
 * the program. */
static const char parquet_program[] = PYTHON_ARROW
    "shown, path = sys.argv[1:]\n"
    "def clean(text):\n"
    "    return ''.join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))\n"
    "try:\n"
    "    bound(resource.RLIMIT_DATA, 64 * os.path.getsize(path) + (2 << 30))\n"
    "    file = pyarrow.parquet.ParquetFile(path)\n"
    "    kinds = pyarrow.types\n"
    "    fields = []\n"
    "    for f in file.schema_arrow:\n"
    "        kind = f.type.value_type if kinds.is_dictionary(f.type) else f.type\n"
    "        if kinds.is_nested(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind) or "
    "kinds.is_fixed_size_binary(kind):\n"
    "            print(f'warning: {shown}: column {f.name!r} is left out: no cell can hold "
    "{clean(kind)}', file=sys.stderr)\n"
    "        else:\n"
    "            fields.append((f.name, kind))\n"
    "    if not fields:\n"
    "        sys.exit(f'{shown}: no column holds texts or numbers')\n"
    "    names, schema = [name for name, _ in fields], pyarrow.schema(fields)\n"
    "    with pyarrow.csv.CSVWriter(sys.stdout.buffer, schema) as out:\n"
    "        for batch in file.iter_batches(batch_size=1024):\n"
    "            "
    "out.write_table(pyarrow.Table.from_batches([batch]).select(names).cast(schema))\n"
    "    sys.stdout.flush()\n"
    "except BrokenPipeError:\n"
    "    os._exit(1)\n"
    "except (OSError, MemoryError, KeyError, pyarrow.ArrowException) as fault:\n"
    "    sys.stderr.write(f'{shown}: {clean(fault)}\\n')\n"
    "    os._exit(1)\n";

int parquet_rows_open(pid_t *child, const char *path, const char *python, char *message,
                      size_t size) {
    int ends[2];
    char name[400];
    char *real = realpath(path, NULL), *folder = real ? strdup(real) : NULL;
    if (!folder) {
        pith__text_print(message, size, "%s: %s", path, strerror(errno));
        free(real);
        return -1;
    }
    *strrchr(folder, '/') = 0;
    char *found = python_program_find(python, *folder ? folder : "/", message, size);
    free(folder);
    const char *const arguments[] = { printable(name, sizeof name, path), real, NULL };
    int fault = found && pipe2(ends, O_CLOEXEC) ? errno : 0;
    if (found && !fault) {
        fault = python_program_start(child, found, parquet_program, arguments, ends[1]);
        close(ends[1]);
        if (fault) close(ends[0]);
    }
    if (fault)
        pith__text_print(message, size, ".parquet files are read by Python: %s: %s", found,
                         strerror(fault));
    const bool good = found && !fault;
    free(found);
    free(real);
    return good ? ends[0] : -1;
}

bool parquet_rows_close(pid_t child, int fd) {
    close(fd);
    return python_program_end(child);
}
