/* index_use.h - a source of rows in pages, and files of indexes in memory. */
#ifndef PITH_TESTS_INDEX_USE_H
#define PITH_TESTS_INDEX_USE_H

#include "search_test.h"

typedef struct pages {
    const void *rows;
    const int64_t *ids; /* NULL: none */
    size_t row_bytes, count, page;
    size_t at, asked; /* rows given so far; calls */
} pages;

static inline pith_status pages_next(void *user, const void **rows, const int64_t **ids,
                                     size_t *count, pith_error *err) {
    pages *p = user;
    (void)err;
    assert_null(*ids);
    p->asked++;
    *count = p->count - p->at < p->page ? p->count - p->at : p->page;
    *rows = p->at ? (const char *)p->rows + p->at * p->row_bytes : p->rows;
    if (p->ids) *ids = p->ids + p->at;
    p->at += *count;
    return PITH_OK;
}

/* Bytes of a row without a gap. */
static inline size_t tight(const set *s) {
    static const size_t sizes[] = { [PITH_F32] = 4, [PITH_U8] = 1, [PITH_I8] = 1, [PITH_F16] = 2 };
    return s->how.bits ? (s->dim + 7) / 8 : s->dim * sizes[s->how.dtype ? s->how.dtype : PITH_F32];
}

static inline pith_search_index *build(pages *p, const set *s) {
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    const pith_row_source source = { pages_next, p };
    pith_search_index_options how = s->how;
    how.row_bytes = p->row_bytes;
    if (pith_search_index_build(&index, &source, s->dim, &how, &err)) fail_msg("%s", err.message);
    return index;
}

typedef struct file_bytes {
    char *data; /* aligned to 64 */
    size_t size, room;
} file_bytes;

static inline int32_t bytes_begin(void *user, uint64_t total) {
    file_bytes *b = user;
    b->room = (size_t)total;
    b->data = aligned_alloc(64, ((size_t)total + 64) & ~(size_t)63);
    return !b->data;
}

static inline int32_t bytes_write(void *user, const void *data, size_t size) {
    file_bytes *b = user;
    if (size > b->room - b->size) return 1;
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

static inline file_bytes save(const pith_search_index *index) {
    pith_error err = PITH_ERROR_INIT;
    file_bytes b = { 0 };
    const pith_writer writer = { bytes_write, bytes_begin, &b };
    if (pith_search_index_save(index, NULL, &writer, &err)) fail_msg("%s", err.message);
    assert_int_equal(b.size, b.room);
    return b;
}

/* Files that an index looks at, until let_go. */
static void *kept[64];
static size_t kept_count;

static inline void keep(void *data) {
    assert_true(kept_count < COUNT(kept));
    kept[kept_count++] = data;
}

static inline void let_go(void) {
    while (kept_count) free(kept[--kept_count]);
}

#endif
