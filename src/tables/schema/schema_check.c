/* schema_check.c - whether the names in a schema exist and their kinds fit each other. */
#include "base/error.h"
#include "base/str.h"
#include "tables/schema/schema_check.h"

static pith_status check_names(const pith__table_schema *t, const pith__name_list *names,
                               const char *what, const char *path, pith_error *err) {
    for (size_t i = 0; i < names->count; i++)
        if (pith__schema_column(t, names->items[i]) == SIZE_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: table '" PITH_STR_FMT "' has no column '" PITH_STR_FMT
                              "', which its %s names",
                              path, PITH_STR_ARG(t->name), PITH_STR_ARG(names->items[i]), what);
    return PITH_OK;
}

/* A column that must be a timestamp. */
static pith_status check_time(const pith__table_schema *t, pith_str name, const char *what,
                              const char *path, pith_error *err) {
    pith__name_list one = { &name, 1 };
    if (!name.size) return PITH_OK;
    PITH_TRY(check_names(t, &one, what, path, err));
    if (t->columns[pith__schema_column(t, name)].stype != PITH_STYPE_TIMESTAMP)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: column '" PITH_STR_FMT "' of table '" PITH_STR_FMT
                          "' is a %s, but its stype is not timestamp",
                          path, PITH_STR_ARG(name), PITH_STR_ARG(t->name), what);
    return PITH_OK;
}

static pith_status check_table(const pith__schema *s, const pith__table_schema *t, const char *path,
                               pith_error *err) {
    if (!t->file.size)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: table '" PITH_STR_FMT "' names no file", path,
                          PITH_STR_ARG(t->name));
    PITH_TRY(check_names(t, &t->primary_key, "primary_key", path, err));
    PITH_TRY(check_time(t, t->temporal_column, "temporal_column", path, err));
    if (t->always && t->temporal_column.size)
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "%s: table '" PITH_STR_FMT
            "' has a temporal_column, which says when its rows are known, and known: always",
            path, PITH_STR_ARG(t->name));
    for (size_t i = 0; i < t->column_count; i++) {
        const pith__known_at *k = &t->columns[i].known_at;
        PITH_TRY(check_time(t, k->column, "known_at", path, err));
        if (k->set && !k->column.size && !t->temporal_column.size)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: known_at of column '" PITH_STR_FMT
                              "' counts from the row's time, but table '" PITH_STR_FMT
                              "' has no temporal_column",
                              path, PITH_STR_ARG(t->columns[i].name), PITH_STR_ARG(t->name));
    }
    for (size_t i = 0; i < t->link_count; i++) {
        const pith__link_schema *link = &t->links[i];
        const size_t parent = pith__schema_table(s, link->parent);
        PITH_TRY(check_names(t, &link->columns, "foreign key", path, err));
        if (parent == SIZE_MAX)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: a foreign key of table '" PITH_STR_FMT "' goes to '" PITH_STR_FMT
                              "', which is no table",
                              path, PITH_STR_ARG(t->name), PITH_STR_ARG(link->parent));
        PITH_TRY(check_names(&s->tables[parent], &link->parent_columns, "foreign key", path, err));
    }
    return PITH_OK;
}

static pith_status check_window(const pith__schema *s, const pith__task_schema *task,
                                const char *path, pith_error *err) {
    const size_t anchor = pith__schema_table(s, task->anchor_table),
                 child = pith__schema_table(s, task->window.table);
    if (child == SIZE_MAX)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: the window of task '" PITH_STR_FMT "' counts rows of '" PITH_STR_FMT
                          "', which is no table",
                          path, PITH_STR_ARG(task->name), PITH_STR_ARG(task->window.table));
    const pith__table_schema *t = &s->tables[child];
    bool linked = false;
    for (size_t i = 0; i < t->link_count; i++)
        linked |= pith__str_eq(t->links[i].parent, s->tables[anchor].name);
    if (!linked || !t->temporal_column.size)
        return pith__fail(
            err, PITH_ERR_FORMAT,
            "%s: the window of task '" PITH_STR_FMT
            "' needs a table with a temporal_column and a foreign key to the anchor table",
            path, PITH_STR_ARG(task->name));
    if (task->rank && pith__str_is(task->window.aggregate, "any"))
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: task '" PITH_STR_FMT
                          "' asks for a rank, but its window for yes or no",
                          path, PITH_STR_ARG(task->name));
    if (task->window.column.size) {
        const size_t c = pith__schema_column(t, task->window.column);
        if (c == SIZE_MAX || t->columns[c].stype != PITH_STYPE_NUMERICAL)
            return pith__fail(err, PITH_ERR_FORMAT,
                              "%s: the window of task '" PITH_STR_FMT "' needs a numerical column",
                              path, PITH_STR_ARG(task->name));
    }
    return PITH_OK;
}

static pith_status check_target(const pith__task_schema *task, pith__stype stype, const char *path,
                                pith_error *err) {
    if (stype != PITH_STYPE_BOOLEAN && stype != PITH_STYPE_NUMERICAL &&
        stype != PITH_STYPE_CATEGORICAL)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: the target of task '" PITH_STR_FMT
                          "' is %s; targets are boolean, numerical or categorical",
                          path, PITH_STR_ARG(task->name), pith__stype_names[stype]);
    if (task->rank && stype != PITH_STYPE_NUMERICAL)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: task '" PITH_STR_FMT "' asks for a rank, but its target is %s", path,
                          PITH_STR_ARG(task->name), pith__stype_names[stype]);
    return PITH_OK;
}

static pith_status check_query(const pith__task_schema *task, const char *path, pith_error *err) {
    if (task->target_stype == PITH_STYPE_COUNT)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: task '" PITH_STR_FMT "' has a query and needs a target_stype", path,
                          PITH_STR_ARG(task->name));
    return check_target(task, task->target_stype, path, err);
}

static pith_status check_task(const pith__schema *s, const pith__task_schema *task,
                              const char *path, pith_error *err) {
    const size_t at = pith__schema_table(s, task->anchor_table);
    if (at == SIZE_MAX)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: the anchor_table of task '" PITH_STR_FMT "' is '" PITH_STR_FMT
                          "', which is no table",
                          path, PITH_STR_ARG(task->name), PITH_STR_ARG(task->anchor_table));
    if (task->window.set) return check_window(s, task, path, err);
    if (task->query.size) return check_query(task, path, err);
    const pith__table_schema *t = &s->tables[at];
    const size_t c = pith__schema_column(t, task->target_column);
    if (c == SIZE_MAX)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: the target of task '" PITH_STR_FMT "' is column '" PITH_STR_FMT
                          "', which table '" PITH_STR_FMT "' does not have",
                          path, PITH_STR_ARG(task->name), PITH_STR_ARG(task->target_column),
                          PITH_STR_ARG(t->name));
    const pith__stype stype = t->columns[c].stype;
    if (task->target_stype != PITH_STYPE_COUNT && task->target_stype != stype)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: task '" PITH_STR_FMT "' asks for a %s, but its column is %s", path,
                          PITH_STR_ARG(task->name), pith__stype_names[task->target_stype],
                          pith__stype_names[stype]);
    PITH_TRY(check_target(task, stype, path, err));
    PITH_TRY(check_time(t, task->time_column, "observation_time_column", path, err));
    if (task->split == PITH_SPLIT_TIME && !task->time_column.size && !t->temporal_column.size)
        return pith__fail(err, PITH_ERR_FORMAT,
                          "%s: task '" PITH_STR_FMT "' splits by time, but its rows have none",
                          path, PITH_STR_ARG(task->name));
    return PITH_OK;
}

pith_status pith__schema_check(const pith__schema *schema, const char *path, pith_error *err) {
    if (!schema->table_count)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: the schema has no tables", path);
    for (size_t i = 0; i < schema->table_count; i++)
        PITH_TRY(check_table(schema, &schema->tables[i], path, err));
    for (size_t i = 0; i < schema->task_count; i++)
        PITH_TRY(check_task(schema, &schema->tasks[i], path, err));
    return PITH_OK;
}
