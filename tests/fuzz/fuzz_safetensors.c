/* Any bytes as a safetensors file: every tensor that is found lies within them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/weights/safetensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith__arena arena;
    pith__weights weights;
    pith__arena_init(&arena, NULL);
    if (pith__weights_init(&weights, &arena, NULL)) abort();
    if (!pith__safetensors_read(&weights, (pith_str){ (const char *)data, size }, "fuzz", NULL)) {
        unsigned sum = 0;
        for (size_t i = 0; i < weights.count; i++) {
            const pith_tensor *t = pith__weights_find(&weights, weights.keys[i]);
            if (t != &weights.items[i]) abort();
            for (size_t k = 0; k < t->bytes; k++) sum += ((const unsigned char *)t->data)[k];
        }
        volatile unsigned seen = sum;
        (void)seen;
    }
    pith__arena_free(&arena);
    return 0;
}
