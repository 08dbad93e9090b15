/* rdb_describe.c - what is in a database, as JSON for people and programs. */
#include "base/error.h"
#include "base/formats/json_write.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/database/rdb.h"
#include "tables/database/rdb_figures.h"

/* The least and the greatest value, of columns that have an order. */
static void describe_range(pith__json_out *j, const pith__rdb_column *c,
                           const pith__rdb_figures *f) {
    if (!f->distinct) return;
    if (c->stype == PITH_STYPE_NUMERICAL) {
        pith__json_key_double(j, "least", f->least);
        pith__json_key_double(j, "greatest", f->greatest);
    } else if (c->stype == PITH_STYPE_TIMESTAMP) {
        pith__json_key_int(j, "least", f->first);
        pith__json_key_int(j, "greatest", f->last);
    }
}

static void describe_column(pith__json_out *j, const pith__rdb_table *t, const pith__rdb_column *c,
                            const pith__rdb_figures *f) {
    pith__json_separate(j);
    pith__json_open(j, "{");
    pith__json_key_string(j, "name", c->name);
    pith__json_key_string(j, "stype", pith__str_of(pith__stype_names[c->stype]));
    pith__json_key_int(j, "nulls", (int64_t)c->nulls);
    pith__json_key_int(j, "distinct", (int64_t)f->distinct);
    describe_range(j, c, f);
    if (c->stype != PITH_STYPE_TEXT && c->stype != PITH_STYPE_CATEGORICAL) {
        pith__json_key_double(j, "mean", c->mean);
        pith__json_key_double(j, "deviation", c->sd);
        pith__json_key_bool(j, "logarithm", c->log);
    }
    if (c->known_column >= 0)
        pith__json_key_string(j, "known_at", t->columns[c->known_column].name);
    if (c->known_column == PITH_KNOWN_ROW_TIME)
        pith__json_key_string(j, "known_at", PITH_STR("time of the row"));
    if (c->known_delay) pith__json_key_int(j, "known_delay_seconds", c->known_delay);
    pith__json_close(j, "}");
}

static void describe_table(pith__json_out *j, const pith__rdb_table *t,
                           const pith__rdb_figures *figures) {
    pith__json_separate(j);
    pith__json_open(j, "{");
    pith__json_key_string(j, "name", t->name);
    pith__json_key_int(j, "rows", t->rows);
    if (t->time_column >= 0) pith__json_key_string(j, "time", t->columns[t->time_column].name);
    if (t->times) pith__json_key_string(j, "time", PITH_STR("newest row that it names"));
    pith__json_key(j, "columns");
    pith__json_open(j, "[");
    for (uint32_t c = 0; c < t->column_count; c++)
        describe_column(j, t, &t->columns[c], &figures[c]);
    pith__json_close(j, "]");
    pith__json_close(j, "}");
}

/* Rows of the parts of a task. */
enum { DESCRIBE_PARTS = 4 };

static pith_status describe_count(int64_t *counts, const pith__rdb *rdb, const pith__rdb_task *task,
                                  pith__stop *stop, pith_error *err) {
    for (uint32_t r = 0; r < rdb->tables[task->table].rows; r++) {
        PITH_TRY_ROW(stop, r, err);
        counts[pith__rdb_split(rdb, task, r)]++;
    }
    return PITH_OK;
}

static void describe_task(pith__json_out *j, const pith__rdb *rdb, const pith__rdb_task *task,
                          const int64_t *counts) {
    static const char *const parts[DESCRIBE_PARTS] = { "train", "validation", "test", "none" };
    pith__json_separate(j);
    pith__json_open(j, "{");
    pith__json_key_string(j, "name", task->name);
    pith__json_key_string(j, "table", rdb->tables[task->table].name);
    pith__json_key_string(j, "target", rdb->tables[task->table].columns[task->column].name);
    for (int i = 0; i < DESCRIBE_PARTS; i++) pith__json_key_int(j, parts[i], counts[i]);
    if (task->left_out) pith__json_key_int(j, "left_out", (int64_t)task->left_out);
    pith__json_close(j, "}");
}

static void describe_link(pith__json_out *j, const pith__rdb *rdb, const pith__rdb_link *link) {
    pith__json_separate(j);
    pith__json_open(j, "{");
    pith__json_key_string(j, "name", link->name);
    pith__json_key_string(j, "child", rdb->tables[link->child].name);
    pith__json_key_string(j, "parent", rdb->tables[link->parent].name);
    pith__json_key_int(j, "nulls", (int64_t)link->nulls);
    pith__json_key_int(j, "dangling", (int64_t)link->dangling);
    pith__json_close(j, "}");
}

/* What preprocessing warned of, and columns of one value that it did not name: it looks at numbers
 * in training rows. */
static void describe_warnings(pith__json_out *j, const pith__rdb *rdb,
                              const pith__rdb_figures *figures) {
    for (uint32_t i = 0; i < rdb->warning_count; i++) {
        pith__json_separate(j);
        pith__json_put_string(j, rdb->warnings[i]);
    }
    for (uint32_t t = 0; t < rdb->table_count; t++) {
        const pith__rdb_table *table = &rdb->tables[t];
        for (uint32_t c = 0; c < table->column_count; c++) {
            const pith__rdb_figures *f = &figures[table->first_cell + c];
            if (f->warning.size) pith__json_separate(j), pith__json_put_string(j, f->warning);
        }
    }
}

static void describe_database(pith__json_out *j, const pith__rdb *rdb,
                              const pith__rdb_figures *figures, const int64_t *counts) {
    pith__json_open(j, "{");
    pith__json_key_string(j, "name", rdb->name);
    pith__json_key_string(j, "embedder", rdb->embedder);
    pith__json_key_int(j, "dim", rdb->dim);
    pith__json_key_int(j, "texts", rdb->string_count);
    pith__json_key(j, "tables");
    pith__json_open(j, "[");
    for (uint32_t i = 0; i < rdb->table_count; i++)
        describe_table(j, &rdb->tables[i], figures + rdb->tables[i].first_cell);
    pith__json_close(j, "]");
    pith__json_key(j, "links");
    pith__json_open(j, "[");
    for (uint32_t i = 0; i < rdb->link_count; i++) describe_link(j, rdb, &rdb->links[i]);
    pith__json_close(j, "]");
    pith__json_key(j, "tasks");
    pith__json_open(j, "[");
    for (uint32_t i = 0; i < rdb->task_count; i++)
        describe_task(j, rdb, &rdb->tasks[i], counts + (size_t)i * DESCRIBE_PARTS);
    pith__json_close(j, "]");
    pith__json_key(j, "warnings");
    pith__json_open(j, "[");
    describe_warnings(j, rdb, figures);
    pith__json_close(j, "]");
    pith__json_close(j, "}");
}

/* All that can fail or last comes before the first byte. */
static pith_status describe_run(pith__out *bytes, const pith__rdb *rdb, pith__stop *stop,
                                pith__arena *arena, pith_error *err) {
    pith__json_out out = { bytes, false };
    pith__rdb_figures *figures;
    int64_t *counts =
        pith__arena_array(arena, (size_t)rdb->task_count + 1, DESCRIBE_PARTS * sizeof *counts);
    if (!counts) return pith__fail_memory(err, rdb->task_count * sizeof *counts);
    PITH_TRY(pith__rdb_figures_of(&figures, rdb, stop, arena, err));
    for (uint32_t i = 0; i < rdb->task_count; i++)
        PITH_TRY(
            describe_count(counts + (size_t)i * DESCRIBE_PARTS, rdb, &rdb->tasks[i], stop, err));
    describe_database(&out, rdb, figures, counts);
    return pith__out_status(bytes, "the description", err);
}

pith_status pith__rdb_describe(const pith__rdb *rdb, pith__stop *stop,
                               const pith_allocator *allocator, const pith_writer *writer,
                               pith_error *err) {
    pith__out out = { .writer = writer, .stop = stop };
    pith__arena arena;
    pith__arena_init(&arena, allocator);
    const pith_status status = describe_run(&out, rdb, stop, &arena, err);
    pith__arena_free(&arena);
    return status;
}
