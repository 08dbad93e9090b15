/* trainer_metrics.c - answers, and how well they fit. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "tables/database/build_database.h"
#include "tables/network/answer_quality.h"
#include "tables/network/trainer.h"

void pith__trainer_answer_by(pith_relational *r, const pith__answerer *answerer) {
    static const pith__answerer network;
    if (r->answerer.close) r->answerer.close(r->answerer.state);
    r->answerer = answerer ? *answerer : network;
}

pith_status pith__trainer_say(double *answers, pith_relational *r, const uint32_t *rows,
                              size_t count, const pith__work *work, pith_error *err) {
    const size_t n = count * (size_t)r->target.outputs;
    if (r->answerer.answer)
        return r->answerer.answer(answers, r->answerer.state, rows, count, work, err);
    if (!pith__trainer_workers(r, work->threads))
        return pith__fail_memory(err, r->rdb->string_count * 4u);
    const pith__arena_mark mark = pith__arena_get_mark(&r->arena);
    float *raw = pith__arena_array(&r->arena, n + 1, sizeof *raw);
    const pith_status status = raw ? pith__trainer_answer(raw, r, rows, count, work, err)
                                   : pith__fail_memory(err, n * sizeof *raw);
    if (!status)
        for (size_t i = 0; i < n; i++) answers[i] = pith__target_answer(&r->target, raw[i]);
    pith__arena_rewind(&r->arena, mark);
    return status;
}

pith_status pith__trainer_predict(float *answers, pith_relational *r, const uint32_t *rows,
                                  size_t count, const pith__work *work, pith_error *err) {
    const size_t outputs = (size_t)r->target.outputs;
    for (size_t i = 0; i < count; i++)
        if (rows[i] >= r->rdb->tables[r->task->table].rows)
            return pith__fail(err, PITH_ERR_ARGUMENT, "there is no row %u", rows[i]);
    if (!pith__trainer_workers(r, work->threads))
        return pith__fail_memory(err, r->rdb->string_count * 4u);
    const pith__arena_mark mark = pith__arena_get_mark(&r->arena);
    double *said = pith__arena_array(&r->arena, count + 1, outputs * sizeof *said);
    const pith_status status = said ? pith__trainer_say(said, r, rows, count, work, err)
                                    : pith__fail_memory(err, count * sizeof *said);
    if (!status)
        for (size_t i = 0; i < count; i++) {
            pith__target_probabilities(&r->target, said + i * outputs);
            for (size_t k = 0; k < outputs; k++)
                answers[i * outputs + k] = (float)said[i * outputs + k];
        }
    pith__arena_rewind(&r->arena, mark);
    return status;
}

/* Lists the rows of a table by their keys. */
static pith_status find_keys(pith__map *keys, const pith__rdb_table *t, pith__stop *stop,
                             pith__arena *arena, pith_error *err) {
    pith__map all;
    uint32_t old;
    PITH_TRY(pith__map_init(&all, arena, t->rows));
    for (uint32_t i = t->rows; i-- > 0;) { /* of equal keys the first counts */
        PITH_TRY_ROW(stop, i, err);
        const pith_str key = { t->key_bytes + t->key_begin[i],
                               (size_t)(t->key_begin[i + 1] - t->key_begin[i]) };
        if (!pith__map_put(&all, key, i, &old)) return pith__fail_memory(err, key.size);
    }
    *keys = all;
    return PITH_OK;
}

pith_status pith__trainer_find(uint32_t *row, const pith_relational *r, pith_str key,
                               pith__stop *stop, pith_error *err) {
    const pith__rdb_table *t = &r->rdb->tables[r->task->table];
    if (!t->key_begin) {
        double number;
        if (pith__cell_number(&number, key) && number >= 0 && number < t->rows &&
            number == floor(number)) {
            *row = (uint32_t)number;
            return PITH_OK;
        }
    }
    if (t->key_begin && !r->keys->slots) {
        pith__arena *arena = &((pith_relational *)r)->arena;
        const pith__arena_mark mark = pith__arena_get_mark(arena);
        const pith_status status = find_keys(r->keys, t, stop, arena, err);
        if (status) pith__arena_rewind(arena, mark);
        PITH_TRY(status);
    }
    *row = t->key_begin ? pith__key_find(r->keys, key) : PITH_RDB_NONE;
    if (*row != PITH_RDB_NONE) return PITH_OK;
    return pith__fail(err, PITH_ERR_NOT_FOUND,
                      "table '" PITH_STR_FMT "' has no row '" PITH_STR_FMT "'",
                      PITH_STR_ARG(t->name), PITH_STR_ARG(key));
}

pith_status pith__trainer_evaluate(pith_relational_metrics *metrics, pith_relational *r,
                                   int32_t split, const pith__work *work, pith_error *err) {
    const uint32_t all = r->rdb->tables[r->task->table].rows;
    const size_t outputs = (size_t)r->target.outputs;
    size_t n = 0;
    if (!pith__trainer_workers(r, work->threads))
        return pith__fail_memory(err, r->rdb->string_count * 4u);
    const pith__arena_mark inner = pith__arena_get_mark(&r->arena);
    uint32_t *rows = pith__arena_array(&r->arena, (size_t)all + 1, sizeof *rows);
    if (rows) {
        for (uint32_t i = 0; i < all; i++) {
            if (pith__row_stops(work->stop, i)) break;
            if (pith__rdb_split(r->rdb, r->task, i) == split) rows[n++] = i;
        }
    }
    double *answers = pith__arena_array(&r->arena, n + 1, outputs * sizeof *answers);
    pith_status status =
        rows && answers ? PITH_OK : pith__fail_memory(err, n * outputs * sizeof *answers);
    if (!status) status = pith__stop_check(work->stop, err);
    if (!status) status = pith__trainer_say(answers, r, rows, n, work, err);
    if (!status)
        status =
            pith__answer_quality(metrics, &r->target, answers, rows, n, work->stop, &r->arena, err);
    pith__arena_rewind(&r->arena, inner);
    return status;
}

pith_status pith__trainer_part(uint32_t *rows, double *labels, size_t *count,
                               const pith_relational *r, int32_t split, pith__stop *stop,
                               pith_error *err) {
    *count = 0;
    if (split < PITH_TRAIN || split > PITH_TEST)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no part %d", split);
    for (uint32_t i = 0; i < r->rdb->tables[r->task->table].rows; i++) {
        PITH_TRY_ROW(stop, i, err);
        if (pith__rdb_split(r->rdb, r->task, i) != split) continue;
        if (rows) {
            rows[*count] = i;
            labels[*count] = pith__target_truth(&r->target, i);
        }
        ++*count;
    }
    return PITH_OK;
}
