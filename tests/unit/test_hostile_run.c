/* Every single-bit flip of small models with control flow and sequences, opened and run: an error or a result, bounded
 * in memory and time. The sanitizer runs of this test are what finds a read beyond an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/dtype.h"
#include "base/file.h"

enum { MEMORY_LIMIT = 64 << 20, LOOP_LIMIT = 50, FREE_SIZE = 3, MAX_PORTS = 8, ITEMS = 2 };

typedef struct counts {
    size_t opened, ran, refused;
} counts;

/* Ones of the port's shape, in memory that goes with the test. */
static pith_tensor ones(int dtype, int rank, const int64_t *dims, void **memory) {
    pith_tensor t = { .dtype = dtype, .rank = rank < 0 ? 1 : rank };
    for (int i = 0; i < t.rank; i++) t.dims[i] = rank < 0 || dims[i] < 0 ? FREE_SIZE : dims[i];
    if (!pith_dtype_bytes(dtype, pith_dims_count(t.dims, t.rank), &t.bytes) || t.bytes > 1 << 20) {
        return (pith_tensor){ 0 };
    }
    t.data = *memory = calloc(t.bytes + 1, 1);
    size_t size = (size_t)pith_dtype_bits(dtype) / 8;
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

static void run_model(pith_model *model, counts *c) {
    pith_error err = PITH_ERROR_INIT;
    pith_session *session;
    size_t inputs = pith_model_input_count(model), outputs = pith_model_output_count(model);
    const char *names[MAX_PORTS];
    void *memory[MAX_PORTS] = { NULL };
    pith_tensor in[MAX_PORTS], items[MAX_PORTS][ITEMS], *out = calloc(outputs + 1, sizeof *out);
    if (inputs <= MAX_PORTS && !pith_session_create(&session, model, &err)) {
        for (size_t i = 0; i < inputs; i++) {
            pith_port port = pith_model_input(model, i);
            names[i] = port.name;
            bool sequence = port.dtype == PITH_SEQUENCE || port.dtype == PITH_NONE || port.dtype == PITH_UNDEFINED;
            in[i] = ones(sequence ? PITH_F32 : port.dtype, port.rank, port.dims, &memory[i]);
            if (!sequence) continue;
            for (int k = 0; k < ITEMS; k++) items[i][k] = in[i];
            in[i] = (pith_tensor){
                .data = items[i], .bytes = sizeof items[i], .dtype = PITH_SEQUENCE, .rank = 1, .dims = { ITEMS }
            };
        }
        for (int round = 0; round < 2; round++) {
            if (pith_session_run(session, out, names, in, inputs, NULL, &err)) {
                assert_int_not_equal(err.message[0], 0);
                c->refused++;
            } else {
                c->ran++;
            }
        }
        pith_session_destroy(session);
    }
    for (size_t i = 0; i < MAX_PORTS; i++) free(memory[i]);
    free(out);
}

static void open_and_run(const void *data, size_t size, counts *c) {
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    options.memory_limit = MEMORY_LIMIT;
    options.loop_limit = LOOP_LIMIT;
    if (pith_model_open_memory(&model, data, size, &options, &err)) {
        assert_int_not_equal(err.message[0], 0);
        return;
    }
    c->opened++;
    run_model(model, c);
    pith_model_close(model);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* step: every step-th bit. */
static void flip_bits(const char *name, size_t step) {
    char path[512];
    pith_file file;
    counts c = { 0 };
    snprintf(path, sizeof path, "%s/control/%s.onnx", PITH_TEST_DATA, name);
    assert_int_equal(pith_file_open(&file, path, false, &pith_allocator_default, NULL), PITH_OK);
    unsigned char *bytes = malloc(file.size);
    memcpy(bytes, file.data, file.size);
    open_and_run(bytes, file.size, &c);
    assert_int_equal(c.opened, 1);
    for (size_t bit = 0; bit < file.size * 8; bit += step) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        double begin = seconds();
        open_and_run(bytes, file.size, &c);
        if (seconds() - begin > 5) fail_msg("%s, bit %zu: took %.1f s", name, bit, seconds() - begin);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(c.ran > 0);
    free(bytes);
    pith_file_close(&file);
}

static void flipped_bits(void **state) {
    (void)state;
    static const char *const names[] = { "concat_3d_axis_2",
                                         "expand_dim_changed",
                                         "if",
                                         "if_opt",
                                         "if_seq",
                                         "loop11",
                                         "loop13_seq",
                                         "loop16_seq_none",
                                         "nonmaxsuppression_two_classes",
                                         "optional_get_element_optional_sequence",
                                         "reshape_negative_dim",
                                         "scan9_sum",
                                         "scan_sum",
                                         "sequence_insert_at_back",
                                         "sequence_map_add_2_sequences",
                                         "sequence_map_extract_shapes",
                                         "slice_default_steps",
                                         "split_to_sequence_1" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) flip_bits(names[i], 1);
    flip_bits("range_float_type_positive_delta_expanded", 7);
    flip_bits("sequence_map_identity_1_sequence_1_tensor_expanded", 7);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(flipped_bits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
