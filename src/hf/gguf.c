/* gguf.c - see gguf.h. */
#include "hf/gguf.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/gguf_header.h"
#include "base/str.h"
#include "hf/gguf_blocks.h"

enum { DIMS_MAX = 4, ALIGNMENT = 32, ALIGNMENT_MOST = 1 << 20 };

typedef struct gguf {
    pith_gguf at;
    pith_weights *weights;
    pith_error *err;
    uint64_t alignment, used; /* used: bytes of data that tensors take; more than there are means that they overlap */
    bool bert;
} gguf;

/* One tensor as the header describes it. */
typedef struct gguf_tensor {
    pith_str name; /* Hugging Face's */
    uint64_t dims[DIMS_MAX];
    uint32_t rank, type;
    uint64_t offset;
} gguf_tensor;

/* ---- settings ---- */

static pith_status gguf_setting(gguf *g, const pith_gguf_entry *e) {
    if (pith_str_is(e->key, "general.architecture") && e->kind == PITH_GGUF_TEXT) {
        g->bert = pith_str_is(e->text, "bert");
        if (g->bert) return PITH_OK;
        return pith_fail(g->err, PITH_ERR_UNSUPPORTED,
                         "%s: architecture '" PITH_STR_FMT "'; GGUF is read for bert only", g->at.name,
                         PITH_STR_ARG(e->text));
    }
    if (!pith_str_is(e->key, "general.alignment") || e->kind != PITH_GGUF_COUNT) return PITH_OK;
    if (!e->count || e->count > ALIGNMENT_MOST || (e->count & (e->count - 1)))
        return pith_gguf_fail(&g->at, "an impossible alignment");
    g->alignment = e->count;
    return PITH_OK;
}

/* ---- names ---- */

static const char *const gguf_plain_names[][2] = {
    { "token_embd.", "embeddings.word_embeddings." },
    { "token_types.", "embeddings.token_type_embeddings." },
    { "position_embd.", "embeddings.position_embeddings." },
    { "token_embd_norm.", "embeddings.LayerNorm." },
};
static const char *const gguf_layer_names[][2] = {
    { "attn_q.", "attention.self.query." },
    { "attn_k.", "attention.self.key." },
    { "attn_v.", "attention.self.value." },
    { "attn_output.", "attention.output.dense." },
    { "attn_output_norm.", "attention.output.LayerNorm." },
    { "ffn_up.", "intermediate.dense." },
    { "ffn_down.", "output.dense." },
    { "layer_output_norm.", "output.LayerNorm." },
};

static bool gguf_begins(pith_str *rest, pith_str name, const char *with) {
    const size_t n = strlen(with);
    if (name.size < n || memcmp(name.data, with, n)) return false;
    *rest = (pith_str){ name.data + n, name.size - n };
    return true;
}

/* "blk.3.attn_q.weight" to "encoder.layer.3.attention.self.query.weight"; other names stay. */
static pith_str gguf_hf_name(pith_arena *arena, pith_str name) {
    pith_str rest, end;
    size_t digits = 0;
    for (size_t i = 0; i < sizeof gguf_plain_names / sizeof *gguf_plain_names; i++)
        if (gguf_begins(&rest, name, gguf_plain_names[i][0]))
            return pith_arena_printf(arena, "%s" PITH_STR_FMT, gguf_plain_names[i][1], PITH_STR_ALL(rest));
    if (!gguf_begins(&rest, name, "blk.")) return name;
    while (digits < rest.size && rest.data[digits] >= '0' && rest.data[digits] <= '9') digits++;
    if (!digits || digits == rest.size || rest.data[digits] != '.') return name;
    const pith_str number = { rest.data, digits }, part = { rest.data + digits + 1, rest.size - digits - 1 };
    for (size_t i = 0; i < sizeof gguf_layer_names / sizeof *gguf_layer_names; i++)
        if (gguf_begins(&end, part, gguf_layer_names[i][0]))
            return pith_arena_printf(arena, "encoder.layer." PITH_STR_FMT ".%s" PITH_STR_FMT, PITH_STR_ALL(number),
                                     gguf_layer_names[i][1], PITH_STR_ALL(end));
    return name;
}

/* ---- tensors ---- */

static pith_status gguf_describe(gguf *g, gguf_tensor *t) {
    pith_str name;
    PITH_TRY(pith_gguf_text(&g->at, &name));
    PITH_TRY(pith_gguf_take(&g->at, &t->rank, sizeof t->rank));
    if (!t->rank || t->rank > DIMS_MAX) return pith_gguf_fail(&g->at, "a tensor of no or more than 4 dimensions");
    PITH_TRY(pith_gguf_take(&g->at, t->dims, t->rank * sizeof *t->dims));
    PITH_TRY(pith_gguf_take(&g->at, &t->type, sizeof t->type));
    PITH_TRY(pith_gguf_take(&g->at, &t->offset, sizeof t->offset));
    t->name = gguf_hf_name(g->weights->arena, name);
    return t->name.data ? PITH_OK : pith_fail_memory(g->err, name.size);
}

/* The tensor's shape; sizes are listed from the last axis on. */
static pith_status gguf_shape(const gguf *g, pith_tensor *tensor, const gguf_tensor *t, const pith_gguf_form *form) {
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] > INT64_MAX) return pith_fail(g->err, PITH_ERR_FORMAT, "an impossible size");
        tensor->dims[t->rank - 1 - i] = (int64_t)t->dims[i];
    }
    if (t->dims[0] % form->elements)
        return pith_fail(g->err, PITH_ERR_FORMAT, "rows of %llu elements are no blocks of %zu",
                         (unsigned long long)t->dims[0], form->elements);
    if (!pith_dtype_bytes(tensor->dtype, pith_dims_count(tensor->dims, tensor->rank), &tensor->bytes))
        return pith_fail(g->err, PITH_ERR_FORMAT, "an impossible shape");
    return PITH_OK;
}

static pith_status gguf_data(gguf *g, pith_tensor *tensor, const gguf_tensor *t, const pith_gguf_form *form,
                             pith_str data) {
    const size_t elements = form->elements, each = form->bytes;
    const uint64_t blocks = (uint64_t)pith_dims_count(tensor->dims, tensor->rank) / elements;
    if (t->offset > data.size || blocks > (data.size - t->offset) / each)
        return pith_fail(g->err, PITH_ERR_FORMAT, "its data reaches beyond the end of the file");
    g->used += blocks * each;
    if (g->used > data.size) return pith_fail(g->err, PITH_ERR_FORMAT, "tensors share their data");
    const char *from = data.data + t->offset;
    if (!form->decode) return pith_weights_place(tensor, from, g->weights->arena, g->err);
    float *to = pith_arena_alloc64(g->weights->arena, tensor->bytes);
    if (!to) return pith_fail_memory(g->err, tensor->bytes);
    tensor->data = to;
    for (uint64_t i = 0; i < blocks; i++) form->decode(to + i * elements, from + i * each);
    return PITH_OK;
}

static pith_status gguf_add(gguf *g, const gguf_tensor *t, pith_str data) {
    const pith_gguf_form *form = pith_gguf_form_find(t->type);
    if (!form) return pith_fail(g->err, PITH_ERR_UNSUPPORTED, "type %u; " PITH_GGUF_FORMS " are read", t->type);
    pith_tensor tensor = { .dtype = form->dtype, .rank = (int)t->rank };
    PITH_TRY(gguf_shape(g, &tensor, t, form));
    PITH_TRY(gguf_data(g, &tensor, t, form, data));
    return pith_weights_put(g->weights, t->name, &tensor, g->err);
}

/* ---- the file ---- */

static pith_status gguf_header(gguf *g, pith_str bytes, const char *file_name) {
    pith_gguf_entry e;
    PITH_TRY(pith_gguf_begin(&g->at, bytes, file_name, g->err));
    while (g->at.entries) {
        PITH_TRY(pith_gguf_next(&g->at, &e));
        PITH_TRY(gguf_setting(g, &e));
    }
    if (!g->bert)
        return pith_fail(g->err, PITH_ERR_UNSUPPORTED, "%s: the file does not say that its architecture is bert",
                         file_name);
    return PITH_OK;
}

pith_status pith_gguf_read(pith_weights *weights, pith_str bytes, const char *file_name, pith_error *err) {
    gguf g = { .weights = weights, .err = err, .alignment = ALIGNMENT };
    gguf_tensor t;
    PITH_TRY(gguf_header(&g, bytes, file_name));
    const char *list = g.at.p;
    /* Twice: data begins behind the list. */
    for (uint64_t i = 0; i < g.at.tensors; i++) PITH_TRY(gguf_describe(&g, &t));
    const uint64_t at = ((uint64_t)(g.at.p - g.at.begin) + g.alignment - 1) & ~(g.alignment - 1);
    const pith_str data = at > bytes.size ? (pith_str){ g.at.end, 0 } : (pith_str){ g.at.begin + at, bytes.size - at };
    g.at.p = list;
    for (uint64_t i = 0; i < g.at.tensors; i++) {
        PITH_TRY(gguf_describe(&g, &t));
        pith_status status = gguf_add(&g, &t, data);
        if (status)
            return pith_fail_at(err, status, "%s: tensor '" PITH_STR_FMT "': ", file_name, PITH_STR_ARG(t.name));
    }
    return PITH_OK;
}
