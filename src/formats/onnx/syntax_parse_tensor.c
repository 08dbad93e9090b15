/* syntax_parse_tensor.c - tensors of ONNX's text syntax. Numbers go to raw_data, which is smaller
 * than the typed fields and can be used where it lies. */
#include <string.h>

#include "base/dtype.h"
#include "formats/onnx/syntax_parser.h"
#include "formats/onnx/syntax_words.h"

/* Field numbers. */
enum { DIMS = 1, DTYPE = 2, STRING_DATA = 6, NAME = 8, RAW_DATA = 9, EXTERNAL = 13, LOCATION = 14 };

/* Integers, also those that stand for the bits of a float. Signed ones are taken for any type below
 * 64 bits, as onnx's parser does. */
static void tensor_integer(pith__syntax_parser *t, const pith__syntax_type *type,
                           pith__syntax_element e) {
    pith__syntax_scan *s = &t->scan;
    pith__scan_peek(s);
    const char *at = s->at;
    uint64_t bits;
    bool good = true;
    if (e.bytes == 8 && e.kind == PITH_SYNTAX_ELEMENT_UINT) {
        bits = pith__scan_uint(s);
    } else {
        const int64_t value = pith__scan_int(s);
        const int width = 8 * e.bytes;
        bits = (uint64_t)value;
        if (width < 64)
            good = value >= -((int64_t)1 << (width - 1)) &&
                   value < (int64_t)1 << (width - (e.kind == PITH_SYNTAX_ELEMENT_INT));
    }
    if (!good && !s->failed) {
        s->at = at;
        pith__scan_fail(s, PITH_ERR_FORMAT, "this number is beyond %s",
                        pith__syntax_dtype_name(type->dtype));
    }
    pith__wire_build_raw(t->out, &bits, e.bytes);
}

static void tensor_float(pith__syntax_parser *t, pith__syntax_element e) {
    if (e.bytes == 4) {
        const float x = pith__scan_f32(&t->scan);
        pith__wire_build_raw(t->out, &x, sizeof x);
    } else {
        const double x = pith__scan_f64(&t->scan);
        pith__wire_build_raw(t->out, &x, sizeof x);
    }
}

/* The values behind '{'. Returns their number. */
static uint64_t tensor_values(pith__syntax_parser *t, const pith__syntax_type *type,
                              pith__syntax_element e) {
    pith__syntax_scan *s = &t->scan;
    uint64_t count = 0;
    if (pith__scan_take(s, '}')) return 0;
    do {
        if (e.kind == PITH_SYNTAX_ELEMENT_STRING)
            pith__wire_build_bytes(t->out, STRING_DATA, pith__scan_string(s, "a string"));
        else if (e.kind == PITH_SYNTAX_ELEMENT_FLOAT)
            tensor_float(t, e);
        else
            tensor_integer(t, type, e);
        if (++count % 1024 == 0) pith__scan_look(s);
    } while (pith__scan_take(s, ',') && !s->failed && !t->out->failed);
    pith__scan_need(s, "}");
    return count;
}

static void tensor_data(pith__syntax_parser *t, const pith__syntax_type *type) {
    const pith__syntax_element e = pith__syntax_element_of(type->dtype);
    const char *at = t->scan.at;
    size_t bytes, place = 0;
    if (!pith__dtype_bytes(type->dtype, pith__dims_count(type->dims, type->rank), &bytes)) {
        pith__scan_fail(&t->scan, PITH_ERR_FORMAT, "impossible shape of a tensor");
        return;
    }
    if (e.kind != PITH_SYNTAX_ELEMENT_STRING) place = pith__wire_build_open(t->out, RAW_DATA);
    const uint64_t count = tensor_values(t, type, e);
    if (e.kind != PITH_SYNTAX_ELEMENT_STRING) pith__wire_build_close(t->out, place);
    if (t->scan.failed || count == bytes / e.bytes) return;
    t->scan.at = at;
    pith__scan_fail(&t->scan, PITH_ERR_FORMAT,
                    "the tensor has %llu values, but its shape needs %llu",
                    (unsigned long long)count, (unsigned long long)(bytes / e.bytes));
}

void pith__syntax_tensor(pith__syntax_parser *t, int number, const pith__syntax_type *type,
                         pith_str name) {
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, number);
    if (!type->dtype || !type->fixed)
        pith__scan_fail(s, PITH_ERR_FORMAT,
                        "a tensor with values needs a type with all sizes, such as float[2,3]");
    else if (type->rank > PITH_MAX_RANK)
        pith__scan_fail(s, PITH_ERR_UNSUPPORTED, "a tensor of more than %d dimensions",
                        PITH_MAX_RANK);
    if (s->failed) return;
    for (int i = 0; i < type->rank; i++)
        pith__wire_build_varint(t->out, DIMS, (uint64_t)type->dims[i]);
    pith__wire_build_varint(t->out, DTYPE, (uint64_t)type->dtype);
    if (name.size) pith__wire_build_bytes(t->out, NAME, name);
    if (pith__scan_take(s, '[')) {
        pith__syntax_list(t, "]", pith__syntax_pair, EXTERNAL);
        pith__wire_build_varint(t->out, LOCATION, 1);
    } else if (pith__scan_peek(s) == '.') {
        pith__scan_fail(s, PITH_ERR_FORMAT, "'...' stands for values that the printer left out");
    } else {
        pith__scan_need(s, "{");
        tensor_data(t, type);
    }
    pith__wire_build_close(t->out, place);
}
