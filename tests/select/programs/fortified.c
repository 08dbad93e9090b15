/* fortified.c - what Debian's static library of PCRE2 refers to and musl does not have. */
#include <stdlib.h>
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room);
void *__memcpy_chk(void *to, const void *from, size_t size, size_t room) {
    if (size > room) abort();
    return memcpy(to, from, size);
}
