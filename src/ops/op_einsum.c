/* op_einsum.c - Einsum: the product of the operands, summed over every label that the result does not name.
 *
 * Labels are letters; "..." stands for further dimensions, which broadcast. One loop runs over all labels, result
 * labels outermost. Each operand has a stride per label, the sum of several if a label repeats (a diagonal). Source:
 * ONNX Einsum. */
#include <string.h>

#include "ops/infer.h"
#include "ops/wide.h"

/* Labels that an equation may use: 52 letters, and the 12 dimensions that "..." may stand for. */
enum { MAX_LABELS = 64, ELLIPSIS = 52, MAX_OPERANDS = PITH_WIDE_MAX };

/* Labels 0 to 51 are letters, from ELLIPSIS on the dimensions of "...", the last dimension first. */
typedef struct einsum {
    int8_t in[MAX_OPERANDS][PITH_MAX_RANK]; /* label of each dimension */
    int8_t out[PITH_MAX_RANK];
    int out_rank;
    pith_dim sizes[MAX_LABELS];
    bool seen[MAX_LABELS];
} einsum;

static int letter(char ch) { return ch >= 'a' && ch <= 'z' ? ch - 'a' : ch >= 'A' && ch <= 'Z' ? ch - 'A' + 26 : -1; }

/* One term ("ij...k") for a tensor of this rank (-1: the result, whose "..." has `dots` dimensions). */
static pith_status read_term(pith_error *err, pith_str term, int rank, int dots, int8_t *labels, int *count) {
    int letters = 0, n = 0;
    for (size_t i = 0; i < term.size; i++) letters += letter(term.data[i]) >= 0;
    if (rank >= 0) dots = rank - letters;
    for (size_t i = 0; i < term.size; i++) {
        int label = letter(term.data[i]);
        if (term.data[i] == ' ') continue;
        if (label < 0) {
            if (term.size - i < 3 || memcmp(term.data + i, "...", 3) != 0)
                return pith_fail(err, PITH_ERR_ARGUMENT, "equation: '%c' is not a label", term.data[i]);
            for (int d = dots - 1; d >= 0; d--) {
                if (n >= PITH_MAX_RANK || d >= MAX_LABELS - ELLIPSIS)
                    return pith_fail(err, PITH_ERR_ARGUMENT, "equation: too many dimensions");
                labels[n++] = (int8_t)(ELLIPSIS + d);
            }
            i += 2;
            continue;
        }
        if (n >= PITH_MAX_RANK) return pith_fail(err, PITH_ERR_ARGUMENT, "equation: too many dimensions");
        labels[n++] = (int8_t)label;
    }
    if (rank >= 0 && n != rank)
        return pith_fail(err, PITH_ERR_ARGUMENT, "equation: a term has %d labels for rank %d", n, rank);
    *count = n;
    return PITH_OK;
}

static pith_status note_size(einsum *e, int label, pith_dim size, pith_error *err) {
    pith_dim *known = &e->sizes[label];
    if (!e->seen[label] || *known == 1)
        *known = size;
    else if (size != 1 && pith_dim_known(size) && pith_dim_known(*known) && size != *known)
        return pith_fail(err, PITH_ERR_ARGUMENT, "equation: a label stands for sizes %lld and %lld", (long long)*known,
                         (long long)size);
    else if (size != 1 && !pith_dim_known(*known))
        *known = pith_dim_known(size) || pith_dim_equal(size, *known) ? size : PITH_DIM_UNKNOWN;
    e->seen[label] = true;
    return PITH_OK;
}

/* Reads the equation against ranks and sizes; an operand of unknown rank makes *known false. */
static pith_status read_equation(einsum *e, const pith_node *node, const pith_type *const *in, int count, bool *known,
                                 pith_error *err) {
    pith_str equation = pith_node_str(node, "equation", ""), left = equation, right = { NULL, 0 };
    memset(e, 0, sizeof *e);
    *known = true;
    for (size_t i = 0; i + 1 < equation.size; i++) {
        if (memcmp(equation.data + i, "->", 2) != 0) continue;
        left.size = i;
        right = (pith_str){ equation.data + i + 2, equation.size - i - 2 };
        break;
    }
    if (count > MAX_OPERANDS)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "%d operands, at most %d", count, MAX_OPERANDS);
    int uses[MAX_LABELS] = { 0 }, dots = 0, operand = 0;
    for (size_t begin = 0, i = 0; i <= left.size; i++) {
        if (i < left.size && left.data[i] != ',') continue;
        if (operand >= count)
            return pith_fail(err, PITH_ERR_ARGUMENT, "equation: more terms than the %d operands", count);
        const pith_type *t = in[operand];
        if (t->rank < 0) return *known = false, PITH_OK;
        int n;
        PITH_TRY(read_term(err, (pith_str){ left.data + begin, i - begin }, t->rank, 0, e->in[operand], &n));
        for (int d = 0; d < n; d++) {
            int label = e->in[operand][d];
            uses[label]++;
            if (label >= ELLIPSIS && label - ELLIPSIS + 1 > dots) dots = label - ELLIPSIS + 1;
            PITH_TRY(note_size(e, label, t->dims[d], err));
        }
        operand++;
        begin = i + 1;
    }
    if (operand != count)
        return pith_fail(err, PITH_ERR_ARGUMENT, "equation: %d terms for %d operands", operand, count);
    if (right.data) {
        PITH_TRY(read_term(err, right, -1, dots, e->out, &e->out_rank));
        for (int d = 0; d < e->out_rank; d++)
            if (!e->seen[(int)e->out[d]])
                return pith_fail(err, PITH_ERR_ARGUMENT, "equation: the result has a label no operand has");
        return PITH_OK;
    }
    for (int d = dots - 1; d >= 0; d--)
        e->out[e->out_rank++] = (int8_t)(ELLIPSIS + d); /* implicit: what occurs once, sorted */
    for (int k = 0; k < 52; k++) {
        int label = k < 26 ? k + 26 : k - 26; /* capitals first */
        if (uses[label] != 1) continue;
        if (e->out_rank >= PITH_MAX_RANK) return pith_fail(err, PITH_ERR_ARGUMENT, "equation: too many dimensions");
        e->out[e->out_rank++] = (int8_t)label;
    }
    return PITH_OK;
}

static pith_status einsum_infer(pith_infer *c) {
    einsum e;
    bool known;
    int dtype = c->in[0]->dtype;
    PITH_TRY(pith_infer_equal_dtypes(c, 0, c->in_count - 1));
    if (dtype && !pith_dtype_is_float(dtype) && !pith_dtype_is_int(dtype)) return pith_fail_dtype(c->err, dtype);
    PITH_TRY(read_equation(&e, c->node, c->in, c->in_count, &known, c->err));
    pith_dim dims[PITH_MAX_RANK];
    for (int d = 0; known && d < e.out_rank; d++) dims[d] = e.sizes[(int)e.out[d]];
    pith_type_set(&c->out[0], c->in[0]->dtype, known ? e.out_rank : -1, dims);
    return PITH_OK;
}

static pith_status einsum_run(pith_run *r) {
    pith_type types[MAX_OPERANDS];
    const pith_type *in[MAX_OPERANDS];
    einsum e;
    bool known;
    for (int i = 0; i < r->in_count && i < MAX_OPERANDS; i++) {
        pith_type_of_tensor(&types[i], r->in[i]);
        in[i] = &types[i];
    }
    PITH_TRY(read_equation(&e, r->node, in, r->in_count, &known, r->err));
    /* Loop order: the result's labels, then the summed ones. */
    int order[MAX_LABELS], loops = 0;
    bool in_result[MAX_LABELS] = { false };
    for (int d = 0; d < e.out_rank; d++) {
        if (in_result[(int)e.out[d]]) return pith_op_fail(r, "equation: a label occurs twice in the result");
        in_result[(int)e.out[d]] = true;
        order[loops++] = e.out[d];
    }
    for (int label = 0; label < MAX_LABELS; label++)
        if (e.seen[label] && !in_result[label]) order[loops++] = label;
    int64_t strides[MAX_OPERANDS][MAX_LABELS] = { { 0 } }, index[MAX_LABELS] = { 0 }, at[MAX_OPERANDS] = { 0 },
            inner = 1, outer = 1;
    for (int i = 0; i < r->in_count; i++) {
        int64_t stride = 1;
        for (int d = r->in[i]->rank - 1; d >= 0; d--) {
            if (r->in[i]->dims[d] != 1) strides[i][(int)e.in[i][d]] += stride;
            stride *= r->in[i]->dims[d];
        }
    }
    for (int l = 0; l < loops; l++) *(l < e.out_rank ? &outer : &inner) *= e.sizes[order[l]];
    pith_wide w;
    pith_wide_open(&w, r);
    for (int64_t o = 0; o < outer; o++) {
        double sum = 0;
        for (int64_t k = 0; k < inner; k++) {
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
    pith_wide_close(&w, r);
    return PITH_OK;
}

const pith_op pith_op_Einsum = {
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
    .scratch = pith_wide_scratch,
    .run = einsum_run,
};
