/* hub_address.c - see hub_address.h. */
#include "cli/hub/hub_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/base/message.h"
#include "cli/base/text_input.h"

/* Seconds: the first wait, which doubles; and the longest that a server may ask for. */
#define HUB_WAIT_FIRST 0.25
enum { HUB_WAIT_MAX = 120 };

static const char hub_plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

static void hub_add(bytes *url, const char *text) { bytes_add(url, text, strlen(text)); }

static void hub_add_escaped(bytes *url, const char *text, bool with_slashes) {
    for (; *text; text++) {
        char escaped[4];
        bool plain = strchr(hub_plain, *text) || (with_slashes && *text == '/');
        snprintf(escaped, sizeof escaped, plain ? "%c" : "%%%02X", (unsigned char)*text);
        hub_add(url, escaped);
    }
}

char *hub_listing_address(const hub *h, const char *revision) {
    bytes url = { NULL, 0, 0 };
    hub_add(&url, h->endpoint);
    hub_add(&url, "/api/models/");
    hub_add(&url, h->repository);
    hub_add(&url, "/revision/");
    hub_add_escaped(&url, revision, false);
    bytes_add(&url, "?blobs=true", sizeof "?blobs=true");
    return url.data;
}

char *hub_file_address(const hub *h, const char *commit, const char *file) {
    bytes url = { NULL, 0, 0 };
    hub_add(&url, h->endpoint);
    hub_add(&url, "/");
    hub_add(&url, h->repository);
    hub_add(&url, "/resolve/");
    hub_add(&url, commit);
    hub_add(&url, "/");
    hub_add_escaped(&url, file, true);
    bytes_add(&url, "", 1);
    return url.data;
}

static bool hub_passes(const http_answer *a) {
    if (a->lasting || a->refused) return false;
    if (!a->complete) return true;
    return a->status == 429 || a->status == 408 || (a->status >= 500 && a->status != 501);
}

bool hub_wait(const hub *h, const http_answer *a, int attempt) {
    if (!hub_passes(a) || attempt >= h->attempts || a->retry_after > HUB_WAIT_MAX) return false;
    double seconds = HUB_WAIT_FIRST * (double)(1 << (attempt < 8 ? attempt : 8));
    if (a->complete && a->retry_after >= 0) seconds = a->retry_after;
    if (seconds >= 1)
        note("%s; trying again in %.0f s", a->complete ? "the hub is busy" : a->message, seconds);
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&time, NULL);
    return true;
}

int hub_fail(const hub *h, const http_answer *a, const char *what, const char *revision) {
    const command *c = h->c;
    const char *of = h->repository, *gap = what ? ": " : "", *file = what ? what : "";
    if (!a->complete)
        return fail(c, "%s%s%s: %s (%s)", of, gap, file, *a->message ? a->message : "no answer",
                    h->endpoint);
    if (a->status == 401 || a->status == 403) {
        if (!strcmp(a->code, "GatedRepo") || a->status == 403)
            return fail(c,
                        "%s%s%s: the hub refuses it (%d): accept its terms at %s/%s and give a "
                        "token that may read it, with "
                        "HF_TOKEN or --token-file",
                        of, gap, file, a->status, h->endpoint, of);
        return fail(c,
                    "%s%s%s: the hub asks who you are (401): there is no such repository, or it is "
                    "private; check the name, or "
                    "give a token with HF_TOKEN or --token-file%s",
                    of, gap, file, h->http.token ? " (the one given is not accepted)" : "");
    }
    if (a->status == 404 && what)
        return fail(c, "%s: %s is not in revision %s (404), though the hub lists it; try again", of,
                    what, revision);
    if (a->status == 404 && !strcmp(a->code, "RevisionNotFound"))
        return fail(c, "%s: there is no revision %s (404)", of, revision);
    if (a->status == 404)
        return fail(c,
                    "%s: there is no such repository or revision (%s) at %s (404); 'pith models' "
                    "lists names",
                    of, revision, h->endpoint);
    if (a->status == 429 && a->retry_after > HUB_WAIT_MAX)
        return fail(c, "%s%s%s: the hub asks to wait %d s (429); try again then", of, gap, file,
                    a->retry_after);
    if (a->status == 429)
        return fail(c, "%s%s%s: the hub gets too many requests (429); try again later", of, gap,
                    file);
    return fail(c, "%s%s%s: the hub answers %d; try again later", of, gap, file, a->status);
}

bool hub_repository_is_valid(const char *name) {
    const char *slash = strchr(name, '/');
    size_t n = strlen(name), plain = strspn(name, hub_plain),
           more = slash ? strspn(slash + 1, hub_plain) : 0;
    if (!n || n > 200 || name[0] == '.' || strstr(name, "..") || strchr(name, '~')) return false;
    if (!slash) return plain == n;
    return plain && slash == name + plain && more && !slash[1 + more] && slash[1] != '.';
}

bool hub_name_within(char *name, size_t size, const char *typed) {
    static const char *const before[] = { "https://",        "http://", "www.",
                                          "huggingface.co/", "hf.co/",  "hf://" };
    const char *at = typed;
    bool on_hub = false;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        if (strncasecmp(at, before[i], strlen(before[i])) != 0) continue;
        at += strlen(before[i]);
        on_hub |= i >= 3;
    }
    size_t n = strcspn(at, ":?#@");
    const char *slash = memchr(at, '/', n);
    if (slash && on_hub) /* what follows is a page or a file of it */
        n = (size_t)(slash + 1 - at) + strcspn(slash + 1, "/:?#@");
    if (!on_hub && (at > typed || at[n] != ':')) return false;
    snprintf(name, size, "%.*s", (int)n, at);
    return n < size && hub_repository_is_valid(name);
}
