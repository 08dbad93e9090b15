/* test_search_file.c - what can go wrong with indexes that change and with their files: wrong
 * arguments, memory that runs out, calls that end early, writers that fail, and files that are cut
 * off, damaged or made to deceive. */
#include "search_test.h"

#include <stdio.h>

#include "base/checksum.h"
#include "base/os/clock.h"
#include "index_use.h"
#include "support/failing_alloc.h"

enum { HEADER = 48, ENTRY = 32, COUNT_ = 60, DIM = 9 };

static const int64_t document_offsets[] = { 0, 3, 3, 40, COUNT_ };

/* One of each kind: the sections of their files differ. */
enum { KINDS = 7 };
static set kind_set(int kind) {
    static const int dtypes[KINDS] = { PITH_F32, PITH_F32, PITH_F32, PITH_F16,
                                       PITH_I8,  PITH_U8,  PITH_F32 },
                     passes[KINDS] = { 0, 1, 2, 1, 0, 0, 0 };
    set s = set_make(dtypes[kind], kind == 5, kind % 3, COUNT_, DIM, 2, 0);
    s.how.first_pass = passes[kind];
    if (kind == 1) s.how.metric = PITH_METRIC_L2;
    if (kind == 6)
        s.how.metric = PITH_METRIC_MAXSIM, s.how.offsets = document_offsets, s.how.documents = 4;
    return s;
}

static int64_t some_ids[COUNT_];

static pith_search_index *kind_index(const set *s) {
    for (int i = 0; i < COUNT_; i++) some_ids[i] = (int64_t)((i * 37) % COUNT_) * 1000 + 5;
    pages p = { s->rows, some_ids, s->row_bytes, COUNT_, 7, 0, 0 };
    return s->how.offsets ? set_index(s) : build(&p, s);
}

/* ---- arguments ---- */

static pith_status next_fails(void *user, const void **rows, const int64_t **ids, size_t *count,
                              pith_error *err) {
    const int *says = user;
    (void)rows;
    (void)ids;
    (void)count;
    if (*says) snprintf(err->message, sizeof err->message, "page 7 is locked");
    return PITH_ERR_BUSY;
}

static void refused_build(const pith_row_source *source, size_t dim,
                          const pith_search_index_options *how, pith_status wanted,
                          const char *says) {
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    assert_int_equal(pith_search_index_build(&index, source, dim, how, &err), wanted);
    assert_null(index);
    if (!strstr(err.message, says)) fail_msg("'%s' does not say '%s'", err.message, says);
}

static void wrong_builds(void **state) {
    (void)state;
    static const float rows[8];
    static const int64_t twice[] = { 4, 5, 6, 4 }, negative[] = { 1, -1, 2, 3 }, offset = 0;
    pith_search_index_options o = PITH_SEARCH_INDEX_OPTIONS_INIT;
    pages p = { .rows = rows, .ids = twice, .row_bytes = 8, .count = 4, .page = 3 };
    const pith_row_source source = { pages_next, &p }, none = { NULL, NULL };
    int says = 0;
    const pith_row_source fails = { next_fails, &says };
    refused_build(NULL, 2, NULL, PITH_ERR_ARGUMENT, "no source");
    refused_build(&none, 2, NULL, PITH_ERR_ARGUMENT, "no source");
    refused_build(&source, 0, NULL, PITH_ERR_ARGUMENT, "dim 0");
    refused_build(&source, 2, NULL, PITH_ERR_ARGUMENT, "after 3 rows: id 4 comes twice");
    p = (pages){ .rows = rows, .ids = negative, .row_bytes = 8, .count = 4, .page = 4 };
    refused_build(&source, 2, NULL, PITH_ERR_ARGUMENT, "ids[1] is -1");
    refused_build(&fails, 2, NULL, PITH_ERR_BUSY, "after 0: it failed");
    says = 1;
    refused_build(&fails, 2, NULL, PITH_ERR_BUSY, "page 7 is locked");
    o.offsets = &offset;
    refused_build(&source, 2, &o, PITH_ERR_ARGUMENT, "maxsim only");
    o.metric = PITH_METRIC_MAXSIM;
    refused_build(&source, 2, &o, PITH_ERR_UNSUPPORTED, "pith_search_index_create");
    o = (pith_search_index_options)PITH_SEARCH_INDEX_OPTIONS_INIT;
    o.row_bytes = 7;
    refused_build(&source, 2, &o, PITH_ERR_ARGUMENT, "row_bytes is 7");
}

static void wrong_changes(void **state) {
    (void)state;
    const float rows[4] = { 0 };
    const int64_t ids[] = { 3, -4 };
    pith_error err = PITH_ERROR_INIT;
    pith_call call = PITH_CALL_INIT;
    pith_search_index *over = NULL;
    assert_int_equal(pith_search_index_create(&over, rows, 2, 2, NULL, &err), PITH_OK);
    assert_int_equal(pith_search_index_add(over, rows, ids, 1, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "pith_search_index_build"));
    pith_search_index_destroy(over);
    set s = kind_set(0);
    pith_search_index *index = kind_index(&s);
    assert_int_equal(pith_search_index_add(index, rows, ids, 2, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "ids[1] is -4"));
    assert_int_equal(pith_search_index_add(index, NULL, ids, 1, NULL, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_remove(index, NULL, NULL, 1, NULL, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_remove(index, NULL, ids, 2, NULL, &err), PITH_OK);
    call.threads = -1;
    assert_int_equal(pith_search_index_add(index, s.rows, ids, 1, &call, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_save(index, NULL, NULL, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_add(index, NULL, NULL, 0, NULL, &err), PITH_OK);
    assert_int_equal(pith_search_index_count(index), COUNT_);
    pith_search_index_destroy(index);
    set_free(s);
}

static void wrong_opens(void **state) {
    (void)state;
    set s = kind_set(1);
    pith_search_index *index = kind_index(&s), *opened = NULL;
    pith_error err = PITH_ERROR_INIT;
    pith_search_index_options o = PITH_SEARCH_INDEX_OPTIONS_INIT;
    file_bytes b = save(index);
    assert_int_equal(pith_search_index_open(&opened, NULL, 0, NULL, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_open(&opened, "/none/x.pix", 0, NULL, &err),
                     PITH_ERR_NOT_FOUND);
    assert_int_equal(pith_search_index_verify("/none/x.pix", NULL, &err), PITH_ERR_NOT_FOUND);
    assert_int_equal(pith_search_index_open(&opened, PITH_SOURCE_DIR "/Makefile", 0, NULL, &err),
                     PITH_ERR_FORMAT);
    assert_non_null(strstr(err.message, "Makefile: not an index"));
    assert_int_equal(pith_search_index_open_memory(&opened, NULL, 0, 0, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_open_memory(&opened, b.data + 1, b.size - 1, 0, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_int_equal(pith_search_index_open_memory(&opened, b.data, b.size, DIM + 1, NULL, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "dim 9, not 10"));
    o.first_pass = PITH_FIRST_PASS_BINARY;
    assert_int_equal(pith_search_index_open_memory(&opened, b.data, b.size, DIM, &o, &err),
                     PITH_ERR_ARGUMENT);
    assert_null(opened);
    o.first_pass = PITH_FIRST_PASS_INT8;
    assert_int_equal(pith_search_index_open_memory(&opened, b.data, b.size, DIM, &o, &err),
                     PITH_OK);
    assert_int_equal(pith_search_index_dim(opened), DIM);
    pith_search_index_destroy(opened);
    pith_search_index_destroy(index);
    free(b.data);
    set_free(s);
}

/* ---- files ---- */

static void put_number(char *p, uint64_t x, int size) {
    for (int i = 0; i < size; i++, x >>= 8) p[i] = (char)(x & 0xFF);
}

static uint64_t number(const char *p, int size) {
    uint64_t x = 0;
    while (size-- > 0) x = x << 8 | (unsigned char)p[size];
    return x;
}

/* Makes the size and the hash of the header right, and the hash of the settings. */
static void put_right(char *file, size_t size) {
    const size_t end = HEADER + (size_t)number(file + 12, 4) * ENTRY;
    if (size < end || end > HEADER + 1024 * ENTRY) return;
    const uint64_t at = number(file + HEADER + 8, 8), bytes_ = number(file + HEADER + 16, 8);
    if (at <= size && bytes_ <= size - at)
        put_number(file + HEADER + 24, pith__hash_of(file + at, (size_t)bytes_), 8);
    put_number(file + 16, size, 8);
    put_number(file + 24, pith__hash_of(file + 32, end - 32), 8);
}

/* Opens bytes of just this size, and if that succeeds, searches, changes and saves. Returns the
 * status of opening. */
static pith_status use(const char *file, size_t size, bool right) {
    static float query[4096];
    char *copy = aligned_alloc(8, (size + 8) & ~(size_t)7);
    pith_error err = PITH_ERROR_INIT;
    pith_search_index *index = NULL;
    memcpy(copy, file, size);
    if (right) put_right(copy, size);
    const pith_status status = pith_search_index_open_memory(&index, copy, size, 0, NULL, &err);
    if (status) {
        assert_null(index);
        assert_true(err.message[0]);
        assert_true(status == PITH_ERR_FORMAT || status == PITH_ERR_UNSUPPORTED);
    } else if (pith_search_index_dim(index) <= COUNT(query)) {
        pith_hit hits[5];
        const int64_t id = 5;
        assert_int_equal(pith_search(hits, index, query, 1, 5, NULL, &err), PITH_OK);
        free(save(index).data);
        if (!pith_search_index_remove(index, NULL, &id, 1, NULL, &err)) {
            assert_int_equal(pith_search(hits, index, query, 1, 5, NULL, &err), PITH_OK);
            free(save(index).data);
        }
    }
    pith_search_index_destroy(index);
    free(copy);
    return status;
}

static void write_file(const char *path, const char *data, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* A path of a file of one's own, which is there and empty. */
static void own_path(char *path, size_t size) {
    snprintf(path, size, "%s", "/tmp/pith-search-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

/* PITH_TEST_SEEDS: a folder that gets the files, for the fuzz target. */
static void write_seed(int kind, const file_bytes *b) {
    const char *folder = getenv("PITH_TEST_SEEDS");
    char path[256];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/kind_%d.pix", folder, kind);
    write_file(path, b->data, b->size);
}

static void cut_off(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        set s = kind_set(kind);
        pith_search_index *index = kind_index(&s);
        file_bytes b = save(index);
        assert_int_equal(use(b.data, b.size, false), PITH_OK);
        write_seed(kind, &b);
        for (size_t size = 0; size < b.size; size += size < 600 ? 1 : 61) {
            assert_int_equal(use(b.data, size, false), PITH_ERR_FORMAT);
            if (size > 8) (void)use(b.data, size, true);
        }
        pith_search_index_destroy(index);
        free(b.data);
        set_free(s);
    }
}

/* Each bit of the header and the settings, with the hashes as they were and made right; and bits of
 * the contents, which only verifying sees. */
static void flipped(void **state) {
    (void)state;
    char path[64];
    own_path(path, sizeof path);
    for (int kind = 0; kind < KINDS; kind++) {
        set s = kind_set(kind);
        pith_search_index *index = kind_index(&s);
        file_bytes b = save(index);
        const size_t settings = (size_t)number(b.data + HEADER + 8, 8) + 64;
        write_file(path, b.data, b.size);
        assert_int_equal(pith_search_index_verify(path, NULL, NULL), PITH_OK);
        for (size_t i = 0; i < b.size; i += i < settings ? 1 : 97)
            for (int bit = 0; bit < 8; bit++) {
                b.data[i] = (char)(b.data[i] ^ 1 << bit);
                const pith_status status = use(b.data, b.size, false);
                const size_t table = HEADER + (size_t)number(b.data + 12, 4) * ENTRY;
                if (i < table || (i >= settings - 64 && i < settings))
                    assert_true(status == PITH_ERR_FORMAT || status == PITH_ERR_UNSUPPORTED);
                (void)use(b.data, b.size, true);
                b.data[i] = (char)(b.data[i] ^ 1 << bit);
            }
        const size_t rows = (size_t)number(b.data + HEADER + ENTRY + 8, 8);
        pith_error err = PITH_ERROR_INIT;
        b.data[rows + 3] ^= 4;
        write_file(path, b.data, b.size);
        assert_int_equal(pith_search_index_verify(path, NULL, &err), PITH_ERR_FORMAT);
        assert_non_null(strstr(err.message, "section 1 (rows)"));
        pith_search_index_destroy(index);
        free(b.data);
        set_free(s);
    }
    unlink(path);
}

/* Numbers that a table and settings must not have, under right hashes. */
static void forged(void **state) {
    (void)state;
    static const uint64_t numbers[] = { 0,          1,         2,          63,
                                        64,         1u << 20,  0x7FFFFFFF, 0x80000000,
                                        UINT32_MAX, INT64_MAX, 1ull << 63, UINT64_MAX };
    for (int kind = 0; kind < KINDS; kind++) {
        set s = kind_set(kind);
        pith_search_index *index = kind_index(&s);
        file_bytes b = save(index);
        const size_t settings = (size_t)number(b.data + HEADER + 8, 8) + 64;
        char *was = malloc(b.size);
        memcpy(was, b.data, b.size);
        for (size_t i = 8; i + 8 <= settings; i += 4)
            for (size_t n = 0; n < COUNT(numbers); n++)
                for (int size = 4; size <= 8; size += 4) {
                    put_number(b.data + i, numbers[n], size);
                    (void)use(b.data, b.size, true);
                    memcpy(b.data, was, b.size);
                }
        /* A section that nobody knows is skipped from 0x80000000 on, and else refused. */
        const size_t sections = (size_t)number(b.data + 12, 4), end = HEADER + sections * ENTRY;
        if (end + ENTRY <= settings - 64) {
            for (int optional = 0; optional < 2; optional++) {
                char *e = b.data + end;
                put_number(b.data + 12, sections + 1, 4);
                put_number(e, optional ? 0x80000001u : 9, 4);
                put_number(e + 8, b.size & ~(size_t)63, 8);
                const uint64_t last = number(e - ENTRY + 8, 8) + number(e - ENTRY + 16, 8);
                put_number(e + 8, (last + 63) & ~(uint64_t)63, 8);
                char *larger = aligned_alloc(64, (b.size + 191) & ~(size_t)63);
                memset(larger, 0, b.size + 128);
                memcpy(larger, b.data, b.size);
                assert_int_equal(use(larger, b.size + 128 - b.size % 64, true),
                                 optional ? PITH_OK : PITH_ERR_UNSUPPORTED);
                free(larger);
                memcpy(b.data, was, b.size);
            }
        }
        free(was);
        pith_search_index_destroy(index);
        free(b.data);
        set_free(s);
    }
}

/* Offsets that lead out of the rows. */
static void forged_offsets(void **state) {
    (void)state;
    static const int64_t wrong[] = { -1, 61, INT64_MAX, INT64_MIN };
    set s = kind_set(6);
    pith_search_index *index = kind_index(&s);
    file_bytes b = save(index);
    size_t at = 0;
    for (size_t i = 0; i < (size_t)number(b.data + 12, 4); i++)
        if (number(b.data + HEADER + i * ENTRY, 4) == 4)
            at = (size_t)number(b.data + HEADER + i * ENTRY + 8, 8);
    assert_true(at > 0);
    for (size_t n = 0; n < COUNT(wrong); n++)
        for (size_t i = 0; i < 5; i++) {
            int64_t was;
            memcpy(&was, b.data + at + 8 * i, 8);
            memcpy(b.data + at + 8 * i, &wrong[n], 8);
            assert_int_equal(use(b.data, b.size, false), PITH_ERR_FORMAT);
            memcpy(b.data + at + 8 * i, &was, 8);
        }
    pith_search_index_destroy(index);
    free(b.data);
    set_free(s);
}

/* From a file, mapped, in the time of a few system calls. */
static void mapped(void **state) {
    (void)state;
    char path[64];
    own_path(path, sizeof path);
    set s = set_make(PITH_F32, 0, PITH_METRIC_COSINE, 20000, 100, 2, 0);
    s.how.first_pass = PITH_FIRST_PASS_INT8;
    pages p = { .rows = s.rows, .row_bytes = s.row_bytes, .count = s.count, .page = 999 };
    pith_search_index *index = build(&p, &s), *opened = NULL;
    pith_hit hits[20], good[20];
    file_bytes b = save(index);
    write_file(path, b.data, b.size);
    free(b.data);
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        const uint64_t begin = pith__clock_thread_ns();
        assert_int_equal(pith_search_index_open(&opened, path, s.dim, NULL, NULL), PITH_OK);
        const uint64_t took = pith__clock_thread_ns() - begin;
        if (took < least) least = took;
        if (i < 4) pith_search_index_destroy(opened);
    }
    assert_true(least < 5000000);
    assert_true(pith_search_index_bytes(opened) < 4096);
    search(good, index, s.query, 2, 10, NULL);
    search(hits, opened, s.query, 2, 10, NULL);
    assert_hits(hits, good, 20, 20, "mapped");
    pith_search_index_destroy(index);
    pith_search_index_destroy(opened);
    unlink(path);
    set_free(s);
}

/* ---- memory ---- */

enum { WORK_BUILD, WORK_ADD, WORK_REMOVE, WORK_SAVE, WORK_OPEN, WORK_THAW, WORKS };

static int32_t drop_bytes(void *user, const void *data, size_t size) {
    (void)user;
    (void)data;
    (void)size;
    return 0;
}

/* Does the work, in which request number fail_at of memory is refused. Afterwards an index that
 * there was finds what it found. */
static pith_status work(int what, const set *s, const file_bytes *file, long fail_at) {
    counter c = { 0 };
    const pith_allocator allocator = { count_alloc, count_free, &c };
    const pith_writer writer = { .write = drop_bytes };
    pith_search_index *index = NULL;
    pith_search_index_options how = s->how;
    pith_error err = PITH_ERROR_INIT;
    pith_call call = PITH_CALL_INIT;
    pith_status status = PITH_OK;
    pages p = { s->rows, some_ids, s->row_bytes, s->count, 40, 0, 0 };
    const pith_row_source source = { pages_next, &p };
    static pith_hit good[10], hits[10];
    static int64_t more[500];
    static char rows[500 * 64];
    for (int i = 0; i < 500; i++) more[i] = i * 3;
    how.row_bytes = s->row_bytes, how.call.threads = call.threads = 1;
    how.call.allocator = &allocator;
    if (what == WORK_BUILD || what == WORK_OPEN) c.fail_at = fail_at;
    if (what == WORK_OPEN || what == WORK_THAW)
        status = pith_search_index_open_memory(&index, file->data, file->size, DIM, &how, &err);
    else
        status = pith_search_index_build(&index, &source, DIM, &how, &err);
    if (status) assert_null(index);
    if (status || what == WORK_BUILD || what == WORK_OPEN) goto done;
    search(good, index, s->query, 2, 5, NULL);
    const size_t count = pith_search_index_count(index);
    c.calls = 0;
    c.fail_at = fail_at;
    if (what == WORK_ADD)
        status = pith_search_index_add(index, rows, more, 500, &call, &err);
    else if (what == WORK_SAVE)
        status = pith_search_index_save(index, &call, &writer, &err);
    else
        status = pith_search_index_remove(index, NULL, more, 500, &call, &err);
    c.fail_at = 0;
    if (status || what == WORK_SAVE) {
        assert_int_equal(pith_search_index_count(index), count);
        search(hits, index, s->query, 2, 5, NULL);
        assert_hits(hits, good, 10, 10, "after a failure");
    }
done:
    if (status) assert_true(status == PITH_ERR_MEMORY && strstr(err.message, "out of memory"));
    pith_search_index_destroy(index);
    assert_int_equal(c.live, 0);
    return status;
}

static void out_of_memory(void **state) {
    (void)state;
    static const long least[WORKS] = { 5, 1, 0, 1, 2, 4 };
    for (int kind = 0; kind < KINDS - 1; kind++) {
        set s = kind_set(kind);
        pith_search_index *index = kind_index(&s);
        file_bytes file = save(index);
        for (int what = 0; what < WORKS; what++) {
            long failures = 0;
            while (work(what, &s, &file, failures + 1)) failures++;
            if (failures < least[what])
                fail_msg("kind %d, work %d: %ld failures", kind, what, failures);
        }
        pith_search_index_destroy(index);
        free(file.data);
        set_free(s);
    }
}

/* ---- writers, and calls that end early ---- */

typedef struct full {
    size_t room, written;
} full;

static int32_t full_write(void *user, const void *data, size_t size) {
    full *f = user;
    (void)data;
    if (size > f->room - f->written) return 1;
    f->written += size;
    return 0;
}

static void disk_full(void **state) {
    (void)state;
    set s = set_make(PITH_F32, 0, PITH_METRIC_COSINE, 4000, 30, 1, 0);
    pages p = { .rows = s.rows, .row_bytes = s.row_bytes, .count = s.count, .page = 999 };
    pith_search_index *index = build(&p, &s);
    size_t failures = 0;
    for (full f = { 0, 0 };; f.room += 40000, f.written = 0) {
        const pith_writer writer = { .write = full_write, .user = &f };
        pith_error err = PITH_ERROR_INIT;
        const pith_status status = pith_search_index_save(index, NULL, &writer, &err);
        if (!status) break;
        assert_int_equal(status, PITH_ERR_IO);
        assert_non_null(strstr(err.message, "the index could not be written"));
        failures++;
    }
    assert_true(failures > 5);
    pith_search_index_destroy(index);
    set_free(s);
}

typedef struct asker {
    long asked, stop_at;
} asker;

static int32_t ask(void *user) {
    asker *a = user;
    return ++a->asked == a->stop_at;
}

static pith_status ask_work(int what, const set *s, asker *a) {
    const pith_writer writer = { .write = drop_bytes };
    pith_search_index *index = NULL;
    pith_search_index_options how = s->how;
    pith_error err = PITH_ERROR_INIT;
    pith_call call = PITH_CALL_INIT;
    pages p = { .rows = s->rows, .row_bytes = s->row_bytes, .count = s->count, .page = s->count };
    const pith_row_source source = { pages_next, &p };
    pith_status status = PITH_OK;
    call.stop = ask, call.user = a, call.threads = 1;
    how.row_bytes = s->row_bytes;
    if (what == WORK_BUILD) how.call.stop = ask, how.call.user = a;
    how.call.threads = 1;
    status = pith_search_index_build(&index, &source, s->dim, &how, &err);
    if (what == WORK_BUILD && status) assert_null(index);
    if (what == WORK_ADD)
        status = pith_search_index_add(index, s->rows, NULL, s->count, &call, &err);
    if (what == WORK_SAVE) status = pith_search_index_save(index, &call, &writer, &err);
    if (what == WORK_ADD && status) assert_int_equal(pith_search_index_count(index), s->count);
    pith_search_index_destroy(index);
    return status;
}

/* The caller is asked every few milliseconds, and each answer ends the call. */
static void ended_early(void **state) {
    (void)state;
    static const int works[] = { WORK_BUILD, WORK_ADD, WORK_SAVE };
    set s = set_make(PITH_F32, 0, PITH_METRIC_L2, 40000, 100, 1, 0);
    s.how.first_pass = PITH_FIRST_PASS_INT8;
    for (size_t i = 0; i < COUNT(works); i++) {
        for (long at = 1; at <= 3; at++) {
            asker a = { 0, at };
            const pith_status status = ask_work(works[i], &s, &a);
            if (status)
                assert_int_equal(status, PITH_ERR_CANCELLED);
            else
                assert_true(a.asked < at);
            if (at == 1) assert_int_equal(status, PITH_ERR_CANCELLED);
        }
    }
    set_free(s);
}

/* A million rows: the time of the processor from the deadline to the end of the call. They are
 * pages of zeros that nobody has written to. */
static void a_million(void **state) {
    (void)state;
    const size_t count = 1000000, dim = 384;
    const int64_t offsets[] = { 0, 1000000 };
    const size_t query_offsets[] = { 0, 64 };
    float *queries = calloc(64 * dim, sizeof *queries);
    pith_hit *hits = calloc(64 * 10, sizeof *hits);
    void *rows =
        mmap(NULL, count * dim * 4, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (rows == MAP_FAILED) skip(); /* the address space is limited */
    for (int metric = 0; metric < 4; metric++) {
        pith_search_index_options how = PITH_SEARCH_INDEX_OPTIONS_INIT;
        pith_search_options o = PITH_SEARCH_OPTIONS_INIT;
        pith_search_index *index = NULL;
        how.metric = metric;
        if (metric == PITH_METRIC_MAXSIM)
            how.offsets = offsets, how.documents = 1, o.query_offsets = query_offsets;
        assert_int_equal(pith_search_index_create(&index, rows, count, dim, &how, NULL), PITH_OK);
        o.call.threads = 1;
        o.call.deadline_ns = pith_clock_now() + 3000000;
        const uint64_t begin = pith__clock_thread_ns();
        assert_int_equal(
            pith_search(hits, index, queries, metric == PITH_METRIC_MAXSIM ? 1 : 64, 10, &o, NULL),
            PITH_ERR_DEADLINE);
        const uint64_t took = pith__clock_thread_ns() - begin;
        if (took > 53000000) fail_msg("metric %d: %llu ns", metric, (unsigned long long)took);
        pith_search_index_destroy(index);
    }
    munmap(rows, count * dim * 4);
    free(queries);
    free(hits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_builds),   cmocka_unit_test(wrong_changes),
        cmocka_unit_test(wrong_opens),    cmocka_unit_test(cut_off),
        cmocka_unit_test(flipped),        cmocka_unit_test(forged),
        cmocka_unit_test(forged_offsets), cmocka_unit_test(mapped),
        cmocka_unit_test(out_of_memory),  cmocka_unit_test(disk_full),
        cmocka_unit_test(ended_early),    cmocka_unit_test(a_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
