/* recurrent.c - see recurrent.h. */
#include "engine/ops/shared/recurrent.h"

#include <math.h>
#include <string.h>

static double cell_affine(double x, double a, double b) { return a * x + b; }
static double cell_elu(double x, double a, double b) {
    return (void)b, x >= 0 ? x : a * (exp(x) - 1);
}
static double cell_hard_sigmoid(double x, double a, double b) {
    return fmin(fmax(a * x + b, 0), 1);
}
static double cell_leaky_relu(double x, double a, double b) { return (void)b, x >= 0 ? x : a * x; }
static double cell_recurrent_relu(double x, double a, double b) {
    return (void)a, (void)b, x > 0 ? x : 0;
}
static double cell_scaled_tanh(double x, double a, double b) { return a * tanh(b * x); }
static double cell_sigmoid(double x, double a, double b) {
    return (void)a, (void)b, 1 / (1 + exp(-x));
}
static double cell_softplus(double x, double a, double b) {
    return (void)a, (void)b, log1p(exp(x));
}
static double cell_softsign(double x, double a, double b) {
    return (void)a, (void)b, x / (1 + fabs(x));
}
static double cell_tanh_of(double x, double a, double b) { return (void)a, (void)b, tanh(x); }
static double cell_thresholded_relu(double x, double a, double b) { return (void)b, x > a ? x : 0; }

static const struct {
    const char *name;
    double (*f)(double, double, double);
    double alpha, beta; /* defaults */
} known_activations[] = {
    { "affine", cell_affine, 1, 0 },
    { "elu", cell_elu, 1, 0 },
    { "hardsigmoid", cell_hard_sigmoid, 0.2, 0.5 },
    { "leakyrelu", cell_leaky_relu, 0.01, 0 },
    { "relu", cell_recurrent_relu, 0, 0 },
    { "scaledtanh", cell_scaled_tanh, 1, 1 },
    { "sigmoid", cell_sigmoid, 0, 0 },
    { "softplus", cell_softplus, 0, 0 },
    { "softsign", cell_softsign, 0, 0 },
    { "tanh", cell_tanh_of, 0, 0 },
    { "thresholdedrelu", cell_thresholded_relu, 1, 0 },
};

/* Names are compared without case, as ONNX Runtime does. */
static pith_status cell_find_activation(pith__cell_fn *out, pith_str name, pith_error *err) {
    char lower[32] = { 0 };
    for (size_t i = 0; i < name.size && i < sizeof lower - 1; i++)
        lower[i] =
            (char)(name.data[i] >= 'A' && name.data[i] <= 'Z' ? name.data[i] + 32 : name.data[i]);
    for (size_t i = 0; i < sizeof known_activations / sizeof *known_activations; i++) {
        if (strcmp(lower, known_activations[i].name) != 0) continue;
        *out = (pith__cell_fn){ known_activations[i].f, known_activations[i].alpha,
                                known_activations[i].beta };
        return PITH_OK;
    }
    return pith__fail(err, PITH_ERR_UNSUPPORTED, "activation '" PITH_STR_FMT "' is unknown",
                      PITH_STR_ARG(name));
}

bool pith__cell_fn_is(const pith__cell_fn *fn, const char *name) {
    if (strcmp(name, "Tanh") == 0) return fn->f == cell_tanh_of;
    if (strcmp(name, "Sigmoid") == 0) return fn->f == cell_sigmoid;
    return strcmp(name, "Relu") == 0 && fn->f == cell_recurrent_relu;
}

pith_status pith__directions_read(pith__directions *d, const pith__node *node, pith_error *err) {
    pith_str direction = pith__node_str(node, "direction", "forward");
    bool both = pith__str_is(direction, "bidirectional");
    *d = (pith__directions){ both ? 2 : 1, pith__str_is(direction, "reverse") };
    if (both || d->first_is_reverse || pith__str_is(direction, "forward")) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "direction '" PITH_STR_FMT "' is unknown",
                      PITH_STR_ARG(direction));
}

/* activations of all directions one after another; alphas and betas likewise, as far as they are
 * given. */
pith_status pith__cell_fns_read(pith__cell_fn *fns, size_t count, const char *const *defaults,
                                size_t default_count, const pith__node *node, pith_error *err) {
    size_t names, alphas, betas;
    const pith_str *name = pith__node_strs(node, "activations", &names);
    const float *alpha = pith__node_floats(node, "activation_alpha", &alphas);
    const float *beta = pith__node_floats(node, "activation_beta", &betas);
    if (name && names != count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "%zu activations, %zu are needed", names, count);
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(cell_find_activation(
            &fns[i], name ? name[i] : pith__str_of(defaults[i % default_count]), err));
        if (i < alphas) fns[i].alpha = alpha[i];
        if (i < betas) fns[i].beta = beta[i];
    }
    return PITH_OK;
}
