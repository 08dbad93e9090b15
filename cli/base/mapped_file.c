/* mapped_file.c - see mapped_file.h. */
#include "cli/base/mapped_file.h"

#include <sys/stat.h>

int map_file(pith__file *file, const command *c, const char *path) {
    struct stat st;
    pith_error err = PITH_ERROR_INIT;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return fail(c, "%s is not a regular file, which it must be to be mapped", path);
    return pith__file_open(file, path, false, NULL, &err) ? fail(c, "%s", err.message) : EXIT_DONE;
}
