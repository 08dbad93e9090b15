/* op_ml_linear_svm.c - LinearClassifier, LinearRegressor, SVMClassifier and SVMRegressor of
 * ai.onnx.ml, in double.
 *
 * A linear model is the scalar product of the row with one vector per class. A support vector
 * machine replaces it by a kernel (linear, polynomial, radial, sigmoid) with its support vectors.
 * SVMClassifier lets each pair of classes vote; with prob_a and prob_b its scores are the
 * probabilities that agree best with those of the pairs (the method of libsvm). Where the standard
 * leaves labels and scores of two classes open, ONNX Runtime is followed. Sources: ONNX operators
 * of these names; T.-F. Wu, C.-J. Lin, R. Weng, Probability estimates for multi-class
 * classification by pairwise coupling. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/ml_scores.h"

#define ML "ai.onnx.ml"

typedef enum kernel { LINEAR, POLY, RBF, SIGMOID } kernel;

typedef struct machine {
    pith__labels labels; /* of a classifier */
    pith__post post;
    kernel kernel;
    double gamma, offset, degree;
    const float *coefficients, *vectors, *bias, *prob_a, *prob_b;
    const int64_t *per_class;
    size_t coefficient_count, bias_count;
    int64_t classes, features, support; /* support: vectors; 0: the model is linear */
    int64_t scores;                     /* of a row in the output */
    bool one_class, positive;           /* positive: no coefficient is negative */
} machine;

static pith_status machine_bad_sizes(pith_error *err) {
    return pith__fail(err, PITH_ERR_ARGUMENT, "the attributes' sizes do not fit each other");
}

/* kernel_params are gamma, coef0, degree. */
static pith_status machine_read_kernel(machine *m, const pith__node *node, pith_error *err) {
    static const char *const names[] = { "LINEAR", "POLY", "RBF", "SIGMOID" };
    pith_str name = pith__node_str(node, "kernel_type", "LINEAR");
    size_t count;
    const float *p = pith__node_floats(node, "kernel_params", &count);
    if (p && count >= 3)
        m->gamma = (double)p[0], m->offset = (double)p[1], m->degree = (double)p[2];
    for (int i = 0; i < 4; i++)
        if (pith__str_is(name, names[i])) return m->kernel = (kernel)i, PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "kernel_type '" PITH_STR_FMT "' is unknown",
                      PITH_STR_ARG(name));
}

/* The kernel of a row with one vector. */
static double machine_with_kernel(const machine *m, const double *x, const float *v) {
    double sum = 0;
    for (int64_t i = 0; i < m->features; i++) {
        double d = x[i] - (double)v[i];
        sum += m->kernel == RBF ? d * d : x[i] * (double)v[i];
    }
    switch (m->kernel) {
    case POLY: return pow(m->gamma * sum + m->offset, m->degree);
    case RBF: return exp(-m->gamma * sum);
    case SIGMOID: return tanh(m->gamma * sum + m->offset);
    case LINEAR: break;
    }
    return sum;
}

/* ---- attributes ---- */

/* A classifier has as many classes as intercepts. One class with two labels is a binary model: a
 * score and its complement. */
static pith_status machine_linear_read_linear(machine *m, const pith__node *node, pith_error *err) {
    bool classifier = pith__str_is(node->op_type, "LinearClassifier");
    m->coefficients = pith__node_floats(node, "coefficients", &m->coefficient_count);
    m->bias = pith__node_floats(node, "intercepts", &m->bias_count);
    m->labels = pith__labels_read(node, "classlabels_strings", "classlabels_ints");
    m->classes = classifier ? (int64_t)m->bias_count : pith__node_int(node, "targets", 1);
    if (classifier && !m->classes) m->classes = m->labels.count;
    if (m->classes < 1 || !m->coefficients || m->coefficient_count % (size_t)m->classes ||
        (m->bias && m->bias_count < (size_t)m->classes) ||
        (classifier && m->classes > 1 && m->labels.count < m->classes))
        return machine_bad_sizes(err);
    m->features = (int64_t)m->coefficient_count / m->classes;
    m->scores = classifier && m->classes == 1 && m->labels.count == 2 ? 2 : m->classes;
    return pith__post_read(&m->post, node, err);
}

/* Without support vectors the coefficients are a linear model. */
static pith_status machine_read_regressor(machine *m, const pith__node *node, pith_error *err) {
    size_t count;
    m->coefficients = pith__node_floats(node, "coefficients", &m->coefficient_count);
    m->bias = pith__node_floats(node, "rho", &m->bias_count);
    m->vectors = pith__node_floats(node, "support_vectors", &count);
    m->support = pith__node_int(node, "n_supports", 0);
    m->one_class = pith__node_int(node, "one_class", 0) != 0;
    m->scores = m->classes = 1;
    if (m->support < 0 || !m->coefficients || !m->bias ||
        m->coefficient_count < (size_t)m->support ||
        (m->support && (!m->vectors || count % (size_t)m->support)))
        return machine_bad_sizes(err);
    m->features = m->support ? (int64_t)count / m->support : (int64_t)m->coefficient_count;
    PITH_TRY(machine_read_kernel(m, node, err));
    if (!m->support) m->kernel = LINEAR;
    return pith__post_read(&m->post, node, err);
}

/* Coefficients are [classes - 1, support vectors], vectors sorted by class; rho, prob_a and prob_b
 * have one number per pair of classes. All sizes are checked here, since they come from the file.
 */
static pith_status machine_read_classifier(machine *m, const pith__node *node, pith_error *err) {
    size_t vectors, classes, counts[2];
    m->coefficients = pith__node_floats(node, "coefficients", &m->coefficient_count);
    m->bias = pith__node_floats(node, "rho", &m->bias_count);
    m->vectors = pith__node_floats(node, "support_vectors", &vectors);
    m->per_class = pith__node_ints(node, "vectors_per_class", &classes);
    m->prob_a = pith__node_floats(node, "prob_a", &counts[0]);
    m->prob_b = pith__node_floats(node, "prob_b", &counts[1]);
    m->labels = pith__labels_read(node, "classlabels_strings", "classlabels_ints");
    m->classes = m->labels.count;
    if (m->classes < 1 || m->classes > UINT16_MAX || !m->coefficients || !m->coefficient_count ||
        !m->bias)
        return machine_bad_sizes(err);
    for (size_t i = 0; i < classes; i++) {
        if (m->per_class[i] < 0 || pith__add_overflows(m->support, m->per_class[i], &m->support))
            return machine_bad_sizes(err);
    }
    if (!counts[0]) m->prob_a = NULL;
    size_t pairs = (size_t)(m->classes * (m->classes - 1) / 2);
    if (m->support) {
        bool fits = (int64_t)classes == m->classes && vectors &&
                    vectors % (size_t)m->support == 0 && m->bias_count >= pairs &&
                    m->coefficient_count / (size_t)m->support >= (size_t)m->classes - 1 &&
                    m->classes > 1 && (!m->prob_a || (counts[0] >= pairs && counts[1] >= pairs));
        if (!fits) return machine_bad_sizes(err);
        m->features = (int64_t)vectors / m->support;
    } else {
        if (m->coefficient_count % (size_t)m->classes) return machine_bad_sizes(err);
        m->features = (int64_t)m->coefficient_count / m->classes;
    }
    m->positive = true;
    for (size_t i = 0; i < m->coefficient_count; i++) m->positive &= m->coefficients[i] >= 0;
    m->scores = m->classes > 2 ? (int64_t)pairs : 2;
    if (!m->support || m->prob_a) m->scores = m->classes;
    PITH_TRY(machine_read_kernel(m, node, err));
    if (!m->support) m->kernel = LINEAR;
    return pith__post_read(&m->post, node, err);
}

static pith_status machine_read(machine *m, const pith__node *node, pith_error *err) {
    *m = (machine){ .kernel = LINEAR };
    if (node->op_type.data[0] == 'L') return machine_linear_read_linear(m, node, err);
    return pith__str_is(node->op_type, "SVMRegressor") ? machine_read_regressor(m, node, err)
                                                       : machine_read_classifier(m, node, err);
}

/* ---- the operators' common parts ---- */

static bool machine_classifies(const pith__node *node) {
    return pith__str_is(node->op_type, "LinearClassifier") ||
           pith__str_is(node->op_type, "SVMClassifier");
}

/* Labels first if it classifies, then scores. */
static pith_status machine_linear_infer(pith__infer *c) {
    machine m;
    const pith__type *x = c->in[0];
    PITH_TRY(machine_read(&m, c->node, c->err));
    if (x->rank == 0 || x->rank > 2)
        return pith__op_fail(c, "the input has %d dimensions", x->rank);
    if (x->dtype && x->dtype != PITH_F32 && x->dtype != PITH_F64 && x->dtype != PITH_I32 &&
        x->dtype != PITH_I64)
        return pith__op_fail(c, "an input of %s is not supported", pith__dtype_name(x->dtype));
    pith__dim columns = x->rank > 0 ? x->dims[x->rank - 1] : PITH_DIM_UNKNOWN;
    if (pith__dim_known(columns) && columns != m.features)
        return pith__op_fail(c, "rows of %lld numbers, the model has %lld", (long long)columns,
                             (long long)m.features);
    pith__dim rows = x->rank == 2 ? x->dims[0] : 1;
    if (x->rank < 0) rows = PITH_DIM_UNKNOWN;
    int scores = machine_classifies(c->node);
    if (scores) pith__type_set(&c->out[0], m.labels.strings ? PITH_STRING : PITH_I64, 1, &rows);
    if (c->out_count > scores)
        pith__type_set(&c->out[scores], PITH_F32, 2, (pith__dim[]){ rows, m.scores });
    return PITH_OK;
}

static pith_status machine_linear_prepare(pith__prepare *c) {
    machine *m = pith__arena_array(c->arena, 1, sizeof *m);
    if (!m) return pith__fail_memory(c->err, sizeof *m);
    c->state = m;
    return machine_read(m, c->node, c->err);
}

/* Doubles: a row, kernels, scores, probabilities of pairs and what finding the classes' takes. */
static pith_status machine_linear_scratch(const pith__infer *c, const void *state, int threads,
                                          size_t *bytes) {
    const machine *m = state;
    (void)threads;
    int64_t all, square = m->prob_a ? 2 * m->classes * m->classes : 0;
    if (pith__add_overflows(m->features + m->support,
                            m->classes * m->classes + square + 4 * m->classes + 8, &all) ||
        pith__mul_overflows((size_t)all, sizeof(double), bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

static int64_t machine_linear_largest(const double *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

/* ---- one row each; y has room for the scores, rest for more ---- */

static void machine_linear_scores(const machine *m, const double *x, double *y, bool one_bias) {
    for (int64_t k = 0; k < m->classes; k++) {
        double bias = 0;
        if (m->bias) bias = (double)m->bias[one_bias ? 0 : k];
        y[k] = machine_with_kernel(m, x, m->coefficients + k * m->features) + bias;
    }
}

static int64_t machine_linear_row(const machine *m, const double *x, double *y, double *rest) {
    (void)rest;
    machine_linear_scores(m, x, y, false);
    int64_t best = m->classes == 1 ? y[0] > 0 : machine_linear_largest(y, m->classes);
    if (m->scores > m->classes)
        pith__post_second(m->post, y, 1);
    else
        pith__post_apply(m->post, y, m->classes);
    return best;
}

static int64_t machine_regress_row(const machine *m, const double *x, double *y, double *rest) {
    (void)rest;
    double sum = (double)m->bias[0];
    for (int64_t k = 0; k < m->support; k++)
        sum += (double)m->coefficients[k] * machine_with_kernel(m, x, m->vectors + k * m->features);
    if (!m->support) sum += machine_with_kernel(m, x, m->coefficients);
    y[0] = sum;
    if (m->one_class) y[0] = sum > 0 ? 1 : -1;
    if (!m->one_class) pith__post_apply(m->post, y, 1);
    return 0;
}

/* p: the classes' probabilities that agree best with r[i * n + j], those of class i against j. q: n
 * * n + n. */
static void machine_couple(int64_t n, const double *r, double *p, double *q) {
    double *qp = q + n * n;
    for (int64_t t = 0; t < n; t++) {
        p[t] = 1.0 / (double)n;
        q[t * n + t] = 0;
        for (int64_t j = 0; j < n; j++) {
            if (j == t) continue;
            q[t * n + t] += r[j * n + t] * r[j * n + t];
            q[t * n + j] = -r[j * n + t] * r[t * n + j];
        }
    }
    for (int64_t round = 0; round < (n > 100 ? n : 100); round++) {
        double total = 0, error = 0;
        for (int64_t t = 0; t < n; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < n; j++) qp[t] += q[t * n + j] * p[j];
            total += p[t] * qp[t];
        }
        for (int64_t t = 0; t < n; t++) error = fmax(error, fabs(qp[t] - total));
        if (error < 0.005 / (double)n) return;
        for (int64_t t = 0; t < n; t++) {
            double step = (total - qp[t]) / q[t * n + t];
            p[t] += step;
            total = (total + step * (step * q[t * n + t] + 2 * qp[t])) / ((1 + step) * (1 + step));
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + step * q[t * n + j]) / (1 + step);
                p[j] /= 1 + step;
            }
        }
    }
}

/* Scores of the pairs of classes into y, votes into votes. */
static void machine_vote(const machine *m, const double *x, double *y, double *votes,
                         double *kernels) {
    for (int64_t k = 0; k < m->support; k++)
        kernels[k] = machine_with_kernel(m, x, m->vectors + k * m->features);
    for (int64_t i = 0; i < m->classes; i++) votes[i] = 0;
    for (int64_t i = 0, at_i = 0, pair = 0; i < m->classes; at_i += m->per_class[i++]) {
        for (int64_t j = i + 1, at_j = at_i + m->per_class[i]; j < m->classes;
             at_j += m->per_class[j++], pair++) {
            double sum = 0;
            for (int64_t k = at_i; k < at_i + m->per_class[i]; k++)
                sum += (double)m->coefficients[(j - 1) * m->support + k] * kernels[k];
            for (int64_t k = at_j; k < at_j + m->per_class[j]; k++)
                sum += (double)m->coefficients[i * m->support + k] * kernels[k];
            y[pair] = sum + (double)m->bias[pair];
            votes[y[pair] > 0 ? i : j]++;
        }
    }
}

/* rest has room for votes, kernels and pairs. Probabilities of pairs are kept off 0 and 1, as in
 * libsvm. */
static int64_t machine_classify_row(const machine *m, const double *x, double *y, double *rest) {
    int64_t n = m->classes, best;
    double most = 0;
    if (!m->support) {
        machine_linear_scores(m, x, y, true);
        best = machine_linear_largest(y, n);
        most = y[best];
        pith__post_apply(m->post, y, n);
    } else {
        double *votes = rest, *kernels = votes + n, *pairs = kernels + m->support;
        double *scores = m->prob_a ? pairs + n * n : y;
        machine_vote(m, x, scores, votes, kernels);
        best = machine_linear_largest(votes, n);
        if (m->prob_a) {
            for (int64_t i = 0, pair = 0; i < n; i++) {
                for (int64_t j = i + 1; j < n; j++, pair++) {
                    double p =
                        1 /
                        (1 + exp(scores[pair] * (double)m->prob_a[pair] + (double)m->prob_b[pair]));
                    p = fmin(fmax(p, 1e-7), 1 - 1e-7);
                    pairs[i * n + j] = p;
                    pairs[j * n + i] = 1 - p;
                }
            }
        }
        if (m->prob_a) machine_couple(n, pairs, y, pairs + n * n);
        if (m->prob_a || n > 2)
            pith__post_apply(m->post, y, m->scores);
        else
            pith__post_second(m->post, y, 0);
    }
    bool second = n == 2 && !m->prob_a && (m->positive ? most >= 0.5 : most > 0);
    return second ? 1 : best;
}

/* Row by row. A binary model without labels gives 0 and 1. */
static pith_status machine_linear_run(pith__run *r) {
    const machine *m = r->state;
    bool labels = machine_classifies(r->node);
    int64_t (*row_scores)(const machine *, const double *, double *, double *) =
        labels ? machine_classify_row : machine_regress_row;
    if (r->node->op_type.data[0] == 'L') row_scores = machine_linear_row;
    int64_t rows = r->in[0]->rank == 2 ? r->in[0]->dims[0] : 1;
    pith_tensor *z = r->out_count > labels ? r->out[labels] : NULL;
    double *x = r->scratch, *y = x + m->features, *rest = y + m->classes * m->classes + 2;
    for (int64_t row = 0; row < rows; row++) {
        PITH_TRY(pith__run_step(r, row * 32));
        pith__convert(x, PITH_F64, 0, r->in[0]->data, r->in[0]->dtype, row * m->features,
                      m->features, true);
        int64_t best = row_scores(m, x, y, rest);
        if (z) pith__convert(z->data, z->dtype, row * m->scores, y, PITH_F64, 0, m->scores, true);
        if (!labels || !r->out[0]) continue;
        if (m->labels.count > best && (m->classes > 1 || m->labels.count == 2))
            pith__labels_put(&m->labels, r->out[0], row, best);
        else if (m->labels.strings)
            ((pith_str *)r->out[0]->data)[row] = best ? PITH_STR("1") : PITH_STR("0");
        else
            ((int64_t *)r->out[0]->data)[row] = best;
    }
    return PITH_OK;
}

#define MACHINE(symbol, name_, types_, outputs, attrs_)                                            \
    const pith__op pith__op_##symbol = { .domain = ML,                                             \
                                         .name = name_,                                            \
                                         .since = 1,                                               \
                                         .min_inputs = 1,                                          \
                                         .max_inputs = 1,                                          \
                                         .max_outputs = outputs,                                   \
                                         .types = types_,                                          \
                                         .newest = 1,                                              \
                                         .attrs = attrs_,                                          \
                                         .infer = machine_linear_infer,                            \
                                         .prepare = machine_linear_prepare,                        \
                                         .scratch = machine_linear_scratch,                        \
                                         .run = machine_linear_run };
MACHINE(ml_LinearClassifier, "LinearClassifier", "g", 2,
        "classlabels_ints ints any; classlabels_strings strings; "
        "coefficients floats!; intercepts floats; multi_class bool = 0; "
        "post_transform string NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT = NONE")
MACHINE(ml_LinearRegressor, "LinearRegressor", "g", 1,
        "coefficients floats; intercepts floats; "
        "post_transform string NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT = NONE; "
        "targets int 1.. = 1")
MACHINE(ml_SVMClassifier, "SVMClassifier", "g", 2,
        "classlabels_ints ints any; classlabels_strings strings; "
        "coefficients floats; kernel_params floats; "
        "kernel_type string LINEAR|POLY|RBF|SIGMOID = LINEAR; "
        "post_transform string NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT = NONE; "
        "prob_a floats; prob_b floats; rho floats; support_vectors floats; "
        "vectors_per_class ints 0..")
MACHINE(ml_SVMRegressor, "SVMRegressor", "g", 1,
        "coefficients floats; kernel_params floats; "
        "kernel_type string LINEAR|POLY|RBF|SIGMOID = LINEAR; "
        "n_supports int 0.. = 0; one_class bool = 0; "
        "post_transform string NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT = NONE; "
        "rho floats; support_vectors floats")
