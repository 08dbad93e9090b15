/* op_einsum.c - Einsum: the product of the operands, summed over every label that the result does
 * not name.
 *
 * Labels are letters; "..." stands for further dimensions, which broadcast. Each operand has a
 * stride per label, the sum of several if a label repeats (a diagonal). Two operands of floats are
 * a batch of matmuls if every label is of one of four kinds: batch (both operands and the result),
 * row (left and result), column (right and result), summed (both operands). Operands whose labels
 * stand in another order are moved first, and so is the result afterwards. Everything else is one
 * loop over all labels in double, result labels outermost. Source: ONNX Einsum. */
#include <string.h>

#include "base/checked.h"
#include "engine/ops/shared/as_doubles.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/infer_shapes.h"
#include "engine/ops/shared/tensor_matmul.h"
#include "engine/ops/shared/widen_types.h"

/* Labels that an equation may use: 52 letters, and the 12 dimensions that "..." may stand for. */
enum { MAX_LABELS = 64, ELLIPSIS = 52, MAX_OPERANDS = PITH_WIDE_MAX };

/* Labels 0 to 51 are letters, from ELLIPSIS on the dimensions of "...", the last dimension first.
 */
typedef struct einsum {
    int8_t in[MAX_OPERANDS][PITH_MAX_RANK]; /* label of each dimension */
    int8_t out[PITH_MAX_RANK];
    int out_rank;
    pith__dim sizes[MAX_LABELS];
    bool seen[MAX_LABELS];
} einsum;

static int einsum_letter(char ch) {
    if (ch >= 'a' && ch <= 'z') return ch - 'a';
    return ch >= 'A' && ch <= 'Z' ? ch - 'A' + 26 : -1;
}

/* One term ("ij...k") for a tensor of this rank (-1: the result, whose "..." has `dots`
 * dimensions). */
static pith_status einsum_read_term(pith_error *err, pith_str term, int rank, int dots,
                                    int8_t *labels, int *count) {
    int letters = 0, n = 0;
    for (size_t i = 0; i < term.size; i++) letters += einsum_letter(term.data[i]) >= 0;
    if (rank >= 0) dots = rank - letters;
    for (size_t i = 0; i < term.size; i++) {
        int label = einsum_letter(term.data[i]);
        if (term.data[i] == ' ') continue;
        if (label < 0) {
            if (term.size - i < 3 || memcmp(term.data + i, "...", 3) != 0)
                return pith__fail(err, PITH_ERR_ARGUMENT, "equation: '%c' is not a label",
                                  term.data[i]);
            for (int d = dots - 1; d >= 0; d--) {
                if (n >= PITH_MAX_RANK || d >= MAX_LABELS - ELLIPSIS)
                    return pith__fail(err, PITH_ERR_ARGUMENT, "equation: too many dimensions");
                labels[n++] = (int8_t)(ELLIPSIS + d);
            }
            i += 2;
            continue;
        }
        if (n >= PITH_MAX_RANK)
            return pith__fail(err, PITH_ERR_ARGUMENT, "equation: too many dimensions");
        labels[n++] = (int8_t)label;
    }
    if (rank >= 0 && n != rank)
        return pith__fail(err, PITH_ERR_ARGUMENT, "equation: a term has %d labels for rank %d", n,
                          rank);
    *count = n;
    return PITH_OK;
}

/* Operands that share a label agree in its size, or one of them is 1 and broadcasts. A symbol that
 * meets another one leaves the size unknown. */
static pith_status einsum_note_size(einsum *e, int label, pith__dim size, pith_error *err) {
    pith__dim *known = &e->sizes[label];
    if (!e->seen[label] || *known == 1)
        *known = size;
    else if (size != 1 && pith__dim_known(size) && pith__dim_known(*known) && size != *known)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "equation: a label stands for sizes %lld and %lld", (long long)*known,
                          (long long)size);
    else if (size != 1 && !pith__dim_known(*known))
        *known = pith__dim_known(size) || pith__dim_equal(size, *known) ? size : PITH_DIM_UNKNOWN;
    e->seen[label] = true;
    return PITH_OK;
}

/* Reads the equation against ranks and sizes; an operand of unknown rank makes *known false. */
static pith_status einsum_read_equation(einsum *e, const pith__node *node,
                                        const pith__type *const *in, int count, bool *known,
                                        pith_error *err) {
    pith_str equation = pith__node_str(node, "equation", ""), left = equation, right = { NULL, 0 };
    memset(e, 0, sizeof *e);
    *known = true;
    for (size_t i = 0; i + 1 < equation.size; i++) {
        if (memcmp(equation.data + i, "->", 2) != 0) continue;
        left.size = i;
        right = (pith_str){ equation.data + i + 2, equation.size - i - 2 };
        break;
    }
    if (count > MAX_OPERANDS)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "%d operands, at most %d", count,
                          MAX_OPERANDS);
    int uses[MAX_LABELS] = { 0 }, dots = 0, operand = 0;
    for (size_t begin = 0, i = 0; i <= left.size; i++) {
        if (i < left.size && left.data[i] != ',') continue;
        if (operand >= count)
            return pith__fail(err, PITH_ERR_ARGUMENT, "equation: more terms than the %d operands",
                              count);
        const pith__type *t = in[operand];
        if (t->rank < 0) return *known = false, PITH_OK;
        int n;
        PITH_TRY(einsum_read_term(err, (pith_str){ left.data + begin, i - begin }, t->rank, 0,
                                  e->in[operand], &n));
        for (int d = 0; d < n; d++) {
            int label = e->in[operand][d];
            uses[label]++;
            if (label >= ELLIPSIS && label - ELLIPSIS + 1 > dots) dots = label - ELLIPSIS + 1;
            PITH_TRY(einsum_note_size(e, label, t->dims[d], err));
        }
        operand++;
        begin = i + 1;
    }
    if (operand != count)
        return pith__fail(err, PITH_ERR_ARGUMENT, "equation: %d terms for %d operands", operand,
                          count);
    if (right.data) {
        PITH_TRY(einsum_read_term(err, right, -1, dots, e->out, &e->out_rank));
        for (int d = 0; d < e->out_rank; d++)
            if (!e->seen[(int)e->out[d]])
                return pith__fail(err, PITH_ERR_ARGUMENT,
                                  "equation: the result has a label no operand has");
        return PITH_OK;
    }
    for (int d = dots - 1; d >= 0; d--)
        e->out[e->out_rank++] = (int8_t)(ELLIPSIS + d); /* implicit: what occurs once, sorted */
    for (int k = 0; k < 52; k++) {
        int label = k < 26 ? k + 26 : k - 26; /* capitals first */
        if (uses[label] != 1) continue;
        if (e->out_rank >= PITH_MAX_RANK)
            return pith__fail(err, PITH_ERR_ARGUMENT, "equation: too many dimensions");
        e->out[e->out_rank++] = (int8_t)label;
    }
    return PITH_OK;
}

/* The shape follows from the equation; all operands must be numbers of one dtype. */
static pith_status einsum_infer(pith__infer *c) {
    einsum e;
    bool known;
    int dtype = c->in[0]->dtype;
    PITH_TRY(pith__infer_equal_dtypes(c, 0, c->in_count - 1));
    if (dtype && !pith__dtype_is_float(dtype) && !pith__dtype_is_int(dtype))
        return pith__fail_dtype(c->err, dtype);
    PITH_TRY(einsum_read_equation(&e, c->node, c->in, c->in_count, &known, c->err));
    pith__dim dims[PITH_MAX_RANK];
    if (known) {
        for (int d = 0; d < e.out_rank; d++) dims[d] = e.sizes[(int)e.out[d]];
    }
    pith__type_set(&c->out[0], c->in[0]->dtype, known ? e.out_rank : -1, dims);
    return PITH_OK;
}

/* ---- as a batch of matmuls ---- */

enum { BATCH, ROW, COLUMN, SUMMED, KINDS };

/* An operand or the result as a tensor over labels in the order that the matmul wants. */
typedef struct side {
    int rank;
    int64_t dims[MAX_LABELS], strides[MAX_LABELS]; /* strides of the tensor as it is */
    bool as_it_is;                                 /* dense in this order */
} side;

typedef struct matmuls {
    bool possible, swapped; /* swapped: the second operand is the left side */
    bool turned;            /* the right side is [batch, column, summed] */
    side left, right, out;
    int64_t sizes[KINDS];
    int64_t left_count, right_count, out_count; /* elements */
} matmuls;

/* A label's kind by its places; KINDS: none. */
static int einsum_kind(bool left, bool right, bool out) {
    if (left && right) return out ? BATCH : SUMMED;
    if (!out) return KINDS;
    if (left) return ROW;
    return right ? COLUMN : KINDS;
}

/* Adds the labels of one kind, in the order of `order`, to a side whose tensor has these labels. */
static void einsum_side_add(side *s, const einsum *e, const int *kinds, int kind,
                            const int8_t *order, int count, const int64_t *strides) {
    for (int i = 0; i < count; i++) {
        int label = order[i];
        if (kinds[label] != kind) continue;
        s->dims[s->rank] = e->sizes[label];
        s->strides[s->rank++] = strides[label];
    }
}

static int64_t einsum_side_finish(side *s) {
    int64_t count = 1;
    s->as_it_is = true;
    for (int d = s->rank - 1; d >= 0; d--) {
        if (s->dims[d] != 1 && s->strides[d] != count) s->as_it_is = false;
        count *= s->dims[d];
    }
    return count;
}

/* Strides of a tensor's labels and which of them it has; false if one repeats or broadcasts. */
static bool einsum_strides(const einsum *e, const int8_t *labels, const int64_t *dims, int rank,
                           int64_t *strides, bool *has) {
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        int label = labels[d];
        if (has[label] || dims[d] != e->sizes[label]) return false;
        has[label] = true;
        strides[label] = stride;
        stride *= dims[d];
    }
    return true;
}

/* The sides for the left operand `first`; in[] are the shapes. */
static void einsum_matmuls_lay_out(matmuls *m, const einsum *e,
                                   const int64_t strides[3][MAX_LABELS], const int *kinds,
                                   int first, int ranks[3]) {
    const int8_t *order[3] = { e->in[first], e->in[!first], e->out };
    const int64_t *own[3] = { strides[first], strides[!first], strides[2] };
    int row = first ? COLUMN : ROW, column = first ? ROW : COLUMN;
    int left_rank = ranks[first];
    side *l = &m->left, *r = &m->right, *o = &m->out, turned = { 0 };
    *l = *r = *o = turned;
    einsum_side_add(l, e, kinds, BATCH, order[2], ranks[2], own[0]);
    einsum_side_add(l, e, kinds, row, order[2], ranks[2], own[0]);
    einsum_side_add(l, e, kinds, SUMMED, order[0], left_rank, own[0]);
    einsum_side_add(r, e, kinds, BATCH, order[2], ranks[2], own[1]);
    turned = *r;
    einsum_side_add(r, e, kinds, SUMMED, order[0], left_rank, own[1]);
    einsum_side_add(r, e, kinds, column, order[2], ranks[2], own[1]);
    einsum_side_add(&turned, e, kinds, column, order[2], ranks[2], own[1]);
    einsum_side_add(&turned, e, kinds, SUMMED, order[0], left_rank, own[1]);
    einsum_side_add(o, e, kinds, BATCH, order[2], ranks[2], own[2]);
    einsum_side_add(o, e, kinds, row, order[2], ranks[2], own[2]);
    einsum_side_add(o, e, kinds, column, order[2], ranks[2], own[2]);
    m->left_count = einsum_side_finish(l);
    m->right_count = einsum_side_finish(r);
    einsum_side_finish(&turned);
    m->turned = !r->as_it_is && turned.as_it_is;
    if (m->turned) *r = turned;
    m->out_count = einsum_side_finish(o);
    m->swapped = first;
}

/* How many elements would have to be moved, and packed as a right side. */
static double einsum_matmuls_moved(const matmuls *m) {
    return (m->left.as_it_is ? 0 : (double)m->left_count) +
           (m->out.as_it_is ? 0 : (double)m->out_count) +
           (double)m->right_count * (m->right.as_it_is ? 1 : 2);
}

/* Tries both operands as the left side and takes the plan that moves fewer elements. Not possible:
 * other than two operands, a label that repeats in one of them or broadcasts, or one that only one
 * operand has and the result does not. */
static void einsum_matmuls_plan(matmuls *m, const einsum *e, const pith__type *const *in,
                                int count) {
    bool has[3][MAX_LABELS] = { { false } };
    int64_t strides[3][MAX_LABELS] = { { 0 } }, out_dims[PITH_MAX_RANK];
    int kinds[MAX_LABELS];
    memset(m, 0, sizeof *m);
    if (count != 2) return;
    int ranks[3] = { in[0]->rank, in[1]->rank, e->out_rank };
    for (int d = 0; d < e->out_rank; d++) out_dims[d] = e->sizes[(int)e->out[d]];
    if (!einsum_strides(e, e->in[0], in[0]->dims, ranks[0], strides[0], has[0]) ||
        !einsum_strides(e, e->in[1], in[1]->dims, ranks[1], strides[1], has[1]) ||
        !einsum_strides(e, e->out, out_dims, ranks[2], strides[2], has[2]))
        return;
    for (int i = 0; i < KINDS; i++) m->sizes[i] = 1;
    for (int label = 0; label < MAX_LABELS; label++) {
        kinds[label] = KINDS;
        if (!has[0][label] && !has[1][label] && !has[2][label]) continue;
        kinds[label] = einsum_kind(has[0][label], has[1][label], has[2][label]);
        if (kinds[label] == KINDS) return;
        if (pith__mul_overflows(m->sizes[kinds[label]], e->sizes[label], &m->sizes[kinds[label]]))
            return;
    }
    /* Matmuls of a few numbers each cost more than the loop. */
    if (m->sizes[BATCH] > 64 && m->sizes[ROW] * m->sizes[COLUMN] < 16) return;
    int64_t sizes[KINDS];
    memcpy(sizes, m->sizes, sizeof sizes);
    matmuls other = *m;
    einsum_matmuls_lay_out(m, e, (const int64_t(*)[MAX_LABELS])strides, kinds, 0, ranks);
    einsum_matmuls_lay_out(&other, e, (const int64_t(*)[MAX_LABELS])strides, kinds, 1, ranks);
    other.sizes[ROW] = sizes[COLUMN], other.sizes[COLUMN] = sizes[ROW];
    if (einsum_matmuls_moved(&other) < einsum_matmuls_moved(m)) *m = other;
    m->possible = true;
}

typedef struct state {
    bool floats;
    pith__product product;
} state;

static pith_status einsum_prepare(pith__prepare *c) {
    state *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->floats = pith__compute_dtype(c->in[0]->dtype) == PITH_F32 || c->in[0]->dtype == PITH_F64;
    if (s->floats) PITH_TRY(pith__product_prepare(&s->product, c, c->in[0]->dtype, -1, false));
    c->state = s;
    return PITH_OK;
}

static bool einsum_add(size_t *bytes, const side *s, int64_t count, size_t element) {
    size_t own;
    return s->as_it_is || (!pith__mul_overflows((size_t)count, element, &own) &&
                           !pith__add_overflows(*bytes, own + 64, bytes));
}

/* Offsets of the matrices of either side, the product's own, moved operands and result; or
 * everything in double. */
static pith_status einsum_scratch(const pith__infer *c, const void *state_, int threads,
                                  size_t *bytes) {
    const state *s = state_;
    einsum e;
    bool known;
    matmuls m;
    PITH_TRY(einsum_read_equation(&e, c->node, c->in, c->in_count, &known, c->err));
    if (s->floats) einsum_matmuls_plan(&m, &e, c->in, c->in_count);
    if (!s->floats || !m.possible) return pith__wide_scratch(c, s, threads, bytes);
    size_t element = s->product.element, offsets;
    bool fits = pith__product_scratch(&s->product, m.sizes[BATCH], m.sizes[COLUMN], m.sizes[SUMMED],
                                      threads, bytes) &&
                !pith__mul_overflows((size_t)m.sizes[BATCH], sizeof(int64_t), &offsets) &&
                !pith__add_overflows(*bytes, offsets + 128, bytes) &&
                einsum_add(bytes, &m.left, m.left_count, element) &&
                einsum_add(bytes, &m.right, m.right_count, element) &&
                einsum_add(bytes, &m.out, m.out_count, element);
    return fits ? pith__widen_scratch(c, 0, bytes) : pith__fail_memory(c->err, SIZE_MAX);
}

/* Row-major strides of a side's own order. */
static void einsum_side_strides(const side *s, int64_t *strides) {
    int64_t stride = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= s->dims[d];
    }
}

/* An operand in the order of the side. */
static const void *einsum_side_take(pith__run *r, const side *s, const void *data, int64_t count,
                                    size_t element, char **at) {
    int64_t to[MAX_LABELS];
    if (s->as_it_is) return data;
    void *moved = *at;
    einsum_side_strides(s, to);
    pith__run_move(r, moved, to, data, s->strides, s->dims, s->rank, element);
    *at += pith__round64((size_t)count * element);
    return moved;
}

/* Operands that lie in the order of the plan are used where they are. A result in another order is
 * computed next to the output and moved at the end. */
static pith_status einsum_run_matmuls(pith__run *r, const matmuls *m) {
    const state *s = r->state;
    size_t element = s->product.element;
    int64_t count = m->sizes[BATCH], rows = m->sizes[ROW], columns = m->sizes[COLUMN],
            k = m->sizes[SUMMED];
    int64_t *b_at = r->scratch, own[MAX_LABELS];
    char *at = (char *)r->scratch + pith__round64((size_t)count * sizeof *b_at);
    const void *left =
        einsum_side_take(r, &m->left, r->in[m->swapped]->data, m->left_count, element, &at);
    const void *right =
        einsum_side_take(r, &m->right, r->in[!m->swapped]->data, m->right_count, element, &at);
    void *out = r->out[0]->data;
    if (!m->out.as_it_is) {
        out = at;
        at += pith__round64((size_t)m->out_count * element);
    }
    for (int64_t i = 0; i < count; i++) b_at[i] = i * k * columns;
    pith__product_job j = { .product = &s->product,
                            .a = left,
                            .b = right,
                            .c = out,
                            .count = count,
                            .m = rows,
                            .n = columns,
                            .k = k,
                            .a_row = k,
                            .a_column = 1,
                            .b_row = m->turned ? 1 : columns,
                            .b_column = m->turned ? k : 1,
                            .b_at = b_at };
    pith__product_run(r, at, &j);
    if (m->out.as_it_is) return PITH_OK;
    einsum_side_strides(&m->out, own);
    pith__run_move(r, r->out[0]->data, m->out.strides, out, own, m->out.dims, m->out.rank, element);
    return PITH_OK;
}

static pith_status einsum_read(const pith__run *r, einsum *e, matmuls *m) {
    pith__type types[MAX_OPERANDS];
    const pith__type *in[MAX_OPERANDS];
    bool known;
    for (int i = 0; i < r->in_count && i < MAX_OPERANDS; i++) {
        pith__type_of_tensor(&types[i], r->in[i]);
        in[i] = &types[i];
    }
    PITH_TRY(einsum_read_equation(e, r->node, in, r->in_count, &known, r->err));
    einsum_matmuls_plan(m, e, in, r->in_count);
    return PITH_OK;
}

static pith_status einsum_run_floats(pith__run *r) {
    einsum e;
    matmuls m;
    PITH_TRY(einsum_read(r, &e, &m));
    return einsum_run_matmuls(r, &m);
}

/* ---- label by label ---- */

/* The general loop: an odometer over the labels, whose inner digits are the summed ones, so a
 * result is complete before the next begins. An operand's offset changes by its stride of the label
 * that moves, and goes back when that label's digit wraps. */
static pith_status einsum_run(pith__run *r) {
    einsum e;
    matmuls m;
    PITH_TRY(einsum_read(r, &e, &m));
    if (((const state *)r->state)->floats && m.possible) {
        return pith__tensor_count(r->out[0]) ? pith__widen_run(r, 0, einsum_run_floats) : PITH_OK;
    }
    /* Loop order: the result's labels, then the summed ones. */
    int order[MAX_LABELS], loops = 0;
    bool in_result[MAX_LABELS] = { false };
    for (int d = 0; d < e.out_rank; d++) {
        if (in_result[(int)e.out[d]])
            return pith__op_fail(r, "equation: a label occurs twice in the result");
        in_result[(int)e.out[d]] = true;
        order[loops++] = e.out[d];
    }
    for (int label = 0; label < MAX_LABELS; label++)
        if (e.seen[label] && !in_result[label]) order[loops++] = label;
    int64_t strides[MAX_OPERANDS][MAX_LABELS] = { { 0 } }, index[MAX_LABELS] = { 0 },
            at[MAX_OPERANDS] = { 0 }, inner = 1, outer = 1;
    for (int i = 0; i < r->in_count; i++) {
        int64_t stride = 1;
        for (int d = r->in[i]->rank - 1; d >= 0; d--) {
            if (r->in[i]->dims[d] != 1) strides[i][(int)e.in[i][d]] += stride;
            stride *= r->in[i]->dims[d];
        }
    }
    for (int l = 0; l < loops; l++) *(l < e.out_rank ? &outer : &inner) *= e.sizes[order[l]];
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    int64_t spent = 0;
    for (int64_t o = 0; o < outer; o++) {
        double sum = 0;
        for (int64_t k = 0; k < inner; k++) {
            PITH_TRY(pith__run_spend(r, &spent, 32));
            double product = 1;
            for (int i = 0; i < r->in_count; i++) product *= w.in[i][at[i]];
            sum += product;
            for (int l = loops - 1; l >= 0; l--) { /* the next place */
                int label = order[l];
                for (int i = 0; i < r->in_count; i++) at[i] += strides[i][label];
                if (++index[label] < e.sizes[label]) break;
                for (int i = 0; i < r->in_count; i++) at[i] -= strides[i][label] * e.sizes[label];
                index[label] = 0;
            }
        }
        w.out[0][o] = sum;
    }
    return pith__wide_close(&w, r);
}

const pith__op pith__op_Einsum = {
    .domain = "",
    .name = "Einsum",
    .since = 12,
    .newest = 28,
    .min_inputs = 1,
    .max_inputs = -1,
    .max_outputs = 1,
    .types = "n",
    .attrs = "equation string!",
    .infer = einsum_infer,
    .prepare = einsum_prepare,
    .scratch = einsum_scratch,
    .run = einsum_run,
};
