/* http_get.h - one GET over HTTP or HTTPS: redirects, the headers that a hub sends, the body in
 * pieces.
 *
 * Redirects are followed here and not by libcurl: five at most, to http and https only, never from
 * https to http, and the token goes to the origin of the first address only. Proxies are those that
 * libcurl takes from the environment. */
#ifndef PITH_CLI_HUB_HTTP_GET_H
#define PITH_CLI_HUB_HTTP_GET_H

#include "cli/hub/curl_library.h"

typedef struct http_client {
    const curl_library *curl;
    CURL *handle;
    const char *token;       /* or NULL */
    int timeout;             /* seconds without a byte that end a transfer */
    const char *authorities; /* a file of trusted certificates, or NULL: those of the system */
} http_client;

typedef struct http_answer {
    int status;        /* 0: no answer came */
    uint64_t from;     /* where the body begins in the file, by Content-Range; 0 for 200 */
    int64_t total;     /* size of the whole file, by Content-Range or Content-Length; -1: not
                          told */
    int retry_after;   /* seconds; -1: not told */
    bool refused;      /* the taker of the body stopped it */
    bool complete;     /* the transfer ended as it should */
    bool lasting;      /* trying again will not help */
    char code[64];     /* X-Error-Code */
    char commit[65];   /* X-Repo-Commit */
    char etag[128];    /* X-Linked-Etag, else ETag, without quotes */
    char message[512]; /* what went wrong, if the transfer is not complete */
} http_answer;

/* Takes a piece of the body of an answer 200 or 206; false stops the transfer. */
typedef bool http_taker(void *user, const http_answer *answer, const void *data, size_t size);

/* EXIT_DONE, or another exit code after a message. */
int http_open(http_client *h, const command *c, const char *token, int timeout);
void http_close(http_client *h);
/* from: the first byte wanted. True if an answer came completely; it may be any status. */
bool http_get(const http_client *h, const char *url, uint64_t from, http_taker *take, void *user,
              http_answer *answer);

#endif
