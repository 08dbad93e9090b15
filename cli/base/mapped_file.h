/* mapped_file.h - a file's bytes in memory, as they are on disk. */
#ifndef PITH_CLI_BASE_MAPPED_FILE_H
#define PITH_CLI_BASE_MAPPED_FILE_H

#include "cli/base/cli.h"

typedef struct mapped_file {
    const unsigned char *data; /* never NULL, also of an empty file */
    size_t size;
    void *map; /* NULL: nothing is mapped */
} mapped_file;

/* Maps a regular file, which must not become shorter while it is used. EXIT_DONE, or another exit
 * code after a message. */
int mapped_file_open(mapped_file *m, const command *c, const char *path);
void mapped_file_close(mapped_file *m);

#endif
