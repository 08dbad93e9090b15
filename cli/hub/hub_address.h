/* hub_address.h - what a hub is asked for, and what its answers mean. */
#ifndef PITH_CLI_HUB_HUB_ADDRESS_H
#define PITH_CLI_HUB_HUB_ADDRESS_H

#include "cli/hub/http_get.h"

typedef struct hub {
    const command *c;
    http_client http;
    const char *endpoint;   /* "https://huggingface.co", without a slash at its end */
    const char *repository; /* "organisation/name" */
    int attempts;           /* how often something that may be passing is tried without progress */
} hub;

/* {endpoint}/api/models/{repository}/revision/{revision}?blobs=true, from malloc */
char *hub_listing_address(const hub *h, const char *revision);
/* {endpoint}/{repository}/resolve/{commit}/{file}, from malloc */
char *hub_file_address(const hub *h, const char *commit, const char *file);

/* After an answer that is no file or did not come completely: waits and returns true if another
 * attempt makes sense, else false. attempt: how many have been made in a row without progress. */
bool hub_wait(const hub *h, const http_answer *answer, int attempt);
/* Says why there is no file: what (a file, or NULL for the list of files), revision. Returns
 * EXIT_FAILED. */
int hub_fail(const hub *h, const http_answer *answer, const char *what, const char *revision);

/* "organisation/name" or "name", of letters, digits, '.', '_' and '-'. */
bool hub_repository_is_valid(const char *name);

/* The name within what other tools write: "https://huggingface.co/organisation/name/tree/main",
 * "hf.co/organisation/name:Q8_0", "name:latest". False: there is nothing but the name. */
bool hub_name_within(char *name, size_t size, const char *typed);

#endif
