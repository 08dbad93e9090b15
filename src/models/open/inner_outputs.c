/* inner_outputs.c - see inner_outputs.h.
 *
 * A protobuf message may come in several pieces, which are merged: single fields by the last one,
 * lists end to end. So the file with more outputs is the file itself, and behind it a piece of its
 * graph that has nothing but these. */
#include "models/open/inner_outputs.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "formats/onnx/wire_out.h"

/* Numbers of fields in onnx.proto. */
enum { INNER_MODEL_GRAPH = 7, INNER_GRAPH_OUTPUT = 12, INNER_OUTPUT_NAME = 1 };

static bool inner_is_wanted(const pith__value *v) {
    return v && v->kind == PITH_VALUE_NODE && v->name.size;
}

static size_t inner_count(const pith__graph *g) {
    size_t count = g->output_count;
    for (const pith__node *node = g->first; node; node = node->next)
        count += (size_t)node->output_count;
    return count;
}

/* The outputs of the file count as inner values too, at the place of their node. */
pith_status pith__inner_add(pith__graph *g, pith_error *err) {
    const size_t most = inner_count(g), before = g->output_count;
    pith__value **outputs = pith__arena_array(g->arena, most, sizeof *outputs);
    pith_str *names = pith__arena_array(g->arena, most, sizeof *names);
    size_t count = 0;
    if (!outputs || !names) return pith__fail_memory(err, most * sizeof *names);
    for (const pith__node *node = g->first; node; node = node->next)
        for (int i = 0; i < node->output_count; i++)
            if (inner_is_wanted(node->outputs[i])) outputs[count++] = node->outputs[i];
    for (size_t i = 0; i < before; i++)
        if (!inner_is_wanted(g->outputs[i])) outputs[count++] = g->outputs[i];
    for (size_t i = 0; i < before; i++) g->outputs[i]->output_uses--;
    for (size_t i = 0; i < count; i++) {
        outputs[i]->output_uses++;
        names[i] = outputs[i]->name;
    }
    g->outputs = outputs;
    g->output_names = names;
    g->output_count = count;
    return PITH_OK;
}

/* Sequences and strings could not be compared, and no caller asks for them. */
void pith__inner_settle(pith__graph *g) {
    pith_str *names = (pith_str *)(uintptr_t)g->output_names; /* made above */
    size_t count = 0;
    for (size_t i = 0; i < g->output_count; i++) {
        pith__value *v = g->outputs[i];
        const int dtype = v->type.dtype;
        if (dtype == PITH_UNDEFINED || dtype == PITH_STRING || dtype >= PITH_DTYPE_COUNT) {
            v->output_uses--;
            continue;
        }
        g->outputs[count] = v;
        names[count++] = names[i];
    }
    g->output_count = count;
}

/* ---- the file ---- */

static void inner_put_output(pith__wire_out *out, const void *name) {
    const pith_str *s = name;
    pith__wire_put_bytes(out, INNER_OUTPUT_NAME, s->data, s->size);
}

typedef struct inner_outputs {
    const pith__graph *graph;
    const bool *there; /* [output_count]: the file has it */
} inner_outputs;

static void inner_put_graph(pith__wire_out *out, const void *message) {
    const inner_outputs *o = message;
    for (size_t i = 0; i < o->graph->output_count; i++)
        if (!o->there[i])
            pith__wire_put_message(out, INNER_GRAPH_OUTPUT, inner_put_output,
                                   &o->graph->output_names[i]);
}

typedef struct inner_bytes {
    char *data;
    size_t size;
} inner_bytes;

static int32_t inner_write(void *user, const void *bytes, size_t size) {
    inner_bytes *b = user;
    memcpy(b->data + b->size, bytes, size);
    b->size += size;
    return 0;
}

/* Another runtime reads the file itself, so the new outputs must be in it. A protobuf message is
 * continued by appending to it: fields of a second GraphProto are merged into the first. Source:
 * protobuf.dev, "Encoding", last one wins and merging. */
pith_status pith__inner_file(pith_str *bytes, pith_model *m, pith_error *err) {
    const pith_str file = m->source_bytes;
    bool *there = pith__arena_array(&m->arena, m->graph->output_count, sizeof *there);
    if (!there) return pith__fail_memory(err, m->graph->output_count);
    for (size_t i = 0; i < m->graph->output_count; i++)
        for (size_t k = 0; k < m->chosen_runtime.file_outputs && !there[i]; k++)
            there[i] = pith__str_eq(m->graph->output_names[i], m->chosen_runtime.file_names[k]);
    const inner_outputs outputs = { m->graph, there };
    pith__wire_out counted = { NULL, NULL, 0 };
    pith__wire_put_message(&counted, INNER_MODEL_GRAPH, inner_put_graph, &outputs);
    size_t whole;
    char *data = pith__add_overflows(file.size, counted.size, &whole)
                     ? NULL
                     : pith__arena_alloc(&m->arena, whole);
    if (!data) return pith__fail_memory(err, file.size);
    PITH_TRY(pith__copy_until(m->making.stop, data, file.data, file.size, err));
    inner_bytes made = { data + file.size, 0 };
    const pith_writer writer = { inner_write, NULL, &made };
    pith__out written = { .writer = &writer };
    pith__wire_out out = { &written, NULL, 0 };
    pith__wire_put_message(&out, INNER_MODEL_GRAPH, inner_put_graph, &outputs);
    *bytes = (pith_str){ data, whole };
    return PITH_OK;
}
