/* op_pith_linear.c - pith.Linear: y = activation(x W + b), the form of every dense layer.
 *
 *   inputs      x [..., k]; then pairs of weight [k, n_i] (or [n_i, k]) and bias [n_i] (may be
 *               absent), all constants
 *   output      [..., n_0 + n_1 + …]: the columns of several weights one after another, such as
 *               query, key and value
 *   attributes  activation (pith__gemm_activation); transposed: bit i says that weight i is [n_i,
 *               k]; precision (pith_precision) of the matmul, f32 if it is absent; repeats: 1 if
 *               duplicate rows of x are likely, which are then multiplied once
 *
 * Weights are f32, f16 or bf16, packed once by prepare. All but the last have a multiple of
 * PITH_GEMM_PANEL columns. */
#include "base/checked.h"
#include "base/half.h"
#include "engine/ops/shared/distinct_rows.h"
#include "engine/ops/shared/linear.h"

/* Weights that may be merged into one linear; query, key and value are three. */
#define WEIGHTS_MAX 8
/* The fewest rows of a part. With fewer, a part waits for its weights to be read; with this many
 * they arrive as fast as they are used. More leave threads idle. */
#define ROWS_PER_PART 48
/* Pieces into which the part of a thread is cut if it has enough rows, so that a delayed thread can
 * leave some to others. */
#define SHARES 4
/* Columns of a part are a multiple of this, so that most tiles are full. */
#define COLUMNS ((int64_t)2 * PITH_GEMM_PANEL)

static bool linear_is_transposed(const pith__node *node, int pair) {
    return pith__node_int(node, "transposed", 0) >> pair & 1;
}

/* Columns of all weights add up. */
static pith_status linear_infer(pith__infer *c) {
    const pith__type *x = c->in[0];
    if (x->dtype != PITH_F32) return pith__op_fail(c, "x must be float32");
    if (x->rank == 0) return pith__op_fail(c, "x is a scalar");
    if (c->in_count > 1 + 2 * WEIGHTS_MAX)
        return pith__op_fail(c, "there are more than %d weights", WEIGHTS_MAX);
    int64_t activation = pith__node_int(c->node, "activation", PITH_ACT_NONE);
    if (activation < PITH_ACT_NONE || activation > PITH_ACT_QUICK_GELU)
        return pith__op_fail(c, "unknown activation");
    pith__dim n = 0;
    for (int i = 1; i < c->in_count; i += 2) {
        const pith__type *w = c->in[i];
        if (!w || w->rank != 2) return pith__op_fail(c, "weight %d is not a matrix", i / 2);
        bool transposed = linear_is_transposed(c->node, i / 2);
        pith__dim k = w->dims[transposed];
        if (x->rank > 0 && pith__dim_known(x->dims[x->rank - 1]) && x->dims[x->rank - 1] != k) {
            return pith__op_fail(c, "x has %lld columns, weight %d has %lld rows",
                                 (long long)x->dims[x->rank - 1], i / 2, (long long)k);
        }
        n = pith__dim_apply(c->dims, PITH_DIM_ADD, n, w->dims[!transposed]);
    }
    pith__type_set(&c->out[0], PITH_F32, x->rank, x->dims);
    if (x->rank > 0) c->out[0].dims[x->rank - 1] = n;
    return PITH_OK;
}

/* One weight as f32, from f32, f16 or bf16. */
static float linear_element(const pith_tensor *t, int64_t i) {
    float f;
    uint16_t h;
    if (t->dtype == PITH_F32) {
        memcpy(&f, (const char *)t->data + (size_t)i * sizeof f, sizeof f);
        return f;
    }
    memcpy(&h, (const char *)t->data + (size_t)i * sizeof h, sizeof h);
    return t->dtype == PITH_F16 ? pith__f32_of_f16(h) : pith__f32_of_bf16(h);
}

/* Weights must be packable constants, biases constants. */
static pith_status linear_check_constants(const pith__prepare *c) {
    for (int i = 1; i < c->in_count; i++) {
        if (!c->in[i]) continue;
        int dtype = c->in[i]->dtype;
        if (!(i % 2 ? pith__pack_can(c, i) : c->in[i]->data != NULL))
            return pith__op_fail(c, "input %d is not a constant", i);
        if (dtype != PITH_F32 && dtype != PITH_F16 && dtype != PITH_BF16) {
            return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "input %d has an unsupported dtype", i);
        }
    }
    return PITH_OK;
}

static int64_t linear_columns_of(const pith__prepare *c, int i) {
    return c->in[i]->dims[!linear_is_transposed(c->node, i / 2)];
}

static const pith__linear_way *const ways[] = {
    [PITH_PRECISION_F32] = &pith__linear_f32,
    [PITH_PRECISION_INT8] = &pith__linear_int8,
    [PITH_PRECISION_BF16] = &pith__linear_bf16,
};

/* The precision decides, unless it is f32 and all weights are stored in the same 16 bits: then they
 * stay so in memory and are widened on the way, which gives the same bits. */
static pith_status linear_find_way(pith__linear *s, const pith__prepare *c) {
    int64_t precision = pith__node_int(c->node, "precision", PITH_PRECISION_F32);
    if (precision < 1 || (size_t)precision >= sizeof ways / sizeof ways[0])
        return pith__op_fail(c, "precision %lld is unknown", (long long)precision);
    int stored = precision == PITH_PRECISION_F32 && s->k > 0 ? c->in[1]->dtype : PITH_F32;
    for (int i = 3; i < c->in_count; i += 2) {
        if (c->in[i]->dtype != stored) stored = PITH_F32;
    }
    s->way = s->k > 0 ? ways[precision] : &pith__linear_f32;
    if (stored == PITH_F16) s->way = &pith__linear_f16_stored;
    if (stored == PITH_BF16) s->way = &pith__linear_bf16_stored;
    return PITH_OK;
}

/* The ways pack all weights as one matrix [k, n_0 + n_1 + …]. Every one but the last must fill
 * whole panels for that. Biases are joined; absent ones are -0, which changes no bit of a sum. */
static pith_status linear_prepare(pith__prepare *c) {
    PITH_TRY(linear_check_constants(c));
    pith__linear *s = pith__arena_array(c->arena, 1, sizeof *s);
    if (!s) return pith__fail_memory(c->err, sizeof *s);
    s->activation = (pith__gemm_activation)pith__node_int(c->node, "activation", PITH_ACT_NONE);
    s->k = c->in[1]->dims[linear_is_transposed(c->node, 0)];
    s->repeats = pith__node_int(c->node, "repeats", 0) != 0 && s->k > 0;
    PITH_TRY(linear_find_way(s, c));
    bool has_bias = false;
    for (int i = 1; i < c->in_count; i += 2) {
        const pith__type *bias = i + 1 < c->in_count ? c->in[i + 1] : NULL;
        if (c->in[i]->dims[linear_is_transposed(c->node, i / 2)] != s->k)
            return pith__op_fail(c, "weight %d differs in rows", i / 2);
        if (bias && pith__type_count(bias) != linear_columns_of(c, i))
            return pith__op_fail(c, "bias %d does not fit its weight", i / 2);
        if (s->n % PITH_GEMM_PANEL)
            return pith__op_fail(c, "weight %d begins inside a panel", i / 2);
        s->n += linear_columns_of(c, i);
        has_bias |= bias != NULL;
    }
    if (pith__gemm_f32_packed_size(s->k, s->n) < 0) return pith__fail_memory(c->err, SIZE_MAX);
    if (has_bias) {
        s->bias = pith__arena_alloc64(c->arena, (size_t)s->n * sizeof(float));
        if (!s->bias) return pith__fail_memory(c->err, (size_t)s->n * sizeof(float));
    }
    pith__pack_matrix weights[WEIGHTS_MAX];
    size_t count = 0;
    int64_t n0 = 0;
    for (int i = 1; i < c->in_count; n0 += linear_columns_of(c, i), i += 2) {
        int64_t n = linear_columns_of(c, i);
        weights[count++] =
            (pith__pack_matrix){ i, linear_is_transposed(c->node, i / 2), 0, n, n0 * s->k };
        const pith_tensor *b = i + 1 < c->in_count && c->in[i + 1] ? c->in[i + 1]->data : NULL;
        /* x + -0.0 is x, for every x. */
        if (has_bias) {
            for (int64_t j = 0; j < n; j++) s->bias[n0 + j] = b ? linear_element(b, j) : -0.0f;
        }
    }
    c->state = s;
    return s->way->prepare(s, c, weights, count);
}

/* Of scratch, before converted rows: what finds equal ones. */
static size_t linear_distinct_bytes(const pith__linear *s, int64_t m) {
    return s->repeats ? pith__distinct_rows_bytes(m, s->k) : 0;
}

/* What the way needs for converted rows, and for finding duplicates. */
static pith_status linear_scratch(const pith__infer *c, const void *state, int threads,
                                  size_t *bytes) {
    const pith__linear *s = state;
    (void)threads;
    int64_t m = s->k > 0 ? pith__type_count(c->in[0]) / s->k : 0;
    *bytes = 0;
    if ((s->way->row_bytes && pith__mul_overflows((size_t)m, s->way->row_bytes(s), bytes)) ||
        pith__add_overflows(*bytes, linear_distinct_bytes(s, m), bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return PITH_OK;
}

typedef struct work {
    const pith__linear *s;
    pith__linear_rows rows;
    int64_t row_parts, column_parts, streak; /* streak: parts that a thread takes one after the
                                                other */
    pith__packed_bytes upcoming;
} work;

/* Where part i of `parts` begins, in multiples of unit. */
static int64_t linear_begin_of(int64_t i, int64_t parts, int64_t size, int64_t unit) {
    int64_t begin = (size + unit - 1) / unit * i / parts * unit;
    return begin < size ? begin : size;
}

/* What the thread that takes part `index`, whose columns end at n1, probably reads next: the
 * columns that follow, or of the next matmul those it begins with, which are the first if it goes
 * by rows. */
static const void *linear_next_of(const work *w, int64_t index, int64_t n1) {
    if ((index + 1) % w->streak && n1 < w->s->n) return NULL;
    int64_t first = w->row_parts > 1 ? 0 : index / w->streak * w->streak;
    int64_t lines = (int64_t)(w->upcoming.bytes / 64);
    return lines ? (const char *)w->upcoming.data + lines * first / w->column_parts * 64 : NULL;
}

/* One block of rows and columns. With one part per row block the conversion of the rows is done
 * here, where it is read; else it was done before, once. next: what the following part reads first.
 */
static void linear_part(void *context, size_t index, int worker) {
    const work *w = context;
    const pith__linear *s = w->s;
    (void)worker;
    int64_t i = (int64_t)index / w->column_parts, j = (int64_t)index % w->column_parts;
    int64_t n0 = linear_begin_of(j, w->column_parts, s->n, COLUMNS),
            n1 = linear_begin_of(j + 1, w->column_parts, s->n, COLUMNS);
    int64_t m0 = linear_begin_of(i, w->row_parts, w->rows.m, 1),
            m1 = linear_begin_of(i + 1, w->row_parts, w->rows.m, 1);
    pith__linear_rows rows = w->rows;
    rows.next = linear_next_of(w, (int64_t)index, n1);
    if (w->column_parts == 1 && s->way->convert) s->way->convert(s, &rows, m0, m1);
    s->way->multiply(s, &rows, m0, m1, n0, n1);
}

/* By rows where each part has enough of them, so that a thread finds its rows of one step in its
 * cache in the next; fewer wait for weights, which are then read by one thread only. Where there
 * are enough rows each thread's share is cut by columns again, so that a thread which is done can
 * take some of another's; rows that are to be converted are not. least: the number of parts that
 * a run which may have to stop wants. */
static void linear_split(work *w, int threads, int64_t least) {
    int64_t m = w->rows.m, strips = (w->s->n + COLUMNS - 1) / COLUMNS, shares = 1;
    double most = (double)m * (double)w->s->n * (double)w->s->k / (double)w->s->grain;
    if (most < (double)w->s->packed_bytes / PITH_LINEAR_GRAIN_BYTES)
        most = (double)w->s->packed_bytes / PITH_LINEAR_GRAIN_BYTES;
    int64_t parts = threads;
    if (most < threads) parts = most > 1 ? (int64_t)most : 1;
    w->row_parts = m / ROWS_PER_PART < parts ? m / ROWS_PER_PART : parts;
    if (w->row_parts < 1) w->row_parts = 1;
    if (parts > 1 && m >= ROWS_PER_PART && !w->s->way->convert) shares = SHARES;
    w->column_parts = (shares * parts + w->row_parts - 1) / w->row_parts;
    if (w->column_parts > strips) w->column_parts = strips;
    w->streak = w->row_parts * w->column_parts / parts;
    if (w->streak < 1) w->streak = 1;
    if (w->row_parts * w->column_parts >= least) return;
    w->row_parts = (least + w->column_parts - 1) / w->column_parts;
    if (w->row_parts > m / ROWS_PER_PART) w->row_parts = m / ROWS_PER_PART;
    if (w->row_parts < 1) w->row_parts = 1;
}

static int64_t linear_rows_of(const pith__linear *s, const pith__run *r) {
    return s->n > 0 ? pith__tensor_count(r->out[0]) / s->n : 0;
}

/* Duplicate rows are multiplied once and spread afterwards, if that can pay. */
static pith_status linear_run(pith__run *r) {
    const pith__linear *s = r->state;
    const int64_t m = linear_rows_of(s, r);
    if (m == 0) return PITH_OK;
    work w = {
        .s = s,
        .rows = { .x = r->in[0]->data, .y = r->out[0]->data, .converted = r->scratch, .m = m },
        .upcoming = r->upcoming
    };
    const size_t before = linear_distinct_bytes(s, m);
    const pith__distinct_rows *distinct =
        before ? pith__distinct_rows_find(r->scratch, w.rows.x, m, s->k) : NULL;
    if (distinct) {
        w.rows.x = distinct->rows;
        w.rows.m = distinct->count;
        w.rows.converted = (char *)r->scratch + before;
    }
    linear_split(&w, r->exec->threads,
                 pith__run_parts_least(r, (double)w.rows.m * (double)s->n * (double)s->k));
    if (w.column_parts > 1 && s->way->convert) s->way->convert(s, &w.rows, 0, w.rows.m);
    pith__run_parallel(r, linear_part, &w, (size_t)(w.row_parts * w.column_parts));
    if (distinct) pith__distinct_rows_spread(distinct, w.rows.y, m, s->n);
    return PITH_OK;
}

/* ---- f32 ---- */

/* The kernel and the size of the packed panels. */
static pith_status linear_prepare_f32(pith__linear *s, pith__prepare *c,
                                      const pith__pack_matrix *weights, size_t count) {
    s->gemm = pith__prepare_find(c, "gemm", PITH_F32);
    /* so that a message names both */
    if (!s->gemm) (void)pith__prepare_find(c, "gemm_pack", PITH_F32);
    if (!s->gemm) return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no float32 GEMM");
    s->grain = PITH_LINEAR_GRAIN;
    size_t floats = (size_t)pith__gemm_f32_packed_size(s->k, s->n);
    s->packed_bytes = floats * sizeof(float);
    return pith__prepare_pack_f32(c, &s->packed, weights, count, s->k, floats);
}

/* Rows [m0, m1), columns [n0, n1) of the result. */
static void linear_multiply_f32(const pith__linear *s, const pith__linear_rows *r, int64_t m0,
                                int64_t m1, int64_t n0, int64_t n1) {
    pith__gemm g = { .a = r->x,
                     .b = s->packed,
                     .c = r->y,
                     .bias = s->bias,
                     .m = r->m,
                     .n = s->n,
                     .k = s->k,
                     .lda = s->k,
                     .ldc = s->n,
                     .activation = s->activation,
                     .next = r->next };
    ((pith__gemm_f32_fn *)s->gemm)(&g, m0, m1, n0, n1);
}

const pith__linear_way pith__linear_f32 = {
    .kernel = "gemm f32",
    .prepare = linear_prepare_f32,
    .multiply = linear_multiply_f32,
};

static void linear_cost(const pith__run *r, pith__cost *cost) {
    const pith__linear *s = r->state;
    const int64_t m = linear_rows_of(s, r);
    pith__cost_product(cost, s->k, s->way->kernel);
    if (r->scratch && linear_distinct_bytes(s, m))
        cost->operations *= (double)((const pith__distinct_rows *)r->scratch)->count / (double)m;
}

const pith__op pith__op_Linear_pith = {
    .domain = "pith",
    .name = "Linear",
    .since = 1,
    .newest = 1,
    .min_inputs = 2,
    .max_inputs = -1,
    .max_outputs = 1,
    .attrs =
        "activation int 0..7 = 0; precision int 0..3 = 1; repeats bool = 0; transposed int 0.. = 0",
    .flags = PITH_OP_GAPS,
    .infer = linear_infer,
    .prepare = linear_prepare,
    .scratch = linear_scratch,
    .run = linear_run,
    .cost = linear_cost,
};

const pith__linear *pith__linear_state(const pith__node *node, const void *state) {
    return node->op == &pith__op_Linear_pith ? state : NULL;
}
