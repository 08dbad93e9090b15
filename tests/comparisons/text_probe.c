/* text_probe.c - the library's internal tokenizer behind a few plain functions, for Python's
 * ctypes: what compare_tokenizers.py and bench_tokenizer.py call. Not part of the library. */
#include <stdlib.h>
#include <string.h>

#include "base/os/clock.h"
#include "text/frozen_tokenizer.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct probe {
    pith__arena arena;
    pith_tokenizer *tokenizer;
    pith_tokens tokens;
    char *text;
    pith_error err;
} probe;

/* path, or json with its size if path is NULL. Returns NULL and fills message (1024 bytes) on
 * failure. */
EXPORT probe *probe_open(const char *path, const char *json, size_t size, char *message);
/* Puts the tokenizer in place that opens out of this one's image; false after an error. */
EXPORT int probe_image(probe *p);
/* Milliseconds of processor time that opening out of the image takes; negative after an error. */
EXPORT double probe_image_time(probe *p);
EXPORT void probe_close(probe *p);
EXPORT const char *probe_error(const probe *p);
/* Number of tokens in all windows, -1 after an error. The arrays are valid until the next call. */
EXPORT long probe_encode(probe *p, const char *text, size_t size, const char *pair,
                         size_t pair_size, int flags, int max_length, pith_tokens *out);
/* All texts of one buffer, text i ending at ends[i]; returns the tokens, -1 after an error. */
EXPORT long probe_batch(probe *p, const char *texts, const size_t *ends, size_t count, int threads,
                        size_t *token_ends, pith_tokens *out);
/* The text of ids, valid until the next call; NULL after an error. */
EXPORT const char *probe_decode(probe *p, const int32_t *ids, size_t count, int skip_specials,
                                size_t *size);
EXPORT size_t probe_bytes(const probe *p);

enum { RAW = 1, NO_SPECIALS = 2, NO_OFFSETS = 4, CHARACTERS = 8, NO_OVERFLOW = 16 };

probe *probe_open(const char *path, const char *json, size_t size, char *message) {
    probe *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    pith__arena_init(&p->arena, &pith__allocator_default);
    p->tokens = (pith_tokens)PITH_TOKENS_INIT;
    pith_status status = path ? pith__tokenizer_load(&p->tokenizer, path, NULL, &p->arena, &p->err)
                              : pith__tokenizer_load_bytes(&p->tokenizer, (pith_str){ json, size },
                                                           NULL, &p->arena, &p->err);
    if (!status) return p;
    memcpy(message, p->err.message, sizeof p->err.message);
    pith__arena_free(&p->arena);
    free(p);
    return NULL;
}

int probe_image(probe *p) {
    pith_tokenizer *opened;
    pith_str image;
    if (pith__tokenizer_freeze(&image, p->tokenizer, &p->arena, &p->err) ||
        pith__tokenizer_open_frozen(&opened, image.data, image.size, NULL, &p->arena, &p->err))
        return 0;
    pith__tokenizer_unload(p->tokenizer);
    p->tokenizer = opened;
    return 1;
}

double probe_image_time(probe *p) {
    pith__arena arena, scratch;
    pith_tokenizer *opened;
    pith_str image;
    uint64_t begin = 0, end = 0;
    pith__arena_init(&arena, &pith__allocator_default);
    pith__arena_init(&scratch, &pith__allocator_default);
    if (!pith__tokenizer_freeze(&image, p->tokenizer, &scratch, &p->err)) {
        begin = pith__clock_thread_ns();
        if (!pith__tokenizer_open_frozen(&opened, image.data, image.size, NULL, &arena, &p->err)) {
            end = pith__clock_thread_ns();
            pith__tokenizer_unload(opened);
        }
    }
    pith__arena_free(&arena);
    pith__arena_free(&scratch);
    return end ? 1e-6 * (double)(end - begin) : -1;
}

void probe_close(probe *p) {
    if (!p) return;
    pith_tokens_free(&p->tokens);
    pith_text_free(p->tokenizer, p->text);
    pith__tokenizer_unload(p->tokenizer);
    pith__arena_free(&p->arena);
    free(p);
}

const char *probe_error(const probe *p) { return p->err.message; }
size_t probe_bytes(const probe *p) { return p->arena.total; }

long probe_encode(probe *p, const char *text, size_t size, const char *pair, size_t pair_size,
                  int flags, int max_length, pith_tokens *out) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_str second = { pair, pair_size };
    options.raw = flags & RAW;
    options.no_specials = flags & NO_SPECIALS;
    options.no_offsets = flags & NO_OFFSETS;
    options.characters = flags & CHARACTERS;
    options.max_length = max_length;
    options.overflow = !(flags & NO_OVERFLOW);
    if (pith_tokenize(&p->tokens, p->tokenizer, (pith_str){ text, size }, pair ? &second : NULL,
                      &options, &p->err))
        return -1;
    *out = p->tokens;
    return (long)p->tokens.count;
}

long probe_batch(probe *p, const char *texts, const size_t *ends, size_t count, int threads,
                 size_t *token_ends, pith_tokens *out) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    pith_str *list = malloc((count + 1) * sizeof *list);
    if (!list) return -1;
    for (size_t i = 0; i < count; i++) {
        size_t begin = i ? ends[i - 1] : 0;
        list[i] = (pith_str){ texts + begin, ends[i] - begin };
    }
    options.no_offsets = 1;
    options.call.threads = threads;
    pith_status status = pith_tokenize_batch(&p->tokens, token_ends, p->tokenizer, list, NULL,
                                             count, &options, &p->err);
    free(list);
    *out = p->tokens;
    return status ? -1 : (long)p->tokens.count;
}

const char *probe_decode(probe *p, const int32_t *ids, size_t count, int skip_specials,
                         size_t *size) {
    pith_text_free(p->tokenizer, p->text);
    p->text = NULL;
    return pith_detokenize(&p->text, size, p->tokenizer, ids, count, skip_specials, NULL, &p->err)
               ? NULL
               : p->text;
}
