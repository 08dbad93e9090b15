/* Any bytes as a GGUF file: an error or tensors whose contents are all there, within memory that the file's size
 * bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "hf/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_arena arena;
    pith_weights weights;
    pith_error err = PITH_ERROR_INIT;
    pith_arena_init(&arena, &pith_allocator_default);
    if (pith_weights_init(&weights, &arena, &err)) abort();
    pith_status status = pith_gguf_read(&weights, (pith_str){ (const char *)data, size }, "fuzz.gguf", &err);
    if ((status != PITH_OK) != (err.code != PITH_OK)) abort();
    if (arena.total > 64 * size + ((size_t)4 << 20)) abort();
    for (size_t i = 0; i < weights.count && !status; i++) {
        const pith_tensor *t = &weights.items[i];
        volatile char last = t->bytes ? ((const char *)t->data)[t->bytes - 1] : 0;
        (void)last;
    }
    pith_arena_free(&arena);
    return 0;
}
