/* fuzz_frozen.c - a small tokenizer.json, a NUL, and changes to the frozen tokenizer of that
 * tokenizer: four bytes say where, the fifth what stands there then. The changed frozen may be
 * refused; what is accepted must stay inside its bytes. */
#include <stdlib.h>

#include "text/frozen_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHANGE = 5, ALIGNMENT = 64 };

/* A copy of its own, so that a sanitizer sees its end. */
static void use(pith_str frozen) {
    char *bytes = aligned_alloc(ALIGNMENT, frozen.size);
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_error err = PITH_ERROR_INIT;
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_str text = PITH_STR("[UNK] Caf\xC3\xA9 12 abab! \xE2\x96\x81the<s>");
    if (!bytes) abort();
    memcpy(bytes, frozen.data, frozen.size);
    pith__arena_init(&arena, &pith__allocator_default);
    arena.limit = (size_t)256 << 20;
    if (!pith__tokenizer_open_frozen(&t, bytes, frozen.size, NULL, &arena, &err)) {
        char *decoded;
        size_t size;
        if (!pith_tokenize(&tokens, t, text, &text, NULL, &err) &&
            !pith_detokenize(&decoded, &size, t, tokens.ids, tokens.count, 0, NULL, &err)) {
            if (pith__utf8_valid_prefix(decoded, size) != size) abort();
            pith_text_free(t, decoded);
        }
        for (int32_t id = -1; id <= pith__tokenizer_vocab_size(t) && id < 1000; id++)
            pith__tokenizer_token(t, id);
        pith__tokenizer_unload(t);
    }
    pith_tokens_free(&tokens);
    pith__arena_free(&arena);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_str frozen;
    pith_error err = PITH_ERROR_INIT;
    if (!nul) return 0;
    pith__arena_init(&arena, &pith__allocator_default);
    arena.limit = (size_t)256 << 20;
    if (!pith__tokenizer_load_bytes(&t, (pith_str){ (const char *)data, (size_t)(nul - data) },
                                    NULL, &arena, &err)) {
        if (!pith__tokenizer_freeze(&frozen, t, &arena, &err)) {
            for (const uint8_t *p = nul + 1; (size_t)(data + size - p) >= CHANGE; p += CHANGE) {
                uint32_t at;
                memcpy(&at, p, sizeof at);
                ((char *)(uintptr_t)frozen.data)[at % frozen.size] = (char)p[4];
            }
            use(frozen);
        }
        pith__tokenizer_unload(t);
    }
    pith__arena_free(&arena);
    return 0;
}
