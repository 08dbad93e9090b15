/* run_ones.h - opens a model from memory, describes it and runs it twice on ones of the shapes its
 * inputs declare, with limits on memory and loops; the second time with a profile, which asks every
 * step for its costs. What the fuzz targets and the tests of broken models share. */
#ifndef PITH_TEST_RUN_ONES_H
#define PITH_TEST_RUN_ONES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "pith/pith.h"

enum {
    MEMORY_LIMIT = 64 << 20,
    LOOP_LIMIT = 50,
    FREE_SIZE = 3,
    MAX_PORTS = 8,
    ITEMS = 2,
    WIDTH_MAX = 4096
};
/* Before each block, its size; keeps the alignment of malloc. */
enum { BLOCK_HEAD = 16 };

typedef struct run_counts {
    size_t opened, ran, refused;
    char said[PITH_ERROR_MESSAGE_SIZE]; /* by the last run that was refused */
} run_counts;

/* ---- memory that stays within the limit, or the process ends ---- */

static atomic_size_t bytes_held;
static size_t bytes_allowed = MEMORY_LIMIT;

static void *limited_alloc(void *user, size_t bytes) {
    (void)user;
    if (bytes > bytes_allowed || atomic_fetch_add(&bytes_held, bytes) + bytes > bytes_allowed) {
        fprintf(stderr, "%zu bytes more than %zu: beyond the limit\n", bytes,
                atomic_load(&bytes_held));
        abort();
    }
    size_t *block = malloc(BLOCK_HEAD + bytes);
    if (!block) abort();
    *block = bytes;
    return (char *)block + BLOCK_HEAD;
}

static void limited_free(void *user, void *memory) {
    (void)user;
    if (!memory) return;
    size_t *block = (size_t *)(void *)((char *)memory - BLOCK_HEAD);
    atomic_fetch_sub(&bytes_held, *block);
    free(block);
}

static pith_open_options limited_options(int level) {
    static const pith_allocator limited = { limited_alloc, limited_free, NULL };
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    options.flags = PITH_OPEN_DESCRIBE;
    options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
    options.call.allocator = &limited;
    options.memory_limit = MEMORY_LIMIT;
    options.loop_limit = LOOP_LIMIT;
    return options;
}

/* ---- what is done with an open model ---- */

static int32_t described(void *bytes, const void *text, size_t size) {
    (void)text;
    *(size_t *)bytes += size;
    return 0;
}

static void describe_model(const pith_model *model) {
    pith_error err = PITH_ERROR_INIT;
    for (int form = PITH_DESCRIBE_JSON; form <= PITH_DESCRIBE_DOT; form++) {
        size_t bytes = 0;
        const pith_writer writer = { .write = described, .user = &bytes };
        if (pith_model_describe(model, (pith_description)form, NULL, &writer, &err) &&
            !err.message[0])
            abort();
    }
}

static inline void embed_two(const pith_model *model) {
    static float vectors[2 * WIDTH_MAX];
    const pith_str texts[2] = { { "a b", 3 }, { "c", 1 } };
    pith_error err = PITH_ERROR_INIT;
    size_t dim = pith_embed_dim(model, NULL);
    if (dim && dim <= WIDTH_MAX && pith_embed(vectors, model, texts, 2, NULL, &err) &&
        !err.message[0])
        abort();
}

/* Ones of the port's shape, in memory that goes with the test. */
static pith_tensor ones(int dtype, int rank, const int64_t *dims, void **memory) {
    pith_tensor t = { .dtype = dtype, .rank = rank < 0 ? 1 : rank };
    for (int i = 0; i < t.rank; i++) t.dims[i] = rank < 0 || dims[i] < 0 ? FREE_SIZE : dims[i];
    if (!pith__dtype_bytes(dtype, pith__dims_count(t.dims, t.rank), &t.bytes) ||
        t.bytes > 1 << 20) {
        return (pith_tensor){ 0 };
    }
    t.data = *memory = calloc(t.bytes + 1, 1);
    size_t size = (size_t)pith__dtype_bits(dtype) / 8;
    for (size_t i = 0; size && i < t.bytes / size; i++) {
        float one = 1;
        double two = 2;
        char *at = (char *)t.data + i * size;
        if (dtype == PITH_F32)
            memcpy(at, &one, sizeof one);
        else if (dtype == PITH_F64)
            memcpy(at, &two, sizeof two);
        else if (dtype == PITH_STRING)
            memcpy(at, &(pith_str){ "a", 1 }, sizeof(pith_str));
        else
            *at = 1;
    }
    return t;
}

static void run_model(pith_model *model, run_counts *c) {
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    size_t inputs = pith_model_input_count(model), outputs = pith_model_output_count(model);
    const char *names[MAX_PORTS];
    void *memory[MAX_PORTS] = { NULL };
    pith_tensor in[MAX_PORTS], items[MAX_PORTS][ITEMS], *out = calloc(outputs + 1, sizeof *out);
    if (inputs <= MAX_PORTS && !pith_session_create(&session, model, &err)) {
        for (size_t i = 0; i < inputs; i++) {
            const pith_port *port = pith_model_input(model, i);
            names[i] = port->name;
            bool sequence = port->dtype == PITH_SEQUENCE || port->dtype == PITH_NONE ||
                            port->dtype == PITH_UNDEFINED;
            in[i] = ones(sequence ? PITH_F32 : port->dtype, port->rank, port->dims, &memory[i]);
            if (!sequence) continue;
            for (int k = 0; k < ITEMS; k++) items[i][k] = in[i];
            in[i] = (pith_tensor){ .data = items[i],
                                   .bytes = sizeof items[i],
                                   .dtype = PITH_SEQUENCE,
                                   .rank = 1,
                                   .dims = { ITEMS } };
        }
        pith_run_options options = PITH_RUN_OPTIONS_INIT;
        for (int round = 0; round < 2; round++) {
            if (round && pith_profile_create(&options.call.profile, NULL, &err)) abort();
            if (pith_session_run(session, out, names, in, inputs, &options, &err)) {
                if (!err.message[0]) abort();
                snprintf(c->said, sizeof c->said, "%s", err.message);
                c->refused++;
            } else {
                c->ran++;
            }
        }
        pith_profile_destroy(options.call.profile);
        pith_session_destroy(session);
    }
    for (size_t i = 0; i < MAX_PORTS; i++) free(memory[i]);
    free(out);
}

static void open_and_run_at(const void *data, size_t size, int level, run_counts *c) {
    pith_open_options options = limited_options(level);
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (pith_model_open_memory(&model, data, size, &options, &err)) {
        if (!err.message[0]) abort();
        return;
    }
    c->opened++;
    describe_model(model);
    run_model(model, c);
    pith_model_close(model);
}

static inline void open_and_run(const void *data, size_t size, run_counts *c) {
    open_and_run_at(data, size, 3, c);
}

#endif
