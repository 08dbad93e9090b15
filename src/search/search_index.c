/* search_index.c - making an index and freeing it.
 *
 * An index is a view of the caller's rows and what follows from them. Options are checked together,
 * then rows, then offsets, so that an error names the first thing that is wrong; nothing is
 * allocated before. */
#include <limits.h>
#include <stdint.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/os/cpu.h"
#include "base/os/threads.h"
#include "engine/kernels/small_floats.h"
#include "search/search.h"

/* The size and the alignment of a row's element, or 0. */
static size_t index_element(int dtype) {
    switch (dtype) {
    case PITH_F32: return 4;
    case PITH_F16: return 2;
    case PITH_I8:
    case PITH_U8: return 1;
    default: return 0;
    }
}

static pith_status index_check_options(const pith_search_index_options *o, pith_error *err) {
    if (o->metric < PITH_METRIC_COSINE || o->metric > PITH_METRIC_MAXSIM)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no metric %d", (int)o->metric);
    if (!index_element(o->dtype))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "rows of dtype %d cannot be searched: float32, float16, int8 and uint8 can",
            (int)o->dtype);
    if ((o->bits != 0 && o->bits != 1) || (o->bits && o->dtype != PITH_U8))
        return pith__fail(err, PITH_ERR_ARGUMENT, "bits must be 0, or 1 with rows of uint8");
    if (o->first_pass < PITH_FIRST_PASS_NONE || o->first_pass > PITH_FIRST_PASS_BINARY)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no first_pass %d", (int)o->first_pass);
    if (o->first_pass &&
        (o->metric == PITH_METRIC_MAXSIM || (o->dtype != PITH_F32 && o->dtype != PITH_F16)))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "pith_search_index_options.first_pass is for rows of float32 and float16, with the "
            "metrics cosine, dot and l2");
    return pith__threads_check(o->call.threads, err);
}

pith_status pith__search_take_options(pith_search_index_options *o,
                                      const pith_search_index_options *given, pith_error *err) {
    *o = (pith_search_index_options)PITH_SEARCH_INDEX_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    if (!o->dtype) o->dtype = PITH_F32;
    return index_check_options(o, err);
}

pith_status pith__search_row_bytes(size_t *row_bytes, size_t dim,
                                   const pith_search_index_options *o, pith_error *err) {
    if (dim == 0 || dim > INT32_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "dim %zu is not 1 to 2147483647", dim);
    if (o->first_pass == PITH_FIRST_PASS_INT8 && dim > PITH_SEARCH_INT8_DIM_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "dim %zu is too large for a first pass of int8, which takes up to %zu",
                          dim, PITH_SEARCH_INT8_DIM_MAX);
    if (o->bits)
        *row_bytes = (dim + 7) / 8;
    else if (pith__mul_overflows(dim, index_element(o->dtype), row_bytes))
        return pith__fail(err, PITH_ERR_ARGUMENT, "dim %zu is too large", dim);
    if (o->row_bytes && o->row_bytes < *row_bytes)
        return pith__fail(err, PITH_ERR_ARGUMENT, "row_bytes is %zu, but a row has %zu bytes",
                          o->row_bytes, *row_bytes);
    return PITH_OK;
}

static pith_status index_check_rows(size_t *row_bytes, const void *rows, size_t count, size_t dim,
                                    const pith_search_index_options *o, pith_error *err) {
    size_t all;
    PITH_TRY(pith__search_row_bytes(row_bytes, dim, o, err));
    if (o->row_bytes) *row_bytes = o->row_bytes;
    const size_t element = index_element(o->dtype);
    if (pith__mul_overflows(*row_bytes, count, &all) || all > PTRDIFF_MAX || count > INT64_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%zu rows of row_bytes %zu are larger than memory", count, *row_bytes);
    if (count && !rows) return pith__fail(err, PITH_ERR_ARGUMENT, "rows is NULL");
    if (count && ((uintptr_t)rows % element || *row_bytes % element))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "rows are not aligned to their elements of %zu bytes", element);
    return PITH_OK;
}

pith_status pith__search_check_offsets(const int64_t *offsets, size_t documents, size_t count,
                                       pith_error *err) {
    if (documents > INT64_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there are too many documents");
    if (offsets[0])
        return pith__fail(err, PITH_ERR_ARGUMENT, "offsets[0] is %lld, not 0",
                          (long long)offsets[0]);
    for (size_t i = 0; i < documents; i++)
        if (offsets[i + 1] < offsets[i])
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "offsets[%zu] is %lld, less than the one before it", i + 1,
                              (long long)offsets[i + 1]);
    if ((uint64_t)offsets[documents] != count)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "offsets[%zu], the last one, is %lld, but there are %zu rows", documents,
                          (long long)offsets[documents], count);
    return PITH_OK;
}

/* Also those that other files of this folder look up when they need them: from here on, all are
 * there. */
static pith_status index_find_kernels(pith_search_index *x, pith_error *err) {
    const pith__isa isa = pith__cpu_get()->isa;
    const bool int8 = x->first_pass == PITH_FIRST_PASS_INT8;
    pith__lacks lacks = { .count = 0 };
    if (x->bits || x->first_pass == PITH_FIRST_PASS_BINARY)
        x->hamming = PITH_KERNEL_NEED(pith__int_scores_fn, "scores_hamming", PITH_U8, isa, &lacks);
    if (!x->bits) {
        const char *family = x->metric == PITH_METRIC_L2 ? "scores_l2" : "scores_dot";
        x->score = PITH_KERNEL_NEED(pith__scores_fn, family, x->dtype, isa, &lacks);
        x->sumsq = PITH_KERNEL_NEED(pith__scores_fn, "scores_sumsq", x->dtype, isa, &lacks);
        (void)PITH_KERNEL_NEED(pith__scores_fn, "scores_sumsq", PITH_F32, isa, &lacks);
    }
    if (x->first_pass && x->dtype == PITH_F16)
        (void)PITH_KERNEL_NEED(pith__widen_f16_fn, "widen", PITH_F16, isa, &lacks);
    if (int8) {
        (void)PITH_KERNEL_NEED(pith__int_scores_fn, "scores_int8", PITH_I8, isa, &lacks);
        x->int8 = (pith__int_scores_fn *)pith__kernel_find_vnni("scores_int8_vnni", "scores_int8",
                                                                PITH_I8, isa);
        (void)PITH_KERNEL_NEED(pith__range_fn, "range", PITH_F32, isa, &lacks);
        (void)PITH_KERNEL_NEED(pith__quantize_fn, "quantize", PITH_U8, isa, &lacks);
    }
    return pith__lacks_check(&lacks, err);
}

/* Rows of a copy are filled up to what the kernels read at once: 32 bytes of int8, 64 bits. */
static size_t index_copy_row_bytes(size_t dim, int first_pass) {
    if (first_pass == PITH_FIRST_PASS_INT8) return (dim + 31) / 32 * 32;
    return first_pass ? (dim + 63) / 64 * 8 : 0;
}

/* The bits of a size_t but one: all rows are in one segment. */
enum { INDEX_WHOLE_SHIFT = sizeof(size_t) * CHAR_BIT - 1 };

pith_status pith__search_index_new(pith_search_index **index, size_t dim, size_t row_bytes,
                                   const pith_search_index_options *o, pith_error *err) {
    const pith_allocator *allocator =
        o->call.allocator ? o->call.allocator : &pith__allocator_default;
    pith_search_index *x = pith__memory_alloc(allocator, sizeof *x, 16);
    if (!x) return pith__fail_memory(err, sizeof *x);
    *x = (pith_search_index){ .allocator = *allocator,
                              .bytes = sizeof *x,
                              .segments = &x->whole,
                              .shift = INDEX_WHOLE_SHIFT,
                              .dim = dim,
                              .row_bytes = row_bytes,
                              .copy_row_bytes = index_copy_row_bytes(dim, o->first_pass),
                              .metric = o->metric,
                              .dtype = o->dtype,
                              .first_pass = o->first_pass,
                              .bits = o->bits };
    const pith_status status = index_find_kernels(x, err);
    if (status)
        pith__search_index_free(x);
    else
        *index = x;
    return status;
}

/* Everything is checked here, kernels included, so that a search meets no fault of the index. Rows
 * stay the caller's; only a first pass has a copy of them, in another form. */
pith_status pith__search_index_make(pith_search_index **index, const void *rows, size_t count,
                                    size_t dim, const pith_search_index_options *options,
                                    pith_error *err) {
    pith_search_index_options o;
    pith_search_index *x;
    size_t row_bytes = 0;
    PITH_TRY(pith__search_take_options(&o, options, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(stop, err));
    if ((o.metric == PITH_METRIC_MAXSIM) != (o.offsets != NULL))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          o.offsets ? "offsets are for the metric maxsim only"
                                    : "the metric maxsim needs the offsets of documents");
    PITH_TRY(index_check_rows(&row_bytes, rows, count, dim, &o, err));
    if (o.offsets) PITH_TRY(pith__search_check_offsets(o.offsets, o.documents, count, err));
    PITH_TRY(pith__search_index_new(&x, dim, row_bytes, &o, err));
    x->whole.rows = rows;
    x->count = count;
    x->offsets = o.offsets;
    x->documents = o.documents;
    const int threads = pith__threads_count(o.call.threads);
    pith_status status = o.first_pass ? pith__search_copy_make(x, threads, stop, err) : PITH_OK;
    if (status)
        pith__search_index_free(x);
    else
        *index = x;
    return status;
}

void pith__search_index_free(pith_search_index *index) {
    if (!index) return;
    const pith_allocator allocator = index->allocator;
    if (index->drop) index->drop(index);
    pith__search_copy_free(index);
    pith__memory_free(&allocator, index);
}

size_t pith__search_index_items(const pith_search_index *index) {
    return index->metric == PITH_METRIC_MAXSIM ? index->documents : index->count;
}
