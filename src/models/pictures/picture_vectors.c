/* picture_vectors.c - one vector per picture.
 *
 * Each picture runs by itself, so its vector cannot depend on the others. With at least as many
 * pictures as threads, each thread takes pictures of its own; otherwise all threads share the work
 * on each. */
#include "models/pictures/picture_vectors.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/os/clock.h"
#include "base/os/threads.h"
#include "base/piece_listener.h"
#include "base/progress.h"
#include "base/stop.h"
#include "engine/exec/profile.h"
#include "images/processor.h"
#include "models/heads/dense_request.h"
#include "models/pictures/picture_view.h"

enum { PICTURE_THREADS_MOST = 512 };

typedef struct picture_worker {
    pith__runner runner;
    pith__arena arena; /* pixels of the current picture, and scratch memory of the head */
    pith_error fault;
    size_t failed; /* the first picture that failed; SIZE_MAX: none */
} picture_worker;

typedef struct picture_call {
    const pith_model *m;
    const pith__picture_view *view;
    const pith_image_processor *processor;
    const pith_image *images;
    const pith_embed_images_options *options;
    pith__stop own_stop, *stop;
    pith__progress own_progress, *progress;
    size_t count;
    atomic_size_t done;
    const pith__head *head;
    const void *state;
    float *vectors;
    size_t dim;
    pith__executor_options executor;
    int inner_threads;
    picture_worker *workers;
    atomic_size_t failed; /* the first picture that has failed so far; SIZE_MAX: none */
} picture_call;

/* ---- one picture ---- */

/* pixel_values [1, 3, height, width], as the input wants them. */
static pith_status picture_pixels(pith_tensor *input, const picture_call *c, picture_worker *w,
                                  const pith_image *image, pith_error *err) {
    const pith__picture_view *v = c->view;
    int64_t dims[3];
    size_t bytes;
    PITH_TRY(pith__processor_shape(dims, c->processor, image->width, image->height, err));
    *input =
        (pith_tensor){ .dtype = v->dtype, .rank = 4, .dims = { 1, dims[0], dims[1], dims[2] } };
    int64_t count = pith__dims_count(input->dims, 4);
    if (!pith__dtype_bytes(PITH_F32, count, &bytes)) return pith__fail_memory(err, SIZE_MAX);
    float *pixels = pith__arena_alloc64(&w->arena, bytes);
    if (!pixels) return pith__fail_memory(err, bytes);
    PITH_TRY(pith__processor_run(pixels, c->processor, image, c->stop, err));
    input->data = pixels;
    input->bytes = bytes;
    if (v->dtype == PITH_F32) return PITH_OK;
    uint16_t *half = pith__arena_alloc64(&w->arena, bytes / 2);
    if (!half) return pith__fail_memory(err, bytes / 2);
    for (int64_t i = 0; i < count; i++) half[i] = pith__f16_of_f32(pixels[i]);
    input->data = half;
    input->bytes = bytes / 2;
    return PITH_OK;
}

/* The output as f32 rows. */
static pith_status picture_rows(const float **rows, int64_t *count, const pith_tensor *out,
                                const picture_call *c, picture_worker *w, pith_error *err) {
    const int64_t width = c->view->facts.width, numbers = pith__dims_count(out->dims, out->rank);
    if (numbers < width || numbers % width || (c->view->facts.pooled && numbers != width)) {
        char shape[128];
        return pith__fail(
            err, PITH_ERR_RUN, "the model's output has shape %s; rows of %lld numbers are needed",
            pith__dims_text(out->dims, out->rank, shape, sizeof shape), (long long)width);
    }
    *count = numbers / width;
    *rows = out->data;
    if (out->dtype == PITH_F32) return PITH_OK;
    float *wide = pith__arena_array(&w->arena, (size_t)numbers, sizeof *wide);
    const uint16_t *half = out->data;
    if (!wide) return pith__fail_memory(err, (size_t)numbers * sizeof *wide);
    for (int64_t i = 0; i < numbers; i++) wide[i] = pith__f32_of_f16(half[i]);
    *rows = wide;
    return PITH_OK;
}

/* Models often take one size of pictures only; which one, the processor must know. */
static pith_status picture_explain(const picture_call *c, const pith_tensor *input,
                                   pith_status status, pith_error *err) {
    const int64_t *declared = c->view->dims, *made = input->dims + 1;
    bool differ = false;
    for (int i = 0; i < 3; i++) differ = differ || (declared[i] >= 0 && declared[i] != made[i]);
    if (!differ || pith__status_stops(status) || status == PITH_ERR_MEMORY) return status;
    return pith__fail_at(
        err, status,
        "the model declares pictures of %lldx%lldx%lld, but preprocessor_config.json makes "
        "%lldx%lldx%lld of this one; correct size or crop_size there: ",
        (long long)declared[0], (long long)declared[1], (long long)declared[2], (long long)made[0],
        (long long)made[1], (long long)made[2]);
}

static pith_status picture_borrow(picture_call *c, picture_worker *w, pith_error *err) {
    if (w->runner.runtime) return PITH_OK;
    pith__idle_runners_take(&w->runner, (pith__idle_runners *)&c->view->idle);
    if (w->runner.runtime) return PITH_OK;
    pith__count(c->executor.counters, PITH_COUNT_sessions_made, 1);
    return pith__runner_create(&w->runner, c->view->program, &c->executor, err);
}

/* A picture from its pixels to its vector. Each runs alone, as a batch of one. */
static pith_status picture_embed(picture_call *c, picture_worker *w, size_t index,
                                 pith_error *err) {
    const size_t outputs = c->view->program->graph->output_count;
    pith__lane *lane = pith__profile_lane(c->options->call.profile);
    pith_tensor input;
    const float *rows = NULL;
    int64_t count = 0;
    PITH_TRY(pith__stop_check(c->stop, err));
    PITH_TRY(picture_borrow(c, w, err));
    pith__arena_reset(&w->arena);
    pith_tensor *out = pith__arena_array(&w->arena, outputs, sizeof *out);
    if (!out) return pith__fail_memory(err, outputs * sizeof *out);
    uint64_t begin = pith__clock_ns();
    PITH_TRY(picture_pixels(&input, c, w, &c->images[index], err));
    pith__lane_phase(lane, "picture", begin, 1);
    pith__runner_trace(&w->runner, pith__lane_trace(lane), lane);
    begin = pith__clock_ns();
    pith_status status = pith__runner_run(&w->runner, out, &input, c->inner_threads, c->stop, err);
    if (status) return picture_explain(c, &input, status, err);
    pith__lane_phase(lane, "run", begin, 1);
    pith__count(c->executor.counters, PITH_COUNT_run_ns, pith__clock_ns() - begin);
    PITH_TRY(picture_rows(&rows, &count, &out[c->view->output], c, w, err));
    pith__head_rows all = { index, rows, count, c->view->facts.width, 0, NULL, &w->arena, false };
    return c->head->emit(c->state, &all, err);
}

/* Whether the fault is of the picture alone, and the caller wants to go on without it. */
static bool picture_pass_over(const picture_call *c, size_t index, const pith_error *fault) {
    if (!c->options->failures || pith__status_stops(fault->code) || fault->code == PITH_ERR_MEMORY)
        return false;
    c->options->failures[index] = *fault;
    for (size_t i = 0; i < c->dim; i++) c->vectors[index * c->dim + i] = NAN;
    return true;
}

/* A picture that fails may be passed over, if the caller gave room for failures; else the first one
 * that fails ends the call. */
static void picture_part(void *context, size_t part, int index) {
    picture_call *c = context;
    picture_worker *w = &c->workers[index];
    pith_error fault = PITH_ERROR_INIT;
    size_t first = atomic_load_explicit(&c->failed, memory_order_relaxed);
    if (part > first) return;
    if (c->options->failures) c->options->failures[part] = fault;
    if (!picture_embed(c, w, part, &fault) || picture_pass_over(c, part, &fault)) {
        const size_t done = atomic_fetch_add_explicit(&c->done, 1, memory_order_relaxed) + 1;
        pith__progress_tell(c->progress, "pictures", done, c->count);
        return;
    }
    while (part < first &&
           !atomic_compare_exchange_weak_explicit(&c->failed, &first, part, memory_order_relaxed,
                                                  memory_order_relaxed)) {}
    if (part >= w->failed) return;
    w->failed = part;
    w->fault = fault;
}

/* ---- the call ---- */

/* Options, the view, and the processor: the caller's, or that of the model's directory. */
static pith_status picture_begin(picture_call *c, pith_embed_images_options *o, const pith_model *m,
                                 const pith_embed_images_options *given, pith_error *err) {
    *o = (pith_embed_images_options)PITH_EMBED_IMAGES_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    PITH_TRY(pith__threads_check(o->call.threads, err));
    *c = (picture_call){ .m = m, .options = o, .executor = pith__model_executor_options(m) };
    atomic_init(&c->failed, SIZE_MAX);
    atomic_init(&c->done, 0);
    c->stop = pith__stop_begin(&c->own_stop, &o->call);
    c->progress = pith__progress_begin(&c->own_progress, &o->call);
    PITH_TRY(pith__stop_check(c->stop, err));
    PITH_TRY(pith__picture_view_get(&c->view, m, o->pooling != PITH_POOLING_MODEL, c->stop, err));
    PITH_TRY(pith__head_find(&c->head, "dense", err));
    c->processor = o->processor ? o->processor : c->view->processor;
    return PITH_OK;
}

/* Where the model does not pool and no file says how to, the first row stands for the picture: a
 * class token. */
static int picture_pooling(const picture_call *c) {
    const pith__modules *modules = &c->m->modules;
    if (c->options->pooling != PITH_POOLING_MODEL) return c->options->pooling;
    for (size_t i = 0; i < modules->decision_count; i++)
        if (!strcmp(modules->decisions[i].what, "pooling") && modules->decisions[i].file.size)
            return PITH_POOLING_MODEL;
    return c->view->facts.pooled ? PITH_POOLING_MODEL : PITH_POOLING_CLS;
}

static pith__dense_request picture_request(const picture_call *c, float *vectors) {
    const pith_embed_images_options *o = c->options;
    return (pith__dense_request){
        .pooling = picture_pooling(c), .normalize = o->normalize, .dim = o->dim, .vectors = vectors
    };
}

/* 0 if the options do not fit the model; embedding says why. */
pith_status pith__model_picture_dim(size_t *dim, const pith_model *m,
                                    const pith_embed_images_options *options, pith_error *err) {
    pith_embed_images_options o;
    picture_call c;
    PITH_TRY(picture_begin(&c, &o, m, options, err));
    pith__dense_request dense = picture_request(&c, NULL);
    *dim = pith__dense_dim(&c.view->facts, &dense);
    return PITH_OK;
}

/* With fewer pictures than threads, threads share the work within a picture. */
static void picture_run(picture_call *c, size_t count, int threads) {
    if (count >= (size_t)threads) {
        c->inner_threads = 1;
        pith__threads_run_until(c->stop, picture_part, c, count, threads);
        return;
    }
    c->inner_threads = threads;
    for (size_t i = 0; i < count; i++) picture_part(c, i, 0);
}

/* The failure of the first picture counts, whichever thread met it. Runners go back in any case. */
static pith_status picture_finish(picture_call *c, int threads, pith_error *err) {
    const picture_worker *first = NULL;
    for (int i = 0; i < threads; i++) {
        picture_worker *w = &c->workers[i];
        if (w->failed != SIZE_MAX && (!first || w->failed < first->failed)) first = w;
        if (w->runner.runtime)
            pith__idle_runners_give((pith__idle_runners *)&c->view->idle, &w->runner);
        pith__arena_free(&w->arena);
    }
    PITH_TRY(pith__stop_check(c->stop, err));
    if (!first) pith__progress_tell(c->progress, "pictures", c->count, c->count);
    if (!first) return PITH_OK;
    return pith__fail(err, first->fault.code, "picture %zu: %s", first->failed,
                      first->fault.message);
}

/* Only where the file is missing does it help to put it there. */
static pith_status picture_no_processor(const pith_error *why, pith_error *err) {
    const bool missing = why->code == PITH_ERR_NOT_FOUND;
    return pith__fail(
        err, why->code, "what is to be done to pictures is not known: %s; %s", why->message,
        missing ? "put the model's preprocessor_config.json next to it, or give a processor"
                : "correct the file, or give a processor");
}

/* Options are checked by the head before the processor is missed, so that their faults are told
 * first. */
static pith_status picture_all(float *vectors, picture_call *c, size_t count, pith__arena *arena,
                               pith_error *err) {
    const pith_embed_images_options *o = c->options;
    int threads = pith__threads_count(o->call.threads);
    if (threads > PICTURE_THREADS_MOST) threads = PICTURE_THREADS_MOST;
    pith__dense_request dense = picture_request(c, vectors);
    pith__piece_used(c->head);
    PITH_TRY(c->head->open(&c->state, &c->view->facts, &dense, arena, err));
    c->vectors = vectors;
    c->dim = pith__dense_dim(&c->view->facts, &dense);
    if (!c->processor) return picture_no_processor(&c->view->no_processor, err);
    c->workers = pith__arena_array(arena, (size_t)threads, sizeof *c->workers);
    if (!c->workers) return pith__fail_memory(err, (size_t)threads * sizeof *c->workers);
    for (int i = 0; i < threads; i++) {
        c->workers[i] = (picture_worker){ .failed = SIZE_MAX };
        pith__arena_init(&c->workers[i].arena, c->executor.allocator);
    }
    pith__busy_begin((pith__busy *)&c->m->busy, threads);
    picture_run(c, count, threads);
    pith__busy_end((pith__busy *)&c->m->busy, c->executor.counters);
    return picture_finish(c, threads, err);
}

/* The arena holds what the head needs and the array of workers. */
pith_status pith__model_embed_pictures(float *vectors, const pith_model *m,
                                       const pith_image *images, size_t count,
                                       const pith_embed_images_options *options, pith_error *err) {
    pith_embed_images_options o;
    picture_call c;
    pith__arena arena;
    pith__arena_init(&arena, m->options.call.allocator);
    pith_status status = picture_begin(&c, &o, m, options, err);
    c.images = images;
    c.count = count;
    if (!status) status = picture_all(vectors, &c, count, &arena, err);
    pith__arena_free(&arena);
    return pith__account_explain(&m->account, status, err);
}
