/* trainer_file.c - a model and the state of its training as bytes: header, name of the task, configuration, parameters
 * and both moments, and a checksum of all that. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "relational/trainer.h"

typedef struct trainer_header {
    char magic[8];
    uint32_t version, order;
    uint64_t database, seed, size; /* checksum of the database; floats of the parameters */
    int64_t step;
    uint32_t task_bytes, config_bytes; /* config_bytes: UINT32_MAX: none */
} trainer_header;

#define TRAINER_MAGIC "PITHRUN"

typedef struct trainer_out {
    int (*write)(void *user, const void *data, size_t size);
    void *user;
    pith_hash hash;
    bool failed;
} trainer_out;

static void trainer_put(trainer_out *o, const void *data, size_t size) {
    pith_hash_add(&o->hash, data, size);
    if (size && !o->failed) o->failed = o->write(o->user, data, size) != 0;
}

pith_status pith_trainer_save(const pith_relational *r, int (*write)(void *user, const void *data, size_t size),
                              void *user, pith_error *err) {
    const size_t bytes = r->network.size * sizeof(float);
    trainer_out o = { .write = write, .user = user };
    trainer_header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, TRAINER_MAGIC, sizeof h.magic);
    h.version = 1;
    h.order = 0x01020304;
    h.database = r->rdb->checksum;
    h.seed = r->seed;
    h.size = r->network.size;
    h.step = r->step;
    h.task_bytes = (uint32_t)r->task->name.size;
    h.config_bytes = r->config_text.data ? (uint32_t)r->config_text.size : UINT32_MAX;
    pith_hash_init(&o.hash);
    trainer_put(&o, &h, sizeof h);
    trainer_put(&o, r->task->name.data, r->task->name.size);
    if (r->config_text.data) trainer_put(&o, r->config_text.data, r->config_text.size);
    trainer_put(&o, r->network.w, bytes);
    trainer_put(&o, r->m, bytes);
    trainer_put(&o, r->v, bytes);
    const uint64_t hash = pith_hash_end(&o.hash);
    trainer_put(&o, &hash, sizeof hash);
    return o.failed ? pith_fail(err, PITH_ERR_IO, "the model could not be written") : PITH_OK;
}

static pith_status trainer_check(trainer_header *h, const pith_rdb *rdb, const uint8_t *bytes, size_t size,
                                 pith_error *err) {
    uint64_t hash;
    if (size < sizeof *h + sizeof hash || memcmp(bytes, TRAINER_MAGIC, sizeof h->magic) != 0)
        return pith_fail(err, PITH_ERR_FORMAT, "this is no model of pith train");
    memcpy(h, bytes, sizeof *h);
    if (h->version != 1 || h->order != 0x01020304)
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "the model was written by another version of Pith; train it anew");
    memcpy(&hash, bytes + size - sizeof hash, sizeof hash);
    if (hash != pith_hash_of(bytes, size - sizeof hash))
        return pith_fail(err, PITH_ERR_FORMAT, "the model is damaged: its checksum is wrong");
    if (h->database != rdb->checksum)
        return pith_fail(err, PITH_ERR_ARGUMENT,
                         "the model was trained on another database, or on this one before it was made anew");
    return PITH_OK;
}

pith_status pith_trainer_load(pith_relational **model, const pith_rdb *rdb, const void *bytes, size_t size,
                              const pith_allocator *allocator, pith_error *err) {
    const uint8_t *p = bytes;
    trainer_header h;
    pith_relational *r;
    PITH_TRY(trainer_check(&h, rdb, p, size, err));
    const bool configured = h.config_bytes != UINT32_MAX;
    const uint64_t texts = (uint64_t)h.task_bytes + (configured ? h.config_bytes : 0);
    if (h.size > size / 12 || h.step < 0 || h.step > 100000000 || size - sizeof h - 8 != texts + h.size * 12)
        return pith_fail(err, PITH_ERR_FORMAT, "the model is damaged: its size is wrong");
    p += sizeof h;
    const pith_str task = { (const char *)p, h.task_bytes };
    const pith_str config = { configured ? (const char *)p + h.task_bytes : NULL, configured ? h.config_bytes : 0 };
    PITH_TRY(pith_trainer_create(&r, rdb, task, config, h.seed, allocator, err));
    p += texts;
    if (h.size != r->network.size) {
        pith_trainer_free(r);
        return pith_fail(err, PITH_ERR_FORMAT, "the model is damaged: it has %llu parameters",
                         (unsigned long long)h.size);
    }
    memcpy(r->network.w, p, h.size * 4);
    memcpy(r->m, p + h.size * 4, h.size * 4);
    memcpy(r->v, p + h.size * 8, h.size * 4);
    r->step = h.step;
    pith_network_pack(&r->network);
    *model = r;
    return PITH_OK;
}
