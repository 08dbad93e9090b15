/* hub.c - names of models to directories of the local cache.
 *
 * A cached model is the directory <cache>/models/<name> in Hugging Face layout. A name may contain
 * one slash ("organisation/model"). Models of the Hugging Face cache are found by the same names
 * and used in place. A directory of that cache stands for its snapshot. Nothing is downloaded, so a
 * name that is in a cache works without a network. A file or directory of the given name is used
 * before one of the caches, and the exact name before one in other capitals, with or without its
 * organisation, or a short one (name_search.h). */
#include "models/hub/hub.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/str.h"
#include "models/hub/name_search.h"

static pith_status hub_out_of_memory(pith_error *err) { return pith__fail_memory(err, 0); }

enum { HUB_own = false, HUB_others = true };

typedef struct hub_place {
    bool others;
    const char *variable, *tail;
} hub_place;

static const hub_place hub_places[] = {
#define CACHE_PLACE(cache, variable, tail) { HUB_##cache, variable, tail },
#include "models/hub/cache_places.def"
#undef CACHE_PLACE
};

/* The folder of one of both caches; data is NULL if no variable says where it is. */
static pith_status hub_folder(pith_str *dir, bool others, pith__arena *arena, pith_error *err) {
    *dir = (pith_str){ NULL, 0 };
    for (size_t i = 0; i < sizeof hub_places / sizeof hub_places[0]; i++) {
        const char *base = getenv(hub_places[i].variable);
        if (hub_places[i].others != others || !base || !base[0]) continue;
        *dir = pith__arena_printf(arena, "%s%s", base, hub_places[i].tail);
        return dir->data ? PITH_OK : hub_out_of_memory(err);
    }
    return PITH_OK;
}

pith_status pith__hub_cache(pith_str *dir, pith__arena *arena, pith_error *err) {
    PITH_TRY(hub_folder(dir, HUB_own, arena, err));
    if (dir->data) return PITH_OK;
    return pith__fail(err, PITH_ERR_NOT_FOUND,
                      "there is no model cache, since PITH_CACHE, XDG_CACHE_HOME and HOME are all "
                      "unset; set one of them");
}

/* The name in refs/main; data is NULL if there is none. */
static pith_status hub_main(pith_str *revision, const char *dir, pith__arena *arena,
                            pith_error *err) {
    pith_str path;
    pith__file file;
    bool there;
    *revision = (pith_str){ NULL, 0 };
    PITH_TRY(pith__file_find(&there, &path, arena, dir, "refs/main", err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__file_open(&file, path.data, true, arena->allocator, err));
    size_t n = 0;
    while (n < file.size && n < 256 && file.data[n] > ' ') n++;
    *revision = pith__arena_str(arena, (pith_str){ (const char *)file.data, n });
    pith__file_close(&file);
    return revision->data ? PITH_OK : hub_out_of_memory(err);
}

/* A directory of the Hugging Face cache, models--organisation--name, becomes the snapshot that
 * refs/main names, or its only one. */
static pith_status hub_snapshot(pith_str *path, pith__arena *arena, pith_error *err) {
    pith_str snapshots, revision, *names;
    size_t count;
    while (path->size > 1 && path->data[path->size - 1] == '/') path->size--;
    pith_str name = pith__path_name(*path);
    if (name.size < 8 || memcmp(name.data, "models--", 8)) return PITH_OK;
    PITH_TRY(pith__path_join(&snapshots, arena, path->data, PITH_STR("snapshots"), err));
    if (!pith__dir_exists(snapshots.data)) return PITH_OK;
    PITH_TRY(hub_main(&revision, path->data, arena, err));
    if (!revision.data) {
        PITH_TRY(pith__dir_names(&names, &count, snapshots.data, arena, err));
        if (count != 1)
            return pith__fail(err, PITH_ERR_NOT_FOUND, "%s: %s; give the directory of one of them",
                              snapshots.data,
                              count ? "there are several snapshots and no refs/main"
                                    : "there is no snapshot");
        revision = names[0];
    }
    PITH_TRY(pith__path_join(path, arena, snapshots.data, revision, err));
    if (pith__dir_exists(path->data)) return PITH_OK;
    return pith__fail(err, PITH_ERR_NOT_FOUND,
                      "%s: refs/main names this snapshot, but it is not there; fetch the model",
                      path->data);
}

/* The directory models--organisation--name of a model in that cache, if it is there. */
static pith_status hub_other(bool *there, pith_str *path, const char *name, pith__arena *arena,
                             pith_error *err) {
    const char *slash = strchr(name, '/');
    pith_str cache, found;
    *there = false;
    PITH_TRY(hub_folder(&cache, HUB_others, arena, err));
    if (!cache.data || (slash && strchr(slash + 1, '/'))) return PITH_OK;
    if (slash)
        found = pith__arena_printf(arena, "%s/models--%.*s--%s", cache.data, (int)(slash - name),
                                   name, slash + 1);
    else
        found = pith__arena_printf(arena, "%s/models--%s", cache.data, name);
    if (!found.data) return hub_out_of_memory(err);
    if (!pith__dir_exists(found.data)) return PITH_OK;
    *path = found;
    *there = true;
    return PITH_OK;
}

static pith_status hub_look_up(pith_str *path, const char *name, pith__arena *arena,
                               pith_error *err) {
    if (!name || !name[0]) return pith__fail(err, PITH_ERR_ARGUMENT, "the model's name is empty");
    if (pith__file_exists(name) || pith__dir_exists(name)) {
        *path = pith__arena_str(arena, pith__str_of(name));
        return path->data ? PITH_OK : hub_out_of_memory(err);
    }
    if (name[0] == '/' || name[0] == '.' || name[0] == '~')
        return pith__fail(err, PITH_ERR_NOT_FOUND, "no model at '%s': no such file or directory",
                          name);

    pith_str cache, found;
    PITH_TRY(pith__hub_cache(&cache, arena, err));
    pith_str models = pith__arena_printf(arena, "%s/models", cache.data);
    if (!models.data) return hub_out_of_memory(err);
    pith_status status = pith__path_join(&found, arena, models.data, pith__str_of(name), err);
    if (status) return pith__fail_at(err, status, "model '%s': ", name);
    bool there = pith__dir_exists(found.data) || pith__file_exists(found.data);
    if (!there) PITH_TRY(hub_other(&there, &found, name, arena, err));
    if (there) return *path = found, PITH_OK;
    pith_str others, near;
    PITH_TRY(hub_folder(&others, HUB_others, arena, err));
    PITH_TRY(pith__name_search(&near, name, &(pith__model_places){ models.data, others.data },
                               arena, err));
    if (!near.data)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "no model '%s': there is no file or directory of that name, and no %s in "
                          "the model cache",
                          name, found.data);
    *path = near;
    return PITH_OK;
}

pith_status pith__hub_find(pith_str *path, const char *name, pith__arena *arena, pith_error *err) {
    PITH_TRY(hub_look_up(path, name, arena, err));
    return hub_snapshot(path, arena, err);
}

pith_status pith__hub_path(char *path, size_t size, const char *name, pith_error *err) {
    pith__arena arena;
    pith_str found;
    pith__arena_init(&arena, NULL);
    pith_status status =
        name ? pith__hub_find(&found, name, &arena, err) : pith__hub_cache(&found, &arena, err);
    if (!status && found.size >= size)
        status = pith__fail(err, PITH_ERR_ARGUMENT, "%s: a path of %zu bytes does not fit %zu",
                            found.data, found.size, size);
    if (!status) memcpy(path, found.data, found.size + 1);
    pith__arena_free(&arena);
    return status;
}
