/* tensor_read.c - every form of a TensorProto.
 *
 * The data of a tensor is in raw_data, in a file next to the model, or in the repeated field of its
 * dtype, packed or one number per field. The number of stored elements is always compared with the
 * dims before anything is allocated, so memory is bounded by the size of the file. Source of field
 * numbers and encodings: onnx.proto. */
#include "formats/onnx/tensor_read.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/stop.h"
#include "base/str.h"
#include "engine/graph/graph.h"
#include "formats/onnx/wire.h"

enum {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11
};

/* Numbers that are read between two looks whether to stop: a millisecond. */
enum { TENSOR_LOOK = 1 << 17 };

/* The repeated field of each dtype, and how many bytes of the tensor one of its numbers fills: a
 * complex number is two numbers, and elements below 8 bits come packed in bytes. */
static const struct {
    uint8_t field, unit;
} typed[PITH_DTYPE_COUNT] = {
    [PITH_F32] = { FLOAT_DATA, 4 },        [PITH_C64] = { FLOAT_DATA, 4 },
    [PITH_F64] = { DOUBLE_DATA, 8 },       [PITH_C128] = { DOUBLE_DATA, 8 },
    [PITH_I64] = { INT64_DATA, 8 },        [PITH_U64] = { UINT64_DATA, 8 },
    [PITH_U32] = { UINT64_DATA, 4 },       [PITH_I32] = { INT32_DATA, 4 },
    [PITH_I16] = { INT32_DATA, 2 },        [PITH_U16] = { INT32_DATA, 2 },
    [PITH_F16] = { INT32_DATA, 2 },        [PITH_BF16] = { INT32_DATA, 2 },
    [PITH_I8] = { INT32_DATA, 1 },         [PITH_U8] = { INT32_DATA, 1 },
    [PITH_BOOL] = { INT32_DATA, 1 },       [PITH_F8E4M3FN] = { INT32_DATA, 1 },
    [PITH_F8E4M3FNUZ] = { INT32_DATA, 1 }, [PITH_F8E5M2] = { INT32_DATA, 1 },
    [PITH_F8E5M2FNUZ] = { INT32_DATA, 1 }, [PITH_F8E8M0] = { INT32_DATA, 1 },
    [PITH_U4] = { INT32_DATA, 1 },         [PITH_I4] = { INT32_DATA, 1 },
    [PITH_F4E2M1] = { INT32_DATA, 1 },     [PITH_U2] = { INT32_DATA, 1 },
    [PITH_I2] = { INT32_DATA, 1 },         [PITH_STRING] = { STRING_DATA, sizeof(pith_str) },
};

/* One TensorProto, taken apart. */
typedef struct proto {
    pith_str bytes, name, raw;
    int64_t dims[PITH_MAX_RANK];
    int rank;
    int64_t dtype;
    bool has_raw, segmented, external;
    pith_str location;
    uint64_t offset, length;
    bool has_length;
} proto;

static bool is_fixed(int field) { return field == FLOAT_DATA || field == DOUBLE_DATA; }

static pith_status add_dim(proto *t, uint64_t value, pith_error *err) {
    if (t->rank == PITH_MAX_RANK)
        return pith__fail(err, PITH_ERR_UNSUPPORTED, "more than %d dimensions", PITH_MAX_RANK);
    t->dims[t->rank++] = (int64_t)value;
    return PITH_OK;
}

/* A number of external_data, which the format stores as text. No sign, no blanks, no overflow. */
static pith_status decimal(uint64_t *value, pith_str text, const char *key, pith_error *err) {
    uint64_t v = 0;
    bool good = text.size > 0;
    for (size_t i = 0; i < text.size && good; i++) {
        good = text.data[i] >= '0' && text.data[i] <= '9' && !pith__mul_overflows(v, 10u, &v) &&
               !pith__add_overflows(v, (uint64_t)(text.data[i] - '0'), &v);
    }
    if (!good)
        return pith__fail(err, PITH_ERR_FORMAT, "external data: %s \"" PITH_STR_FMT "\"", key,
                          PITH_STR_ARG(text));
    *value = v;
    return PITH_OK;
}

/* One StringStringEntryProto of external_data. */
static pith_status add_external(proto *t, pith_str bytes, const pith__onnx_source *source) {
    pith__wire w;
    pith__wire_field f;
    pith_str key = { "", 0 }, value = { "", 0 };
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1)) key = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(2)) value = f.bytes;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (pith__str_is(key, "location")) t->location = value;
    if (pith__str_is(key, "offset")) return decimal(&t->offset, value, "offset", source->err);
    if (pith__str_is(key, "length")) {
        t->has_length = true;
        return decimal(&t->length, value, "length", source->err);
    }
    return PITH_OK;
}

/* One walk over the message. Typed fields are counted and copied later, when the dtype is known;
 * here only raw_data, the name and the place of external data are kept. */
static pith_status take_apart(proto *t, pith_str bytes, pith_str *name,
                              const pith__onnx_source *source) {
    pith__wire w, packed;
    pith__wire_field f;
    uint64_t dim;
    *t = (proto){ .bytes = bytes, .name = { "", 0 }, .location = { "", 0 } };
    pith__wire_init(&w, bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_VARINT(1): PITH_TRY(add_dim(t, f.value, source->err)); break;
        case PITH_WIRE_BYTES(1):
            pith__wire_init(&packed, f.bytes, source->base, source->err);
            while (pith__wire_next_varint(&packed, &dim)) PITH_TRY(add_dim(t, dim, source->err));
            if (packed.failed) return PITH_ERR_FORMAT;
            break;
        case PITH_WIRE_VARINT(2): t->dtype = (int64_t)f.value; break;
        case PITH_WIRE_BYTES(3): t->segmented = true; break;
        case PITH_WIRE_BYTES(8):
            t->name = f.bytes;
            if (name) *name = f.bytes;
            break;
        case PITH_WIRE_BYTES(9):
            t->raw = f.bytes;
            t->has_raw = true;
            break;
        case PITH_WIRE_BYTES(13): PITH_TRY(add_external(t, f.bytes, source)); break;
        case PITH_WIRE_VARINT(14): t->external = f.value == 1; break;
        default: break;
        }
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* The stored bytes as they are if they are aligned, or may lie anywhere; else a copy. */
static pith_status use_bytes(pith_tensor *tensor, pith_str bytes, const pith__onnx_source *source) {
    size_t alignment = (size_t)pith__dtype_bits(tensor->dtype) / 8;
    if (alignment < 1) alignment = 1; /* types of less than 8 bits */
    if (alignment > 8) alignment = 8; /* pairs of doubles */
    if (pith__constant_lies_anywhere(tensor) || (uintptr_t)bytes.data % alignment == 0) {
        tensor->data = (void *)(uintptr_t)bytes.data;
        return PITH_OK;
    }
    tensor->data = pith__arena_alloc64(source->arena, bytes.size);
    if (!tensor->data) return pith__fail_memory(source->err, bytes.size);
    return pith__copy_until(source->stop, tensor->data, bytes.data, bytes.size, source->err);
}

/* use_bytes for external data, which many tensors may share: equal spans are copied once. Spans
 * that differ and lie over each other count each, and all copies together may be as large as the
 * files. */
static pith_status use_shared(pith_tensor *tensor, pith_str bytes, pith__onnx_source *source) {
    const struct {
        const char *data;
        size_t size;
    } place = { bytes.data, bytes.size };
    pith_str key = { (const char *)&place, sizeof place };
    uint32_t at = source->copied ? pith__map_get(&source->copies, key) : UINT32_MAX;
    void *copied = source->copied;
    size_t most = 0;
    if (at != UINT32_MAX) {
        tensor->data = source->copied[at];
        return PITH_OK;
    }
    PITH_TRY(use_bytes(tensor, bytes, source));
    if (tensor->data == (const void *)bytes.data) return PITH_OK;
    for (size_t i = 0; i < source->files->count; i++) most += source->files->items[i].size;
    source->copy_bytes += bytes.size;
    if (source->copy_bytes > most)
        return pith__fail(source->err, PITH_ERR_UNSUPPORTED,
                          "tensors that lie over each other in the external data, at places that "
                          "their type does not "
                          "allow, are larger than the files; write the model again");
    key = pith__arena_str(source->arena, key);
    if (!key.data || (!copied && pith__map_init(&source->copies, source->arena, 16)) ||
        !pith__arena_grow(source->arena, &copied, source->copy_count, &source->copy_room,
                          sizeof *source->copied) ||
        !pith__map_put(&source->copies, key, (uint32_t)source->copy_count, NULL))
        return pith__fail_memory(source->err, bytes.size);
    source->copied = copied;
    source->copied[source->copy_count++] = tensor->data;
    return PITH_OK;
}

/* Whether the file lies in the folder or below it; both are real paths. */
static bool lies_in(const char *file, const char *folder, size_t folder_length) {
    if (folder_length && folder[folder_length - 1] == '/') folder_length--;
    return strncmp(file, folder, folder_length) == 0 && file[folder_length] == '/';
}

/* The model's folder, or where the model file really is if that is a symbolic link: a download
 * cache keeps a folder of links to files that lie side by side elsewhere. */
static bool is_allowed(const pith__onnx_source *source, const char *file) {
    char real[PATH_MAX];
    const pith_allocator *allocator = source->files->arena->allocator;
    if (pith__file_real(real, source->external_dir, allocator) && lies_in(file, real, strlen(real)))
        return true;
    for (size_t i = 0; i < source->files->count; i++) {
        if (!pith__file_real(real, source->files->items[i].path, allocator)) continue;
        if (lies_in(file, real, (size_t)(strrchr(real, '/') + 1 - real))) return true;
    }
    return false;
}

/* The location is relative to the model's folder and must stay in it, also after symbolic links are
 * followed: a model from the internet must not be able to read other files. The last file is kept
 * open, since most tensors follow each other in one file. */
static pith_status open_external(pith__onnx_source *source, pith_str location) {
    char real[PATH_MAX];
    pith_str path;
    if (!source->external_dir)
        return pith__fail(source->err, PITH_ERR_UNSUPPORTED, "external data is not allowed here");
    PITH_TRY(pith__path_join(&path, source->arena, source->external_dir, location, source->err));
    if (!pith__file_real(real, path.data, source->files->arena->allocator))
        return pith__fail(source->err, PITH_ERR_NOT_FOUND, "external data file \"%s\" is missing",
                          path.data);
    if (!is_allowed(source, real)) {
        return pith__fail(source->err, PITH_ERR_FORMAT,
                          "external data file \"%s\" is outside the model's folder", path.data);
    }
    PITH_TRY(pith__files_open(&source->external_data, source->files, real, source->err));
    source->external_location = location;
    return PITH_OK;
}

/* The length may be missing; if it is there, it must be that of the shape. The file is mapped, so a
 * large tensor costs nothing until it is read. */
static pith_status use_external(pith_tensor *tensor, const proto *t, pith__onnx_source *source) {
    if (tensor->dtype == PITH_STRING)
        return pith__fail(source->err, PITH_ERR_UNSUPPORTED,
                          "strings in external data are not supported");
    if (!source->external_location.data || !pith__str_eq(source->external_location, t->location))
        PITH_TRY(open_external(source, t->location));
    pith_str file = source->external_data;
    uint64_t length = t->has_length ? t->length : tensor->bytes;
    if (length != tensor->bytes) {
        return pith__fail(source->err, PITH_ERR_FORMAT,
                          "external data has %llu bytes, but the shape needs %zu",
                          (unsigned long long)length, tensor->bytes);
    }
    if (t->offset > file.size || length > file.size - t->offset) {
        return pith__fail(
            source->err, PITH_ERR_FORMAT,
            "external data begins at byte %llu and has %llu bytes, but \"" PITH_STR_FMT
            "\" has only %zu",
            (unsigned long long)t->offset, (unsigned long long)length, PITH_STR_ARG(t->location),
            file.size);
    }
    return use_shared(tensor, (pith_str){ file.data + t->offset, (size_t)length }, source);
}

/* Numbers stored in the repeated field, packed and single ones together; *only is the packed chunk
 * if there is but one and nothing else. */
static pith_status count_typed(uint64_t *count, pith_str *only, const proto *t, int field,
                               const pith__onnx_source *source) {
    pith__wire w;
    pith__wire_field f;
    size_t chunks = 0;
    uint64_t fixed = field == FLOAT_DATA ? 4 : 8;
    *count = 0;
    pith__wire_init(&w, t->bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        if (f.tag >> 3 != (uint32_t)field) continue;
        chunks++;
        if (f.tag != PITH_WIRE_BYTES(field))
            ++*count;
        else if (field == STRING_DATA)
            ++*count;
        else if (!is_fixed(field))
            *count += pith__wire_count_varints(f.bytes);
        else if (f.bytes.size % fixed)
            return pith__fail(source->err, PITH_ERR_FORMAT, "packed numbers are cut short");
        else
            *count += f.bytes.size / fixed;
        if (f.tag == PITH_WIRE_BYTES(field)) *only = f.bytes;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (chunks != 1 || !only->data || !is_fixed(field)) *only = (pith_str){ NULL, 0 };
    return PITH_OK;
}

/* Copies the repeated field's numbers, whose count was checked, to tensor->data. */
static pith_status copy_typed(pith_tensor *tensor, const proto *t, int field,
                              const pith__onnx_source *source) {
    pith__wire w, packed;
    pith__wire_field f;
    uint64_t value;
    size_t unit = typed[tensor->dtype].unit;
    char *out = tensor->data;
    pith_str *strings = tensor->data;
    pith__wire_init(&w, t->bytes, source->base, source->err);
    while (pith__wire_next(&w, &f)) {
        if (f.tag >> 3 != (uint32_t)field) continue;
        if (field == STRING_DATA) {
            *strings++ = f.bytes;
        } else if (f.tag != PITH_WIRE_BYTES(field)) {
            memcpy(out, &f.value, unit);
            out += unit;
        } else if (is_fixed(field)) {
            PITH_TRY(pith__copy_until(source->stop, out, f.bytes.data, f.bytes.size, source->err));
            out += f.bytes.size;
        } else {
            pith__wire_init(&packed, f.bytes, source->base, source->err);
            for (size_t i = 0; pith__wire_next_varint(&packed, &value); out += unit, i++) {
                if (i % TENSOR_LOOK == 0) PITH_TRY(pith__stop_check(source->stop, source->err));
                memcpy(out, &value, unit);
            }
            if (packed.failed) return PITH_ERR_FORMAT;
        }
    }
    return PITH_OK;
}

/* A single packed field of floats is used where it lies, like raw_data. Everything else is copied
 * number by number. */
static pith_status use_typed(pith_tensor *tensor, const proto *t, const pith__onnx_source *source) {
    int field = typed[tensor->dtype].field;
    uint64_t count, want = tensor->bytes / typed[tensor->dtype].unit;
    pith_str only = { NULL, 0 };
    PITH_TRY(count_typed(&count, &only, t, field, source));
    if (count != want) {
        if (!count) return pith__fail(source->err, PITH_ERR_FORMAT, "has no data");
        return pith__fail(source->err, PITH_ERR_FORMAT,
                          "has %llu numbers, but the shape needs %llu", (unsigned long long)count,
                          (unsigned long long)want);
    }
    if (only.data) return use_bytes(tensor, only, source);
    tensor->data = pith__arena_alloc64(source->arena, tensor->bytes);
    if (!tensor->data) return pith__fail_memory(source->err, tensor->bytes);
    return copy_typed(tensor, t, field, source);
}

/* Which of the forms the tensor has. Empty raw_data counts as absent if the shape has elements:
 * some writers set the field and fill the typed one. */
static pith_status tensor_read_decode(pith_tensor *tensor, const proto *t,
                                      pith__onnx_source *source) {
    char shape[128];
    if (t->segmented)
        return pith__fail(source->err, PITH_ERR_UNSUPPORTED, "segmented tensors are not supported");
    if (t->dtype <= 0 || t->dtype >= PITH_DTYPE_COUNT)
        return pith__fail(source->err, PITH_ERR_UNSUPPORTED, "data type %lld is not supported",
                          (long long)t->dtype);
    *tensor = (pith_tensor){ .dtype = (int32_t)t->dtype, .rank = t->rank };
    memcpy(tensor->dims, t->dims, sizeof tensor->dims);
    if (!pith__dtype_bytes(tensor->dtype, pith__dims_count(t->dims, t->rank), &tensor->bytes)) {
        return pith__fail(source->err, PITH_ERR_FORMAT, "impossible shape %s",
                          pith__dims_text(t->dims, t->rank, shape, sizeof shape));
    }
    if (t->external) return use_external(tensor, t, source);
    if (!t->has_raw || (!t->raw.size && tensor->bytes)) return use_typed(tensor, t, source);
    if (tensor->dtype == PITH_STRING && t->raw.size)
        return pith__fail(source->err, PITH_ERR_FORMAT, "strings must not be in raw_data");
    if (t->raw.size != tensor->bytes) {
        return pith__fail(source->err, PITH_ERR_FORMAT,
                          "has %zu bytes, but shape %s of %s needs %zu", t->raw.size,
                          pith__dims_text(t->dims, t->rank, shape, sizeof shape),
                          pith__dtype_name(tensor->dtype), tensor->bytes);
    }
    return use_bytes(tensor, t->raw, source);
}

/* *tensor is left alone after an error, but *name is set if it was read: messages of callers use
 * it. */
pith_status pith__onnx_decode_tensor(pith_tensor *tensor, pith_str *name, pith_str bytes,
                                     pith__onnx_source *source) {
    proto t;
    pith_tensor decoded;
    pith_status status = take_apart(&t, bytes, name, source);
    if (!status) status = tensor_read_decode(&decoded, &t, source);
    if (status)
        return pith__fail_at(source->err, status,
                             "tensor '" PITH_STR_FMT "': ", PITH_STR_ARG(t.name));
    *tensor = decoded;
    return PITH_OK;
}
