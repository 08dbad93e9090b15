/* syntax_parse_attr.c - attributes and types of ONNX's text syntax. */
#include <string.h>

#include "base/str.h"
#include "formats/onnx/syntax_parser.h"
#include "formats/onnx/syntax_words.h"

/* Field numbers. */
enum {
    ATTR_NAME = 1,
    ATTR_FLOAT = 2,
    ATTR_INT = 3,
    ATTR_STRING = 4,
    ATTR_TENSOR = 5,
    ATTR_GRAPH = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TENSORS = 10,
    ATTR_GRAPHS = 11,
    ATTR_TYPE_PROTO = 14,
    ATTR_TYPE_PROTOS = 15,
    ATTR_TYPE = 20,
    ATTR_REF = 21,
    TYPE_TENSOR = 1,
    TYPE_SEQUENCE = 4,
    TYPE_MAP = 5,
    TYPE_OPAQUE = 7,
    TYPE_SPARSE = 8,
    TYPE_OPTIONAL = 9
};

/* ---- types ---- */

static void type_add_dim(pith__syntax_type *type, int64_t size) {
    if (type->rank < PITH_MAX_RANK) type->dims[type->rank] = size;
    if (type->rank <= PITH_MAX_RANK) type->rank++;
}

/* One size of a shape: a number, a name, or ? */
static void type_dim(pith__syntax_parser *t, pith__syntax_type *type) {
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, 1);
    const unsigned char next = pith__scan_peek(s);
    pith_str name = next == '"' ? pith__scan_string(s, "a size") : pith__scan_word(s);
    if (pith__scan_take(s, '?')) {
        type->fixed = false;
    } else if (next == '"' || name.size) {
        type->fixed = false;
        pith__wire_build_bytes(t->out, 2, name);
    } else {
        const int64_t size = pith__scan_int(s);
        type_add_dim(type, size);
        pith__wire_build_varint(t->out, 1, (uint64_t)size);
    }
    pith__wire_build_close(t->out, place);
}

/* TypeProto.Tensor or TypeProto.SparseTensor behind the word of its element type. "float" is a
 * scalar, "float[]" a tensor of unknown rank. */
static void type_tensor(pith__syntax_parser *t, int number, pith__syntax_type *type) {
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, number);
    pith__wire_build_varint(t->out, 1, (uint64_t)type->dtype);
    const bool scalar = !pith__scan_take(s, '[');
    type->fixed = scalar || !pith__scan_take(s, ']');
    if (type->fixed) {
        const size_t shape = pith__wire_build_open(t->out, 2);
        if (!scalar) {
            do {
                type_dim(t, type);
            } while (pith__scan_take(s, ',') && !s->failed && !t->out->failed);
            pith__scan_need(s, "]");
        }
        pith__wire_build_close(t->out, shape);
    }
    pith__wire_build_close(t->out, place);
}

static int type_element(pith__syntax_parser *t, const char *what) {
    const int dtype = pith__syntax_dtype_find(pith__scan_peek_word(&t->scan));
    if (!dtype)
        pith__scan_expected(&t->scan, what);
    else
        pith__scan_word(&t->scan);
    return dtype;
}

static void type_opaque(pith__syntax_parser *t) {
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, TYPE_OPAQUE);
    if (pith__scan_peek(s) != ')') {
        const char *begin = s->at;
        pith__scan_identifier(s, "the name of an opaque type");
        while (!s->failed && s->at + 1 < s->end && *s->at == '.' && pith__scan_letter(s->at[1])) {
            s->at++;
            pith__scan_identifier(s, "the name of an opaque type");
        }
        const pith_str name = { begin, s->failed ? 0 : (size_t)(s->at - begin) };
        const bool domain = pith__scan_take(s, ',');
        pith__wire_build_bytes(t->out, domain ? 1 : 2, name);
        if (domain)
            pith__wire_build_bytes(t->out, 2,
                                   pith__scan_identifier(s, "the name of an opaque type"));
    }
    pith__wire_build_close(t->out, place);
}

static void type_container(pith__syntax_parser *t, pith_str word) {
    pith__syntax_scan *s = &t->scan;
    pith__syntax_type inner = { .dtype = PITH_UNDEFINED };
    pith__scan_need(s, "(");
    if (pith__str_is(word, "opaque")) {
        type_opaque(t);
    } else if (pith__str_is(word, "sparse_tensor")) {
        inner.dtype = type_element(t, "an element type");
        type_tensor(t, TYPE_SPARSE, &inner);
    } else if (pith__str_is(word, "map")) {
        const size_t place = pith__wire_build_open(t->out, TYPE_MAP);
        pith__wire_build_varint(t->out, 1, (uint64_t)type_element(t, "the type of a map's keys"));
        pith__scan_need(s, ",");
        pith__syntax_type_proto(t, 2, NULL);
        pith__wire_build_close(t->out, place);
    } else {
        const size_t place = pith__wire_build_open(
            t->out, pith__str_is(word, "seq") ? TYPE_SEQUENCE : TYPE_OPTIONAL);
        pith__syntax_type_proto(t, 1, NULL);
        pith__wire_build_close(t->out, place);
    }
    pith__scan_need(s, ")");
}

void pith__syntax_type_proto(pith__syntax_parser *t, int number, pith__syntax_type *type) {
    pith__syntax_type own;
    if (!type) type = &own;
    *type = (pith__syntax_type){ .dtype = PITH_UNDEFINED };
    if (!pith__syntax_enter(t)) return;
    const size_t place = pith__wire_build_open(t->out, number);
    pith_str word = pith__scan_peek_word(&t->scan);
    if (!pith__syntax_is_type(word)) pith__scan_expected(&t->scan, "a type");
    pith__scan_word(&t->scan);
    type->dtype = pith__syntax_dtype_find(word);
    if (t->scan.failed) {
        type->dtype = PITH_UNDEFINED;
    } else if (type->dtype) {
        type_tensor(t, TYPE_TENSOR, type);
    } else {
        type_container(t, word);
    }
    pith__wire_build_close(t->out, place);
    t->depth--;
}

/* ---- attributes ---- */

/* Where values of a type stand, alone and in a list. */
static int attr_field(pith__syntax_attr type, bool list) {
    static const int fields[PITH_SYNTAX_ATTRS][2] = {
        [PITH_SYNTAX_FLOAT] = { ATTR_FLOAT, ATTR_FLOATS },
        [PITH_SYNTAX_INT] = { ATTR_INT, ATTR_INTS },
        [PITH_SYNTAX_STRING] = { ATTR_STRING, ATTR_STRINGS },
        [PITH_SYNTAX_TENSOR] = { ATTR_TENSOR, ATTR_TENSORS },
        [PITH_SYNTAX_GRAPH] = { ATTR_GRAPH, ATTR_GRAPHS },
        [PITH_SYNTAX_TYPE] = { ATTR_TYPE_PROTO, ATTR_TYPE_PROTOS },
    };
    return fields[type][list];
}

/* A type, or a tensor: "type name {…}". */
static pith__syntax_attr attr_typed(pith__syntax_parser *t, bool list) {
    pith__syntax_scan *s = &t->scan;
    pith__syntax_type type;
    const size_t before = t->out->size;
    pith__syntax_type_proto(t, attr_field(PITH_SYNTAX_TYPE, list), &type);
    const unsigned char next = pith__scan_peek(s);
    const bool named = next == '"' || pith__scan_peek_word(s).size;
    if (next != '{' && next != '=' && !named) return PITH_SYNTAX_TYPE;
    if (!t->out->failed) t->out->size = before;
    pith_str name = named ? pith__scan_name(s, "a name") : PITH_STR("");
    pith__scan_take(s, '=');
    pith__syntax_tensor(t, attr_field(PITH_SYNTAX_TENSOR, list), &type, name);
    return PITH_SYNTAX_TENSOR;
}

static pith__syntax_attr attr_graph(pith__syntax_parser *t, bool list) {
    const size_t place = pith__wire_build_open(t->out, attr_field(PITH_SYNTAX_GRAPH, list));
    pith__syntax_graph(t, pith__scan_name(&t->scan, "a graph's name"));
    pith__wire_build_close(t->out, place);
    return PITH_SYNTAX_GRAPH;
}

/* A number or a string. An integer becomes a float where floats are expected. */
static pith__syntax_attr attr_literal(pith__syntax_parser *t, pith__syntax_attr expected,
                                      bool list) {
    pith__syntax_scan *s = &t->scan;
    pith_str text;
    pith__syntax_literal literal = pith__scan_literal(s, &text);
    if (literal == PITH_LITERAL_INT && expected == PITH_SYNTAX_FLOAT) literal = PITH_LITERAL_FLOAT;
    switch (literal) {
    case PITH_LITERAL_INT:
        pith__wire_build_varint(t->out, attr_field(PITH_SYNTAX_INT, list),
                                (uint64_t)pith__scan_int_of(s, text));
        return PITH_SYNTAX_INT;
    case PITH_LITERAL_FLOAT:
        pith__wire_build_float(t->out, attr_field(PITH_SYNTAX_FLOAT, list),
                               pith__scan_f32_of(s, text));
        return PITH_SYNTAX_FLOAT;
    case PITH_LITERAL_STRING:
        pith__wire_build_bytes(t->out, attr_field(PITH_SYNTAX_STRING, list), text);
        return PITH_SYNTAX_STRING;
    default: pith__scan_expected(s, "a value"); return PITH_SYNTAX_NONE;
    }
}

/* One value; returns its type. PITH_SYNTAX_NONE as what is expected lets any come. */
static pith__syntax_attr attr_value(pith__syntax_parser *t, pith__syntax_attr expected, bool list) {
    pith__syntax_scan *s = &t->scan;
    pith__syntax_attr got;
    pith_str word = pith__scan_peek_word(s);
    const char *at = s->at;
    const bool quoted_graph = expected == PITH_SYNTAX_GRAPH && pith__scan_peek(s) == '"';
    if (pith__syntax_is_type(word))
        got = attr_typed(t, list);
    else if ((word.size && !pith__syntax_is_float(word)) || quoted_graph)
        got = attr_graph(t, list);
    else
        got = attr_literal(t, expected, list);
    if (s->failed || expected == PITH_SYNTAX_NONE || got == expected) return got;
    s->at = at;
    pith__scan_fail(s, PITH_ERR_FORMAT, "this is of type %s, and the attribute of type %s",
                    pith__syntax_attr_name(got), pith__syntax_attr_name(expected));
    return got;
}

/* The values behind '['. Returns the attribute's type. */
static pith__syntax_attr attr_values(pith__syntax_parser *t, pith__syntax_attr type) {
    pith__syntax_scan *s = &t->scan;
    pith__syntax_attr each = pith__syntax_attr_single(type);
    if (pith__scan_take(s, ']')) {
        if (type == each)
            pith__scan_fail(s, PITH_ERR_FORMAT,
                            "an empty list needs its type, such as ': ints' before the '='");
        return type;
    }
    do {
        each = attr_value(t, each, true);
    } while (pith__scan_take(s, ',') && !s->failed && !t->out->failed);
    pith__scan_need(s, "]");
    return pith__syntax_attr_list(each);
}

void pith__syntax_attribute(pith__syntax_parser *t, int number, pith_str name) {
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, number);
    pith__syntax_attr type = PITH_SYNTAX_NONE;
    pith__wire_build_bytes(t->out, ATTR_NAME, name);
    if (pith__scan_take(s, ':')) {
        type = pith__syntax_attr_find(pith__scan_peek_word(s));
        if (type == PITH_SYNTAX_NONE)
            pith__scan_expected(s, "the type of an attribute, such as int or floats");
        pith__scan_word(s);
    }
    pith__scan_need(s, "=");
    if (pith__scan_take(s, '@'))
        pith__wire_build_bytes(t->out, ATTR_REF,
                               pith__scan_name(s, "the name of a function's parameter"));
    else if (pith__scan_take(s, '['))
        type = attr_values(t, type);
    else
        type = attr_value(t, type, false);
    pith__wire_build_varint(t->out, ATTR_TYPE, (uint64_t)type);
    pith__wire_build_close(t->out, place);
}

static void attr_item(pith__syntax_parser *t, int number) {
    pith__syntax_attribute(t, number, pith__scan_identifier(&t->scan, "the name of an attribute"));
}

bool pith__syntax_attributes(pith__syntax_parser *t) {
    enum { NODE_ATTRIBUTE = 5 };
    if (!pith__scan_take(&t->scan, '<')) return false;
    pith__syntax_list(t, ">", attr_item, NODE_ATTRIBUTE);
    return true;
}
