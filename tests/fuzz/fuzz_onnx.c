/* Any bytes as an ONNX file: a graph that is read keeps its invariants, and the whole of opening
 * (operators, optimiser, plan) gives an error or a model, within bounded memory. */
#include <stdint.h>
#include <stdlib.h>

#include "formats/onnx/model_read.h"
#include "pith/pith.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_MAX ((size_t)256 << 20)

static size_t in_use;

/* malloc with its sizes noted and limited. */
static void *limited_alloc(void *user, size_t bytes) {
    (void)user;
    if (bytes > MEMORY_MAX || in_use > MEMORY_MAX - bytes) return NULL;
    size_t *memory = malloc(bytes + 16);
    if (!memory) return NULL;
    *memory = bytes;
    in_use += bytes;
    return memory + 2;
}

static void limited_free(void *user, void *memory) {
    (void)user;
    if (!memory) return;
    size_t *begin = (size_t *)memory - 2;
    in_use -= *begin;
    free(begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const pith_allocator allocator = { limited_alloc, limited_free, NULL };
    pith__arena arena;
    pith__files files = { .arena = &arena };
    pith__graph *graph;
    pith_error err = PITH_ERROR_INIT;
    pith__arena_init(&arena, &allocator);
    pith_str bytes = { (const char *)data, size };
    pith_status status = pith__onnx_read(&graph, bytes, NULL, &files, &arena, NULL, &err);
    if (!status && pith__graph_check(graph, &err)) abort();
    if ((status != PITH_OK) != (err.code != PITH_OK)) abort();
    pith__arena_free(&arena);
    if (in_use) abort();
    if (status) return 0;

    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_model *model;
    options.call.allocator = &allocator;
    if (!pith_model_open_memory(&model, data, size, &options, &err)) pith_model_close(model);
    if (in_use) abort();
    return 0;
}
