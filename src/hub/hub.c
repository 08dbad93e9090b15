/* hub.c - names of models to directories of the local cache.
 *
 * A cached model is the directory <cache>/models/<name> in Hugging Face layout. A name may contain one slash
 * ("organisation/model"). Nothing is downloaded, so a name that is in the cache works without a network. A file or
 * directory of the given name wins over the cache. */
#include "hub/hub.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

static pith_status hub_out_of_memory(pith_error *err) { return pith_fail_memory(err, 0); }

pith_status pith_hub_cache(pith_str *dir, pith_arena *arena, pith_error *err) {
    static const struct {
        const char *variable, *tail;
    } places[] = { { "PITH_CACHE", "" }, { "XDG_CACHE_HOME", "/pith" }, { "HOME", "/.cache/pith" } };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *base = getenv(places[i].variable);
        if (!base || !base[0]) continue;
        pith_str found = pith_arena_printf(arena, "%s%s", base, places[i].tail);
        if (!found.data) return hub_out_of_memory(err);
        *dir = found;
        return PITH_OK;
    }
    return pith_fail(
        err, PITH_ERR_NOT_FOUND,
        "there is no model cache, since PITH_CACHE, XDG_CACHE_HOME and HOME are all unset; set one of them");
}

pith_status pith_hub_find(pith_str *path, const char *name, pith_arena *arena, pith_error *err) {
    if (!name || !name[0]) return pith_fail(err, PITH_ERR_ARGUMENT, "the model's name is empty");
    if (pith_file_exists(name) || pith_dir_exists(name)) {
        *path = pith_arena_str(arena, pith_str_of(name));
        return path->data ? PITH_OK : hub_out_of_memory(err);
    }
    if (name[0] == '/' || name[0] == '.' || name[0] == '~')
        return pith_fail(err, PITH_ERR_NOT_FOUND, "no model at '%s': no such file or directory", name);

    pith_str cache, found;
    PITH_TRY(pith_hub_cache(&cache, arena, err));
    pith_str models = pith_arena_printf(arena, "%s/models", cache.data);
    if (!models.data) return hub_out_of_memory(err);
    pith_status status = pith_path_join(&found, arena, models.data, pith_str_of(name), err);
    if (status) return pith_fail_at(err, status, "model '%s': ", name);
    if (!pith_dir_exists(found.data) && !pith_file_exists(found.data))
        return pith_fail(err, PITH_ERR_NOT_FOUND,
                         "no model '%s': there is no file or directory of that name, and no %s in the model cache",
                         name, found.data);
    *path = found;
    return PITH_OK;
}
