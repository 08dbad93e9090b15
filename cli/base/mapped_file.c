/* mapped_file.c - see mapped_file.h. */
#include "cli/base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int mapped_file_open(mapped_file *m, const command *c, const char *path) {
    struct stat st;
    *m = (mapped_file){ .data = (const unsigned char *)"" };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        const int error = errno;
        if (fd >= 0) close(fd);
        return fail(c, "%s: %s", path, strerror(error));
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return fail(c, "%s is not a regular file, which it must be to be mapped", path);
    }
    if (st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        const int error = errno;
        if (map == MAP_FAILED) {
            close(fd);
            return fail(c, "%s cannot be mapped: %s", path, strerror(error));
        }
        *m = (mapped_file){ map, (size_t)st.st_size, map };
    }
    close(fd);
    return EXIT_DONE;
}

void mapped_file_close(mapped_file *m) {
    if (m->map) munmap(m->map, m->size);
    *m = (mapped_file){ .data = (const unsigned char *)"" };
}
