/* rdb_use.h - bytes as a database file whose size and checksum are made right, and everything that
 * reads one: opening, describing, and for each task a model's answers and a step of training, and
 * the baselines. */
#ifndef PITH_TESTS_FUZZ_RDB_USE_H
#define PITH_TESTS_FUZZ_RDB_USE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checksum.h"
#include "tables/baseline/baseline.h"
#include "tables/database/database.h"
#include "tables/database/rdb_file.h"
#include "tables/network/trainer.h"

enum { RDB_USE_MEMORY = 400 << 20 };

/* An allocator that refuses more than RDB_USE_MEMORY. */
typedef struct rdb_memory {
    size_t used;
} rdb_memory;

static inline void *rdb_allocate(void *user, size_t bytes) {
    rdb_memory *m = user;
    if (bytes > RDB_USE_MEMORY - m->used) return NULL;
    size_t *p = malloc(bytes + 16);
    if (!p) return NULL;
    *p = bytes;
    m->used += bytes;
    return p + 2;
}

static inline void rdb_release(void *user, void *memory) {
    rdb_memory *m = user;
    if (!memory) return;
    m->used -= ((size_t *)memory)[-2];
    free((size_t *)memory - 2);
}

static inline int32_t rdb_ignore(void *user, const void *text, size_t size) {
    (void)user, (void)text, (void)size;
    return 0;
}

static inline void rdb_ask(pith_database *db, const pith__rdb_task *task) {
    pith_error err = PITH_ERROR_INIT;
    const pith__work work = { .threads = 1 };
    pith_relational *model;
    const uint32_t all = db->rdb.tables[task->table].rows, rows[] = { 0, all / 2, all - 1 };
    float answers[3 * PITH_TARGET_CLASSES];
    double loss, of_baseline[3 * PITH_TARGET_CLASSES];
    static const char config[] =
        "{\"dim\": 16, \"heads\": 1, \"ff\": 16, \"blocks\": 1, \"batch\": 2, \"cells\": 64, "
        "\"width\": 3, \"attend\": [\"column\", \"feature\", \"neighbour\", \"full\"]}";
    if (!all) return;
    if (!pith__trainer_create(&model, &(pith__trainer_question){ &db->rdb, task->name }, 1,
                              (pith_str){ config, sizeof config - 1 }, 1, NULL, &db->allocator,
                              &err)) {
        pith__trainer_predict(answers, model, rows, 3, &work, &err);
        pith__trainer_train(&loss, model, 1, &work, &err);
        pith__trainer_free(model);
    }
    for (int k = 0; k < PITH_BASELINE_COUNT; k++) {
        pith__baseline b;
        if (!pith__baseline_fit(&b, &db->rdb, task, (pith__baseline_kind)k, &work, &db->allocator,
                                &err))
            pith__baseline_answer(of_baseline, &b, rows, 3, &work, &err);
        pith__baseline_free(&b);
    }
}

/* Returns whether the bytes are a database. They are changed. */
static inline bool rdb_use(uint8_t *bytes, size_t size) {
    pith_error err = PITH_ERROR_INIT;
    rdb_memory memory = { 0 };
    const pith_allocator allocator = { rdb_allocate, rdb_release, &memory };
    pith_call call = PITH_CALL_INIT;
    pith_database *db;
    char path[40];
    call.allocator = &allocator;
    if (size >= sizeof(pith__rdb_header)) {
        pith__rdb_header h;
        memcpy(&h, bytes, sizeof h);
        h.bytes = size;
        h.checksum = pith__hash_of(bytes + sizeof h, size - sizeof h);
        memcpy(bytes, &h, sizeof h);
    }
    const int file = memfd_create("rdb", 0);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const bool is = !pith__database_open_run(&db, path, &call, &err);
    if (is) {
        const pith_writer writer = { .write = rdb_ignore };
        (void)pith__rdb_describe(&db->rdb, NULL, &allocator, &writer, &err);
        for (uint32_t t = 0; t < db->rdb.task_count && t < 8; t++) rdb_ask(db, &db->rdb.tasks[t]);
        pith__database_free(db);
    }
    close(file);
    if (memory.used) abort(); /* nothing leaks */
    return is;
}

#endif
