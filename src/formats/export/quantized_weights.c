/* quantized_weights.c - see quantized_weights.h. Sources of the forms: ONNX's operators, and ONNX
 * Runtime's ContribOperators.md. */
#include "formats/export/quantized_weights.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/ops/op.h"
#include "formats/export/new_nodes.h"

/* ---- finding ---- */

/* Contains the part, or, if that begins with '=', is the rest of it. */
static bool quantized_name_has(pith_str name, const char *part) {
    const size_t n = strlen(part);
    if (*part == '=') return pith__str_is(name, part + 1);
    for (size_t i = 0; i + n <= name.size; i++)
        if (!memcmp(name.data + i, part, n)) return true;
    return false;
}

static bool quantized_is_kept(const pith__quantized_form *form, const pith__node *node,
                              const pith__value *weight) {
    for (size_t i = 0; i < form->keep_count; i++)
        if (quantized_name_has(node->name, form->keep[i]) ||
            quantized_name_has(weight->name, form->keep[i]))
            return true;
    return false;
}

static bool quantized_is_matrix(const pith__value *v) {
    return v && v->kind == PITH_VALUE_CONST && v->type.data && v->type.dtype == PITH_F32 &&
           v->type.data->rank == 2 && v->type.data->dims[0] > 0 && v->type.data->dims[1] > 0;
}

static bool quantized_is_plain_gemm(const pith__node *node) {
    return pith__str_is(node->op_type, "Gemm") && pith__node_float(node, "alpha", 1.0f) == 1.0f &&
           pith__node_float(node, "beta", 1.0f) == 1.0f && !pith__node_int(node, "transA", 0);
}

/* The constant that the node multiplies f32 rows by, or NULL. */
static pith__value *quantized_factor(const pith__node *node, bool *transposed) {
    *transposed = pith__str_is(node->op_type, "Gemm") && pith__node_int(node, "transB", 0);
    if (node->domain.size ||
        !(pith__str_is(node->op_type, "MatMul") || quantized_is_plain_gemm(node)))
        return NULL;
    const pith__value *x = pith__node_input(node, 0);
    pith__value *w = pith__node_input(node, 1);
    return quantized_is_matrix(w) && x && x->type.dtype == PITH_F32 && x->type.rank >= 1 ? w : NULL;
}

/* The constant that the node takes rows of, or NULL. */
static pith__value *quantized_table(const pith__node *node) {
    pith__value *table = pith__node_input(node, 0);
    if (node->domain.size || !pith__str_is(node->op_type, "Gather") ||
        pith__node_int(node, "axis", 0) || !quantized_is_matrix(table) ||
        table->type.data->dims[0] < PITH_QUANTIZED_TABLE_LEAST)
        return NULL;
    return table;
}

/* One constant can be a table and a matrix, or be read in both directions; each use is a weight of
 * its own. */
static pith__quantized_weight *quantized_find_weight(const pith__quantized *q,
                                                     const pith__value *value, bool table,
                                                     bool transposed) {
    for (size_t i = 0; i < q->count; i++) {
        pith__quantized_weight *w = &q->weights[i];
        if (w->value == value && w->table == table && (w->source.row == 1) == transposed) return w;
    }
    return NULL;
}

/* A NaN would become a code like any other, and an infinity would make a block's scale infinite. */
static pith_status quantized_check_finite(const pith__value *v, pith_error *err) {
    const pith_tensor *t = v->type.data;
    for (size_t i = 0; i < t->bytes / sizeof(float); i++) {
        float x;
        memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
        if (!isfinite(x))
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "constant '" PITH_STR_FMT "' has %s at element %zu",
                              PITH_STR_ARG(v->name), isnan(x) ? "a NaN" : "an infinity", i);
    }
    return PITH_OK;
}

static pith__weight_code_source quantized_source(const pith_tensor *t, bool by_row) {
    const int64_t rows = t->dims[0], columns = t->dims[1];
    return by_row ? (pith__weight_code_source){ t->data, columns, rows, 1, columns }
                  : (pith__weight_code_source){ t->data, rows, columns, columns, 1 };
}

/* A matrix of one row or column stays: the strides of its rows and of its columns are the same. */
static bool quantized_is_worth(const pith__value *v) {
    return v->type.data->dims[0] > 1 && v->type.data->dims[1] > 1;
}

/* Rows of a table are whole bytes. */
static bool quantized_table_fits(const pith__quantized_form *form, const pith__value *v) {
    return form->tables.bits && quantized_is_worth(v) &&
           v->type.data->dims[1] * form->tables.bits % 8 == 0;
}

/* Who reads a constant beside the matmuls and look-ups that change. */
typedef struct quantized_readers {
    const pith__node *kept, *other; /* the first that was asked to stay, and the first of another
                                       kind */
    bool table;                     /* there is a look-up */
    bool output;                    /* it is an output of the graph */
} quantized_readers;

/* Decides whether the f32 constant can go: only if every reader changes. Otherwise codes next to it
 * would make the file larger. */
static quantized_readers quantized_readers_of(const pith__quantized_form *form,
                                              const pith__value *v) {
    quantized_readers r = { .output = v->output_uses != 0 };
    for (size_t i = 0; i < v->user_count; i++) {
        const pith__node *user = v->users[i].node;
        bool transposed;
        const bool product = v->users[i].input == 1 && quantized_factor(user, &transposed) == v,
                   table = v->users[i].input == 0 && quantized_table(user) == v;
        r.table = r.table || table;
        if (!product && !(table && quantized_table_fits(form, v)) && !r.other) r.other = user;
        if (quantized_is_kept(form, user, v) && !r.kept) r.kept = user;
    }
    return r;
}

static bool quantized_has_value(const pith__quantized *q, const pith__value *v) {
    for (size_t i = 0; i < q->count; i++)
        if (q->weights[i].value == v) return true;
    return false;
}

/* Columns of a matmul's output are rounded together, since they share a scale; of a table it is the
 * rows. */
static pith_status quantized_add(pith__quantized *q, const pith__node *node, pith__value *v,
                                 bool table, bool by_row, pith_error *err) {
    if (quantized_find_weight(q, v, table, by_row)) return PITH_OK;
    PITH_TRY(quantized_check_finite(v, err));
    q->weights[q->count++] =
        (pith__quantized_weight){ .value = v,
                                  .table = table,
                                  .source = quantized_source(v->type.data, by_row),
                                  .input = node->inputs[table],
                                  .label = v->name.size ? v->name : node->name };
    return PITH_OK;
}

/* A constant that some other node needs as it is becomes 8 bits with a DequantizeLinear that all
 * its readers share, if it is a matrix of a matmul. A table with another reader stays. */
static pith_status quantized_look(pith__quantized *q, const pith__node *node, pith_error *err) {
    bool transposed;
    pith__value *w = quantized_factor(node, &transposed), *table = w ? NULL : quantized_table(node),
                *v = w ? w : table;
    if (!v || !quantized_is_worth(v)) return PITH_OK;
    const quantized_readers readers = quantized_readers_of(q->form, v);
    /* it stays, and codes beside it would only add to it */
    if (readers.kept || readers.output) return PITH_OK;
    if (readers.other && (!w || readers.table)) {
        char place[256];
        if (v->users[0].node == node && v->user_count > 1)
            pith__log_write(
                q->graph->log, PITH_LOG_WARNING, "'" PITH_STR_FMT "' stays in f32: %s reads it too",
                PITH_STR_ARG(v->name), pith__node_place(readers.other, place, sizeof place));
        return PITH_OK;
    }
    if (readers.other) {
        if (quantized_has_value(q, v)) return PITH_OK;
        PITH_TRY(quantized_add(q, node, v, false, transposed, err));
        q->weights[q->count - 1].other = readers.other;
        return PITH_OK;
    }
    return quantized_add(q, node, v, table != NULL, table || transposed, err);
}

pith_status pith__quantized_find(pith__quantized *q, pith__graph *graph,
                                 const pith__quantized_form *form, pith_error *err) {
    *q = (pith__quantized){ .graph = graph, .form = form };
    q->weights = pith__arena_array(graph->arena, graph->node_count + 1, sizeof *q->weights);
    if (!q->weights) return pith__fail_memory(err, graph->node_count * sizeof *q->weights);
    for (const pith__node *node = graph->first; node; node = node->next)
        PITH_TRY(quantized_look(q, node, err));
    return PITH_OK;
}

pith_status pith__quantized_round(pith__quantized *q, size_t weight,
                                  const struct pith__factor *factor, pith__arena *scratch,
                                  pith_error *err) {
    pith__quantized_weight *w = &q->weights[weight];
    static const pith__weight_code_form dequantized = { .bits = 8,
                                                        .symmetric = true,
                                                        .reach = 127 };
    const pith__weight_code_form *form = w->table ? &q->form->tables : &q->form->weights;
    if (w->other) form = &dequantized;
    if (!pith__weight_codes_round(&w->codes, form, &w->source, w->table ? NULL : factor, q->graph,
                                  q->graph->arena, scratch))
        return pith__fail_memory(err, (size_t)(w->source.k * w->source.n));
    return pith__stop_check(pith__graph_stop(q->graph), err);
}

/* ---- constants; each is made once ---- */

/* Named after the constant it stands for, as ONNX Runtime's tools name theirs. */
static pith__value *quantized_constant(pith__new_nodes *m, const pith__value *of, const char *what,
                                       void *data, int dtype, int rank, const int64_t *dims,
                                       size_t bytes) {
    pith_tensor t = { .data = data, .dtype = dtype, .rank = rank, .bytes = bytes };
    if (m->status) return NULL;
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    const pith_str base = of->name.size ? of->name : m->place;
    pith_str name =
        pith__arena_printf(m->graph->arena, PITH_STR_FMT "%s", PITH_STR_ALL(base), what);
    pith__value *v = data && name.data ? pith__graph_add_const(m->graph, name, &t) : NULL;
    if (!v) m->status = pith__fail_memory(m->err, bytes);
    return v;
}

static pith__value *quantized_scales(pith__new_nodes *m, const pith__quantized_weight *w,
                                     bool matrix) {
    const pith__weight_codes *c = &w->codes;
    const int64_t dims[] = { c->n, c->blocks };
    return quantized_constant(m, w->value, "_scale", c->scales, PITH_F32, matrix ? 2 : 1, dims,
                              (size_t)(c->n * c->blocks) * sizeof(float));
}

/* Codes as int8, in the layout of the weight. */
static pith__value *quantized_int8(pith__new_nodes *m, const pith__quantized_weight *w,
                                   bool as_rows) {
    const pith__weight_codes *c = &w->codes;
    const int64_t dims[] = { as_rows ? c->n : c->k, as_rows ? c->k : c->n };
    const size_t bytes = (size_t)(c->k * c->n);
    int8_t *to = pith__arena_alloc64(m->graph->arena, bytes);
    if (to)
        for (int64_t j = 0; j < c->n; j++)
            for (int64_t i = 0; i < c->k; i++)
                to[as_rows ? j * c->k + i : i * c->n + j] = (int8_t)(c->codes[j * c->k + i] - 128);
    return quantized_constant(m, w->value, "_quantized", to, PITH_I8, 2, dims, bytes);
}

/* The layouts of MatMulNBits [n, blocks, bytes of a block] and of GatherBlockQuantized [rows, bytes
 * of a row]. */
static pith__value *quantized_packed(pith__new_nodes *m, const pith__quantized_weight *w,
                                     const pith__weight_code_form *form) {
    const pith__weight_codes *c = &w->codes;
    size_t bytes = 0;
    const int64_t size = w->table ? c->k : c->blocks * c->block;
    uint8_t *data = pith__weight_codes_pack(&bytes, c, size, form->bits, m->graph->arena);
    const int64_t matmul[] = { c->n, c->blocks, c->block * form->bits / 8 };
    const int64_t table[] = { c->n, c->k * form->bits / 8 };
    return quantized_constant(m, w->value, form->bits == 4 ? "_q4" : "_q8", data, PITH_U8,
                              w->table ? 2 : 3, w->table ? table : matmul, bytes);
}

/* NULL if the zero points are the middle. */
static pith__value *quantized_zeros(pith__new_nodes *m, const pith__quantized_weight *w,
                                    const pith__weight_code_form *form) {
    size_t bytes = 0;
    if (form->symmetric) return NULL;
    uint8_t *data = pith__weight_codes_pack_zeros(&bytes, &w->codes, form->bits, m->graph->arena);
    const int64_t dims[] = { w->codes.n, (w->codes.blocks * form->bits + 7) / 8 };
    return quantized_constant(m, w->value, "_zero_point", data, PITH_U8, 2, dims, bytes);
}

/* ---- nodes ---- */

/* What was made for a weight, by index. */
typedef struct quantized_made {
    pith__value *codes, *scales, *zeros; /* zeros: with rows the sums of columns */
} quantized_made;

/* The inputs of matmuls as int8, which the matmuls of one input share; by id of the value. The
 * first matmul's node stands before those of the others. */
typedef struct quantized_input {
    pith__value *codes, *scale, *zero, *middle; /* middle: of rows */
    const float *smooth;                        /* that the inputs were divided by */
} quantized_input;

typedef struct quantized_rewriter {
    pith__quantized *q;
    quantized_made *made;
    quantized_input *inputs;
    size_t input_count;
    pith__new_nodes m;
} quantized_rewriter;

/* Like pith__new_node, but without binding: some of these operators Pith cannot infer. */
static pith__node *quantized_node(quantized_rewriter *r, const char *domain, const char *op,
                                  pith__value *const *inputs, int count, int outputs) {
    if (r->m.status) return NULL;
    pith__node *node =
        pith__graph_add_node(r->m.graph, r->m.before, domain, op, inputs, count, NULL, outputs);
    pith_str name =
        pith__arena_printf(r->m.graph->arena, PITH_STR_FMT "/%s", PITH_STR_ALL(r->m.place), op);
    if (!node || !name.data) {
        r->m.status = pith__fail_memory(r->m.err, 0);
        return NULL;
    }
    node->name = name;
    return node;
}

static const quantized_input *quantized_input_of(quantized_rewriter *r, pith__value *x) {
    quantized_input *in = &r->inputs[x->id];
    if (in->codes) return in;
    pith__node *node = quantized_node(r, "", "DynamicQuantizeLinear", &x, 1, 3);
    if (node)
        *in = (quantized_input){ node->outputs[0], node->outputs[1], node->outputs[2], NULL, NULL };
    return node ? in : NULL;
}

static pith__value *quantized_byte(pith__new_nodes *m, uint8_t number) {
    uint8_t *data = pith__arena_array(m->graph->arena, 1, 1);
    const pith_tensor t = { .data = data, .dtype = PITH_U8, .bytes = 1 };
    if (data) *data = number;
    pith__value *v = data && !m->status ? pith__graph_add_const(m->graph, PITH_STR(""), &t) : NULL;
    if (!v && !m->status) m->status = pith__fail_memory(m->err, 1);
    return v;
}

/* The largest or smallest number of each row; reductions have their axes as an input from opset 18
 * on. */
static pith__value *quantized_end(quantized_rewriter *r, pith__value *x, const char *op) {
    pith__new_nodes *m = &r->m;
    if (r->q->form->opset >= 18) return PITH_NEW_NODE(m, op, x, pith__new_node_i64(m, -1));
    pith__value *y = PITH_NEW_NODE(m, op, x);
    pith__new_node_set_ints(m, y, "axes", (const int64_t[]){ -1 }, 1);
    return y;
}

/* x with its channels brought nearer to each other, if the weight says how. */
static pith__value *quantized_smooth(quantized_rewriter *r, pith__value *x,
                                     const pith__quantized_weight *w) {
    const int64_t k = w->source.k;
    if (!w->smooth) return x;
    float *inverse = pith__arena_array(r->m.graph->arena, (size_t)k, sizeof *inverse);
    if (inverse)
        for (int64_t i = 0; i < k; i++) inverse[i] = 1.0f / w->smooth[i];
    return PITH_NEW_NODE(&r->m, "Mul", x,
                         quantized_constant(&r->m, w->value, "_smooth", inverse, PITH_F32, 1, &k,
                                            (size_t)k * sizeof *inverse));
}

/* Rows as codes of 1 to 255 around the middle of the row's numbers: x = (code - 128) scale +
 * middle. A row of equal numbers has a scale above 0. */
static const quantized_input *quantized_rows_of(quantized_rewriter *r, pith__value *given,
                                                const pith__quantized_weight *w) {
    pith__new_nodes *m = &r->m;
    quantized_input *in = &r->inputs[given->id];
    if (m->status) return NULL;
    if (in->codes && in->smooth == w->smooth) return in;
    pith__value *x = quantized_smooth(r, given, w);
    pith__value *high = quantized_end(r, x, "ReduceMax"), *low = quantized_end(r, x, "ReduceMin");
    pith__value *middle =
        PITH_NEW_NODE(m, "Mul", PITH_NEW_NODE(m, "Add", high, low), pith__new_node_f32(m, 0.5f));
    pith__value *range =
        PITH_NEW_NODE(m, "Max", PITH_NEW_NODE(m, "Sub", high, low), pith__new_node_f32(m, 1e-30f));
    pith__value *scale = PITH_NEW_NODE(m, "Mul", range, pith__new_node_f32(m, 1.0f / 254.0f));
    pith__value *codes = PITH_NEW_NODE(
        m, "Round", PITH_NEW_NODE(m, "Div", PITH_NEW_NODE(m, "Sub", x, middle), scale));
    codes = pith__new_node_cast(m, PITH_NEW_NODE(m, "Add", codes, pith__new_node_f32(m, 128.0f)),
                                PITH_U8);
    pith__value *zero = quantized_byte(m, 128);
    *in = (quantized_input){ codes, scale, zero, middle, w->smooth };
    return m->status ? NULL : in;
}

/* The sums of the weight's columns, as they were rounded. */
static pith__value *quantized_sums(pith__new_nodes *m, const pith__quantized_weight *w) {
    const pith__weight_codes *c = &w->codes;
    float *sums = pith__arena_array(m->graph->arena, (size_t)c->n, sizeof *sums);
    if (sums)
        for (int64_t j = 0; j < c->n; j++) {
            int64_t sum = 0;
            for (int64_t i = 0; i < c->k; i++) sum += c->codes[j * c->k + i] - 128;
            sums[j] = (float)sum * c->scales[j];
        }
    return quantized_constant(m, w->value, "_sums", sums, PITH_F32, 1, &c->n,
                              (size_t)c->n * sizeof *sums);
}

/* Codes and scales in 8 bits, made for the first matmul with these weights. */
static void quantized_make_int8(pith__new_nodes *m, quantized_made *made,
                                const pith__quantized_weight *w) {
    if (made->codes) return;
    made->codes = quantized_int8(m, w, false);
    made->scales = quantized_scales(m, w, false);
}

/* x w = (xq - 128) wq * w's scales * x's scale + x's middle * sums of w's columns */
static pith__value *quantized_by_rows(quantized_rewriter *r, pith__value *x,
                                      const pith__quantized_weight *w, quantized_made *made) {
    pith__new_nodes *m = &r->m;
    const bool first = !made->codes;
    quantized_make_int8(m, made, w);
    if (first) made->zeros = quantized_sums(m, w);
    const quantized_input *in = quantized_rows_of(r, x, w);
    if (!in || m->status) return NULL;
    pith__value *y = pith__new_node_cast(
        m, PITH_NEW_NODE(m, "MatMulInteger", in->codes, made->codes, in->zero), PITH_F32);
    y = PITH_NEW_NODE(m, "Mul", PITH_NEW_NODE(m, "Mul", y, made->scales), in->scale);
    return PITH_NEW_NODE(m, "Add", y, PITH_NEW_NODE(m, "Mul", in->middle, made->zeros));
}

/* x w = (xq - zero) wq * (x's scale * w's scales) */
static pith__value *quantized_dynamic(quantized_rewriter *r, pith__value *x,
                                      const pith__quantized_weight *w, quantized_made *made) {
    pith__new_nodes *m = &r->m;
    quantized_make_int8(m, made, w);
    const quantized_input *in = quantized_input_of(r, x);
    if (!in || m->status) return NULL;
    pith__value *y = PITH_NEW_NODE(m, "MatMulInteger", in->codes, made->codes, in->zero);
    pith__value *scales = PITH_NEW_NODE(m, "Mul", in->scale, made->scales);
    y = pith__new_node_cast(m, y, PITH_F32);
    return PITH_NEW_NODE(m, "Mul", y, scales);
}

/* x in 8 bits between the limits, and back. */
static const quantized_input *quantized_fixed_of(quantized_rewriter *r, pith__value *x,
                                                 const pith__quantized_weight *w) {
    pith__new_nodes *m = &r->m;
    quantized_input *in = &r->inputs[x->id];
    if (in->codes || m->status) return in->codes ? in : NULL;
    const float range = w->high - w->low, scale = range > 0 ? range / 255 : 1;
    pith__value *s = pith__new_node_f32(m, scale),
                *zero = quantized_byte(m, (uint8_t)rintf(-w->low / scale));
    pith__value *y = PITH_NEW_NODE(m, "DequantizeLinear",
                                   PITH_NEW_NODE(m, "QuantizeLinear", x, s, zero), s, zero);
    if (y) *in = (quantized_input){ y, s, zero, NULL, NULL };
    return y ? in : NULL;
}

/* The MatMul stays, on numbers that were rounded; engines compute it in integers. */
static pith__value *quantized_static(quantized_rewriter *r, pith__value *x,
                                     const pith__quantized_weight *w, quantized_made *made) {
    pith__new_nodes *m = &r->m;
    quantized_make_int8(m, made, w);
    const quantized_input *in = quantized_fixed_of(r, x, w);
    if (!in || m->status) return NULL;
    pith__value *weight = PITH_NEW_NODE(m, "DequantizeLinear", made->codes, made->scales);
    pith__new_node_set_int(m, weight, "axis", 1);
    return PITH_NEW_NODE(m, "MatMul", in->codes, weight);
}

static bool quantized_set_int(quantized_rewriter *r, pith__node *node, const char *name,
                              int64_t number) {
    if (node && pith__node_set_int(node, name, number))
        r->m.status = pith__fail_memory(r->m.err, 0);
    return node && !r->m.status;
}

static pith__value *quantized_blocks(quantized_rewriter *r, pith__value *x,
                                     const pith__quantized_weight *w, quantized_made *made) {
    const pith__quantized_form *form = r->q->form;
    if (!made->codes) {
        made->codes = quantized_packed(&r->m, w, &form->weights);
        made->scales = quantized_scales(&r->m, w, true);
        made->zeros = quantized_zeros(&r->m, w, &form->weights);
    }
    pith__value *inputs[] = { x, made->codes, made->scales, made->zeros };
    pith__node *node =
        quantized_node(r, "com.microsoft", "MatMulNBits", inputs, made->zeros ? 4 : 3, 1);
    bool set = quantized_set_int(r, node, "K", w->codes.k) &&
               quantized_set_int(r, node, "N", w->codes.n) &&
               quantized_set_int(r, node, "bits", form->weights.bits) &&
               quantized_set_int(r, node, "block_size", w->codes.block) &&
               (!form->accuracy || quantized_set_int(r, node, "accuracy_level", form->accuracy));
    return set ? node->outputs[0] : NULL;
}

/* Rows with a scale each, in standard operators. */
static pith__value *quantized_rows(quantized_rewriter *r, pith__value *ids,
                                   const pith__quantized_weight *w, quantized_made *made) {
    pith__new_nodes *m = &r->m;
    if (!made->codes) {
        made->codes = quantized_int8(m, w, true);
        made->scales = quantized_scales(m, w, true);
    }
    pith__value *rows =
        pith__new_node_cast(m, PITH_NEW_NODE(m, "Gather", made->codes, ids), PITH_F32);
    return PITH_NEW_NODE(m, "Mul", rows, PITH_NEW_NODE(m, "Gather", made->scales, ids));
}

static pith__value *quantized_lookup(quantized_rewriter *r, pith__value *ids,
                                     const pith__quantized_weight *w, quantized_made *made) {
    const pith__weight_code_form *form = &r->q->form->tables;
    if (!form->block) return quantized_rows(r, ids, w, made);
    if (!made->codes) {
        made->codes = quantized_packed(&r->m, w, form);
        made->scales = quantized_scales(&r->m, w, true);
        made->zeros = quantized_zeros(&r->m, w, form);
    }
    pith__value *inputs[] = { made->codes, ids, made->scales, made->zeros };
    pith__node *node =
        quantized_node(r, "com.microsoft", "GatherBlockQuantized", inputs, made->zeros ? 4 : 3, 1);
    bool set = quantized_set_int(r, node, "bits", form->bits) &&
               quantized_set_int(r, node, "block_size", form->block) &&
               quantized_set_int(r, node, "gather_axis", 0) &&
               quantized_set_int(r, node, "quantize_axis", 1);
    return set ? node->outputs[0] : NULL;
}

/* The most values that one node is replaced by. */
enum { QUANTIZED_VALUES = 40 };

static pith_status quantized_replace(quantized_rewriter *r, pith__node *node, pith__value *y) {
    if (r->m.status) return r->m.status;
    y->type = node->outputs[0]->type;
    if (pith__value_replace(node->outputs[0], y)) return pith__fail_memory(r->m.err, 0);
    pith__node_remove(node);
    return PITH_OK;
}

typedef pith__value *(*product_maker)(quantized_rewriter *r, pith__value *x,
                                      const pith__quantized_weight *w, quantized_made *made);

/* All readers of a weight get it as codes that are dequantised in each run. */
static pith_status quantized_dequantize(quantized_rewriter *r, pith__quantized_weight *w) {
    const bool by_row = w->source.row == 1;
    pith__value *v = w->value;
    char place[256];
    r->m.before = r->q->graph->first;
    r->m.place = w->label;
    pith__value *y = PITH_NEW_NODE(&r->m, "DequantizeLinear", quantized_int8(&r->m, w, by_row),
                                   quantized_scales(&r->m, w, false));
    pith__new_node_set_int(&r->m, y, "axis", by_row ? 0 : 1);
    if (r->m.status) return r->m.status;
    pith__log_write(r->q->graph->log, PITH_LOG_WARNING,
                    "weight '" PITH_STR_FMT
                    "' gets 8 bits and is dequantised in each run: %s reads it too",
                    PITH_STR_ARG(w->label), pith__node_place(w->other, place, sizeof place));
    y->type = v->type;
    y->type.data = NULL;
    for (size_t i = 0; i < v->user_count; i++)
        r->q->matmuls += quantized_factor(v->users[i].node, &(bool){ false }) == v;
    return pith__value_replace(v, y) ? pith__fail_memory(r->m.err, 0) : PITH_OK;
}

/* Replaces a MatMul, Gemm or Gather whose constant was rounded. Codes and scales are made for the
 * first node of a weight and shared by the others; the same holds for the inputs of a matmul in 8
 * bits, by the id of the value. The bias of a Gemm is added behind; its alpha and beta are 1
 * (quantized_is_plain_gemm). */
static pith_status quantized_rewrite_node(quantized_rewriter *r, pith__node *node) {
    bool transposed;
    pith__value *w = quantized_factor(node, &transposed), *table = w ? NULL : quantized_table(node);
    const pith__value *constant = w ? w : table;
    const pith__quantized_weight *found =
        constant ? quantized_find_weight(r->q, constant, table != NULL, table || transposed) : NULL;
    const bool changes =
        found && found->codes.codes && !quantized_is_kept(r->q->form, node, constant);
    r->q->kept += w && !changes;
    if (!changes) return PITH_OK;
    (*(table ? &r->q->tables : &r->q->matmuls))++;
    quantized_made *made = &r->made[found - r->q->weights];
    r->m.before = node;
    r->m.place = node->name;
    if (table) return quantized_replace(r, node, quantized_lookup(r, node->inputs[1], found, made));
    static const product_maker products[] = { [PITH_QUANTIZED_DYNAMIC] = quantized_dynamic,
                                              [PITH_QUANTIZED_ROWS] = quantized_by_rows,
                                              [PITH_QUANTIZED_STATIC] = quantized_static,
                                              [PITH_QUANTIZED_BLOCKS] = quantized_blocks };
    pith__value *y = products[r->q->form->kind](r, node->inputs[0], found, made);
    pith__value *bias = pith__str_is(node->op_type, "Gemm") ? pith__node_input(node, 2) : NULL;
    if (bias && y) y = PITH_NEW_NODE(&r->m, "Add", y, bias);
    return quantized_replace(r, node, y);
}

/* Weights with another reader go first: their constants are gone then, so no matmul finds them any
 * more and all stay as they are. The table of inputs is by id of the value, and what is made here
 * may be the input of a later matmul; QUANTIZED_VALUES for each node is room for those ids. */
pith_status pith__quantized_rewrite(pith__quantized *q, pith_error *err) {
    quantized_rewriter r = { .q = q, .m = { .graph = q->graph, .err = err } };
    r.input_count = q->graph->value_count + q->graph->node_count * QUANTIZED_VALUES;
    r.made = pith__arena_array(q->graph->arena, q->count + 1, sizeof *r.made);
    r.inputs = pith__arena_array(q->graph->arena, r.input_count + 1, sizeof *r.inputs);
    if (!r.made || !r.inputs) return pith__fail_memory(err, r.input_count * sizeof *r.inputs);
    for (size_t i = 0; i < q->count; i++)
        if (q->weights[i].other) PITH_TRY(quantized_dequantize(&r, &q->weights[i]));
    for (pith__node *node = q->graph->first, *next; node; node = next) {
        next = node->next;
        PITH_TRY(quantized_rewrite_node(&r, node));
    }
    return PITH_OK;
}
