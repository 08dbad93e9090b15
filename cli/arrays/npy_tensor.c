/* npy_tensor.c - see npy_tensor.h. A file is hostile: every size is checked against the bytes that
 * are there. */
#include "cli/arrays/npy_tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode/utf8.h"

#include "base/formats/npy.h"
#include "base/text_out.h"

/* ---- reading ---- */

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
    pith__text_print(message, size, "%s", why);
    return false;
}

/* Sets the tensor's shape. */
static bool parse_head(pith_tensor *t, pith__npy *head, const void *data, size_t size,
                       char *message, size_t message_size) {
    static const char *const says[] = {
        [PITH_NPY_NONE] = "not a .npy file; write one with numpy.save",
        [PITH_NPY_CUT] = "the header is cut off or too long",
        [PITH_NPY_BROKEN] = "the header cannot be read; structured types are not supported",
    };
    const pith__npy_fault fault = pith__npy_read(head, (pith_str){ data, size });
    if (fault) return refuse(message, message_size, says[fault]);
    if (head->fortran && head->rank > 1)
        return refuse(message, message_size,
                      "the array is in Fortran order: save numpy.ascontiguousarray(x) instead");
    if (pith_shape_count(head->dims, head->rank) < 0)
        return refuse(message, message_size, "the shape is too large");
    *t = (pith_tensor){ .rank = head->rank };
    memcpy(t->dims, head->dims, sizeof head->dims);
    return true;
}

/* Bytes of a character of strings; 0: the elements are none. */
static size_t string_unit(const pith__npy *head) {
    if (head->type[0] != '<' && head->type[0] != '|') return 0;
    if (head->type[1] == 'U') return 4;
    return head->type[1] == 'S' ? 1 : 0;
}

/* Finds the dtype of the numbers, and data where it is. */
static bool view_numbers(pith_tensor *t, const pith__npy *head, char *message,
                         size_t message_size) {
    t->dtype = pith__npy_dtype(head->type);
    if (t->dtype == PITH_UNDEFINED) {
        const char *why = "is not supported";
        if (head->type[0] == '>')
            why = "is big-endian: save x.astype(x.dtype.newbyteorder('<'))";
        else if (!strcmp(head->type, "|O"))
            why = "means Python objects: save an array of numbers or strings";
        pith__text_print(message, message_size, "the element type '%s' %s", head->type, why);
        return false;
    }
    if (pith_shape_bytes(&t->bytes, t->dtype, t->dims, t->rank, NULL) ||
        t->bytes > head->contents.size)
        return refuse(message, message_size, "the contents are shorter than the shape");
    t->data = (void *)(uintptr_t)head->contents.data;
    return true;
}

bool npy_view(pith_tensor *tensor, const void *data, size_t size, char *message,
              size_t message_size) {
    pith__npy head;
    pith_tensor t;
    if (!parse_head(&t, &head, data, size, message, message_size)) return false;
    if (string_unit(&head))
        return refuse(message, message_size, "the elements are strings, not numbers");
    if (!view_numbers(&t, &head, message, message_size)) return false;
    *tensor = t;
    return true;
}

bool npy_parse(pith_tensor *tensor, const void *data, size_t size, char *message,
               size_t message_size) {
    pith__npy head;
    pith_tensor t;
    if (!parse_head(&t, &head, data, size, message, message_size)) return false;
    const size_t unit = string_unit(&head), count = (size_t)pith_shape_count(t.dims, t.rank);
    if (unit) {
        size_t width = strtoul(head.type + 2, NULL, 10), need;
        if (!width && count)
            return refuse(message, message_size, "strings of width 0 are not supported");
        if (__builtin_mul_overflow(width, unit, &need) ||
            __builtin_mul_overflow(need, count, &need) || need > head.contents.size)
            return refuse(message, message_size, "the contents are shorter than the shape");
        if (!parse_strings(&t, (const unsigned char *)head.contents.data, count, width, unit))
            return refuse(message, message_size, "the shape is too large");
    } else {
        if (!view_numbers(&t, &head, message, message_size)) return false;
        t.data = grow(NULL, t.bytes);
        memcpy(t.data, head.contents.data, t.bytes);
    }
    *tensor = t;
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
        const char *comma = i + 1 < rank ? ", " : "";
        bytes_print(&header, "%" PRId64 "%s", dims[i], rank == 1 ? "," : comma);
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
    bool is_raw = false;
    const char *type = pith__npy_type(dtype, &is_raw);
    if (!type) return false;
    if (raw) *raw = is_raw;
    write_header(out, type, rank, dims, rows_width);
    return true;
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
