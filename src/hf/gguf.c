/* gguf.c - see gguf.h. Every count and length is compared with what is left of the file before it is used. */
#include "hf/gguf.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/str.h"

/* Types of metadata. */
enum { META_STRING = 8, META_ARRAY = 9, META_TYPES = 13 };
/* Types of tensors. BLOCK: elements that share a scale. */
enum { TENSOR_F32 = 0, TENSOR_F16 = 1, TENSOR_Q4_0 = 2, TENSOR_Q8_0 = 8, TENSOR_BF16 = 30, BLOCK = 32 };
enum { VERSION_LEAST = 2, VERSION_MOST = 3, DIMS_MAX = 4, ALIGNMENT = 32, ALIGNMENT_MOST = 1 << 20, NEST_MAX = 4 };

typedef struct gguf {
    const char *p, *begin, *end;
    const char *name; /* of the file */
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

static pith_status gguf_fail(const gguf *g, const char *what) {
    return pith_fail(g->err, PITH_ERR_FORMAT, "%s: %s at byte %td", g->name, what, g->p - g->begin);
}

/* ---- numbers and strings ---- */

static pith_status gguf_take(gguf *g, void *to, size_t size) {
    if ((size_t)(g->end - g->p) < size) {
        memset(to, 0, size);
        return gguf_fail(g, "the file is cut short");
    }
    memcpy(to, g->p, size);
    g->p += size;
    return PITH_OK;
}

static pith_status gguf_string(gguf *g, pith_str *s) {
    uint64_t size;
    PITH_TRY(gguf_take(g, &size, sizeof size));
    if (size > (uint64_t)(g->end - g->p)) return gguf_fail(g, "a string reaches beyond the end");
    *s = (pith_str){ g->p, (size_t)size };
    g->p += size;
    return PITH_OK;
}

/* ---- metadata ---- */

/* Bytes of each type; 0: it has a length of its own. */
static const uint8_t gguf_sizes[META_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

static pith_status gguf_skip(gguf *g, uint32_t type, int depth) {
    pith_str string;
    uint32_t inner;
    uint64_t count, bytes;
    if (type >= META_TYPES) return gguf_fail(g, "metadata of an unknown type");
    if (type == META_STRING) return gguf_string(g, &string);
    if (type != META_ARRAY) {
        if ((size_t)(g->end - g->p) < gguf_sizes[type]) return gguf_fail(g, "the file is cut short");
        g->p += gguf_sizes[type];
        return PITH_OK;
    }
    PITH_TRY(gguf_take(g, &inner, sizeof inner));
    PITH_TRY(gguf_take(g, &count, sizeof count));
    if (inner >= META_TYPES || depth == NEST_MAX) return gguf_fail(g, "metadata of an unknown type");
    if (gguf_sizes[inner]) {
        if (pith_mul_overflows(count, (uint64_t)gguf_sizes[inner], &bytes) || bytes > (uint64_t)(g->end - g->p))
            return gguf_fail(g, "a list reaches beyond the end");
        g->p += bytes;
        return PITH_OK;
    }
    for (uint64_t i = 0; i < count; i++) PITH_TRY(gguf_skip(g, inner, depth + 1)); /* each takes bytes of the file */
    return PITH_OK;
}

static pith_status gguf_metadata(gguf *g) {
    pith_str key, value;
    uint32_t type, alignment;
    PITH_TRY(gguf_string(g, &key));
    PITH_TRY(gguf_take(g, &type, sizeof type));
    if (pith_str_is(key, "general.architecture") && type == META_STRING) {
        PITH_TRY(gguf_string(g, &value));
        g->bert = pith_str_is(value, "bert");
        if (g->bert) return PITH_OK;
        return pith_fail(g->err, PITH_ERR_UNSUPPORTED,
                         "%s: architecture '" PITH_STR_FMT "'; GGUF is read for bert only", g->name,
                         PITH_STR_ARG(value));
    }
    if (!pith_str_is(key, "general.alignment") || gguf_sizes[type < META_TYPES ? type : 0] != sizeof alignment)
        return gguf_skip(g, type, 0);
    PITH_TRY(gguf_take(g, &alignment, sizeof alignment));
    if (!alignment || alignment > ALIGNMENT_MOST || (alignment & (alignment - 1)))
        return gguf_fail(g, "an impossible alignment");
    g->alignment = alignment;
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
            return pith_arena_printf(arena, "%s" PITH_STR_FMT, gguf_plain_names[i][1], PITH_STR_ARG(rest));
    if (!gguf_begins(&rest, name, "blk.")) return name;
    while (digits < rest.size && rest.data[digits] >= '0' && rest.data[digits] <= '9') digits++;
    if (!digits || digits == rest.size || rest.data[digits] != '.') return name;
    const pith_str number = { rest.data, digits }, part = { rest.data + digits + 1, rest.size - digits - 1 };
    for (size_t i = 0; i < sizeof gguf_layer_names / sizeof *gguf_layer_names; i++)
        if (gguf_begins(&end, part, gguf_layer_names[i][0]))
            return pith_arena_printf(arena, "encoder.layer." PITH_STR_FMT ".%s" PITH_STR_FMT, PITH_STR_ARG(number),
                                     gguf_layer_names[i][1], PITH_STR_ARG(end));
    return name;
}

/* ---- tensors ---- */

static pith_status gguf_describe(gguf *g, gguf_tensor *t) {
    pith_str name;
    PITH_TRY(gguf_string(g, &name));
    PITH_TRY(gguf_take(g, &t->rank, sizeof t->rank));
    if (!t->rank || t->rank > DIMS_MAX) return gguf_fail(g, "a tensor of no or more than 4 dimensions");
    PITH_TRY(gguf_take(g, t->dims, t->rank * sizeof *t->dims));
    PITH_TRY(gguf_take(g, &t->type, sizeof t->type));
    PITH_TRY(gguf_take(g, &t->offset, sizeof t->offset));
    t->name = gguf_hf_name(g->weights->arena, name);
    return t->name.data ? PITH_OK : pith_fail_memory(g->err, name.size);
}

static float gguf_scale(const char *block) {
    uint16_t bits;
    memcpy(&bits, block, sizeof bits);
    return pith_f32_of_f16(bits);
}

/* A scale of f16 and 16 bytes: the low halves are elements 0 to 15, the high ones 16 to 31, minus 8. */
static void gguf_decode_q4(float *to, const char *block) {
    const float scale = gguf_scale(block);
    for (int i = 0; i < BLOCK / 2; i++) {
        const uint8_t codes = (uint8_t)block[2 + i];
        to[i] = (float)((codes & 15) - 8) * scale;
        to[i + BLOCK / 2] = (float)((codes >> 4) - 8) * scale;
    }
}

/* A scale of f16 and 32 signed bytes. */
static void gguf_decode_q8(float *to, const char *block) {
    const float scale = gguf_scale(block);
    for (int i = 0; i < BLOCK; i++) to[i] = (float)(int8_t)block[2 + i] * scale;
}

static const struct {
    uint32_t type;
    int dtype; /* of what is made */
    size_t elements, bytes;
    void (*decode)(float *to, const char *block); /* NULL: as it is */
} gguf_forms[] = {
    { TENSOR_F32, PITH_F32, 1, 4, NULL },
    { TENSOR_F16, PITH_F16, 1, 2, NULL },
    { TENSOR_BF16, PITH_BF16, 1, 2, NULL },
    { TENSOR_Q4_0, PITH_F32, BLOCK, 2 + BLOCK / 2, gguf_decode_q4 },
    { TENSOR_Q8_0, PITH_F32, BLOCK, 2 + BLOCK, gguf_decode_q8 },
};
enum { FORMS = sizeof gguf_forms / sizeof *gguf_forms };

/* The tensor's shape; sizes are listed from the last axis on. */
static pith_status gguf_shape(const gguf *g, pith_tensor *tensor, const gguf_tensor *t, size_t form) {
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] > INT64_MAX) return pith_fail(g->err, PITH_ERR_FORMAT, "an impossible size");
        tensor->dims[t->rank - 1 - i] = (int64_t)t->dims[i];
    }
    if (t->dims[0] % gguf_forms[form].elements)
        return pith_fail(g->err, PITH_ERR_FORMAT, "rows of %llu elements are no blocks of %d",
                         (unsigned long long)t->dims[0], BLOCK);
    if (!pith_dtype_bytes(tensor->dtype, pith_dims_count(tensor->dims, tensor->rank), &tensor->bytes))
        return pith_fail(g->err, PITH_ERR_FORMAT, "an impossible shape");
    return PITH_OK;
}

static pith_status gguf_data(gguf *g, pith_tensor *tensor, const gguf_tensor *t, size_t form, pith_str data) {
    const size_t elements = gguf_forms[form].elements, each = gguf_forms[form].bytes;
    const uint64_t blocks = (uint64_t)pith_dims_count(tensor->dims, tensor->rank) / elements;
    if (t->offset > data.size || blocks > (data.size - t->offset) / each)
        return pith_fail(g->err, PITH_ERR_FORMAT, "its data reaches beyond the end of the file");
    g->used += blocks * each;
    if (g->used > data.size) return pith_fail(g->err, PITH_ERR_FORMAT, "tensors share their data");
    const char *from = data.data + t->offset;
    if (!gguf_forms[form].decode) return pith_weights_place(tensor, from, g->weights->arena, g->err);
    float *to = pith_arena_alloc64(g->weights->arena, tensor->bytes);
    if (!to) return pith_fail_memory(g->err, tensor->bytes);
    tensor->data = to;
    for (uint64_t i = 0; i < blocks; i++) gguf_forms[form].decode(to + i * elements, from + i * each);
    return PITH_OK;
}

static pith_status gguf_add(gguf *g, const gguf_tensor *t, pith_str data) {
    size_t form = 0;
    while (form < FORMS && gguf_forms[form].type != t->type) form++;
    if (form == FORMS)
        return pith_fail(g->err, PITH_ERR_UNSUPPORTED, "type %u; F32, F16, BF16, Q4_0 and Q8_0 are read", t->type);
    pith_tensor tensor = { .dtype = gguf_forms[form].dtype, .rank = (int)t->rank };
    PITH_TRY(gguf_shape(g, &tensor, t, form));
    PITH_TRY(gguf_data(g, &tensor, t, form, data));
    return pith_weights_put(g->weights, t->name, &tensor, g->err);
}

/* ---- the file ---- */

static pith_status gguf_header(gguf *g, uint64_t *tensors) {
    char magic[4];
    uint32_t version;
    uint64_t entries;
    PITH_TRY(gguf_take(g, magic, sizeof magic));
    if (memcmp(magic, "GGUF", sizeof magic)) return pith_fail(g->err, PITH_ERR_FORMAT, "%s: not a GGUF file", g->name);
    PITH_TRY(gguf_take(g, &version, sizeof version));
    if (version < VERSION_LEAST || version > VERSION_MOST)
        return pith_fail(g->err, PITH_ERR_UNSUPPORTED, "%s: version %u of GGUF; 2 and 3 are read", g->name, version);
    PITH_TRY(gguf_take(g, tensors, sizeof *tensors));
    PITH_TRY(gguf_take(g, &entries, sizeof entries));
    for (uint64_t i = 0; i < entries; i++) PITH_TRY(gguf_metadata(g));
    if (!g->bert)
        return pith_fail(g->err, PITH_ERR_UNSUPPORTED, "%s: the file does not say that its architecture is bert",
                         g->name);
    return PITH_OK;
}

pith_status pith_gguf_read(pith_weights *weights, pith_str bytes, const char *file_name, pith_error *err) {
    gguf g = { bytes.data, bytes.data, bytes.data + bytes.size, file_name, weights, err, ALIGNMENT, 0, false };
    gguf_tensor t;
    uint64_t count = 0;
    PITH_TRY(gguf_header(&g, &count));
    const char *list = g.p;
    /* Twice: data begins behind the list. */
    for (uint64_t i = 0; i < count; i++) PITH_TRY(gguf_describe(&g, &t));
    const uint64_t at = ((uint64_t)(g.p - g.begin) + g.alignment - 1) & ~(g.alignment - 1);
    const pith_str data = at > bytes.size ? (pith_str){ g.end, 0 } : (pith_str){ g.begin + at, bytes.size - at };
    g.p = list;
    for (uint64_t i = 0; i < count; i++) {
        PITH_TRY(gguf_describe(&g, &t));
        pith_status status = gguf_add(&g, &t, data);
        if (status)
            return pith_fail_at(err, status, "%s: tensor '" PITH_STR_FMT "': ", file_name, PITH_STR_ARG(t.name));
    }
    return PITH_OK;
}
