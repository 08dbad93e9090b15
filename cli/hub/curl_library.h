/* curl_library.h - libcurl, loaded when the first byte is to be fetched, so that no other verb pays
 * for it. */
#ifndef PITH_CLI_HUB_CURL_LIBRARY_H
#define PITH_CLI_HUB_CURL_LIBRARY_H

#include "cli/base/cli.h"

/* Numbers of libcurl's interface, which it never changes (include/curl/curl.h). */
enum {
    CURL_URL = 10002,
    CURL_WRITE_FUNCTION = 20011,
    CURL_WRITE_DATA = 10001,
    CURL_HEADER_FUNCTION = 20079,
    CURL_HEADER_DATA = 10029,
    CURL_HEADERS = 10023,
    CURL_ERROR_BUFFER = 10010, /* of 256 bytes */
    CURL_USER_AGENT = 10018,
    CURL_RANGE = 10007, /* unlike RESUME_FROM, it takes an answer with the whole file too */
    CURL_NO_SIGNAL = 99,
    CURL_CONNECT_TIMEOUT = 78,
    CURL_LOW_SPEED_LIMIT = 19,
    CURL_LOW_SPEED_TIME = 20,
    CURL_PROTOCOLS = 181,         /* 1: http, 2: https */
    CURL_CA_FILE = 10065,         /* certificates that are trusted, in place of the system's */
    CURL_GET_STATUS = 0x200002,   /* long */
    CURL_GET_REDIRECT = 0x10001f, /* char *: where the answer points, as a whole address; NULL:
                                     nowhere */
};

/* Why libcurl may not be loaded: an entry of LD_LIBRARY_PATH that begins in the current folder
 * names a folder with libraries, as the library itself refuses it; NULL: it may. */
const char *curl_may_not_load(void);

typedef struct curl_library {
    void *(*easy_init)(void);
    int (*easy_setopt)(void *handle, int option, ...);
    int (*easy_perform)(void *handle);
    int (*easy_getinfo)(void *handle, int info, ...);
    void (*easy_reset)(void *handle);
    void (*easy_cleanup)(void *handle);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *line);
    void (*slist_free_all)(void *list);
    int (*global_init)(long flags);
} curl_library;

/* NULL after a message that names the package to install. */
const curl_library *curl_load(const command *c);

#endif
