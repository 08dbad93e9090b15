/* Any bytes as a file of torch.save: every tensor that is found lies within them, or in memory that
 * does not grow beyond what a file of that size may ask for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/weights/torch/torch_file.h"

/* A pickle's values take at most about 150 times its bytes; tensors with strides are copied once.
 */
enum { MEMORY_PER_BYTE = 256, MEMORY_LEAST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith__arena arena;
    pith__weights weights;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, NULL);
    if (pith__weights_init(&weights, &arena, NULL)) abort();
    pith_status status =
        pith__torch_read(&weights, (pith_str){ (const char *)data, size }, "fuzz", &err);
    if (status && (!err.message[0] || status == PITH_ERR_MEMORY)) abort();
    if (arena.total > MEMORY_LEAST + size * MEMORY_PER_BYTE) abort();
    for (size_t i = 0; !status && i < weights.count; i++) {
        const pith_tensor *t = pith__weights_find(&weights, weights.keys[i]);
        volatile unsigned char seen = 0;
        if (t != &weights.items[i]) abort();
        for (size_t k = 0; k < t->bytes; k++) seen ^= ((const unsigned char *)t->data)[k];
    }
    pith__arena_free(&arena);
    return 0;
}
