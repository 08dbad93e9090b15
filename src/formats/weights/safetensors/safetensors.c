/* safetensors.c - reads the header once and checks every offset against the file and the shape. */
#include "formats/weights/safetensors/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/formats/json.h"
#include "base/str.h"

/* The largest header, in bytes: the limit of the reference implementation. */
#define HEADER_MAX ((uint64_t)100 << 20)

static const struct {
    const char *name;
    int dtype;
} dtypes[] = {
    { "F32", PITH_F32 },          { "F16", PITH_F16 },        { "BF16", PITH_BF16 },
    { "F64", PITH_F64 },          { "I64", PITH_I64 },        { "I32", PITH_I32 },
    { "I16", PITH_I16 },          { "I8", PITH_I8 },          { "U64", PITH_U64 },
    { "U32", PITH_U32 },          { "U16", PITH_U16 },        { "U8", PITH_U8 },
    { "F8_E4M3", PITH_F8E4M3FN }, { "F8_E5M2", PITH_F8E5M2 }, { "BOOL", PITH_BOOL },
    { "C64", PITH_C64 },
};

static void safetensors_read_shape(pith__json *j, pith_tensor *tensor) {
    for (pith__json_array(j); pith__json_next_item(j);) {
        int64_t dim = pith__json_int(j);
        if (tensor->rank == PITH_MAX_RANK || dim < 0) {
            pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                            "a shape with a negative size or more than %d sizes", PITH_MAX_RANK);
            return;
        }
        tensor->dims[tensor->rank++] = dim;
    }
}

/* Where a tensor's data lies after the header. */
typedef struct span {
    uint64_t begin, end;
    pith_str name;
} span;

static int compare_spans(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The tensors must fill the data without holes and overlaps, as the reference implementation wants
 * it. */
static pith_status check_spans(span *spans, size_t count, uint64_t data_size, const char *file_name,
                               pith_error *err) {
    uint64_t at = 0;
    if (count) qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count; at = spans[i++].end)
        if (spans[i].begin != at)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: the data of '" PITH_STR_FMT
                              "' begins at byte %llu, where byte %llu is next: tensors "
                              "overlap or leave a hole; fetch the file again",
                              file_name, PITH_STR_ARG(spans[i].name),
                              (unsigned long long)spans[i].begin, (unsigned long long)at);
    if (at == data_size) return PITH_OK;
    return pith__fail(err, PITH_ERR_FORMAT,
                      "%s: %llu bytes belong to no tensor; fetch the file again", file_name,
                      (unsigned long long)(data_size - at));
}

/* Text about the file. */
static void read_metadata(pith__json *j) {
    pith_str key;
    if (pith__json_null(j)) return;
    for (pith__json_object(j); pith__json_next_key(j, &key);) pith__json_string(j);
}

/* One entry of the header; false after a fault. */
static bool read_entry(pith__json *j, pith_tensor *tensor, span *place, uint64_t data_size) {
    pith_str key, dtype = { "", 0 };
    int64_t offsets[2] = { -1, -1 };
    *tensor = (pith_tensor){ 0 };
    for (pith__json_object(j); pith__json_next_key(j, &key);) {
        if (pith__str_is(key, "dtype")) {
            dtype = pith__json_string(j);
        } else if (pith__str_is(key, "shape")) {
            tensor->rank = 0;
            safetensors_read_shape(j, tensor);
        } else if (pith__str_is(key, "data_offsets")) {
            size_t n = 0;
            for (pith__json_array(j); pith__json_next_item(j); n++) {
                int64_t offset = pith__json_int(j);
                if (n < 2) offsets[n] = offset;
            }
            if (n != 2) pith__json_fail(j, PITH_ERR_FORMAT, "%zu offsets instead of 2", n);
        } else {
            pith__json_skip(j);
        }
    }
    if (j->failed) return false;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (pith__str_is(dtype, dtypes[i].name)) tensor->dtype = dtypes[i].dtype;
    if (!tensor->dtype) {
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "dtype \"" PITH_STR_FMT "\" is not supported",
                        PITH_STR_ARG(dtype));
    } else if (!pith__dtype_bytes(tensor->dtype, pith__dims_count(tensor->dims, tensor->rank),
                                  &tensor->bytes)) {
        pith__json_fail(j, PITH_ERR_FORMAT, "the shape is too large");
    } else if (offsets[0] < 0 || offsets[1] < offsets[0] || (uint64_t)offsets[1] > data_size) {
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "data_offsets reach beyond the file, which may be cut short");
    } else if ((uint64_t)(offsets[1] - offsets[0]) != tensor->bytes) {
        char shape[128];
        pith__json_fail(j, PITH_ERR_FORMAT, "has %lld bytes, but shape %s of %s needs %zu",
                        (long long)(offsets[1] - offsets[0]),
                        pith__dims_text(tensor->dims, tensor->rank, shape, sizeof shape),
                        pith__dtype_name(tensor->dtype), tensor->bytes);
    }
    place->begin = (uint64_t)offsets[0];
    place->end = (uint64_t)offsets[1];
    return !j->failed;
}

static pith_status safetensors_add(pith__weights *w, pith_str name, const pith_tensor *tensor,
                                   pith__json *j) {
    pith_error fault = PITH_ERROR_INIT;
    pith_status status = pith__weights_put(w, name, tensor, &fault);
    return status ? pith__json_fail(j, status, "%s", fault.message) : PITH_OK;
}

/* The format: an 8-byte length, a JSON object of that size, and the data, which must be covered by
 * the tensors without a gap. Source: the README of huggingface/safetensors. Every offset is
 * compared with the file and with the shape before a tensor points there; the metadata is read
 * over. */
pith_status pith__safetensors_read(pith__weights *weights, pith_str bytes, const char *file_name,
                                   pith_error *err) {
    uint64_t header = 0;
    if (bytes.size >= sizeof header) memcpy(&header, bytes.data, sizeof header);
    if (bytes.size < sizeof header || header > HEADER_MAX || header > bytes.size - sizeof header) {
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "%s: the header is damaged: this is not a safetensors file, or it is cut short",
            file_name);
    }
    const char *data = bytes.data + sizeof header + header;
    uint64_t data_size = bytes.size - sizeof header - header;
    pith_error local = PITH_ERROR_INIT;
    pith__json j;
    pith_str name;
    pith__json_init(&j, (pith_str){ bytes.data + sizeof header, (size_t)header }, file_name,
                    weights->arena, err ? err : &local);
    span *spans = NULL;
    size_t count = 0, capacity = 0;
    for (pith__json_object(&j); pith__json_next_key(&j, &name);) {
        pith_tensor tensor;
        if (pith__str_is(name, "__metadata__")) {
            read_metadata(&j);
            continue;
        }
        if (!pith__arena_grow(weights->arena, (void **)&spans, count, &capacity, sizeof *spans))
            return pith__fail_memory(err, count * sizeof *spans);
        if (!read_entry(&j, &tensor, &spans[count], data_size)) break;
        spans[count].name = name;
        PITH_TRY(pith__weights_place(&tensor, data + spans[count].begin, weights->arena, err));
        PITH_TRY(safetensors_add(weights, name, &tensor, &j));
        count++;
    }
    pith__json_finish(&j);
    return j.failed ? j.err->code : check_spans(spans, count, data_size, file_name, err);
}
