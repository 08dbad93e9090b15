/* curl_library.h - libcurl, loaded when the first byte is to be fetched, so that no other verb pays
 * for it. */
#ifndef PITH_CLI_HUB_CURL_LIBRARY_H
#define PITH_CLI_HUB_CURL_LIBRARY_H

#define CURL_DISABLE_DEPRECATION /* options that older libraries know too */
#define CURL_DISABLE_TYPECHECK   /* macros in the place of functions */
#include <curl/curl.h>

#include "base/os/shared_library.h"
#include "cli/base/cli.h"

/* Why libcurl may not be loaded: an entry of LD_LIBRARY_PATH that begins in the current folder
 * names a folder with libraries, as the library itself refuses it; NULL: it may. */
const char *curl_may_not_load(void);

#define CURL_FUNCTIONS(F)                                                                          \
    F(curl_, easy_init)                                                                            \
    F(curl_, easy_setopt)                                                                          \
    F(curl_, easy_perform)                                                                         \
    F(curl_, easy_getinfo)                                                                         \
    F(curl_, easy_reset)                                                                           \
    F(curl_, easy_cleanup)                                                                         \
    F(curl_, easy_strerror)                                                                        \
    F(curl_, slist_append)                                                                         \
    F(curl_, slist_free_all)                                                                       \
    F(curl_, global_init)

typedef struct curl_library {
    CURL_FUNCTIONS(PITH_LIBRARY_MEMBER)
} curl_library;

/* NULL after a message that names the package to install. */
const curl_library *curl_load(const command *c);

#endif
