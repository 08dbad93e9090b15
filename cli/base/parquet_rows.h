/* parquet_rows.h - the rows of a .parquet file as CSV, from a Python with pyarrow, which reads the
 * file in pieces and writes them to a pipe. */
#ifndef PITH_CLI_BASE_PARQUET_ROWS_H
#define PITH_CLI_BASE_PARQUET_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts the program; the pipe that CSV comes from, or -1 and a message. Columns that no cell can
 * hold, such as lists, are left out with a warning. python: as python_program_find takes it. */
int parquet_rows_open(pid_t *child, const char *path, const char *python, char *message,
                      size_t size);
/* Ends the program. False: it failed before the end of the file, and has said why. */
bool parquet_rows_close(pid_t child, int fd);

#endif
