/* test_relational_layers.c - each layer's backward pass in double, against central differences of
 * its forward pass, and the f32 layers against it.
 *
 * A layer takes one vector: what it reads, then its parameters. Its outputs are weighted and added;
 * the gradient of that sum is what is compared. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "tables/network/network_layers.h"

enum {
    CELLS = 9,
    DIM = 32,
    HEADS = 2,
    HEAD = DIM / HEADS,
    FF = 48,
    TEXT = 24,
    NUMBERS_MOST = 20000,
    OUTPUTS_MOST = 400
};
enum { KEYS_MOST = CELLS * CELLS };

/* The keys of the cells; each has itself. */
static uint32_t key_begin[CELLS + 1], key_list[KEYS_MOST];

/* ---- parts, in double ---- */

static void linear(double *y, const double *x, const double *w, const double *bias, int rows,
                   int in, int out) {
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            double sum = bias ? bias[o] : 0;
            for (int i = 0; i < in; i++) sum += w[o * in + i] * x[r * in + i];
            y[r * out + o] = sum;
        }
}

static void linear_back(double *d_x, double *d_w, double *d_bias, const double *x, const double *w,
                        const double *d_y, int rows, int in, int out) {
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            if (d_bias) d_bias[o] += d_y[r * out + o];
            for (int i = 0; i < in; i++) {
                d_x[r * in + i] += w[o * in + i] * d_y[r * out + o];
                d_w[o * in + i] += x[r * in + i] * d_y[r * out + o];
            }
        }
}

static double norm_inverse(const double *x) {
    double squares = 0;
    for (int i = 0; i < DIM; i++) squares += x[i] * x[i];
    return 1 / sqrt(squares / DIM + (double)PITH_NORM_EPSILON);
}

static void norm(double *y, const double *x, const double *gamma, int rows) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < DIM; i++)
            y[r * DIM + i] = x[r * DIM + i] * norm_inverse(x + r * DIM) * gamma[i];
}

static void norm_back(double *d_x, double *d_gamma, const double *x, const double *gamma,
                      const double *d_y, int rows) {
    for (int r = 0; r < rows; r++) {
        const double *own = x + r * DIM, *d = d_y + r * DIM, inverse = norm_inverse(own);
        double dot = 0;
        for (int i = 0; i < DIM; i++) dot += d[i] * gamma[i] * own[i];
        for (int i = 0; i < DIM; i++) {
            d_gamma[i] += d[i] * own[i] * inverse;
            d_x[r * DIM + i] +=
                inverse * d[i] * gamma[i] - inverse * inverse * inverse * own[i] * dot / DIM;
        }
    }
}

/* The softmax of a cell and head over its keys. */
static void shares(double *share, const double *qkv, int cell, int head) {
    const uint32_t from = key_begin[cell], to = key_begin[cell + 1];
    double sum = 0;
    for (uint32_t k = from; k < to; k++) {
        double dot = 0;
        for (int d = 0; d < HEAD; d++)
            dot += qkv[cell * 3 * DIM + head * HEAD + d] *
                   qkv[key_list[k] * 3 * DIM + DIM + head * HEAD + d];
        sum += share[k - from] = exp(dot / sqrt(HEAD));
    }
    for (uint32_t k = from; k < to; k++) share[k - from] /= sum;
}

static void attention(double *y, const double *qkv) {
    double share[KEYS_MOST];
    memset(y, 0, sizeof *y * CELLS * DIM);
    for (int cell = 0; cell < CELLS; cell++)
        for (int head = 0; head < HEADS; head++) {
            shares(share, qkv, cell, head);
            for (uint32_t k = key_begin[cell]; k < key_begin[cell + 1]; k++)
                for (int d = head * HEAD; d < (head + 1) * HEAD; d++)
                    y[cell * DIM + d] +=
                        share[k - key_begin[cell]] * qkv[key_list[k] * 3 * DIM + 2 * DIM + d];
        }
}

static void attention_back(double *d_qkv, const double *qkv, const double *d_y) {
    double share[KEYS_MOST], d_share[KEYS_MOST];
    for (int cell = 0; cell < CELLS; cell++)
        for (int head = 0; head < HEADS; head++) {
            const uint32_t from = key_begin[cell], to = key_begin[cell + 1];
            double mean = 0;
            shares(share, qkv, cell, head);
            for (uint32_t k = from; k < to; k++) {
                d_share[k - from] = 0;
                for (int d = head * HEAD; d < (head + 1) * HEAD; d++) {
                    d_share[k - from] +=
                        d_y[cell * DIM + d] * qkv[key_list[k] * 3 * DIM + 2 * DIM + d];
                    d_qkv[key_list[k] * 3 * DIM + 2 * DIM + d] +=
                        share[k - from] * d_y[cell * DIM + d];
                }
                mean += share[k - from] * d_share[k - from];
            }
            for (uint32_t k = from; k < to; k++) {
                const double d_score = share[k - from] * (d_share[k - from] - mean) / sqrt(HEAD);
                for (int d = head * HEAD; d < (head + 1) * HEAD; d++) {
                    d_qkv[cell * 3 * DIM + d] += d_score * qkv[key_list[k] * 3 * DIM + DIM + d];
                    d_qkv[key_list[k] * 3 * DIM + DIM + d] += d_score * qkv[cell * 3 * DIM + d];
                }
            }
        }
}

static void swiglu(double *y, const double *x) {
    for (int r = 0; r < CELLS; r++)
        for (int i = 0; i < FF; i++) {
            const double gate = x[r * 2 * FF + i];
            y[r * FF + i] = gate / (1 + exp(-gate)) * x[r * 2 * FF + FF + i];
        }
}

static void swiglu_back(double *d_x, const double *x, const double *d_y) {
    for (int r = 0; r < CELLS; r++)
        for (int i = 0; i < FF; i++) {
            const double gate = x[r * 2 * FF + i], up = x[r * 2 * FF + FF + i],
                         s = 1 / (1 + exp(-gate));
            d_x[r * 2 * FF + i] += d_y[r * FF + i] * up * s * (1 + gate * (1 - s));
            d_x[r * 2 * FF + FF + i] += d_y[r * FF + i] * gate * s;
        }
}

/* ---- layers, in double: x is what is read and the parameters ---- */

typedef struct layer {
    const char *name;
    int numbers, outputs;
    void (*forward)(double *y, const double *x);
    void (*backward)(double *d_x, const double *x, const double *d_y);
} layer;

enum {
    AT_WEIGHTS = CELLS * TEXT,
    AT_BIAS = AT_WEIGHTS + DIM * TEXT,
    LINEAR_NUMBERS = AT_BIAS + DIM
};
static void linear_forward(double *y, const double *x) {
    linear(y, x, x + AT_WEIGHTS, x + AT_BIAS, CELLS, TEXT, DIM);
}
static void linear_backward(double *d, const double *x, const double *d_y) {
    linear_back(d, d + AT_WEIGHTS, d + AT_BIAS, x, x + AT_WEIGHTS, d_y, CELLS, TEXT, DIM);
}

enum { AT_GAMMA = CELLS * DIM, NORM_NUMBERS = AT_GAMMA + DIM };
static void norm_forward(double *y, const double *x) { norm(y, x, x + AT_GAMMA, CELLS); }
static void norm_backward(double *d, const double *x, const double *d_y) {
    norm_back(d, d + AT_GAMMA, x, x + AT_GAMMA, d_y, CELLS);
}

enum {
    AT_IN = AT_GAMMA + DIM,
    AT_OUT = AT_IN + 3 * DIM * DIM,
    ATTEND_NUMBERS = AT_OUT + DIM * DIM
};
static void attend_forward(double *y, const double *x) {
    double normed[CELLS * DIM], qkv[CELLS * 3 * DIM], middle[CELLS * DIM];
    norm(normed, x, x + AT_GAMMA, CELLS);
    linear(qkv, normed, x + AT_IN, NULL, CELLS, DIM, 3 * DIM);
    attention(middle, qkv);
    linear(y, middle, x + AT_OUT, NULL, CELLS, DIM, DIM);
    for (int i = 0; i < CELLS * DIM; i++) y[i] += x[i];
}
static void attend_backward(double *d, const double *x, const double *d_y) {
    double normed[CELLS * DIM], qkv[CELLS * 3 * DIM], middle[CELLS * DIM];
    double d_normed[CELLS * DIM] = { 0 }, d_qkv[CELLS * 3 * DIM] = { 0 },
                            d_middle[CELLS * DIM] = { 0 };
    norm(normed, x, x + AT_GAMMA, CELLS);
    linear(qkv, normed, x + AT_IN, NULL, CELLS, DIM, 3 * DIM);
    attention(middle, qkv);
    linear_back(d_middle, d + AT_OUT, NULL, middle, x + AT_OUT, d_y, CELLS, DIM, DIM);
    attention_back(d_qkv, qkv, d_middle);
    linear_back(d_normed, d + AT_IN, NULL, normed, x + AT_IN, d_qkv, CELLS, DIM, 3 * DIM);
    norm_back(d, d + AT_GAMMA, x, x + AT_GAMMA, d_normed, CELLS);
    for (int i = 0; i < CELLS * DIM; i++) d[i] += d_y[i];
}

enum { AT_FEED_OUT = AT_IN + 2 * FF * DIM, FEED_NUMBERS = AT_FEED_OUT + DIM * FF };
static void feed_forward(double *y, const double *x) {
    double normed[CELLS * DIM], inner[CELLS * 2 * FF], middle[CELLS * FF];
    norm(normed, x, x + AT_GAMMA, CELLS);
    linear(inner, normed, x + AT_IN, NULL, CELLS, DIM, 2 * FF);
    swiglu(middle, inner);
    linear(y, middle, x + AT_FEED_OUT, NULL, CELLS, FF, DIM);
    for (int i = 0; i < CELLS * DIM; i++) y[i] += x[i];
}
static void feed_backward(double *d, const double *x, const double *d_y) {
    double normed[CELLS * DIM], inner[CELLS * 2 * FF], middle[CELLS * FF];
    double d_normed[CELLS * DIM] = { 0 }, d_inner[CELLS * 2 * FF] = { 0 },
                            d_middle[CELLS * FF] = { 0 };
    norm(normed, x, x + AT_GAMMA, CELLS);
    linear(inner, normed, x + AT_IN, NULL, CELLS, DIM, 2 * FF);
    swiglu(middle, inner);
    linear_back(d_middle, d + AT_FEED_OUT, NULL, middle, x + AT_FEED_OUT, d_y, CELLS, FF, DIM);
    swiglu_back(d_inner, inner, d_middle);
    linear_back(d_normed, d + AT_IN, NULL, normed, x + AT_IN, d_inner, CELLS, DIM, 2 * FF);
    norm_back(d, d + AT_GAMMA, x, x + AT_GAMMA, d_normed, CELLS);
    for (int i = 0; i < CELLS * DIM; i++) d[i] += d_y[i];
}

static const layer layers[] = {
    { "linear", LINEAR_NUMBERS, CELLS *DIM, linear_forward, linear_backward },
    { "norm", NORM_NUMBERS, CELLS *DIM, norm_forward, norm_backward },
    { "attention", ATTEND_NUMBERS, CELLS *DIM, attend_forward, attend_backward },
    { "feed-forward", FEED_NUMBERS, CELLS *DIM, feed_forward, feed_backward },
};

/* ---- the f32 layers ---- */

/* Places of a layer's parameters in the network, in the order of the vector. */
typedef struct place {
    size_t offset;
    int count;
} place;

static int layer_places(place *places, const pith__network *n, int index) {
    const pith__parameter *p = n->parameters;
    const pith__network_layer *attend = &n->blocks[0].attend[0], *feed = &n->blocks[0].ff;
    const int numbers[4][3] = { { n->text, n->text + 1, -1 },
                                { n->name_norm, -1, -1 },
                                { attend->norm, attend->in, attend->out },
                                { feed->norm, feed->in, feed->out } };
    int count = 0;
    for (; count < 3 && numbers[index][count] >= 0; count++) {
        const pith__parameter *q = &p[numbers[index][count]];
        places[count] = (place){ q->offset, q->out * q->in };
    }
    return count;
}

/* The gradient of what the layer reads, into d_x; that of its parameters goes to w->gradient. */
static void run_layer(float *d_x, pith__network_work *w, int index, const float *x,
                      const float *d_y) {
    const pith__network *n = w->network;
    const size_t size = CELLS * DIM;
    pith__residual kept;
    if (index == 0) {
        pith__linear(w, n->text, true, x, CELLS);
        memcpy(d_x, pith__linear_back(w, n->text, true, x, d_y, CELLS, true),
               CELLS * TEXT * sizeof *d_x);
    } else if (index == 1) {
        const pith__normed normed = pith__norm(w, n->name_norm, x, CELLS);
        memset(d_x, 0, size * sizeof *d_x);
        pith__norm_back(w, &normed, d_y, d_x);
    } else {
        float *h = pith__work_floats(w, size);
        memcpy(h, x, size * sizeof *h);
        memcpy(d_x, d_y, size * sizeof *d_x);
        if (index == 2) {
            pith__attend(w, &kept, &n->blocks[0].attend[0], 0, h);
            pith__attend_back(w, &kept, &n->blocks[0].attend[0], d_x);
        } else {
            pith__feed(w, &kept, &n->blocks[0].ff, h);
            pith__feed_back(w, &kept, &n->blocks[0].ff, d_x);
        }
    }
}

static double draw(uint64_t *state) {
    return (double)(pith__random_next(state) >> 11) * 0x1p-52 - 1;
}

static double weighted(const layer *l, const double *x, const double *weights) {
    double y[OUTPUTS_MOST], sum = 0;
    l->forward(y, x);
    for (int i = 0; i < l->outputs; i++) sum += weights[i] * y[i];
    return sum;
}

/* The backward pass in double against central differences, at 400 numbers of each layer. */
static void check_plain(const layer *l, double *x, const double *weights, const double *d,
                        uint64_t *state) {
    double most = 0;
    for (int i = 0; i < l->numbers; i++) most = fmax(most, fabs(d[i]));
    for (int k = 0; k < 400; k++) {
        double *at = &x[pith__random_next(state) % (uint64_t)l->numbers], own = *at, step = 1e-4;
        *at = own + step;
        const double up = weighted(l, x, weights);
        *at = own - step;
        const double down = weighted(l, x, weights);
        *at = own + 2 * step;
        const double far_up = weighted(l, x, weights);
        *at = own - 2 * step;
        const double far_down = weighted(l, x, weights);
        *at = own;
        /* Two steps, whose errors of the third order cancel. */
        const double difference = (8 * (up - down) - (far_up - far_down)) / (12 * step);
        if (fabs(difference - d[at - x]) > 1e-6 * fmax(fabs(d[at - x]), 0.01 * most))
            fail_msg("%s, number %d: %.12g, but the difference is %.12g", l->name, (int)(at - x),
                     d[at - x], difference);
    }
}

static void check_layer(pith__network *n, int index, uint64_t *state) {
    static double x[NUMBERS_MOST], d[NUMBERS_MOST];
    static float given[NUMBERS_MOST], d_given[NUMBERS_MOST], d_y[OUTPUTS_MOST];
    const layer *l = &layers[index];
    double weights[OUTPUTS_MOST], most = 0;
    place places[3];
    int count = layer_places(places, n, index), read = l->numbers, at = 0;
    pith__arena arena;
    pith__pack pack = { .cell_count = CELLS, .lists = { { key_begin, key_list } } };
    pith__arena_init(&arena, &pith__allocator_default);
    pith__network_work w = { n, &pack, pith__arena_array(&arena, n->size, sizeof(float)), &arena,
                             false };
    for (int i = 0; i < count; i++) read -= places[i].count;
    for (int i = 0; i < read; i++) x[i] = given[i] = (float)(2 * draw(state));
    for (int i = 0; i < l->outputs; i++) weights[i] = d_y[i] = (float)draw(state);
    at = read;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < places[i].count; k++)
            x[at++] = n->weights[places[i].offset + (size_t)k];
    assert_int_equal(at, l->numbers);
    memset(d, 0, sizeof d);
    l->backward(d, x, weights);
    check_plain(l, x, weights, d, state);
    run_layer(d_given, &w, index, given, d_y);
    assert_false(w.failed);
    at = read;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < places[i].count; k++)
            d_given[at++] = w.gradient[places[i].offset + (size_t)k];
    for (int i = 0; i < l->numbers; i++) most = fmax(most, fabs(d[i]));
    for (int i = 0; i < l->numbers; i++)
        if (fabs(d_given[i] - d[i]) > 1e-4 * fmax(fabs(d[i]), 0.01 * most))
            fail_msg("%s, number %d: %.9g in f32 and %.9g in double", l->name, i,
                     (double)d_given[i], d[i]);
    pith__arena_free(&arena);
}

static void backward_passes(void **unused) {
    (void)unused;
    pith__arena arena;
    pith_error err = PITH_ERROR_INIT;
    pith__network n;
    const pith__network_shape shape = { DIM, HEADS, FF, 1, TEXT, 1, PITH_ATTEND_COLUMN };
    uint64_t state = 9;
    pith__arena_init(&arena, &pith__allocator_default);
    assert_int_equal(pith__network_make(&n, &shape, 3, &arena, &err), PITH_OK);
    for (int i = 0; i < n.parameter_count; i++)
        for (int k = 0; n.parameters[i].kind == PITH_PARAMETER_ONES && k < DIM; k++)
            n.weights[n.parameters[i].offset + (size_t)k] += (float)(0.5 * draw(&state));
    pith__network_pack(&n);
    for (int round = 0; round < 3; round++) {
        uint32_t keys = 0;
        for (uint32_t i = 0; i < CELLS; i++) {
            key_begin[i] = keys;
            for (uint32_t k = 0; k < CELLS; k++)
                if (k == i || draw(&state) > 0.2) key_list[keys++] = k;
        }
        key_begin[CELLS] = keys;
        for (int i = 0; i < (int)(sizeof layers / sizeof *layers); i++) check_layer(&n, i, &state);
    }
    pith__arena_free(&arena);
}

/* ---- losses ---- */

/* pith__target_loss computes in double from an answer in f32; its derivatives are f32. */
static void check_loss(const pith__target *t, uint32_t row, uint64_t *state) {
    float answer[8], d[8], unused[8];
    /* Multiples of a power of two, so that steps away from them are exact. */
    for (int i = 0; i < t->outputs; i++) answer[i] = (float)(floor(3 * draw(state) * 4096) / 4096);
    if (t->kind == PITH_TARGET_NUMBER &&
        fabs(fabs(answer[0] - pith__target_scaled(t, row)) - 1) < 0.01)
        return; /* the kink of Huber's loss */
    pith__target_loss(d, t, row, answer);
    for (int i = 0; i < t->outputs; i++) {
        const float own = answer[i], step = 0x1p-8f;
        double loss[4];
        for (int k = 0; k < 4; k++) {
            answer[i] = own + step * (float)(k < 2 ? k - 2 : k - 1);
            loss[k] = pith__target_loss(unused, t, row, answer);
        }
        answer[i] = own;
        const double difference =
            (8 * (loss[2] - loss[1]) - (loss[3] - loss[0])) / (12 * (double)step);
        if (fabs(difference - d[i]) > 1e-6)
            fail_msg("loss of kind %d: %.9g, but the difference is %.9g", (int)t->kind,
                     (double)d[i], difference);
    }
}

static void losses(void **unused) {
    (void)unused;
    static const uint8_t yes[] = { 0, 1 };
    static const double numbers[] = { 3, 5 };
    static const uint32_t strings[] = { 7, 4 };
    static const uint64_t begin[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    uint32_t classes[] = { 2, 4, 7 };
    const pith__rdb rdb = { .string_count = 8, .string_begin = begin, .string_bytes = "abcdefgh" };
    const pith__rdb_column boolean = { .stype = PITH_STYPE_BOOLEAN, .data = yes, .sd = 1 },
                           number = { .stype = PITH_STYPE_NUMERICAL,
                                      .data = numbers,
                                      .mean = 4,
                                      .sd = 2 },
                           category = { .stype = PITH_STYPE_CATEGORICAL, .data = strings };
    const pith__target targets[] = {
        { .column = &boolean, .kind = PITH_TARGET_BOOLEAN, .outputs = 1 },
        { .column = &number, .kind = PITH_TARGET_NUMBER, .outputs = 1 },
        { .column = &category,
          .kind = PITH_TARGET_CLASS,
          .outputs = 3,
          .rdb = &rdb,
          .classes = classes }
    };
    uint64_t state = 4;
    for (int i = 0; i < 300; i++) check_loss(&targets[i % 3], (uint32_t)i / 3 % 2, &state);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(backward_passes),
                                        cmocka_unit_test(losses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
