/* hub_listing.h - the files of a repository as the hub lists them: GET
 * {endpoint}/api/models/{repo}/revision/{rev}.
 *
 * The answer is hostile until it is checked: names stay inside the model's directory, sizes are
 * numbers, hashes and the commit are hexadecimal, and there is a limit for everything. */
#ifndef PITH_CLI_HUB_HUB_LISTING_H
#define PITH_CLI_HUB_HUB_LISTING_H

#include <jansson.h>

#include "cli/base/cli.h"

typedef struct hub_file {
    const char *name; /* with slashes */
    int64_t size;     /* -1: not told */
    const char *hash; /* SHA-256 of a file in large file storage; NULL: not told */
    bool wanted;
} hub_file;

typedef struct hub_listing {
    char commit[65];
    hub_file *files;
    size_t count;
    json_t *json; /* owns the texts */
} hub_listing;

/* The largest answer that is read, and the most files. */
#define HUB_LISTING_BYTES ((size_t)64 << 20)
enum { HUB_FILES = 10000 };

/* EXIT_DONE, or another exit code after a message that names `what`. Freed with hub_listing_free in
 * both cases. */
int hub_listing_read(hub_listing *l, const command *c, const char *what, const char *text,
                     size_t size);
void hub_listing_free(hub_listing *l);

/* Whether a name of the hub can be a file below a directory: no "..", nothing absolute, no control
 * characters. */
bool hub_name_is_safe(const char *name);
bool hub_is_hex(const char *text, size_t shortest, size_t longest);

#endif
