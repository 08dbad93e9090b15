/* fuzz_tokenizer.c - a tokenizer.json, a NUL and a text: the file may be refused, the text may be;
 * nothing else happens. What is accepted must keep its promises: as many tokens without offsets as
 * with, ends behind begins, inside the text. */
#include <stdlib.h>

#include "base/str.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEMAND(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    pith_str json = { (const char *)data, nul ? (size_t)(nul - data) : size },
             text = PITH_STR("[UNK] Caf\xC3\xA9 12!");
    pith__arena arena;
    pith_tokenizer *t = NULL;
    pith_tokens with = PITH_TOKENS_INIT, without = PITH_TOKENS_INIT;
    pith_error err = PITH_ERROR_INIT;
    if (nul) text = (pith_str){ (const char *)nul + 1, size - json.size - 1 };
    pith__arena_init(&arena, &pith__allocator_default);
    arena.limit = (size_t)256 << 20;
    if (!pith__tokenizer_load_bytes(&t, json, NULL, &arena, &err)) {
        pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
        pith_status status = pith_tokenize(&with, t, text, NULL, &options, &err);
        options.no_offsets = 1;
        DEMAND(pith_tokenize(&without, t, text, NULL, &options, &err) == status);
        if (!status) {
            DEMAND(with.count == without.count);
            DEMAND(!with.count ||
                   memcmp(with.ids, without.ids, with.count * sizeof *with.ids) == 0);
            for (size_t i = 0; i < with.count; i++)
                DEMAND(with.begin[i] <= text.size && with.end[i] <= text.size);
        }
        options.raw = 1;
        options.no_offsets = 0;
        pith_tokenize(&with, t, text, &text, &options, &err);
        pith__tokenizer_unload(t);
    }
    pith_tokens_free(&with);
    pith_tokens_free(&without);
    pith__arena_free(&arena);
    return 0;
}
