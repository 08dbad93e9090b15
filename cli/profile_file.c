/* profile_file.c - --profile FILE. */
#include "cli/profile_file.h"

#include "cli/output.h"

int profile_open(pith_profile **profile, const command *c, const char *path) {
    pith_error err = PITH_ERROR_INIT;
    *profile = NULL;
    if (!path) return EXIT_DONE;
    return pith_profile_create(profile, NULL, &err) ? fail(c, "%s", err.message) : EXIT_DONE;
}

static void write_text(void *out, const char *text, size_t size) { output_write(out, text, size); }

int profile_close(pith_profile *profile, const command *c, const char *path, int code) {
    pith_error err = PITH_ERROR_INIT;
    output out;
    if (!profile) return code;
    int opened = output_open(&out, c, path, NULL);
    if (!opened) {
        pith_status status = pith_profile_write(profile, write_text, &out, &err);
        if (status) code = fail(c, "%s", err.message);
        code = output_close(&out, c, !status, code);
    }
    pith_profile_destroy(profile);
    return opened ? opened : code;
}
