/* pull_file.h - one file of a hub: fetched, resumed, verified, and only then given its name. */
#ifndef PITH_CLI_HUB_PULL_FILE_H
#define PITH_CLI_HUB_PULL_FILE_H

#include "cli/hub/hub_address.h"
#include "cli/hub/hub_listing.h"

typedef struct pull_progress {
    uint64_t done, total; /* bytes of all files */
    uint64_t fetched;     /* bytes that came over the network */
    double shown;         /* when; seconds */
    bool terminal;
} pull_progress;

/* Fetches the file to directory/name. Its size and, in large file storage, its SHA-256 must be
 * those of the list; a file without a size in the list may have 64 MB. What has come of a file with
 * a hash stays in directory/.pith-part-HASH whatever happens, and a later call goes on from there.
 * hash: the SHA-256 of what came. EXIT_DONE, or another exit code after a message. */
int pull_file_get(const hub *h, const hub_file *file, const char *commit, const char *directory,
                  pull_progress *progress, char hash[65]);

/* The SHA-256 of a file; false and errno if it cannot be read. */
bool pull_file_hash(const char *path, char hash[65]);
/* Makes the folders above a file. False and errno if that fails. */
bool pull_make_folders(const char *path);
void pull_progress_clear(const pull_progress *p);

#endif
