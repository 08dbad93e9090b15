/* opt.c - the driver of the passes, and the report they write. See pass.h.
 *
 * A round runs every pass of the level once, in the order of select/passes.def. Rounds go on until
 * one changes nothing. After a pass that changed something, unused nodes are removed, types are
 * inferred again, and the graph's invariants are checked. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/left_out_pieces.h"
#include "base/piece_listener.h"
#include "base/text_out.h"
#include "engine/opt/pass.h"

/* The most rounds. Every pass makes the graph smaller or moves it towards one form, so a few rounds
 * suffice. The bound stops two passes that undo each other. */
#define ROUNDS_MAX 16

static pith_status run_in(pith__opt *o, const pith__pass *pass, size_t *changes);

/* Exact clean-ups run in the graphs that nodes own as well: what folds to a constant outside of an
 * If is one inside. */
static pith_status run_in_subgraphs(pith__opt *o, const pith__pass *pass, size_t *changes) {
    for (const pith__node *node = o->graph->first; node; node = node->next) {
        for (size_t i = 0; i < node->attr_count; i++) {
            if (node->attrs[i].kind != PITH_ATTR_GRAPH || node->attrs[i].graph->fault.size)
                continue;
            pith__opt inner = *o;
            inner.graph = node->attrs[i].graph;
            pith_status status = run_in(&inner, pass, changes);
            char place[256];
            if (pith__status_stops(status)) return status;
            if (status)
                return pith__fail_at(o->err, status,
                                     "%s: ", pith__node_place(node, place, sizeof place));
        }
    }
    return PITH_OK;
}

static pith_status run_in(pith__opt *o, const pith__pass *pass, size_t *changes) {
    size_t own = 0;
    PITH_TRY(pass->run(o, &own));
    *changes += own;
    return pass->level == 1 ? run_in_subgraphs(o, pass, changes) : PITH_OK;
}

static pith_status run_pass(pith__opt *o, const pith__pass *pass, size_t *changes) {
    *changes = 0;
    PITH_TRY(pith__stop_check(pith__graph_stop(o->graph), o->err));
    pith_status status = run_in(o, pass, changes);
    if (pith__status_stops(status)) return status;
    if (status) return pith__fail_at(o->err, status, "pass %s: ", pass->name);
    if (*changes == 0) return PITH_OK;
    pith__piece_used(pass);
    pith__graph_sweep(o->graph);
    status = pith__ops_infer(o->graph, false, o->err);
    if (pith__status_stops(status)) return status;
    if (status) return pith__fail_at(o->err, status, "after pass %s: ", pass->name);
    assert(pith__graph_check(o->graph, NULL) != PITH_ERR_FORMAT); /* it may be out of memory */
    return PITH_OK;
}

/* Near misses of an earlier round: what still is one is met again. */
static void forget_misses(pith__report *report) {
    size_t kept = 0;
    if (!report) return;
    for (size_t i = 0; i < report->count; i++)
        if (report->lines[i].done) report->lines[kept++] = report->lines[i];
    report->count = kept;
}

/* A name that is no pass's is an error that lists them. */
static pith_status check_name(const pith__opt *o, const char *name) {
    char names[1000];
    pith__text_out out = pith__text_begin(names, sizeof names);
    for (size_t i = 0; i < pith__pass_table_count; i++) {
        if (pith__str_is(pith__str_of(pith__pass_table[i]->name), name)) return PITH_OK;
        pith__text_put(&out, "%s%s", i ? ", " : "", pith__pass_table[i]->name);
    }
    PITH_TRY(pith__piece_check("passes", pith__str_of(name), o->err));
    return pith__fail(o->err, PITH_ERR_ARGUMENT,
                      "pith_open_options.stop_after: there is no pass '%s'; the passes are %s",
                      name, names);
}

size_t pith__opt_runs_max(void) { return ROUNDS_MAX * pith__pass_table_count; }

bool pith__opt_without(const pith__opt_limits *limits, const char *name) {
    const size_t count = limits ? limits->without_count : 0;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(limits->without[i], name)) return true;
    return false;
}

/* Rounds of all passes in the order of the list, until one changes nothing: a fusion may uncover
 * constants, and folding them another fusion. ROUNDS_MAX bounds the rounds, whatever passes do. */
pith_status pith__opt_run(pith__opt *o, const char *stop_after) {
    if (stop_after) PITH_TRY(check_name(o, stop_after));
    pith__graph_sweep(o->graph);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        size_t total = 0;
        forget_misses(o->report);
        for (size_t i = 0; i < pith__pass_table_count; i++) {
            const pith__pass *pass = pith__pass_table[i];
            if (o->limits && (size_t)round * pith__pass_table_count + i >= o->limits->runs)
                return PITH_OK;
            if (pass->level > o->level || (pass->once && round > 0) ||
                pith__opt_without(o->limits, pass->name))
                continue;
            size_t changes;
            PITH_TRY(run_pass(o, pass, &changes));
            total += changes;
            if (stop_after && round == 0 && pith__str_is(pith__str_of(pass->name), stop_after))
                return PITH_OK;
        }
        if (total == 0) break;
    }
    return PITH_OK;
}

void pith__report_add(pith__report *report, bool done, const char *what, const char *format, ...) {
    if (!report) return;
    char text[512];
    va_list args;
    va_start(args, format);
    pith__text_format(text, sizeof text, format, args);
    va_end(args);
    pith_str line = { text, strlen(text) };
    void *lines = report->lines;
    if (!pith__arena_grow(report->arena, &lines, report->count, &report->capacity,
                          sizeof *report->lines))
        return;
    report->lines = lines;
    line = pith__arena_str(report->arena, line);
    if (!line.data) return;
    report->lines[report->count].done = done;
    report->lines[report->count].what = what;
    report->lines[report->count++].text = line;
}
