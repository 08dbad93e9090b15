/* syntax_print_model.c - ModelProto to ONNX's text syntax: models, functions, graphs, nodes.
 *
 * The message is walked where it lies, once for each kind of field, because protobuf promises no
 * order. All of it is walked twice: the first time nothing is written, so that faults are found
 * before a file has begun. Field numbers are those of onnx.proto. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx_reader.h"
#include "formats/onnx/syntax_printer.h"
#include "formats/onnx/syntax_words.h"

const char *const pith__syntax_omission_names[PITH_OMISSIONS] = {
    [PITH_OMIT_DOCS] = "doc strings of parts",
    [PITH_OMIT_METADATA] = "metadata of parts",
    [PITH_OMIT_DENOTATIONS] = "denotations",
    [PITH_OMIT_TYPES] = "types without an element type",
    [PITH_OMIT_NAMES] = "names of subgraphs and constants",
    [PITH_OMIT_QUANTIZATION] = "quantization annotations",
    [PITH_OMIT_TRAINING] = "training information",
    [PITH_OMIT_DEVICES] = "device configurations",
    [PITH_OMIT_UNKNOWN] = "unknown fields",
};

enum { INDENT = 2 };

/* ---- writing ---- */

static void print_flush(pith__syntax_printer *t) {
    pith__out_put(&t->sink->out, t->buffer, t->used);
    t->used = 0;
}

/* Text is gathered in a buffer, so that the sink is called with thousands of bytes and not with
 * single words. While checking, nothing is kept. */
void pith__syntax_write(pith__syntax_printer *t, pith_str text) {
    if (t->checking) return;
    t->sink->size += text.size;
    while (text.size) {
        const size_t room = sizeof t->buffer - t->used, n = text.size < room ? text.size : room;
        memcpy(t->buffer + t->used, text.data, n);
        t->used += n;
        text.data += n;
        text.size -= n;
        if (t->used == sizeof t->buffer) print_flush(t);
    }
}

void pith__syntax_words(pith__syntax_printer *t, const char *text) {
    pith__syntax_write(t, pith__str_of(text));
}

void pith__syntax_int(pith__syntax_printer *t, int64_t number) {
    char text[24];
    const int n = snprintf(text, sizeof text, "%lld", (long long)number);
    pith__syntax_write(t, (pith_str){ text, (size_t)n });
}

/* Only quotes and backslashes are escaped. The syntax has no escapes for other characters, and its
 * scanner takes them as they are. */
void pith__syntax_quoted(pith__syntax_printer *t, pith_str text) {
    pith__syntax_words(t, "\"");
    for (size_t i = 0, from = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != '"' && text.data[i] != '\\') continue;
        if (i > from) pith__syntax_write(t, (pith_str){ text.data + from, i - from });
        if (i < text.size) pith__syntax_words(t, "\\");
        from = i;
    }
    pith__syntax_words(t, "\"");
}

void pith__syntax_name(pith__syntax_printer *t, pith_str name) {
    if (pith__syntax_is_identifier(name) && !pith__syntax_is_type(name))
        pith__syntax_write(t, name);
    else
        pith__syntax_quoted(t, name);
}

void pith__syntax_line(pith__syntax_printer *t) {
    pith__syntax_words(t, "\n");
    for (int i = 0; i < t->indent; i++) pith__syntax_words(t, " ");
}

void pith__syntax_omit(pith__syntax_printer *t, pith__syntax_omission what) {
    t->sink->omitted[what] += t->checking;
}

void pith__syntax_walk(pith__wire *w, pith_str bytes, const pith__syntax_printer *t) {
    pith__wire_init(w, bytes, t->base, t->err);
}

/* ---- small parts ---- */

pith_status pith__syntax_entry(pith__syntax_printer *t, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith_str key = PITH_STR(""), value = PITH_STR("");
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1)) key = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(2)) value = f.bytes;
    }
    pith__syntax_quoted(t, key);
    pith__syntax_words(t, ": ");
    pith__syntax_quoted(t, value);
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_status print_opset(pith__syntax_printer *t, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith_str domain = PITH_STR("");
    int64_t version = 0;
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag == PITH_WIRE_BYTES(1)) domain = f.bytes;
        if (f.tag == PITH_WIRE_VARINT(2)) version = (int64_t)f.value;
    }
    pith__syntax_quoted(t, domain);
    pith__syntax_words(t, ": ");
    pith__syntax_int(t, version);
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

typedef pith_status print_item(pith__syntax_printer *t, pith_str bytes);

static pith_status print_name(pith__syntax_printer *t, pith_str bytes) {
    pith__syntax_name(t, bytes);
    return PITH_OK;
}

/* Calls the function for each field of that number; `first` comes before them if there is any, ", "
 * between. */
static pith_status print_each(pith__syntax_printer *t, pith_str message, int number,
                              print_item *item, const char *first, size_t *count) {
    pith__wire w;
    pith__wire_field f;
    pith__syntax_walk(&w, message, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(number)) continue;
        pith__syntax_words(t, (*count)++ ? ", " : first);
        PITH_TRY(item(t, f.bytes));
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static pith_status print_list(pith__syntax_printer *t, pith_str message, int number,
                              print_item *item, const char *open, const char *close) {
    size_t count = 0;
    pith__syntax_words(t, open);
    PITH_TRY(print_each(t, message, number, item, "", &count));
    pith__syntax_words(t, close);
    return PITH_OK;
}

/* A ValueInfoProto: "type name". */
static pith_status print_value(pith__syntax_printer *t, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    pith_str name = PITH_STR(""), type = { NULL, 0 };
    bool some = false;
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_BYTES(1): name = f.bytes; break;
        case PITH_WIRE_BYTES(2): type = f.bytes; break;
        case PITH_WIRE_BYTES(3): pith__syntax_omit(t, PITH_OMIT_DOCS); break;
        case PITH_WIRE_BYTES(4): pith__syntax_omit(t, PITH_OMIT_METADATA); break;
        default: pith__syntax_omit(t, PITH_OMIT_UNKNOWN);
        }
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (type.data) PITH_TRY(pith__syntax_put_type(t, type, &some));
    if (some) pith__syntax_words(t, " ");
    pith__syntax_name(t, name);
    return PITH_OK;
}

/* ---- nodes ---- */

typedef struct print_node_head {
    pith_str name, op, domain, overload;
    size_t attrs;
    bool graphs; /* attributes stand behind the inputs */
} print_node_head;

static bool print_has_graph(const pith__syntax_printer *t, pith_str attr) {
    pith__wire w;
    pith__wire_field f;
    pith__wire_init(&w, attr, t->base, NULL);
    while (pith__wire_next(&w, &f))
        if (f.tag == PITH_WIRE_BYTES(6) || f.tag == PITH_WIRE_BYTES(11)) return true;
    return false;
}

/* What has to be known of a node before its first word is printed. Fields that the syntax has no
 * place for are counted as omissions. */
static pith_status print_read_head(pith__syntax_printer *t, print_node_head *h, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    *h = (print_node_head){ PITH_STR(""), PITH_STR(""), PITH_STR(""), PITH_STR(""), 0, false };
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag) {
        case PITH_WIRE_BYTES(1):
        case PITH_WIRE_BYTES(2): break;
        case PITH_WIRE_BYTES(3): h->name = f.bytes; break;
        case PITH_WIRE_BYTES(4): h->op = f.bytes; break;
        case PITH_WIRE_BYTES(5):
            h->attrs++;
            h->graphs = h->graphs || print_has_graph(t, f.bytes);
            break;
        case PITH_WIRE_BYTES(6): pith__syntax_omit(t, PITH_OMIT_DOCS); break;
        case PITH_WIRE_BYTES(7): h->domain = f.bytes; break;
        case PITH_WIRE_BYTES(8): h->overload = f.bytes; break;
        case PITH_WIRE_BYTES(9): pith__syntax_omit(t, PITH_OMIT_METADATA); break;
        case PITH_WIRE_BYTES(10): pith__syntax_omit(t, PITH_OMIT_DEVICES); break;
        default: pith__syntax_omit(t, PITH_OMIT_UNKNOWN);
        }
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* Identifiers with dots between. */
static bool print_is_dotted(pith_str s) {
    for (size_t from = 0, i = 0; i <= s.size; i++) {
        if (i < s.size && s.data[i] != '.') continue;
        if (!pith__syntax_is_identifier((pith_str){ s.data + from, i - from })) return false;
        from = i + 1;
    }
    return true;
}

/* A name that is no identifier would be read back as something else, so it is refused instead of
 * being omitted. */
static pith_status print_operator(pith__syntax_printer *t, const print_node_head *h) {
    if (!pith__syntax_is_identifier(h->op) || (h->domain.size && !print_is_dotted(h->domain)) ||
        (h->overload.size && !pith__syntax_is_identifier(h->overload)))
        return pith__fail(
            t->err, PITH_ERR_UNSUPPORTED,
            "the text syntax has no form for an operator whose name, domain ('" PITH_STR_FMT
            "') or overload is no identifier",
            PITH_STR_ARG(h->domain));
    if (h->domain.size) {
        pith__syntax_write(t, h->domain);
        pith__syntax_words(t, ".");
    }
    pith__syntax_write(t, h->op);
    if (!h->overload.size) return PITH_OK;
    pith__syntax_words(t, ":");
    pith__syntax_write(t, h->overload);
    return PITH_OK;
}

/* [name] outputs = Op <attributes> (inputs). Attributes with graphs come behind the inputs, as
 * onnx's printer writes them: they take many lines. */
static pith_status print_parts(pith__syntax_printer *t, const print_node_head *h, pith_str bytes) {
    if (h->name.size) {
        pith__syntax_words(t, "[");
        pith__syntax_name(t, h->name);
        pith__syntax_words(t, "] ");
    }
    PITH_TRY(print_list(t, bytes, 2, print_name, "", " = "));
    PITH_TRY(print_operator(t, h));
    if (h->attrs && !h->graphs) PITH_TRY(print_list(t, bytes, 5, pith__syntax_put_attr, " <", ">"));
    PITH_TRY(print_list(t, bytes, 1, print_name, " (", ")"));
    if (h->graphs) PITH_TRY(print_list(t, bytes, 5, pith__syntax_put_attr, " <", ">"));
    return PITH_OK;
}

/* Errors name the node as all readers of models do, by its place in the list, its name and its
 * operator. */
static pith_status print_nodes(pith__syntax_printer *t, pith_str message, int number) {
    pith__wire w;
    pith__wire_field f;
    print_node_head h;
    size_t index = 0;
    pith__syntax_words(t, "{");
    t->indent += INDENT;
    pith__syntax_walk(&w, message, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(number)) continue;
        PITH_TRY(pith__stop_check(t->sink->stop, t->err));
        pith__syntax_line(t);
        PITH_TRY(print_read_head(t, &h, f.bytes));
        pith_status status = print_parts(t, &h, f.bytes);
        if (pith__status_stops(status)) return status;
        if (status)
            return pith__fail_at(t->err, status,
                                 "node %zu '" PITH_STR_FMT "' (" PITH_STR_FMT "): ", index,
                                 PITH_STR_ARG(h.name), PITH_STR_ARG(h.op));
        index++;
    }
    t->indent -= INDENT;
    pith__syntax_line(t);
    pith__syntax_words(t, "}");
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* ---- graphs ---- */

static pith_status print_initializer(pith__syntax_printer *t, pith_str bytes) {
    pith__syntax_line(t);
    return pith__syntax_put_tensor(t, bytes, true);
}

static pith_status print_inner_value(pith__syntax_printer *t, pith_str bytes) {
    pith__syntax_line(t);
    return print_value(t, bytes);
}

/* The graph's name, and what the syntax cannot say. Fields 1, 5, 11, 12 and 13 are printed by
 * others. */
static pith_status print_check_graph(pith__syntax_printer *t, pith_str *name, pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    *name = PITH_STR("");
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag >> 3) {
        case 2: *name = f.bytes; break;
        case 1:
        case 5:
        case 11:
        case 12:
        case 13: break;
        case 10: pith__syntax_omit(t, PITH_OMIT_DOCS); break;
        case 14: pith__syntax_omit(t, PITH_OMIT_QUANTIZATION); break;
        case 15:
            return pith__fail(t->err, PITH_ERR_UNSUPPORTED,
                              "the text syntax has no form for sparse initializers");
        case 16: pith__syntax_omit(t, PITH_OMIT_METADATA); break;
        default: pith__syntax_omit(t, PITH_OMIT_UNKNOWN);
        }
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* A graph behind its name. */
static pith_status print_graph(pith__syntax_printer *t, pith_str bytes) {
    size_t count = 0;
    if (t->depth++ == PITH_ONNX_DEPTH_MAX)
        return pith__fail(t->err, PITH_ERR_UNSUPPORTED, "graphs are nested more than %d deep",
                          PITH_ONNX_DEPTH_MAX);
    PITH_TRY(print_list(t, bytes, 11, print_value, " (", ") => "));
    PITH_TRY(print_list(t, bytes, 12, print_value, "(", ")"));
    pith__syntax_line(t);
    t->indent += INDENT;
    PITH_TRY(print_each(t, bytes, 5, print_initializer, "<", &count));
    PITH_TRY(print_each(t, bytes, 13, print_inner_value, "<", &count));
    t->indent -= INDENT;
    if (count) {
        pith__syntax_words(t, ">");
        pith__syntax_line(t);
    }
    PITH_TRY(print_nodes(t, bytes, 1));
    t->depth--;
    return PITH_OK;
}

/* onnx's parser takes a value for a graph only if it begins with an identifier that is no type and
 * no number. */
pith_status pith__syntax_subgraph(pith__syntax_printer *t, pith_str bytes) {
    pith_str name;
    PITH_TRY(print_check_graph(t, &name, bytes));
    const bool good = pith__syntax_is_identifier(name) && !pith__syntax_is_type(name) &&
                      !pith__syntax_is_float(name);
    if (!good) pith__syntax_omit(t, PITH_OMIT_NAMES);
    if (good)
        pith__syntax_write(t, name);
    else
        pith__syntax_words(t, "graph");
    t->indent += INDENT;
    PITH_TRY(print_graph(t, bytes));
    t->indent -= INDENT;
    return PITH_OK;
}

/* ---- functions ---- */

typedef struct print_function_head {
    pith_str name, doc, domain, overload;
    bool has_doc, values;
} print_function_head;

/* The header of a function, which is printed before the walk over its body. */
static pith_status print_read_function(pith__syntax_printer *t, print_function_head *h,
                                       pith_str bytes) {
    pith__wire w;
    pith__wire_field f;
    *h = (print_function_head){
        PITH_STR(""), PITH_STR(""), PITH_STR(""), PITH_STR(""), false, false
    };
    pith__syntax_walk(&w, bytes, t);
    while (pith__wire_next(&w, &f)) {
        switch (f.tag >> 3) {
        case 1: h->name = f.bytes; break;
        case 4:
        case 5:
        case 6:
        case 7:
        case 9:
        case 11: break;
        case 8:
            h->doc = f.bytes;
            h->has_doc = true;
            break;
        case 10: h->domain = f.bytes; break;
        case 12: h->values = true; break;
        case 13: h->overload = f.bytes; break;
        case 14: pith__syntax_omit(t, PITH_OMIT_METADATA); break;
        default: pith__syntax_omit(t, PITH_OMIT_UNKNOWN);
        }
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

static void print_key(pith__syntax_printer *t, const char *key, pith_str value) {
    pith__syntax_words(t, key);
    pith__syntax_quoted(t, value);
}

/* The header stands in front of the name, each entry in a line of its own. */
static pith_status print_function(pith__syntax_printer *t, pith_str bytes) {
    print_function_head h;
    size_t count = 0;
    PITH_TRY(print_read_function(t, &h, bytes));
    print_key(t, "<\n  domain: ", h.domain);
    if (h.overload.size) print_key(t, ",\n  overload: ", h.overload);
    PITH_TRY(print_list(t, bytes, 9, print_opset, ",\n  opset_import: [", "]"));
    if (h.has_doc) print_key(t, ",\n  doc_string: ", h.doc);
    pith__syntax_words(t, "\n>\n");
    pith__syntax_name(t, h.name);
    pith__syntax_words(t, " ");
    PITH_TRY(print_each(t, bytes, 6, print_name, "<", &count));
    PITH_TRY(print_each(t, bytes, 11, pith__syntax_put_attr, "<", &count));
    if (count) pith__syntax_words(t, "> ");
    PITH_TRY(print_list(t, bytes, 4, print_name, "(", ") => "));
    PITH_TRY(print_list(t, bytes, 5, print_name, "(", ")"));
    pith__syntax_line(t);
    if (h.values) {
        t->indent += INDENT;
        PITH_TRY(print_list(t, bytes, 12, print_inner_value, "<", ">"));
        t->indent -= INDENT;
        pith__syntax_line(t);
    }
    PITH_TRY(print_nodes(t, bytes, 7));
    pith__syntax_words(t, "\n");
    return PITH_OK;
}

/* ---- models ---- */

/* One field of a model's header. */
static void print_field(pith__syntax_printer *t, const pith__wire_field *f) {
    static const struct {
        uint32_t tag;
        const char *key;
    } keys[] = { { PITH_WIRE_BYTES(2), ",\n  producer_name: " },
                 { PITH_WIRE_BYTES(3), ",\n  producer_version: " },
                 { PITH_WIRE_BYTES(4), ",\n  domain: " },
                 { PITH_WIRE_VARINT(5), ",\n  model_version: " },
                 { PITH_WIRE_BYTES(6), ",\n  doc_string: " } };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].tag != f->tag) continue;
        if ((f->tag & 7) == 2) {
            print_key(t, keys[i].key, f->bytes);
        } else {
            pith__syntax_words(t, keys[i].key);
            pith__syntax_int(t, (int64_t)f->value);
        }
    }
}

/* Model-level fields that the syntax has no place for: training_info (20), configurations (26), and
 * whatever onnx.proto does not number. */
static pith_status print_check_model(pith__syntax_printer *t, pith_str *graph, int64_t *version,
                                     bool *metadata, pith_str model) {
    pith__wire w;
    pith__wire_field f;
    *graph = (pith_str){ NULL, 0 };
    *version = 0;
    pith__syntax_walk(&w, model, t);
    while (pith__wire_next(&w, &f)) {
        const uint32_t number = f.tag >> 3;
        if (f.tag == PITH_WIRE_VARINT(1)) *version = (int64_t)f.value;
        if (f.tag == PITH_WIRE_BYTES(7)) *graph = f.bytes;
        if (f.tag == PITH_WIRE_BYTES(14)) *metadata = true;
        if (number == 20) pith__syntax_omit(t, PITH_OMIT_TRAINING);
        if (number == 26) pith__syntax_omit(t, PITH_OMIT_DEVICES);
        if ((number > 8 && number != 14 && number != 20 && number < 25) || number > 26)
            pith__syntax_omit(t, PITH_OMIT_UNKNOWN);
    }
    if (w.failed) return PITH_ERR_FORMAT;
    if (!graph->data) return pith__fail(t->err, PITH_ERR_FORMAT, "the model has no graph");
    return PITH_OK;
}

/* Functions follow the graph in the text, whatever their place in the file. */
static pith_status print_functions(pith__syntax_printer *t, pith_str model) {
    pith__wire w;
    pith__wire_field f;
    pith__syntax_walk(&w, model, t);
    while (pith__wire_next(&w, &f)) {
        if (f.tag != PITH_WIRE_BYTES(25)) continue;
        pith__syntax_words(t, "\n");
        pith_status status = print_function(t, f.bytes);
        if (status) return pith__fail_at(t->err, status, "a function: ");
    }
    return w.failed ? PITH_ERR_FORMAT : PITH_OK;
}

/* Fields of the header are printed in the order of the file, after the version and the opsets. */
static pith_status print_model(pith__syntax_printer *t, pith_str model) {
    pith__wire w;
    pith__wire_field f;
    pith_str graph, name;
    int64_t version;
    bool metadata = false;
    PITH_TRY(print_check_model(t, &graph, &version, &metadata, model));
    pith__syntax_words(t, "<\n  ir_version: ");
    pith__syntax_int(t, version);
    PITH_TRY(print_list(t, model, 8, print_opset, ",\n  opset_import: [", "]"));
    pith__syntax_walk(&w, model, t);
    while (pith__wire_next(&w, &f)) print_field(t, &f);
    if (metadata)
        PITH_TRY(print_list(t, model, 14, pith__syntax_entry, ",\n  metadata_props: [", "]"));
    pith__syntax_words(t, "\n>\n");
    PITH_TRY(print_check_graph(t, &name, graph));
    pith__syntax_name(t, name);
    PITH_TRY(print_graph(t, graph));
    pith__syntax_words(t, "\n");
    return print_functions(t, model);
}

static pith_status print_twice(pith__syntax_printer *t, pith_str model) {
    t->checking = true;
    PITH_TRY(print_model(t, model));
    t->checking = false;
    PITH_TRY(print_model(t, model));
    print_flush(t);
    return pith__out_status(&t->sink->out, "the text", t->err);
}

bool pith__onnx_is_text(pith_str bytes) {
    /* A ModelProto nearly always begins with its version, byte 8, and never with these letters. */
    size_t i = 0;
    while (i < bytes.size &&
           (bytes.data[i] == ' ' || (bytes.data[i] >= '\t' && bytes.data[i] <= '\r')))
        i++;
    if (i == bytes.size) return false;
    if (bytes.data[i] == '<' || bytes.data[i] == '#') return true;
    const size_t first = i;
    while (i < bytes.size && i < first + 64)
        if ((unsigned char)bytes.data[i] < ' ' && bytes.data[i] != '\n' && bytes.data[i] != '\t' &&
            bytes.data[i] != '\r')
            return false;
        else
            i++;
    return true;
}

pith_status pith__onnx_print(pith__syntax_sink *sink, pith_str model, pith__arena *scratch,
                             pith_error *err) {
    pith__syntax_printer *t = pith__arena_alloc(scratch, sizeof *t);
    if (!t) return pith__fail_memory(err, sizeof *t);
    *t = (pith__syntax_printer){ .sink = sink, .scratch = scratch, .err = err, .base = model.data };
    PITH_TRY(pith__decimal_begin(&t->decimal, err));
    pith_status status = print_twice(t, model);
    pith__decimal_end(&t->decimal);
    return status;
}
