/* syntax_print_tensor.c - tensors as ONNX's text syntax has them. */
#include <string.h>

#include "base/dtype.h"
#include "formats/onnx/tensor_read.h"
#include "formats/onnx/syntax_printer.h"
#include "formats/onnx/syntax_words.h"

typedef struct tensor_head {
    pith_str name;
    int64_t dtype;
    bool external;
} tensor_head;

static pith_status tensor_read_head(pith__syntax_printer *t, tensor_head *h, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    *h = (tensor_head){ .name = PITH_STR("") };
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_VARINT(2)) h->dtype = (int64_t)f.value;
        if (f.tag == PITH_WIRE_BYTES(8)) h->name = f.bytes;
        if (f.tag == PITH_WIRE_VARINT(14)) h->external = f.value == 1;
        if (f.tag == PITH_WIRE_BYTES(12)) pith__syntax_omit(t, PITH_OMIT_DOCS);
        if (f.tag == PITH_WIRE_BYTES(16)) pith__syntax_omit(t, PITH_OMIT_METADATA);
        if (f.tag >> 3 > 16 || f.tag >> 3 == 15) pith__syntax_omit(t, PITH_OMIT_UNKNOWN);
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* "[2,3]", nothing for a scalar. */
static pith_status tensor_put_dims(pith__syntax_printer *t, pith_str bytes) {
    pith__wire w, packed;
    pith__wire_field f;
    uint64_t dim;
    size_t count = 0;
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_VARINT(1)) {
            pith__syntax_words(t, count++ ? "," : "[");
            pith__syntax_int(t, (int64_t)f.value);
        } else if (f.tag == PITH_WIRE_BYTES(1)) {
            pith__syntax_walk(&packed, f.bytes, t);
            while (pith__wire_next_varint(&packed, &dim)) {
                pith__syntax_words(t, count++ ? "," : "[");
                pith__syntax_int(t, (int64_t)dim);
            }
            if (packed.failed) return PITH_ERR_FORMAT;
        }
    }
    if (count) pith__syntax_words(t, "]");
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* ---- values ---- */

static size_t tensor_put_unsigned(char *text, uint64_t value) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < count; i++) text[i] = digits[count - 1 - i];
    return count;
}

static size_t tensor_put_number(const pith__syntax_printer *t, char *text, pith__syntax_element e,
                                const char *at) {
    uint64_t bits = 0;
    float x;
    double y;
    memcpy(&bits, at, e.bytes);
    if (e.kind == PITH_SYNTAX_ELEMENT_FLOAT && e.bytes == 4) {
        memcpy(&x, at, sizeof x);
        return pith__decimal_put_f32(&t->decimal, text, x);
    }
    if (e.kind == PITH_SYNTAX_ELEMENT_FLOAT) {
        memcpy(&y, at, sizeof y);
        return pith__decimal_put_f64(&t->decimal, text, y);
    }
    const int unused = 64 - 8 * e.bytes;
    const int64_t value = (int64_t)(bits << unused) >> unused;
    if (e.kind == PITH_SYNTAX_ELEMENT_UINT || value >= 0) return tensor_put_unsigned(text, bits);
    *text = '-';
    return 1 + tensor_put_unsigned(text + 1, 0 - (uint64_t)value);
}

static pith_status tensor_put_values(pith__syntax_printer *t, const pith_tensor *tensor) {
    const pith__syntax_element e = pith__syntax_element_of(tensor->dtype);
    const char *at = tensor->data;
    char text[PITH_DECIMAL_CHARS];
    if (t->checking) return PITH_OK;
    for (size_t i = 0; i < tensor->bytes / e.bytes; i++, at += e.bytes) {
        if (i % 1024 == 0) PITH_TRY(pith__stop_check(t->sink->stop, t->err));
        if (i) pith__syntax_words(t, ",");
        if (e.kind == PITH_SYNTAX_ELEMENT_STRING)
            pith__syntax_quoted(t, ((const pith_str *)tensor->data)[i]);
        else
            pith__syntax_write(t, (pith_str){ text, tensor_put_number(t, text, e, at) });
    }
    return PITH_OK;
}

static pith_status tensor_put_data(pith__syntax_printer *t, pith_str bytes) {
    pith__files files = { .arena = t->scratch };
    pith__onnx_source source = {
        .base = t->base, .arena = t->scratch, .stop = t->sink->stop, .err = t->err, .files = &files
    };
    const pith__arena_mark mark = pith__arena_get_mark(t->scratch);
    pith_tensor tensor;
    PITH_TRY(pith__onnx_decode_tensor(&tensor, NULL, bytes, &source));
    pith__syntax_words(t, "{");
    PITH_TRY(tensor_put_values(t, &tensor));
    pith__syntax_words(t, "}");
    pith__arena_rewind(t->scratch, mark);
    return PITH_OK;
}

static pith_status tensor_put_external(pith__syntax_printer *t, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    size_t count = 0;
    pith__syntax_words(t, "[");
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(13)) continue;
        if (count++) pith__syntax_words(t, ", ");
        PITH_TRY(pith__syntax_entry(t, f.bytes));
    }
    pith__syntax_words(t, "]");
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* In an attribute a name must be an identifier, and "=" must stand before external data, for onnx's
 * parser to see a tensor and not a type. */
pith_status pith__syntax_put_tensor(pith__syntax_printer *t, pith_str bytes, bool initializer) {
    tensor_head h;
    PITH_TRY(tensor_read_head(t, &h, bytes));
    const char *word = pith__syntax_dtype_name(h.dtype);
    if (!word)
        return pith__fail(t->err, PITH_ERR_UNSUPPORTED,
                          "tensor '" PITH_STR_FMT "': data type %lld is not supported",
                          PITH_STR_ARG(h.name), (long long)h.dtype);
    pith__syntax_words(t, word);
    PITH_TRY(tensor_put_dims(t, bytes));
    pith__syntax_words(t, " ");
    const bool named =
        initializer || (pith__syntax_is_identifier(h.name) && !pith__syntax_is_type(h.name));
    if (named) pith__syntax_name(t, h.name);
    if (!named && h.name.size) pith__syntax_omit(t, PITH_OMIT_NAMES);
    if (named || h.external) pith__syntax_words(t, " = ");
    return h.external ? tensor_put_external(t, bytes) : tensor_put_data(t, bytes);
}
