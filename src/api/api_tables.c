/* api_tables.c - the public functions of pith/tables.h. */
#include <string.h>

#include "api/entry.h"
#include "base/error.h"
#include "base/str.h"
#include "base/work.h"
#include "tables/baseline/baseline.h"
#include "tables/database/database.h"
#include "tables/database/rdb_keep.h"
#include "tables/network/trainer.h"
#include "tables/onnx/relational_onnx.h"

pith_status pith_database_draft(const char *source, const pith_call *call,
                                const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__database_draft_run(source, call, writer, err));
}

pith_status pith_database_make(const char *source, const pith_database_options *options,
                               const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__database_make_run(source, options, writer, err));
}

pith_status pith_database_open(pith_database **database, const char *path, const pith_call *call,
                               pith_error *err) {
    PITH_ENTRY(pith__database_open_run(database, path, call, err));
}

void pith_database_close(pith_database *database) { pith__database_free(database); }

pith_status pith_database_describe(const pith_database *database, const pith_call *call,
                                   const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(pith__database_describe_run(database, call, writer, err));
}

pith_str pith_database_schema(const pith_database *database) { return database->rdb.schema; }

static pith_status follow_run(pith_database *database, const pith_database *kept,
                              const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__rdb_follow(&database->rdb, &kept->rdb, work.stop, err);
}

pith_status pith_database_follow(pith_database *database, const pith_database *kept,
                                 const pith_call *call, pith_error *err) {
    PITH_ENTRY(follow_run(database, kept, call, err));
}

static pith_status keep_run(const pith_relational *model, const pith_call *call,
                            const pith_writer *writer, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_keep(model, writer, work.stop, err);
}

pith_status pith_relational_keep(const pith_relational *model, const pith_call *call,
                                 const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(keep_run(model, call, writer, err));
}

static pith_str relational_text(const char *text) {
    return text ? pith__str_of(text) : (pith_str){ NULL, 0 };
}

static pith_status relational_create_run(pith_relational **model,
                                         const pith_database *const *databases,
                                         const char *const *tasks, size_t count, pith_str config,
                                         uint64_t seed, const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    if (!count) return pith__fail(err, PITH_ERR_ARGUMENT, "a model needs a database");
    const pith_allocator *allocator = &databases[0]->allocator;
    pith__trainer_question *questions = pith__memory_alloc(allocator, count * sizeof *questions, 8);
    if (!questions) return pith__fail_memory(err, count * sizeof *questions);
    for (size_t i = 0; i < count; i++)
        questions[i] = (pith__trainer_question){ &databases[i]->rdb, pith__str_of(tasks[i]) };
    const pith_status status =
        pith__trainer_create(model, questions, count, config, seed, work.stop, allocator, err);
    pith__memory_free(allocator, questions);
    return status;
}

static pith_status relational_load_run(pith_relational **model,
                                       const pith_database *const *databases, size_t count,
                                       const void *bytes, size_t size, const pith_call *call,
                                       pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    if (!count) return pith__fail(err, PITH_ERR_ARGUMENT, "a model needs a database");
    const pith_allocator *allocator = &databases[0]->allocator;
    const pith__rdb **rdbs = pith__memory_alloc(allocator, count * sizeof *rdbs, 8);
    if (!rdbs) return pith__fail_memory(err, count * sizeof *rdbs);
    for (size_t i = 0; i < count; i++) rdbs[i] = &databases[i]->rdb;
    const pith_status status =
        pith__trainer_load(model, rdbs, count, bytes, size, work.stop, allocator, err);
    pith__memory_free(allocator, rdbs);
    return status;
}

pith_status pith_relational_create(pith_relational **model, const pith_database *database,
                                   const char *task, const char *config, uint64_t seed,
                                   const pith_call *call, pith_error *err) {
    PITH_ENTRY(relational_create_run(model, &database, &task, 1, relational_text(config), seed,
                                     call, err));
}

pith_status pith_relational_load(pith_relational **model, const pith_database *database,
                                 const void *bytes, size_t size, const pith_call *call,
                                 pith_error *err) {
    PITH_ENTRY(relational_load_run(model, &database, 1, bytes, size, call, err));
}

pith_status pith_relational_create_over(pith_relational **model,
                                        const pith_database *const *databases,
                                        const char *const *tasks, size_t count, const char *config,
                                        uint64_t seed, const pith_call *call, pith_error *err) {
    PITH_ENTRY(relational_create_run(model, databases, tasks, count, relational_text(config), seed,
                                     call, err));
}

pith_status pith_relational_load_over(pith_relational **model,
                                      const pith_database *const *databases, size_t count,
                                      const void *bytes, size_t size, const pith_call *call,
                                      pith_error *err) {
    PITH_ENTRY(relational_load_run(model, databases, count, bytes, size, call, err));
}

static pith_status start_run(pith_relational *model, const void *bytes, size_t size,
                             const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_start(model, bytes, size, work.stop, err);
}

pith_status pith_relational_start_from(pith_relational *model, const void *bytes, size_t size,
                                       const pith_call *call, pith_error *err) {
    PITH_ENTRY(start_run(model, bytes, size, call, err));
}

static pith_status config_run(pith_str *config, const void *bytes, size_t size,
                              const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_config_text(config, bytes, size, work.stop, err);
}

pith_status pith_relational_config(pith_str *config, const void *bytes, size_t size,
                                   const pith_call *call, pith_error *err) {
    PITH_ENTRY(config_run(config, bytes, size, call, err));
}

static pith_status save_run(const pith_relational *model, const pith_call *call,
                            const pith_writer *writer, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_save(model, writer, work.stop, err);
}

pith_status pith_relational_save(const pith_relational *model, const pith_call *call,
                                 const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(save_run(model, call, writer, err));
}

void pith_relational_destroy(pith_relational *model) { pith__trainer_free(model); }

/* Copies what a caller built with an older or newer header has room for; false if his struct has no
 * size. */
static bool filled_give(void *theirs, void *mine, size_t my_size) {
    size_t size;
    memcpy(&size, theirs, sizeof size);
    if (size < sizeof size) return false;
    memcpy(mine, &size, sizeof size);
    memcpy(theirs, mine, size < my_size ? size : my_size);
    return true;
}

void pith_relational_get_state(pith_relational_state *state, const pith_relational *model) {
    pith_relational_state s;
    pith__trainer_state(&s, model);
    filled_give(state, &s, sizeof s);
}

static pith_status train_run(double *loss, pith_relational *model, int64_t steps,
                             const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    *loss = 0;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_train(loss, model, steps, &work, err);
}

pith_status pith_relational_train(double *loss, pith_relational *model, int64_t steps,
                                  const pith_call *call, pith_error *err) {
    PITH_ENTRY(train_run(loss, model, steps, call, err));
}

static pith_status part_run(uint32_t *rows, double *labels, size_t *count,
                            const pith_relational *model, int32_t split, const pith_call *call,
                            pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_part(rows, labels, count, model, split, work.stop, err);
}

pith_status pith_relational_part(uint32_t *rows, double *labels, size_t *count,
                                 const pith_relational *model, int32_t split, const pith_call *call,
                                 pith_error *err) {
    PITH_ENTRY(part_run(rows, labels, count, model, split, call, err));
}

static pith_status metrics_give(pith_relational_metrics *theirs, pith_relational_metrics *mine,
                                pith_error *err) {
    if (filled_give(theirs, mine, sizeof *mine)) return PITH_OK;
    return pith__fail(
        err, PITH_ERR_ARGUMENT,
        "the metrics have no size; initialise them with PITH_RELATIONAL_METRICS_INIT");
}

static pith_status evaluate_run(pith_relational_metrics *metrics, pith_relational *model,
                                int32_t split, const pith_call *call, pith_error *err) {
    pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    PITH_TRY(pith__trainer_evaluate(&m, model, split, &work, err));
    return metrics_give(metrics, &m, err);
}

pith_status pith_relational_evaluate(pith_relational_metrics *metrics, pith_relational *model,
                                     int32_t split, const pith_call *call, pith_error *err) {
    PITH_ENTRY(evaluate_run(metrics, model, split, call, err));
}

static pith_status find_run(uint32_t *row, const pith_relational *model, pith_str key,
                            const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_find(row, model, key, work.stop, err);
}

pith_status pith_relational_find_row(uint32_t *row, const pith_relational *model, pith_str key,
                                     const pith_call *call, pith_error *err) {
    PITH_ENTRY(find_run(row, model, key, call, err));
}

static pith_status predict_run(float *answers, pith_relational *model, const uint32_t *rows,
                               size_t count, const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_predict(answers, model, rows, count, &work, err);
}

pith_status pith_relational_predict(float *answers, pith_relational *model, const uint32_t *rows,
                                    size_t count, const pith_call *call, pith_error *err) {
    PITH_ENTRY(predict_run(answers, model, rows, count, call, err));
}

const char *pith_baseline_name(int32_t baseline) {
    return baseline >= 0 && baseline < PITH_BASELINE_COUNT ? pith__baseline_names[baseline] : NULL;
}

static pith_status measure_run(pith_relational_metrics *metrics, const pith_relational *model,
                               int32_t baseline, int32_t split, const pith_call *call,
                               pith_error *err) {
    pith_relational_metrics m = PITH_RELATIONAL_METRICS_INIT;
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    PITH_TRY(pith__baseline_measure(&m, model->rdb, model->task, baseline, split, &work,
                                    &model->allocator, err));
    return metrics_give(metrics, &m, err);
}

pith_status pith_baseline_evaluate(pith_relational_metrics *metrics, const pith_relational *model,
                                   int32_t baseline, int32_t split, const pith_call *call,
                                   pith_error *err) {
    PITH_ENTRY(measure_run(metrics, model, baseline, split, call, err));
}

/* A baseline that answers for a model. */
typedef struct baseline_answerer {
    pith__baseline baseline;
    pith_allocator allocator;
} baseline_answerer;

static pith_status answerer_answer(double *answers, void *state, const uint32_t *rows, size_t count,
                                   const pith__work *work, pith_error *err) {
    return pith__baseline_answer(answers, &((baseline_answerer *)state)->baseline, rows, count,
                                 work, err);
}

static void answerer_close(void *state) {
    baseline_answerer *a = state;
    const pith_allocator allocator = a->allocator;
    pith__baseline_free(&a->baseline);
    pith__memory_free(&allocator, a);
}

/* Learns a baseline, or with bytes reads it, and lets it answer for the model. */
static pith_status answerer_make(pith_relational *model, int32_t baseline, const void *bytes,
                                 size_t size, const pith__work *work, pith_error *err) {
    baseline_answerer *a = pith__memory_alloc(&model->allocator, sizeof *a, 64);
    if (!a) return pith__fail_memory(err, sizeof *a);
    a->allocator = model->allocator;
    const pith_status status =
        bytes ? pith__baseline_load(&a->baseline, model->rdb, model->task, bytes, size, work,
                                    &a->allocator, err)
              : pith__baseline_fit(&a->baseline, model->rdb, model->task,
                                   (pith__baseline_kind)baseline, work, &a->allocator, err);
    if (status)
        answerer_close(a);
    else
        pith__trainer_answer_by(model, &(pith__answerer){ answerer_answer, answerer_close, a });
    return status;
}

static pith_status answer_by_run(pith_relational *model, int32_t baseline, const pith_call *call,
                                 pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    if (baseline >= PITH_BASELINE_COUNT)
        return pith__fail(err, PITH_ERR_ARGUMENT, "there is no baseline %d", baseline);
    if (baseline >= 0) return answerer_make(model, baseline, NULL, 0, &work, err);
    pith__trainer_answer_by(model, NULL);
    return PITH_OK;
}

pith_status pith_relational_answer_by(pith_relational *model, int32_t baseline,
                                      const pith_call *call, pith_error *err) {
    PITH_ENTRY(answer_by_run(model, baseline, call, err));
}

static pith_status save_baseline_run(const pith_relational *model, const pith_call *call,
                                     const pith_writer *writer, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    const baseline_answerer *a = model->answerer.state;
    if (!a) return pith__fail(err, PITH_ERR_ARGUMENT, "the network answers, and no baseline");
    return pith__baseline_save(&a->baseline, writer, work.stop, err);
}

pith_status pith_relational_save_baseline(const pith_relational *model, const pith_call *call,
                                          const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(save_baseline_run(model, call, writer, err));
}

static pith_status load_baseline_run(pith_relational *model, const void *bytes, size_t size,
                                     const pith_call *call, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return answerer_make(model, 0, bytes, size, &work, err);
}

pith_status pith_relational_load_baseline(pith_relational *model, const void *bytes, size_t size,
                                          const pith_call *call, pith_error *err) {
    PITH_ENTRY(load_baseline_run(model, bytes, size, call, err));
}

pith_str pith_relational_class(const pith_relational *model, int32_t index) {
    if (model->target.kind != PITH_TARGET_CLASS || index < 0 || index >= model->target.outputs)
        return (pith_str){ NULL, 0 };
    return pith__target_class_name(&model->target, index);
}

static pith_status importance_run(pith_relational *model, int32_t split, size_t rows,
                                  const pith_call *call,
                                  void (*each)(void *user, pith_str table, pith_str column,
                                               double rise),
                                  void *user, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_importance(model, split, rows, &work, each, user, err);
}

pith_status pith_relational_importance(pith_relational *model, int32_t split, size_t rows,
                                       const pith_call *call,
                                       void (*each)(void *user, pith_str table, pith_str column,
                                                    double rise),
                                       void *user, pith_error *err) {
    PITH_ENTRY(importance_run(model, split, rows, call, each, user, err));
}

static pith_status export_run(const pith_relational *model, const pith_call *call,
                              const pith_writer *writer, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__relational_onnx_write(model, writer, work.stop, err);
}

pith_status pith_relational_export(const pith_relational *model, const pith_call *call,
                                   const pith_writer *writer, pith_error *err) {
    PITH_ENTRY(export_run(model, call, writer, err));
}

static pith_status inputs_run(pith_relational *model, const uint32_t *rows, size_t count,
                              const pith_call *call,
                              void (*each)(void *user, const char *name, const pith_tensor *value),
                              void *user, pith_error *err) {
    pith__work_own own;
    pith__work work;
    PITH_TRY(pith__work_take(&work, &own, call, err));
    return pith__trainer_inputs(model, rows, count, each, user, work.stop, err);
}

pith_status pith_relational_inputs(pith_relational *model, const uint32_t *rows, size_t count,
                                   const pith_call *call,
                                   void (*each)(void *user, const char *name,
                                                const pith_tensor *value),
                                   void *user, pith_error *err) {
    PITH_ENTRY(inputs_run(model, rows, count, call, each, user, err));
}
