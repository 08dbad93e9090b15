/* Any bytes as the file of a search index, with the hashes of header and settings made right: it is
 * opened, searched, changed and saved again: an error or a result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "pith/search.h"

enum { HEADER = 48, ENTRY = 32, SECTIONS_MAX = 1024, DIM_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_u64(uint8_t *p, uint64_t x) {
    for (int i = 0; i < 8; i++, x >>= 8) p[i] = (uint8_t)x;
}

static uint64_t get(const uint8_t *p, int bytes) {
    uint64_t x = 0;
    while (bytes-- > 0) x = x << 8 | p[bytes];
    return x;
}

/* The settings are the first section of what is saved. */
static void put_header_right(uint8_t *file, size_t size) {
    if (size < HEADER + ENTRY) return;
    const uint64_t sections = get(file + 12, 4);
    if (sections > SECTIONS_MAX || size < HEADER + sections * ENTRY) return;
    const size_t end = HEADER + (size_t)sections * ENTRY;
    const uint64_t at = get(file + HEADER + 8, 8), bytes = get(file + HEADER + 16, 8);
    if (at <= size && bytes <= size - at)
        put_u64(file + HEADER + 24, pith__hash_of(file + at, (size_t)bytes));
    put_u64(file + 16, size);
    put_u64(file + 24, pith__hash_of(file + 32, end - 32));
}

static int32_t drop(void *user, const void *data, size_t size) {
    uint64_t *sum = user;
    *sum += pith__hash_of(data, size);
    return 0;
}

static void use(pith_search_index *index) {
    static float queries[2 * DIM_MAX];
    pith_error err = PITH_ERROR_INIT;
    pith_hit hits[2 * 6];
    uint64_t sum = 0;
    const pith_writer writer = { .write = drop, .user = &sum };
    pith_search_options o = PITH_SEARCH_OPTIONS_INIT;
    o.call.threads = 1;
    if (pith_search_index_dim(index) > DIM_MAX) return;
    for (int i = 0; i < 2 * DIM_MAX; i++) queries[i] = (float)(i % 7) - 3;
    for (o.rescore = 0; o.rescore < 2; o.rescore++)
        if (pith_search(hits, index, queries, 2, 6, &o, &err) && !err.message[0]) abort();
    if (pith_search_index_save(index, NULL, &writer, &err) && !err.message[0]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static float rows[2 * DIM_MAX];
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    void *copy; /* of just this size: reading past the end shows under the address sanitizer */
    if (posix_memalign(&copy, 64, size ? size : 1)) return 0;
    if (size) memcpy(copy, data, size);
    put_header_right(copy, size);
    if (!pith_search_index_open_memory(&index, copy, size, 0, NULL, &err)) {
        const int64_t ids[] = { 1, 7000 };
        use(index);
        if (pith_search_index_dim(index) <= DIM_MAX &&
            !pith_search_index_add(index, rows, ids, 2, NULL, &err) &&
            !pith_search_index_remove(index, NULL, ids, 1, NULL, &err))
            use(index);
        pith_search_index_destroy(index);
    } else if (!err.message[0]) {
        abort();
    }
    free(copy);
    return 0;
}
