/* packed_constants.c - see packed_constants.h. */
#include "engine/ops/shared/packed_constants.h"

#include <stdatomic.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm.h"

/* COLUMNS: columns that one thread packs at a time, a few panels. CONVERT_BLOCK: elements converted
 * at a time, which stay in the L1 cache. */
enum { COLUMNS = 64, CONVERT_BLOCK = 256 };

/* ---- asking ---- */

bool pith__pack_can(const pith__prepare *c, int input) {
    const pith_tensor *data = c->in[input]->data;
    return (data && data->data) || pith__node_input(c->node, input)->kind == PITH_VALUE_PACKED;
}

static pith_status pack_fill_alone(const pith__prepare *c, const void **where,
                                   const pith__pack *pack) {
    void *packed = pith__arena_alloc64(c->arena, pack->bytes);
    if (!packed) return pith__fail_memory(c->err, pack->bytes);
    *where = packed;
    pith__arena_mark mark = pith__arena_get_mark(c->arena);
    void *scratch = pith__arena_alloc64(c->arena, pack->scratch);
    if (!scratch) return pith__fail_memory(c->err, pack->scratch);
    pith__stop *stop = pith__graph_stop(c->node->graph);
    pith_status status = PITH_OK;
    for (size_t i = 0; i < pack->parts && !status; i++) {
        pack->fill(packed, pack->context, i, scratch);
        status = pith__stop_check(stop, c->err);
    }
    pith__arena_rewind(c->arena, mark);
    return status;
}

/* The n-th packed form that the graph's file holds for the node, if it is this one. */
static const void *pack_find_packed(const pith__prepare *c, size_t n, const pith__pack *pack) {
    if (n >= c->node->packed_count) return NULL;
    const pith__packed *packed = &c->node->packed[n];
    return packed->bytes == pack->bytes && pith__str_is(packed->layout, pack->layout) ? packed->data
                                                                                      : NULL;
}

static pith_status pack_check_sources(const pith__prepare *c, const pith__pack *pack) {
    for (int i = 0; i < c->in_count && i < 32; i++) {
        if (!(pack->inputs >> i & 1) || (c->in[i]->data && c->in[i]->data->data)) continue;
        return pith__fail(c->err, PITH_ERR_FORMAT,
                          "the file holds neither input %d nor its packed form %s of %zu bytes; "
                          "compile the model again",
                          i, pack->layout, pack->bytes);
    }
    return PITH_OK;
}

/* What is in the cache is used. Else it is noted and filled later, all constants in one parallel
 * pass; without a packer it is filled at once. */
pith_status pith__prepare_pack(pith__prepare *c, const void **packed, const pith__pack *pack) {
    pith__packer *packer = c->packer;
    const void *ready = pack_find_packed(c, c->pack_count++, pack);
    c->packed_inputs |= pack->inputs;
    if (!ready) PITH_TRY(pack_check_sources(c, pack));
    *packed = ready;
    if (!packer) return ready ? PITH_OK : pack_fill_alone(c, packed, pack);
    void *steps = packer->steps;
    if (!pith__arena_grow(packer->arena, &steps, packer->count, &packer->capacity,
                          sizeof *packer->steps))
        return pith__fail_memory(c->err, sizeof *packer->steps);
    packer->steps = steps;
    packer->steps[packer->count++] = (pith__packed_step){ c->node, *pack, packed, ready != NULL };
    return PITH_OK;
}

/* ---- filling ---- */

/* One allocation for all, each part at 64 bytes. */
pith_status pith__packer_place(pith__packer *packer, pith_error *err) {
    size_t total = 0, bytes = 0;
    for (size_t i = 0; i < packer->count; i++) {
        pith__packed_step *step = &packer->steps[i];
        if (step->ready) continue;
        if (pith__add_overflows(step->pack.bytes, 63, &bytes) ||
            pith__add_overflows(total, bytes & ~(size_t)63, &total))
            return pith__fail_memory(err, SIZE_MAX);
    }
    char *at = pith__arena_alloc64(packer->arena, total);
    if (!at) return pith__fail_memory(err, total);
    for (size_t i = 0; i < packer->count; i++) {
        pith__packed_step *step = &packer->steps[i];
        if (step->ready) continue;
        *step->packed = at;
        at += pith__round64(step->pack.bytes);
    }
    return PITH_OK;
}

typedef struct filling {
    const pith__packer *packer;
    size_t *first;       /* by step: number of its first part; one more at the end */
    atomic_size_t *left; /* by step: parts to be filled */
    char *scratch;
    size_t scratch_bytes; /* a worker's */
    pith__packed_fn *filled;
    void *context;
} filling;

/* The last i in [0, count) with first[i] <= part. */
static size_t pack_find_first(const size_t *first, size_t count, size_t part) {
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (first[middle] <= part)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void pack_fill_part(void *context, size_t part, int worker) {
    const filling *f = context;
    size_t i = pack_find_first(f->first, f->packer->count, part);
    const pith__packed_step *step = &f->packer->steps[i];
    step->pack.fill((void *)(uintptr_t)*step->packed, step->pack.context, part - f->first[i],
                    f->scratch + (size_t)worker * f->scratch_bytes);
    if (atomic_fetch_sub_explicit(&f->left[i], 1, memory_order_acq_rel) == 1 && f->filled)
        f->filled(f->context, step);
}

/* All parts of all steps are numbered through, so that threads share small and large constants
 * evenly. left counts the parts of a step; who ends the last one reports it. */
pith_status pith__packer_fill(pith__packer *packer, pith__packed_fn *filled, void *context,
                              pith_error *err) {
    pith__arena scratch;
    pith__arena_init(&scratch, packer->arena->allocator);
    size_t threads = (size_t)pith__threads_count(packer->threads), widest = 0, parts = 0, bytes;
    filling f = { .packer = packer, .filled = filled, .context = context };
    f.first = pith__arena_array(&scratch, packer->count + 1, sizeof *f.first);
    f.left = pith__arena_array(&scratch, packer->count, sizeof *f.left);
    bool fits = f.first && f.left;
    for (size_t i = 0; fits && i < packer->count; i++) {
        const pith__packed_step *step = &packer->steps[i];
        size_t own = step->ready ? 0 : step->pack.parts;
        atomic_init(&f.left[i], own);
        f.first[i] = parts;
        fits = !pith__add_overflows(parts, own, &parts);
        if (own && step->pack.scratch > widest) widest = step->pack.scratch;
    }
    fits = fits && widest <= SIZE_MAX - 63;
    f.scratch_bytes = pith__round64(widest);
    fits = fits && !pith__mul_overflows(f.scratch_bytes, threads, &bytes);
    f.scratch = fits ? pith__arena_alloc64(&scratch, bytes) : NULL;
    if (f.scratch) pith__threads_run_until(packer->stop, pack_fill_part, &f, parts, (int)threads);
    pith_status status =
        f.scratch ? pith__stop_check(packer->stop, err) : pith__fail_memory(err, widest);
    pith__arena_free(&scratch);
    return status;
}

/* ---- f32 ---- */

typedef struct matrix {
    const pith_tensor *from;
    bool transposed;
    int64_t first, n, to;
} matrix;

typedef struct matrices {
    pith__gemm_pack_f32_fn *pack;
    pith__pack_form form; /* panel NULL: f32 itself */
    int64_t k;
    size_t count;
    matrix *items;
    size_t *first_part;
} matrices;

static bool pack_readable_in_place(const pith_tensor *t) {
    return t->dtype == PITH_F32 && (uintptr_t)t->data % sizeof(float) == 0;
}

/* Elements [first, first + n), wherever they lie. */
static void pack_read_floats(float *to, const pith_tensor *t, int64_t first, int64_t n) {
    if (t->dtype == PITH_F32) {
        memcpy(to, (const char *)t->data + (size_t)first * sizeof *to, (size_t)n * sizeof *to);
        return;
    }
    uint16_t block[CONVERT_BLOCK];
    for (int64_t i = 0; i < n; i += CONVERT_BLOCK) {
        int64_t count = n - i < CONVERT_BLOCK ? n - i : CONVERT_BLOCK;
        memcpy(block, (const char *)t->data + (size_t)(first + i) * sizeof *block,
               (size_t)count * sizeof *block);
        pith__convert(to + i, PITH_F32, 0, block, t->dtype, 0, count, true);
    }
}

/* Columns [n0, n0 + columns) of a matrix as one panel. What is not aligned f32 goes through
 * scratch, which keeps the matrix's own order. */
static void pack_pack_panel(const matrices *w, const matrix *m, float *to, int64_t n0,
                            int64_t columns, float *scratch) {
    int64_t k = w->k;
    if (pack_readable_in_place(m->from)) {
        const float *from = (const float *)m->from->data + m->first + n0 * (m->transposed ? k : 1);
        w->pack(to, from, m->transposed ? 1 : m->n, m->transposed ? k : 1, k, columns, 0, columns);
    } else if (m->transposed) {
        pack_read_floats(scratch, m->from, m->first + n0 * k, columns * k);
        w->pack(to, scratch, 1, k, k, columns, 0, columns);
    } else {
        for (int64_t i = 0; i < k; i++)
            pack_read_floats(scratch + i * columns, m->from, m->first + i * m->n + n0, columns);
        w->pack(to, scratch, columns, 1, k, columns, 0, columns);
    }
}

/* A part is up to COLUMNS columns of one matrix, packed as f32 panels; a form of its own is then
 * made of each panel in scratch. */
static void pack_fill_matrices(void *packed, const void *context, size_t part, void *scratch) {
    const matrices *w = context;
    size_t index = pack_find_first(w->first_part, w->count, part);
    const matrix *m = &w->items[index];
    int64_t begin = (int64_t)(part - w->first_part[index]) * COLUMNS;
    int64_t end = m->n - begin > COLUMNS ? begin + COLUMNS : m->n, panel = w->k * PITH_GEMM_PANEL;
    for (int64_t n0 = begin; n0 < end; n0 += PITH_GEMM_PANEL) {
        int64_t columns = end - n0 < PITH_GEMM_PANEL ? end - n0 : PITH_GEMM_PANEL,
                at = m->to + n0 * w->k;
        if (!w->form.panel) {
            pack_pack_panel(w, m, (float *)packed + at, n0, columns, scratch);
            continue;
        }
        pack_pack_panel(w, m, scratch, n0, columns, (float *)scratch + panel);
        w->form.panel(packed, w->form.context, at / panel, scratch, (float *)scratch + panel);
    }
}

/* Several matrices [k, n_i] or [n_i, k] into one packed array. Widening and transposing happen on
 * the way. */
pith_status pith__prepare_pack_panels(pith__prepare *c, const void **packed,
                                      const pith__pack_matrix *list, size_t count, int64_t k,
                                      const pith__pack_form *form) {
    matrices *w = pith__arena_array(c->arena, 1, sizeof *w);
    if (!w) return pith__fail_memory(c->err, sizeof *w);
    w->pack = PITH_PREPARE_KERNEL(pith__gemm_pack_f32_fn, "gemm_pack", PITH_F32, c);
    if (!w->pack) return pith__fail(c->err, PITH_ERR_UNSUPPORTED, "this build has no float32 GEMM");
    w->form = *form;
    w->k = k;
    w->count = count;
    w->items = pith__arena_array(c->arena, count, sizeof *w->items);
    w->first_part = pith__arena_array(c->arena, count, sizeof *w->first_part);
    pith__pack pack = {
        .layout = form->layout, .bytes = form->bytes, .fill = pack_fill_matrices, .context = w
    };
    if (!w->items || !w->first_part ||
        pith__mul_overflows((size_t)k, 2 * PITH_GEMM_PANEL * sizeof(float), &pack.scratch))
        return pith__fail_memory(c->err, SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        const pith__pack_matrix *m = &list[i];
        int dtype = c->in[m->input]->dtype;
        if (dtype != PITH_F32 && dtype != PITH_F16 && dtype != PITH_BF16) {
            return pith__fail(c->err, PITH_ERR_UNSUPPORTED,
                              "input %d is %s; supported: float32, float16, bfloat16", m->input,
                              pith__dtype_name(dtype));
        }
        w->items[i] = (matrix){ c->in[m->input]->data, m->transposed, m->first, m->n, m->to };
        w->first_part[i] = pack.parts;
        pack.parts += (size_t)(m->n + COLUMNS - 1) / COLUMNS;
        pack.inputs |= 1u << m->input;
    }
    return pith__prepare_pack(c, packed, &pack);
}

pith_status pith__prepare_pack_f32(pith__prepare *c, const void **packed,
                                   const pith__pack_matrix *list, size_t count, int64_t k,
                                   size_t floats) {
    pith__pack_form form = { .layout = "f32x16" };
    if (pith__mul_overflows(floats, sizeof(float), &form.bytes))
        return pith__fail_memory(c->err, SIZE_MAX);
    return pith__prepare_pack_panels(c, packed, list, count, k, &form);
}
