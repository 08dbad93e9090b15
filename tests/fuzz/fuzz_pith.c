/* Any bytes as a compiled model that is opened, run and asked for vectors: an error or a result. The header is put
 * right first, so that the contents are met. */
#include "base/hash.h"
#include "run_ones.h"
#include "pith/pith.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 48, ENTRY = 32, SECTIONS_MAX = 64, WIDTH_MAX = 4096 };

static void put(uint8_t *p, uint64_t x) {
    for (int i = 0; i < 8; i++, x >>= 8) p[i] = (uint8_t)x;
}

static void embed(const void *data, size_t size) {
    static float vectors[2 * WIDTH_MAX];
    const pith_str texts[2] = { { "a b", 3 }, { "c", 1 } };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    options.memory_limit = MEMORY_LIMIT;
    if (pith_model_open_memory(&model, data, size, &options, &err)) return;
    size_t dim = pith_embed_dim(model, NULL);
    if (dim && dim <= WIDTH_MAX && pith_embed(vectors, model, texts, 2, NULL, &err) && !err.message[0]) abort();
    pith_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_counts counts = { 0 };
    uint8_t *copy = aligned_alloc(64, (size + 64) & ~(size_t)63);
    if (!copy) return 0;
    memcpy(copy, data, size);
    size_t sections = size > HEADER ? copy[12] : SECTIONS_MAX, end = HEADER + sections * ENTRY;
    if (size >= end && sections < SECTIONS_MAX) {
        put(copy + 16, size);
        put(copy + 24, pith_hash_of(copy + 32, end - 32));
    }
    open_and_run(copy, size, &counts);
    embed(copy, size);
    free(copy);
    return 0;
}
