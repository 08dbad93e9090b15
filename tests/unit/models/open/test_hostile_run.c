/* Every single-bit flip of small models with control flow and sequences, opened and run: an error
 * or a result, bounded in memory and time. And files that once crashed, each with what opening it
 * must say. The sanitizer runs of this test are what finds a read beyond an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fuzz/run_ones.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "pith/pith.h"

/* step: every step-th bit. */
static void flip_bits(const char *name, size_t step) {
    char path[512];
    pith__file file;
    run_counts c = { 0 };
    snprintf(path, sizeof path, "%s/control/%s.onnx", PITH_TEST_DATA, name);
    assert_int_equal(pith__file_open(&file, path, false, &pith__allocator_default, NULL), PITH_OK);
    unsigned char *bytes = malloc(file.size);
    memcpy(bytes, file.data, file.size);
    open_and_run(bytes, file.size, &c);
    assert_int_equal(c.opened, 1);
    for (size_t bit = 0; bit < file.size * 8; bit += step) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        uint64_t begin = pith__clock_thread_ns();
        open_and_run(bytes, file.size, &c);
        double seconds = 1e-9 * (double)(pith__clock_thread_ns() - begin);
        if (seconds > 5) fail_msg("%s, bit %zu: took %.1f s", name, bit, seconds);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(c.ran > 0);
    free(bytes);
    pith__file_close(&file);
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

/* Opened and run at levels 0 and 3: refused with these words, or (NULL) run. */
static void once_crashed(void **state) {
    (void)state;
    static const struct {
        const char *name, *says;
    } files[] = {
        { "unnamed_attention", "node 0 (Attention): output 0 has no name" },
        { "unnamed_layernorm", "node 0 (LayerNormalization): output 0 has no name" },
        { "unnamed_maxpool", "node 0 (MaxPool): output 0 has no name" },
        { "unnamed_upsample", "node 0 (Upsample): output 0 has no name" },
        { "upsample_two_outputs", "node 0 (Upsample): has 2 outputs, at most 1 are allowed" },
        { "lstm_without_y", NULL },
        { "tree_regressor_targets",
          "node 0 (TreeEnsembleRegressor): attribute 'n_targets' is -9223372036853775808" },
        { "feature_vectorizer_widths",
          "node 0 (FeatureVectorizer): attribute 'inputdimensions' is -922337203685" },
        { "tree_targets",
          "node 0 (TreeEnsemble): attribute 'n_targets' is -9223372036854775768, expected 1 to" },
        { "max_unpool_kernel",
          "node 0 (MaxUnpool): attribute 'kernel_shape' is -9223372036854775768 at index 1" },
        { "constant_of_shape_handle", NULL },
        { "constant_of_shape_symbol", NULL },
        { "range_at_the_end", NULL },
        { "pool_window_of_2_31", NULL },
        { "resize_roi_late", NULL },
        { "gqa_total_not_one",
          "node 0 (GroupQueryAttention): the shape of output 1 does not follow from the inputs" },
        { "group_norm_no_channels", NULL },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/hostile/%s.onnx", PITH_TEST_DATA, files[i].name);
        for (int level = 0; level <= 3; level += 3) {
            pith_open_options options = PITH_OPEN_OPTIONS_INIT;
            pith_error err = PITH_ERROR_INIT;
            pith_model *model = NULL;
            run_counts c = { 0 };
            options.optimization = level ? level : PITH_OPTIMIZATION_NONE;
            options.flags = PITH_OPEN_DESCRIBE;
            pith_status status = pith_model_open(&model, path, &options, &err);
            if (!status) run_model(model, &c);
            const char *said = status ? err.message : c.said, *says = files[i].says;
            if (says ? !strstr(said, says) : c.ran != 2)
                fail_msg("%s: '%s', not '%s'", files[i].name, said, says ? says : "run");
            pith_model_close(model);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(flipped_bits),
                                        cmocka_unit_test(once_crashed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
