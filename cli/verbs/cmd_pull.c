/* cmd_pull.c - pith pull: a model from a hub in the layout of Hugging Face into the model cache.
 *
 * Nothing else in Pith uses the network. The commit and the hash of every file are pinned at the
 * first pull. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/text_out.h"
#include "cli/base/cli.h"
#include "cli/base/message.h"
#include "cli/hub/hub_address.h"
#include "cli/hub/hub_listing.h"
#include "cli/hub/known_models.h"
#include "cli/hub/local_models.h"
#include "cli/hub/pull_choice.h"
#include "cli/hub/pull_file.h"
#include "cli/hub/pull_pin.h"
#include "cli/hub/pull_place.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"

#define PULL_ENDPOINT "https://huggingface.co"
#define PULL_BRANCH "main"

typedef struct pull_settings {
    const char *endpoint, *token_file;
    string_list files;
    bool all, offline, update, check, json;
    int32_t timeout, attempts;
} pull_settings;

typedef struct pull {
    const command *c;
    const pull_settings *s;
    char typed[256], revision[256]; /* as typed; revision "": none was */
    char name[256];                 /* of the directory: that of a table, in its capitals */
    char repository[256];
    char endpoint[1024], token[1024];
    char listed[300]; /* files that a table names, or "" */
    char sha256[65];  /* what the first of them must have, or "" */
    hub hub;
    pull_place place;
    pull_pin old, made;
    hub_listing listing;
    pull_progress progress;
    size_t fetched_files;
} pull;

static bool pull_is_true(const char *text) {
    static const char *const words[] = { "1", "true", "yes", "on" };
    if (!text) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcasecmp(text, words[i])) return true;
    return false;
}

/* NAME@REVISION */
static int pull_take_name(pull *p, const char *argument) {
    const char *at = strchr(argument, '@');
    size_t n = at ? (size_t)(at - argument) : strlen(argument);
    if (n >= sizeof p->typed || (at && (!at[1] || strlen(at) > sizeof p->revision)))
        return usage(p->c, "'" PITH_CUT_FMT "' is not NAME or NAME@REVISION",
                     PITH_CUT(pith__str_of(argument), 200));
    memcpy(p->typed, argument, n);
    if (at) strcpy(p->revision, at + 1);
    if (hub_repository_is_valid(p->typed)) return -1;
    char within[sizeof p->typed];
    if (hub_name_within(within, sizeof within, argument))
        return usage(p->c, "'%s' cannot be the name of a model; write the name alone: pith pull %s",
                     p->typed, within);
    return usage(p->c, "'%s' cannot be the name of a model; names are NAME or ORGANISATION/NAME",
                 p->typed);
}

/* What the typed name stands for, by the list of known models, else by the short names. */
static void pull_resolve_name(pull *p) {
    known_model known;
    short_name row;
    const bool listed = known_find(&known, p->typed);
    const char *name = p->typed, *repository = p->typed;
    if (listed) {
        name = known.field[KNOWN_NAME];
        repository = known.field[KNOWN_REPOSITORY];
        if (!strchr(p->typed, '/')) name = strchr(name, '/') + 1;
        if (!*known.field[KNOWN_EXPORT])
            snprintf(p->listed, sizeof p->listed, "%s", known.field[KNOWN_FILES]);
    } else if (short_find(&row, p->typed)) {
        const bool known_too = known_find(&known, row.full);
        name = row.full;
        repository = known_too ? known.field[KNOWN_REPOSITORY] : row.full;
        if (known_too && !*known.field[KNOWN_EXPORT])
            snprintf(p->listed, sizeof p->listed, "%s", known.field[KNOWN_FILES]);
        /* a revision that is asked for may have another file */
        if (*row.file && !*p->revision) {
            snprintf(p->listed, sizeof p->listed, "%s", row.file);
            snprintf(p->sha256, sizeof p->sha256, "%s", row.sha256);
        }
    }
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->repository, sizeof p->repository, "%s", repository);
}

static int pull_take_endpoint(pull *p) {
    const char *variable = getenv("HF_ENDPOINT");
    const char *endpoint = PULL_ENDPOINT;
    if (p->s->endpoint)
        endpoint = p->s->endpoint;
    else if (variable && *variable)
        endpoint = variable;
    size_t n = strlen(endpoint);
    while (n && endpoint[n - 1] == '/') n--;
    if (n >= sizeof p->endpoint ||
        (strncmp(endpoint, "http://", 7) && strncmp(endpoint, "https://", 8)))
        return usage(p->c,
                     "the endpoint '" PITH_CUT_FMT
                     "' is no address that begins with http:// or https://",
                     PITH_CUT(pith__str_of(endpoint), 200));
    memcpy(p->endpoint, endpoint, n);
    return -1;
}

/* From --token-file, else HF_TOKEN. It may hold nothing that could end the line of a header. */
static int pull_take_token(pull *p) {
    const char *variable = getenv("HF_TOKEN"), *path = p->s->token_file;
    if (path) {
        FILE *file = fopen(path, "rb");
        if (!file) return fail(p->c, "%s: %s", path, strerror(errno));
        size_t n = fread(p->token, 1, sizeof p->token - 1, file);
        p->token[n] = 0;
        const int failed = ferror(file) ? fail(p->c, "%s: %s", path, strerror(errno)) : EXIT_DONE;
        fclose(file);
        if (failed) return failed;
    } else if (variable) {
        snprintf(p->token, sizeof p->token, "%s", variable);
    }
    p->token[strcspn(p->token, "\r\n")] = 0;
    for (const char *at = p->token; *at; at++)
        if (*at <= ' ' || *at > '~')
            return fail(p->c, "%s: a token has letters, digits and signs only",
                        path ? path : "HF_TOKEN");
    if (path && !*p->token) return fail(p->c, "%s: there is no token in it", path);
    return -1;
}

static int pull_report_local(const pull *p, const char *path) {
    if (p->s->json)
        json_print(json_pack("{s:s, s:o, s:i}", "name", p->typed, "path", json_text(path),
                             "bytes_fetched", 0));
    else
        puts(path);
    return output_close_standard(p->c, EXIT_DONE);
}

/* Without the network: the model must be there. */
static int pull_offline(const pull *p) {
    char path[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    if (!pith_model_locate(path, sizeof path, p->typed, &err)) return pull_report_local(p, path);
    return fail(p->c, "%s; the network is not used (--offline or HF_HUB_OFFLINE)", err.message);
}

/* A model that is there under any of its names is not fetched a second time: one of Hugging Face's
 * cache, or that was put into the model cache, is used as it is; one that was pulled is completed
 * or brought up to date where it is. -1 to go on, else the exit code. */
static int pull_find_local(pull *p, bool as_it_is) {
    char path[PATH_MAX], cache[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    struct stat st;
    if (pith_model_locate(path, sizeof path, p->typed, &err) || stat(path, &st)) return -1;
    if (pith_model_locate(cache, sizeof cache, NULL, &err)) return -1;
    if (as_it_is && strstr(path, "/models--")) return pull_report_local(p, path);
    const size_t n = strlen(cache);
    if (strncmp(path, cache, n) || strncmp(path + n, "/models/", 8)) return -1;
    const char *name = path + n + 8;
    if (!hub_repository_is_valid(name) || strlen(name) >= sizeof p->name) return -1;
    int code = pull_pin_read(&p->old, p->c, path);
    const bool pulled = p->old.json;
    pull_pin_free(&p->old);
    if (code) return code;
    if (pulled) strcpy(p->name, name);
    if (pulled || !as_it_is || !local_has_weights(path)) return -1;
    note("%s is here already", name);
    return pull_report_local(p, path);
}

static bool pull_take_listing(void *user, const http_answer *answer, const void *data,
                              size_t size) {
    bytes *text = user;
    (void)answer;
    if (text->size + size > HUB_LISTING_BYTES) return false;
    bytes_add(text, data, size);
    return true;
}

/* Fetches the list of files. Failures that may pass are tried again (hub_wait). A revision that is
 * a whole commit must give this very commit. */
static int pull_list(pull *p, const char *revision) {
    bytes text = { NULL, 0, 0 };
    http_answer a;
    char *url = hub_listing_address(&p->hub, revision);
    int code = EXIT_DONE;
    for (int attempt = 0;; attempt++) {
        text.size = 0;
        bool complete = http_get(&p->hub.http, url, 0, pull_take_listing, &text, &a);
        if (complete && a.status == 200) break;
        if (hub_wait(&p->hub, &a, attempt)) continue;
        code = a.refused ? fail(p->c, "%s: the hub's list of files has more than %zu MB", p->name,
                                HUB_LISTING_BYTES >> 20)
                         : hub_fail(&p->hub, &a, NULL, revision);
        break;
    }
    free(url);
    if (!code) code = hub_listing_read(&p->listing, p->c, p->name, text.data, text.size);
    free(text.data);
    if (!code && hub_is_hex(revision, 40, 64) && strcmp(revision, p->listing.commit))
        code = fail(p->c, "%s: the hub gives commit %s for revision %s", p->name, p->listing.commit,
                    revision);
    return code;
}

static bool pull_is_pinned_commit(const pull *p) {
    return !strcmp(pull_pin_text(&p->old, "commit"), p->listing.commit);
}

static int pull_fail_pin(const pull *p, const char *file, const char *what) {
    return fail(p->c,
                "%s: %s: the hub has %s for commit %.12s than when it was first pulled; nothing is "
                "changed. A commit cannot "
                "change: do not trust this hub, or remove %s to start again",
                p->name, file, what, p->listing.commit, p->place.final);
}

/* Whatever is pinned for this commit must still be so. Its files stay in the choice. */
static int pull_compare(pull *p) {
    if (!pull_is_pinned_commit(p)) return EXIT_DONE;
    for (size_t i = 0; i < p->listing.count; i++) {
        hub_file *f = &p->listing.files[i];
        int64_t size;
        const char *hash = pull_pin_file(&p->old, f->name, &size);
        if (!hash) continue;
        if (f->size >= 0 && f->size != size) return pull_fail_pin(p, f->name, "another size");
        if (f->hash && strcmp(f->hash, hash)) return pull_fail_pin(p, f->name, "another SHA-256");
        f->wanted = true;
    }
    return EXIT_DONE;
}

static bool pull_has_size(const char *directory, const char *name, int64_t size) {
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return !lstat(path, &st) && S_ISREG(st.st_mode) && st.st_size == size;
}

static bool pull_has(const char *directory, const char *name, const char *hash) {
    char path[PATH_MAX], found[65];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return pull_file_hash(path, found) && !strcmp(found, hash);
}

/* The pinned hash if the model's directory has the file as it is to be; else NULL. */
static const char *pull_present(const pull *p, const hub_file *f) {
    int64_t size;
    const char *hash = pull_pin_file(&p->old, f->name, &size);
    bool same = hash && (f->hash ? !strcmp(f->hash, hash) : pull_is_pinned_commit(p));
    if (!same || !pull_has_size(p->place.final, f->name, size)) return NULL;
    return p->s->check && !pull_has(p->place.final, f->name, hash) ? NULL : hash;
}

/* One file into the directory that is built, from where it is to be had. */
static int pull_one(pull *p, const hub_file *f) {
    char fetched[65];
    int64_t size;
    const char *hash = pull_present(p, f), *pinned = pull_pin_file(&p->old, f->name, &size);
    bool built = !hash && f->hash && pull_has_size(p->place.staging, f->name, f->size) &&
                 pull_has(p->place.staging, f->name, f->hash); /* by a call that was interrupted */
    if (built || (hash && pull_place_keep(&p->place, f->name))) {
        p->progress.done += (uint64_t)(f->size > 0 ? f->size : 0);
        pull_pin_add(&p->made, f->name, built ? f->size : size, built ? f->hash : hash);
        return EXIT_DONE;
    }
    uint64_t before = p->progress.done;
    int code =
        pull_file_get(&p->hub, f, p->listing.commit, p->place.staging, &p->progress, fetched);
    if (code) return code;
    if (pinned && pull_is_pinned_commit(p) && strcmp(pinned, fetched))
        return pull_fail_pin(p, f->name, "other bytes");
    p->fetched_files++;
    pull_pin_add(&p->made, f->name, (int64_t)(p->progress.done - before), fetched);
    return EXIT_DONE;
}

static bool pull_ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* The hash of the one file of a short name is known before the hub says it. */
static int pull_check_known(pull *p) {
    if (!*p->sha256) return EXIT_DONE;
    for (size_t i = 0; i < p->listing.count; i++) {
        hub_file *f = &p->listing.files[i];
        if (strcmp(f->name, p->listed) != 0) continue;
        if (f->hash && strcmp(f->hash, p->sha256) != 0)
            return fail(p->c,
                        "%s: %s: the hub has another file than the one Pith knows (SHA-256 "
                        "%.12s..., not %.12s...); nothing is fetched. 'pith pull %s@%s' fetches it "
                        "nevertheless",
                        p->typed, f->name, f->hash, p->sha256, p->typed, PULL_BRANCH);
        f->hash = p->sha256;
        return EXIT_DONE;
    }
    return fail(p->c, "%s: the hub does not list %s; nothing is fetched", p->typed, p->listed);
}

/* Chooses the files and adds up their sizes, which come from the hub and may be absurd. */
static int pull_choose_files(pull *p) {
    bool weights = false;
    size_t count = pull_choose(&p->listing, p->s->all, &p->s->files, *p->listed ? p->listed : NULL);
    if (!count)
        return fail(p->c,
                    "%s: none of its %zu files is one that is asked for; --all fetches them all",
                    p->name, p->listing.count);
    int code = pull_check_known(p);
    if (!code) code = pull_compare(p);
    for (size_t i = 0; i < p->listing.count; i++) {
        const hub_file *f = &p->listing.files[i];
        if (!f->wanted) continue;
        if (f->size > 0 &&
            __builtin_add_overflow(p->progress.total, (uint64_t)f->size, &p->progress.total))
            return fail(p->c, "%s: the sizes in the hub's list are absurd", p->name);
        weights |= pull_ends_in(f->name, ".onnx") || pull_ends_in(f->name, ".safetensors") ||
                   pull_ends_in(f->name, ".bin");
    }
    if (!code && !weights)
        note("warning: %s has no weights that Pith knows among the files that are fetched; --files "
             "names others",
             p->name);
    return code;
}

static bool pull_is_complete(const pull *p) {
    if (!p->old.json || !pull_is_pinned_commit(p)) return false;
    for (size_t i = 0; i < p->listing.count; i++)
        if (p->listing.files[i].wanted && !pull_present(p, &p->listing.files[i])) return false;
    return true;
}

static int pull_build(pull *p) {
    int code = pull_place_stage(&p->place, p->c, p->listing.commit);
    pull_pin_begin(&p->made, p->endpoint, p->hub.repository,
                   *p->revision ? p->revision : PULL_BRANCH, p->listing.commit);
    for (size_t i = 0; i < p->listing.count && !code; i++)
        if (p->listing.files[i].wanted) code = pull_one(p, &p->listing.files[i]);
    pull_progress_clear(&p->progress);
    if (!code) code = pull_pin_write(&p->made, p->c, p->place.staging);
    return code ? code : pull_place_finish(&p->place, p->c, &p->old);
}

/* A repository with a bare ONNX file does not say how its vectors of tokens are pooled; the list
 * may know. */
static void pull_warn_of_pooling(const pull *p) {
    known_model m;
    const char *at = NULL, *name = p->hub.repository;
    for (size_t i = 0; i < p->listing.count; i++)
        if (!strcmp(p->listing.files[i].name, "modules.json")) return;
    while (known_next(&m, &at)) {
        const char *pooling = m.field[KNOWN_POOLING];
        bool same = !strcasecmp(name, m.field[KNOWN_REPOSITORY]) ||
                    !strcasecmp(name, m.field[KNOWN_EXPORT]);
        if (!same || (strcmp(pooling, "cls") && strcmp(pooling, "last"))) continue;
        note("warning: the files do not say how vectors are pooled; by the list of models: "
             "--pooling %s",
             pooling);
        return;
    }
}

static int pull_report(const pull *p) {
    if (!p->s->json) {
        note("%s at commit %.12s: %zu files, %.1f MB fetched", p->hub.repository, p->listing.commit,
             p->fetched_files, (double)p->progress.fetched / 1e6);
        puts(p->place.final);
        return output_close_standard(p->c, EXIT_DONE);
    }
    json_print(json_pack("{s:s, s:s, s:s, s:o, s:I, s:I}", "name", p->typed, "repository",
                         p->hub.repository, "commit", p->listing.commit, "path",
                         json_text(p->place.final), "files_fetched", (json_int_t)p->fetched_files,
                         "bytes_fetched", (json_int_t)p->progress.fetched));
    return output_close_standard(p->c, EXIT_DONE);
}

/* With the lock held. */
static int pull_locked(pull *p) {
    struct stat st;
    int code = pull_pin_read(&p->old, p->c, p->place.final);
    if (code) return code;
    if (!p->old.json && !lstat(p->place.final, &st))
        return fail(
            p->c,
            "%s is there already and was not pulled; '-m %s' uses it, remove it to pull the model",
            p->place.final, p->name);
    if (p->old.json && strcasecmp(pull_pin_text(&p->old, "repository"), p->hub.repository))
        return fail(p->c, "%s is from the repository %s, not %s; remove it first", p->place.final,
                    pull_pin_text(&p->old, "repository"), p->hub.repository);
    const char *revision = *p->revision ? p->revision : PULL_BRANCH;
    bool pinned = p->old.json && !p->s->update &&
                  (!*p->revision || !strcmp(revision, pull_pin_text(&p->old, "revision")));
    code = pull_list(p, pinned ? pull_pin_text(&p->old, "commit") : revision);
    if (!code) code = pull_choose_files(p);
    if (!code && !pull_is_complete(p)) code = pull_build(p);
    if (!code) pull_warn_of_pooling(p);
    return code ? code : pull_report(p);
}

static int pull_fetch(pull *p) {
    p->hub = (hub){ .c = p->c,
                    .endpoint = p->endpoint,
                    .attempts = p->s->attempts ? p->s->attempts : 6 };
    p->hub.repository = p->repository;
    if (strcmp(p->repository, p->typed) != 0) note("%s is %s", p->typed, p->repository);
    int code = http_open(&p->hub.http, p->c, *p->token ? p->token : NULL,
                         p->s->timeout ? p->s->timeout : 60);
    if (!code) code = pull_place_open(&p->place, p->c, p->name);
    if (!code) code = pull_locked(p);
    pull_pin_free(&p->old);
    pull_pin_free(&p->made);
    hub_listing_free(&p->listing);
    pull_place_close(&p->place);
    http_close(&p->hub.http);
    return code;
}

static int pull_run(int argc, char **argv) {
    const command *c = &command_pull;
    pull_settings s = { .endpoint = NULL };
    string_list rest;
    pull *p = grow(NULL, sizeof *p);
    memset(p, 0, sizeof *p);
    p->c = c;
    p->s = &s;
    p->place.lock = -1;
    int code = take_options(c, &s, argc, argv, &rest);
    if (code < 0 && rest.count != 1) code = usage(c, "give the name of one model");
    if (code < 0 && s.all && s.files.count) code = usage(c, "--all and --files do not go together");
    if (code < 0) code = pull_take_name(p, rest.items[0]);
    p->progress.terminal = isatty(STDERR_FILENO) == 1;
    bool offline = s.offline || pull_is_true(getenv("HF_HUB_OFFLINE"));
    if (code < 0 && offline) code = pull_offline(p);
    if (code < 0) pull_resolve_name(p);
    if (code < 0) code = pull_find_local(p, !*p->revision && !s.update && !s.all && !s.files.count);
    if (code < 0) code = pull_take_endpoint(p);
    if (code < 0) code = pull_take_token(p);
    if (code < 0) code = pull_fetch(p);
    free(s.files.items);
    free(p);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, pull_settings, member)

static const option options[] = {
    AT(files, files),
    AT(all, all),
    AT(update, update),
    AT(check_pull, check),
    AT(offline, offline),
    AT(json, json),
    OPTION_SECTION("hub"),
    AT(endpoint, endpoint),
    AT(token_file, token_file),
    AT(timeout, timeout),
    AT(attempts, attempts),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith pull minilm", "then: pith embed -m minilm" },
    { "pith pull yunet", "faces, then: pith detect -m yunet photos/" },
    { "pith pull BAAI/bge-small-en-v1.5", "a repository of the hub" },
    { "pith pull multilingual-e5-small", "a name of 'pith models' without its organisation" },
    { "pith pull intfloat/e5-small-v2@main --update", "the newest commit" },
    { "pith pull thenlper/gte-small --files \"onnx/model.onnx\" --files \"*.json\"", NULL },
    { NULL, NULL },
};

const command command_pull = {
    .name = "pull",
    .summary = "fetch a model from a hub into the model cache",
    .forms = "[options] NAME[@REVISION]",
    .description = "Fetches the files that Pith reads and prints the model's directory. -m NAME "
                   "then finds the model. A model "
                   "that Hugging Face's tools have in their cache is used in place. An interrupted "
                   "pull continues where it "
                   "stopped.",
    .notes = "The commit and the SHA-256 of each file are pinned in .pith-pull.json at the first "
             "pull. Proxies are those of "
             "$https_proxy, $http_proxy and $no_proxy. Needs libcurl (package libcurl4).",
    .examples = examples,
    .options = options,
    .run = pull_run,
};
