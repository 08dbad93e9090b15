/* rdb_write.c - a database as the bytes of its file. The sizes come first, so that the header is
 * known before the content is handed out. */
#include <string.h>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/formats/json_write.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/database/rdb_file.h"

/* Text that grows in an arena. */
typedef struct rdb_text {
    pith__arena *arena;
    char *data;
    size_t size, room;
} rdb_text;

/* Of a pith_writer. */
static int32_t text_add(void *user, const void *text, size_t size) {
    rdb_text *t = user;
    if (t->room - t->size < size) {
        const size_t room = (t->size + size) * 2 + 256;
        char *data = pith__arena_alloc(t->arena, room);
        if (!data) return 1;
        if (t->size) memcpy(data, t->data, t->size);
        t->data = data;
        t->room = room;
    }
    memcpy(t->data + t->size, text, size);
    t->size += size;
    return 0;
}

/* ---- the JSON ---- */

static void meta_column(pith__json_out *j, const pith__rdb_column *c) {
    pith__json_separate(j);
    pith__json_open(j, "{");
    pith__json_key_string(j, "name", c->name);
    pith__json_key_string(j, "description", c->description);
    pith__json_key_string(j, "stype", pith__str_of(pith__stype_names[c->stype]));
    pith__json_key_bool(j, "log", c->log);
    pith__json_key_int(j, "name_string", c->name_string);
    pith__json_key_int(j, "known_column", c->known_column);
    pith__json_key_int(j, "known_delay", c->known_delay);
    pith__json_key_int(j, "nulls", (int64_t)c->nulls);
    pith__json_close(j, "}");
}

static void meta_tables(pith__json_out *j, const pith__rdb *rdb) {
    pith__json_key(j, "tables");
    pith__json_open(j, "[");
    for (uint32_t i = 0; i < rdb->table_count; i++) {
        const pith__rdb_table *t = &rdb->tables[i];
        pith__json_separate(j);
        pith__json_open(j, "{");
        pith__json_key_string(j, "name", t->name);
        pith__json_key_int(j, "rows", t->rows);
        pith__json_key_int(j, "time_column", t->time_column);
        pith__json_key_bool(j, "keys", t->key_begin != NULL);
        if (t->times) pith__json_key_bool(j, "times", true);
        pith__json_key(j, "columns");
        pith__json_open(j, "[");
        for (uint32_t c = 0; c < t->column_count; c++) meta_column(j, &t->columns[c]);
        pith__json_close(j, "]");
        pith__json_close(j, "}");
    }
    pith__json_close(j, "]");
}

static void meta_links(pith__json_out *j, const pith__rdb *rdb) {
    pith__json_key(j, "links");
    pith__json_open(j, "[");
    for (uint32_t i = 0; i < rdb->link_count; i++) {
        const pith__rdb_link *link = &rdb->links[i];
        pith__json_separate(j);
        pith__json_open(j, "{");
        pith__json_key_string(j, "name", link->name);
        pith__json_key_int(j, "child", link->child);
        pith__json_key_int(j, "parent", link->parent);
        pith__json_key_int(j, "nulls", (int64_t)link->nulls);
        pith__json_key_int(j, "dangling", (int64_t)link->dangling);
        pith__json_close(j, "}");
    }
    pith__json_close(j, "]");
}

static void meta_tasks(pith__json_out *j, const pith__rdb *rdb) {
    pith__json_key(j, "tasks");
    pith__json_open(j, "[");
    for (uint32_t i = 0; i < rdb->task_count; i++) {
        const pith__rdb_task *t = &rdb->tasks[i];
        pith__json_separate(j);
        pith__json_open(j, "{");
        pith__json_key_string(j, "name", t->name);
        pith__json_key_int(j, "table", t->table);
        pith__json_key_int(j, "column", t->column);
        pith__json_key_int(j, "time_column", t->time_column);
        pith__json_key_int(j, "split", t->split);
        pith__json_key_int(j, "train_until", t->train_until);
        pith__json_key_int(j, "validation_until", t->validation_until);
        pith__json_key_int(j, "train_percent", t->train_percent);
        pith__json_key_int(j, "validation_percent", t->validation_percent);
        if (t->rank) pith__json_key_bool(j, "rank", true);
        if (t->made) pith__json_key_bool(j, "made", true);
        if (t->left_out) pith__json_key_int(j, "left_out", (int64_t)t->left_out);
        if (t->classes) pith__json_key_int(j, "classes", t->class_count);
        if (t->labels) pith__json_key_int(j, "labels", t->label_count);
        pith__json_close(j, "}");
    }
    pith__json_close(j, "]");
}

/* What rdb_open.c needs to know the sizes of all other sections. False if memory is out. */
static bool meta_write(const pith__rdb *rdb, rdb_text *text) {
    const pith_writer writer = { .write = text_add, .user = text };
    pith__out out = { .writer = &writer };
    pith__json_out j = { &out, false };
    pith__json_open(&j, "{");
    pith__json_key_string(&j, "name", rdb->name);
    pith__json_key_string(&j, "embedder", rdb->embedder);
    pith__json_key_int(&j, "dim", rdb->dim);
    pith__json_key_int(&j, "strings", rdb->string_count);
    if (rdb->schema.size) pith__json_key_int(&j, "schema", (int64_t)rdb->schema.size);
    if (rdb->kept) pith__json_key_int(&j, "origin", (int64_t)rdb->origin);
    meta_tables(&j, rdb);
    meta_links(&j, rdb);
    meta_tasks(&j, rdb);
    pith__json_key(&j, "warnings");
    pith__json_open(&j, "[");
    for (uint32_t i = 0; i < rdb->warning_count; i++) {
        pith__json_separate(&j);
        pith__json_put_string(&j, rdb->warnings[i]);
    }
    pith__json_close(&j, "]");
    pith__json_close(&j, "}");
    return !out.failed;
}

/* ---- the sections ---- */

typedef struct rdb_parts {
    pith__rdb_section *sections;
    const void **data;
    uint32_t count;
    uint64_t offset;
} rdb_parts;

static void part_add(rdb_parts *p, uint32_t kind, uint32_t owner, uint32_t column, const void *data,
                     uint64_t bytes) {
    p->sections[p->count] = (pith__rdb_section){ kind, owner, column, 0, p->offset, bytes };
    p->data[p->count++] = data;
    p->offset = pith__round64((size_t)(p->offset + bytes));
}

/* The sections in the order of the file, which rdb_open.c expects. */
static void parts_list(rdb_parts *p, const pith__rdb *rdb, const rdb_text *meta,
                       const double *stats) {
    part_add(p, PITH_RDB_META, 0, 0, meta->data, meta->size);
    part_add(p, PITH_RDB_STATS, 0, 0, stats, (uint64_t)rdb->column_count * 3 * sizeof *stats);
    for (uint32_t i = 0; i < rdb->table_count; i++) {
        const pith__rdb_table *t = &rdb->tables[i];
        for (uint32_t c = 0; c < t->column_count; c++)
            part_add(p, PITH_RDB_COLUMN, i, c, t->columns[c].data,
                     (uint64_t)t->rows * pith__rdb_value_bytes(t->columns[c].stype));
        if (t->times)
            part_add(p, PITH_RDB_TIMES, i, 0, t->times, (uint64_t)t->rows * sizeof *t->times);
        if (!t->key_begin) continue;
        part_add(p, PITH_RDB_KEY_BEGIN, i, 0, t->key_begin, ((uint64_t)t->rows + 1) * 8);
        part_add(p, PITH_RDB_KEY_BYTES, i, 0, t->key_bytes, t->key_begin[t->rows]);
    }
    for (uint32_t i = 0; i < rdb->link_count; i++) {
        const pith__rdb_link *link = &rdb->links[i];
        const uint64_t parents = rdb->tables[link->parent].rows;
        part_add(p, PITH_RDB_UP, i, 0, link->up, (uint64_t)rdb->tables[link->child].rows * 4);
        part_add(p, PITH_RDB_BEGIN, i, 0, link->begin, (parents + 1) * 4);
        part_add(p, PITH_RDB_DOWN, i, 0, link->down, (uint64_t)link->begin[parents] * 4);
    }
    part_add(p, PITH_RDB_STRING_BEGIN, 0, 0, rdb->string_begin,
             ((uint64_t)rdb->string_count + 1) * 8);
    part_add(p, PITH_RDB_STRING_BYTES, 0, 0, rdb->string_bytes,
             rdb->string_begin[rdb->string_count]);
    part_add(p, PITH_RDB_VECTORS, 0, 0, rdb->vectors, (uint64_t)rdb->string_count * rdb->dim * 4);
    if (rdb->schema.size) part_add(p, PITH_RDB_SCHEMA, 0, 0, rdb->schema.data, rdb->schema.size);
    for (uint32_t i = 0; i < rdb->task_count; i++) {
        const pith__rdb_task *t = &rdb->tasks[i];
        if (t->classes)
            part_add(p, PITH_RDB_CLASSES, i, 0, t->classes,
                     (uint64_t)t->class_count * sizeof *t->classes);
        if (t->labels)
            part_add(p, PITH_RDB_LABELS, i, 0, t->labels,
                     (uint64_t)t->label_count * sizeof *t->labels);
    }
}

static void parts_zeros(pith__out *out, uint64_t count) {
    static const char zeros[64];
    for (; count > sizeof zeros; count -= sizeof zeros) pith__out_put(out, zeros, sizeof zeros);
    pith__out_put(out, zeros, (size_t)count);
}

/* Hands out the content behind the header, with zeros between sections: to the hash or to the
 * caller. It goes in pieces, between which the call may end. */
static pith_status parts_each(pith__out *out, const rdb_parts *p, pith__stop *stop,
                              pith_error *err) {
    const size_t table = p->count * sizeof *p->sections;
    uint64_t at = sizeof(pith__rdb_header) + table;
    pith__out_put(out, p->sections, table);
    for (uint32_t i = 0; i < p->count; i++) {
        const pith__rdb_section *s = &p->sections[i];
        parts_zeros(out, s->offset - at);
        for (uint64_t k = 0; k < s->bytes; k += PITH_WORK_BYTES) {
            const uint64_t left = s->bytes - k;
            PITH_TRY(pith__stop_check(stop, err));
            pith__out_put(out, (const char *)p->data[i] + k,
                          left < PITH_WORK_BYTES ? (size_t)left : PITH_WORK_BYTES);
        }
        at = s->offset + s->bytes;
    }
    parts_zeros(out, p->offset - at);
    return pith__out_status(out, "the database", err);
}

static int32_t hash_take(void *user, const void *data, size_t size) {
    pith__hash_add(user, data, size);
    return 0;
}

static pith_status parts_checksum(uint64_t *checksum, const rdb_parts *p, pith__stop *stop,
                                  pith_error *err) {
    pith__hash hash;
    const pith_writer writer = { .write = hash_take, .user = &hash };
    pith__out out = { .writer = &writer };
    pith__hash_init(&hash);
    PITH_TRY(parts_each(&out, p, stop, err));
    *checksum = pith__hash_end(&hash);
    return PITH_OK;
}

pith_status pith__rdb_write(const pith__rdb *rdb, const pith_writer *writer, pith__stop *stop,
                            pith__arena *arena, pith_error *err) {
    size_t most =
        5 + (size_t)rdb->column_count + (size_t)rdb->table_count * 2 + (size_t)rdb->link_count * 3;
    for (uint32_t i = 0; i < rdb->table_count; i++) most += rdb->tables[i].times != NULL;
    for (uint32_t i = 0; i < rdb->task_count; i++)
        most += (size_t)(rdb->tasks[i].classes != NULL) + (rdb->tasks[i].labels != NULL);
    most += rdb->schema.size > 0;
    rdb_text meta = { .arena = arena };
    rdb_parts parts = { .sections = pith__arena_array(arena, most, sizeof *parts.sections),
                        .data = pith__arena_array(arena, most, sizeof *parts.data) };
    double *stats = pith__arena_array(arena, (size_t)rdb->column_count + 1, 3 * sizeof *stats);
    if (!meta_write(rdb, &meta) || !parts.sections || !parts.data || !stats)
        return pith__fail_memory(err, most * sizeof *parts.sections);
    for (uint32_t i = 0; i < rdb->table_count; i++)
        for (uint32_t c = 0; c < rdb->tables[i].column_count; c++) {
            const pith__rdb_column *column = &rdb->tables[i].columns[c];
            memcpy(stats + (size_t)(rdb->tables[i].first_cell + c) * 3,
                   (double[]){ column->mean, column->sd, column->low }, 3 * sizeof *stats);
        }
    parts.offset = pith__round64(sizeof(pith__rdb_header) + most * sizeof *parts.sections);
    parts_list(&parts, rdb, &meta, stats);
    pith__rdb_header header = { .magic = PITH_RDB_MAGIC,
                                .version = PITH_RDB_VERSION,
                                .order = PITH_RDB_ORDER,
                                .bytes = parts.offset,
                                .sections = parts.count };
    PITH_TRY(parts_checksum(&header.checksum, &parts, stop, err));
    pith__out out = { .writer = writer, .stop = stop };
    pith__out_begin(&out, parts.offset);
    pith__out_put(&out, &header, sizeof header);
    return parts_each(&out, &parts, stop, err);
}
