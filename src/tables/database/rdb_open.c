/* rdb_open.c - a file as a database. Nothing in the file is believed: sizes follow from the counts
 * in its JSON, and every index is checked once, so that the code behind need not. */
#include <math.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/formats/json.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/database/rdb_file.h"

typedef struct rdb_reading {
    pith__rdb *rdb;
    const char *path;
    const pith__rdb_section *sections;
    uint32_t count, next;
    pith__stop *stop;
    pith_error *err;
} rdb_reading;

static pith_status rdb_damaged(const rdb_reading *r, const char *what) {
    return pith__fail(r->err, PITH_ERR_FORMAT,
                      "%s is damaged: %s; make it again with pith preprocess", r->path, what);
}

/* The next section, which must be of this kind and size. Sections are in the order in which they
 * are written. */
static pith_status rdb_take(const void **data, rdb_reading *r, uint32_t kind, uint64_t bytes) {
    if (r->next >= r->count) return rdb_damaged(r, "sections are missing");
    const pith__rdb_section *s = &r->sections[r->next++];
    if (s->kind != kind || s->bytes != bytes)
        return rdb_damaged(r, "a section has the wrong kind or size");
    if (s->offset % 64 || s->offset > r->rdb->file.size || bytes > r->rdb->file.size - s->offset)
        return rdb_damaged(r, "a section is outside the file");
    *data = r->rdb->file.data + s->offset;
    return PITH_OK;
}

/* ---- the JSON ---- */

static int64_t meta_int(pith__json *j, int64_t low, int64_t high) {
    const int64_t x = pith__json_int(j);
    if (!j->failed && (x < low || x > high))
        pith__json_fail(j, PITH_ERR_FORMAT, "the number is out of range");
    return j->failed ? low : x;
}

static void *meta_item(pith__json *j, void **items, uint32_t *count, size_t *room, size_t size) {
    if (!pith__arena_grow(j->arena, items, *count, room, size)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return NULL;
    }
    void *item = (char *)*items + (size_t)(*count)++ * size;
    memset(item, 0, size);
    return item;
}

static pith__stype meta_stype(pith__json *j) {
    const pith_str name = pith__json_string(j);
    for (int i = 0; i < PITH_STYPE_COUNT; i++)
        if (pith__str_is(name, pith__stype_names[i]) && pith__rdb_value_bytes((pith__stype)i))
            return (pith__stype)i;
    pith__json_fail(j, PITH_ERR_FORMAT, "it is no stype of a stored column");
    return PITH_STYPE_NUMERICAL;
}

static void meta_column(pith__json *j, pith__rdb_column *c) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "name"))
            c->name = pith__json_string(j);
        else if (pith__str_is(key, "description"))
            c->description = pith__json_string(j);
        else if (pith__str_is(key, "stype"))
            c->stype = meta_stype(j);
        else if (pith__str_is(key, "log"))
            c->log = pith__json_bool(j);
        else if (pith__str_is(key, "name_string"))
            c->name_string = (uint32_t)meta_int(j, 0, UINT32_MAX - 1);
        else if (pith__str_is(key, "known_column"))
            c->known_column = (int32_t)meta_int(j, PITH_KNOWN_WITH_ROW, INT32_MAX);
        else if (pith__str_is(key, "known_delay"))
            c->known_delay = meta_int(j, 0, INT64_MAX);
        else if (pith__str_is(key, "nulls"))
            c->nulls = (uint64_t)meta_int(j, 0, INT64_MAX);
        else
            pith__json_skip(j);
    }
}

/* Arrays "times" and "keys" are sections that are mapped later. Until then a static address says
 * that they are there. */
static void meta_table(pith__json *j, pith__rdb_table *t) {
    size_t room = 0;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "name")) {
            t->name = pith__json_string(j);
        } else if (pith__str_is(key, "rows")) {
            t->rows = (uint32_t)meta_int(j, 0, UINT32_MAX - 1);
        } else if (pith__str_is(key, "time_column")) {
            t->time_column = (int32_t)meta_int(j, -1, INT32_MAX);
        } else if (pith__str_is(key, "times")) {
            static const int64_t later;
            t->times = pith__json_bool(j) ? &later : NULL;
        } else if (pith__str_is(key, "keys")) {
            static const uint64_t later;
            t->key_begin = pith__json_bool(j) ? &later : NULL;
        } else if (pith__str_is(key, "columns")) {
            pith__json_array(j);
            while (pith__json_next_item(j)) {
                pith__rdb_column *c =
                    meta_item(j, (void **)&t->columns, &t->column_count, &room, sizeof *c);
                if (!c) return;
                meta_column(j, c);
            }
        } else {
            pith__json_skip(j);
        }
    }
}

static void meta_link(pith__json *j, pith__rdb_link *link) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "name"))
            link->name = pith__json_string(j);
        else if (pith__str_is(key, "child"))
            link->child = (uint32_t)meta_int(j, 0, UINT32_MAX);
        else if (pith__str_is(key, "parent"))
            link->parent = (uint32_t)meta_int(j, 0, UINT32_MAX);
        else if (pith__str_is(key, "nulls"))
            link->nulls = (uint64_t)meta_int(j, 0, INT64_MAX);
        else if (pith__str_is(key, "dangling"))
            link->dangling = (uint64_t)meta_int(j, 0, INT64_MAX);
        else
            pith__json_skip(j);
    }
}

static void meta_task(pith__json *j, pith__rdb_task *t) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "name"))
            t->name = pith__json_string(j);
        else if (pith__str_is(key, "table"))
            t->table = (uint32_t)meta_int(j, 0, UINT32_MAX);
        else if (pith__str_is(key, "column"))
            t->column = (uint32_t)meta_int(j, 0, UINT32_MAX);
        else if (pith__str_is(key, "time_column"))
            t->time_column = (int32_t)meta_int(j, -1, INT32_MAX);
        else if (pith__str_is(key, "split"))
            t->split = (pith__split_kind)meta_int(j, PITH_SPLIT_TIME, PITH_SPLIT_HASH);
        else if (pith__str_is(key, "train_until"))
            t->train_until = pith__json_int(j);
        else if (pith__str_is(key, "validation_until"))
            t->validation_until = pith__json_int(j);
        else if (pith__str_is(key, "train_percent"))
            t->train_percent = (int32_t)meta_int(j, 0, 100);
        else if (pith__str_is(key, "validation_percent"))
            t->validation_percent = (int32_t)meta_int(j, 0, 100);
        else if (pith__str_is(key, "rank"))
            t->rank = pith__json_bool(j);
        else if (pith__str_is(key, "made"))
            t->made = pith__json_bool(j);
        else if (pith__str_is(key, "left_out"))
            t->left_out = (uint64_t)meta_int(j, 0, UINT32_MAX);
        else if (pith__str_is(key, "classes"))
            t->class_count = (uint32_t)meta_int(j, 2, PITH_RDB_CLASSES_MOST);
        else if (pith__str_is(key, "labels"))
            t->label_count = (uint32_t)meta_int(j, 1, UINT32_MAX - 1);
        else
            pith__json_skip(j);
    }
}

static void meta_lists(pith__json *j, pith__rdb *rdb, pith_str key) {
    size_t room = 0;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        void *item;
        if (pith__str_is(key, "tables")) {
            item =
                meta_item(j, (void **)&rdb->tables, &rdb->table_count, &room, sizeof *rdb->tables);
            if (item) meta_table(j, item);
        } else if (pith__str_is(key, "links")) {
            item = meta_item(j, (void **)&rdb->links, &rdb->link_count, &room, sizeof *rdb->links);
            if (item) meta_link(j, item);
        } else if (pith__str_is(key, "tasks")) {
            item = meta_item(j, (void **)&rdb->tasks, &rdb->task_count, &room, sizeof *rdb->tasks);
            if (item) meta_task(j, item);
        } else {
            item = meta_item(j, (void **)&rdb->warnings, &rdb->warning_count, &room,
                             sizeof *rdb->warnings);
            if (item) *(pith_str *)item = pith__json_string(j);
        }
        if (!item) return;
    }
}

static uint64_t meta_origin(pith__json *j, pith__rdb *rdb) {
    rdb->kept = true;
    return (uint64_t)pith__json_int(j);
}

/* Unknown members are skipped, so that a newer version may add some. Numbers are bounded where they
 * are read. */
static pith_status meta_read(rdb_reading *r, pith_str text) {
    pith__rdb *rdb = r->rdb;
    pith_error own = PITH_ERROR_INIT, *err = r->err ? r->err : &own;
    pith__json *j = pith__arena_alloc(&rdb->arena, sizeof *j);
    pith_str key;
    if (!j) return pith__fail_memory(r->err, sizeof *j);
    pith__json_init(j, text, r->path, &rdb->arena, err);
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "name"))
            rdb->name = pith__json_string(j);
        else if (pith__str_is(key, "embedder"))
            rdb->embedder = pith__json_string(j);
        else if (pith__str_is(key, "dim"))
            rdb->dim = (uint32_t)meta_int(j, 1, 16384);
        else if (pith__str_is(key, "strings"))
            rdb->string_count = (uint32_t)meta_int(j, 0, UINT32_MAX - 1);
        else if (pith__str_is(key, "schema"))
            rdb->schema.size = (size_t)meta_int(j, 1, UINT32_MAX);
        else if (pith__str_is(key, "origin"))
            rdb->origin = meta_origin(j, rdb);
        else if (pith__str_is(key, "tables") || pith__str_is(key, "links") ||
                 pith__str_is(key, "tasks") || pith__str_is(key, "warnings"))
            meta_lists(j, rdb, key);
        else
            pith__json_skip(j);
    }
    if (!j->failed) pith__json_finish(j);
    return j->failed ? err->code : PITH_OK;
}

/* ---- the content ---- */

/* Offsets that begin at 0 and never fall; *end is the last one. */
static pith_status rdb_offsets(uint64_t *end, const rdb_reading *r, const uint64_t *begin,
                               uint64_t count) {
    if (begin[0]) return rdb_damaged(r, "offsets do not begin at 0");
    for (uint64_t i = 0; i < count; i++) {
        PITH_TRY_ROW(r->stop, i, r->err);
        if (begin[i + 1] < begin[i]) return rdb_damaged(r, "offsets fall");
    }
    *end = begin[count];
    return PITH_OK;
}

/* Indices below a limit, or PITH_RDB_NONE where that is allowed. */
static pith_status rdb_indices(const rdb_reading *r, const uint32_t *x, uint64_t count,
                               uint32_t limit, bool none) {
    for (uint64_t i = 0; i < count; i++) {
        PITH_TRY_ROW(r->stop, i, r->err);
        if (x[i] >= limit && !(none && x[i] == PITH_RDB_NONE))
            return rdb_damaged(r, "an index is out of range");
    }
    return PITH_OK;
}

/* Takes a column's data, whose size follows from its kind and the number of rows, and checks that
 * indices of strings exist. */
static pith_status rdb_column(rdb_reading *r, uint32_t table, uint32_t column,
                              const double *stats) {
    const pith__rdb_table *t = &r->rdb->tables[table];
    pith__rdb_column *c = &t->columns[column];
    const double *own = stats + (size_t)(t->first_cell + column) * 3;
    PITH_TRY(rdb_take(&c->data, r, PITH_RDB_COLUMN,
                      (uint64_t)t->rows * pith__rdb_value_bytes(c->stype)));
    if (!isfinite(own[0]) || !(own[1] > 0) || !isfinite(own[1]) || (c->log && !(own[2] > 0)))
        return rdb_damaged(r, "statistics are out of range");
    c->mean = own[0];
    c->sd = own[1];
    c->low = own[2];
    if (c->known_column >= (int32_t)t->column_count ||
        (c->known_column >= 0 && t->columns[c->known_column].stype != PITH_STYPE_TIMESTAMP) ||
        (c->known_column == PITH_KNOWN_ROW_TIME && t->time_column < 0))
        return rdb_damaged(r, "a known_at names a wrong column");
    if (c->name_string >= r->rdb->string_count)
        return rdb_damaged(r, "a column's name is no string");
    if (c->stype != PITH_STYPE_CATEGORICAL && c->stype != PITH_STYPE_TEXT) return PITH_OK;
    return rdb_indices(r, c->data, t->rows, r->rdb->string_count, true);
}

static pith_status rdb_table(rdb_reading *r, uint32_t table, const double *stats) {
    pith__rdb_table *t = &r->rdb->tables[table];
    uint64_t end;
    if (t->time_column >= (int32_t)t->column_count ||
        (t->time_column >= 0 && t->columns[t->time_column].stype != PITH_STYPE_TIMESTAMP))
        return rdb_damaged(r, "a table's time is no timestamp");
    for (uint32_t c = 0; c < t->column_count; c++) PITH_TRY(rdb_column(r, table, c, stats));
    if (t->times && t->time_column >= 0) return rdb_damaged(r, "a table has times twice");
    if (t->times)
        PITH_TRY(rdb_take((const void **)&t->times, r, PITH_RDB_TIMES,
                          (uint64_t)t->rows * sizeof *t->times));
    if (!t->key_begin) return PITH_OK;
    PITH_TRY(
        rdb_take((const void **)&t->key_begin, r, PITH_RDB_KEY_BEGIN, ((uint64_t)t->rows + 1) * 8));
    PITH_TRY(rdb_offsets(&end, r, t->key_begin, t->rows));
    return rdb_take((const void **)&t->key_bytes, r, PITH_RDB_KEY_BYTES, end);
}

static pith_status rdb_link(rdb_reading *r, uint32_t index) {
    pith__rdb_link *link = &r->rdb->links[index];
    if (link->child >= r->rdb->table_count || link->parent >= r->rdb->table_count)
        return rdb_damaged(r, "a link joins a table that is not there");
    const uint32_t children = r->rdb->tables[link->child].rows,
                   parents = r->rdb->tables[link->parent].rows;
    PITH_TRY(rdb_take((const void **)&link->up, r, PITH_RDB_UP, (uint64_t)children * 4));
    PITH_TRY(rdb_indices(r, link->up, children, parents, true));
    PITH_TRY(rdb_take((const void **)&link->begin, r, PITH_RDB_BEGIN, ((uint64_t)parents + 1) * 4));
    if (link->begin[0]) return rdb_damaged(r, "a link's offsets do not begin at 0");
    for (uint32_t i = 0; i < parents; i++) {
        PITH_TRY_ROW(r->stop, i, r->err);
        if (link->begin[i + 1] < link->begin[i]) return rdb_damaged(r, "a link's offsets fall");
    }
    PITH_TRY(
        rdb_take((const void **)&link->down, r, PITH_RDB_DOWN, (uint64_t)link->begin[parents] * 4));
    return rdb_indices(r, link->down, link->begin[parents], children, false);
}

static pith_status rdb_task(const rdb_reading *r, const pith__rdb_task *task) {
    if (task->table >= r->rdb->table_count)
        return rdb_damaged(r, "a task asks a table that is not there");
    const pith__rdb_table *t = &r->rdb->tables[task->table];
    static const bool asked[PITH_STYPE_COUNT] = {
        [PITH_STYPE_BOOLEAN] = true, [PITH_STYPE_NUMERICAL] = true, [PITH_STYPE_CATEGORICAL] = true
    };
    if (task->column >= t->column_count || task->time_column >= (int32_t)t->column_count ||
        (task->time_column >= 0 && t->columns[task->time_column].stype != PITH_STYPE_TIMESTAMP) ||
        (task->split == PITH_SPLIT_TIME && task->time_column < 0) ||
        !asked[t->columns[task->column].stype] ||
        (task->rank && t->columns[task->column].stype != PITH_STYPE_NUMERICAL))
        return rdb_damaged(r, "a task asks a wrong column");
    return PITH_OK;
}

/* The classes and labels of what a model keeps. */
static pith_status rdb_labels(rdb_reading *r, uint32_t index) {
    pith__rdb_task *task = &r->rdb->tasks[index];
    const pith__stype stype = r->rdb->tables[task->table].columns[task->column].stype;
    const uint32_t classes = task->class_count, labels = task->label_count;
    if (labels && (!r->rdb->kept || r->rdb->tables[task->table].rows))
        return rdb_damaged(r, "a database with rows keeps labels");
    if ((classes && (stype != PITH_STYPE_CATEGORICAL || labels != classes)) ||
        (labels && !classes && !(stype == PITH_STYPE_NUMERICAL && task->rank)))
        return rdb_damaged(r, "a task keeps labels of another kind");
    if (classes) {
        PITH_TRY(
            rdb_take((const void **)&task->classes, r, PITH_RDB_CLASSES, (uint64_t)classes * 4));
        PITH_TRY(rdb_indices(r, task->classes, classes, r->rdb->string_count, false));
    }
    if (labels)
        PITH_TRY(rdb_take((const void **)&task->labels, r, PITH_RDB_LABELS, (uint64_t)labels * 8));
    for (uint32_t i = 0; i < labels; i++) {
        PITH_TRY_ROW(r->stop, i, r->err);
        if (!isfinite(task->labels[i]) || (classes && !(task->labels[i] > 0)))
            return rdb_damaged(r, "a label is out of range");
    }
    return PITH_OK;
}

/* Takes the sections in the order in which counts become known: the JSON says how many tables,
 * columns and strings there are, and every other size follows from these. */
static pith_status rdb_content(rdb_reading *r) {
    pith__rdb *rdb = r->rdb;
    const void *text, *stats;
    uint64_t end;
    if (!r->count) return rdb_damaged(r, "it has no sections");
    PITH_TRY(rdb_take(&text, r, PITH_RDB_META, r->sections[0].bytes));
    PITH_TRY(meta_read(r, (pith_str){ text, (size_t)r->sections[0].bytes }));
    for (uint32_t i = 0; i < rdb->table_count; i++) {
        rdb->tables[i].first_cell = rdb->column_count;
        if (__builtin_add_overflow(rdb->column_count, rdb->tables[i].column_count,
                                   &rdb->column_count))
            return rdb_damaged(r, "it has too many columns");
    }
    if (!rdb->dim) return rdb_damaged(r, "its vectors have no components");
    PITH_TRY(rdb_take(&stats, r, PITH_RDB_STATS, (uint64_t)rdb->column_count * 24));
    for (uint32_t i = 0; i < rdb->table_count; i++) PITH_TRY(rdb_table(r, i, stats));
    for (uint32_t i = 0; i < rdb->link_count; i++) PITH_TRY(rdb_link(r, i));
    for (uint32_t i = 0; i < rdb->task_count; i++) PITH_TRY(rdb_task(r, &rdb->tasks[i]));
    PITH_TRY(rdb_take((const void **)&rdb->string_begin, r, PITH_RDB_STRING_BEGIN,
                      ((uint64_t)rdb->string_count + 1) * 8));
    PITH_TRY(rdb_offsets(&end, r, rdb->string_begin, rdb->string_count));
    PITH_TRY(rdb_take((const void **)&rdb->string_bytes, r, PITH_RDB_STRING_BYTES, end));
    PITH_TRY(rdb_take((const void **)&rdb->vectors, r, PITH_RDB_VECTORS,
                      (uint64_t)rdb->string_count * rdb->dim * 4));
    for (uint64_t i = 0; i < (uint64_t)rdb->string_count * rdb->dim; i++) {
        PITH_TRY_ROW(r->stop, i, r->err);
        if (!isfinite(rdb->vectors[i])) return rdb_damaged(r, "a vector is not finite");
    }
    if (rdb->schema.size)
        PITH_TRY(rdb_take((const void **)&rdb->schema.data, r, PITH_RDB_SCHEMA, rdb->schema.size));
    for (uint32_t i = 0; i < rdb->task_count; i++) PITH_TRY(rdb_labels(r, i));
    return PITH_OK;
}

static pith_status rdb_checksum(uint64_t *sum, const rdb_reading *r, const uint8_t *data,
                                size_t size) {
    pith__hash hash;
    pith__hash_init(&hash);
    for (size_t i = 0; i < size; i += PITH_WORK_BYTES) {
        PITH_TRY(pith__stop_check(r->stop, r->err));
        pith__hash_add(&hash, data + i, size - i < PITH_WORK_BYTES ? size - i : PITH_WORK_BYTES);
    }
    *sum = pith__hash_end(&hash);
    return PITH_OK;
}

/* The checksum is compared first. It does not make a file trustworthy, since anyone can compute it,
 * but it tells damage from malice in messages. */
static pith_status rdb_read(rdb_reading *r) {
    const pith__file *file = &r->rdb->file;
    pith__rdb_header h;
    uint64_t sum;
    if (file->size < sizeof h || memcmp(file->data, PITH_RDB_MAGIC, sizeof h.magic) != 0)
        return pith__fail(r->err, PITH_ERR_FORMAT,
                          "%s is no database file; pith preprocess makes one", r->path);
    memcpy(&h, file->data, sizeof h);
    if (h.version != PITH_RDB_VERSION || h.order != PITH_RDB_ORDER)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "%s was made by another version of Pith or on a machine of another byte "
                          "order; make it again",
                          r->path);
    if (h.bytes != file->size) return rdb_damaged(r, "it is not complete");
    PITH_TRY(rdb_checksum(&sum, r, file->data + sizeof h, file->size - sizeof h));
    if (h.checksum != sum) return rdb_damaged(r, "its checksum is wrong");
    if (h.sections > (file->size - sizeof h) / sizeof *r->sections)
        return rdb_damaged(r, "it lists more than it holds");
    r->sections = (const pith__rdb_section *)(file->data + sizeof h);
    r->count = h.sections;
    r->rdb->checksum = h.checksum;
    return rdb_content(r);
}

pith_status pith__rdb_open(pith__rdb *rdb, const char *path, pith__stop *stop,
                           const pith_allocator *allocator, pith_error *err) {
    rdb_reading r = { .rdb = rdb, .path = path, .stop = stop, .err = err };
    *rdb = (pith__rdb){ .name = { NULL, 0 } };
    pith__arena_init(&rdb->arena, allocator);
    pith_status status = pith__file_open(&rdb->file, path, false, allocator, err);
    if (status) {
        rdb->file.data = NULL;
        return status;
    }
    status = rdb_read(&r);
    if (status) pith__rdb_close(rdb);
    return status;
}

void pith__rdb_close(pith__rdb *rdb) {
    pith__arena_free(&rdb->arena);
    if (rdb->file.data) pith__file_close(&rdb->file);
    rdb->file.data = NULL;
}
