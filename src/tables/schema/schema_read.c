/* schema_read.c - JSON to a schema, and the checks that need no data: names that exist, kinds that
 * fit. */
#include "base/error.h"
#include "base/formats/json.h"
#include "base/str.h"
#include "tables/schema/cell_value.h"
#include "tables/schema/schema.h"
#include "tables/schema/schema_check.h"

const char *const pith__stype_names[PITH_STYPE_COUNT] = { "identifier", "numerical",   "timestamp",
                                                          "boolean",    "categorical", "text",
                                                          "ignored" };
const char *const pith__transform_names[3] = { "auto", "none", "log" };

size_t pith__schema_table(const pith__schema *schema, pith_str name) {
    for (size_t i = 0; i < schema->table_count; i++)
        if (pith__str_eq(schema->tables[i].name, name)) return i;
    return SIZE_MAX;
}

size_t pith__schema_column(const pith__table_schema *table, pith_str name) {
    for (size_t i = 0; i < table->column_count; i++)
        if (pith__str_eq(table->columns[i].name, name)) return i;
    return SIZE_MAX;
}

/* ---- pieces ---- */

static void *schema_room(pith__json *j, void **items, size_t count, size_t *room, size_t size) {
    if (!pith__arena_grow(j->arena, items, count, room, size)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return NULL;
    }
    void *item = (char *)*items + count * size;
    memset(item, 0, size);
    return item;
}

static void schema_unknown(pith__json *j, pith_str key) {
    pith__json_fail(j, PITH_ERR_FORMAT,
                    "there is no member '" PITH_STR_FMT "' here; docs/relational.md lists them",
                    PITH_STR_ARG(key));
}

/* One of the words; the first one after a failure. */
static int schema_word(pith__json *j, const char *what, const char *const *words, int count) {
    const pith_str word = pith__json_string(j);
    if (j->failed) return 0;
    for (int i = 0; i < count; i++)
        if (pith__str_is(word, words[i])) return i;
    char list[256] = "";
    for (int i = 0; i < count; i++) {
        if (i) strncat(list, ", ", sizeof list - strlen(list) - 1);
        strncat(list, words[i], sizeof list - strlen(list) - 1);
    }
    pith__json_fail(j, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is no %s; there are %s",
                    PITH_STR_ARG(word), what, list);
    return 0;
}

/* A name, or an array of them. */
static void schema_names(pith__json *j, pith__name_list *list) {
    size_t room = 0;
    if (pith__json_peek(j) != PITH_JSON_ARRAY) {
        pith_str *one = schema_room(j, (void **)&list->items, list->count, &room, sizeof *one);
        if (one) *one = pith__json_string(j), list->count++;
        return;
    }
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        pith_str *one = schema_room(j, (void **)&list->items, list->count, &room, sizeof *one);
        if (one) *one = pith__json_string(j), list->count++;
    }
    if (!j->failed && !list->count) pith__json_fail(j, PITH_ERR_FORMAT, "the list is empty");
}

static int64_t schema_time(pith__json *j) {
    int64_t seconds = 0;
    const pith_str text = pith__json_string(j);
    if (!j->failed && !pith__cell_time(&seconds, text))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "'" PITH_STR_FMT "' is no date or time like 2023-05-30T15:13:52",
                        PITH_STR_ARG(text));
    return seconds;
}

/* A whole number from low to high. */
static int64_t schema_whole(pith__json *j, int64_t low, int64_t high) {
    const int64_t x = pith__json_int(j);
    if (!j->failed && (x < low || x > high))
        pith__json_fail(j, PITH_ERR_FORMAT, "%lld is not from %lld to %lld", (long long)x,
                        (long long)low, (long long)high);
    return x;
}

/* A hundred years; longer delays and windows would overflow times in the end. */
#define SCHEMA_LONGEST ((int64_t)36525 * 86400)

static void schema_known(pith__json *j, pith__known_at *known) {
    pith_str key;
    known->set = true;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "column"))
            known->column = pith__json_string(j);
        else if (pith__str_is(key, "delay_seconds"))
            known->delay = schema_whole(j, 0, SCHEMA_LONGEST);
        else
            schema_unknown(j, key);
    }
}

/* ---- tables ---- */

/* "table.column" of a foreign key. */
static void schema_foreign(pith__json *j, pith__table_schema *t, size_t *room, pith_str column) {
    const pith_str text = pith__json_string(j);
    if (j->failed) return;
    const char *dot = memchr(text.data, '.', text.size);
    if (!dot) {
        pith__json_fail(j, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is not of the form table.column",
                        PITH_STR_ARG(text));
        return;
    }
    pith__link_schema *link = schema_room(j, (void **)&t->links, t->link_count, room, sizeof *link);
    pith_str *names = link ? pith__arena_array(j->arena, 2, sizeof *names) : NULL;
    if (!names) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    names[0] = column;
    names[1] = (pith_str){ dot + 1, (size_t)(text.data + text.size - dot - 1) };
    link->columns = (pith__name_list){ names, 1 };
    link->parent_columns = (pith__name_list){ names + 1, 1 };
    link->parent = (pith_str){ text.data, (size_t)(dot - text.data) };
    t->link_count++;
}

static void schema_column(pith__json *j, pith__table_schema *t, pith__column_schema *c,
                          size_t *link_room) {
    bool typed = false;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "stype")) {
            c->stype = (pith__stype)schema_word(j, "stype", pith__stype_names, PITH_STYPE_COUNT);
            typed = true;
        } else if (pith__str_is(key, "description")) {
            c->description = pith__json_string(j);
        } else if (pith__str_is(key, "transform")) {
            c->transform = (pith__transform)schema_word(j, "transform", pith__transform_names, 3);
        } else if (pith__str_is(key, "format")) {
            c->format = (pith__time_format)schema_word(j, "format of times",
                                                       pith__time_format_names, PITH_TIME_FORMATS);
        } else if (pith__str_is(key, "foreign_key")) {
            schema_foreign(j, t, link_room, c->name);
        } else if (pith__str_is(key, "known_at")) {
            schema_known(j, &c->known_at);
        } else {
            schema_unknown(j, key);
        }
    }
    if (!j->failed && !typed) pith__json_fail(j, PITH_ERR_FORMAT, "the column has no stype");
    if (!j->failed && c->format && c->stype != PITH_STYPE_TIMESTAMP)
        pith__json_fail(j, PITH_ERR_FORMAT, "only a column of stype timestamp has a format");
}

static void schema_columns(pith__json *j, pith__table_schema *t, size_t *link_room) {
    size_t room = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__schema_column(t, key) != SIZE_MAX) {
            pith__json_fail(j, PITH_ERR_FORMAT, "the column is there twice");
            return;
        }
        pith__column_schema *c =
            schema_room(j, (void **)&t->columns, t->column_count, &room, sizeof *c);
        if (!c) return;
        t->column_count++;
        c->name = key;
        schema_column(j, t, c, link_room);
    }
}

/* Foreign keys of several columns. */
static void schema_links(pith__json *j, pith__table_schema *t, size_t *room) {
    pith_str key;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        pith__link_schema *link =
            schema_room(j, (void **)&t->links, t->link_count, room, sizeof *link);
        if (!link) return;
        t->link_count++;
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) {
            if (pith__str_is(key, "columns"))
                schema_names(j, &link->columns);
            else if (pith__str_is(key, "table"))
                link->parent = pith__json_string(j);
            else if (pith__str_is(key, "references"))
                schema_names(j, &link->parent_columns);
            else
                schema_unknown(j, key);
        }
        if (!j->failed &&
            (!link->columns.count || link->columns.count != link->parent_columns.count))
            pith__json_fail(j, PITH_ERR_FORMAT,
                            "columns and references do not have the same number of names");
    }
}

static void schema_table(pith__json *j, pith__table_schema *t) {
    static const char *const knowns[] = { "with_parents", "always" };
    size_t link_room = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "file"))
            t->file = pith__json_string(j);
        else if (pith__str_is(key, "description"))
            t->description = pith__json_string(j);
        else if (pith__str_is(key, "primary_key"))
            schema_names(j, &t->primary_key);
        else if (pith__str_is(key, "temporal_column"))
            t->temporal_column = pith__json_string(j);
        else if (pith__str_is(key, "known"))
            t->always = schema_word(j, "word for when rows are known", knowns, 2) == 1;
        else if (pith__str_is(key, "columns"))
            schema_columns(j, t, &link_room);
        else if (pith__str_is(key, "foreign_keys"))
            schema_links(j, t, &link_room);
        else
            schema_unknown(j, key);
    }
}

static void schema_tables(pith__json *j, pith__schema *schema) {
    size_t room = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__schema_table(schema, key) != SIZE_MAX) {
            pith__json_fail(j, PITH_ERR_FORMAT, "the table is there twice");
            return;
        }
        pith__table_schema *t =
            schema_room(j, (void **)&schema->tables, schema->table_count, &room, sizeof *t);
        if (!t) return;
        schema->table_count++;
        t->name = key;
        schema_table(j, t);
    }
}

/* ---- tasks ---- */

static void schema_split(pith__json *j, pith__task_schema *task) {
    static const char *const kinds[] = { "time", "hash" };
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "kind"))
            task->split = (pith__split_kind)schema_word(j, "kind of split", kinds, 2);
        else if (pith__str_is(key, "train_until"))
            task->train_until = schema_time(j);
        else if (pith__str_is(key, "validation_until"))
            task->validation_until = schema_time(j);
        else if (pith__str_is(key, "train_percent"))
            task->train_percent = (int)schema_whole(j, 1, 98);
        else if (pith__str_is(key, "validation_percent"))
            task->validation_percent = (int)schema_whole(j, 1, 98);
        else
            schema_unknown(j, key);
    }
    if (j->failed) return;
    if (task->split == PITH_SPLIT_TIME && task->train_until >= task->validation_until)
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "a split by time needs train_until before validation_until");
    if (task->split == PITH_SPLIT_HASH && task->train_percent + task->validation_percent > 99)
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "train_percent and validation_percent leave nothing for the test");
}

static void schema_window(pith__json *j, pith__window_schema *w) {
    static const char *const aggregates[] = { "count", "sum", "any" };
    pith_str key;
    w->set = true;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "table"))
            w->table = pith__json_string(j);
        else if (pith__str_is(key, "column"))
            w->column = pith__json_string(j);
        else if (pith__str_is(key, "aggregate"))
            w->aggregate = pith__str_of(aggregates[schema_word(j, "aggregate", aggregates, 3)]);
        else if (pith__str_is(key, "seconds"))
            w->seconds = schema_whole(j, 1, SCHEMA_LONGEST);
        else if (pith__str_is(key, "every_seconds"))
            w->every = schema_whole(j, 1, SCHEMA_LONGEST);
        else if (pith__str_is(key, "from"))
            w->from = schema_time(j);
        else if (pith__str_is(key, "until"))
            w->until = schema_time(j);
        else
            schema_unknown(j, key);
    }
    if (j->failed) return;
    if (!w->table.size || !w->aggregate.size || !w->seconds || !w->every || w->from >= w->until)
        pith__json_fail(
            j, PITH_ERR_FORMAT,
            "a window needs table, aggregate, seconds, every_seconds, and from before until");
    else if (pith__str_is(w->aggregate, "sum") && !w->column.size)
        pith__json_fail(j, PITH_ERR_FORMAT, "the aggregate sum needs a column");
}

static void schema_task(pith__json *j, pith__task_schema *task) {
    pith_str key;
    bool split = false;
    task->target_stype = PITH_STYPE_COUNT;
    task->train_percent = 80;
    task->validation_percent = 10;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "anchor_table"))
            task->anchor_table = pith__json_string(j);
        else if (pith__str_is(key, "anchor_key"))
            pith__json_string(j); /* the primary key, which the table names already */
        else if (pith__str_is(key, "target_column"))
            task->target_column = pith__json_string(j);
        else if (pith__str_is(key, "target_stype"))
            task->target_stype =
                (pith__stype)schema_word(j, "stype", pith__stype_names, PITH_STYPE_COUNT);
        else if (pith__str_is(key, "observation_time_column"))
            task->time_column = pith__json_string(j);
        else if (pith__str_is(key, "rank"))
            task->rank = pith__json_bool(j);
        else if (pith__str_is(key, "window"))
            schema_window(j, &task->window);
        else if (pith__str_is(key, "query"))
            task->query = pith__json_string(j);
        else if (pith__str_is(key, "known_delay_seconds"))
            task->delay = schema_whole(j, 0, SCHEMA_LONGEST), task->delayed = true;
        else if (pith__str_is(key, "split"))
            schema_split(j, task), split = true;
        else
            schema_unknown(j, key);
    }
    if (!j->failed && !split) pith__json_fail(j, PITH_ERR_FORMAT, "the task has no split");
    if (!j->failed && !task->anchor_table.size)
        pith__json_fail(j, PITH_ERR_FORMAT, "the task has no anchor_table");
    if (!j->failed &&
        (task->target_column.size > 0) + task->window.set + (task->query.size > 0) != 1)
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "the task needs one of target_column, window and query");
    if (!j->failed && task->delayed && !task->query.size)
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "known_delay_seconds goes with a query; columns have known_at");
}

static void schema_tasks(pith__json *j, pith__schema *schema) {
    size_t room = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        pith__task_schema *task =
            schema_room(j, (void **)&schema->tasks, schema->task_count, &room, sizeof *task);
        if (!task) return;
        schema->task_count++;
        task->name = key;
        schema_task(j, task);
    }
}

pith_status pith__schema_read(pith__schema *schema, pith_str text, const char *path,
                              pith__arena *arena, pith_error *err) {
    pith__schema s = { .tables = NULL };
    pith_error own = PITH_ERROR_INIT;
    pith__json *j = pith__arena_alloc(arena, sizeof *j);
    pith_str key;
    if (!err) err = &own;
    if (!j) return pith__fail_memory(err, sizeof *j);
    pith__json_init(j, text, path, arena, err);
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "name"))
            s.name = pith__json_string(j);
        else if (pith__str_is(key, "tables"))
            schema_tables(j, &s);
        else if (pith__str_is(key, "tasks"))
            schema_tasks(j, &s);
        else
            schema_unknown(j, key);
    }
    if (!j->failed) pith__json_finish(j);
    if (j->failed) return err->code;
    PITH_TRY(pith__schema_check(&s, path, err));
    *schema = s;
    return PITH_OK;
}
