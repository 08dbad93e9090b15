/* syntax_print_attr.c - attributes and types as ONNX's text syntax has them. */
#include <string.h>

#include "formats/onnx/onnx_reader.h"
#include "formats/onnx/syntax_printer.h"
#include "formats/onnx/syntax_words.h"

/* ---- types ---- */

/* A size, a symbol, or "?" for one that is not known. A symbol that is no identifier is put into
 * quotes. */
static pith_status type_dim(pith__syntax_printer *t, pith_str bytes) {
    pith__wire w;
    pith__wire_field f, last = { .tag = 0 };
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_VARINT(1) || f.tag == PITH_WIRE_BYTES(2))
            last = f;
        else
            pith__syntax_omit(t, f.tag == PITH_WIRE_BYTES(3) ? PITH_OMIT_DENOTATIONS
                                                             : PITH_OMIT_UNKNOWN);
    }
    if (!last.tag)
        pith__syntax_words(t, "?");
    else if (last.tag == PITH_WIRE_VARINT(1))
        pith__syntax_int(t, (int64_t)last.value);
    else if (pith__syntax_is_identifier(last.bytes))
        pith__syntax_write(t, last.bytes);
    else
        pith__syntax_quoted(t, last.bytes);
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* A TypeProto.Tensor or TypeProto.SparseTensor; *some is false if it has no element type. */
static pith_status type_tensor(pith__syntax_printer *t, pith_str bytes, bool *some) {
    pith__wire w;
    pith__wire_field f;
    pith_str shape = { NULL, 0 };
    const char *word = NULL;
    size_t count = 0;
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_VARINT(1)) word = pith__syntax_dtype_name((int64_t)f.value);
        if (f.tag == PITH_WIRE_BYTES(2)) shape = f.bytes;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    *some = word != NULL;
    if (!word) return PITH_OK;
    pith__syntax_words(t, word);
    if (!shape.data) pith__syntax_words(t, "[]");
    if (!shape.data) return PITH_OK;
    pith__syntax_walk(&w, shape, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(1)) continue;
        pith__syntax_words(t, count++ ? "," : "[");
        PITH_TRY(type_dim(t, f.bytes));
    }
    if (count) pith__syntax_words(t, "]");
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* The fields 1 and 2 of a message. */
static pith_status type_fields(const pith__syntax_printer *t, pith__wire_field fields[2],
                               pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    fields[0] = fields[1] = (pith__wire_field){ .tag = 0, .bytes = { "", 0 } };
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f))
        if (f.tag >> 3 == 1 || f.tag >> 3 == 2) fields[(f.tag >> 3) - 1] = f;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* opaque(domain, name). Without a name that is an identifier it has no form. */
static pith_status type_opaque(pith__syntax_printer *t, pith_str bytes, bool *some) {
    pith__wire_field f[2];
    PITH_TRY(type_fields(t, f, bytes));
    *some = pith__syntax_is_identifier(f[1].bytes) &&
            (!f[0].bytes.size || pith__syntax_is_identifier(f[0].bytes));
    if (!*some) return PITH_OK;
    pith__syntax_words(t, "opaque(");
    pith__syntax_write(t, f[0].bytes);
    if (f[0].bytes.size) pith__syntax_words(t, ",");
    pith__syntax_write(t, f[1].bytes);
    pith__syntax_words(t, ")");
    return PITH_OK;
}

static pith_status type_put(pith__syntax_printer *t, pith_str bytes, bool *some);

/* seq(…), optional(…), map(key, …). What is inside must have a form, since part of it is written
 * already. */
static pith_status type_container(pith__syntax_printer *t, const char *word, pith_str bytes,
                                  bool map) {
    pith__wire_field f[2];
    const char *key = NULL;
    bool some = false;
    PITH_TRY(type_fields(t, f, bytes));
    if (map) key = pith__syntax_dtype_name((int64_t)f[0].value);
    if (map && !key)
        return pith__fail(t->err, PITH_ERR_UNSUPPORTED, "a map whose keys have no type");
    pith__syntax_words(t, word);
    if (key) pith__syntax_words(t, key);
    if (key) pith__syntax_words(t, ", ");
    PITH_TRY(type_put(t, f[map].bytes, &some));
    pith__syntax_words(t, ")");
    if (some) return PITH_OK;
    return pith__fail(t->err, PITH_ERR_UNSUPPORTED,
                      "the text syntax has no form for %s) of elements without a type", word);
}

/* The last of the alternatives counts, as protobuf has it for a oneof. *some is false for a type
 * that the syntax cannot express, which the caller may leave out. */
static pith_status type_put(pith__syntax_printer *t, pith_str bytes, bool *some) {
    pith__wire w;
    pith__wire_field f, last = { .tag = 0, .bytes = { "", 0 } };
    *some = false;
    if (t->depth++ == PITH_ONNX_DEPTH_MAX)
        return pith__fail(t->err, PITH_ERR_UNSUPPORTED, "types are nested more than %d deep",
                          PITH_ONNX_DEPTH_MAX);
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(6))
            pith__syntax_omit(t, PITH_OMIT_DENOTATIONS);
        else
            last = f;
    }
    if (w.failed) return PITH_ERR_FORMAT;
    pith_status status = PITH_OK;
    *some = true;
    switch (last.tag) {
    case PITH_WIRE_BYTES(1): status = type_tensor(t, last.bytes, some); break;
    case PITH_WIRE_BYTES(4): status = type_container(t, "seq(", last.bytes, false); break;
    case PITH_WIRE_BYTES(5): status = type_container(t, "map(", last.bytes, true); break;
    case PITH_WIRE_BYTES(7): status = type_opaque(t, last.bytes, some); break;
    case PITH_WIRE_BYTES(8):
        pith__syntax_words(t, "sparse_tensor(");
        status = type_tensor(t, last.bytes, some);
        pith__syntax_words(t, ")");
        if (!status && !*some)
            status =
                pith__fail(t->err, PITH_ERR_UNSUPPORTED, "a sparse tensor without an element type");
        break;
    case PITH_WIRE_BYTES(9): status = type_container(t, "optional(", last.bytes, false); break;
    default: *some = false;
    }
    t->depth--;
    return status;
}

pith_status pith__syntax_put_type(pith__syntax_printer *t, pith_str bytes, bool *some) {
    PITH_TRY(type_put(t, bytes, some));
    if (!*some) pith__syntax_omit(t, PITH_OMIT_TYPES);
    return PITH_OK;
}

/* ---- attributes ---- */

typedef struct attr_head {
    pith_str name, reference;
    pith__syntax_attr type;
    bool refers;
} attr_head;

/* Field numbers of values, with the type of an attribute that has one, for files of 2017 that do
 * not say it. */
static const struct {
    uint8_t number, type;
} attr_fields[] = { { 2, PITH_SYNTAX_FLOAT },    { 3, PITH_SYNTAX_INT },
                    { 4, PITH_SYNTAX_STRING },   { 5, PITH_SYNTAX_TENSOR },
                    { 6, PITH_SYNTAX_GRAPH },    { 7, PITH_SYNTAX_FLOATS },
                    { 8, PITH_SYNTAX_INTS },     { 9, PITH_SYNTAX_STRINGS },
                    { 10, PITH_SYNTAX_TENSORS }, { 11, PITH_SYNTAX_GRAPHS },
                    { 14, PITH_SYNTAX_TYPE },    { 15, PITH_SYNTAX_TYPES },
                    { 22, PITH_SYNTAX_SPARSE },  { 23, PITH_SYNTAX_SPARSES } };
enum { ATTR_FIELDS = sizeof attr_fields / sizeof *attr_fields };

/* A reference to an attribute of a function has a type and no value. */
static pith_status attr_read_head(pith__syntax_printer *t, attr_head *h, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith__syntax_attr found = PITH_SYNTAX_NONE;
    *h = (attr_head){ .name = PITH_STR(""), .reference = PITH_STR("") };
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        const uint32_t number = f.tag >> 3;
        int field = 0;
        while (field < ATTR_FIELDS && attr_fields[field].number != number) field++;
        if (field < ATTR_FIELDS)
            found = (pith__syntax_attr)attr_fields[field].type;
        else if (f.tag == PITH_WIRE_BYTES(1))
            h->name = f.bytes;
        else if (f.tag == PITH_WIRE_VARINT(20))
            h->type = f.value < PITH_SYNTAX_ATTRS ? (pith__syntax_attr)f.value : PITH_SYNTAX_ATTRS;
        else if (f.tag == PITH_WIRE_BYTES(21))
            h->reference = f.bytes, h->refers = true;
        else
            pith__syntax_omit(t, f.tag == PITH_WIRE_BYTES(13) ? PITH_OMIT_DOCS : PITH_OMIT_UNKNOWN);
    }
    if (h->type == PITH_SYNTAX_NONE && !h->refers) h->type = found;
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static void attr_float(pith__syntax_printer *t, uint64_t bits) {
    char text[PITH_DECIMAL_CHARS];
    float x;
    memcpy(&x, &bits, sizeof x);
    pith__syntax_write(t, (pith_str){ text, pith__decimal_put_f32(&t->decimal, text, x) });
}

/* One value of a kind that is not a list. */
static pith_status attr_value(pith__syntax_printer *t, pith__syntax_attr single,
                              const pith__wire_field *f) {
    bool some = true;
    switch (single) {
    case PITH_SYNTAX_FLOAT: attr_float(t, f->value); return PITH_OK;
    case PITH_SYNTAX_INT: pith__syntax_int(t, (int64_t)f->value); return PITH_OK;
    case PITH_SYNTAX_STRING: pith__syntax_quoted(t, f->bytes); return PITH_OK;
    case PITH_SYNTAX_TENSOR: return pith__syntax_put_tensor(t, f->bytes, false);
    case PITH_SYNTAX_GRAPH: return pith__syntax_subgraph(t, f->bytes);
    case PITH_SYNTAX_TYPE:
        PITH_TRY(pith__syntax_put_type(t, f->bytes, &some));
        return some ? PITH_OK
                    : pith__fail(t->err, PITH_ERR_UNSUPPORTED,
                                 "the text syntax has no form for an empty type");
    default:
        return pith__fail(t->err, PITH_ERR_UNSUPPORTED,
                          "the text syntax has no form for sparse tensors");
    }
}

/* The numbers of a packed field. */
static pith_status attr_packed(pith__syntax_printer *t, pith__syntax_attr single, pith_str bytes,
                               size_t *count) {
    pith__wire_field f = { .tag = 0 };
    pith__wire w;
    if (single == PITH_SYNTAX_FLOAT) {
        if (bytes.size % 4)
            return pith__fail(t->err, PITH_ERR_FORMAT, "packed numbers are cut short");
        for (size_t i = 0; i < bytes.size; i += 4) {
            memcpy(&f.value, bytes.data + i, 4);
            if ((*count)++) pith__syntax_words(t, ", ");
            attr_float(t, f.value);
        }
        return PITH_OK;
    }
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next_varint(&w, &f.value)) {
        if ((*count)++) pith__syntax_words(t, ", ");
        pith__syntax_int(t, (int64_t)f.value);
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static uint32_t attr_tag(pith__syntax_attr single, int number) {
    if (single == PITH_SYNTAX_FLOAT) return PITH_WIRE_FIXED32(number);
    return single == PITH_SYNTAX_INT ? PITH_WIRE_VARINT(number) : PITH_WIRE_BYTES(number);
}

/* Values of a list stand in the field of their kind, packed or one by one; a single value is the
 * last one there. */
static pith_status attr_values(pith__syntax_printer *t, const attr_head *h, pith_str bytes) {
    const pith__syntax_attr single = pith__syntax_attr_single(h->type);
    const bool list = single != h->type;
    pith__wire w;
    pith__wire_field f, last = { .tag = 0, .bytes = { "", 0 } };
    size_t count = 0;
    int field = 0;
    while (attr_fields[field].type != h->type) field++;
    const uint32_t tag = attr_tag(single, attr_fields[field].number);
    if (list) pith__syntax_words(t, "[");
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == tag && !list) last = f;
        if (f.tag == tag && list) {
            if (count++) pith__syntax_words(t, ", ");
            PITH_TRY(attr_value(t, single, &f));
        } else if (list && f.tag == PITH_WIRE_BYTES(attr_fields[field].number)) {
            PITH_TRY(attr_packed(t, single, f.bytes, &count));
        }
    }
    if (list) pith__syntax_words(t, "]");
    if (w.failed) return PITH_ERR_FORMAT;
    return list ? PITH_OK : attr_value(t, single, &last);
}

pith_status pith__syntax_put_attr(pith__syntax_printer *t, pith_str bytes) {
    attr_head h;
    PITH_TRY(attr_read_head(t, &h, bytes));
    const char *word = pith__syntax_attr_name(h.type);
    if (!pith__syntax_is_identifier(h.name))
        return pith__fail(t->err, PITH_ERR_UNSUPPORTED,
                          "the text syntax has no form for an attribute named '" PITH_STR_FMT "'",
                          PITH_STR_ARG(h.name));
    if (!word && (h.type || !h.refers))
        return pith__fail(t->err, PITH_ERR_FORMAT, "attribute '" PITH_STR_FMT "' has no value",
                          PITH_STR_ARG(h.name));
    pith__syntax_write(t, h.name);
    pith__syntax_words(t, word ? ": " : "");
    pith__syntax_words(t, word ? word : "");
    pith__syntax_words(t, " = ");
    if (h.refers) {
        pith__syntax_words(t, "@");
        pith__syntax_name(t, h.reference);
        return PITH_OK;
    }
    pith_status status = attr_values(t, &h, bytes);
    return status ? pith__fail_at(t->err, status,
                                  "attribute '" PITH_STR_FMT "': ", PITH_STR_ARG(h.name))
                  : PITH_OK;
}
