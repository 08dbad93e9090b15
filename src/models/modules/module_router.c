/* module_router.c - Router (formerly Asym): lists of modules by route, of which a model takes one
 * when it is opened.
 *
 * The route is the one that was asked for, as task and for text, by the rules of
 * sentence-transformers: route_mappings, then the route of that name; without a name
 * route_mappings, the route "text", default_route, the first. Source: sentence-transformers 6,
 * modules/router.py, _resolve_route_name. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

/* A type by module id, an id in a route, or a route by mapping. */
typedef struct router_pair {
    pith_str key, value;
} router_pair;

typedef struct router_pairs {
    router_pair *at;
    size_t count, capacity;
} router_pairs;

/* More entries than this are no model; they are searched one by one. */
#define ROUTER_PAIRS_MAX 1024

typedef struct module_router {
    router_pairs types, structure, mappings; /* structure: (route, id) in order; (route, "") for one
                                                without modules */
    pith_str default_route;
    bool no_first; /* allow_empty_key is false: the first route is no default */
} module_router;

/* Both strings are copied, since the file is closed when it has been read. The number is bounded,
 * because each look-up goes through the list. */
static void router_add(pith__json *j, pith__module_reader *r, router_pairs *pairs, pith_str key,
                       pith_str value) {
    void *at = pairs->at;
    key = pith__json_copy(j, r->arena, key);
    value = pith__json_copy(j, r->arena, value);
    if (j->failed) return;
    if (pairs->count == ROUTER_PAIRS_MAX) {
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "more than %d entries", ROUTER_PAIRS_MAX);
        return;
    }
    if (!pith__arena_grow(r->arena, &at, pairs->count, &pairs->capacity, sizeof *pairs->at)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pairs->at = at;
    pairs->at[pairs->count++] = (router_pair){ key, value };
}

static void router_read_pairs(pith__json *j, pith__module_reader *r, router_pairs *pairs) {
    pith_str key;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) router_add(j, r, pairs, key, pith__json_string(j));
}

/* A route without a module is kept as an entry with an empty value, so the names of routes are
 * those entries. */
static void router_read_structure(pith__json *j, pith__module_reader *r, router_pairs *pairs) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        router_add(j, r, pairs, key, PITH_STR(""));
        pith__json_array(j);
        while (pith__json_next_item(j)) router_add(j, r, pairs, key, pith__json_string(j));
    }
}

/* The arguments of sentence-transformers' class Router. */
static void router_read_parameters(pith__json *j, pith__module_reader *r, module_router *m) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "default_route"))
            m->default_route = pith__json_null(j)
                                   ? (pith_str){ NULL, 0 }
                                   : pith__json_copy(j, r->arena, pith__json_string(j));
        else if (pith__str_is(key, "allow_empty_key"))
            m->no_first = !pith__json_bool(j);
        else if (pith__str_is(key, "route_mappings"))
            router_read_pairs(j, r, &m->mappings);
        else
            pith__json_skip(j);
    }
}

/* `types` maps the name of a module to its class, `structure` a route to the names of its modules.
 */
static void router_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_router *m = to;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "types"))
            router_read_pairs(j, r, &m->types);
        else if (pith__str_is(key, "structure"))
            router_read_structure(j, r, &m->structure);
        else if (pith__str_is(key, "parameters"))
            router_read_parameters(j, r, m);
        else
            pith__json_skip(j);
    }
}

static const pith_str *router_find(const router_pairs *pairs, pith_str key) {
    for (size_t i = 0; i < pairs->count; i++)
        if (pith__str_eq(pairs->at[i].key, key)) return &pairs->at[i].value;
    return NULL;
}

/* The mapping of task and "text", whose keys are Python tuples: "('query', None)". */
static pith_status router_mapped(const pith_str **route, pith__module_reader *r,
                                 const module_router *m, const char *task) {
    static const char *const tails[] = { ", 'text')", ", None)" };
    *route = NULL;
    for (int any = task ? 0 : 1; any < 2; any++)
        for (size_t i = 0; i < 2 && !*route; i++) {
            const char *quote = any ? "" : "'";
            pith_str key = pith__arena_printf(r->arena, "(%s%s%s%s", quote, any ? "None" : task,
                                              quote, tails[i]);
            if (!key.data) return pith__fail_memory(r->err, 64);
            *route = router_find(&m->mappings, key);
        }
    return PITH_OK;
}

/* The message lists the routes that there are. */
static pith_status router_fail(pith__module_reader *r, const module_router *m, const char *task) {
    pith_str known = PITH_STR("");
    for (size_t i = 0; i < m->structure.count; i++) {
        if (m->structure.at[i].value.size) continue;
        known = pith__arena_printf(r->arena, "%s%s" PITH_STR_FMT, known.data,
                                   known.size ? ", " : "", PITH_STR_ARG(m->structure.at[i].key));
        if (!known.data) return pith__fail_memory(r->err, 64);
    }
    if (task)
        return pith__fail(r->err, PITH_ERR_ARGUMENT, "there is no route '%s'; the model has: %s",
                          task, known.data);
    return pith__fail(r->err, PITH_ERR_ARGUMENT,
                      "the model has no default route; name one (pith_open_options.route): %s",
                      known.data);
}

/* *route: one that the structure has; data NULL: there is none by these rules. *wanted: what it
 * would be called. */
static pith_status router_choose(pith_str *route, pith_str *wanted, pith__module_reader *r,
                                 const module_router *m, const char *task) {
    const pith_str *mapped;
    const pith_str text = PITH_STR("text");
    PITH_TRY(router_mapped(&mapped, r, m, task));
    if (mapped)
        *wanted = *mapped;
    else if (task)
        *wanted = pith__str_of(task);
    else if (router_find(&m->structure, text))
        *wanted = text;
    else if (m->default_route.data)
        *wanted = m->default_route;
    else if (m->structure.count && !m->no_first)
        *wanted = m->structure.at[0].key;
    else
        *wanted = PITH_STR("");
    *route = router_find(&m->structure, *wanted) ? *wanted : (pith_str){ NULL, 0 };
    return PITH_OK;
}

/* A name that leads nowhere, such as a task that no mapping has, is passed over. */
static pith_status router_add_name(pith__route_name *names, size_t *count, pith__module_reader *r,
                                   const module_router *m, pith_str name) {
    pith_str route, wanted;
    name = pith__arena_str(r->arena, name);
    if (!name.data) return pith__fail_memory(r->err, name.size);
    for (size_t i = 0; i < *count; i++)
        if (pith__str_eq(names[i].name, name)) return PITH_OK;
    PITH_TRY(router_choose(&route, &wanted, r, m, name.data));
    if (route.data) names[(*count)++] = (pith__route_name){ name, route };
    return PITH_OK;
}

/* The names that lead to a route: those of the structure, and the tasks of route_mappings,
 * "('query', None)". */
static pith_status router_list_names(pith__module_reader *r, const module_router *m) {
    pith__route_name *names =
        pith__arena_array(r->arena, m->structure.count + m->mappings.count, sizeof *names);
    size_t count = 0;
    if (!names) return pith__fail_memory(r->err, m->structure.count);
    for (size_t i = 0; i < m->structure.count; i++)
        if (!m->structure.at[i].value.size)
            PITH_TRY(router_add_name(names, &count, r, m, m->structure.at[i].key));
    for (size_t i = 0; i < m->mappings.count; i++) {
        const pith_str key = m->mappings.at[i].key;
        const char *end =
            key.size > 2 && key.data[1] == '\'' ? memchr(key.data + 2, '\'', key.size - 2) : NULL;
        if (end)
            PITH_TRY(router_add_name(names, &count, r, m,
                                     (pith_str){ key.data + 2, (size_t)(end - key.data) - 2 }));
    }
    r->modules->routes = names;
    r->modules->route_count = count;
    return PITH_OK;
}

/* Modules of a route lie in folders below that of the Router, named by their ids. */
static pith_status router_read_module(pith__module_reader *r, const module_router *m,
                                      pith_str folder, pith_str id) {
    const pith_str *type = router_find(&m->types, id);
    pith_str path = pith__module_path(r, folder, id.data);
    if (!path.data) return pith__fail_memory(r->err, id.size);
    if (!type)
        return pith__fail(r->err, PITH_ERR_FORMAT,
                          "the structure names the module '" PITH_STR_FMT "', which has no type",
                          PITH_STR_ARG(id));
    return pith__module_read(r, *type, path);
}

/* Only the modules of one route are read: the others may have large weights, or be of kinds that
 * are not supported. Source: class Router of sentence-transformers. */
static pith_status router_read(pith__module_reader *r, pith_str folder) {
    module_router m = { .no_first = false };
    pith_str route, wanted;
    bool there;
    if (r->routed)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "a Router within a Router is not supported");
    r->routed = true;
    PITH_TRY(pith__module_json(&there, r, folder, "router_config.json", router_read_config, &m));
    const char *file = there ? "router_config.json" : "config.json";
    if (!there) PITH_TRY(pith__module_json(NULL, r, folder, "config.json", router_read_config, &m));
    const pith__module_keys keys = {
        .file = file,
        .reads = "types structure parameters.default_route parameters.allow_empty_key "
                 "parameters.route_mappings",
        .sections = "parameters."
    };
    PITH_TRY(pith__module_keys_check(r, folder, &keys));
    PITH_TRY(router_choose(&route, &wanted, r, &m, r->source->route));
    if (!route.data) return router_fail(r, &m, wanted.size ? wanted.data : NULL);
    PITH_TRY(router_list_names(r, &m));
    r->modules->route = pith__arena_str(r->arena, route);
    if (!r->modules->route.data) return pith__fail_memory(r->err, route.size);
    PITH_TRY(pith__module_decide(r, "route", folder, file, PITH_STR_FMT, PITH_STR_ARG(route)));
    for (size_t i = 0; i < m.structure.count; i++)
        if (pith__str_eq(m.structure.at[i].key, route) && m.structure.at[i].value.size)
            PITH_TRY(router_read_module(r, &m, folder, m.structure.at[i].value));
    r->routed = false;
    return PITH_OK;
}

const pith__module_class pith__module_class_asym = { .name = "Asym", .read = router_read };
const pith__module_class pith__module_class_router = { .name = "Router", .read = router_read };
