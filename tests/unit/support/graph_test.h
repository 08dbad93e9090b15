/* graph_test.h - what the tests that build graphs share: a graph with room for a few inputs and
 * outputs, the steps of filling it, and a fixture around it that finds leaks. */
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
static inline pith__graph *graph_new(pith__arena *arena, pith__graph *parent, pith_error *err) {
    pith__graph *graph = NULL;
    assert_int_equal(pith__graph_create(&graph, arena, parent, err), PITH_OK);
    graph->inputs = pith__arena_array(arena, 4, sizeof *graph->inputs);
    graph->outputs = pith__arena_array(arena, 4, sizeof *graph->outputs);
    graph->captures = pith__arena_array(arena, 4, sizeof *graph->captures);
    return graph;
}

/* An input of which nothing is known. */
static inline pith__value *graph_input(pith__graph *graph, const char *name) {
    return graph->inputs[graph->input_count++] =
               pith__graph_add_value(graph, pith__str_of(name), PITH_VALUE_INPUT);
}

/* dims: letters are symbols, digits numbers: "SH", "B4". */
static inline pith__value *graph_input_of(pith__graph *graph, const char *name, int dtype,
                                          const char *dims) {
    pith__value *value = graph_input(graph, name);
    value->hint = pith__arena_array(graph->arena, 1, sizeof *value->hint);
    pith__type_init(value->hint);
    value->hint->dtype = dtype;
    for (value->hint->rank = 0; dims[value->hint->rank]; value->hint->rank++) {
        char c = dims[value->hint->rank];
        pith_str letter = { &dims[value->hint->rank], 1 };
        value->hint->dims[value->hint->rank] =
            c >= '0' && c <= '9' ? c - '0' : pith__dim_symbol(graph->dims, letter);
    }
    return value;
}

static inline pith__value *graph_apply(pith__graph *graph, const char *op_type, pith__value *a,
                                       pith__value *b) {
    return pith__graph_add_node(graph, NULL, "", op_type, (pith__value *[]){ a, b }, b ? 2 : 1,
                                NULL, 1)
        ->outputs[0];
}

static inline void graph_output(pith__graph *graph, pith__value *value) {
    graph->outputs[graph->output_count++] = value;
    value->output_uses++;
}

/* ---- a graph under test ---- */

typedef struct fixture {
    counter count;
    pith_allocator allocator;
    pith__arena arena;
    pith__graph *graph;
    pith__plan *plan;
    pith__executor *executor;
    pith__executor_options options;
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
    pith__arena_init(&f->arena, &f->allocator);
    f->graph = graph_new(&f->arena, NULL, &f->err);
    f->log = (pith_log){ .write = fixture_warning, .user = f };
    f->graph->log = &f->log;
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state) {
    fixture *f = *state;
    pith__executor_destroy(f->executor);
    pith__arena_free(&f->arena);
    assert_int_equal(f->count.live, 0);
    free(f);
    return 0;
}

#endif
