/* module_lstm.c - LSTM: layers of recurrent networks over the vectors of tokens, mostly in both
 * directions. A text runs alone, so no padding is in it.
 *
 * torch.nn.LSTM keeps gates in the order input, forget, cell, output; the operator LSTM takes
 * input, output, forget, cell. Source: sentence-transformers 6, modules/lstm.py; the documents of
 * torch.nn.LSTM and of ONNX. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

enum { LSTM_LAYERS_MAX = 16, GATES = 4, TENSORS = 4 };

typedef struct lstm_layer {
    const float *w, *r,
        *b; /* [directions, 4 * hidden, in], [directions, 4 * hidden, hidden], [directions, 8 *
               hidden] */
    int64_t in;
} lstm_layer;

typedef struct module_lstm {
    int64_t in, hidden, layers, directions;
    lstm_layer at[LSTM_LAYERS_MAX];
} module_lstm;

static void lstm_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_lstm *m = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "embedding_dimension") ||
            pith__str_is(key, "word_embedding_dimension"))
            m->in = pith__json_int(j);
        else if (pith__str_is(key, "hidden_dim"))
            m->hidden = pith__json_int(j);
        else if (pith__str_is(key, "num_layers"))
            m->layers = pith__json_int(j);
        else if (pith__str_is(key, "bidirectional"))
            m->directions = pith__json_bool(j) ? 2 : 1;
        else
            pith__json_skip(j);
    }
    const int64_t most = PITH_MODULE_WIDTH_MAX / 8;
    if (!j->failed && (m->in < 1 || m->in > most || m->hidden < 1 || m->hidden > most ||
                       m->layers < 1 || m->layers > LSTM_LAYERS_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "embedding_dimension is %lld and hidden_dim %lld, each from 1 to %lld; "
                        "num_layers is %lld, from "
                        "1 to %d",
                        (long long)m->in, (long long)m->hidden, (long long)most,
                        (long long)m->layers, LSTM_LAYERS_MAX);
}

/* Copies the four parts of `size` numbers, in the operator's order. */
static void lstm_turn_gates(float *to, const float *from, size_t size) {
    static const int order[GATES] = { 0, 3, 1, 2 };
    for (int i = 0; i < GATES; i++)
        memcpy(to + (size_t)i * size, from + (size_t)order[i] * size, size * sizeof *to);
}

/* A tensor of one direction and layer, to its place in the layer's. */
static pith_status lstm_tensor(float *to, pith__module_reader *r, const pith__weights *weights,
                               const char *file, const char *what, int64_t layer, int64_t direction,
                               int rank, const int64_t *dims) {
    const float *data;
    pith_str name = pith__arena_printf(r->arena, "encoder.%s_l%lld%s", what, (long long)layer,
                                       direction ? "_reverse" : "");
    if (!name.data) return pith__fail_memory(r->err, 64);
    PITH_TRY(pith__module_tensor(&data, r, weights, file, name.data, rank, dims));
    lstm_turn_gates(to, data, (size_t)(dims[0] / GATES) * (size_t)(rank > 1 ? dims[1] : 1));
    return PITH_OK;
}

static float *lstm_room(pith__module_reader *r, int64_t directions, int64_t rows, int64_t columns) {
    size_t n, all;
    if (pith__mul_overflows((size_t)rows, (size_t)columns, &n) ||
        pith__mul_overflows(n, (size_t)directions, &all))
        return NULL;
    return pith__arena_array(r->arena, all, sizeof(float));
}

static pith_status lstm_read_layer(pith__module_reader *r, module_lstm *m, int64_t layer,
                                   const pith__weights *weights, const char *file) {
    const int64_t n = m->hidden, in = layer ? n * m->directions : m->in, gates = GATES * n;
    float *w = lstm_room(r, m->directions, gates, in), *u = lstm_room(r, m->directions, gates, n),
          *b = lstm_room(r, m->directions, gates, 2);
    if (!w || !u || !b) return pith__fail_memory(r->err, (size_t)gates);
    for (int64_t d = 0; d < m->directions; d++) {
        const int64_t wide[] = { gates, in }, square[] = { gates, n };
        PITH_TRY(lstm_tensor(w + d * gates * in, r, weights, file, "weight_ih", layer, d, 2, wide));
        PITH_TRY(
            lstm_tensor(u + d * gates * n, r, weights, file, "weight_hh", layer, d, 2, square));
        PITH_TRY(lstm_tensor(b + d * 2 * gates, r, weights, file, "bias_ih", layer, d, 1, &gates));
        PITH_TRY(lstm_tensor(b + d * 2 * gates + gates, r, weights, file, "bias_hh", layer, d, 1,
                             &gates));
    }
    m->at[layer] = (lstm_layer){ w, u, b, in };
    return PITH_OK;
}

/* x [sequence, batch, in] to [sequence, batch, directions * hidden]. */
static pith__value *lstm_append_layer(pith__graph *graph, pith__value *x, const module_lstm *m,
                                      const lstm_layer *l) {
    const pith_str place = PITH_STR("LSTM");
    const int64_t n = m->hidden, d = m->directions;
    pith__value *w = pith__row_constant(graph, l->w, 3, (int64_t[]){ d, GATES * n, l->in });
    pith__value *r = pith__row_constant(graph, l->r, 3, (int64_t[]){ d, GATES * n, n });
    pith__value *b = pith__row_constant(graph, l->b, 2, (int64_t[]){ d, 2 * GATES * n });
    pith__value *y = pith__row_node(graph, place, "LSTM", (pith__value *[]){ x, w, r, b }, 4);
    const pith_str direction = d == 2 ? PITH_STR("bidirectional") : PITH_STR("forward");
    if (!y || pith__node_set_int(y->producer, "hidden_size", n) ||
        pith__node_set_str(y->producer, "direction", direction))
        return NULL;
    /* [sequence, directions, batch, hidden] */
    y = pith__row_node(graph, place, "Transpose", &y, 1);
    if (!y || pith__node_set_ints(y->producer, "perm", (const int64_t[]){ 0, 2, 1, 3 }, 4))
        return NULL;
    pith__value *shape =
        pith__graph_add_i64s(graph, PITH_STR(""), (const int64_t[]){ 0, 0, d * n }, 3);
    return pith__row_node(graph, place, "Reshape", (pith__value *[]){ y, shape }, 2);
}

static pith__value *lstm_turn(pith__graph *graph, pith__value *x) {
    pith__value *y = pith__row_node(graph, PITH_STR("LSTM"), "Transpose", &x, 1);
    return y && !pith__node_set_ints(y->producer, "perm", (const int64_t[]){ 1, 0, 2 }, 3) ? y
                                                                                           : NULL;
}

static pith__value *lstm_append(pith__graph *graph, pith__value *rows, const void *module,
                                pith_error *err) {
    const module_lstm *m = module;
    if (!pith__row_width_fits(rows, m->in, "LSTM", err)) return NULL;
    pith__value *x = lstm_turn(graph, rows);
    for (int64_t i = 0; i < m->layers && x; i++) x = lstm_append_layer(graph, x, m, &m->at[i]);
    return lstm_turn(graph, x);
}

static pith_status lstm_read(pith__module_reader *r, pith_str folder) {
    pith__weights weights;
    const char *file;
    module_lstm *m = pith__arena_array(r->arena, 1, sizeof *m);
    if (!m) return pith__fail_memory(r->err, sizeof *m);
    *m = (module_lstm){ .layers = 1, .directions = 2 };
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    PITH_TRY(pith__module_json(NULL, r, folder, "lstm_config.json", lstm_read_config, m));
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    if (r->source->files)
        for (int64_t i = 0; i < m->layers; i++) PITH_TRY(lstm_read_layer(r, m, i, &weights, file));
    PITH_TRY(pith__module_add_rows(r, &(pith__row_step){ m, lstm_append, PITH_STR("LSTM") }));
    return pith__module_decide(r, "module", folder, file, "LSTM, %lld to %lld%s, %lld layer%s",
                               (long long)m->in, (long long)m->hidden,
                               m->directions == 2 ? " in both directions" : "",
                               (long long)m->layers, m->layers == 1 ? "" : "s");
}

static const pith__module_keys lstm_keys = {
    .file = "lstm_config.json",
    .reads = "embedding_dimension word_embedding_dimension hidden_dim num_layers bidirectional",
    .ignores = "dropout"
};
const pith__module_class pith__module_class_lstm = { .name = "LSTM",
                                                     .read = lstm_read,
                                                     .keys = &lstm_keys };
