/* graph_text.c - graphs as text, one line per node, and as Graphviz DOT. Names come from files: any
 * byte that could break a line or a quoted string is written as \xNN. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/formats/decimal.h"
#include "engine/graph/graph.h"

typedef struct out {
    pith__text_sink *sink;
    void *context;
} out;

static void dump_put(const out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void dump_put(const out *o, const char *format, ...) {
    char buffer[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (n > 0)
        o->sink(o->context, buffer, (size_t)n < sizeof buffer ? (size_t)n : sizeof buffer - 1);
}

static void dump_put_str(const out *o, pith_str s) {
    for (size_t i = 0; i < s.size; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F)
            dump_put(o, "\\x%02X", c);
        else
            o->sink(o->context, &s.data[i], 1);
    }
}

static void put_value(const out *o, const pith__value *value) {
    if (!value)
        dump_put(o, "-");
    else if (value->name.size)
        dump_put_str(o, value->name);
    else
        dump_put(o, "%%%" PRIu32, value->id);
}

static void put_type(const out *o, const pith__graph *graph, const pith__type *type) {
    if (type->dtype == PITH_SEQUENCE) dump_put(o, "sequence of ");
    int dtype =
        type->dtype == PITH_SEQUENCE || type->dtype == PITH_NONE ? type->item_dtype : type->dtype;
    dump_put(o, "%s[", dtype ? pith__dtype_name(dtype) : "?");
    for (int i = 0; i < type->rank; i++) {
        char text[128];
        dump_put(o, i ? ", " : "");
        dump_put_str(o,
                     pith__str_of(pith__dim_text(graph->dims, type->dims[i], text, sizeof text)));
    }
    dump_put(o, type->rank < 0 ? "...]" : "]");
}

static void dump_put_attr(const out *o, const pith__attr *attr) {
    char number[PITH_DECIMAL_CHARS];
    dump_put_str(o, attr->name);
    dump_put(o, "=");
    if (attr->reference.size) {
        dump_put(o, "@");
        dump_put_str(o, attr->reference);
        return;
    }
    switch (attr->kind) {
    case PITH_ATTR_FLOAT:
        pith__decimal_print(number, 9, (double)attr->real);
        dump_put(o, "%s", number);
        break;
    case PITH_ATTR_INT: dump_put(o, "%" PRId64, attr->integer); break;
    case PITH_ATTR_STRING: dump_put_str(o, attr->string); break;
    case PITH_ATTR_INTS:
        dump_put(o, "[");
        for (size_t i = 0; i < attr->count && i < 16; i++)
            dump_put(o, "%s%" PRId64, i ? ", " : "", attr->ints[i]);
        dump_put(o, attr->count > 16 ? ", ...]" : "]");
        break;
    case PITH_ATTR_GRAPH: dump_put(o, "{...}"); break;
    default: dump_put(o, "..."); break;
    }
}

static void dump(const pith__graph *graph, const out *o, int indent) {
    for (size_t i = 0; i < graph->input_count; i++) {
        dump_put(o, "%*sin ", indent, "");
        put_value(o, graph->inputs[i]);
        dump_put(o, " ");
        put_type(o, graph, &graph->inputs[i]->type);
        dump_put(o, "\n");
    }
    for (const pith__node *node = graph->first; node; node = node->next) {
        dump_put(o, "%*s", indent, "");
        for (int i = 0; i < node->output_count; i++) {
            dump_put(o, i ? ", " : "");
            put_value(o, node->outputs[i]);
            if (!node->outputs[i]) continue;
            dump_put(o, " ");
            put_type(o, graph, &node->outputs[i]->type);
        }
        dump_put(o, " = ");
        if (node->domain.size) {
            dump_put_str(o, node->domain);
            dump_put(o, ".");
        }
        dump_put_str(o, node->op_type);
        dump_put(o, "(");
        for (int i = 0; i < node->input_count; i++) {
            dump_put(o, i ? ", " : "");
            put_value(o, node->inputs[i]);
        }
        dump_put(o, ")");
        for (size_t i = 0; i < node->attr_count; i++) {
            dump_put(o, i ? ", " : " {");
            dump_put_attr(o, &node->attrs[i]);
        }
        dump_put(o, node->attr_count ? "}\n" : "\n");
        for (size_t i = 0; i < node->attr_count; i++) {
            if (node->attrs[i].kind != PITH_ATTR_GRAPH) continue;
            dump_put(o, "%*s", indent + 2, "");
            dump_put_str(o, node->attrs[i].name);
            dump_put(o, ":\n");
            dump(node->attrs[i].graph, o, indent + 4);
        }
    }
    for (size_t i = 0; i < graph->output_count; i++) {
        dump_put(o, "%*sout ", indent, "");
        put_value(o, graph->outputs[i]);
        dump_put(o, "\n");
    }
}

void pith__graph_dump(const pith__graph *graph, pith__text_sink *sink, void *context) {
    out o = { sink, context };
    dump(graph, &o, 0);
}

/* Nodes are n<position>, values v<id>; constants are left out. */
void pith__graph_dump_dot(const pith__graph *graph, pith__text_sink *sink, void *context) {
    out o = { sink, context };
    dump_put(&o, "digraph \"");
    dump_put_str(&o, graph->name);
    dump_put(&o, "\" {\n  node [shape=box];\n");
    for (size_t i = 0; i < graph->input_count; i++) {
        dump_put(&o, "  v%" PRIu32 " [shape=ellipse, label=\"", graph->inputs[i]->id);
        put_value(&o, graph->inputs[i]);
        dump_put(&o, "\"];\n");
    }
    size_t position = 0;
    for (const pith__node *node = graph->first; node; node = node->next, position++) {
        dump_put(&o, "  n%zu [label=\"", position);
        dump_put_str(&o, node->op_type);
        dump_put(&o, "\"];\n");
        for (int i = 0; i < node->input_count; i++) {
            const pith__value *value = node->inputs[i];
            if (value && value->kind != PITH_VALUE_CONST)
                dump_put(&o, "  v%" PRIu32 " -> n%zu;\n", value->id, position);
        }
        for (int i = 0; i < node->output_count; i++) {
            const pith__value *value = node->outputs[i];
            if (!value || (value->user_count == 0 && value->output_uses == 0)) continue;
            dump_put(&o, "  v%" PRIu32 " [shape=plaintext, label=\"", value->id);
            put_value(&o, value);
            dump_put(&o, " ");
            put_type(&o, graph, &value->type);
            dump_put(&o, "\"];\n  n%zu -> v%" PRIu32 ";\n", position, value->id);
        }
    }
    dump_put(&o, "}\n");
}
