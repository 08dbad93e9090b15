/* npy.c - reading and writing .npy files.
 *
 * One table pairs NumPy's type strings with dtypes. A file is hostile: its header is parsed for
 * exactly the three keys that NumPy writes, and every size is checked against the bytes that are
 * there. */
#include "cli/arrays/npy.h"
#include "cli/base/cut_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode/utf8.h"

static const struct {
    int dtype;
    const char *descr;
    bool raw; /* NumPy has no such type: the bits are written as unsigned integers */
} types[] = {
    { PITH_F32, "<f4", false },       { PITH_F64, "<f8", false },
    { PITH_F16, "<f2", false },       { PITH_I8, "|i1", false },
    { PITH_I16, "<i2", false },       { PITH_I32, "<i4", false },
    { PITH_I64, "<i8", false },       { PITH_U8, "|u1", false },
    { PITH_U16, "<u2", false },       { PITH_U32, "<u4", false },
    { PITH_U64, "<u8", false },       { PITH_BOOL, "|b1", false },
    { PITH_C64, "<c8", false },       { PITH_C128, "<c16", false },
    { PITH_BF16, "<u2", true },       { PITH_F8E4M3FN, "|u1", true },
    { PITH_F8E4M3FNUZ, "|u1", true }, { PITH_F8E5M2, "|u1", true },
    { PITH_F8E5M2FNUZ, "|u1", true }, { PITH_F8E8M0, "|u1", true },
    { PITH_U4, "|u1", false },        { PITH_I4, "|i1", false },
    { PITH_U2, "|u1", false },        { PITH_I2, "|i1", false },
    { PITH_F4E2M1, "|u1", true },
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

/* ---- reading ---- */

/* The text after 'key': in the header dictionary, or NULL. */
static const char *after_key(const char *header, const char *key) {
    char quoted[40];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static bool parse_shape(const char *p, pith_tensor *t) {
    if (*p++ != '(') return false;
    for (t->rank = 0;;) {
        p += strspn(p, " ,");
        if (*p == ')') return true;
        char *end;
        long long n = strtoll(p, &end, 10);
        if (end == p || n < 0 || t->rank == PITH_MAX_RANK) return false;
        t->dims[t->rank++] = n;
        p = end;
    }
}

/* U and S arrays: fixed width, padded with NULs; width in elements of unit bytes. */
static bool parse_strings(pith_tensor *t, const unsigned char *p, size_t count, size_t width,
                          size_t unit) {
    size_t items, text, per, total;
    if (__builtin_mul_overflow(count, sizeof(pith_str), &items) ||
        __builtin_mul_overflow(width, 4, &per) || __builtin_mul_overflow(count, per, &text) ||
        __builtin_add_overflow(items, text, &total))
        return false;
    pith_str *strings = grow(NULL, total);
    char *out = (char *)(strings + count);
    for (size_t i = 0; i < count; i++, p += width * unit) {
        size_t length = width, size = 0;
        if (unit == 1) {
            while (length && !p[length - 1]) length--;
            memcpy(out, p, length);
            size = length;
        } else {
            uint32_t c;
            for (size_t k = 0; k < width; k++) {
                memcpy(&c, p + 4 * k, 4);
                size += pith__utf8_put(out + size, pith__utf8_has(c) ? c : 0xFFFD);
            }
            while (size && !out[size - 1]) size--;
        }
        strings[i] = (pith_str){ out, size };
        out += per;
    }
    t->data = strings;
    t->dtype = PITH_STRING;
    t->bytes = items;
    return true;
}

static bool refuse(char *message, size_t size, const char *why) {
    cut_print(message, size, "%s", why);
    return false;
}

/* What a header says: the tensor without data or dtype, NumPy's name of its type, and the bytes
 * that follow. */
typedef struct npy_head {
    pith_tensor tensor;
    char type[16];
    const unsigned char *contents;
    size_t have;
} npy_head;

static bool parse_head(npy_head *head, const void *data, size_t size, char *message,
                       size_t message_size) {
    const unsigned char *p = data;
    pith_tensor t = { 0 };
    if (size < 12 || memcmp(p, "\x93NUMPY", 6))
        return refuse(message, message_size, "not a .npy file; write one with numpy.save");
    size_t prefix = p[6] == 1 ? 10 : 12;
    size_t length = p[8] | (size_t)p[9] << 8;
    if (prefix == 12) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > size - prefix || length > 65536)
        return refuse(message, message_size, "the header is cut off or too long");
    char *header = grow(NULL, length + 1);
    memcpy(header, p + prefix, length);
    header[length] = 0;
    const char *descr = after_key(header, "descr"), *order = after_key(header, "fortran_order"),
               *shape = after_key(header, "shape");
    bool known = descr && order && shape && descr[0] == '\'' && parse_shape(shape, &t);
    bool fortran = known && !strncmp(order, "True", 4) && t.rank > 1;
    *head = (npy_head){ .contents = p + prefix + length, .have = size - prefix - length };
    if (known)
        snprintf(head->type, sizeof head->type, "%.*s", (int)strcspn(descr + 1, "'"), descr + 1);
    free(header);
    if (!known)
        return refuse(message, message_size,
                      "the header cannot be read; structured types are not supported");
    if (fortran)
        return refuse(message, message_size,
                      "the array is in Fortran order: save numpy.ascontiguousarray(x) instead");

    if (pith_shape_count(t.dims, t.rank) < 0)
        return refuse(message, message_size, "the shape is too large");
    head->tensor = t;
    return true;
}

/* Bytes of a character of strings; 0: the elements are none. */
static size_t string_unit(const npy_head *head) {
    if (head->type[0] != '<' && head->type[0] != '|') return 0;
    return head->type[1] == 'U' ? 4 : head->type[1] == 'S' ? 1 : 0;
}

/* Finds the dtype of the numbers, and data where it is. */
static bool view_numbers(npy_head *head, char *message, size_t message_size) {
    pith_tensor *t = &head->tensor;
    for (size_t i = 0; i < TYPE_COUNT && t->dtype == PITH_UNDEFINED; i++)
        if (!strcmp(types[i].descr, head->type)) t->dtype = types[i].dtype;
    if (t->dtype == PITH_UNDEFINED) {
        const char *why = head->type[0] == '>'
                              ? "is big-endian: save x.astype(x.dtype.newbyteorder('<'))"
                          : !strcmp(head->type, "|O")
                              ? "means Python objects: save an array of numbers or strings"
                              : "is not supported";
        cut_print(message, message_size, "the element type '%s' %s", head->type, why);
        return false;
    }
    if (pith_shape_bytes(&t->bytes, t->dtype, t->dims, t->rank, NULL) || t->bytes > head->have)
        return refuse(message, message_size, "the contents are shorter than the shape");
    t->data = (void *)(uintptr_t)head->contents;
    return true;
}

bool npy_view(pith_tensor *tensor, const void *data, size_t size, char *message,
              size_t message_size) {
    npy_head head;
    if (!parse_head(&head, data, size, message, message_size)) return false;
    if (string_unit(&head))
        return refuse(message, message_size, "the elements are strings, not numbers");
    if (!view_numbers(&head, message, message_size)) return false;
    *tensor = head.tensor;
    return true;
}

bool npy_parse(pith_tensor *tensor, const void *data, size_t size, char *message,
               size_t message_size) {
    npy_head head;
    if (!parse_head(&head, data, size, message, message_size)) return false;
    pith_tensor *t = &head.tensor;
    const size_t unit = string_unit(&head), count = (size_t)pith_shape_count(t->dims, t->rank);
    if (unit) {
        size_t width = strtoul(head.type + 2, NULL, 10), need;
        if (!width && count)
            return refuse(message, message_size, "strings of width 0 are not supported");
        if (__builtin_mul_overflow(width, unit, &need) ||
            __builtin_mul_overflow(need, count, &need) || need > head.have)
            return refuse(message, message_size, "the contents are shorter than the shape");
        if (!parse_strings(t, head.contents, count, width, unit))
            return refuse(message, message_size, "the shape is too large");
    } else {
        if (!view_numbers(&head, message, message_size)) return false;
        t->data = grow(NULL, t->bytes);
        memcpy(t->data, head.contents, t->bytes);
    }
    *tensor = *t;
    return true;
}

void npy_free(pith_tensor *tensor) {
    free(tensor->data);
    *tensor = (pith_tensor){ 0 };
}

/* ---- writing ---- */

static void write_header(bytes *out, const char *descr, int rank, const int64_t *dims,
                         int rows_width) {
    bytes header = { NULL, 0, 0 };
    size_t digits = 0;
    bytes_print(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++) {
        size_t before = header.size;
        bytes_print(&header, "%" PRId64 "%s", dims[i], rank == 1 ? "," : i + 1 < rank ? ", " : "");
        if (i == 0) digits = header.size - before;
    }
    bytes_print(&header, "), }");
    while (rows_width > 0 && digits < (size_t)rows_width + 2) bytes_add(&header, " ", 1), digits++;
    while ((10 + header.size + 1) % 64) bytes_add(&header, " ", 1);
    bytes_add(&header, "\n", 1);
    unsigned char start[10] = { 0x93,
                                'N',
                                'U',
                                'M',
                                'P',
                                'Y',
                                1,
                                0,
                                (unsigned char)(header.size & 0xFF),
                                (unsigned char)(header.size >> 8) };
    bytes_add(out, start, sizeof start);
    bytes_add(out, header.data, header.size);
    free(header.data);
}

bool npy_header(bytes *out, int32_t dtype, int rank, const int64_t *dims, int rows_width,
                bool *raw) {
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].dtype == dtype) {
            if (raw) *raw = types[i].raw;
            write_header(out, types[i].descr, rank, dims, rows_width);
            return true;
        }
    return false;
}

static void write_strings(bytes *out, const pith_tensor *t, size_t count) {
    const pith_str *strings = t->data;
    size_t width = 1;
    for (size_t i = 0; i < count; i++) {
        size_t n = 0;
        for (size_t k = 0; k < strings[i].size; k++)
            n += ((unsigned char)strings[i].data[k] & 0xC0) != 0x80;
        if (n > width) width = n;
    }
    char descr[32];
    snprintf(descr, sizeof descr, "<U%zu", width);
    write_header(out, descr, t->rank, t->dims, 0);
    for (size_t i = 0; i < count; i++) {
        const char *p = strings[i].data, *end = p + strings[i].size, *valid = p;
        for (size_t k = 0; k < width; k++) {
            uint32_t c = 0;
            if (p == valid && p < end) valid += pith__utf8_valid_prefix(p, (size_t)(end - p));
            if (p < valid)
                c = pith__utf8_next(&p);
            else if (p < end) /* a byte of no character */
                c = 0xFFFD, valid = ++p;
            bytes_add(out, &c, 4);
        }
    }
}

bool npy_write(bytes *out, const pith_tensor *t, bool *raw) {
    *raw = false;
    if (t->rank < 0 || t->rank > PITH_MAX_RANK) return false;
    size_t count = (size_t)pith_shape_count(t->dims, t->rank);
    if (t->dtype == PITH_STRING) {
        write_strings(out, t, count);
        return true;
    }
    if (!npy_header(out, t->dtype, t->rank, t->dims, 0, raw)) return false;
    if (pith_element_bits(t->dtype) >= 8) {
        bytes_add(out, t->data, t->bytes);
        return true;
    }
    pith_tensor packed = *t;
    if (packed.dtype == PITH_F4E2M1) packed.dtype = PITH_U4; /* its bits */
    bool is_signed = t->dtype == PITH_I4 || t->dtype == PITH_I2;
    bytes_reserve(out, count);
    if (pith_tensor_convert(out->data + out->size, is_signed ? PITH_I8 : PITH_U8, &packed, 0, count,
                            NULL))
        return false;
    out->size += count;
    return true;
}
