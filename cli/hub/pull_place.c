/* pull_place.c - see pull_place.h. */
#include "cli/hub/pull_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/message.h"
#include "cli/hub/pull_file.h"

static int place_lock(pull_place *p, const command *c) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.%s.lock", p->folder, p->base);
    p->lock = pull_make_folders(path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (p->lock < 0)
        return fail(c, "%s cannot be written: %s; PITH_CACHE names another place", path,
                    strerror(errno));
    if (!flock(p->lock, LOCK_EX | LOCK_NB)) return EXIT_DONE;
    if (errno == EWOULDBLOCK) fprintf(stderr, "another process pulls this model; waiting for it\n");
    while (flock(p->lock, LOCK_EX))
        if (errno != EINTR) return fail(c, "%s: %s", path, strerror(errno));
    return EXIT_DONE;
}

int pull_place_open(pull_place *p, const command *c, const char *name) {
    char cache[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    p->lock = -1;
    if (pith_model_locate(cache, sizeof cache, NULL, &err)) return fail(c, "%s", err.message);
    const char *slash = strrchr(name, '/');
    size_t above = slash ? (size_t)(slash - name) : 0;
    int n = snprintf(p->folder, sizeof p->folder, "%s/models%s%.*s", cache, slash ? "/" : "",
                     (int)above, name);
    if (n < 0 || (size_t)n >= sizeof p->folder)
        return fail(c, "%s: the path of the model cache is too long", cache);
    snprintf(p->base, sizeof p->base, "%s", slash ? slash + 1 : name);
    snprintf(p->final, sizeof p->final, "%s/%s", p->folder, p->base);
    return place_lock(p, c);
}

void pull_place_close(pull_place *p) {
    if (p->lock >= 0) close(p->lock);
    p->lock = -1;
}

int pull_place_stage(pull_place *p, const command *c, const char *commit) {
    snprintf(p->staging, sizeof p->staging, "%s/.%s.%.12s.pulling", p->folder, p->base, commit);
    if (!mkdir(p->staging, 0777) || errno == EEXIST) return EXIT_DONE;
    return fail(c, "%s cannot be made: %s", p->staging, strerror(errno));
}

bool pull_place_keep(const pull_place *p, const char *name) {
    char from[PATH_MAX], to[PATH_MAX];
    snprintf(from, sizeof from, "%s/%s", p->final, name);
    snprintf(to, sizeof to, "%s/%s", p->staging, name);
    unlink(to);
    return pull_make_folders(to) && !link(from, to);
}

/* Removes the files of the model that was there, and folders that are empty then. */
static bool place_remove(const char *directory, const pull_pin *pin) {
    char path[PATH_MAX];
    const char *name;
    json_t *file;
    json_object_foreach(pin->files, name, file) {
        snprintf(path, sizeof path, "%s/%s", directory, name);
        unlink(path);
        for (char *slash;
             (slash = strrchr(path, '/')) > path + strlen(directory) && !rmdir((*slash = 0, path));)
            continue;
    }
    snprintf(path, sizeof path, "%s/" PULL_PIN_NAME, directory);
    unlink(path);
    return !rmdir(directory);
}

int pull_place_finish(const pull_place *p, const command *c, const pull_pin *old) {
    int code;
    if (!old->json)
        code = rename(p->staging, p->final);
    else
        code = renameat2(AT_FDCWD, p->staging, AT_FDCWD, p->final, RENAME_EXCHANGE);
    if (code) return fail(c, "%s cannot become %s: %s", p->staging, p->final, strerror(errno));
    int fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* the name too is to outlast a loss of power */
        close(fd);
    }
    if (!old->json || place_remove(p->staging, old)) return EXIT_DONE;
    note("warning: %s has files that are not of the model; it stays", p->staging);
    return EXIT_DONE;
}
