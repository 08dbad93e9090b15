/* http_get.c - see http_get.h. */
#include "base/str.h"
#include "base/text_out.h"
#include "cli/hub/http_get.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HTTP_REDIRECTS = 5, HTTP_ADDRESS = 8192 };

/* The file of trusted certificates that the user names, in the variables of curl, Python's requests
 * and OpenSSL. */
static const char *http_authorities(void) {
    static const char *const names[] = { "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = getenv(names[i]);
        if (path && *path) return path;
    }
    return NULL;
}

int http_open(http_client *h, const command *c, const char *token, int timeout) {
    *h = (http_client){ curl_load(c), NULL, token, timeout, http_authorities() };
    if (!h->curl) return EXIT_FAILED;
    h->handle = h->curl->easy_init();
    return h->handle ? EXIT_DONE : fail(c, "libcurl cannot be started");
}

void http_close(http_client *h) {
    if (h->handle) h->curl->easy_cleanup(h->handle);
    h->handle = NULL;
}

typedef struct http_transfer {
    http_answer *answer;
    http_taker *take;
    void *user;
} http_transfer;

static bool http_is_file(const http_answer *answer) {
    return answer->status == 200 || answer->status == 206;
}

static size_t http_body(char *data, size_t size, size_t count, void *user) {
    http_transfer *t = user;
    if (!http_is_file(t->answer)) return size * count; /* an error's page is of no use */
    t->answer->refused = !t->take(t->user, t->answer, data, size * count);
    return t->answer->refused ? 0 : size * count;
}

/* The value of the header, if the line is that header, without white space around it and quotes;
 * else NULL. */
static const char *http_value(char *line, const char *name) {
    size_t n = strlen(name);
    if (strncasecmp(line, name, n) || line[n] != ':') return NULL;
    char *value = line + n + 1, *end = value + strlen(value);
    if (!strncmp(value += strspn(value, " \t"), "W/", 2)) value += 2;
    while (end > value && strchr(" \t\r\n\"", end[-1])) *--end = 0;
    return value + (*value == '"');
}

/* One line of the answer's headers. X-Linked-Etag is the hash of a file in large file storage and
 * wins over ETag, which is then the hash of a pointer (huggingface_hub, file_download.py). */
static void http_read_header(http_answer *a, char *line) {
    const char *value;
    if (!strncmp(line, "HTTP/", 5)) { /* another answer begins: after a proxy's, or after 100 */
        const char *space = strchr(line, ' ');
        a->status = space ? atoi(space) : 0;
        a->from = 0;
        a->total = a->retry_after = -1;
        *a->code = 0;
    } else if ((value = http_value(line, "Content-Range"))) {
        unsigned long long from;
        long long total;
        int found = sscanf(value, "bytes %llu-%*u/%lld", &from, &total);
        if (found > 0) a->from = from;
        if (found > 1) a->total = total;
    } else if ((value = http_value(line, "Content-Length"))) {
        if (a->status == 200) a->total = atoll(value);
    } else if ((value = http_value(line, "Retry-After"))) {
        a->retry_after = *value >= '0' && *value <= '9' ? atoi(value) : -1;
    } else if ((value = http_value(line, "X-Error-Code"))) {
        snprintf(a->code, sizeof a->code, "%s", value);
    } else if ((value = http_value(line, "X-Repo-Commit"))) {
        snprintf(a->commit, sizeof a->commit, "%s", value);
    } else if ((value = http_value(line, "X-Linked-Etag"))) {
        snprintf(a->etag, sizeof a->etag, "%s", value);
    } else if ((value = http_value(line, "ETag"))) {
        if (!*a->etag) snprintf(a->etag, sizeof a->etag, "%s", value);
    }
}

static size_t http_header(char *data, size_t size, size_t count, void *user) {
    char line[1024];
    size_t n = size * count < sizeof line - 1 ? size * count : sizeof line - 1;
    memcpy(line, data, n);
    line[n] = 0;
    http_read_header(((http_transfer *)user)->answer, line);
    return size * count;
}

/* Bytes of an address up to the end of host and port. */
static size_t http_origin(const char *url) {
    const char *host = strstr(url, "://");
    return host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#") : 0;
}

static bool http_same_origin(const char *a, const char *b) {
    size_t n = http_origin(a);
    return n && n == http_origin(b) && !strncasecmp(a, b, n);
}

/* One request without redirects; libcurl's code. */
static CURLcode http_once(const http_client *h, const char *url, bool with_token, uint64_t from,
                          http_transfer *t, char *why) {
    const curl_library *l = h->curl;
    char line[4096];
    struct curl_slist *headers = NULL;
    l->easy_reset(h->handle);
    if (with_token && h->token) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", h->token);
        headers = l->slist_append(NULL, line);
    }
    CURLcode code =
        l->easy_setopt(h->handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    if (!code) code = l->easy_setopt(h->handle, CURLOPT_URL, url);
    if (!code && h->authorities) code = l->easy_setopt(h->handle, CURLOPT_CAINFO, h->authorities);
    if (!code && headers) code = l->easy_setopt(h->handle, CURLOPT_HTTPHEADER, headers);
    if (!code && from) { /* unlike RESUME_FROM, RANGE takes an answer with the whole file too */
        snprintf(line, sizeof line, "%llu-", (unsigned long long)from);
        code = l->easy_setopt(h->handle, CURLOPT_RANGE, line);
    }
    if (!code) {
        l->easy_setopt(h->handle, CURLOPT_ERRORBUFFER, why);
        l->easy_setopt(h->handle, CURLOPT_USERAGENT, "pith");
        l->easy_setopt(h->handle, CURLOPT_NOSIGNAL, 1L);
        l->easy_setopt(h->handle, CURLOPT_CONNECTTIMEOUT, (long)h->timeout);
        l->easy_setopt(h->handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
        l->easy_setopt(h->handle, CURLOPT_LOW_SPEED_TIME, (long)h->timeout);
        l->easy_setopt(h->handle, CURLOPT_WRITEFUNCTION, http_body);
        l->easy_setopt(h->handle, CURLOPT_WRITEDATA, t);
        l->easy_setopt(h->handle, CURLOPT_HEADERFUNCTION, http_header);
        l->easy_setopt(h->handle, CURLOPT_HEADERDATA, t);
        code = l->easy_perform(h->handle);
    }
    l->slist_free_all(headers);
    if (code && !*why) snprintf(why, CURL_ERROR_SIZE, "%s", l->easy_strerror(code));
    return code;
}

/* Whether the redirect may be followed; else the answer says why not. */
static bool http_may_follow(const char *from, const char *to, int count, http_answer *answer) {
    const char *why = NULL;
    bool secure = to && !strncasecmp(to, "https://", 8);
    if (!to || strlen(to) >= HTTP_ADDRESS)
        why = "to no usable address";
    else if (!secure && strncasecmp(to, "http://", 7))
        why = "to something that is neither http nor https";
    else if (!secure && !strncasecmp(from, "https://", 8))
        why = "from https to http";
    else if (count > HTTP_REDIRECTS)
        why = "too often";
    answer->lasting = why != NULL;
    if (why)
        pith__text_print(answer->message, sizeof answer->message,
                         "the server redirects %s (" PITH_CUT_FMT ")", why,
                         PITH_CUT(pith__str_of(to ? to : "none"), 300));
    return !why;
}

/* Follows redirects one at a time, so that each address can be refused and the token is sent to the
 * origin of the first address alone. */
bool http_get(const http_client *h, const char *url, uint64_t from, http_taker *take, void *user,
              http_answer *answer) {
    http_transfer t = { answer, take, user };
    char at[HTTP_ADDRESS], why[CURL_ERROR_SIZE];
    *answer = (http_answer){ .total = -1, .retry_after = -1 };
    if (strlen(url) >= sizeof at) return false;
    strcpy(at, url);
    for (int redirects = 0;;) {
        *why = 0;
        const CURLcode code = http_once(h, at, http_same_origin(url, at), from, &t, why);
        if (code) {
            pith__text_print(answer->message, sizeof answer->message, "%s", why);
            return false;
        }
        if (answer->status < 301 || answer->status > 308 || answer->status == 304) break;
        char *to = NULL;
        h->curl->easy_getinfo(h->handle, CURLINFO_REDIRECT_URL, &to);
        if (!http_may_follow(at, to, ++redirects, answer)) return false;
        memmove(at, to, strlen(to) + 1);
    }
    answer->complete = true;
    return true;
}
