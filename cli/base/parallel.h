/* parallel.h - independent pieces of work on several threads. */
#ifndef PITH_CLI_BASE_PARALLEL_H
#define PITH_CLI_BASE_PARALLEL_H

#include "cli/base/cli.h"

/* Calls work(context, part) once for every part below parts, on up to `threads` threads (0: all
 * that the process may use), the calling one among them. Any thread may take any part. Returns when
 * all are done. If a thread cannot be started, the others do its work. */
void parallel_run(void (*work)(void *context, size_t part), void *context, size_t parts,
                  int32_t threads);

#endif
