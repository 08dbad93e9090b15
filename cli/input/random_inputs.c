/* random_inputs.c - see random_inputs.h. */
#include "cli/input/random_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_BATCH = 2, SIZE_PICTURE = 64, SIZE_OTHER = 8, IDS = 16 };

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled"
 * (2016). */
static uint64_t next_number(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

static bool has_word(const char *text, const char *word) { return strstr(text, word) != NULL; }

static int64_t choose_size(const pith_port *port, const char *name, int d) {
    if (has_word(name, "batch") || (d == 0 && has_word(name, "N"))) return SIZE_BATCH;
    if (has_word(name, "height") || has_word(name, "width") || (port->rank == 4 && d >= 2))
        return SIZE_PICTURE;
    return SIZE_OTHER;
}

/* Element i of an input, whose last axis has so many elements. */
static double choose_value(const pith_port *port, uint64_t i, int64_t last, uint64_t *state) {
    bool is_float = port->dtype == PITH_F32 || port->dtype == PITH_F64 || port->dtype == PITH_F16 ||
                    port->dtype == PITH_BF16;
    uint64_t number = next_number(state);
    if (has_word(port->name, "mask")) return 1;
    if (has_word(port->name, "token_type") || has_word(port->name, "segment")) return 0;
    if (has_word(port->name, "position")) return (double)(i % (uint64_t)last);
    if (is_float) return (double)(number >> 40) * 0x1p-23 - 1;
    return (double)(number >> 32 & (has_word(port->name, "ids") ? IDS - 1 : 1));
}

static int fill(pith_tensor *t, const command *c, const pith_port *port, uint64_t seed) {
    double block[256];
    pith_error err = PITH_ERROR_INIT;
    const uint64_t count = (uint64_t)pith_shape_count(t->dims, t->rank);
    const int64_t last = t->rank ? t->dims[t->rank - 1] : 1;
    const size_t width = count ? t->bytes / count : 0;
    uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15u;
    if (!width && count)
        return fail(c, "input '%s': %s cannot be made up; give it with -i", port->name,
                    pith_element_name(port->dtype));
    for (uint64_t i = 0, n; i < count; i += n) {
        n = count - i < 256 ? count - i : 256;
        for (uint64_t k = 0; k < n; k++) block[k] = choose_value(port, i + k, last, &state);
        const pith_tensor from = { .data = block,
                                   .bytes = sizeof block,
                                   .dtype = PITH_F64,
                                   .rank = 1,
                                   .dims = { (int64_t)n } };
        if (pith_tensor_convert((char *)t->data + i * width, port->dtype, &from, 0, n, &err))
            return fail(c, "input '%s': %s; give it with -i", port->name, err.message);
    }
    return EXIT_DONE;
}

int random_inputs_add(model_inputs *in, const command *c, const pith_model *model, uint64_t seed) {
    for (size_t p = 0; p < pith_model_input_count(model); p++) {
        const pith_port *port = pith_model_input(model, p);
        pith_tensor t = { .dtype = port->dtype, .rank = port->rank < 0 ? 0 : port->rank };
        if (port->optional || model_inputs_find(in, port->name)) continue;
        for (int d = 0; d < t.rank; d++)
            t.dims[d] = port->dims[d] < 0 ? model_inputs_size(in, model, port, d, choose_size)
                                          : port->dims[d];
        if (port->dtype == PITH_STRING ||
            pith_shape_bytes(&t.bytes, port->dtype, t.dims, t.rank, NULL))
            return fail(c, "input '%s' cannot be made up; give it with -i", port->name);
        t.data = grow(NULL, t.bytes);
        int code = fill(&t, c, port, seed + p);
        model_inputs_add(in, port->name, &t);
        if (code) return code;
    }
    return EXIT_DONE;
}
