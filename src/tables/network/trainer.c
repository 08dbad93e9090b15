/* trainer.c - making a model, and its steps: sample, run forwards and backwards in packs, add the
 * gradients in order, clip, AdamW. Everything that is drawn follows from (seed, epoch, row), so
 * that training can go on from any step. */
#include "tables/network/trainer.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "base/str.h"
#include "tables/network/network_layers.h"

/* The most strings that a database has. */
static size_t trainer_strings(const pith_relational *r) {
    size_t most = 0;
    for (uint32_t i = 0; i < r->source_count; i++)
        if (r->sources[i].rdb->string_count > most) most = r->sources[i].rdb->string_count;
    return most;
}

int pith__trainer_workers(pith_relational *r, int32_t threads) {
    const size_t strings = trainer_strings(r);
    int count = pith__threads_count(threads);
    if (count > PITH_TRAINER_THREADS) count = PITH_TRAINER_THREADS;
    for (; r->worker_count < count; r->worker_count++) {
        pith__trainer_worker *w = &r->workers[r->worker_count];
        pith__arena_init(&w->arena, &r->allocator);
        w->slots = pith__arena_alloc(&r->arena, (strings + 1) * sizeof *w->slots);
        if (!w->slots) return 0;
        memset(w->slots, 0xFF, (strings + 1) * sizeof *w->slots);
    }
    return count;
}

/* ---- packs ---- */

typedef struct trainer_job {
    pith_relational *r;
    const uint32_t *rows;
    size_t count;
    pith__sample_options sample;
    const uint32_t *sources; /* [packs]; NULL: the first one */
    const uint64_t *epochs;  /* [packs]; NULL: sample.epoch */
    float *answers;          /* [count][outputs] */
    double *losses;          /* [count]; NULL: no gradients */
    uint64_t *cells;         /* [packs] */
    bool *failed;            /* [packs] */
    const pith__work *work;
    bool told;          /* progress is that of rows */
    atomic_size_t done; /* packs */
} trainer_job;

/* One pack: samples the cells of its rows, runs them, and leaves the gradients in the pack's own
 * array. Packs are added in their order afterwards, so that sums do not depend on which thread was
 * first. */
static bool trainer_pack_run(trainer_job *job, size_t part, pith__trainer_worker *w) {
    pith_relational *r = job->r;
    const size_t from = part * PITH_NETWORK_PACK;
    const uint32_t count =
        (uint32_t)(job->count - from < PITH_NETWORK_PACK ? job->count - from : PITH_NETWORK_PACK);
    float *d = job->losses ? r->gradients + part * r->network.size : NULL;
    const pith__trainer_source *s = &r->sources[job->sources ? job->sources[part] : 0];
    pith__sample_options sample = job->sample;
    pith__pack pack;
    if (pith__stop_asked(job->work->stop)) return false;
    if (job->epochs) sample.epoch = job->epochs[part];
    if (!pith__pack_begin(&pack, &w->arena, count, &sample)) return false;
    for (uint32_t i = 0; i < count; i++)
        pith__pack_add(&pack, s->rdb, s->task, job->rows[from + i], &sample);
    if (!pith__pack_list(&pack, &w->arena, r->network.shape.attend)) return false;
    if (d) memset(d, 0, r->network.size * sizeof *d);
    job->cells[part] = pack.cell_count;
    return pith__network_run(job->answers + from * (size_t)r->target.outputs, d,
                             job->losses ? job->losses + from : NULL, &r->network, s->rdb,
                             &s->target, &pack, &sample, w->slots, job->work->stop, &w->arena);
}

/* Empties the worker's memory. What the largest pack so far needed is kept as one chunk, so that
 * packs ask the system for nothing. */
static void trainer_empty(pith__trainer_worker *w) {
    const size_t total = w->arena.total;
    pith__arena_reset(&w->arena);
    if (total <= w->held) return;
    pith__arena_alloc(&w->arena, total + total / 4);
    w->held = w->arena.total;
    pith__arena_reset(&w->arena);
}

static void trainer_part(void *context, size_t part, int worker) {
    trainer_job *job = context;
    pith__trainer_worker *w = &job->r->workers[worker];
    trainer_empty(w);
    job->failed[part] = !trainer_pack_run(job, part, w);
    if (!job->told) return;
    const size_t done = PITH_NETWORK_PACK * (atomic_fetch_add(&job->done, 1) + 1);
    pith__work_tell(job->work, "rows", done < job->count ? done : job->count, job->count);
}

static pith_status trainer_run(trainer_job *job, pith_error *err) {
    pith_relational *r = job->r;
    const size_t parts = (job->count + PITH_NETWORK_PACK - 1) / PITH_NETWORK_PACK;
    const int count = pith__trainer_workers(r, job->work->threads);
    const pith__arena_mark mark = pith__arena_get_mark(&r->arena);
    job->failed = pith__arena_array(&r->arena, parts + 1, sizeof *job->failed);
    job->cells = pith__arena_array(&r->arena, parts + 1, sizeof *job->cells);
    bool failed = !count || !job->failed || !job->cells;
    if (!failed) {
        pith__threads_run_until(job->work->stop, trainer_part, job, parts, count);
        for (size_t i = 0; i < parts; i++) {
            failed |= job->failed[i];
            r->cells += job->cells[i];
        }
    }
    pith__arena_rewind(&r->arena, mark);
    PITH_TRY(pith__stop_check(job->work->stop, err));
    return failed ? pith__fail(err, PITH_ERR_MEMORY,
                               "out of memory; a smaller batch or fewer cells need less")
                  : PITH_OK;
}

pith_status pith__trainer_answer(float *answers, pith_relational *r, const uint32_t *rows,
                                 size_t count, const pith__work *work, pith_error *err) {
    trainer_job job = { .r = r,
                        .rows = rows,
                        .count = count,
                        .sample = r->config.sample,
                        .answers = answers,
                        .work = work,
                        .told = work->progress != NULL };
    job.sample.seed = r->seed;
    job.sample.epoch = PITH_TRAINER_ANSWERS;
    return count ? trainer_run(&job, err) : PITH_OK;
}

/* ---- steps ---- */

/* False if the call must end. */
static bool trainer_permute(uint32_t *order, uint32_t count, uint64_t state, pith__stop *stop) {
    for (uint32_t i = count; i > 1; i--) {
        if (pith__row_stops(stop, i)) return false;
        const uint32_t k = (uint32_t)(((pith__random_next(&state) >> 32) * i) >> 32),
                       one = order[k];
        order[k] = order[i - 1];
        order[i - 1] = one;
    }
    return true;
}

/* The row of a source at a place that counts through all epochs; any if the call must end. */
static uint32_t trainer_row(const pith_relational *r, pith__trainer_source *s, int64_t place,
                            pith__stop *stop) {
    const int64_t epoch = place / s->row_count;
    if (s->order_epoch != epoch) {
        memcpy(s->order, s->rows, s->row_count * sizeof *s->order);
        const uint64_t state = pith__random_state(r->seed, 2, (uint64_t)epoch, 0);
        s->order_epoch = trainer_permute(s->order, s->row_count, state, stop) ? epoch : -1;
    }
    return s->order[place % s->row_count];
}

/* The source of a pack: in a turn, which has an order of its own, each has one pack. */
static uint32_t trainer_source(pith_relational *r, int64_t turn, uint32_t place) {
    if (r->turn != turn) {
        for (uint32_t i = 0; i < r->source_count; i++) r->source_order[i] = i;
        trainer_permute(r->source_order, r->source_count,
                        pith__random_state(r->seed, 3, (uint64_t)turn, 0), NULL);
        r->turn = turn;
    }
    return r->source_order[place];
}

/* What a step reads. */
typedef struct trainer_batch {
    uint32_t *rows;    /* [batch] */
    uint32_t *sources; /* [packs] */
    uint64_t *epochs;  /* [packs] */
    float *answers;
    double *losses;
} trainer_batch;

/* The rows of the next batch. Which row is the n-th follows from n alone (epoch, and place in that
 * epoch's order), so training can go on from any step. With several sources, packs take turns among
 * them, and each pack is of one source. */
static void trainer_fill_batch(trainer_batch *b, pith_relational *r, pith__stop *stop) {
    const size_t batch = (size_t)r->config.batch,
                 parts = (batch + PITH_NETWORK_PACK - 1) / PITH_NETWORK_PACK;
    for (size_t part = 0; part < parts; part++) {
        const int64_t number = r->step * (int64_t)parts + (int64_t)part,
                      turn = number / r->source_count;
        const bool one = r->source_count == 1;
        pith__trainer_source *s;
        b->sources[part] = one ? 0 : trainer_source(r, turn, (uint32_t)(number % r->source_count));
        s = &r->sources[b->sources[part]];
        /* A single source has no gaps where the last pack of a batch is smaller. */
        const int64_t first = one ? r->step * (int64_t)batch + (int64_t)(part * PITH_NETWORK_PACK)
                                  : turn * PITH_NETWORK_PACK;
        b->epochs[part] = (uint64_t)((one ? r->step * (int64_t)batch : first) / s->row_count);
        for (size_t i = 0; i < PITH_NETWORK_PACK && part * PITH_NETWORK_PACK + i < batch; i++)
            b->rows[part * PITH_NETWORK_PACK + i] = trainer_row(r, s, first + (int64_t)i, stop);
    }
}

typedef struct trainer_sum {
    float *gradients;
    size_t size, parts;
} trainer_sum;
/* Numbers of a part of the sum over packs. A thread adds all packs for its part in their order, so
 * the sum has the same bits for any number of threads. */
enum { SUM_SLICE = 4096 };

static void trainer_add(void *context, size_t part, int worker) {
    const trainer_sum *s = context;
    const size_t from = part * SUM_SLICE,
                 to = from + SUM_SLICE < s->size ? from + SUM_SLICE : s->size;
    (void)worker;
    for (size_t p = 1; p < s->parts; p++)
        for (size_t i = from; i < to; i++) s->gradients[i] += s->gradients[p * s->size + i];
}

/* The learning rate of a step: linear up to the warm-up's end, never above a cosine from 1 to 0.05.
 */
static double trainer_rate(const pith__trainer_config *c, int64_t step) {
    const double done = step < c->steps ? (double)step / c->steps : 1;
    const double up = (double)(step + 1) / c->warmup,
                 down = 0.05 + 0.95 * 0.5 * (1 + cos(3.14159265358979323846 * done));
    return c->rate * (up < down ? up : down);
}

/* A step of AdamW. Gradients are sums over the batch: they become means, and are scaled down if
 * their norm over all parameters is above `clip`. Decay is for matrices only, not for biases and
 * norms. */
static void trainer_update(pith_relational *r) {
    const pith__trainer_config *c = &r->config;
    const double t = (double)r->step + 1, rate = trainer_rate(c, r->step), beta1 = 0.9,
                 beta2 = 0.98;
    double squares = 0;
    for (size_t i = 0; i < r->network.size; i++)
        squares += (double)r->gradients[i] * r->gradients[i];
    const double norm = sqrt(squares) / c->batch;
    const double scale = (norm > c->clip ? c->clip / norm : 1) / c->batch;
    for (int i = 0; i < r->network.parameter_count; i++) {
        const pith__parameter *p = &r->network.parameters[i];
        const pith__adamw a = { .w = r->network.weights + p->offset,
                                .m = r->first_moments + p->offset,
                                .v = r->second_moments + p->offset,
                                .g = r->gradients + p->offset,
                                .g_scale = (float)scale,
                                .beta1 = (float)beta1,
                                .beta2 = (float)beta2,
                                .rate = (float)rate,
                                .rate1 = (float)(rate / (1 - pow(beta1, t))),
                                .fix2 = (float)(1 / (1 - pow(beta2, t))),
                                .decay = p->kind == PITH_PARAMETER_MATRIX ? (float)c->decay : 0.0f,
                                .epsilon = 1e-8f };
        r->network.kernels->adamw(&a, (int64_t)p->out * p->in);
    }
    pith__network_pack(&r->network);
    r->step++;
}

/* A step that must end early has changed nothing that a later one reads. */
static pith_status trainer_step(double *loss, pith_relational *r, const pith__work *work,
                                trainer_batch *b, pith_error *err) {
    const size_t batch = (size_t)r->config.batch;
    trainer_fill_batch(b, r, work->stop);
    trainer_job job = { .r = r,
                        .rows = b->rows,
                        .count = batch,
                        .sample = r->config.sample,
                        .sources = b->sources,
                        .epochs = b->epochs,
                        .answers = b->answers,
                        .losses = b->losses,
                        .work = work };
    job.sample.seed = r->seed;
    PITH_TRY(trainer_run(&job, err));
    trainer_sum sum = { r->gradients, r->network.size,
                        (batch + PITH_NETWORK_PACK - 1) / PITH_NETWORK_PACK };
    pith__threads_run(trainer_add, &sum, (sum.size + SUM_SLICE - 1) / SUM_SLICE,
                      pith__trainer_workers(r, work->threads));
    *loss = 0;
    for (size_t i = 0; i < batch; i++) *loss += b->losses[i];
    *loss /= (double)batch;
    if (!isfinite(*loss))
        return pith__fail(err, PITH_ERR_RUN,
                          "step %lld: the loss is not finite; a smaller rate may help",
                          (long long)r->step);
    trainer_update(r);
    return PITH_OK;
}

pith_status pith__trainer_train(double *loss, pith_relational *r, int64_t steps,
                                const pith__work *work, pith_error *err) {
    const size_t batch = (size_t)r->config.batch;
    double sum = 0, one = 0;
    int64_t done = 0;
    for (uint32_t i = 0; i < r->source_count; i++)
        if (!r->sources[i].row_count)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "the task '" PITH_STR_FMT "' of database '" PITH_STR_FMT
                              "' has no rows to train on",
                              PITH_STR_ARG(r->sources[i].task->name),
                              PITH_STR_ARG(r->sources[i].rdb->name));
    if (!pith__trainer_workers(r, work->threads))
        return pith__fail_memory(err, trainer_strings(r) * 4);
    if (steps > r->config.steps - r->step) steps = r->config.steps - r->step;
    const pith__arena_mark mark = pith__arena_get_mark(&r->arena);
    trainer_batch b = { pith__arena_array(&r->arena, batch, sizeof *b.rows),
                        pith__arena_array(&r->arena, batch, sizeof *b.sources),
                        pith__arena_array(&r->arena, batch, sizeof *b.epochs),
                        pith__arena_array(&r->arena, batch,
                                          (size_t)r->target.outputs * sizeof *b.answers),
                        pith__arena_array(&r->arena, batch, sizeof *b.losses) };
    pith_status status = b.rows && b.sources && b.epochs && b.answers && b.losses
                             ? PITH_OK
                             : pith__fail_memory(err, batch * sizeof *b.losses);
    while (!status && done < steps) {
        status = pith__stop_check(work->stop, err);
        if (!status) status = trainer_step(&one, r, work, &b, err);
        if (status) break;
        sum += one;
        done++;
        pith__work_tell(work, "steps", (uint64_t)done, (uint64_t)steps);
    }
    pith__arena_rewind(&r->arena, mark);
    *loss = done ? sum / (double)done : 0;
    return status;
}

/* ---- making and freeing ---- */

static pith_status trainer_rows(pith_relational *r, pith__trainer_source *s, pith__stop *stop,
                                pith_error *err) {
    const uint32_t all = s->rdb->tables[s->task->table].rows;
    s->rows = pith__arena_array(&r->arena, (size_t)all + 1, sizeof *s->rows);
    s->order = pith__arena_array(&r->arena, (size_t)all + 1, sizeof *s->order);
    if (!s->rows || !s->order) return pith__fail_memory(err, all * sizeof *s->rows);
    for (uint32_t i = 0; i < all; i++) {
        PITH_TRY_ROW(stop, i, err);
        if (pith__rdb_split(s->rdb, s->task, i) == PITH_TRAIN) s->rows[s->row_count++] = i;
    }
    return PITH_OK;
}

static pith_status trainer_source_make(pith_relational *r, pith__trainer_source *s,
                                       const pith__trainer_question *q, pith__stop *stop,
                                       pith_error *err) {
    const pith__rdb *rdb = q->rdb;
    *s = (pith__trainer_source){ .rdb = rdb, .order_epoch = -1 };
    for (uint32_t i = 0; i < rdb->task_count; i++)
        if (pith__str_eq(rdb->tasks[i].name, q->task)) s->task = &rdb->tasks[i];
    if (!s->task)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "the database '" PITH_STR_FMT "' has no task '" PITH_STR_FMT
                          "'; tasks are written in the schema before preprocessing",
                          PITH_STR_ARG(rdb->name), PITH_STR_ARG(q->task));
    for (uint32_t t = 0; t < rdb->table_count; t++)
        if (rdb->tables[t].column_count > r->config.sample.cells)
            return pith__fail(
                err, PITH_ERR_ARGUMENT,
                "configuration: cells must be at least %u, the columns of table '" PITH_STR_FMT "'",
                rdb->tables[t].column_count, PITH_STR_ARG(rdb->tables[t].name));
    PITH_TRY(pith__target_make(&s->target, rdb, s->task, stop, &r->arena, err));
    const pith__trainer_source *first = r->sources;
    if (s->target.kind != first->target.kind || s->target.outputs != first->target.outputs ||
        rdb->dim != first->rdb->dim || !pith__str_eq(rdb->embedder, first->rdb->embedder))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the databases '" PITH_STR_FMT "' and '" PITH_STR_FMT
                          "' have different embedders, or tasks of different kinds",
                          PITH_STR_ARG(first->rdb->name), PITH_STR_ARG(rdb->name));
    return trainer_rows(r, s, stop, err);
}

static pith_status trainer_fill(pith_relational *r, const pith__trainer_question *questions,
                                pith_str config, pith__stop *stop, pith_error *err) {
    const size_t batch = PITH_NETWORK_PACK, count = r->source_count;
    size_t packs, floats;
    if (config.data) {
        r->config_text = pith__arena_str(&r->arena, config);
        if (!r->config_text.data) return pith__fail_memory(err, config.size);
    }
    PITH_TRY(pith__trainer_configure(&r->config, r->config_text, &r->arena, err));
    r->sources = pith__arena_array(&r->arena, count, sizeof *r->sources);
    r->source_order = pith__arena_array(&r->arena, count, sizeof *r->source_order);
    if (!r->sources || !r->source_order) return pith__fail_memory(err, count * sizeof *r->sources);
    for (size_t i = 0; i < count; i++)
        PITH_TRY(trainer_source_make(r, &r->sources[i], &questions[i], stop, err));
    r->rdb = r->sources->rdb;
    r->task = r->sources->task;
    r->target = r->sources->target;
    r->config.shape.text = (int32_t)r->rdb->dim;
    r->config.shape.outputs = r->target.outputs;
    PITH_TRY(pith__network_make(&r->network, &r->config.shape, r->seed, &r->arena, err));
    packs = ((size_t)r->config.batch + batch - 1) / batch;
    if (pith__mul_overflows(packs, r->network.size, &floats))
        return pith__fail_memory(err, SIZE_MAX);
    r->gradients = pith__arena_alloc64(&r->arena, floats * sizeof(float));
    r->keys = pith__arena_array(&r->arena, 1, sizeof *r->keys);
    r->first_moments = pith__arena_array(&r->arena, r->network.size, sizeof(float));
    r->second_moments = pith__arena_array(&r->arena, r->network.size, sizeof(float));
    return r->gradients && r->first_moments && r->second_moments && r->keys
               ? PITH_OK
               : pith__fail_memory(err, floats * sizeof(float));
}

pith_status pith__trainer_create(pith_relational **model, const pith__trainer_question *questions,
                                 size_t count, pith_str config, uint64_t seed, pith__stop *stop,
                                 const pith_allocator *allocator, pith_error *err) {
    if (!count || count > UINT32_MAX)
        return pith__fail(err, PITH_ERR_ARGUMENT, "a model needs a database");
    pith_relational *r = pith__memory_alloc(allocator, sizeof *r, 64);
    if (!r) return pith__fail_memory(err, sizeof *r);
    memset(r, 0, sizeof *r);
    r->allocator = *allocator;
    pith__arena_init(&r->arena, &r->allocator);
    r->seed = seed;
    r->source_count = (uint32_t)count;
    r->turn = -1;
    const pith_status status = trainer_fill(r, questions, config, stop, err);
    if (status)
        pith__trainer_free(r);
    else
        *model = r;
    return status;
}

void pith__trainer_free(pith_relational *r) {
    if (!r) return;
    const pith_allocator allocator = r->allocator;
    pith__trainer_answer_by(r, NULL);
    for (int i = 0; i < r->worker_count; i++) pith__arena_free(&r->workers[i].arena);
    pith__arena_free(&r->arena);
    pith__memory_free(&allocator, r);
}

void pith__trainer_state(pith_relational_state *state, const pith_relational *r) {
    int64_t rows = 0;
    for (uint32_t i = 0; i < r->source_count; i++) rows += r->sources[i].row_count;
    *state =
        (pith_relational_state){ sizeof *state, r->step,  r->config.steps, (int64_t)r->network.size,
                                 rows,          r->cells, r->target.kind,  r->target.outputs };
}
