/* dtype.c - the table of element types, by number.
 *
 * Numbers are those of ONNX, so a model's number is an index; every question about a type is
 * answered from the table, and an unknown number is row 0. Sizes pass checked arithmetic. The sizes
 * of an empty shape are multiplied without its zeros, since its strides must fit too. */
#include "base/dtype.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"

typedef enum { OTHER, FLOAT, INT } kind;

static const struct {
    const char *name;
    int bits;
    kind kind;
} types[PITH_DTYPE_COUNT] = {
    [PITH_UNDEFINED] = { "unknown", 0, OTHER },
    [PITH_F32] = { "float32", 32, FLOAT },
    [PITH_U8] = { "uint8", 8, INT },
    [PITH_I8] = { "int8", 8, INT },
    [PITH_U16] = { "uint16", 16, INT },
    [PITH_I16] = { "int16", 16, INT },
    [PITH_I32] = { "int32", 32, INT },
    [PITH_I64] = { "int64", 64, INT },
    [PITH_STRING] = { "string", 8 * (int)sizeof(pith_str), OTHER },
    [PITH_BOOL] = { "bool", 8, OTHER },
    [PITH_F16] = { "float16", 16, FLOAT },
    [PITH_F64] = { "float64", 64, FLOAT },
    [PITH_U32] = { "uint32", 32, INT },
    [PITH_U64] = { "uint64", 64, INT },
    [PITH_C64] = { "complex64", 64, OTHER },
    [PITH_C128] = { "complex128", 128, OTHER },
    [PITH_BF16] = { "bfloat16", 16, FLOAT },
    [PITH_F8E4M3FN] = { "float8_e4m3fn", 8, FLOAT },
    [PITH_F8E4M3FNUZ] = { "float8_e4m3fnuz", 8, FLOAT },
    [PITH_F8E5M2] = { "float8_e5m2", 8, FLOAT },
    [PITH_F8E5M2FNUZ] = { "float8_e5m2fnuz", 8, FLOAT },
    [PITH_U4] = { "uint4", 4, INT },
    [PITH_I4] = { "int4", 4, INT },
    [PITH_F4E2M1] = { "float4_e2m1fn", 4, FLOAT },
    [PITH_F8E8M0] = { "float8_e8m0fnu", 8, FLOAT },
    [PITH_U2] = { "uint2", 2, INT },
    [PITH_I2] = { "int2", 2, INT },
};

static int dtype_known(int dtype) {
    return dtype > 0 && dtype < PITH_DTYPE_COUNT ? dtype : PITH_UNDEFINED;
}

int pith__dtype_bits(int dtype) { return types[dtype_known(dtype)].bits; }

const char *pith__dtype_name(int dtype) {
    if (dtype == PITH_SEQUENCE) return "sequence";
    if (dtype == PITH_NONE) return "none";
    if (dtype == PITH_MAP_I64) return "map(int64, float32)";
    if (dtype == PITH_MAP_STRING) return "map(string, float32)";
    return types[dtype_known(dtype)].name;
}

const char *pith__dtype_short_name(int dtype) {
    static const char *const names[PITH_DTYPE_COUNT] = {
        [PITH_F32] = "f32", [PITH_F64] = "f64", [PITH_F16] = "f16", [PITH_BF16] = "bf16",
        [PITH_U8] = "u8",   [PITH_I8] = "i8",   [PITH_U16] = "u16", [PITH_I16] = "i16",
        [PITH_U32] = "u32", [PITH_I32] = "i32", [PITH_U64] = "u64", [PITH_I64] = "i64",
    };
    return dtype > PITH_UNDEFINED && dtype < PITH_DTYPE_COUNT && names[dtype]
               ? names[dtype]
               : pith__dtype_name(dtype);
}

int pith__dtype_find(const char *name) {
    for (int dtype = PITH_UNDEFINED + 1; dtype <= PITH_MAP_STRING; dtype++)
        if (!strcmp(pith__dtype_name(dtype), name) && strcmp(name, types[PITH_UNDEFINED].name))
            return dtype;
    return PITH_UNDEFINED;
}

bool pith__dtype_is_plain(int dtype) {
    return pith__dtype_bits(dtype) >= 8 && dtype != PITH_STRING;
}

bool pith__dtype_is_float(int dtype) { return types[dtype_known(dtype)].kind == FLOAT; }

size_t pith__dtype_alignment(int dtype) {
    const size_t bytes = (size_t)pith__dtype_bits(dtype) / 8;
    if (bytes > 8) return 8;
    return bytes ? bytes : 1;
}

bool pith__dtype_is_int(int dtype) { return types[dtype_known(dtype)].kind == INT; }

/* Bytes of the widest element, rounded up generously. A tensor's strides in bytes must fit int64,
 * even if it has no elements, so counts are limited with this size. */
enum { WIDEST = 64 };

int64_t pith__dims_count(const int64_t *dims, int rank) {
    int64_t count = 1;
    bool zero = false, overflow = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return -1;
        if (dims[i] == 0)
            zero = true;
        else if (pith__mul_overflows(count, dims[i], &count))
            overflow = true;
    }
    if (zero && count > INT64_MAX / WIDEST) overflow = true;
    if (overflow) return -1;
    return zero ? 0 : count;
}

bool pith__dtype_bytes(int dtype, int64_t count, size_t *bytes) {
    int bits = pith__dtype_bits(dtype);
    if (count < 0 || !bits) return false;
    if (bits >= 8) return !pith__mul_overflows((uint64_t)count, (unsigned)bits / 8, bytes);
    int64_t per_byte = 8 / bits;
    *bytes = (size_t)(count / per_byte + (count % per_byte != 0));
    return true;
}

bool pith__dims_parse(const char *text, int64_t *dims, int *rank) {
    *rank = 0;
    while (*text) {
        int64_t n = 0;
        const char *begin = text;
        for (; *text >= '0' && *text <= '9'; text++) {
            n = n * 10 + (*text - '0');
            if (n > INT32_MAX) return false;
        }
        if (text == begin || *rank == PITH_MAX_RANK || (*text && *text != 'x')) return false;
        dims[(*rank)++] = n;
        if (*text == 'x' && !*++text) return false;
    }
    return true;
}

pith_status pith__dims_take(int64_t *dims, int32_t *rank, const char *text, pith_error *err) {
    int64_t parsed[PITH_MAX_RANK] = { 0 };
    int count;
    if (!pith__dims_parse(text, parsed, &count))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "'" PITH_STR_FMT
            "' is not a shape; write at most %d sizes with an x between them, as in 1x3x480x640",
            PITH_STR_ARG(pith__str_of(text)), PITH_MAX_RANK);
    memcpy(dims, parsed, sizeof parsed);
    *rank = count;
    return PITH_OK;
}

pith_status pith__dims_bytes(size_t *bytes, int dtype, const int64_t *dims, int rank,
                             pith_error *err) {
    char shape[200];
    size_t size;
    if (!pith__dtype_bits(dtype))
        return pith__fail(err, PITH_ERR_ARGUMENT, "elements of dtype %d (%s) have no size", dtype,
                          pith__dtype_name(dtype));
    if (!pith__dtype_bytes(dtype, pith__dims_count(dims, rank), &size))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the shape %s has a negative size or too many elements",
                          pith__dims_text(dims, rank, shape, sizeof shape));
    *bytes = size;
    return PITH_OK;
}

const char *pith__dims_text(const int64_t *dims, int rank, char *buffer, size_t size) {
    pith__text_out out = pith__text_begin(buffer, size);
    pith__text_put(&out, "[");
    for (int i = 0; i < rank; i++) {
        const char *comma = i ? ", " : "";
        if (dims[i] == -1)
            pith__text_put(&out, "%s?", comma);
        else
            pith__text_put(&out, "%s%lld", comma, (long long)dims[i]);
    }
    pith__text_put(&out, "]");
    return buffer;
}
