/* syntax_parse_model.c - models in ONNX's text syntax to ModelProto: models, functions, graphs,
 * nodes.
 *
 * The text is read once, and each message is written as it is read. Field numbers are those of
 * onnx.proto. A few things are read that onnx's own parser drops or refuses: lists of tensors,
 * graphs and types, and quoted names of subgraphs and of tensors in attributes. */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "formats/onnx/onnx_reader.h"
#include "formats/onnx/onnx_text.h"
#include "formats/onnx/syntax_parser.h"
#include "formats/onnx/syntax_words.h"

/* Field numbers. */
enum {
    MODEL_GRAPH = 7,
    MODEL_OPSETS = 8,
    MODEL_METADATA = 14,
    MODEL_FUNCTIONS = 25,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8,
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSETS = 9,
    FUNCTION_ATTRIBUTE_PROTO = 11,
    FUNCTION_VALUE = 12
};

bool pith__syntax_enter(pith__syntax_parser *t) {
    if (t->depth == PITH_ONNX_DEPTH_MAX) {
        pith__scan_fail(&t->scan, PITH_ERR_UNSUPPORTED,
                        "graphs and types are nested more than %d deep", PITH_ONNX_DEPTH_MAX);
        return false;
    }
    t->depth++;
    return true;
}

static bool parse_failed(const pith__syntax_parser *t) { return t->scan.failed || t->out->failed; }

void pith__syntax_list(pith__syntax_parser *t, const char *close,
                       void (*item)(pith__syntax_parser *t, int number), int number) {
    if (pith__scan_take(&t->scan, *close)) return;
    do {
        pith__scan_look(&t->scan);
        item(t, number);
    } while (pith__scan_take(&t->scan, ',') && !parse_failed(t));
    pith__scan_need(&t->scan, close);
}

void pith__syntax_pair(pith__syntax_parser *t, int number) {
    const size_t place = pith__wire_build_open(t->out, number);
    pith__wire_build_bytes(t->out, 1, pith__scan_string(&t->scan, "a key in quotes"));
    pith__scan_need(&t->scan, ":");
    pith__wire_build_bytes(t->out, 2, pith__scan_string(&t->scan, "a value in quotes"));
    pith__wire_build_close(t->out, place);
}

static void parse_opset(pith__syntax_parser *t, int number) {
    const size_t place = pith__wire_build_open(t->out, number);
    pith__wire_build_bytes(t->out, 1, pith__scan_string(&t->scan, "a domain in quotes"));
    pith__scan_need(&t->scan, ":");
    pith__wire_build_varint(t->out, 2, (uint64_t)pith__scan_int(&t->scan));
    pith__wire_build_close(t->out, place);
}

/* ---- values ---- */

/* "type name", as a field of that number. Returns the name. */
static pith_str parse_value(pith__syntax_parser *t, int number, pith__syntax_type *type) {
    const size_t place = pith__wire_build_open(t->out, number);
    *type = (pith__syntax_type){ .dtype = PITH_UNDEFINED };
    if (pith__syntax_is_type(pith__scan_peek_word(&t->scan))) pith__syntax_type_proto(t, 2, type);
    pith_str name = pith__scan_name(&t->scan, "a type or a name");
    pith__wire_build_bytes(t->out, 1, name);
    pith__wire_build_close(t->out, place);
    return name;
}

/* An output of the graph, or a value of a function. */
static void parse_plain_value(pith__syntax_parser *t, int number) {
    pith__syntax_type type;
    parse_value(t, number, &type);
}

/* An input of a graph, which may have a default; the default becomes an initializer. */
static void parse_input(pith__syntax_parser *t, int number) {
    pith__syntax_type type;
    pith_str name = parse_value(t, number, &type);
    if (pith__scan_take(&t->scan, '=')) pith__syntax_tensor(t, GRAPH_INITIALIZER, &type, name);
}

/* A declared type; or an initializer if it has a value. */
static void parse_inner_value(pith__syntax_parser *t, int number) {
    pith__syntax_type type;
    const size_t before = t->out->size;
    pith_str name = parse_value(t, number, &type);
    if (!pith__scan_take(&t->scan, '=')) return;
    if (!t->out->failed) t->out->size = before;
    pith__syntax_tensor(t, GRAPH_INITIALIZER, &type, name);
}

/* ---- nodes ---- */

/* Names of inputs or outputs; an empty one may be left out before a comma. */
static void parse_names(pith__syntax_parser *t, int number) {
    do {
        const bool quoted = pith__scan_peek(&t->scan) == '"';
        pith_str name = quoted ? pith__scan_string(&t->scan, "a name") : pith__scan_word(&t->scan);
        if (!quoted && !name.size && pith__scan_peek(&t->scan) != ',') return;
        pith__wire_build_bytes(t->out, number, name);
    } while (pith__scan_take(&t->scan, ',') && !parse_failed(t));
}

/* "domain.part.Op:overload" */
static void parse_operator(pith__syntax_parser *t) {
    pith__syntax_scan *s = &t->scan;
    pith__scan_peek(s);
    const char *begin = s->at, *dot = NULL;
    pith_str name = pith__scan_identifier(s, "an operator");
    while (!s->failed && s->at < s->end && *s->at == '.') {
        dot = s->at++;
        name = pith__scan_identifier(s, "an operator");
        if (s->failed || name.data == dot + 1) continue;
        s->at = dot + 1;
        pith__scan_fail(s, PITH_ERR_FORMAT, "there is a space in an operator's name");
    }
    pith__wire_build_bytes(t->out, NODE_OP, name);
    if (s->failed) return;
    if (dot)
        pith__wire_build_bytes(t->out, NODE_DOMAIN, (pith_str){ begin, (size_t)(dot - begin) });
    if (pith__scan_take(s, ':'))
        pith__wire_build_bytes(t->out, NODE_OVERLOAD, pith__scan_identifier(s, "an overload"));
}

/* [name] outputs = domain.Op:overload <attributes> (inputs) <attributes>. Attributes stand in front
 * of the inputs or behind them, as the printer puts those with graphs; not in both places. */
static void parse_node(pith__syntax_parser *t, int number) {
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, number);
    if (pith__scan_take(s, '[')) {
        if (pith__scan_peek(s) != ']')
            pith__wire_build_bytes(t->out, NODE_NAME, pith__scan_name(s, "a node's name"));
        pith__scan_need(s, "]");
    }
    parse_names(t, NODE_OUTPUT);
    pith__scan_need(s, "=");
    parse_operator(t);
    const bool had = pith__syntax_attributes(t);
    pith__scan_need(s, "(");
    parse_names(t, NODE_INPUT);
    pith__scan_need(s, ")");
    if (!had) pith__syntax_attributes(t);
    pith__wire_build_close(t->out, place);
}

static void parse_nodes(pith__syntax_parser *t, int number) {
    pith__scan_need(&t->scan, "{");
    while (!parse_failed(t) && !pith__scan_take(&t->scan, '}')) {
        if (!pith__scan_peek(&t->scan) && t->scan.at == t->scan.end)
            pith__scan_expected(&t->scan, "'}'");
        pith__scan_look(&t->scan);
        parse_node(t, number);
    }
}

/* "(inputs) => (outputs)": each item is read by its function, which is given the field's number. */
static void parse_signature(pith__syntax_parser *t,
                            void (*input)(pith__syntax_parser *t, int number), int in,
                            void (*output)(pith__syntax_parser *t, int number), int out) {
    pith__scan_need(&t->scan, "(");
    pith__syntax_list(t, ")", input, in);
    pith__scan_need(&t->scan, "=>");
    pith__scan_need(&t->scan, "(");
    pith__syntax_list(t, ")", output, out);
}

/* (inputs) => (outputs) <values> { nodes }. The caller has opened the message and takes the name,
 * which is written in different places in models and attributes. */
void pith__syntax_graph(pith__syntax_parser *t, pith_str name) {
    pith__syntax_scan *s = &t->scan;
    if (!pith__syntax_enter(t)) return;
    pith__wire_build_bytes(t->out, GRAPH_NAME, name);
    parse_signature(t, parse_input, GRAPH_INPUT, parse_plain_value, GRAPH_OUTPUT);
    if (pith__scan_take(s, '<')) pith__syntax_list(t, ">", parse_inner_value, GRAPH_VALUE);
    parse_nodes(t, GRAPH_NODE);
    t->depth--;
}

/* ---- functions ---- */

/* What stands behind the colon of a key. */
typedef enum parse_kind { PARSE_STRING, PARSE_INT, PARSE_OPSETS, PARSE_PAIRS } parse_kind;

typedef struct parse_key {
    const char *word;
    int number;
    parse_kind kind;
} parse_key;

/* <key: value, …> */
static void parse_header(pith__syntax_parser *t, const parse_key *keys) {
    pith__syntax_scan *s = &t->scan;
    do {
        const parse_key *key = keys;
        pith_str word = pith__scan_peek_word(s);
        while (key->word && !pith__str_is(word, key->word)) key++;
        if (!key->word) {
            pith__scan_expected(s, keys->kind == PARSE_INT
                                       ? "ir_version or another field of a model"
                                       : "domain or another field of a function");
            return;
        }
        pith__scan_word(s);
        pith__scan_need(s, ":");
        switch (key->kind) {
        case PARSE_STRING:
            pith__wire_build_bytes(t->out, key->number, pith__scan_string(s, "a string"));
            break;
        case PARSE_INT:
            pith__wire_build_varint(t->out, key->number, (uint64_t)pith__scan_int(s));
            break;
        default:
            pith__scan_need(s, "[");
            pith__syntax_list(t, "]", key->kind == PARSE_OPSETS ? parse_opset : pith__syntax_pair,
                              key->number);
        }
    } while (pith__scan_take(s, ',') && !parse_failed(t));
    pith__scan_need(s, ">");
}

/* A parameter, or one with a default. */
static void parse_parameter(pith__syntax_parser *t, int number) {
    pith_str name = pith__scan_name(&t->scan, "a parameter");
    const unsigned char next = pith__scan_peek(&t->scan);
    if (next == ':' || next == '=')
        pith__syntax_attribute(t, FUNCTION_ATTRIBUTE_PROTO, name);
    else
        pith__wire_build_bytes(t->out, number, name);
}

/* A name, or a type and a name, which is a declared type too. */
static void parse_port(pith__syntax_parser *t, int number) {
    pith__syntax_type type;
    pith_str name = pith__syntax_is_type(pith__scan_peek_word(&t->scan))
                        ? parse_value(t, FUNCTION_VALUE, &type)
                        : pith__scan_name(&t->scan, "a type or a name");
    pith__wire_build_bytes(t->out, number, name);
}

/* <domain, opset_import, …> name <attributes> (inputs) => (outputs) <types> { nodes }. Source:
 * OnnxParser::Parse(FunctionProto&) of onnx/defs/parser.cc. */
static void parse_function(pith__syntax_parser *t) {
    static const parse_key keys[] = { { "domain", 10, PARSE_STRING },
                                      { "opset_import", FUNCTION_OPSETS, PARSE_OPSETS },
                                      { "doc_string", 8, PARSE_STRING },
                                      { "overload", 13, PARSE_STRING },
                                      { NULL, 0, PARSE_STRING } };
    pith__syntax_scan *s = &t->scan;
    const size_t place = pith__wire_build_open(t->out, MODEL_FUNCTIONS);
    if (pith__scan_take(s, '<')) parse_header(t, keys);
    pith__wire_build_bytes(t->out, FUNCTION_NAME, pith__scan_name(s, "a function's name"));
    if (pith__scan_take(s, '<')) pith__syntax_list(t, ">", parse_parameter, FUNCTION_ATTRIBUTE);
    parse_signature(t, parse_port, FUNCTION_INPUT, parse_port, FUNCTION_OUTPUT);
    if (pith__scan_take(s, '<')) pith__syntax_list(t, ">", parse_plain_value, FUNCTION_VALUE);
    parse_nodes(t, FUNCTION_NODE);
    pith__wire_build_close(t->out, place);
}

/* ---- models ---- */

/* <ir_version, opset_import, …> graph functions. Whether what is missing was needed, reading the
 * model says. */
static void parse_model(pith__syntax_parser *t) {
    static const parse_key keys[] = { { "ir_version", 1, PARSE_INT },
                                      { "opset_import", MODEL_OPSETS, PARSE_OPSETS },
                                      { "producer_name", 2, PARSE_STRING },
                                      { "producer_version", 3, PARSE_STRING },
                                      { "domain", 4, PARSE_STRING },
                                      { "model_version", 5, PARSE_INT },
                                      { "doc_string", 6, PARSE_STRING },
                                      { "metadata_props", MODEL_METADATA, PARSE_PAIRS },
                                      { NULL, 0, PARSE_STRING } };
    pith__syntax_scan *s = &t->scan;
    if (pith__scan_take(s, '<')) parse_header(t, keys);
    pith_str name = pith__scan_name(s, "the graph's name");
    const size_t place = pith__wire_build_open(t->out, MODEL_GRAPH);
    pith__syntax_graph(t, name);
    pith__wire_build_close(t->out, place);
    while (!parse_failed(t) && (pith__scan_peek(s) || s->at < s->end)) parse_function(t);
}

/* Two kinds of failure end the work: faults of the text, which `scan` holds, and lack of memory for
 * the message, which `model` holds. */
pith_status pith__onnx_parse(pith__wire_build *model, pith_str text, pith__stop *stop,
                             pith__arena *scratch, pith_error *err) {
    pith__syntax_parser t = { .out = model };
    if (!text.data) text = PITH_STR("");
    t.scan = (pith__syntax_scan){ .at = text.data,
                                  .begin = text.data,
                                  .end = text.data + text.size,
                                  .arena = scratch,
                                  .stop = stop,
                                  .err = err };
    PITH_TRY(pith__decimal_begin(&t.scan.decimal, err));
    parse_model(&t);
    pith__decimal_end(&t.scan.decimal);
    if (model->failed) return pith__fail_memory(err, model->size);
    return t.scan.failed ? t.scan.code : PITH_OK;
}
