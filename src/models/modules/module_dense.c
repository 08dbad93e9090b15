/* module_dense.c - Dense: a linear layer with an activation, on a text's vector or on the vectors
 * of its tokens. Source: sentence-transformers 6, modules/dense.py. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

/* Classes of torch.nn that take no argument; op: of the graph's node. */
static const struct {
    const char *name, *op;
    pith__step_activation activation;
} activations[] = {
    { "Identity", NULL, PITH_STEP_IDENTITY },    { "Tanh", "Tanh", PITH_STEP_TANH },
    { "GELU", "Gelu", PITH_STEP_GELU },          { "ReLU", "Relu", PITH_STEP_RELU },
    { "Sigmoid", "Sigmoid", PITH_STEP_SIGMOID }, { "SiLU", "Swish", PITH_STEP_SILU },
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

typedef struct module_dense {
    pith__vector_step step;
    bool has_bias;
    size_t activation; /* of the list above */
    pith__module_places places;
} module_dense;

static void dense_read_activation(pith__json *j, module_dense *d) {
    static const char package[] = "torch.nn.modules.";
    if (pith__json_null(j)) { /* what the constructor takes None for */
        d->activation = 0;
        return;
    }
    pith_str path = pith__json_string(j);
    size_t dot = path.size, i = 0;
    while (dot && path.data[dot - 1] != '.') dot--;
    pith_str name = { path.data + dot, path.size - dot };
    while (i < ACTIVATIONS && !pith__str_is(name, activations[i].name)) i++;
    bool known = i < ACTIVATIONS && path.size > sizeof package &&
                 !memcmp(path.data, package, sizeof package - 1);
    d->activation = i;
    if (!known && !j->failed)
        pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                        "activation_function '" PITH_STR_FMT
                        "' is not supported; supported are Identity, Tanh, GELU, ReLU, Sigmoid and "
                        "SiLU of torch.nn",
                        PITH_STR_ARG(path));
}

static void dense_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_dense *d = to;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "in_features"))
            d->step.in = pith__json_int(j);
        else if (pith__str_is(key, "out_features"))
            d->step.out = pith__json_int(j);
        else if (pith__str_is(key, "bias"))
            d->has_bias = pith__json_bool(j);
        else if (pith__str_is(key, "use_residual"))
            d->step.residual = pith__json_bool(j);
        else if (pith__str_is(key, "activation_function"))
            dense_read_activation(j, d);
        else if (!pith__module_place(j, r, key, &d->places))
            pith__json_skip(j);
    }
    const int64_t in = d->step.in, out = d->step.out;
    if (!j->failed &&
        (in < 1 || in > PITH_MODULE_WIDTH_MAX || out < 1 || out > PITH_MODULE_WIDTH_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "in_features is %lld and out_features %lld; each must be from 1 to %d",
                        (long long)in, (long long)out, PITH_MODULE_WIDTH_MAX);
}

/* x [batch, sequence, in] times the transposed weight. */
static pith__value *dense_product(pith__graph *graph, pith__value *x, const float *weight,
                                  int64_t in, int64_t out) {
    const pith_str place = PITH_STR("Dense");
    pith__value *w = pith__row_constant(graph, weight, 2, (int64_t[]){ out, in });
    w = pith__row_node(graph, place, "Transpose", &w, 1);
    if (!w || pith__node_set_ints(w->producer, "perm", (const int64_t[]){ 1, 0 }, 2)) return NULL;
    return pith__row_node(graph, place, "MatMul", (pith__value *[]){ x, w }, 2);
}

static pith__value *dense_append(pith__graph *graph, pith__value *rows, const void *module,
                                 pith_error *err) {
    const module_dense *d = module;
    const pith__vector_step *s = &d->step;
    const pith_str place = PITH_STR("Dense");
    if (!pith__row_width_fits(rows, s->in, "Dense", err)) return NULL;
    pith__value *y = dense_product(graph, rows, s->weight, s->in, s->out);
    if (s->bias) {
        pith__value *bias = pith__row_constant(graph, s->bias, 1, &s->out);
        y = pith__row_node(graph, place, "Add", (pith__value *[]){ y, bias }, 2);
    }
    if (activations[d->activation].op)
        y = pith__row_node(graph, place, activations[d->activation].op, &y, 1);
    if (!s->residual) return y;
    pith__value *x = s->shortcut ? dense_product(graph, rows, s->shortcut, s->in, s->out) : rows;
    return pith__row_node(graph, place, "Add", (pith__value *[]){ y, x }, 2);
}

static pith_status dense_weights(pith__module_reader *r, module_dense *d, const char **file,
                                 pith_str folder) {
    pith__weights weights;
    pith__vector_step *s = &d->step;
    const int64_t dims[] = { s->out, s->in };
    PITH_TRY(pith__module_weights(&weights, file, r, folder));
    PITH_TRY(pith__module_tensor(&s->weight, r, &weights, *file, "linear.weight", 2, dims));
    if (d->has_bias)
        PITH_TRY(pith__module_tensor(&s->bias, r, &weights, *file, "linear.bias", 1, dims));
    if (s->residual && s->in != s->out)
        PITH_TRY(pith__module_tensor(&s->shortcut, r, &weights, *file, "residual.weight", 2, dims));
    return PITH_OK;
}

static pith_status module_dense_read(pith__module_reader *r, pith_str folder) {
    const char *file;
    module_dense *d = pith__arena_array(r->arena, 1, sizeof *d);
    if (!d) return pith__fail_memory(r->err, sizeof *d);
    d->step.kind = PITH_STEP_DENSE;
    d->has_bias = true;
    d->activation = 1; /* Tanh, if the config names none */
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", dense_read_config, d));
    PITH_TRY(pith__module_check_places(r, folder, &d->places));
    PITH_TRY(dense_weights(r, d, &file, folder));
    d->step.activation = activations[d->activation].activation;
    if (d->places.rows)
        PITH_TRY(pith__module_add_rows(r, &(pith__row_step){ d, dense_append, PITH_STR("Dense") }));
    else
        PITH_TRY(pith__module_add_step(r, &d->step));
    return pith__module_decide(r, "module", folder, file, "Dense%s, %lld to %lld, %s%s%s",
                               d->places.rows ? " on tokens" : "", (long long)d->step.in,
                               (long long)d->step.out, activations[d->activation].name,
                               d->has_bias ? "" : ", no bias",
                               d->step.residual ? ", residual" : "");
}

static const pith__module_keys dense_keys = {
    .file = "config.json",
    .reads = "in_features out_features bias activation_function use_residual module_input_name "
             "module_output_name"
};
const pith__module_class pith__module_class_dense = { .name = "Dense",
                                                      .read = module_dense_read,
                                                      .keys = &dense_keys };
