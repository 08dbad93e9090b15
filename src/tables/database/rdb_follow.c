/* rdb_follow.c - a later database as a model reads it; see rdb_keep.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/database/rdb_keep.h"

/* Vectors of the same text by the same model differ by rounding; those of two models have nothing
 * in common. */
#define FOLLOW_NEAR 0.01

static pith_str follow_text(const pith__rdb *rdb, uint32_t string) {
    return (pith_str){ rdb->string_bytes + rdb->string_begin[string],
                       (size_t)(rdb->string_begin[string + 1] - rdb->string_begin[string]) };
}

/* Says how the databases differ. What is named: a table, and a column of it or nothing. */
static pith_status follow_differs(const pith__rdb_table *t, pith_str column, const char *how,
                                  pith_error *err) {
    return pith__fail(
        err, PITH_ERR_ARGUMENT,
        "the schema is not the one that the model was trained with: table '" PITH_STR_FMT
        "'%s" PITH_STR_FMT "%s %s",
        PITH_STR_ARG(t->name), column.size ? ", column '" : "", PITH_STR_ARG(column),
        column.size ? "'" : "", how);
}

static const pith__rdb_column *follow_find(const pith__rdb_table *t, pith_str name) {
    for (uint32_t c = 0; c < t->column_count; c++)
        if (pith__str_eq(t->columns[c].name, name)) return &t->columns[c];
    return NULL;
}

/* Columns are matched by place and must agree in name, kind and description: the model has learned
 * vectors of names, and its parameters depend on kinds. */
static pith_status follow_column(const pith__rdb *rdb, const pith__rdb *kept, uint32_t table,
                                 uint32_t column, pith_error *err) {
    const pith__rdb_table *t = &rdb->tables[table];
    const pith__rdb_column *mine = &t->columns[column], *its = &kept->tables[table].columns[column];
    char how[160];
    if (!pith__str_eq(mine->name, its->name))
        return follow_differs(
            t, its->name, "is in another place; keep the order of the columns in the schema", err);
    if (mine->stype != its->stype) {
        snprintf(how, sizeof how, "has the stype %s and had %s", pith__stype_names[mine->stype],
                 pith__stype_names[its->stype]);
        return follow_differs(t, its->name, how, err);
    }
    if (!pith__str_eq(follow_text(rdb, mine->name_string), follow_text(kept, its->name_string)))
        return follow_differs(t, its->name, "has another description", err);
    return PITH_OK;
}

/* Missing and new columns are told first, since these messages help more than "stands in another
 * place". */
static pith_status follow_table(const pith__rdb *rdb, const pith__rdb *kept, uint32_t table,
                                pith_error *err) {
    const pith__rdb_table *mine = &rdb->tables[table], *its = &kept->tables[table];
    const pith_str none = { NULL, 0 };
    for (uint32_t c = 0; c < its->column_count; c++)
        if (!follow_find(mine, its->columns[c].name))
            return follow_differs(mine, its->columns[c].name, "is missing", err);
    for (uint32_t c = 0; c < mine->column_count; c++)
        if (!follow_find(its, mine->columns[c].name))
            return follow_differs(mine, mine->columns[c].name, "is new; give it the stype ignored",
                                  err);
    for (uint32_t c = 0; c < its->column_count; c++)
        PITH_TRY(follow_column(rdb, kept, table, c, err));
    if (mine->time_column != its->time_column)
        return follow_differs(mine, none, "has another temporal_column", err);
    if (!mine->times != !its->times)
        return follow_differs(mine, none,
                              "has rows that are known from another time on (\"known\")", err);
    if (!mine->key_begin != !its->key_begin)
        return follow_differs(
            mine, none, its->key_begin ? "has no primary key" : "has a primary key and had none",
            err);
    return PITH_OK;
}

static pith_status follow_tables(const pith__rdb *rdb, const pith__rdb *kept, pith_error *err) {
    const uint32_t most =
        rdb->table_count > kept->table_count ? rdb->table_count : kept->table_count;
    for (uint32_t i = 0; i < most; i++) {
        const pith_str mine = i < rdb->table_count ? rdb->tables[i].name : PITH_STR("nothing"),
                       its = i < kept->table_count ? kept->tables[i].name : PITH_STR("nothing");
        if (i >= rdb->table_count || i >= kept->table_count || !pith__str_eq(mine, its))
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "the schema is not the one that the model was trained with: table %u "
                              "is '" PITH_STR_FMT "' and was '" PITH_STR_FMT "'",
                              i + 1, PITH_STR_ARG(mine), PITH_STR_ARG(its));
    }
    for (uint32_t i = 0; i < kept->table_count; i++) PITH_TRY(follow_table(rdb, kept, i, err));
    return PITH_OK;
}

static pith_status follow_links(const pith__rdb *rdb, const pith__rdb *kept, pith_error *err) {
    const uint32_t most = rdb->link_count > kept->link_count ? rdb->link_count : kept->link_count;
    for (uint32_t i = 0; i < most; i++) {
        const pith__rdb_link *mine = i < rdb->link_count ? &rdb->links[i] : NULL,
                             *its = i < kept->link_count ? &kept->links[i] : NULL;
        if (mine && its && pith__str_eq(mine->name, its->name) && mine->child == its->child &&
            mine->parent == its->parent)
            continue;
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the schema is not the one that the model was trained with: foreign key "
                          "%u is '" PITH_STR_FMT "' and was '" PITH_STR_FMT "'",
                          i + 1, PITH_STR_ARG(mine ? mine->name : PITH_STR("none")),
                          PITH_STR_ARG(its ? its->name : PITH_STR("none")));
    }
    return PITH_OK;
}

/* The names of the columns have the same vectors, so both databases have the same embedder. */
static pith_status follow_vectors(const pith__rdb *rdb, const pith__rdb *kept, pith_error *err) {
    double apart = rdb->dim == kept->dim ? 0 : INFINITY;
    for (uint32_t t = 0; t < kept->table_count; t++)
        for (uint32_t c = 0; c < kept->tables[t].column_count && isfinite(apart); c++) {
            const float *mine =
                            rdb->vectors + (size_t)rdb->tables[t].columns[c].name_string * rdb->dim,
                        *its = kept->vectors +
                               (size_t)kept->tables[t].columns[c].name_string * kept->dim;
            double squares = 0, length = 0;
            for (uint32_t k = 0; k < kept->dim; k++) {
                squares += ((double)mine[k] - its[k]) * ((double)mine[k] - its[k]);
                length += (double)its[k] * its[k];
            }
            if (!(squares <= FOLLOW_NEAR * FOLLOW_NEAR * length)) apart = INFINITY;
        }
    if (isfinite(apart)) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "texts have other vectors than those the model was trained with: the "
                      "embedder was '" PITH_STR_FMT "' and is '" PITH_STR_FMT
                      "'; give the former one",
                      PITH_STR_ARG(kept->embedder), PITH_STR_ARG(rdb->embedder));
}

/* The classes as strings of this database. */
static pith_status follow_classes(pith__rdb *rdb, pith__rdb_task *task, const pith__rdb *kept,
                                  pith__stop *stop, pith_error *err) {
    const pith__rdb_task *its = &kept->tasks[0];
    uint32_t *classes =
        pith__arena_array(&rdb->arena, (size_t)its->class_count + 1, sizeof *classes);
    pith_str *texts = pith__arena_array(&rdb->arena, (size_t)its->class_count + 1, sizeof *texts);
    double *labels = pith__arena_array(&rdb->arena, (size_t)its->label_count + 1, sizeof *labels);
    if (!classes || !texts || !labels)
        return pith__fail_memory(err, its->label_count * sizeof *labels);
    for (uint32_t i = 0; i < its->class_count; i++) {
        texts[i] = pith__arena_str(&rdb->arena, follow_text(kept, its->classes[i]));
        if (!texts[i].data) return pith__fail_memory(err, 64);
        classes[i] = PITH_RDB_UNKNOWN;
        for (uint32_t s = 0; s < rdb->string_count && classes[i] == PITH_RDB_UNKNOWN; s++) {
            PITH_TRY_ROW(stop, s, err);
            if (pith__str_eq(follow_text(rdb, s), texts[i])) classes[i] = s;
        }
    }
    memcpy(labels, its->labels ? its->labels : labels, its->label_count * sizeof *labels);
    task->classes = its->classes ? classes : NULL;
    task->class_texts = its->classes ? texts : NULL;
    task->labels = its->labels ? labels : NULL;
    task->class_count = its->class_count;
    task->label_count = its->label_count;
    return PITH_OK;
}

/* The later database must ask the same question. */
static pith_status follow_task(pith__rdb_task **task, pith__rdb *rdb, const pith__rdb *kept,
                               pith_error *err) {
    const pith__rdb_task *its = &kept->tasks[0];
    pith__rdb_task *mine = NULL;
    for (uint32_t i = 0; i < rdb->task_count; i++)
        if (pith__str_eq(rdb->tasks[i].name, its->name)) mine = &rdb->tasks[i];
    if (!mine || mine->table != its->table || mine->column != its->column ||
        mine->time_column != its->time_column || mine->rank != its->rank || mine->made != its->made)
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "the schema is not the one that the model was trained with: task '" PITH_STR_FMT "' %s",
            PITH_STR_ARG(its->name), mine ? "asks something else" : "is missing");
    *task = mine;
    return PITH_OK;
}

/* After the task, since a target is known from the time of its row where the schema says nothing.
 */
static pith_status follow_known(const pith__rdb *rdb, const pith__rdb *kept, pith_error *err) {
    for (uint32_t t = 0; t < rdb->table_count; t++)
        for (uint32_t c = 0; c < rdb->tables[t].column_count; c++) {
            const pith__rdb_column *mine = &rdb->tables[t].columns[c],
                                   *its = &kept->tables[t].columns[c];
            if (mine->known_column != its->known_column || mine->known_delay != its->known_delay)
                return follow_differs(&rdb->tables[t], its->name, "has another known_at", err);
        }
    return PITH_OK;
}

/* Statistics of the kept database replace those of the later one: numbers must be scaled as in
 * training. How rows are split is taken from it, too, so that validation and test rows stay what
 * they were. The later database changes only when nothing can fail any more. */
pith_status pith__rdb_follow(pith__rdb *rdb, const pith__rdb *kept, pith__stop *stop,
                             pith_error *err) {
    pith__rdb_task *task = NULL;
    if (!kept->kept || kept->task_count != 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "this is not what a model keeps of its database");
    PITH_TRY(follow_tables(rdb, kept, err));
    PITH_TRY(follow_links(rdb, kept, err));
    PITH_TRY(follow_vectors(rdb, kept, err));
    PITH_TRY(follow_task(&task, rdb, kept, err));
    PITH_TRY(follow_known(rdb, kept, err));
    PITH_TRY(follow_classes(rdb, task, kept, stop, err));
    const pith__rdb_task *its_task = &kept->tasks[0];
    task->split = its_task->split;
    task->train_until = its_task->train_until;
    task->validation_until = its_task->validation_until;
    task->train_percent = its_task->train_percent;
    task->validation_percent = its_task->validation_percent;
    for (uint32_t t = 0; t < rdb->table_count; t++)
        for (uint32_t c = 0; c < rdb->tables[t].column_count; c++) {
            const pith__rdb_column *its = &kept->tables[t].columns[c];
            pith__rdb_column *mine = &rdb->tables[t].columns[c];
            mine->mean = its->mean;
            mine->sd = its->sd;
            mine->low = its->low;
            mine->log = its->log;
        }
    rdb->checksum = kept->origin;
    rdb->followed = true;
    return PITH_OK;
}
