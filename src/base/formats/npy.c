/* npy.c - see npy.h. A file is hostile: its header is read for exactly the three keys that NumPy
 * writes, and never beyond its length. */
#include "base/formats/npy.h"

#include <string.h>

#include "base/str.h"

enum { NPY_HEADER_MOST = 65536 };

static const struct {
    uint8_t dtype;
    bool raw;
    char type[6];
} npy_types[] = {
    { PITH_F32, false, "<f4" },       { PITH_F64, false, "<f8" },
    { PITH_F16, false, "<f2" },       { PITH_I8, false, "|i1" },
    { PITH_I16, false, "<i2" },       { PITH_I32, false, "<i4" },
    { PITH_I64, false, "<i8" },       { PITH_U8, false, "|u1" },
    { PITH_U16, false, "<u2" },       { PITH_U32, false, "<u4" },
    { PITH_U64, false, "<u8" },       { PITH_BOOL, false, "|b1" },
    { PITH_C64, false, "<c8" },       { PITH_C128, false, "<c16" },
    { PITH_BF16, true, "<u2" },       { PITH_F8E4M3FN, true, "|u1" },
    { PITH_F8E4M3FNUZ, true, "|u1" }, { PITH_F8E5M2, true, "|u1" },
    { PITH_F8E5M2FNUZ, true, "|u1" }, { PITH_F8E8M0, true, "|u1" },
    { PITH_U4, false, "|u1" },        { PITH_I4, false, "|i1" },
    { PITH_U2, false, "|u1" },        { PITH_I2, false, "|i1" },
    { PITH_F4E2M1, true, "|u1" },
};
enum { NPY_TYPES = sizeof npy_types / sizeof npy_types[0] };

int pith__npy_dtype(const char *type) {
    for (size_t i = 0; i < NPY_TYPES; i++)
        if (!strcmp(npy_types[i].type, type)) return npy_types[i].dtype;
    return PITH_UNDEFINED;
}

const char *pith__npy_type(int dtype, bool *raw) {
    for (size_t i = 0; i < NPY_TYPES; i++)
        if (npy_types[i].dtype == dtype) {
            *raw = npy_types[i].raw;
            return npy_types[i].type;
        }
    return NULL;
}

static void npy_skip(pith_str *s, const char *bytes) {
    while (s->size && memchr(bytes, *s->data, strlen(bytes))) s->data++, s->size--;
}

static bool npy_begins(pith_str s, const char *text) {
    const size_t n = strlen(text);
    return s.size >= n && !memcmp(s.data, text, n);
}

/* What follows a key, which is given with its quotes and the colon. */
static bool npy_value(pith_str *rest, pith_str header, const char *key) {
    const char *at = memmem(header.data, header.size, key, strlen(key));
    if (!at) return false;
    at += strlen(key);
    *rest = (pith_str){ at, header.size - (size_t)(at - header.data) };
    npy_skip(rest, " ");
    return true;
}

static bool npy_shape(pith__npy *npy, pith_str s) {
    if (!npy_begins(s, "(")) return false;
    s.data++, s.size--;
    for (npy->rank = 0;;) {
        int64_t size = 0;
        npy_skip(&s, " ,");
        if (npy_begins(s, ")")) return true;
        const size_t before = s.size;
        for (; s.size && *s.data >= '0' && *s.data <= '9'; s.data++, s.size--)
            if (__builtin_mul_overflow(size, 10, &size) ||
                __builtin_add_overflow(size, *s.data - '0', &size))
                size = INT64_MAX;
        if (s.size == before || npy->rank == PITH_MAX_RANK) return false;
        npy->dims[npy->rank++] = size;
    }
}

static bool npy_header(pith__npy *npy, pith_str header) {
    pith_str type, order, shape;
    if (!npy_value(&type, header, "'descr':") || !npy_value(&order, header, "'fortran_order':") ||
        !npy_value(&shape, header, "'shape':") || !npy_begins(type, "'"))
        return false;
    type.data++, type.size--;
    for (size_t i = 0; i < type.size && i < sizeof npy->type - 1 && type.data[i] != '\''; i++)
        npy->type[i] = type.data[i];
    npy->fortran = npy_begins(order, "True");
    return npy_shape(npy, shape) && (npy->fortran || npy_begins(order, "False"));
}

bool pith__npy_is(pith_str file) { return npy_begins(file, "\x93NUMPY"); }

pith__npy_fault pith__npy_read(pith__npy *npy, pith_str file) {
    const unsigned char *p = (const unsigned char *)file.data;
    *npy = (pith__npy){ .version = 0 };
    if (file.size < 12 || !pith__npy_is(file)) return PITH_NPY_NONE;
    npy->version = p[6];
    const size_t prefix = npy->version == 1 ? 10 : 12;
    size_t length = p[8] | (size_t)p[9] << 8;
    if (prefix == 12) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > file.size - prefix || length > NPY_HEADER_MOST) return PITH_NPY_CUT;
    npy->contents = (pith_str){ file.data + prefix + length, file.size - prefix - length };
    return npy_header(npy, (pith_str){ file.data + prefix, length }) ? PITH_NPY_OK
                                                                     : PITH_NPY_BROKEN;
}
