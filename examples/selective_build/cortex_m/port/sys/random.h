/* random.h - Pith asks for random bytes so that nobody can write a file whose names collide
 * in its tables. The files of this program are its own, so any bytes do. */
#include <string.h>
#include <sys/types.h>

#define GRND_NONBLOCK 0

static inline ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
    (void)flags;
    memset(bytes, 0x5a, size);
    return (ssize_t)size;
}
