/* graph_test.h - what the tests that build graphs share: a graph with room for a few inputs and outputs, the steps of
 * filling it, and a fixture around it that finds leaks. */
#ifndef GRAPH_TEST_H
#define GRAPH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/exec/executor.h"
#include "failing_alloc.h"
#include "engine/ops/op.h"

/* Takes four inputs, outputs and captures at most. */
static inline pith_graph *graph_new(pith_arena *arena, pith_graph *parent, pith_error *err) {
    pith_graph *graph = NULL;
    assert_int_equal(pith_graph_create(&graph, arena, parent, err), PITH_OK);
    graph->inputs = pith_arena_array(arena, 4, sizeof *graph->inputs);
    graph->outputs = pith_arena_array(arena, 4, sizeof *graph->outputs);
    graph->captures = pith_arena_array(arena, 4, sizeof *graph->captures);
    return graph;
}

/* An input of which nothing is known. */
static inline pith_value *graph_input(pith_graph *graph, const char *name) {
    return graph->inputs[graph->input_count++] = pith_graph_add_value(graph, pith_str_of(name), PITH_VALUE_INPUT);
}

/* dims: letters are symbols, digits numbers: "SH", "B4". */
static inline pith_value *graph_input_of(pith_graph *graph, const char *name, int dtype, const char *dims) {
    pith_value *value = graph_input(graph, name);
    value->hint = pith_arena_array(graph->arena, 1, sizeof *value->hint);
    pith_type_init(value->hint);
    value->hint->dtype = dtype;
    for (value->hint->rank = 0; dims[value->hint->rank]; value->hint->rank++) {
        char c = dims[value->hint->rank];
        pith_str letter = { &dims[value->hint->rank], 1 };
        value->hint->dims[value->hint->rank] = c >= '0' && c <= '9' ? c - '0' : pith_dim_symbol(graph->dims, letter);
    }
    return value;
}

static inline pith_value *graph_apply(pith_graph *graph, const char *op_type, pith_value *a, pith_value *b) {
    return pith_graph_add_node(graph, NULL, "", op_type, (pith_value *[]){ a, b }, b ? 2 : 1, NULL, 1)->outputs[0];
}

static inline void graph_output(pith_graph *graph, pith_value *value) {
    graph->outputs[graph->output_count++] = value;
    value->output_uses++;
}

/* ---- a graph under test ---- */

typedef struct fixture {
    counter count;
    pith_allocator allocator;
    pith_arena arena;
    pith_graph *graph;
    pith_plan *plan;
    pith_executor *executor;
    pith_executor_options options;
    pith_error err;
    pith_log log;
    char warning[512]; /* the last one */
    int warnings;
} fixture;

static inline void fixture_warning(void *user, pith_log_level level, const char *text) {
    fixture *f = user;
    assert_int_equal(level, PITH_LOG_WARNING);
    snprintf(f->warning, sizeof f->warning, "%s", text);
    f->warnings++;
}

static inline int fixture_setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->allocator = (pith_allocator){ count_alloc, count_free, &f->count };
    f->options.allocator = &f->allocator;
    f->count.for_good = true;
    pith_arena_init(&f->arena, &f->allocator);
    f->graph = graph_new(&f->arena, NULL, &f->err);
    f->log = (pith_log){ .write = fixture_warning, .user = f };
    f->graph->log = &f->log;
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state) {
    fixture *f = *state;
    pith_executor_destroy(f->executor);
    pith_arena_free(&f->arena);
    assert_int_equal(f->count.live, 0);
    free(f);
    return 0;
}

#endif
