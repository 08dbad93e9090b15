/* module_keys.c - every key of the files of modules is one that is read, one that cannot change a
 * vector, or one that nobody knows, which is said aloud; as hf_keys.c does for config.json of a
 * network. */
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "models/architectures/hf_keys.h"
#include "models/modules/module_class.h"

typedef struct module_keys_check {
    const pith__module_keys *keys;
    pith_str file;       /* relative to the directory */
    const char *section; /* before the names of keys: "parameters."; "": of the file itself */
    bool again;          /* an item of a list behind the first, whose keys are noted already */
    pith__hf_key_list read, ignored, unknown;
    pith_status status;
} module_keys_check;

static void module_keys_note(module_keys_check *c, pith__hf_key_list *list, pith_str key,
                             pith__module_reader *r) {
    if (!c->status) c->status = pith__hf_key_list_add(list, c->section, key, r->arena, r->err);
}

static void module_keys_object(pith__json *j, pith__module_reader *r, module_keys_check *c);

/* "parameters.default_route" in the list: an object whose keys are checked too. */
static bool module_keys_section(pith__json *j, pith__module_reader *r, module_keys_check *c,
                                pith_str key) {
    const char *before = c->section;
    pith_str value,
        section = pith__arena_printf(r->arena, "%s" PITH_STR_FMT ".", before, PITH_STR_ALL(key));
    if (pith__json_peek(j) != PITH_JSON_OBJECT ||
        !pith__hf_keys_find(&value, c->keys->sections, section))
        return false;
    c->section = section.data;
    module_keys_object(j, r, c);
    c->section = before;
    return true;
}

static void module_keys_object(pith__json *j, pith__module_reader *r, module_keys_check *c) {
    pith_str key, value;
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        const pith_str name =
            pith__arena_printf(r->arena, "%s" PITH_STR_FMT, c->section, PITH_STR_ALL(key));
        if (!name.data) {
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
            return;
        }
        if (!c->section[0] && module_keys_section(j, r, c, key)) continue;
        pith__json_skip(j);
        const bool read = pith__hf_keys_find(&value, c->keys->reads, name);
        if (read || pith__hf_keys_find(&value, c->keys->ignores, name)) {
            if (!c->again) module_keys_note(c, read ? &c->read : &c->ignored, key, r);
            continue;
        }
        module_keys_note(c, &c->unknown, key, r);
        pith__log_write(r->source->log, PITH_LOG_WARNING,
                        PITH_STR_FMT ": '" PITH_STR_FMT
                                     "' is not known and is ignored; if it changes what the model "
                                     "computes, results differ from those of sentence-transformers",
                        PITH_STR_ARG(c->file), PITH_STR_ARG(name));
    }
}

static void module_keys_read(pith__json *j, pith__module_reader *r, void *to) {
    module_keys_check *c = to;
    if (pith__json_peek(j) != PITH_JSON_ARRAY) {
        module_keys_object(j, r, c);
        return;
    }
    for (pith__json_array(j); pith__json_next_item(j); c->again = true) module_keys_object(j, r, c);
}

pith_status pith__module_keys_check(pith__module_reader *r, pith_str folder,
                                    const pith__module_keys *keys) {
    module_keys_check c = { .keys = keys,
                            .file = pith__module_path(r, folder, keys->file),
                            .section = "" };
    bool there;
    if (!c.file.data) return pith__fail_memory(r->err, folder.size);
    PITH_TRY(pith__module_json(&there, r, folder, keys->file, module_keys_read, &c));
    if (c.status) return c.status;
    const struct {
        const char *what;
        const pith__hf_key_list *list;
    } lines[] = { { "module settings read", &c.read },
                  { "module settings ignored", &c.ignored },
                  { "module settings not known", &c.unknown } };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (lines[i].list->size)
            PITH_TRY(pith__modules_note(r->modules, lines[i].what,
                                        (pith_str){ lines[i].list->text, lines[i].list->size },
                                        c.file, r->arena, r->err));
    return PITH_OK;
}
