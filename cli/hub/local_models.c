/* local_models.c - see local_models.h. */
#include "cli/hub/local_models.h"

#include <dirent.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/hub/known_models.h"
#include "cli/hub/pull_pin.h"

static char *local_join(const char *folder, const char *gap, const char *name) {
    const size_t size = strlen(folder) + strlen(gap) + strlen(name) + 1;
    char *path = grow(NULL, size);
    snprintf(path, size, "%s%s%s", folder, gap, name);
    return path;
}

static bool local_is_dir(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void local_add(local_models *m, char *name, char *path, bool others) {
    m->items = grow_for(m->items, m->count, sizeof *m->items);
    m->items[m->count++] = (local_model){ name, path, others };
}

static const char *local_end(const char *name, const char *end) {
    const size_t n = strlen(name), k = strlen(end);
    return n > k && !strcasecmp(name + n - k, end) ? name + n - k : NULL;
}

static bool local_is_network(const char *name) {
    static const char *const ends[] = { ".onnx", ".safetensors", ".bin", ".pith",
                                        ".gguf", ".pt",          ".pth" };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (local_end(name, ends[i])) return true;
    return false;
}

/* What is in a folder: 1 if there is a file, 2 if one of them holds a network. */
static int local_holds(const char *folder) {
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int found = 0;
    while (dir && found < 2 && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        char *path = local_join(folder, "/", entry->d_name);
        if (!local_is_dir(path)) found = local_is_network(entry->d_name) ? 2 : 1;
        free(path);
    }
    if (dir) closedir(dir);
    return found;
}

bool local_has_weights(const char *path) {
    if (!local_is_dir(path)) return local_is_network(path);
    if (local_holds(path) == 2) return true;
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        char *folder = local_join(path, "/", entry->d_name);
        found = local_is_dir(folder) && local_holds(folder) == 2;
        free(folder);
    }
    if (dir) closedir(dir);
    return found;
}

/* The models of a folder. Of the cache itself (organisation NULL), a folder that holds nothing but
 * folders is an organisation. */
static void local_find_own(local_models *m, const char *folder, const char *organisation) {
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (name[0] == '.') continue;
        char *path = local_join(folder, "/", name);
        const bool is_dir = local_is_dir(path);
        if (!organisation && is_dir && !local_holds(path)) {
            local_find_own(m, path, name);
            free(path);
        } else if (is_dir || local_is_network(name)) {
            local_add(m,
                      local_join(organisation ? organisation : "", organisation ? "/" : "", name),
                      path, false);
        } else {
            free(path);
        }
    }
    if (dir) closedir(dir);
}

/* Directories models--organisation--name. */
static void local_find_others(local_models *m, const char *folder) {
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, "models--", 8) != 0 || !entry->d_name[8]) continue;
        char *path = local_join(folder, "/", entry->d_name), *name = strdup(entry->d_name + 8);
        char *gap = name ? strstr(name, "--") : NULL;
        if (gap) {
            *gap = '/';
            memmove(gap + 1, gap + 2, strlen(gap + 2) + 1);
        }
        if (name)
            local_add(m, name, path, true);
        else
            free(path);
    }
    if (dir) closedir(dir);
}

/* The folder of a cache, from malloc; NULL: no variable says where it is. */
static char *local_cache(bool others) {
    static const struct {
        bool others;
        const char *variable, *tail;
    } places[] = {
#define PLACE_own false
#define PLACE_others true
#define CACHE_PLACE(cache, variable, tail) { PLACE_##cache, variable, tail },
#include "models/hub/cache_places.def"
#undef CACHE_PLACE
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *base = getenv(places[i].variable);
        if (places[i].others == others && base && *base)
            return local_join(base, "", places[i].tail);
    }
    return NULL;
}

static int local_compare(const void *a, const void *b) {
    const local_model *x = a, *y = b;
    if (x->others != y->others) return x->others ? 1 : -1;
    return strcasecmp(x->name, y->name);
}

void local_models_find(local_models *m) {
    char *own = local_cache(false), *others = local_cache(true);
    *m = (local_models){ NULL, 0 };
    if (own) {
        char *models = local_join(own, "/", "models");
        local_find_own(m, models, NULL);
        free(models);
    }
    if (others) local_find_others(m, others);
    free(own);
    free(others);
    if (m->count) qsort(m->items, m->count, sizeof *m->items, local_compare);
}

void local_models_free(local_models *m) {
    for (size_t i = 0; i < m->count; i++) {
        free(m->items[i].name);
        free(m->items[i].path);
    }
    free(m->items);
    *m = (local_models){ NULL, 0 };
}

/* ---- what is known of one ---- */

/* The kind that the list of known models gives a name or a repository. */
static const char *local_kind_listed(const char *name) {
    static char kind[40];
    known_model known;
    const char *at = NULL;
    if (known_find(&known, name)) {
        snprintf(kind, sizeof kind, "%s", known.field[KNOWN_KIND]);
        return kind;
    }
    while (known_next(&known, &at))
        if (!strcasecmp(name, known.field[KNOWN_REPOSITORY])) {
            snprintf(kind, sizeof kind, "%s", known.field[KNOWN_KIND]);
            return kind;
        }
    return NULL;
}

/* By the class that config.json names. */
static const char *local_kind_of_class(const char *class) {
    static const struct {
        const char *part, *kind;
    } kinds[] = { { "ForSequenceClassification", "classify" },
                  { "ForMaskedLM", "sparse" },
                  { "HF_ColBERT", "multi-vector" },
                  { "CLIP", "image" },
                  { "Siglip", "image" },
                  { "ForImageClassification", "image" },
                  { "ViT", "image" } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(class, kinds[i].part)) return kinds[i].kind;
    return "dense";
}

static bool local_has(const char *folder, const char *name) {
    struct stat st;
    char *path = local_join(folder, "/", name);
    const bool there = !stat(path, &st);
    free(path);
    return there;
}

static const char *local_kind_of_files(const char *folder) {
    static const struct {
        const char *file, *kind;
    } kinds[] = { { "adapter_config.json", "adapter" },
                  { "modules.json", "dense" },
                  { "pnet.onnx", "faces" },
                  { "face_detection_yunet_2023mar.onnx", "faces" } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (local_has(folder, kinds[i].file)) return kinds[i].kind;
    char *path = local_join(folder, "/", "config.json");
    json_t *config = json_load_file(path, 0, NULL);
    const char *class =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    const char *kind = class ? local_kind_of_class(class) : NULL;
    json_decref(config);
    free(path);
    return kind;
}

/* The repository of the file that pull writes; from malloc, NULL: there is none. */
static char *local_repository(const char *folder) {
    char *path = local_join(folder, "/", PULL_PIN_NAME);
    json_t *pin = json_load_file(path, 0, NULL);
    const char *text = json_string_value(json_object_get(pin, "repository"));
    char *repository = text ? strdup(text) : NULL;
    json_decref(pin);
    free(path);
    return repository;
}

const char *local_model_kind(const local_model *m) {
    char folder[PATH_MAX];
    pith_error err = PITH_ERROR_INIT;
    if (local_end(m->path, ".pith")) return "compiled";
    const char *kind = local_kind_listed(m->name);
    if (kind) return kind;
    char *repository = local_repository(m->path);
    if (repository) kind = local_kind_listed(repository);
    free(repository);
    if (kind || pith_model_locate(folder, sizeof folder, m->path, &err)) return kind;
    return local_kind_of_files(folder);
}

static uint64_t local_bytes; /* of the walk that is under way */

static int local_count(const char *path, const struct stat *st, int type, struct FTW *place) {
    (void)path;
    (void)place;
    if (type == FTW_F && S_ISREG(st->st_mode)) local_bytes += (uint64_t)st->st_size;
    return 0;
}

uint64_t local_model_bytes(const char *path) {
    char *real = realpath(path, NULL);
    local_bytes = 0;
    if (real) nftw(real, local_count, 16, FTW_PHYS);
    free(real);
    return local_bytes;
}

time_t local_model_time(const local_model *m) {
    struct stat st;
    char *pin = local_join(m->path, "/", PULL_PIN_NAME);
    const bool there = !stat(pin, &st) || !stat(m->path, &st);
    free(pin);
    return there ? st.st_mtime : 0;
}
