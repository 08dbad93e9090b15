/* name_search.c - see name_search.h.
 *
 * Names are compared with those of all directories of the caches, which are few. A directory
 * without an organisation stands for "organisation/name" only if its .pith-pull.json says so, or,
 * if it has none, if model_names.def knows this full name: models of other organisations often
 * have the same rest of the name and other weights. */
#include "models/hub/name_search.h"

#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"

/* One text without pointers: "name\tfull\n" for each row. */
#define MODEL_NAME(name, full, file, sha256) name "\t" full "\n"
static const char name_table[] =
#include "models/hub/model_names.def"
    ;
#undef MODEL_NAME

/* How near a model's name is to the one that is asked for; the least is the best. */
typedef enum name_rank {
    NAME_SAME,    /* other capitals only */
    NAME_STANDS,  /* the full name that a short one stands for */
    NAME_PARTIAL, /* one of both has no organisation */
    NAME_OTHER
} name_rank;

typedef struct name_search {
    pith_str name, full; /* what is asked for; and with its organisation, if that is known */
    pith__arena *arena;
    name_rank rank;
    pith_str path, label;  /* the best model so far, and its name */
    pith_str second_label; /* another one that is as near; data is NULL if there is none */
} name_search;

static char name_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

static bool name_equal(pith_str a, pith_str b) {
    if (a.size != b.size || !a.size) return false;
    for (size_t i = 0; i < a.size; i++)
        if (name_lower(a.data[i]) != name_lower(b.data[i])) return false;
    return true;
}

static bool name_is_full(pith_str name) { return memchr(name.data, '/', name.size) != NULL; }

/* The full name of the table that a short name, or what follows the slash of one, stands for; or a
 * full name itself, if the table has it. data is NULL if it does not. */
static pith_str name_full(pith_str name) {
    for (int by_end = 0; by_end < 2; by_end++)
        for (const char *row = name_table; *row;) {
            const size_t n = strcspn(row, "\t"), m = strcspn(row + n + 1, "\n");
            const pith_str full = { row + n + 1, m };
            const pith_str known = by_end ? pith__path_name(full) : (pith_str){ row, n };
            if (name_equal(name, known) || (by_end && name_equal(name, full))) return full;
            row += n + m + 2;
        }
    return (pith_str){ NULL, 0 };
}

static void name_read_repository(pith_str *repository, pith_str text, const char *path,
                                 pith__arena *arena) {
    pith_error fault = PITH_ERROR_INIT;
    pith__json j;
    pith_str key;
    pith__json_init(&j, text, path, arena, &fault);
    pith__json_object(&j);
    while (pith__json_next_key(&j, &key))
        if (pith__str_is(key, "repository"))
            *repository = pith__arena_str(arena, pith__json_string(&j));
        else
            pith__json_skip(&j);
}

/* The repository that a directory was pulled from; data is NULL if it was not pulled. */
static pith_str name_repository(pith_str dir, pith__arena *arena) {
    pith_error fault = PITH_ERROR_INIT;
    pith_str path, repository = { NULL, 0 };
    pith__file file;
    bool there;
    if (pith__file_find(&there, &path, arena, dir.data, ".pith-pull.json", &fault) || !there)
        return repository;
    if (pith__file_open(&file, path.data, true, arena->allocator, &fault)) return repository;
    name_read_repository(&repository, (pith_str){ (const char *)file.data, file.size }, path.data,
                         arena);
    pith__file_close(&file);
    return repository;
}

/* Whether a directory without an organisation is the model of that full name. */
static bool name_is_pulled_from(pith_str dir, pith_str full, pith__arena *arena) {
    const pith_str repository = name_repository(dir, arena);
    if (repository.data) return name_equal(repository, full);
    const pith_str known = name_full(full);
    return known.data && name_equal(known, full);
}

static name_rank name_compare(const name_search *s, pith_str label, pith_str path) {
    if (name_equal(label, s->name)) return NAME_SAME;
    if (s->full.data && name_equal(label, s->full)) return NAME_STANDS;
    if (name_is_full(label)) {
        /* where the table knows the organisation, those of others are other models */
        const bool same = !s->full.data && name_equal(pith__path_name(label), s->name);
        return same ? NAME_PARTIAL : NAME_OTHER;
    }
    if (!s->full.data || !name_equal(label, pith__path_name(s->full))) return NAME_OTHER;
    return name_is_pulled_from(path, s->full, s->arena) ? NAME_PARTIAL : NAME_OTHER;
}

/* A model in the place that is looked at first is taken before one of the same name in another. */
static void name_offer(name_search *s, pith_str label, pith_str path) {
    const name_rank rank = name_compare(s, label, path);
    if (rank == NAME_OTHER || rank > s->rank) return;
    if (rank == s->rank) {
        if (!name_equal(label, s->label)) s->second_label = label;
        return;
    }
    s->rank = rank;
    s->path = path;
    s->label = label;
    s->second_label = (pith_str){ NULL, 0 };
}

/* A folder that holds nothing but folders is an organisation. */
static bool name_has_files(const char *dir, pith__arena *arena) {
    pith_error fault = PITH_ERROR_INIT;
    pith_str *names, path;
    size_t count;
    if (pith__dir_names(&names, &count, dir, arena, &fault)) return false;
    for (size_t i = 0; i < count; i++)
        if (!pith__path_join(&path, arena, dir, names[i], &fault) && pith__file_exists(path.data))
            return true;
    return false;
}

/* The models of an organisation's folder. */
static pith_status name_search_folder(name_search *s, const char *folder, pith_str organisation,
                                      pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    pith_str *names, path;
    size_t count;
    if (pith__dir_names(&names, &count, folder, s->arena, &fault)) return PITH_OK;
    for (size_t i = 0; i < count; i++) {
        pith_str label = pith__arena_printf(s->arena, PITH_STR_FMT "/" PITH_STR_FMT,
                                            PITH_STR_ALL(organisation), PITH_STR_ALL(names[i]));
        if (!label.data) return pith__fail_memory(err, names[i].size);
        PITH_TRY(pith__path_join(&path, s->arena, folder, names[i], err));
        if (pith__dir_exists(path.data)) name_offer(s, label, path);
    }
    return PITH_OK;
}

static pith_status name_search_models(name_search *s, const char *models, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    pith_str *names, path;
    size_t count;
    if (pith__dir_names(&names, &count, models, s->arena, &fault)) return PITH_OK;
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(pith__path_join(&path, s->arena, models, names[i], err));
        if (!pith__dir_exists(path.data) || name_has_files(path.data, s->arena))
            name_offer(s, names[i], path);
        else
            PITH_TRY(name_search_folder(s, path.data, names[i], err));
    }
    return PITH_OK;
}

/* Directories models--organisation--name, or models--name. */
static pith_status name_search_others(name_search *s, const char *others, pith_error *err) {
    static const pith_str begin = { "models--", 8 };
    pith_error fault = PITH_ERROR_INIT;
    pith_str *names, path;
    size_t count;
    if (pith__dir_names(&names, &count, others, s->arena, &fault)) return PITH_OK;
    for (size_t i = 0; i < count; i++) {
        if (names[i].size <= begin.size || memcmp(names[i].data, begin.data, begin.size)) continue;
        const char *rest = names[i].data + begin.size, *gap = strstr(rest, "--");
        pith_str label =
            gap ? pith__arena_printf(s->arena, "%.*s/%s", (int)(gap - rest), rest, gap + 2)
                : pith__arena_str(s->arena, pith__str_of(rest));
        if (!label.data) return pith__fail_memory(err, names[i].size);
        PITH_TRY(pith__path_join(&path, s->arena, others, names[i], err));
        name_offer(s, label, path);
    }
    return PITH_OK;
}

pith_status pith__name_search(pith_str *path, const char *name, const pith__model_places *places,
                              pith__arena *arena, pith_error *err) {
    name_search s = { .name = pith__str_of(name), .arena = arena, .rank = NAME_OTHER };
    const char *slash = strchr(name, '/');
    *path = (pith_str){ NULL, 0 };
    if (slash && strchr(slash + 1, '/')) return PITH_OK;
    s.full = slash ? s.name : name_full(s.name);
    PITH_TRY(name_search_models(&s, places->models, err));
    if (places->others) PITH_TRY(name_search_others(&s, places->others, err));
    if (s.second_label.data)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "'%s' is the name of more than one model: " PITH_STR_FMT
                          " and " PITH_STR_FMT "; give one of these names",
                          name, PITH_STR_ARG(s.label), PITH_STR_ARG(s.second_label));
    *path = s.path;
    return PITH_OK;
}
