/* gguf.c - see gguf.h. */
#include "formats/weights/gguf/gguf.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory/account.h"
#include "base/stop.h"
#include "base/str.h"
#include "formats/weights/gguf/gguf_blocks.h"
#include "formats/weights/gguf/gguf_header.h"
#include "formats/weights/gguf/gguf_settings.h"

enum { DIMS_MAX = 4, ALIGNMENT = 32, ALIGNMENT_MOST = 1 << 20 };

/* Blocks that are decoded between two looks whether to stop: a millisecond. */
enum { GGUF_LOOK = 4096 };

typedef struct gguf {
    pith__gguf at;
    pith__gguf_settings settings;
    pith__weights *weights;
    pith_error *err;
    pith__stop *stop;
    uint64_t alignment, used; /* used: bytes of data that tensors take; more than there are means
                                 that they overlap */
} gguf;

/* One tensor as the header describes it. */
typedef struct gguf_tensor {
    pith_str stored, name; /* in the file, and Hugging Face's */
    uint64_t dims[DIMS_MAX];
    uint32_t rank, type;
    uint64_t offset;
} gguf_tensor;

/* ---- tensors ---- */

/* One entry of the list of tensors. Up to four sizes, the type of ggml, and an offset into the data
 * section. */
static pith_status gguf_describe(gguf *g, gguf_tensor *t) {
    pith_str name;
    PITH_TRY(pith__gguf_text(&g->at, &name));
    PITH_TRY(pith__gguf_take(&g->at, &t->rank, sizeof t->rank));
    if (!t->rank || t->rank > DIMS_MAX)
        return pith__gguf_fail(&g->at, "a tensor of no or more than 4 dimensions");
    PITH_TRY(pith__gguf_take(&g->at, t->dims, t->rank * sizeof *t->dims));
    PITH_TRY(pith__gguf_take(&g->at, &t->type, sizeof t->type));
    PITH_TRY(pith__gguf_take(&g->at, &t->offset, sizeof t->offset));
    t->stored = name;
    t->name = pith__gguf_arch_hf_name(g->settings.arch, name, g->weights->arena);
    return t->name.data ? PITH_OK : pith__fail_memory(g->err, name.size);
}

/* The tensor's shape; sizes are listed from the last axis on. */
static pith_status gguf_shape(const gguf *g, pith_tensor *tensor, const gguf_tensor *t,
                              const pith__gguf_form *form) {
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] > INT64_MAX)
            return pith__fail(g->err, PITH_ERR_FORMAT, "an impossible size");
        tensor->dims[t->rank - 1 - i] = (int64_t)t->dims[i];
    }
    if (t->dims[0] % form->elements)
        return pith__fail(g->err, PITH_ERR_FORMAT, "rows of %llu elements are no blocks of %zu",
                          (unsigned long long)t->dims[0], form->elements);
    if (!pith__dtype_bytes(tensor->dtype, pith__dims_count(tensor->dims, tensor->rank),
                           &tensor->bytes))
        return pith__fail(g->err, PITH_ERR_FORMAT, "an impossible shape");
    return PITH_OK;
}

/* Types that the engine has are used in the file; the others, in blocks, are decoded to f32. `used`
 * adds the bytes of all tensors: more than the data has means that some overlap, which would let a
 * small file ask for much memory. */
static pith_status gguf_data(gguf *g, pith_tensor *tensor, const gguf_tensor *t,
                             const pith__gguf_form *form, pith_str data) {
    const size_t elements = form->elements, each = form->bytes;
    const uint64_t blocks = (uint64_t)pith__dims_count(tensor->dims, tensor->rank) / elements;
    if (t->offset > data.size || blocks > (data.size - t->offset) / each)
        return pith__fail(g->err, PITH_ERR_FORMAT, "its data reaches beyond the end of the file");
    g->used += blocks * each;
    if (g->used > data.size) return pith__fail(g->err, PITH_ERR_FORMAT, "tensors share their data");
    const char *from = data.data + t->offset;
    if (!form->decode) return pith__weights_place(tensor, from, g->weights->arena, g->err);
    float *to = pith__arena_alloc64(g->weights->arena, tensor->bytes);
    if (!to) return pith__fail_memory(g->err, tensor->bytes);
    tensor->data = to;
    for (uint64_t i = 0; i < blocks; i++) {
        if (i % GGUF_LOOK == 0) PITH_TRY(pith__stop_check(g->stop, g->err));
        form->decode(to + i * elements, from + i * each);
    }
    return PITH_OK;
}

/* One matrix for query, key and value, where the architecture has three: its rows in this order. */
static pith_status gguf_add_parts(gguf *g, const gguf_tensor *t, const pith_tensor *whole,
                                  size_t prefix, pith_str end) {
    static const char *const letters[] = { "q", "k", "v" };
    const uint64_t heads = pith__gguf_setting_count(&g->settings, "attention.head_count", 0);
    const uint64_t shared =
        pith__gguf_setting_count(&g->settings, "attention.head_count_kv", heads);
    const uint64_t all = heads + 2 * shared, rows = (uint64_t)whole->dims[0],
                   at[] = { 0, heads, heads + shared, all };
    if (!heads || heads > INT32_MAX || shared > INT32_MAX || rows % all)
        return pith__fail(g->err, PITH_ERR_FORMAT,
                          "%llu rows are no queries, keys and values of %llu and %llu heads",
                          (unsigned long long)rows, (unsigned long long)heads,
                          (unsigned long long)shared);
    for (int i = 0; i < 3; i++) {
        pith_tensor part = *whole;
        const size_t row = whole->bytes / (size_t)rows, size = (size_t)(rows / all);
        const pith_str name = pith__arena_printf(
            g->weights->arena, PITH_STR_FMT "attn_%s." PITH_STR_FMT,
            PITH_STR_ALL(((pith_str){ t->stored.data, prefix })), letters[i], PITH_STR_ALL(end));
        if (!name.data) return pith__fail_memory(g->err, t->stored.size);
        part.dims[0] = (int64_t)((at[i + 1] - at[i]) * size);
        part.bytes = row * (size_t)part.dims[0];
        PITH_TRY(pith__weights_place(&part, (const char *)whole->data + row * (size_t)at[i] * size,
                                     g->weights->arena, g->err));
        const pith_str hf = pith__gguf_arch_hf_name(g->settings.arch, name, g->weights->arena);
        if (!hf.data) return pith__fail_memory(g->err, name.size);
        PITH_TRY(pith__weights_put(g->weights, hf, &part, g->err));
    }
    return PITH_OK;
}

/* Where "attn_qkv." is in a name that stayed as it was; 0: nowhere. */
static size_t gguf_joined(const gguf_tensor *t) {
    static const char part[] = "attn_qkv.";
    const size_t size = sizeof part - 1;
    if (t->name.data != t->stored.data || t->stored.size <= size ||
        memcmp(t->stored.data, "blk.", 4) != 0)
        return 0;
    for (size_t i = 4; i + size < t->stored.size; i++)
        if (!memcmp(t->stored.data + i, part, size)) return i;
    return 0;
}

/* Names are those of ggml (gguf_arch.c maps them to transformers' names). A joined projection of
 * query, key and value is cut into three where the architecture has three. */
static pith_status gguf_add(gguf *g, const gguf_tensor *t, pith_str data) {
    const pith__gguf_form *form = pith__gguf_form_find(t->type);
    if (!form)
        return pith__fail(g->err, PITH_ERR_UNSUPPORTED,
                          "type %u (%s); " PITH_GGUF_FORMS " are read; use a file of one of these",
                          t->type, pith__gguf_form_name(t->type));
    pith_tensor tensor = { .dtype = form->dtype, .rank = (int)t->rank };
    const size_t joined = gguf_joined(t);
    PITH_TRY(gguf_shape(g, &tensor, t, form));
    PITH_TRY(gguf_data(g, &tensor, t, form, data));
    if (!joined || tensor.dims[0] < 1)
        return pith__weights_put(g->weights, t->name, &tensor, g->err);
    return gguf_add_parts(g, t, &tensor, joined,
                          (pith_str){ t->stored.data + joined + 9, t->stored.size - joined - 9 });
}

/* ---- the file ---- */

/* The data begins at a multiple of general.alignment, 32 unless the file says otherwise. */
static pith_status gguf_header(gguf *g, pith_str bytes, const char *file_name) {
    PITH_TRY(pith__gguf_settings_read(&g->settings, bytes, file_name, g->weights->arena, g->err));
    g->at = g->settings.at;
    const uint64_t alignment =
        pith__gguf_setting_count(&g->settings, "general.alignment", ALIGNMENT);
    if (!alignment || alignment > ALIGNMENT_MOST || (alignment & (alignment - 1)))
        return pith__gguf_fail(&g->at, "an impossible alignment");
    g->alignment = alignment;
    g->weights->whole_gains = g->settings.arch->whole_gains;
    return PITH_OK;
}

/* Where the data begins is known only when the list of tensors has been walked, so it is walked
 * twice. */
pith_status pith__gguf_read(pith__weights *weights, pith_str bytes, const char *file_name,
                            pith_error *err) {
    gguf g = { .weights = weights,
               .stop = pith__account_stop(weights->arena->allocator),
               .err = err };
    gguf_tensor t;
    PITH_TRY(gguf_header(&g, bytes, file_name));
    const char *list = g.at.next;
    /* Twice: data begins behind the list. */
    for (uint64_t i = 0; i < g.at.tensors; i++) PITH_TRY(gguf_describe(&g, &t));
    const uint64_t at = ((uint64_t)(g.at.next - g.at.begin) + g.alignment - 1) & ~(g.alignment - 1);
    const pith_str data = at > bytes.size ? (pith_str){ g.at.end, 0 }
                                          : (pith_str){ g.at.begin + at, bytes.size - at };
    g.at.next = list;
    for (uint64_t i = 0; i < g.at.tensors; i++) {
        PITH_TRY(pith__stop_check(g.stop, err));
        PITH_TRY(gguf_describe(&g, &t));
        pith_status status = gguf_add(&g, &t, data);
        if (status)
            return pith__fail_at(err, status, "%s: tensor '" PITH_STR_FMT "': ", file_name,
                                 PITH_STR_ARG(t.name));
    }
    return PITH_OK;
}
