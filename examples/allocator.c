/* allocator.c - the library with the host's own allocator, and under a limit.
 *
 * Everything that belongs to a model comes from the allocator it was opened with: weights in packed
 * form, sessions, the work of calls. Weights that are mapped from files do not. The allocator is
 * called from any thread of the library, so it must be thread-safe; this one counts with an atomic
 * number. With a memory_limit the library counts by itself: a call that would need more fails with
 * PITH_ERR_MEMORY, and the model stays usable.
 *
 *     cc allocator.c $(pkg-config --cflags --libs pith) -o allocator
 *     ./allocator all-MiniLM-L6-v2
 */
#include <pith/pith.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct counter {
    atomic_size_t blocks, total; /* blocks that are held now; blocks since the start */
} counter;

/* malloc aligns to 16 bytes on 64-bit systems, which is what the library asks for. NULL is an
 * answer it can take. */
static void *counted_alloc(void *user, size_t bytes) {
    counter *c = user;
    void *memory = malloc(bytes);
    if (!memory) return NULL;
    atomic_fetch_add(&c->blocks, 1);
    atomic_fetch_add(&c->total, 1);
    return memory;
}

static void counted_free(void *user, void *memory) {
    counter *c = user;
    if (memory) atomic_fetch_sub(&c->blocks, 1);
    free(memory);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "all-MiniLM-L6-v2";
    counter c = { 0 };
    const pith_allocator allocator = { counted_alloc, counted_free, &c };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_str text = { "a cat sat on the mat", 20 };
    options.call.allocator = &allocator;
    if (pith_model_open(&model, path, &options, &err)) return puts(err.message), 1;
    size_t dim = pith_embed_dim(model, NULL), peak;
    float *vector = malloc(dim * sizeof *vector);
    if (!vector || pith_embed(vector, model, &text, 1, NULL, &err)) return puts(err.message), 1;
    printf("%zu bytes now", pith_model_bytes(model, &peak));
    printf(", %zu at most, %zu blocks\n", peak, (size_t)c.total);
    pith_model_trim(model); /* gives back buffers that were kept for the next call */
    pith_model_close(model);
    printf("%zu blocks after closing\n", (size_t)c.blocks);

    options.memory_limit = 100000; /* too little, to see the error */
    if (!pith_model_open(&model, path, &options, &err)) return puts("the limit was not kept"), 1;
    printf("%s: %s\n", err.code == PITH_ERR_MEMORY ? "limit" : "another error", err.message);
    printf("%zu blocks after the failure\n", (size_t)c.blocks);
    free(vector);
    return 0;
}
