/* Any bytes as a database file, with size and checksum made right: opened and used. */
#include "rdb_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    rdb_use(copy, size);
    free(copy);
    return 0;
}
