/* rdb_describe.c - what is in a database, as JSON for people and programs. */
#include <stdio.h>

#include "base/json_write.h"
#include "base/str.h"
#include "relational/json_number.h"
#include "relational/rdb.h"

void pith_json_key_double(pith_json_out *out, const char *name, double x) {
    char text[40];
    pith_json_key(out, name);
    snprintf(text, sizeof text, "%.9g", x);
    for (char *p = text; *p; p++) /* the host's locale may have another decimal point */
        if (!strchr("0123456789+-e", *p)) *p = *p >= 'a' && *p <= 'z' ? '0' : '.';
    pith_json_put(out, x - x == 0 ? text : "null");
}

static void describe_column(pith_json_out *j, const pith_rdb_table *t, const pith_rdb_column *c) {
    pith_json_separate(j);
    pith_json_open(j, "{");
    pith_json_key_string(j, "name", c->name);
    pith_json_key_string(j, "stype", pith_str_of(pith_stype_names[c->stype]));
    pith_json_key_int(j, "nulls", (int64_t)c->nulls);
    if (c->stype != PITH_STYPE_TEXT && c->stype != PITH_STYPE_CATEGORICAL) {
        pith_json_key_double(j, "mean", c->mean);
        pith_json_key_double(j, "deviation", c->sd);
        pith_json_key_bool(j, "logarithm", c->log);
    }
    if (c->known_column >= 0) pith_json_key_string(j, "known_at", t->columns[c->known_column].name);
    if (c->known_column == PITH_KNOWN_ROW_TIME) pith_json_key_string(j, "known_at", PITH_STR("time of the row"));
    if (c->known_delay) pith_json_key_int(j, "known_delay_seconds", c->known_delay);
    pith_json_close(j, "}");
}

static void describe_table(pith_json_out *j, const pith_rdb_table *t) {
    pith_json_separate(j);
    pith_json_open(j, "{");
    pith_json_key_string(j, "name", t->name);
    pith_json_key_int(j, "rows", t->rows);
    if (t->time_column >= 0) pith_json_key_string(j, "time", t->columns[t->time_column].name);
    pith_json_key(j, "columns");
    pith_json_open(j, "[");
    for (uint32_t c = 0; c < t->column_count; c++) describe_column(j, t, &t->columns[c]);
    pith_json_close(j, "]");
    pith_json_close(j, "}");
}

static void describe_task(pith_json_out *j, const pith_rdb *rdb, const pith_rdb_task *task) {
    static const char *const parts[] = { "train", "validation", "test", "none" };
    int64_t counts[4] = { 0 };
    for (uint32_t r = 0; r < rdb->tables[task->table].rows; r++) counts[pith_rdb_split(rdb, task, r)]++;
    pith_json_separate(j);
    pith_json_open(j, "{");
    pith_json_key_string(j, "name", task->name);
    pith_json_key_string(j, "table", rdb->tables[task->table].name);
    pith_json_key_string(j, "target", rdb->tables[task->table].columns[task->column].name);
    for (int i = 0; i < 4; i++) pith_json_key_int(j, parts[i], counts[i]);
    pith_json_close(j, "}");
}

void pith_rdb_describe(const pith_rdb *rdb, void (*write)(void *user, const char *text, size_t size), void *user) {
    pith_json_out out = { write, user, false }, *j = &out;
    pith_json_open(j, "{");
    pith_json_key_string(j, "name", rdb->name);
    pith_json_key_string(j, "embedder", rdb->embedder);
    pith_json_key_int(j, "dim", rdb->dim);
    pith_json_key_int(j, "texts", rdb->string_count);
    pith_json_key(j, "tables");
    pith_json_open(j, "[");
    for (uint32_t i = 0; i < rdb->table_count; i++) describe_table(j, &rdb->tables[i]);
    pith_json_close(j, "]");
    pith_json_key(j, "links");
    pith_json_open(j, "[");
    for (uint32_t i = 0; i < rdb->link_count; i++) {
        pith_json_separate(j);
        pith_json_open(j, "{");
        pith_json_key_string(j, "name", rdb->links[i].name);
        pith_json_key_string(j, "child", rdb->tables[rdb->links[i].child].name);
        pith_json_key_string(j, "parent", rdb->tables[rdb->links[i].parent].name);
        pith_json_key_int(j, "nulls", (int64_t)rdb->links[i].nulls);
        pith_json_key_int(j, "dangling", (int64_t)rdb->links[i].dangling);
        pith_json_close(j, "}");
    }
    pith_json_close(j, "]");
    pith_json_key(j, "tasks");
    pith_json_open(j, "[");
    for (uint32_t i = 0; i < rdb->task_count; i++) describe_task(j, rdb, &rdb->tasks[i]);
    pith_json_close(j, "]");
    pith_json_key(j, "warnings");
    pith_json_open(j, "[");
    for (uint32_t i = 0; i < rdb->warning_count; i++) {
        pith_json_separate(j);
        pith_json_put_string(j, rdb->warnings[i]);
    }
    pith_json_close(j, "]");
    pith_json_close(j, "}");
}
