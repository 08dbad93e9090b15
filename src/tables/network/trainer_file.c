/* trainer_file.c - a model and the state of its training as bytes: header, names of the tasks with
 * newlines between, configuration, parameters, both moments as long as the training is not done,
 * and a checksum of all that. */
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/str.h"
#include "base/work.h"
#include "base/writer.h"
#include "tables/database/rdb_keep.h"
#include "tables/network/trainer.h"

typedef struct trainer_header {
    char magic[8];
    uint32_t version, order;
    uint64_t database, seed, size; /* checksum of the databases; floats of the parameters */
    int64_t step;
    uint32_t task_bytes, config_bytes; /* config_bytes: UINT32_MAX: none */
    uint32_t sources, arrays;          /* arrays: 1, or 3 with the moments */
} trainer_header;

#define TRAINER_MAGIC "PITHRUN"
enum { TRAINER_VERSION = 3 };

typedef struct trainer_out {
    pith__out out;
    pith__hash hash;
} trainer_out;

static void trainer_put(trainer_out *o, const void *data, size_t size) {
    for (size_t at = 0, n; at < size && !o->out.failed; at += n) {
        n = size - at < PITH_WORK_BYTES ? size - at : PITH_WORK_BYTES;
        pith__hash_add(&o->hash, (const char *)data + at, n);
        pith__out_put(&o->out, (const char *)data + at, n);
    }
}

/* A database's checksum, or that of the checksums of several. */
static uint64_t trainer_checksum(const pith__rdb *const *rdbs, size_t count) {
    pith__hash hash;
    if (count == 1) return rdbs[0]->checksum;
    pith__hash_init(&hash);
    for (size_t i = 0; i < count; i++)
        pith__hash_add(&hash, &rdbs[i]->checksum, sizeof rdbs[i]->checksum);
    return pith__hash_end(&hash);
}

static void trainer_put_tasks(trainer_out *o, const pith_relational *r) {
    for (uint32_t i = 0; i < r->source_count; i++) {
        if (i) trainer_put(o, "\n", 1);
        trainer_put(o, r->sources[i].task->name.data, r->sources[i].task->name.size);
    }
}

static pith_status trainer_header_make(trainer_header *h, const pith_relational *r,
                                       pith_error *err) {
    const size_t count = r->source_count;
    const pith__rdb **rdbs = pith__memory_alloc(&r->allocator, count * sizeof *rdbs, 8);
    if (!rdbs) return pith__fail_memory(err, count * sizeof *rdbs);
    memset(h, 0, sizeof *h);
    memcpy(h->magic, TRAINER_MAGIC, sizeof h->magic);
    h->version = TRAINER_VERSION;
    h->order = 0x01020304;
    h->task_bytes = (uint32_t)count - 1;
    for (size_t i = 0; i < count; i++) {
        rdbs[i] = r->sources[i].rdb;
        h->task_bytes += (uint32_t)r->sources[i].task->name.size;
    }
    h->database = trainer_checksum(rdbs, count);
    h->seed = r->seed;
    h->size = r->network.size;
    h->step = r->step;
    h->config_bytes = r->config_text.data ? (uint32_t)r->config_text.size : UINT32_MAX;
    h->sources = r->source_count;
    h->arrays = r->step < r->config.steps ? 3 : 1;
    pith__memory_free(&r->allocator, rdbs);
    return PITH_OK;
}

pith_status pith__trainer_save(const pith_relational *r, const pith_writer *writer,
                               pith__stop *stop, pith_error *err) {
    const size_t bytes = r->network.size * sizeof(float);
    trainer_out o = { .out = { .writer = writer, .stop = stop } };
    trainer_header h;
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TRY(trainer_header_make(&h, r, err));
    pith__hash_init(&o.hash);
    pith__out_begin(&o.out, sizeof h + h.task_bytes + (uint64_t)r->config_text.size +
                                (uint64_t)bytes * h.arrays + sizeof(uint64_t));
    trainer_put(&o, &h, sizeof h);
    trainer_put_tasks(&o, r);
    if (r->config_text.data) trainer_put(&o, r->config_text.data, r->config_text.size);
    trainer_put(&o, r->network.weights, bytes);
    if (h.arrays == 3) {
        trainer_put(&o, r->first_moments, bytes);
        trainer_put(&o, r->second_moments, bytes);
    }
    const uint64_t hash = pith__hash_end(&o.hash);
    trainer_put(&o, &hash, sizeof hash);
    return pith__out_status(&o.out, "the model", err);
}

/* The parts of a file, whose sizes fit together. */
typedef struct trainer_parts {
    trainer_header h;
    pith_str tasks, config; /* config.data is NULL if there is none */
    const uint8_t *arrays;
} trainer_parts;

static pith_status trainer_hash(uint64_t *sum, const uint8_t *bytes, size_t size, pith__stop *stop,
                                pith_error *err) {
    pith__hash hash;
    pith__hash_init(&hash);
    PITH_TRY(pith__hash_add_until(&hash, bytes, size, stop, err));
    *sum = pith__hash_end(&hash);
    return PITH_OK;
}

/* Takes a file apart after its checksum held. All sizes must add up to that of the file, so what
 * follows can be copied without further checks. */
static pith_status trainer_read(trainer_parts *p, const uint8_t *bytes, size_t size,
                                pith__stop *stop, pith_error *err) {
    trainer_header *h = &p->h;
    uint64_t hash, sum;
    if (size < sizeof *h + sizeof hash || memcmp(bytes, TRAINER_MAGIC, sizeof h->magic) != 0)
        return pith__fail(err, PITH_ERR_FORMAT, "this is no model of pith train");
    memcpy(h, bytes, sizeof *h);
    if (h->version != TRAINER_VERSION || h->order != 0x01020304)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model was written by another version of Pith; train it again");
    memcpy(&hash, bytes + size - sizeof hash, sizeof hash);
    PITH_TRY(trainer_hash(&sum, bytes, size - sizeof hash, stop, err));
    if (hash != sum)
        return pith__fail(err, PITH_ERR_FORMAT, "the model is damaged: its checksum is wrong");
    const bool configured = h->config_bytes != UINT32_MAX;
    const uint64_t texts = (uint64_t)h->task_bytes + (configured ? h->config_bytes : 0);
    if ((h->arrays != 1 && h->arrays != 3) || h->size > size / 4 || h->step < 0 ||
        h->step > 100000000 || size - sizeof *h - 8 != texts + h->size * 4 * h->arrays)
        return pith__fail(err, PITH_ERR_FORMAT, "the model is damaged: its size is wrong");
    bytes += sizeof *h;
    p->tasks = (pith_str){ (const char *)bytes, h->task_bytes };
    p->config = (pith_str){ configured ? (const char *)bytes + h->task_bytes : NULL,
                            configured ? h->config_bytes : 0 };
    p->arrays = bytes + texts;
    return PITH_OK;
}

pith_status pith__trainer_keep(const pith_relational *r, const pith_writer *writer,
                               pith__stop *stop, pith_error *err) {
    trainer_header h;
    PITH_TRY(pith__writer_check(writer, err));
    PITH_TRY(trainer_header_make(&h, r, err));
    return pith__rdb_keep(&r->target, h.database, writer, stop, &r->allocator, err);
}

pith_status pith__trainer_config_text(pith_str *config, const void *bytes, size_t size,
                                      pith__stop *stop, pith_error *err) {
    trainer_parts p;
    PITH_TRY(trainer_read(&p, bytes, size, stop, err));
    *config = p.config;
    return PITH_OK;
}

pith_status pith__trainer_start(pith_relational *r, const void *bytes, size_t size,
                                pith__stop *stop, pith_error *err) {
    const pith__network_shape *own = &r->config.shape;
    pith__trainer_config base;
    trainer_parts p;
    PITH_TRY(trainer_read(&p, bytes, size, stop, err));
    PITH_TRY(pith__trainer_configure(&base, p.config, &r->arena, err));
    if (p.h.size != r->network.size || base.shape.dim != own->dim ||
        base.shape.heads != own->heads || base.shape.ff != own->ff ||
        base.shape.blocks != own->blocks || base.shape.attend != own->attend)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model to start from has %llu parameters and this one %llu: its dim, "
                          "heads, ff, blocks, "
                          "attend, embedder and kind of answer must be the same",
                          (unsigned long long)p.h.size, (unsigned long long)r->network.size);
    memcpy(r->network.weights, p.arrays, p.h.size * 4);
    pith__network_pack(&r->network);
    return PITH_OK;
}

static pith_str trainer_first(pith_str tasks) {
    const char *end = tasks.size ? memchr(tasks.data, '\n', tasks.size) : NULL;
    return (pith_str){ tasks.data, end ? (size_t)(end - tasks.data) : tasks.size };
}

/* One name for each database. */
static pith_status trainer_questions(pith__trainer_question *questions,
                                     const pith__rdb *const *rdbs, size_t count, pith_str tasks,
                                     pith_error *err) {
    for (size_t i = 0; i < count; i++) {
        const char *end = tasks.size ? memchr(tasks.data, '\n', tasks.size) : NULL;
        const size_t own = end ? (size_t)(end - tasks.data) : tasks.size;
        questions[i] = (pith__trainer_question){ rdbs[i], { tasks.data, own } };
        tasks.data += own + (end ? 1 : 0);
        tasks.size -= own + (end ? 1 : 0);
    }
    return tasks.size
               ? pith__fail(err, PITH_ERR_FORMAT, "the model is damaged: it has too many tasks")
               : PITH_OK;
}

pith_status pith__trainer_load(pith_relational **model, const pith__rdb *const *rdbs, size_t count,
                               const void *bytes, size_t size, pith__stop *stop,
                               const pith_allocator *allocator, pith_error *err) {
    trainer_parts p;
    pith_relational *r = NULL;
    PITH_TRY(trainer_read(&p, bytes, size, stop, err));
    /* answers are about the first database alone */
    const bool followed = count == 1 && rdbs[0]->followed;
    if (!count || (p.h.sources != count && !followed) ||
        p.h.database != trainer_checksum(rdbs, count))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "the model was trained on another database, or on this one before it was made again");
    pith__trainer_question *questions = pith__memory_alloc(allocator, count * sizeof *questions, 8);
    if (!questions) return pith__fail_memory(err, count * sizeof *questions);
    pith_status status =
        trainer_questions(questions, rdbs, count, followed ? trainer_first(p.tasks) : p.tasks, err);
    if (!status)
        status =
            pith__trainer_create(&r, questions, count, p.config, p.h.seed, stop, allocator, err);
    pith__memory_free(allocator, questions);
    if (status) return status;
    if (p.h.size != r->network.size || (p.h.arrays == 1 && p.h.step < r->config.steps))
        status = pith__fail(err, PITH_ERR_FORMAT, "the model is damaged: it has %llu parameters",
                            (unsigned long long)p.h.size);
    if (status) {
        pith__trainer_free(r);
        return status;
    }
    memcpy(r->network.weights, p.arrays, p.h.size * 4);
    if (p.h.arrays == 3) {
        memcpy(r->first_moments, p.arrays + p.h.size * 4, p.h.size * 4);
        memcpy(r->second_moments, p.arrays + p.h.size * 8, p.h.size * 4);
    }
    r->step = p.h.step;
    pith__network_pack(&r->network);
    *model = r;
    return PITH_OK;
}
