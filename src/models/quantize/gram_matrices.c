/* gram_matrices.c - see gram_matrices.h.
 *
 * The grams of many matmuls would take much memory. So as many as fit are made at a time, and the
 * texts run again for the next ones, through the weights rounded so far. A few texts at a time run
 * on one thread, in the same chunks everywhere, and their rows are kept. Then all threads share the
 * sums, which keep the order of the rows. So the result depends on the texts alone. */
#include "models/quantize/gram_matrices.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/os/threads.h"
#include "engine/kernels/binary.h"
#include "engine/kernels/quantize.h"
#include "models/quantize/made_up_texts.h"
#include "models/quantize/text_runs.h"

/* Bytes of gram matrices that are held at a time. More need fewer rounds over the texts; less needs
 * less memory. All matmuls of a small model fit. */
#define GRAM_BYTES ((size_t)512 << 20)
/* Columns of a gram that one part of a parallel run sums. Fewer make more parts for threads, but
 * each reads all rows. */
enum { COLUMNS = 64 };
/* This share of the mean of a gram's diagonal is added to the diagonal. Without it, directions that
 * the texts never used would count as free. Results hardly change between a tenth of it and four
 * times as much. */
#define DAMPING 0.01f

/* Rows that a matmul got in one run. */
typedef struct block {
    struct block *next;
    float *x; /* [m, k] */
    int64_t m;
} block;

/* A matmul and what comes to it. */
typedef struct product {
    int64_t k;
    float *gram;          /* [k, pith__factor_stride(k)], its upper triangle; NULL: not of this
                             group */
    block *first, **last; /* not in the gram yet */
} product;

typedef struct gram_run {
    const pith__gram_matrices *job;
    product *products;
    pith__gemm_f32_fn *gemm;
    pith__gemm_pack_f32_fn *pack;
    pith__unit_factor_fn *factor;
    pith__binary_fn *add;
    pith_calibrate_options options;
    pith__stop *stop;
    pith__progress *progress;
    pith__arena arena, blocks, scratch; /* of the call; of the rows that are kept; of one matmul */
    size_t done, total;                 /* texts */
    pith_error *err;
    pith_status status; /* of what is met while texts run */
} gram_run;

static pith_status gram_out_of_memory(const gram_run *c, size_t bytes) {
    return pith__fail_memory(c->err, bytes);
}

/* ---- the grams ---- */

/* A block on its way into a gram. */
typedef struct adding {
    const gram_run *c;
    const float *x;
    int64_t m, k;
    float *transposed, *packed, *sum; /* [k, m], x packed, [k, stride] */
    float *gram;
} adding;

static void gram_transpose(void *context, size_t part, int worker) {
    const adding *r = context;
    const int64_t n0 = (int64_t)part * COLUMNS, n1 = r->k - n0 > COLUMNS ? n0 + COLUMNS : r->k;
    (void)worker;
    for (int64_t i = 0; i < r->m; i++)
        for (int64_t j = n0; j < n1; j++) r->transposed[j * r->m + i] = r->x[i * r->k + j];
    r->c->pack(r->packed, r->x, r->k, 1, r->m, r->k, n0, n1);
}

/* The rows of the upper triangle that columns [n0, n1) have. */
static void gram_add_columns(void *context, size_t part, int worker) {
    const adding *r = context;
    const int64_t n0 = (int64_t)part * COLUMNS, n1 = r->k - n0 > COLUMNS ? n0 + COLUMNS : r->k;
    const int64_t stride = pith__factor_stride(r->k);
    (void)worker;
    pith__gemm g = { .a = r->transposed,
                     .b = r->packed,
                     .c = r->sum,
                     .m = r->k,
                     .n = r->k,
                     .k = r->m,
                     .lda = r->m,
                     .ldc = stride };
    r->c->gemm(&g, 0, n1, n0, n1);
    for (int64_t at = n0; at < n1 * stride; at += stride)
        r->c->add(r->gram + at, r->gram + at, r->sum + at, n1 - n0, 1, 1);
}

/* x^T x as a matmul of x turned round by x, of which only the upper triangle is computed. Threads
 * take columns, so each number is summed by one thread, in the order of the rows. */
static pith_status gram_add_block(gram_run *c, const product *p, const block *b) {
    const int64_t k = p->k;
    adding r = { .c = c, .x = b->x, .m = b->m, .k = k, .gram = p->gram };
    const size_t parts = (size_t)((k + COLUMNS - 1) / COLUMNS),
                 rows = pith__round64((size_t)(r.m * k));
    const size_t packed = pith__round64((size_t)pith__gemm_f32_packed_size(r.m, k));
    const size_t bytes = (rows + packed + (size_t)(k * pith__factor_stride(k))) * sizeof(float);
    pith__arena_reset(&c->scratch);
    r.transposed = pith__arena_alloc64(&c->scratch, bytes); /* at once: what a reset keeps */
    if (!r.transposed) return gram_out_of_memory(c, bytes);
    r.packed = r.transposed + rows;
    r.sum = r.packed + packed;
    const int threads = pith__threads_count(0);
    pith__threads_run_until(c->stop, gram_transpose, &r, parts, threads);
    pith__threads_run_until(c->stop, gram_add_columns, &r, parts, threads);
    return pith__stop_check(c->stop, c->err);
}

/* Rows are added when some texts have run and no step runs any more: the sums may use all threads
 * then. */
static pith_status gram_add_blocks(gram_run *c) {
    for (size_t i = 0; i < c->job->count; i++) {
        product *p = &c->products[i];
        for (const block *b = p->first; b; b = b->next) PITH_TRY(gram_add_block(c, p, b));
        p->first = NULL;
    }
    pith__arena_reset(&c->blocks);
    return PITH_OK;
}

/* Keeps the rows that a matmul of the group got. */
static void gram_listen(void *context, const pith__trace_event *event) {
    gram_run *c = context;
    const size_t at = event->step ? c->job->find(c->job->user, event->step) : SIZE_MAX;
    product *p = at < c->job->count ? &c->products[at] : NULL;
    if (!p || !p->gram || c->status) return;
    const pith_tensor *x = event->run->in[0];
    block *b = pith__arena_array(&c->blocks, 1, sizeof *b);
    float *copy = pith__arena_alloc64(&c->blocks, x->bytes);
    if (!b || !copy) {
        c->status = gram_out_of_memory(c, x->bytes);
        return;
    }
    memcpy(copy, x->data, x->bytes);
    *b = (block){ NULL, copy, pith__tensor_count(x) / p->k };
    if (!p->first) p->last = &p->first;
    *p->last = b;
    p->last = &b->next;
}

static pith_status gram_after(void *user) {
    gram_run *c = user;
    PITH_TRY(c->status);
    return gram_add_blocks(c);
}

/* The same texts for every group of matmuls. */
static pith_status gram_run_texts(gram_run *c) {
    const pith__text_runs runs = { .encoder = c->job->encoder,
                                   .options = &c->options,
                                   .stop = c->stop,
                                   .progress = c->progress,
                                   .user = c,
                                   .after = gram_after,
                                   .done = &c->done,
                                   .total = c->total,
                                   .err = c->err };
    return pith__text_runs_all(&runs);
}

/* ---- rounding ---- */

typedef struct diagonal {
    float value;
    int32_t at;
} diagonal;

static int gram_by_value(const void *x, const void *y) {
    const diagonal *a = x, *b = y;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return a->at < b->at ? -1 : 1;
}

/* The factor of a gram, in scratch: what the texts bring most of comes last in its order, so that
 * it is rounded first and all others make that good. u NULL: the matmul got no row. */
static pith_status gram_make_factor(pith__factor *factor, gram_run *c, const product *p) {
    const int64_t k = p->k, stride = pith__factor_stride(k);
    const size_t floats = (size_t)(k * stride);
    float mean = 0.0f, *u = pith__arena_alloc64(&c->scratch, floats * sizeof *u);
    float *column = pith__arena_array(&c->scratch, (size_t)k, sizeof *column);
    int32_t *order = pith__arena_array(&c->scratch, (size_t)k, sizeof *order);
    diagonal *sorted = pith__arena_array(&c->scratch, (size_t)k, sizeof *sorted);
    if (!u || !column || !order || !sorted) return gram_out_of_memory(c, floats * sizeof *u);
    for (int64_t i = 0; i < k; i++) {
        sorted[i] = (diagonal){ p->gram[i * stride + i], (int32_t)i };
        mean += sorted[i].value / (float)k;
    }
    *factor = (pith__factor){ mean == 0.0f ? NULL : u, order };
    if (!(mean <= FLT_MAX))
        return pith__fail(
            c->err, PITH_ERR_RUN,
            "calibration: the texts give activations that are not finite; use other texts");
    qsort(sorted, (size_t)k, sizeof *sorted, gram_by_value);
    memset(u, 0, floats * sizeof *u);
    for (int64_t s = 0; s < k; s++) {
        if (s % 64 == 0) PITH_TRY(pith__stop_check(c->stop, c->err));
        order[s] = sorted[s].at;
        for (int64_t t = s; t < k; t++) {
            const int64_t i = sorted[s].at, j = sorted[t].at;
            u[s * stride + t] = i < j ? p->gram[i * stride + j] : p->gram[j * stride + i];
        }
        u[s * stride + s] += DAMPING * mean;
    }
    const bool made = mean == 0.0f || c->factor(u, k, column, c->stop);
    PITH_TRY(pith__stop_check(c->stop, c->err));
    return made ? PITH_OK
                : pith__fail(c->err, PITH_ERR_RUN,
                             "calibration: the texts give activations of too wide a range; use "
                             "other texts");
}

static pith_status gram_round_weights(gram_run *c, size_t at) {
    pith__factor factor;
    pith__arena_reset(&c->scratch);
    PITH_TRY(gram_make_factor(&factor, c, &c->products[at]));
    return factor.u ? c->job->round(c->job->user, at, &factor, &c->scratch, c->err) : PITH_OK;
}

/* ---- all of it ---- */

static size_t gram_bytes(const product *p) {
    return (size_t)(p->k * pith__factor_stride(p->k)) * sizeof(float);
}

/* The end of the group that begins with matmul `first`: as many as fit, at least one. */
static size_t gram_end_of_group(const gram_run *c, size_t first) {
    size_t end = first, bytes = 0;
    do {
        bytes += gram_bytes(&c->products[end++]);
    } while (end < c->job->count && bytes + gram_bytes(&c->products[end]) <= GRAM_BYTES);
    return end;
}

/* The texts run once for the whole group; its weights are rounded after that, in order. */
static pith_status gram_group(gram_run *c, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        product *p = &c->products[i];
        p->gram = pith__arena_array(&c->arena, gram_bytes(p) / sizeof(float), sizeof(float));
        if (!p->gram) return gram_out_of_memory(c, gram_bytes(p));
    }
    PITH_TRY(gram_run_texts(c));
    for (size_t i = first; i < end; i++) {
        PITH_TRY(pith__stop_check(c->stop, c->err));
        PITH_TRY(gram_round_weights(c, i));
        c->products[i].gram = NULL;
    }
    return PITH_OK;
}

/* Progress counts a text once per group. */
static pith_status gram_all(gram_run *c) {
    c->products = pith__arena_array(&c->arena, c->job->count, sizeof *c->products);
    if (!c->products) return gram_out_of_memory(c, c->job->count * sizeof *c->products);
    for (size_t i = 0; i < c->job->count; i++) c->products[i].k = c->job->row_lengths[i];
    const size_t texts = pith__text_runs_count(&c->options);
    for (size_t i = 0; i < c->job->count; i = gram_end_of_group(c, i)) c->total += texts;
    for (size_t i = 0, end; i < c->job->count; i = end) {
        pith__arena_mark mark = pith__arena_get_mark(&c->arena);
        end = gram_end_of_group(c, i);
        PITH_TRY(gram_group(c, i, end));
        pith__arena_rewind(&c->arena, mark);
    }
    return PITH_OK;
}

/* Without texts of the caller, texts are made up from the vocabulary. */
static pith_status gram_begin(gram_run *c) {
    const pith__isa isa = c->job->isa;
    pith__lacks lacks = { .count = 0 };
    c->gemm = PITH_KERNEL_NEED(pith__gemm_f32_fn, "gemm", PITH_F32, isa, &lacks);
    c->pack = PITH_KERNEL_NEED(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, isa, &lacks);
    c->factor = PITH_KERNEL_NEED(pith__unit_factor_fn, "unit_factor", PITH_F32, isa, &lacks);
    c->add = PITH_KERNEL_NEED(pith__binary_fn, "add", PITH_F32, isa, &lacks);
    PITH_TRY(pith__lacks_check(&lacks, c->err));
    if (c->options.texts) return PITH_OK;
    pith_str *made;
    PITH_TRY(
        pith__made_up_texts(&made, &c->options.text_count, c->job->tokenizer, &c->arena, c->err));
    c->options.texts = made;
    return PITH_OK;
}

/* Idle runners are ended before, so that all runners have the trace, and after, so that none keeps
 * it. */
pith_status pith__gram_matrices_run(const pith__gram_matrices *job, pith_error *err) {
    pith__stop own;
    pith__progress told;
    gram_run c = { .job = job,
                   .options = *job->options,
                   .stop = pith__stop_begin(&own, &job->options->call),
                   .progress = pith__progress_begin(&told, &job->options->call),
                   .err = err };
    pith__arena_init(&c.arena, job->allocator);
    pith__arena_init(&c.blocks, job->allocator);
    pith__arena_init(&c.scratch, job->allocator);
    pith_status status = gram_begin(&c);
    if (!status) {
        pith__encoder_trim(job->encoder);
        pith__encoder_trace(job->encoder, gram_listen, &c);
        status = gram_all(&c);
        pith__encoder_trace(job->encoder, NULL, NULL);
        pith__encoder_trim(job->encoder); /* its executors still have the trace */
    }
    pith__arena_free(&c.scratch);
    pith__arena_free(&c.blocks);
    pith__arena_free(&c.arena);
    return status;
}
