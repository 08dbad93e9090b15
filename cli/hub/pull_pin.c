/* pull_pin.c - see pull_pin.h. */
#include "cli/hub/pull_pin.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/hub/hub_listing.h"
#include "cli/output/json_out.h"

static bool pull_pin_is_sound(const pull_pin *p) {
    const char *name;
    json_t *file;
    if (!json_is_object(p->files) || !hub_is_hex(pull_pin_text(p, "commit"), 40, 64)) return false;
    json_object_foreach(p->files, name, file) {
        if (!hub_name_is_safe(name) || !json_is_integer(json_object_get(file, "size")))
            return false;
        if (!hub_is_hex(json_string_value(json_object_get(file, "sha256")), 64, 64)) return false;
    }
    return true;
}

int pull_pin_read(pull_pin *p, const command *c, const char *directory) {
    char path[PATH_MAX];
    json_error_t error;
    *p = (pull_pin){ NULL, NULL };
    snprintf(path, sizeof path, "%s/" PULL_PIN_NAME, directory);
    FILE *file = fopen(path, "rb");
    if (!file)
        return errno == ENOENT || errno == ENOTDIR ? EXIT_DONE
                                                   : fail(c, "%s: %s", path, strerror(errno));
    p->json = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    p->files = json_object_get(p->json, "files");
    if (p->json && pull_pin_is_sound(p)) return EXIT_DONE;
    pull_pin_free(p);
    return fail(c, "%s: is damaged; remove the directory and pull the model again", path);
}

void pull_pin_begin(pull_pin *p, const char *endpoint, const char *repository, const char *revision,
                    const char *commit) {
    p->json = json_pack("{s:o, s:o, s:o, s:s, s:{}}", "endpoint", json_text(endpoint), "repository",
                        json_text(repository), "revision", json_text(revision), "commit", commit,
                        "files");
    if (!p->json) grow(NULL, SIZE_MAX); /* memory is out */
    p->files = json_object_get(p->json, "files");
}

void pull_pin_free(pull_pin *p) {
    json_decref(p->json);
    *p = (pull_pin){ NULL, NULL };
}

const char *pull_pin_text(const pull_pin *p, const char *key) {
    const char *text = json_string_value(json_object_get(p->json, key));
    return text ? text : "";
}

const char *pull_pin_file(const pull_pin *p, const char *name, int64_t *size) {
    const json_t *file = json_object_get(p->files, name);
    *size = json_integer_value(json_object_get(file, "size"));
    return json_string_value(json_object_get(file, "sha256"));
}

void pull_pin_add(pull_pin *p, const char *name, int64_t size, const char *hash) {
    json_t *file = json_pack("{s:I, s:s}", "size", (json_int_t)size, "sha256", hash);
    if (json_object_set_new(p->files, name, file)) grow(NULL, SIZE_MAX); /* memory is out */
}

int pull_pin_write(const pull_pin *p, const command *c, const char *directory) {
    char path[PATH_MAX], temporary[PATH_MAX];
    snprintf(path, sizeof path, "%s/" PULL_PIN_NAME, directory);
    snprintf(temporary, sizeof temporary, "%s/.pith-part", directory);
    FILE *file = fopen(temporary, "wb");
    bool good = file && !json_dumpf(p->json, file, JSON_INDENT(1) | JSON_PRESERVE_ORDER) &&
                fputc('\n', file) != EOF && !fflush(file) && !fsync(fileno(file));
    int error = errno;
    if (file && fclose(file) && good) good = false, error = errno;
    if (good && rename(temporary, path)) good = false, error = errno;
    return good ? EXIT_DONE : fail(c, "%s cannot be written: %s", path, strerror(error));
}
