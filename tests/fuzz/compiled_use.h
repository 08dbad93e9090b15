/* compiled_use.h - what is done with the bytes of a compiled model that may be broken. */
#ifndef PITH_TEST_COMPILED_USE_H
#define PITH_TEST_COMPILED_USE_H

#include "base/hash.h"
#include "run_ones.h"

enum { HEADER = 48, ENTRY = 32, SECTIONS_MAX = 64 };

typedef struct saved {
    char *bytes;
    size_t size;
} saved;

static int save_piece(void *user, const void *data, size_t size, uint64_t total) {
    saved *s = user;
    if (!s->bytes && total <= MEMORY_LIMIT) s->bytes = aligned_alloc(64, ((size_t)total + 64) & ~(size_t)63);
    if (!s->bytes || size > total - s->size) return 1;
    memcpy(s->bytes + s->size, data, size);
    s->size += size;
    return 0;
}

/* What is saved opens again. */
static void save_again(const pith_model *model) {
    pith_open_options options = limited_options(3);
    pith_error err = PITH_ERROR_INIT;
    pith_model *again = NULL;
    saved s = { 0 };
    pith_status status = pith_model_save(model, save_piece, &s, &err);
    if (!status) status = pith_model_open_memory(&again, s.bytes, s.size, &options, &err);
    /* Two models at once may need more memory than there is. */
    if (status && status != PITH_ERR_MEMORY && s.bytes) {
        fprintf(stderr, "saved, it does not open: %s\n", err.message);
        abort();
    }
    pith_model_close(again);
    free(s.bytes);
}

static void put_u64(uint8_t *p, uint64_t x) {
    for (int i = 0; i < 8; i++, x >>= 8) p[i] = (uint8_t)x;
}

/* Makes the header's size and hash those of the file. */
static void put_header_right(uint8_t *file, size_t size) {
    size_t sections = size > HEADER ? file[12] : SECTIONS_MAX, end = HEADER + sections * ENTRY;
    if (size < end || sections >= SECTIONS_MAX) return;
    put_u64(file + 16, size);
    put_u64(file + 24, pith_hash_of(file + 32, end - 32));
}

static void use_compiled(const void *data, size_t size, run_counts *c) {
    pith_open_options options = limited_options(3);
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    void *copy; /* of just this size: reading past the end shows under the address sanitizer */
    if (posix_memalign(&copy, 64, size ? size : 1)) return;
    memcpy(copy, data, size);
    put_header_right(copy, size);
    if (!pith_model_open_memory(&model, copy, size, &options, &err)) {
        c->opened++;
        describe_model(model);
        run_model(model, c);
        embed_two(model);
        save_again(model);
        pith_model_close(model);
    } else if (!err.message[0]) {
        abort();
    }
    free(copy);
}

#endif
