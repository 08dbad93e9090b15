/* op_ms_nchwc.c - the operators of com.microsoft.nchwc, written out at load as plain ones.
 *
 * This domain is what ONNX Runtime's layout optimiser saves: tensors of [batch, channels, height,
 * width] whose channels lie in blocks inside each pixel, between ReorderInput and ReorderOutput.
 * Pith keeps the plain layout. Only constant weights have to be reordered, for which the block size
 * must be known. The file does not say it. If some filter shows it (block_shown), it is that; else
 * the one that ONNX Runtime uses on this machine, for which it made the file (16 with AVX-512 or
 * NEON, else 8). Source: ONNX Runtime, MLAS filter layouts OIHWBiBo and OIHWBo. */
#include "base/os/cpu.h"
#include "engine/ops/shared/compose_fused_conv.h"
#include "engine/ops/shared/compose_ops.h"

static bool nchwc_is_blocked(const pith__node *node) {
    return pith__str_is(node->domain, "com.microsoft.nchwc");
}

/* Filters that fill up `channels` to their blocks, going up from a value over one operator of
 * blocks after the other; 0: not found. */
static int64_t nchwc_filters_above(const pith__value *v) {
    for (int depth = 0; v && v->producer && depth < 16; depth++) {
        const pith__node *n = v->producer;
        const pith__value *w = pith__node_input(n, 1);
        if (!nchwc_is_blocked(n)) return 0;
        if (pith__str_is(n->op_type, "Conv")) return w && w->type.rank == 4 ? w->type.dims[0] : 0;
        v = pith__node_input(n, 0);
    }
    return 0;
}

/* What a node shows of the size of the blocks: 8, 16, or 0 for nothing. Maps are filled up to whole
 * blocks, and so are the channels of a filter whose input lies in blocks; a filter of another input
 * has less channels than a block. */
static int64_t nchwc_block_shown(const pith__node *n) {
    if (!nchwc_is_blocked(n)) return 0;
    const pith__value *x = pith__node_input(n, 0), *w = pith__node_input(n, 1);
    if (pith__str_is(n->op_type, "ReorderOutput")) {
        int64_t channels = pith__node_int(n, "channels", 0), filters = nchwc_filters_above(x);
        return channels > 0 && filters - channels >= 8 ? 16 : 0;
    }
    if (!pith__str_is(n->op_type, "Conv") || !x || !w || w->type.rank != 4) return 0;
    int64_t maps = w->type.dims[0], channels = w->type.dims[1];
    bool depthwise = channels == 1 && pith__node_int(n, "group", 1) > 1;
    bool plain = !x->producer || !nchwc_is_blocked(x->producer) ||
                 pith__str_is(x->producer->op_type, "ReorderOutput");
    if (maps % 16) return 8;
    if (depthwise) return 0;
    if (plain) return channels >= 8 ? 16 : 0;
    return channels % 16 ? 8 : 0;
}

/* Size of the graph's channel blocks; found once and noted on its nodes. */
static pith_status nchwc_block_of(pith__node *node, int64_t *block, pith_error *err) {
    *block = pith__node_int(node, "__block", 0);
    if (*block == 8 || *block == 16) return PITH_OK;
    *block = 0;
    for (const pith__node *n = node->graph->first; n && !*block; n = n->next)
        *block = nchwc_block_shown(n);
    uint32_t wide = 1u << PITH_ISA_avx512 | 1u << PITH_ISA_neon;
    if (!*block) *block = pith__cpu_get()->supported & wide ? 16 : 8;
    for (pith__node *n = node->graph->first; n; n = n->next) {
        if (nchwc_is_blocked(n) && pith__node_set_int(n, "__block", *block))
            return pith__fail_memory(err, 0);
    }
    return PITH_OK;
}

/* Weights [maps, channels, height, width] in order. A filter of less channels than a block, or of
 * one for each group, has blocks of maps innermost; any other has blocks of channels outside of
 * those. */
static pith_status nchwc_ordered(pith__node *node, pith__value **weights, pith_error *err) {
    const pith_tensor *t = pith__node_input(node, 1)->type.data;
    int64_t block;
    PITH_TRY(nchwc_block_of(node, &block, err));
    if (!t || t->rank != 4 || t->dtype != PITH_F32 || t->dims[0] % block ||
        pith__tensor_count(t) == 0)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the weights are no constant of float32 in blocks of %lld",
                          (long long)block);
    int64_t channels = t->dims[1], pixels = t->dims[2] * t->dims[3],
            inner = channels < block ? 1 : block;
    if (channels % inner)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%lld channels are in no blocks",
                          (long long)channels);
    pith_tensor out = *t;
    float *y = out.data = pith__arena_alloc64(node->graph->arena, t->bytes);
    if (!y) return pith__fail_memory(err, t->bytes);
    const float *x = t->data;
    int64_t groups = channels / inner;
    for (int64_t o = 0; o < t->dims[0]; o++) {
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t p = 0; p < pixels; p++) {
                int64_t at = inner == 1 ? (o / block * channels + c) * pixels + p
                                        : ((o / block * groups + c / block) * pixels + p) * block +
                                              c % block;
                y[(o * channels + c) * pixels + p] = x[at * block + o % block];
            }
        }
    }
    *weights = pith__graph_add_const(node->graph, PITH_STR(""), &out);
    return *weights ? PITH_OK : pith__fail_memory(err, sizeof out);
}

static pith_status nchwc_upgrade_conv(pith__node *node, pith_error *err) {
    pith__value *weights = NULL;
    PITH_TRY(pith__compose_require(node, 0x3, 1, err));
    PITH_TRY(nchwc_ordered(node, &weights, err));
    return pith__compose_become_conv(node, weights, err);
}

/* Pools and Upsample: the operator of ai.onnx by the same name. */
static pith_status nchwc_upgrade_plain(pith__node *node, pith_error *err) {
    static const char *const names[] = { "MaxPool", "AveragePool", "GlobalMaxPool",
                                         "GlobalAveragePool" };
    static const char *const kept[] = {
        "auto_pad", "ceil_mode",         "dilations", "kernel_shape", "pads", "storage_order",
        "strides",  "count_include_pad", NULL
    };
    PITH_TRY(pith__compose_require(node, 0x1, 1, err));
    pith__value *y = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (pith__str_is(node->op_type, names[i]))
            y = pith__compose1(node, names[i], pith__node_input(node, 0));
    }
    return pith__compose_become(node, pith__with_attributes(y, node, kept), err);
}

/* Its scales are integers in an attribute; Resize has them as floats in an input. */
static pith_status nchwc_upgrade_upsample(pith__node *node, pith_error *err) {
    static const char *const kept[] = { "coordinate_transformation_mode", "mode", NULL };
    PITH_TRY(pith__compose_require(node, 0x1, 1, err));
    size_t count;
    const int64_t *given = pith__node_ints(node, "scales", &count);
    pith_tensor scales = {
        .bytes = 4 * sizeof(float), .dtype = PITH_F32, .rank = 1, .dims = { 4 }
    };
    float *items = scales.data = pith__arena_alloc(node->graph->arena, scales.bytes);
    if (!items) return pith__fail_memory(err, scales.bytes);
    for (size_t i = 0; i < 4; i++) items[i] = given && count == 4 ? (float)given[i] : 1;
    pith__value *inputs[] = { pith__node_input(node, 0), NULL,
                              pith__graph_add_const(node->graph, PITH_STR(""), &scales) };
    pith__value *y = inputs[2] ? pith__compose(node, "", "Resize", inputs, 3, 1) : NULL;
    y = pith__with_attributes(y, node, kept);
    if (y && pith__str_is(pith__node_str(node, "mode", "nearest"), "nearest") &&
        pith__node_set_str(y->producer, "nearest_mode", PITH_STR("floor")))
        y = NULL;
    return pith__compose_become(node, y, err);
}

/* op_type(x, item) of vectors of one. */
static pith__value *nchwc_with_number(pith__node *at, const char *op_type, pith__value *x,
                                      int64_t item) {
    return pith__compose_list(at, op_type, x, &item, 1);
}

/* Into blocks: the channels are filled up with zeros. */
static pith_status nchwc_upgrade_into(pith__node *node, pith_error *err) {
    int64_t block;
    PITH_TRY(pith__compose_require(node, 0x1, 1, err));
    PITH_TRY(nchwc_block_of(node, &block, err));
    pith__value *x = pith__node_input(node, 0),
                *zero = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 0 }, 1),
                *axis = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 1 }, 1);
    if (pith__node_int(node, "channels_last", 0))
        x = pith__compose_turn(node, x, (int64_t[]){ 0, 3, 1, 2 }, 4);
    pith__value *channels = nchwc_with_number(node, "Gather", pith__compose1(node, "Shape", x), 1);
    pith__value *blocks =
        nchwc_with_number(node, "Div", nchwc_with_number(node, "Add", channels, block - 1), block);
    pith__value *more =
        pith__compose2(node, "Sub", nchwc_with_number(node, "Mul", blocks, block), channels);
    pith__value *pads =
        zero ? pith__with_int(pith__compose2(node, "Concat", zero, more), "axis", 0) : NULL;
    if (!x || !pads || !axis) return pith__fail_memory(err, 0);
    return pith__compose_become(
        node, pith__compose(node, "", "Pad", (pith__value *[]){ x, pads, NULL, axis }, 4, 1), err);
}

/* The blocks may hold more channels than there are: those of padding are cut off. */
static pith_status nchwc_upgrade_out_of(pith__node *node, pith_error *err) {
    PITH_TRY(pith__compose_require(node, 0x1, 1, err));
    int64_t channels = pith__node_int(node, "channels", 0);
    pith__value *from = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 0 }, 1),
                *to = pith__graph_add_i64s(node->graph, PITH_STR(""), &channels, 1),
                *axis = pith__graph_add_i64s(node->graph, PITH_STR(""), (int64_t[]){ 1 }, 1);
    if (!from || !to || !axis) return pith__fail_memory(err, 0);
    pith__value *y = pith__compose(
        node, "", "Slice", (pith__value *[]){ pith__node_input(node, 0), from, to, axis }, 4, 1);
    if (pith__node_int(node, "channels_last", 0))
        y = pith__compose_turn(node, y, (int64_t[]){ 0, 2, 3, 1 }, 4);
    return pith__compose_become(node, y, err);
}

#define BLOCKED(symbol, name, max, upgrade, attrs_)                                                \
    PITH_OP_COMPOSED(symbol, "com.microsoft.nchwc", name, 1, max, 1, upgrade, NULL, .attrs = attrs_)
BLOCKED(nchwc_AveragePool, "AveragePool", 1, nchwc_upgrade_plain,
        "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
        "ceil_mode bool = 0; count_include_pad bool = 0; dilations ints 1..; "
        "kernel_shape ints! 1..; pads ints; strides ints 1..")
BLOCKED(nchwc_GlobalAveragePool, "GlobalAveragePool", 1, nchwc_upgrade_plain, "")
BLOCKED(nchwc_GlobalMaxPool, "GlobalMaxPool", 1, nchwc_upgrade_plain, "")
BLOCKED(nchwc_MaxPool, "MaxPool", 1, nchwc_upgrade_plain,
        "auto_pad string NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "
        "ceil_mode bool = 0; dilations ints 1..; kernel_shape ints! 1..; pads ints; "
        "storage_order bool = 0; strides ints 1..")
BLOCKED(nchwc_ReorderInput, "ReorderInput", 1, nchwc_upgrade_into, "channels_last bool = 0")
BLOCKED(nchwc_ReorderOutput, "ReorderOutput", 1, nchwc_upgrade_out_of,
        "channels int 0.. = 0; channels_last bool = 0")
BLOCKED(nchwc_Upsample, "Upsample", 1, nchwc_upgrade_upsample,
        "coordinate_transformation_mode string "
        "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn|tf_crop_and_"
        "resize = asymmetric; "
        "mode string nearest|linear = nearest; scales ints 1..")
#define CONV_ATTRS                                                                                 \
    "activation string; activation_params floats; auto_pad string "                                \
    "NOTSET|SAME_UPPER|SAME_LOWER|VALID| = NOTSET; "                                               \
    "dilations ints 1..; group int 1.. = 1; kernel_shape ints 1..; pads ints; strides ints 1.."
PITH_OP_COMPOSED(nchwc_Conv, "com.microsoft.nchwc", "Conv", 2, 4, 1, nchwc_upgrade_conv,
                 "blocks of 8 or 16 channels: what the weights show, else what ONNX Runtime uses "
                 "on this machine",
                 .attrs = CONV_ATTRS)
