/* api_tables.c - the public functions of pith/tables.h. */
#include "api/entry.h"
#include "base/error.h"
#include "base/str.h"
#include "tables/baseline/baseline.h"
#include "tables/database/database.h"
#include "tables/database/rdb_keep.h"
#include "tables/network/trainer.h"
#include "tables/onnx/relational_onnx.h"

pith_status pith_database_draft(const char *source, const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__database_draft_run(source, writer, err));
}

pith_status pith_database_make(const char *source, const pith_database_options *options,
                               const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__database_make_run(source, options, writer, err));
}

pith_status pith_database_open(pith_database **database, const char *path,
                               const pith_allocator *allocator, pith_error *err) {
    PITH_ENTRY(pith__database_open_run(database, path, allocator, err));
}

void pith_database_close(pith_database *database) { pith__database_free(database); }

pith_status pith_database_describe(const pith_database *database, const pith_writer *writer,
                                   pith_error *err) {
    PITH_ENTRY(pith__rdb_describe(&database->rdb, &database->allocator, writer, err));
}

pith_str pith_database_schema(const pith_database *database) { return database->rdb.schema; }

pith_status pith_database_follow(pith_database *database, const pith_database *kept,
                                 pith_error *err) {
    PITH_ENTRY(pith__rdb_follow(&database->rdb, &kept->rdb, err));
}

pith_status pith_relational_keep(const pith_relational *model, const pith_writer *writer,
                                 pith_error *err) {
    PITH_ENTRY(pith__trainer_keep(model, writer, err));
}

static pith_str relational_text(const char *text) {
    return text ? pith__str_of(text) : (pith_str){ NULL, 0 };
}

static pith_status relational_create_run(pith_relational **model,
                                         const pith_database *const *databases,
                                         const char *const *tasks, size_t count, pith_str config,
                                         uint64_t seed, pith_error *err) {
    if (!count) return pith__fail(err, PITH_ERR_ARGUMENT, "a model needs a database");
    const pith_allocator *allocator = &databases[0]->allocator;
    pith__trainer_question *questions = pith__memory_alloc(allocator, count * sizeof *questions, 8);
    if (!questions) return pith__fail_memory(err, count * sizeof *questions);
    for (size_t i = 0; i < count; i++)
        questions[i] = (pith__trainer_question){ &databases[i]->rdb, pith__str_of(tasks[i]) };
    const pith_status status =
        pith__trainer_create(model, questions, count, config, seed, allocator, err);
    pith__memory_free(allocator, questions);
    return status;
}

static pith_status relational_load_run(pith_relational **model,
                                       const pith_database *const *databases, size_t count,
                                       const void *bytes, size_t size, pith_error *err) {
    if (!count) return pith__fail(err, PITH_ERR_ARGUMENT, "a model needs a database");
    const pith_allocator *allocator = &databases[0]->allocator;
    const pith__rdb **rdbs = pith__memory_alloc(allocator, count * sizeof *rdbs, 8);
    if (!rdbs) return pith__fail_memory(err, count * sizeof *rdbs);
    for (size_t i = 0; i < count; i++) rdbs[i] = &databases[i]->rdb;
    const pith_status status = pith__trainer_load(model, rdbs, count, bytes, size, allocator, err);
    pith__memory_free(allocator, rdbs);
    return status;
}

pith_status pith_relational_create(pith_relational **model, const pith_database *database,
                                   const char *task, const char *config, uint64_t seed,
                                   pith_error *err) {
    PITH_ENTRY(
        relational_create_run(model, &database, &task, 1, relational_text(config), seed, err));
}

pith_status pith_relational_load(pith_relational **model, const pith_database *database,
                                 const void *bytes, size_t size, pith_error *err) {
    PITH_ENTRY(relational_load_run(model, &database, 1, bytes, size, err));
}

pith_status pith_relational_create_over(pith_relational **model,
                                        const pith_database *const *databases,
                                        const char *const *tasks, size_t count, const char *config,
                                        uint64_t seed, pith_error *err) {
    PITH_ENTRY(
        relational_create_run(model, databases, tasks, count, relational_text(config), seed, err));
}

pith_status pith_relational_load_over(pith_relational **model,
                                      const pith_database *const *databases, size_t count,
                                      const void *bytes, size_t size, pith_error *err) {
    PITH_ENTRY(relational_load_run(model, databases, count, bytes, size, err));
}

pith_status pith_relational_start_from(pith_relational *model, const void *bytes, size_t size,
                                       pith_error *err) {
    PITH_ENTRY(pith__trainer_start(model, bytes, size, err));
}

pith_status pith_relational_config(pith_str *config, const void *bytes, size_t size,
                                   pith_error *err) {
    PITH_ENTRY(pith__trainer_config_text(config, bytes, size, err));
}

pith_status pith_relational_save(const pith_relational *model, const pith_writer *writer,
                                 pith_error *err) {
    PITH_ENTRY(pith__trainer_save(model, writer, err));
}

void pith_relational_close(pith_relational *model) { pith__trainer_free(model); }

void pith_relational_get_state(pith_relational_state *state, const pith_relational *model) {
    pith__trainer_state(state, model);
}

pith_status pith_relational_train(double *loss, pith_relational *model, int64_t steps,
                                  int32_t threads, pith__stop *stop, pith_error *err) {
    PITH_ENTRY(pith__trainer_train(loss, model, steps, threads, stop, err));
}

pith_status pith_relational_part(uint32_t *rows, double *labels, size_t *count,
                                 const pith_relational *model, int32_t split, pith_error *err) {
    PITH_ENTRY(pith__trainer_part(rows, labels, count, model, split, err));
}

pith_status pith_relational_evaluate(pith_relational_metrics *metrics, pith_relational *model,
                                     int32_t split, int32_t threads, pith_error *err) {
    PITH_ENTRY(pith__trainer_evaluate(metrics, model, split, threads, err));
}

pith_status pith_relational_find_row(uint32_t *row, const pith_relational *model, pith_str key,
                                     pith_error *err) {
    PITH_ENTRY(pith__trainer_find(row, model, key, err));
}

pith_status pith_relational_predict(float *answers, pith_relational *model, const uint32_t *rows,
                                    size_t count, int32_t threads, pith_error *err) {
    PITH_ENTRY(pith__trainer_predict(answers, model, rows, count, threads, err));
}

const char *pith_baseline_name(int32_t baseline) {
    return baseline >= 0 && baseline < PITH_BASELINE_COUNT ? pith__baseline_names[baseline] : NULL;
}

pith_status pith_baseline_evaluate(pith_relational_metrics *metrics, const pith_relational *model,
                                   int32_t baseline, int32_t split, int32_t threads,
                                   pith_error *err) {
    PITH_ENTRY(pith__baseline_measure(metrics, model->rdb, model->task, baseline, split, threads,
                                      &model->allocator, err));
}

/* A baseline that answers for a model. */
typedef struct baseline_answerer {
    pith__baseline baseline;
    pith_allocator allocator;
} baseline_answerer;

static pith_status answerer_answer(double *answers, void *state, const uint32_t *rows, size_t count,
                                   pith_error *err) {
    return pith__baseline_answer(answers, &((baseline_answerer *)state)->baseline, rows, count,
                                 err);
}

static void answerer_close(void *state) {
    baseline_answerer *a = state;
    const pith_allocator allocator = a->allocator;
    pith__baseline_free(&a->baseline);
    pith__memory_free(&allocator, a);
}

/* Learns a baseline, or with bytes reads it, and lets it answer for the model. */
static pith_status answerer_make(pith_relational *model, int32_t baseline, const void *bytes,
                                 size_t size, int32_t threads, pith_error *err) {
    baseline_answerer *a = pith__memory_alloc(&model->allocator, sizeof *a, 64);
    if (!a) return pith__fail_memory(err, sizeof *a);
    a->allocator = model->allocator;
    const pith_status status =
        bytes ? pith__baseline_load(&a->baseline, model->rdb, model->task, bytes, size, threads,
                                    &a->allocator, err)
              : pith__baseline_fit(&a->baseline, model->rdb, model->task,
                                   (pith__baseline_kind)baseline, threads, &a->allocator, err);
    if (status)
        answerer_close(a);
    else
        pith__trainer_answer_by(model, &(pith__answerer){ answerer_answer, answerer_close, a });
    return status;
}

static pith_status answer_by_run(pith_relational *model, int32_t baseline, int32_t threads,
                                 pith_error *err) {
    if (baseline >= PITH_BASELINE_COUNT)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no baseline %d", baseline);
    if (baseline >= 0) return answerer_make(model, baseline, NULL, 0, threads, err);
    pith__trainer_answer_by(model, NULL);
    return PITH_OK;
}

pith_status pith_relational_answer_by(pith_relational *model, int32_t baseline, int32_t threads,
                                      pith_error *err) {
    PITH_ENTRY(answer_by_run(model, baseline, threads, err));
}

static pith_status save_baseline_run(const pith_relational *model, const pith_writer *writer,
                                     pith_error *err) {
    const baseline_answerer *a = model->answerer.state;
    if (!a) return pith__fail(err, PITH_ERR_ARGUMENT, "the network answers, and no baseline");
    return pith__baseline_save(&a->baseline, writer, err);
}

pith_status pith_relational_save_baseline(const pith_relational *model, const pith_writer *writer,
                                          pith_error *err) {
    PITH_ENTRY(save_baseline_run(model, writer, err));
}

pith_status pith_relational_load_baseline(pith_relational *model, const void *bytes, size_t size,
                                          int32_t threads, pith_error *err) {
    PITH_ENTRY(answerer_make(model, 0, bytes, size, threads, err));
}

pith_str pith_relational_class(const pith_relational *model, int32_t index) {
    if (model->target.kind != PITH_TARGET_CLASS || index < 0 || index >= model->target.outputs)
        return (pith_str){ NULL, 0 };
    return pith__target_class_name(&model->target, index);
}

pith_status pith_relational_importance(pith_relational *model, int32_t split, size_t rows,
                                       int32_t threads,
                                       void (*each)(void *user, pith_str table, pith_str column,
                                                    double rise),
                                       void *user, pith_error *err) {
    PITH_ENTRY(pith__trainer_importance(model, split, rows, threads, each, user, err));
}

pith_status pith_relational_export(const pith_relational *model, const pith_writer *writer,
                                   pith_error *err) {
    PITH_ENTRY(pith__relational_onnx_write(model, writer, err));
}

pith_status pith_relational_inputs(pith_relational *model, const uint32_t *rows, size_t count,
                                   void (*each)(void *user, const char *name,
                                                const pith_tensor *value),
                                   void *user, pith_error *err) {
    PITH_ENTRY(pith__trainer_inputs(model, rows, count, each, user, err));
}
