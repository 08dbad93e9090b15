/* statistics.c - reads the counters of a model, and writes them as JSON or as a table. */
#include "models/describe/statistics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/formats/json_write.h"
#include "base/formats/decimal.h"

pith_status pith__model_read_statistics(pith_statistics *statistics, const pith_model *model,
                                        size_t idle, pith_error *err) {
    pith_statistics s = PITH_STATISTICS_INIT;
    size_t theirs = statistics->size;
    if (theirs < sizeof theirs)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the statistics have no size; initialise them with PITH_STATISTICS_INIT");
    const pith__account *a = &model->account;
#define COUNTER(name, unit) s.name = pith__counted(&a->counters, PITH_COUNT_##name);
#include "base/counters.def"
#undef COUNTER
    s.bytes = atomic_load_explicit(&a->held, memory_order_relaxed);
    s.peak_bytes = atomic_load_explicit(&a->peak, memory_order_relaxed);
    s.pool_bytes = atomic_load_explicit(&a->pool.bytes, memory_order_relaxed);
    s.pool_blocks = pith__pool_count(&a->pool);
    s.sessions_idle = idle + atomic_load_explicit(&model->pooled_idle, memory_order_relaxed);
    s.size = theirs;
    memcpy(statistics, &s, theirs < sizeof s ? theirs : sizeof s);
    return PITH_OK;
}

void pith__model_clear_statistics(const pith_model *model) {
    pith__account *a = (pith__account *)&model->account;
    pith__counters *c = &a->counters;
    atomic_store_explicit(&a->peak, atomic_load_explicit(&a->held, memory_order_relaxed),
                          memory_order_relaxed);
    for (int i = 0; i < PITH_COUNTER_COUNT; i++)
        atomic_store_explicit(&c->values[i], 0, memory_order_relaxed);
}

/* ---- writing ---- */

typedef struct stat_line {
    const char *name;
    enum { STAT_COUNT, STAT_TIME, STAT_BYTES, STAT_MOST } kind;
    uint64_t number;
} stat_line;

/* A number that follows from two others: over / under. */
typedef struct stat_ratio {
    const char *name;
    uint64_t over, under;
} stat_ratio;

typedef struct stat_writer {
    pith__json_out json;
    bool table;
} stat_writer;

/* A line of a table or a member of an object, by the form that was asked for. */
static void stat_put(stat_writer *w, const char *name, const char *value) {
    char line[100];
    if (!w->table) {
        pith__json_key(&w->json, name);
        pith__json_put(&w->json, value);
        return;
    }
    snprintf(line, sizeof line, "%-26s %s\n", name, value);
    pith__out_put(w->json.out, line, strlen(line));
}

/* Times are nanoseconds in JSON and milliseconds in tables, where the name loses its "_ns". */
static void stat_put_line(stat_writer *w, const stat_line *line) {
    char value[40];
    if (w->table && line->kind == STAT_TIME) {
        size_t n = strlen(line->name) - strlen("_ns");
        char name[40];
        snprintf(name, sizeof name, "%.*s", (int)n, line->name);
        snprintf(value, sizeof value, "%.3f ms", (double)line->number / 1e6);
        stat_put(w, name, value);
    } else {
        snprintf(value, sizeof value, "%" PRIu64, line->number);
        stat_put(w, line->name, value);
    }
}

static void stat_put_ratio(stat_writer *w, const stat_ratio *r) {
    char value[40];
    if (r->under)
        pith__decimal_print(value, 6, (double)r->over / (double)r->under);
    else
        snprintf(value, sizeof value, "%s", w->table ? "-" : "null");
    stat_put(w, r->name, value);
}

/* Every number of base/counters.def is written, so a new counter needs no line here. */
pith_status pith__statistics_put(const pith_statistics *theirs, pith_statistics_form form,
                                 const pith_writer *writer, pith_error *err) {
    pith_statistics s = PITH_STATISTICS_INIT;
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TAKE_OPTIONS(s, theirs, err);
    if (form != PITH_STATISTICS_JSON && form != PITH_STATISTICS_TEXT)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no form %d of statistics", (int)form);
    const stat_line lines[] = {
#define COUNTER(name, unit) { #name, STAT_##unit, s.name },
#include "base/counters.def"
#undef COUNTER
        { "bytes", STAT_BYTES, s.bytes },
        { "peak_bytes", STAT_BYTES, s.peak_bytes },
        { "pool_blocks", STAT_COUNT, s.pool_blocks },
        { "pool_bytes", STAT_BYTES, s.pool_bytes },
        { "sessions_idle", STAT_COUNT, s.sessions_idle },
    };
    const stat_ratio ratios[] = {
        { "pool_hit_ratio", s.pool_hits, s.pool_hits + s.pool_misses },
        { "buffer_reuse_ratio", s.buffers_reused, s.buffers_reused + s.buffers_made },
        { "plan_reuse_ratio", s.plans_reused, s.plans_reused + s.plans_made },
        { "zero_copy_ratio", s.tensors_bound, s.tensors_bound + s.tensors_copied },
        { "device_success_ratio", s.device_successes, s.device_successes + s.device_fallbacks },
        { "allocation_mean_ns", s.allocation_ns, s.allocations },
        { "batch_mean_tokens", s.tokens + s.padded_tokens, s.batches },
        { "cpu_utilisation", s.cpu_ns, s.thread_ns },
    };
    pith__out out = { .writer = writer };
    stat_writer w = { { &out, false }, form == PITH_STATISTICS_TEXT };
    if (!w.table) pith__json_open(&w.json, "{");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) stat_put_line(&w, &lines[i]);
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) stat_put_ratio(&w, &ratios[i]);
    if (!w.table) pith__json_close(&w.json, "}");
    return pith__out_status(&out, "the statistics", err);
}
