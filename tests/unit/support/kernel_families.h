/* kernel_families.h - which signature each kernel family has, and numbers to feed it: the same on
 * every machine. */
#ifndef PITH_TESTS_KERNEL_FAMILIES_H
#define PITH_TESTS_KERNEL_FAMILIES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* By signature: pith__unary_f32_fn, pith__binary_fn, pith__reduce_rows_fn, pith__reduce_columns_fn,
 * pith__row_f32_fn, pith__layer_norm_f32_fn, pith__rotary_f32_fn, pith__map_fn, pith__map2_fn to
 * bool, pith__affine_fn, pith__moments_fn; the last have tests of their own. */
static const char *const unary_families[] = { "abs",      "cos",         "erf",        "exp",
                                              "gelu",     "gelu_coarse", "gelu_tanh",  "log",
                                              "mish",     "neg",         "quick_gelu", "reciprocal",
                                              "relu",     "sigmoid",     "silu",       "sin",
                                              "softplus", "sqrt",        "tanh" };
static const char *const binary_families[] = { "add", "div", "max", "min", "mul", "sub" };
static const char *const rows_families[] = { "row_l1",  "row_max", "row_mean",
                                             "row_min", "row_sum", "row_sumsq" };
static const char *const columns_families[] = { "column_l1",  "column_max", "column_mean",
                                                "column_min", "column_sum", "column_sumsq" };
static const char *const row_to_row_families[] = { "l2_normalize", "log_softmax", "softmax" };
static const char *const norms_families[] = { "layer_norm", "rms_norm" };
static const char *const rotary_families[] = { "rotary" };
static const char *const maps_families[] = { "map_ceil",
                                             "map_celu",
                                             "map_clip",
                                             "map_elu",
                                             "map_floor",
                                             "map_hard_sigmoid",
                                             "map_hard_swish",
                                             "map_leaky_relu",
                                             "map_round",
                                             "map_selu",
                                             "map_softsign",
                                             "map_swish",
                                             "map_thresholded_relu" };
static const char *const compare_families[] = { "map_equal", "map_less", "map_less_equal" };
static const char *const affine_families[] = { "affine" };
static const char *const moments_families[] = { "moments" };
static const char *const elsewhere_families[] = { "adamw",
                                                  "arg_max_lanes",
                                                  "arg_min_lanes",
                                                  "attention",
                                                  "attention_vnni",
                                                  "cast",
                                                  "conv",
                                                  "depthwise",
                                                  "depthwise_vnni",
                                                  "dequantize",
                                                  "dequantize_row",
                                                  "gemm",
                                                  "gemm_amx",
                                                  "gemm_blocks",
                                                  "gemm_blocks_vnni",
                                                  "gemm_dp",
                                                  "gemm_pack",
                                                  "gemm_vnni",
                                                  "grid",
                                                  "gru_cell",
                                                  "gru_finish",
                                                  "gru_gates",
                                                  "key_attention",
                                                  "key_attention_back",
                                                  "lp_normalize",
                                                  "lrn",
                                                  "lstm_cell",
                                                  "matmul",
                                                  "mix_columns",
                                                  "mix_rows",
                                                  "narrow",
                                                  "pool_rows_max",
                                                  "pool_rows_mean",
                                                  "quantize",
                                                  "quantize_blocks",
                                                  "quantize_panel",
                                                  "quantize_rows",
                                                  "quantize_table",
                                                  "quantized_add",
                                                  "range",
                                                  "requantize",
                                                  "rms_norm_back",
                                                  "scores_dot",
                                                  "scores_hamming",
                                                  "scores_int8",
                                                  "scores_int8_vnni",
                                                  "scores_l2",
                                                  "scores_sumsq",
                                                  "sums_scale",
                                                  "sums_shift",
                                                  "swiglu",
                                                  "swiglu_back",
                                                  "taps_max",
                                                  "taps_plane",
                                                  "taps_sum",
                                                  "to_bf16",
                                                  "turn",
                                                  "turn_bytes",
                                                  "unit_factor",
                                                  "widen" };

#define LISTED(list, family) listed(list, COUNT(list), family)
static inline int listed(const char *const *list, size_t count, const char *family) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], family) == 0) return 1;
    }
    return 0;
}

static inline uint32_t random_u32(void) {
    static uint64_t state = 0x9E3779B97F4A7C15u;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
static inline float random_float(void) { return (float)(int32_t)random_u32() * 0x1p-31f; }
static inline int64_t random_below(int64_t n) { return (int64_t)(random_u32() % (uint32_t)n); }

/* Ordinary numbers; now and then any bits at all, so zeros, infinities, NaN and subnormals come
 * too. */
static inline void fill_floats(float *x, int64_t n) {
    static const float special[] = { 0.0f,      -0.0f,      INFINITY, -INFINITY, NAN,
                                     0x1p-149f, -0x1p-130f, 3e38f,    -3e38f };
    uint32_t kind = random_u32() % 8;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = random_u32();
        x[i] = random_float() * 8.0f;
        if (kind == 0) memcpy(&x[i], &bits, sizeof bits);
        if (kind == 1 && bits % 4 == 0) x[i] = special[bits / 4 % COUNT(special)];
    }
}

#endif
