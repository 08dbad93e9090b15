/* module_cnn.c - CNN: convolutions over the vectors of tokens, side by side. Kernels of an odd
 * length and stride 1 keep one vector per token; others are refused. sentence-transformers lets the
 * padding of a batch into the last tokens' windows; here a text is computed alone. Source:
 * sentence-transformers 6, modules/cnn.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

enum { CNN_KERNELS_MAX = 16, CNN_LENGTH_MAX = 255 };

typedef struct module_cnn {
    int64_t in, out, sizes[CNN_KERNELS_MAX];
    size_t count;
    const float *weights[CNN_KERNELS_MAX], *biases[CNN_KERNELS_MAX];
} module_cnn;

static void cnn_read_sizes(pith__json *j, module_cnn *c) {
    c->count = 0;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        int64_t size = pith__json_int(j);
        if (!j->failed && (size < 1 || size > CNN_LENGTH_MAX || size % 2 == 0))
            pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                            "a kernel size of %lld; odd sizes up to %d are supported",
                            (long long)size, CNN_LENGTH_MAX);
        else if (!j->failed && c->count == CNN_KERNELS_MAX)
            pith__json_fail(j, PITH_ERR_UNSUPPORTED, "more than %d kernel sizes", CNN_KERNELS_MAX);
        else if (!j->failed)
            c->sizes[c->count++] = size;
    }
}

static void cnn_read_strides(pith__json *j) {
    if (pith__json_null(j)) return;
    pith__json_array(j);
    while (pith__json_next_item(j))
        if (pith__json_int(j) != 1 && !j->failed)
            pith__json_fail(j, PITH_ERR_UNSUPPORTED, "strides other than 1 are not supported");
}

static void cnn_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_cnn *c = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "in_embedding_dimension") ||
            pith__str_is(key, "in_word_embedding_dimension"))
            c->in = pith__json_int(j);
        else if (pith__str_is(key, "out_channels"))
            c->out = pith__json_int(j);
        else if (pith__str_is(key, "kernel_sizes"))
            cnn_read_sizes(j, c);
        else if (pith__str_is(key, "stride_sizes"))
            cnn_read_strides(j);
        else
            pith__json_skip(j);
    }
    if (!j->failed && (c->in < 1 || c->in > PITH_MODULE_WIDTH_MAX || c->out < 1 ||
                       c->out > PITH_MODULE_WIDTH_MAX || !c->count))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "in_embedding_dimension is %lld, out_channels %lld, with %zu kernels",
                        (long long)c->in, (long long)c->out, c->count);
}

static pith__value *cnn_turn(pith__graph *graph, pith__value *x) {
    pith__value *y = pith__row_node(graph, PITH_STR("CNN"), "Transpose", &x, 1);
    return y && !pith__node_set_ints(y->producer, "perm", (const int64_t[]){ 0, 2, 1 }, 3) ? y
                                                                                           : NULL;
}

static pith__value *cnn_convolve(pith__graph *graph, const module_cnn *c, size_t i,
                                 pith__value *x) {
    const int64_t size = c->sizes[i], pads[] = { size / 2, size / 2 };
    pith__value *w =
        pith__row_constant(graph, c->weights[i], 3, (int64_t[]){ c->out, c->in, size });
    pith__value *b = pith__row_constant(graph, c->biases[i], 1, &c->out);
    pith__value *y =
        pith__row_node(graph, PITH_STR("CNN"), "Conv", (pith__value *[]){ x, w, b }, 3);
    return y && !pith__node_set_ints(y->producer, "pads", pads, 2) ? y : NULL;
}

static pith__value *cnn_append(pith__graph *graph, pith__value *rows, const void *module,
                               pith_error *err) {
    const module_cnn *c = module;
    pith__value *parts[CNN_KERNELS_MAX], *x = cnn_turn(graph, rows);
    if (!pith__row_width_fits(rows, c->in, "CNN", err)) return NULL;
    for (size_t i = 0; i < c->count; i++) parts[i] = cnn_convolve(graph, c, i, x);
    pith__value *all = pith__row_node(graph, PITH_STR("CNN"), "Concat", parts, (int)c->count);
    return all && !pith__node_set_int(all->producer, "axis", 1) ? cnn_turn(graph, all) : NULL;
}

static pith_status cnn_weights(pith__module_reader *r, module_cnn *c, const char **file,
                               pith_str folder) {
    pith__weights weights;
    PITH_TRY(pith__module_weights(&weights, file, r, folder));
    for (size_t i = 0; i < c->count; i++) {
        const int64_t dims[] = { c->out, c->in, c->sizes[i] };
        pith_str weight = pith__arena_printf(r->arena, "convs.%zu.weight", i);
        pith_str bias = pith__arena_printf(r->arena, "convs.%zu.bias", i);
        if (!weight.data || !bias.data) return pith__fail_memory(r->err, 32);
        PITH_TRY(pith__module_tensor(&c->weights[i], r, &weights, *file, weight.data, 3, dims));
        PITH_TRY(pith__module_tensor(&c->biases[i], r, &weights, *file, bias.data, 1, dims));
    }
    return PITH_OK;
}

static pith_status cnn_read(pith__module_reader *r, pith_str folder) {
    const char *file;
    module_cnn *c = pith__arena_array(r->arena, 1, sizeof *c);
    if (!c) return pith__fail_memory(r->err, sizeof *c);
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    PITH_TRY(pith__module_json(NULL, r, folder, "cnn_config.json", cnn_read_config, c));
    PITH_TRY(cnn_weights(r, c, &file, folder));
    PITH_TRY(pith__module_add_rows(r, &(pith__row_step){ c, cnn_append, PITH_STR("CNN") }));
    return pith__module_decide(r, "module", folder, file, "CNN, %lld to %zu times %lld",
                               (long long)c->in, c->count, (long long)c->out);
}

static const pith__module_keys cnn_keys = {
    .file = "cnn_config.json",
    .reads =
        "in_embedding_dimension in_word_embedding_dimension out_channels kernel_sizes stride_sizes"
};
const pith__module_class pith__module_class_cnn = { .name = "CNN",
                                                    .read = cnn_read,
                                                    .keys = &cnn_keys };
