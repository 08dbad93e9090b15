/* hub_listing.c - see hub_listing.h. */
#include "base/str.h"
#include "base/text_out.h"
#include "cli/hub/hub_listing.h"

#include <stdlib.h>
#include <string.h>

enum { HUB_NAME_BYTES = 512, HUB_PART_BYTES = 200 };

bool hub_is_hex(const char *text, size_t shortest, size_t longest) {
    size_t n = text ? strspn(text, "0123456789abcdef") : 0;
    return text && !text[n] && n >= shortest && n <= longest;
}

bool hub_name_is_safe(const char *name) {
    /* our own files */
    if (strlen(name) > HUB_NAME_BYTES || !strncmp(name, ".pith-", 6)) return false;
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '\\') return false;
    for (const char *part = name;;) {
        size_t n = strcspn(part, "/");
        bool dots = (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.');
        if (!n || n > HUB_PART_BYTES || dots) return false;
        if (!part[n]) return true;
        part += n + 1;
    }
}

/* One entry of the list. Size and SHA-256 of a file in large file storage are those under "lfs". */
static int hub_take_file(hub_listing *l, const command *c, const char *what, const json_t *item) {
    hub_file *f = &l->files[l->count];
    const json_t *size = json_object_get(item, "size"), *large = json_object_get(item, "lfs");
    f->name = json_string_value(json_object_get(item, "rfilename"));
    if (!f->name) return fail(c, "%s: the hub's list has a file without a name", what);
    if (!hub_name_is_safe(f->name))
        return fail(c,
                    "%s: the hub lists '" PITH_CUT_FMT
                    "', which is no name below the model's directory; nothing is fetched",
                    what, PITH_CUT(pith__str_of(f->name), 100));
    if (json_object_get(large, "size")) size = json_object_get(large, "size");
    f->size = json_is_integer(size) ? json_integer_value(size) : -1;
    if ((size && !json_is_integer(size) && !json_is_null(size)) || f->size < -1)
        return fail(c, "%s: the hub's list has no number as the size of %s", what, f->name);
    f->hash = json_string_value(json_object_get(large, "sha256"));
    if (!f->hash) f->hash = json_string_value(json_object_get(large, "oid"));
    if (json_is_object(large) && !hub_is_hex(f->hash, 64, 64))
        return fail(c, "%s: the hub's list has no SHA-256 for %s, which is in large file storage",
                    what, f->name);
    l->count++;
    return EXIT_DONE;
}

static int hub_by_name(const void *a, const void *b) {
    return strcmp(((const hub_file *)a)->name, ((const hub_file *)b)->name);
}

/* The list is sorted, so that a name that is listed twice is found, and so that every pull takes
 * the files in the same order. */
int hub_listing_read(hub_listing *l, const command *c, const char *what, const char *text,
                     size_t size) {
    json_error_t error;
    size_t i;
    json_t *item;
    *l = (hub_listing){ .json = json_loadb(text ? text : "", size, 0, &error) };
    if (!l->json) return fail(c, "%s: the hub's list of files is no JSON: %s", what, error.text);
    const char *commit = json_string_value(json_object_get(l->json, "sha"));
    const json_t *files = json_object_get(l->json, "siblings");
    if (!hub_is_hex(commit, 40, 64) || !json_is_array(files))
        return fail(
            c,
            "%s: the hub's answer has no commit (sha) or no files (siblings); is --endpoint a hub?",
            what);
    if (json_array_size(files) > HUB_FILES)
        return fail(c, "%s: the hub lists %zu files; %d are allowed", what, json_array_size(files),
                    HUB_FILES);
    strcpy(l->commit, commit);
    l->files = grow(NULL, (json_array_size(files) + 1) * sizeof *l->files);
    memset(l->files, 0, (json_array_size(files) + 1) * sizeof *l->files);
    json_array_foreach(files, i, item) {
        int code = hub_take_file(l, c, what, item);
        if (code) return code;
    }
    qsort(l->files, l->count, sizeof *l->files, hub_by_name);
    for (i = 1; i < l->count; i++)
        if (!strcmp(l->files[i - 1].name, l->files[i].name))
            return fail(c, "%s: the hub lists %s twice", what, l->files[i].name);
    return EXIT_DONE;
}

void hub_listing_free(hub_listing *l) {
    json_decref(l->json);
    free(l->files);
    *l = (hub_listing){ .files = NULL };
}
