/* mapped_file.h - a file's bytes in memory, as they are on disk. */
#ifndef PITH_CLI_BASE_MAPPED_FILE_H
#define PITH_CLI_BASE_MAPPED_FILE_H

#include "cli/base/cli.h"

typedef struct mapped {
    const unsigned char *data; /* never NULL, also of an empty file */
    size_t size;
    void *map; /* NULL: nothing is mapped */
} mapped;

/* Maps a regular file, which must not become shorter while it is used. EXIT_DONE, or another exit
 * code after a message. */
int mapped_open(mapped *m, const command *c, const char *path);
void mapped_close(mapped *m);

#endif
