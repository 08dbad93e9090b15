/* recurrent_f32.c - see recurrent_f32.h. Order of the gates: RNN h; GRU z, r, h; LSTM i, o, f, c.
 */
#include "engine/ops/shared/recurrent_f32.h"

#include <string.h>

#include "base/checked.h"
#include "engine/kernels/convert.h"
#include "engine/ops/shared/elementwise.h"
#include "engine/ops/shared/packed_constants.h"

/* BLOCK: gates of a block, so that they stay in L2. LEAST, MOST: its steps. ROWS: steps of a part
 * of the input projections. GRAIN: multiply-adds that are worth a thread. */
enum { BLOCK = 1 << 17, LEAST = 16, MOST = 512, ROWS = 32, GRAIN = 1 << 16 };

/* Per direction one W and one R. GRU applies the reset gate before its last matmul, unless
 * linear_before_reset: then that part of R is packed apart. */
static pith_status recur_pack(pith__recur *p, pith__prepare *c) {
    int64_t gates = pith__cell_gates(p->cell), all = gates * p->hidden;
    bool split = p->cell == PITH_CELL_GRU && !p->linear_before_reset;
    int64_t first = split ? 2 * p->hidden : all, rest = all - first;
    p->w_size = pith__gemm_f32_packed_size(p->inputs, all);
    p->r_rest = pith__gemm_f32_packed_size(p->hidden, first);
    int64_t r_more = pith__gemm_f32_packed_size(p->hidden, rest);
    if (p->w_size < 0 || p->r_rest < 0 || r_more < 0) return pith__fail_memory(c->err, SIZE_MAX);
    p->r_size = p->r_rest + r_more;
    pith__pack_matrix w[2], r[4];
    size_t r_count = 0;
    for (int64_t d = 0; d < p->directions; d++) {
        w[d] = (pith__pack_matrix){ 1, true, d * all * p->inputs, all, d * p->w_size };
        r[r_count++] = (pith__pack_matrix){ 2, true, d * all * p->hidden, first, d * p->r_size };
        if (split)
            r[r_count++] = (pith__pack_matrix){ 2, true, (d * all + first) * p->hidden, rest,
                                                d * p->r_size + p->r_rest };
    }
    PITH_TRY(pith__prepare_pack_f32(c, &p->w, w, (size_t)p->directions, p->inputs,
                                    (size_t)(p->directions * p->w_size)));
    return pith__prepare_pack_f32(c, &p->r, r, r_count, p->hidden,
                                  (size_t)(p->directions * p->r_size));
}

/* Possible if all numbers are f32 (or widened to it), the weights are constant and every size fits;
 * else p->possible stays false and the caller computes in double. */
pith_status pith__recur_prepare(pith__recur *p, pith__prepare *c, const char *rnn) {
    const pith__type *w = c->in[1], *r = c->in[2];
    int64_t gates = pith__cell_gates(p->cell);
    if (pith__compute_dtype(c->in[0]->dtype) != PITH_F32 || w->dtype != c->in[0]->dtype ||
        r->dtype != c->in[0]->dtype)
        return PITH_OK;
    for (int i = 3; i < c->in_count; i++)
        if (i != 4 && c->in[i] && c->in[i]->dtype != c->in[0]->dtype) return PITH_OK;
    if (w->rank != 3 || r->rank != 3 || !pith__pack_can(c, 1) || !pith__pack_can(c, 2))
        return PITH_OK;
    p->inputs = w->dims[2];
    p->hidden = r->dims[2];
    if (p->inputs < 1 || p->hidden < 1 || p->hidden > INT32_MAX / 8 || p->inputs > INT32_MAX / 8)
        return PITH_OK;
    if (w->dims[0] != p->directions || r->dims[0] != p->directions ||
        w->dims[1] != gates * p->hidden || r->dims[1] != gates * p->hidden)
        return PITH_OK;
    p->gemm = PITH_PREPARE_KERNEL(pith__gemm_f32_fn, "gemm", PITH_F32, c);
    p->lstm = PITH_PREPARE_KERNEL(pith__lstm_cell_fn, "lstm_cell", PITH_F32, c);
    p->gru = PITH_PREPARE_KERNEL(pith__gru_cell_fn, "gru_cell", PITH_F32, c);
    p->gates = PITH_PREPARE_KERNEL(pith__gru_gates_fn, "gru_gates", PITH_F32, c);
    p->finish = PITH_PREPARE_KERNEL(pith__gru_finish_fn, "gru_finish", PITH_F32, c);
    p->rnn = PITH_PREPARE_KERNEL(pith__unary_f32_fn, rnn, PITH_F32, c);
    p->add = PITH_PREPARE_KERNEL(pith__binary_fn, "add", PITH_F32, c);
    p->possible = p->gemm && p->lstm && p->gru && p->gates && p->finish && p->rnn && p->add;
    return p->possible ? recur_pack(p, c) : PITH_OK;
}

/* Steps of a block, and the floats of everything in scratch: biases, gates of a block, and for each
 * row of the batch in each direction h, c, gates from h, z and the reset state. */
typedef struct room {
    int64_t block, all, biases, gates, states, total;
} room;

/* The gates of a block of steps are computed by one matmul; the block is so long that they stay in
 * the cache. */
static bool recur_room(const pith__recur *p, int64_t steps, int64_t batch, room *m) {
    int64_t rows, per_step;
    m->all = pith__cell_gates(p->cell) * p->hidden;
    if (pith__mul_overflows(p->directions, batch, &rows) ||
        pith__mul_overflows(rows, m->all, &per_step))
        return false;
    m->block = per_step > 0 ? BLOCK / per_step : steps;
    if (m->block < LEAST) m->block = LEAST;
    if (m->block > MOST) m->block = MOST;
    if (m->block > steps) m->block = steps > 0 ? steps : 1;
    m->biases = p->directions * m->all;
    return !pith__mul_overflows(per_step, m->block, &m->gates) &&
           !pith__mul_overflows(rows, m->all + 4 * p->hidden, &m->states) &&
           !pith__add_overflows(m->gates, m->states, &m->total) &&
           !pith__add_overflows(m->total, m->biases, &m->total);
}

bool pith__recur_scratch(const pith__recur *p, int64_t steps, int64_t batch, int threads,
                         size_t *bytes) {
    room m;
    (void)threads;
    return recur_room(p, steps, batch, &m) &&
           !pith__mul_overflows((size_t)m.total, sizeof(float), bytes) &&
           !pith__add_overflows(*bytes, (size_t)64, bytes);
}

typedef struct job {
    const pith__run *run;
    const pith__recur *p;
    room m;
    int64_t steps, batch, first, end; /* first, end: the block's steps, counted in the order of the
                                         direction */
    const float *x, *bias;            /* bias: the node's B, or NULL */
    float *biases, *gates, *h, *c, *g, *z, *reset; /* gates: [direction][row][step of the
                                                      block][all] */
    float *y;
    int64_t row_parts, rows_per_part, tiles;
} job;

static bool recur_reverse(const job *j, int64_t direction) {
    return direction == 1 || j->p->first_is_reverse;
}

/* Lengths were checked. */
static int64_t recur_length(const job *j, int64_t row) {
    int64_t length = j->steps;
    const pith_tensor *lengths = j->run->in_count > 4 ? j->run->in[4] : NULL;
    if (lengths) pith__convert(&length, PITH_I64, 0, lengths->data, lengths->dtype, row, 1, true);
    return length;
}

/* Input projections of some steps of a row. Gates lie in the order of time. */
static void recur_project_part(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__recur *p = j->p;
    int64_t tile = (int64_t)part % j->tiles, row = (int64_t)part / j->tiles % j->batch,
            d = (int64_t)part / j->tiles / j->batch;
    int64_t length = recur_length(j, row), end = j->end < length ? j->end : length,
            count = end - j->first;
    int64_t m0 = tile * ROWS, m1 = m0 + ROWS < count ? m0 + ROWS : count;
    int64_t time = recur_reverse(j, d) ? length - end : j->first;
    (void)worker;
    if (m0 >= m1) return;
    pith__gemm g = { .a = j->x + (p->batch_first ? row * j->steps + time : time * j->batch + row) *
                                     p->inputs,
                     .b = (const float *)p->w + d * p->w_size,
                     .c = j->gates + (d * j->batch + row) * j->m.block * j->m.all,
                     .bias = j->biases + d * j->m.all,
                     .m = count,
                     .n = j->m.all,
                     .k = p->inputs,
                     .lda = (p->batch_first ? 1 : j->batch) * p->inputs,
                     .ldc = j->m.all };
    p->gemm(&g, m0, m1, 0, g.n);
}

/* to[rows, n] = from[rows, hidden] times the matrix at `packed`. */
static void recur_product(const job *j, float *to, const float *from, const float *packed,
                          int64_t rows, int64_t n, int64_t stride) {
    const pith__recur *p = j->p;
    pith__gemm g = { .a = from,
                     .b = packed,
                     .c = to,
                     .m = rows,
                     .n = n,
                     .k = p->hidden,
                     .lda = p->hidden,
                     .ldc = stride };
    const int64_t parts =
                      pith__run_parts_least(j->run, (double)rows * (double)n * (double)p->hidden),
                  each = (rows + parts - 1) / parts;
    for (int64_t m = 0; m < rows; m += each) {
        if (m && pith__stop_asked(j->run->exec->stop)) return;
        p->gemm(&g, m, m + each < rows ? m + each : rows, 0, n);
    }
}

/* The gates from the input of a row in step k of the direction; NULL after its end. */
static const float *recur_gates_at(const job *j, int64_t d, int64_t row, int64_t k) {
    int64_t length = recur_length(j, row), end = j->end < length ? j->end : length;
    if (k >= length) return NULL;
    int64_t at = recur_reverse(j, d) ? end - 1 - k : k - j->first;
    return j->gates + ((d * j->batch + row) * j->m.block + at) * j->m.all;
}

/* One row of one direction: x has the gates of the input, g those of the state. */
static void recur_cell(const job *j, int64_t d, int64_t own, const float *x) {
    const pith__recur *p = j->p;
    int64_t n = p->hidden;
    float *h = j->h + own * n, *g = j->g + own * j->m.all;
    if (p->cell == PITH_CELL_LSTM) {
        p->lstm(h, j->c + own * n, x, g, n);
    } else if (p->cell == PITH_CELL_RNN) {
        p->add(g, x, g, n, 1, 1);
        p->rnn(g, h, (size_t)n);
    } else if (p->linear_before_reset) {
        p->gru(h, x, g, j->bias ? j->bias + d * 2 * j->m.all + j->m.all + 2 * n : NULL, n);
    } else {
        p->finish(h, j->z + own * n, x + 2 * n, g + 2 * n, n);
    }
}

static void recur_put(const job *j, int64_t d, int64_t row, int64_t k, const float *h) {
    const pith__recur *p = j->p;
    int64_t time = recur_reverse(j, d) ? recur_length(j, row) - 1 - k : k;
    int64_t place = p->batch_first ? (row * j->steps + time) * p->directions + d
                                   : (time * p->directions + d) * j->batch + row;
    if (j->y) memcpy(j->y + place * p->hidden, h, (size_t)p->hidden * sizeof *h);
}

/* All steps of a block for some rows in one direction. */
static void recur_steps_part(void *context, size_t part, int worker) {
    const job *j = context;
    const pith__recur *p = j->p;
    int64_t d = (int64_t)part / j->row_parts, r0 = (int64_t)part % j->row_parts * j->rows_per_part;
    int64_t r1 = r0 + j->rows_per_part < j->batch ? r0 + j->rows_per_part : j->batch, n = p->hidden;
    int64_t own = d * j->batch + r0;
    bool split = p->cell == PITH_CELL_GRU && !p->linear_before_reset;
    const float *packed = (const float *)p->r + d * p->r_size;
    (void)worker;
    if (r0 < r1) {
        for (int64_t k = j->first; k < j->end; k++) {
            if (pith__stop_asked(j->run->exec->stop)) return;
            recur_product(j, j->g + own * j->m.all, j->h + own * n, packed, r1 - r0,
                          split ? 2 * n : j->m.all, j->m.all);
            if (split) {
                for (int64_t row = r0; row < r1; row++) {
                    int64_t at = d * j->batch + row;
                    const float *x = recur_gates_at(j, d, row, k);
                    if (x)
                        p->gates(j->z + at * n, j->reset + at * n, j->h + at * n, x,
                                 j->g + at * j->m.all, n);
                }
            }
            if (split)
                recur_product(j, j->g + own * j->m.all + 2 * n, j->reset + own * n,
                              packed + p->r_rest, r1 - r0, n, j->m.all);
            for (int64_t row = r0; row < r1; row++) {
                int64_t at = d * j->batch + row;
                const float *x = recur_gates_at(j, d, row, k);
                if (!x) continue;
                recur_cell(j, d, at, x);
                recur_put(j, d, row, k, j->h + at * n);
            }
        }
    }
}

/* What the input projections get: B's half for W and, unless it belongs into a product with the
 * reset gate, that for R. */
static void recur_biases(job *j) {
    const pith__recur *p = j->p;
    int64_t all = j->m.all,
            apart = p->cell == PITH_CELL_GRU && p->linear_before_reset ? 2 * p->hidden : all;
    for (int64_t d = 0; d < p->directions; d++) {
        for (int64_t i = 0; i < all; i++) {
            const float *own = j->bias ? j->bias + d * 2 * all : NULL;
            float bias = own ? own[i] : 0;
            if (own && i < apart) bias += own[all + i];
            j->biases[d * all + i] = bias;
        }
    }
}

/* The states at the beginning (to_node false) from inputs 5 and 6, or those at the end to outputs 1
 * and 2. */
static void recur_states(const job *j, float *states, float *node, bool to_node) {
    const pith__recur *p = j->p;
    size_t bytes = (size_t)p->hidden * sizeof *states;
    for (int64_t d = 0; d < p->directions; d++) {
        for (int64_t row = 0; row < j->batch; row++) {
            float *own = states + (d * j->batch + row) * p->hidden;
            int64_t place = p->batch_first ? row * p->directions + d : d * j->batch + row;
            float *other = node ? node + place * p->hidden : NULL;
            if (to_node && other) memcpy(other, own, bytes);
            if (!to_node && other) memcpy(own, other, bytes);
            if (!to_node && !other) memset(own, 0, bytes);
        }
    }
}

static pith_status recur_check_lengths(const job *j) {
    for (int64_t row = 0; row < j->batch; row++) {
        int64_t length = recur_length(j, row);
        if (length < 0 || length > j->steps)
            return pith__fail(j->run->err, PITH_ERR_RUN,
                              "sequence length %lld is outside of 0 to %lld", (long long)length,
                              (long long)j->steps);
    }
    return PITH_OK;
}

static float *recur_input(const pith__run *r, int i) {
    return i < r->in_count && r->in[i] ? r->in[i]->data : NULL;
}
static float *recur_output(const pith__run *r, int i) {
    return i < r->out_count && r->out[i] ? r->out[i]->data : NULL;
}

/* Block by block of steps: the input's part of all gates, then step by step the state's part and
 * the cells. Threads share directions and rows, never a row's steps. */
pith_status pith__recur_run(pith__run *r, const pith__recur *p) {
    const pith_tensor *x = r->in[0];
    job j = { .run = r,
              .p = p,
              .steps = x->dims[p->batch_first],
              .batch = x->dims[!p->batch_first],
              .x = x->data };
    if (!recur_room(p, j.steps, j.batch, &j.m)) return pith__fail_memory(r->err, SIZE_MAX);
    PITH_TRY(recur_check_lengths(&j));
    int64_t states = p->directions * j.batch * p->hidden;
    j.bias = recur_input(r, 3);
    j.gates = r->scratch;
    j.biases = j.gates + j.m.gates;
    j.h = j.biases + j.m.biases;
    j.c = j.h + states;
    j.z = j.c + states;
    j.reset = j.z + states;
    j.g = j.reset + states;
    j.y = recur_output(r, 0);
    if (j.y) PITH_TRY(pith__run_bytes(r, j.y, NULL, r->out[0]->bytes));
    recur_biases(&j);
    recur_states(&j, j.h, recur_input(r, 5), false);
    recur_states(&j, j.c, recur_input(r, 6), false);
    int64_t threads = r->exec->threads > 1 ? r->exec->threads : 1,
            wanted = (threads + p->directions - 1) / p->directions;
    if (p->directions * j.batch * j.m.all * p->hidden < GRAIN) wanted = 1;
    j.rows_per_part = j.batch > 0 ? (j.batch + wanted - 1) / wanted : 1;
    j.row_parts = (j.batch + j.rows_per_part - 1) / j.rows_per_part;
    if (j.batch > 0) {
        for (j.first = 0; j.first < j.steps; j.first = j.end) {
            j.end = j.first + j.m.block < j.steps ? j.first + j.m.block : j.steps;
            j.tiles = (j.end - j.first + ROWS - 1) / ROWS;
            pith__run_parallel(r, recur_project_part, &j,
                               (size_t)(p->directions * j.batch * j.tiles));
            pith__run_parallel(r, recur_steps_part, &j, (size_t)(p->directions * j.row_parts));
        }
    }
    recur_states(&j, j.h, recur_output(r, 1), true);
    recur_states(&j, j.c, recur_output(r, 2), true);
    return PITH_OK;
}
