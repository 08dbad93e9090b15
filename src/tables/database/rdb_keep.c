/* rdb_keep.c - writing what a model keeps of its database; see rdb_keep.h. */
#include "tables/database/rdb_keep.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* The database without rows that grows. */
typedef struct keep_work {
    const pith__rdb *from;
    pith__rdb to;
    uint32_t *numbers; /* [to.string_count] of the strings in `from` */
} keep_work;

/* What stands where there are no rows; as offsets, the only one. */
static const uint64_t keep_nothing[1];

static uint32_t keep_string(keep_work *w, uint32_t number) {
    for (uint32_t i = 0; i < w->to.string_count; i++)
        if (w->numbers[i] == number) return i;
    w->numbers[w->to.string_count] = number;
    return w->to.string_count++;
}

static pith_status keep_tables(keep_work *w, pith_error *err) {
    const pith__rdb *from = w->from;
    pith__arena *arena = &w->to.arena;
    w->to.tables = pith__arena_array(arena, (size_t)from->table_count + 1, sizeof *w->to.tables);
    w->to.links = pith__arena_array(arena, (size_t)from->link_count + 1, sizeof *w->to.links);
    w->numbers = pith__arena_array(arena, (size_t)from->column_count + PITH_TARGET_CLASSES,
                                   sizeof *w->numbers);
    if (!w->to.tables || !w->to.links || !w->numbers)
        return pith__fail_memory(err, from->column_count * 4u);
    for (uint32_t i = 0; i < from->table_count; i++) {
        pith__rdb_table *t = &w->to.tables[i];
        *t = from->tables[i];
        t->columns = pith__arena_array(arena, (size_t)t->column_count + 1, sizeof *t->columns);
        if (!t->columns) return pith__fail_memory(err, t->column_count * sizeof *t->columns);
        t->rows = 0;
        t->times = t->times ? (const int64_t *)keep_nothing : NULL;
        t->key_begin = t->key_begin ? keep_nothing : NULL;
        t->key_bytes = "";
        for (uint32_t c = 0; c < t->column_count; c++) {
            t->columns[c] = from->tables[i].columns[c];
            t->columns[c].data = keep_nothing;
            t->columns[c].nulls = 0;
            t->columns[c].name_string = keep_string(w, t->columns[c].name_string);
        }
    }
    for (uint32_t i = 0; i < from->link_count; i++)
        w->to.links[i] = (pith__rdb_link){ .name = from->links[i].name,
                                           .child = from->links[i].child,
                                           .parent = from->links[i].parent,
                                           .up = (const uint32_t *)keep_nothing,
                                           .begin = (const uint32_t *)keep_nothing,
                                           .down = (const uint32_t *)keep_nothing };
    return PITH_OK;
}

static pith_status keep_task(keep_work *w, const pith__target *target, pith_error *err) {
    pith__rdb_task *task = pith__arena_array(&w->to.arena, 1, sizeof *task);
    uint32_t *classes = pith__arena_array(&w->to.arena, PITH_TARGET_CLASSES, sizeof *classes);
    if (!task || !classes) return pith__fail_memory(err, sizeof *task);
    *task = *target->task;
    task->left_out = 0;
    if (target->kind == PITH_TARGET_CLASS) {
        for (int i = 0; i < target->outputs; i++) classes[i] = keep_string(w, target->classes[i]);
        task->classes = classes;
        task->labels = target->shares;
        task->class_count = task->label_count = (uint32_t)target->outputs;
    } else if (target->kind == PITH_TARGET_RANK && target->rank_count) {
        task->labels = target->ranks;
        task->label_count = target->rank_count;
    }
    w->to.tasks = task;
    w->to.task_count = 1;
    return PITH_OK;
}

static pith_status keep_strings(keep_work *w, pith_error *err) {
    const pith__rdb *from = w->from;
    const uint32_t n = w->to.string_count;
    const size_t dim = from->dim;
    uint64_t *begin = pith__arena_array(&w->to.arena, (size_t)n + 1, sizeof *begin);
    float *vectors = pith__arena_array(&w->to.arena, (size_t)n + 1, dim * sizeof *vectors);
    if (!begin || !vectors) return pith__fail_memory(err, n * dim * sizeof *vectors);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = w->numbers[i];
        begin[i + 1] = begin[i] + from->string_begin[k + 1] - from->string_begin[k];
        memcpy(vectors + i * dim, from->vectors + k * dim, dim * sizeof *vectors);
    }
    char *bytes = pith__arena_alloc(&w->to.arena, (size_t)begin[n] + 1);
    if (!bytes) return pith__fail_memory(err, (size_t)begin[n]);
    for (uint32_t i = 0; i < n; i++)
        memcpy(bytes + begin[i], from->string_bytes + from->string_begin[w->numbers[i]],
               (size_t)(begin[i + 1] - begin[i]));
    w->to.string_begin = begin;
    w->to.string_bytes = bytes;
    w->to.vectors = vectors;
    return PITH_OK;
}

pith_status pith__rdb_keep(const pith__target *target, uint64_t origin, const pith_writer *writer,
                           pith__stop *stop, const pith_allocator *allocator, pith_error *err) {
    keep_work w = { .from = target->rdb };
    pith__arena_init(&w.to.arena, allocator);
    pith_status status = keep_tables(&w, err);
    if (!status) status = keep_task(&w, target, err);
    if (!status) status = keep_strings(&w, err);
    w.to.name = w.from->name;
    w.to.embedder = w.from->embedder;
    w.to.schema = w.from->schema;
    w.to.dim = w.from->dim;
    w.to.table_count = w.from->table_count;
    w.to.link_count = w.from->link_count;
    w.to.column_count = w.from->column_count;
    w.to.origin = origin;
    w.to.kept = true;
    if (!status) status = pith__rdb_write(&w.to, writer, stop, &w.to.arena, err);
    pith__arena_free(&w.to.arena);
    return status;
}
