/* profile_file.c - the option --profile FILE. */
#include "cli/output/profile_file.h"

#include "cli/output/output.h"

/* A command has one profile. Its file is opened first, so that a wrong name costs no work. */
static output file;

int profile_open(pith_profile **profile, const command *c, const char *path,
                 const string_list *inputs) {
    pith_error err = PITH_ERROR_INIT;
    *profile = NULL;
    if (!path) return EXIT_DONE;
    int code = output_open(&file, c, path, inputs);
    if (!code && pith_profile_create(profile, NULL, &err))
        code = output_close(&file, c, false, fail(c, "%s", err.message));
    return code;
}

int profile_close(pith_profile *profile, const command *c, int code) {
    pith_error err = PITH_ERROR_INIT;
    if (!profile) return code;
    const pith_writer writer = output_writer(&file);
    pith_status status = pith_profile_write(profile, NULL, &writer, &err);
    if (status && !file.error) code = fail(c, "%s", err.message); /* else output_close tells */
    pith_profile_destroy(profile);
    return output_close(&file, c, !status, code);
}
