/* Any bytes as a GGUF file: an error or tensors whose contents are all there, within memory that
 * the file's size bounds; its settings, and its tokenizer on a few words. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "formats/weights/gguf/gguf.h"
#include "models/checkpoint/gguf_model.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_tokenizer(pith_str bytes, pith__arena *arena) {
    pith_tokenizer *tokenizer;
    pith_tokens tokens = PITH_TOKENS_INIT;
    if (bytes.size < 4 || memcmp(bytes.data, "GGUF", 4) != 0) return;
    if (pith__tokenizer_load_bytes(&tokenizer, bytes, NULL, arena, NULL)) return;
    if (!pith__tokenizer_encode(&tokens, tokenizer, PITH_STR("a B caf\xC3\xA9, 12"), NULL, NULL,
                                NULL, NULL))
        pith_tokens_free(&tokens);
    pith__tokenizer_unload(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith__arena arena;
    pith__weights weights;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, &pith__allocator_default);
    if (pith__weights_init(&weights, &arena, &err)) abort();
    pith_status status =
        pith__gguf_read(&weights, (pith_str){ (const char *)data, size }, "fuzz.gguf", &err);
    if ((status != PITH_OK) != (err.code != PITH_OK)) abort();
    if (arena.total > 64 * size + ((size_t)4 << 20)) abort();
    for (size_t i = 0; i < weights.count && !status; i++) {
        const pith_tensor *t = &weights.items[i];
        volatile char last = t->bytes ? ((const char *)t->data)[t->bytes - 1] : 0;
        (void)last;
    }
    pith__modules modules;
    pith__graph *graph;
    pith__gguf_build(&graph, &modules, (pith_str){ (const char *)data, size }, "fuzz.gguf", &arena,
                     NULL, NULL);
    fuzz_tokenizer((pith_str){ (const char *)data, size }, &arena);
    pith__arena_free(&arena);
    return 0;
}
