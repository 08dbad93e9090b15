/* detection.c - see detection.h.
 *
 * Each picture runs by itself. With at least as many pictures as threads, each thread takes
 * pictures of its own; otherwise all threads share the work on each. */
#include "models/faces/detection.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/os/clock.h"
#include "base/os/threads.h"
#include "base/piece_listener.h"
#include "base/progress.h"
#include "base/stop.h"
#include "engine/exec/profile.h"
#include "images/float_planes.h"
#include "images/picture.h"
#include "images/resize.h"
#include "models/faces/cascade.h"
#include "models/faces/detect_levels.h"
#include "models/open/open_model.h"

enum { DETECT_THREADS_MOST = 512 };
/* The most pixels along a side of the network's input. */
enum { DETECT_SIDE_MOST = 1 << 16 };
/* A face of more pixels may have a low score at this size, and a good one at half of it. */
enum { DETECT_LARGE = 300 };

typedef struct detect_worker {
    pith__runner runners[PITH_DETECTOR_NETWORKS];
    pith__arena arena; /* of the current picture */
    pith_error fault;
    size_t failed; /* the first picture that failed; SIZE_MAX: none */
} detect_worker;

typedef struct detect_call {
    const pith_model *m;
    pith__detection *detection;
    const pith_image *images;
    pith_faces *faces;
    const pith_detect_options *options;
    pith__stop *stop;
    pith__progress *progress;
    size_t count;
    atomic_size_t done;
    pith__executor_options executor;
    int inner_threads;
    detect_worker *workers;
    atomic_size_t failed; /* the first picture that has failed so far; SIZE_MAX: none */
} detect_call;

/* ---- which detector ---- */

/* By inputs and outputs, not by the name of a file. The networks of a cascade were found when the
 * directory was opened. */
static const pith__head *detect_find(const pith_model *m) {
    int places[PITH_DETECTOR_OUTPUTS];
    if (m->cascade) return m->cascade;
    for (size_t i = 0; i < pith__head_table_count; i++) {
        const pith__detector *d = pith__head_table[i]->detector;
        if (d && d->decode && pith__detector_takes(places, &d->networks[0], m->graph))
            return pith__head_table[i];
    }
    return NULL;
}

/* Declared types may be wrong or missing, so inference has the last word. */
static pith_status detect_make_network(pith__detection *d, int index, const pith_model *m,
                                       pith__stop *stop, pith_error *err) {
    pith__detection_network *n = &d->networks[index];
    const pith_model *part = index ? d->parts[index] : m;
    PITH_TRY(pith__model_program(&n->program, part, stop, err));
    if (!pith__detector_takes(n->places, &d->head->detector->networks[index], part->graph))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "network %d of %s has other types than its file declares", index + 1,
                          d->head->name);
    return pith__idle_runners_init(&n->idle, (size_t)m->options.sessions,
                                   (uint64_t)m->options.session_idle_ms * 1000000,
                                   (pith__counters *)&m->account.counters, &d->arena, err);
}

/* Detectors that this build was made without. */
static pith_status detect_check_left_out(pith_error *err) {
    static const char *const names[] = { "mtcnn", "yunet" };
    pith_error one = PITH_ERROR_INIT;
    pith__lacks lacks = { .count = 0 };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pith__piece_check("heads", pith__str_of(names[i]), &one))
            pith__lacks_note(&lacks, "heads", pith__str_of(names[i]), "");
    return pith__lacks_check(&lacks, err);
}

/* Made when pictures are first looked at: other users of a model pay nothing for it. */
static pith_status detect_make(pith__detection *d, const pith_model *m, pith__stop *stop,
                               pith_error *err) {
    const pith__graph *graph = m->graph;
    d->head = detect_find(m);
    if (!d->head) PITH_TRY(detect_check_left_out(err));
    if (!d->head)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model is no detector that is known: YuNet has an input [batch, 3, "
                          "height, width] of "
                          "float32 and the outputs cls_8 to kps_32; MTCNN is a directory with its "
                          "three networks");
    pith__piece_used(d->head);
    const pith__type *declared =
        graph->inputs[0]->hint ? graph->inputs[0]->hint : &graph->inputs[0]->type;
    for (int i = 0; i < 2; i++)
        d->dims[i] = declared->rank == 4 && pith__dim_known(declared->dims[2 + i])
                         ? declared->dims[2 + i]
                         : -1;
    const pith__cascade_part *cascades = m->cascade ? pith__part_find("cascades") : NULL;
    if (cascades) PITH_TRY(cascades->open(d->parts, m, stop, err));
    for (const int count = pith__detector_count(d->head->detector); d->count < count; d->count++)
        PITH_TRY(detect_make_network(d, d->count, m, stop, err));
    return PITH_OK;
}

void pith__detection_free(pith__detection *d, const pith_allocator *allocator) {
    if (!d) return;
    for (int i = 0; i < PITH_DETECTOR_NETWORKS; i++) {
        if (d->networks[i].idle.items) pith__idle_runners_destroy(&d->networks[i].idle);
        if (d->parts[i]) pith__model_destroy(d->parts[i]);
    }
    pith__arena_free(&d->arena);
    pith__memory_free(allocator, d);
}

static void detect_close(pith_model *m) {
    pith__detection_free(m->detection, m->options.call.allocator);
}

/* A failure is not kept: the next call tries again, since memory may have been short. */
static pith_status detect_get(pith__detection **detection, const pith_model *model,
                              pith__stop *stop, pith_error *err) {
    pith_model *m = (pith_model *)(uintptr_t)model; /* the lazily made part is behind the lock */
    pith_status status = PITH_OK;
    pthread_mutex_lock(&m->view_lock);
    if (!m->detection) {
        pith__detection *d = pith__memory_alloc(m->options.call.allocator, sizeof *d, 64);
        if (d) {
            *d = (pith__detection){ .head = NULL };
            pith__arena_init(&d->arena, m->options.call.allocator);
            status = detect_make(d, m, stop, err);
        } else {
            status = pith__fail_memory(err, sizeof *d);
        }
        if (status) pith__detection_free(d, m->options.call.allocator);
        if (!status) m->detection = d;
        m->close_detection = detect_close;
    }
    *detection = m->detection;
    pthread_mutex_unlock(&m->view_lock);
    return status;
}

/* ---- one picture ---- */

static int64_t detect_multiple(int64_t x, int64_t of) { return (x + of - 1) / of * of; }

/* The whole picture as one window: at its own size, or at the one that the options give. */
static pith_status detect_whole(pith__detect_window *w, const detect_call *c,
                                const pith_image *image, pith_error *err) {
    const pith_detect_options *o = c->options;
    const pith__detector *d = c->detection->head->detector;
    const int stride = d->find ? 1 : d->stride;
    int32_t size[2] = { image->width, image->height };
    if (o->width > 0) pith__detect_fit(size, image->width, image->height, o->width, o->height);
    *w = (pith__detect_window){ .scaled_width = size[0],
                                .scaled_height = size[1],
                                .width = size[0],
                                .height = size[1],
                                .whole_width =
                                    detect_multiple(o->width > 0 ? o->width : size[0], stride),
                                .whole_height =
                                    detect_multiple(o->width > 0 ? o->height : size[1], stride) };
    if (w->whole_width <= DETECT_SIDE_MOST && w->whole_height <= DETECT_SIDE_MOST) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT,
                      "the picture has %dx%d pixels; sides are at most %d, so have it scaled "
                      "(pith_detect_options.width)",
                      image->width, image->height, DETECT_SIDE_MOST);
}

/* A picture on its way to the input. Its rows are shared out to threads. */
typedef struct detect_rows {
    const pith__detect_window *size;
    const pith_image *image;
    const int *order;
    const pith_allocator *allocator;
    uint8_t *scaled; /* [size->height, size->width, channels]; NULL: the picture keeps its size */
    float *planes;   /* [3, size->whole_height, size->whole_width]; NULL: none are wanted */
    size_t parts;
    pith__stop *stop;    /* may be NULL */
    pith_status *status; /* [parts] */
    pith_error *faults;  /* [parts] */
} detect_rows;

/* A row of the input in planes; behind the picture and below it are zeros, as in OpenCV's padding.
 */
static void detect_lay_row(const detect_rows *d, const uint8_t *pixels, int32_t y) {
    const pith__detect_window *s = d->size;
    const size_t channels = (size_t)d->image->channels,
                 plane = (size_t)(s->whole_height * s->whole_width);
    const size_t used = y < s->height ? (size_t)s->width : 0;
    float *rows[3];
    for (size_t p = 0; p < 3; p++)
        rows[p] = d->planes + p * plane + (size_t)y * (size_t)s->whole_width;
    if (used)
        pith__planes_of_row(rows, pixels + (size_t)y * used * channels, d->image->channels,
                            d->order, used);
    for (int p = 0; p < 3; p++)
        memset(rows[p] + used, 0, ((size_t)s->whole_width - used) * sizeof(float));
}

/* Some rows of the scaled picture, and of the input; the last part also has the rows below the
 * picture. */
static void detect_rows_part(void *context, size_t part, int worker) {
    detect_rows *d = context;
    const pith__detect_window *s = d->size;
    const int32_t begin = (int32_t)((size_t)s->height * part / d->parts);
    const int32_t end = (int32_t)((size_t)s->height * (part + 1) / d->parts);
    const uint8_t *pixels = d->image->pixels;
    (void)worker;
    if (d->scaled) {
        const pith__resize_window window = { .whole_width = s->scaled_width,
                                             .whole_height = s->scaled_height,
                                             .x = s->left,
                                             .y = s->top + begin,
                                             .width = s->width,
                                             .height = end - begin,
                                             .stop = d->stop };
        uint8_t *made = d->scaled + (size_t)begin * (size_t)s->width * (size_t)d->image->channels;
        pixels = d->scaled;
        d->status[part] = pith__resize_run(made, d->image, &window, PITH_IMAGE_BILINEAR,
                                           PITH_IMAGE_MAX_PIXELS, d->allocator, &d->faults[part]);
        if (d->status[part]) return;
    }
    const int32_t last = part + 1 == d->parts ? (int32_t)s->whole_height : end;
    if (!d->planes) return;
    for (int32_t y = begin; y < last; y++) {
        if (y % 64 == 0 && pith__stop_asked(d->stop)) return;
        detect_lay_row(d, pixels, y);
    }
}

/* Fewer bytes than this are not worth waking another thread. */
enum { DETECT_BYTES_SHARED = 1 << 18 };

/* The picture's pixels at the size of the input, with as many channels as it has, and as planes if
 * there are any. */
static pith_status detect_prepare(const uint8_t **pixels, float *planes,
                                  const pith__detect_window *s, const detect_call *c,
                                  const pith_image *image, pith__arena *arena, pith_error *err) {
    const bool scales = s->scaled_width != image->width || s->scaled_height != image->height ||
                        s->width != image->width || s->height != image->height;
    const size_t bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    detect_rows d = { .size = s,
                      .image = image,
                      .order = c->detection->head->detector->planes,
                      .allocator = arena->allocator,
                      .planes = planes,
                      .parts = 1,
                      .stop = c->stop };
    *pixels = image->pixels;
    if (!scales && !planes) return PITH_OK;
    if (scales) {
        size_t made;
        if (pith__mul_overflows((size_t)s->width * (size_t)s->height, (size_t)image->channels,
                                &made))
            return pith__fail_memory(err, SIZE_MAX);
        *pixels = d.scaled = pith__arena_alloc(arena, made);
        if (!d.scaled) return pith__fail_memory(err, made);
    }
    if (bytes >= DETECT_BYTES_SHARED) d.parts = (size_t)c->inner_threads;
    if (d.parts > (size_t)s->height) d.parts = (size_t)s->height;
    d.status = pith__arena_array(arena, d.parts, sizeof *d.status);
    d.faults = pith__arena_array(arena, d.parts, sizeof *d.faults);
    if (!d.status || !d.faults) return pith__fail_memory(err, d.parts * sizeof *d.faults);
    pith__threads_run_until(c->stop, detect_rows_part, &d, d.parts, c->inner_threads);
    PITH_TRY(pith__stop_check(c->stop, err));
    for (size_t i = 0; i < d.parts; i++)
        if (d.status[i]) return pith__fail(err, d.status[i], "%s", d.faults[i].message);
    return PITH_OK;
}

/* The window of the picture as the network takes it, in memory of the picture. */
static pith_status detect_input(pith_tensor *input, const pith__detect_window *s,
                                const detect_call *c, const pith_image *image, pith__arena *arena,
                                pith_error *err) {
    const uint8_t *pixels;
    *input = (pith_tensor){ .dtype = PITH_F32,
                            .rank = 4,
                            .dims = { 1, 3, s->whole_height, s->whole_width } };
    /* both at most DETECT_SIDE_MOST */
    const size_t plane = (size_t)(s->whole_height * s->whole_width);
    input->bytes = 3 * plane * sizeof(float);
    float *data = pith__arena_alloc64(arena, input->bytes);
    if (!data) return pith__fail_memory(err, input->bytes);
    input->data = data;
    return detect_prepare(&pixels, data, s, c, image, arena, err);
}

/* Faces from index `from` on: back to pixels of the picture. */
static void detect_scale_back(pith__candidates *found, size_t from, const pith__detect_window *s,
                              const pith_image *image) {
    const float sx = (float)((double)image->width / s->scaled_width),
                sy = (float)((double)image->height / s->scaled_height);
    for (size_t i = from; i < found->count; i++) {
        pith_face *f = &found->items[i];
        f->box[0] += (float)s->left;
        f->box[1] += (float)s->top;
        for (int k = 0; k < 4; k++) f->box[k] *= k % 2 ? sy : sx;
        for (int k = 0; k < PITH_FACE_LANDMARKS; k++) {
            f->landmarks[k][0] = (f->landmarks[k][0] + (float)s->left) * sx;
            f->landmarks[k][1] = (f->landmarks[k][1] + (float)s->top) * sy;
        }
    }
}

/* Faces go to memory of the caller's allocator, which outlives the call. */
static pith_status detect_give(pith_faces *faces, const pith__candidates *found,
                               const pith_allocator *allocator, pith_error *err) {
    *faces = (pith_faces){ .allocator = allocator };
    if (!found->count) return PITH_OK;
    faces->faces = pith__memory_alloc(allocator ? allocator : &pith__allocator_default,
                                      found->count * sizeof *faces->faces, 16);
    if (!faces->faces) return pith__fail_memory(err, found->count * sizeof *faces->faces);
    memcpy(faces->faces, found->items, found->count * sizeof *faces->faces);
    faces->count = found->count;
    return PITH_OK;
}

/* Runners are borrowed once per worker and call. */
static pith_status detect_borrow(detect_call *c, detect_worker *w, int network, pith_error *err) {
    pith__detection_network *n = &c->detection->networks[network];
    pith__runner *runner = &w->runners[network];
    if (runner->runtime) return PITH_OK;
    pith__idle_runners_take(runner, &n->idle);
    if (runner->runtime) return PITH_OK;
    pith__count(c->executor.counters, PITH_COUNT_sessions_made, 1);
    return pith__runner_create(runner, n->program, &c->executor, err);
}

/* Runs a network; all outputs of its graph are in the picture's arena. */
static pith_status detect_network(pith__detector_outputs *o, detect_call *c, detect_worker *w,
                                  int network, const pith_tensor *input, pith_error *err) {
    const pith__detection_network *n = &c->detection->networks[network];
    const pith__detector_output *wanted = c->detection->head->detector->networks[network].outputs;
    pith__lane *lane = pith__profile_lane(c->options->call.profile);
    pith_tensor *outputs =
        pith__arena_array(&w->arena, n->program->graph->output_count, sizeof *outputs);
    if (!outputs) return pith__fail_memory(err, n->program->graph->output_count * sizeof *outputs);
    PITH_TRY(detect_borrow(c, w, network, err));
    pith__runner_trace(&w->runners[network], pith__lane_trace(lane), lane);
    const uint64_t begin = pith__clock_ns();
    PITH_TRY(
        pith__runner_run(&w->runners[network], outputs, input, c->inner_threads, c->stop, err));
    pith__lane_phase(lane, "run", begin, 1);
    pith__count(c->executor.counters, PITH_COUNT_run_ns, pith__clock_ns() - begin);
    *o = (pith__detector_outputs){ .width = input->dims[3], .height = input->dims[2] };
    for (int i = 0; i < PITH_DETECTOR_OUTPUTS && (wanted[i].name || wanted[i].rank); i++)
        o->tensors[i] = &outputs[n->places[i]];
    return PITH_OK;
}

/* ---- one network ---- */

/* One window through the network. Sizes other than the declared one are what a detector is for, and
 * no reason for a warning. */
static pith_status detect_once(pith__candidates *found, detect_call *c, detect_worker *w,
                               const pith__detect_window *size, const pith_image *image,
                               const pith_detect_options *options, pith_error *err) {
    pith__lane *lane = pith__profile_lane(c->options->call.profile);
    pith__detector_outputs outputs;
    pith_tensor input;
    /* other sizes are what is asked for here */
    bool warned = !(c->m->options.flags & PITH_OPEN_STRICT_SHAPES);
    uint64_t begin = pith__clock_ns();
    PITH_TRY(detect_input(&input, size, c, image, &w->arena, err));
    PITH_TRY(pith__model_check_input(c->m, 0, &input, &warned, err));
    pith__lane_phase(lane, "picture", begin, 1);
    PITH_TRY(detect_network(&outputs, c, w, 0, &input, err));
    begin = pith__clock_ns();
    pith_status status = c->detection->head->detector->decode(found, &outputs, options, err);
    pith__lane_phase(lane, c->detection->head->phase, begin, (int64_t)found->count);
    return status;
}

/* ---- a cascade ---- */

typedef struct detect_cascade {
    pith__detector_run run; /* first */
    detect_call *call;
    detect_worker *worker;
} detect_cascade;

static pith_status detect_cascade_run(pith__detector_run *self, pith__detector_outputs *outputs,
                                      int network, const pith_tensor *input, pith_error *err) {
    detect_cascade *d = (detect_cascade *)self;
    PITH_TRY(pith__stop_check(d->call->stop, err));
    return detect_network(outputs, d->call, d->worker, network, input, err);
}

/* A cascade scales the picture itself, many times, so it gets pixels and no planes. */
static pith_status detect_cascaded(pith__candidates *found, detect_call *c, detect_worker *w,
                                   const pith__detect_window *size, const pith_image *image,
                                   pith_error *err) {
    pith_image scaled = *image;
    const uint8_t *pixels;
    PITH_TRY(detect_prepare(&pixels, NULL, size, c, image, &w->arena, err));
    scaled.pixels = (uint8_t *)(uintptr_t)pixels; /* read only */
    scaled.width = size->width;
    scaled.height = size->height;
    detect_cascade d = { .run = { .image = &scaled,
                                  .options = c->options,
                                  .arena = &w->arena,
                                  .allocator = c->executor.allocator,
                                  .run = detect_cascade_run },
                         .call = c,
                         .worker = w };
    return c->detection->head->detector->find(found, &d.run, err);
}

/* ---- levels ---- */

/* Of the faces from index `from` on, in pixels of the window: those that are the window's own stay.
 * Returns whether there is a large one whose score is below the threshold; it does not stay. */
static bool detect_own(pith__candidates *found, size_t from, const pith__detect_window *w,
                       float threshold) {
    const float largest = w->largest ? (float)w->largest : HUGE_VALF;
    const bool across = w->width < w->scaled_width, along = w->height < w->scaled_height;
    /* A face that is larger than what windows share may be cut off in each. */
    const int64_t narrow =
        across && (!along || w->whole_width < w->whole_height) ? w->whole_width : w->whole_height;
    const float shared = (float)(narrow / 4);
    size_t count = from;
    bool weak = false;
    for (size_t i = from; i < found->count; i++) {
        const pith_face *f = &found->items[i];
        const float x = (float)w->left + f->box[0] + f->box[2] / 2,
                    y = (float)w->top + f->box[1] + f->box[3] / 2;
        const float side = f->box[2] > f->box[3] ? f->box[2] : f->box[3];
        if (f->score < threshold) {
            weak = weak || side > DETECT_LARGE;
            continue;
        }
        if (side > largest || ((across || along) && side > shared)) continue;
        if (across && (x < (float)w->from_x || x >= (float)w->to_x)) continue;
        if (along && (y < (float)w->from_y || y >= (float)w->to_y)) continue;
        found->items[count++] = *f;
    }
    found->count = count;
    return weak;
}

/* The picture at several sizes; where boxes of two of them overlap, the better score decides. */
static pith_status detect_at_levels(pith__candidates *found, detect_call *c, detect_worker *w,
                                    const pith_image *image, pith_error *err) {
    const pith__detection *d = c->detection;
    const bool fixed = c->m->runtime->as_written && d->dims[0] > 0 && d->dims[1] > 0;
    pith_detect_options options = *c->options;
    pith__detect_levels levels;
    bool weak = false;
    if (!pith__detect_levels_of(&levels, image->width, image->height, fixed ? d->dims : NULL,
                                d->head->detector->stride, DETECT_SIDE_MOST))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the picture has %dx%d pixels, which is too narrow to be looked at; have "
                          "it scaled (pith_detect_options.width)",
                          image->width, image->height);
    if (levels.weak_only) options.score_threshold /= 3;
    for (int i = 0; i < levels.count; i++) {
        const pith__detect_window *window = &levels.windows[i];
        const size_t from = found->count;
        if (i + 1 == levels.count && levels.weak_only && !weak) break;
        PITH_TRY(detect_once(found, c, w, window, image, &options, err));
        weak = detect_own(found, from, window, c->options->score_threshold) || weak;
        detect_scale_back(found, from, window, image);
    }
    return pith__candidates_choose(found, c->options->nms_threshold, (size_t)c->options->top_k,
                                   err);
}

/* The picture at one size. */
static pith_status detect_at_size(pith__candidates *found, detect_call *c, detect_worker *w,
                                  const pith_image *image, pith_error *err) {
    pith__detect_window size;
    PITH_TRY(detect_whole(&size, c, image, err));
    if (c->detection->head->detector->find)
        PITH_TRY(detect_cascaded(found, c, w, &size, image, err));
    else
        PITH_TRY(detect_once(found, c, w, &size, image, c->options, err));
    PITH_TRY(
        pith__candidates_choose(found, c->options->nms_threshold, (size_t)c->options->top_k, err));
    detect_scale_back(found, 0, &size, image);
    return PITH_OK;
}

static pith_status detect_picture(detect_call *c, detect_worker *w, size_t index, pith_error *err) {
    const pith_image *image = &c->images[index];
    const pith_detect_options *o = c->options;
    pith__candidates found = { .arena = &w->arena };
    PITH_TRY(pith__stop_check(c->stop, err));
    PITH_TRY(pith__picture_check(image, err));
    pith__arena_reset(&w->arena);
    const bool any = !o->width && !c->detection->head->detector->find &&
                     !(c->m->options.flags & PITH_OPEN_STRICT_SHAPES);
    PITH_TRY((any ? detect_at_levels : detect_at_size)(&found, c, w, image, err));
    return detect_give(&c->faces[index], &found, o->call.allocator, err);
}

static void detect_part(void *context, size_t part, int index) {
    detect_call *c = context;
    detect_worker *w = &c->workers[index];
    pith_error fault = PITH_ERROR_INIT;
    size_t first = atomic_load_explicit(&c->failed, memory_order_relaxed);
    if (part > first) return;
    if (!detect_picture(c, w, part, &fault)) {
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

/* Completes the caller's options. The thresholds are compared so that NaN fails. */
static pith_status detect_take_options(pith_detect_options *o, const pith_detect_options *given,
                                       pith_error *err) {
    *o = (pith_detect_options)PITH_DETECT_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    if (o->score_threshold == 0)
        o->score_threshold = 0.9f;
    else if (o->score_threshold < 0)
        o->score_threshold = 0;
    if (o->nms_threshold == 0)
        o->nms_threshold = 0.3f;
    else if (o->nms_threshold < 0)
        o->nms_threshold = 0;
    if (!o->top_k) o->top_k = 5000;
    return PITH_OK;
}

static pith_status detect_check(const pith_detect_options *o, pith_error *err) {
    if (!(o->score_threshold <= 1))
        return pith__fail(err, PITH_ERR_ARGUMENT, "score_threshold is %g; it must be at most 1",
                          (double)o->score_threshold);
    if (!(o->nms_threshold <= 1))
        return pith__fail(err, PITH_ERR_ARGUMENT, "nms_threshold is %g; it must be at most 1",
                          (double)o->nms_threshold);
    if (o->top_k < 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "top_k is %d; it must not be negative", o->top_k);
    if (o->score != PITH_FACE_SCORE_ROOT && o->score != PITH_FACE_SCORE_PRODUCT)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "score is %d, which is not a PITH_FACE_SCORE_* value", o->score);
    const bool own = o->width == PITH_DETECT_OWN_SIZE && o->height == PITH_DETECT_OWN_SIZE;
    if (!own && (o->width < 0 || o->height < 0 || o->width > DETECT_SIDE_MOST ||
                 o->height > DETECT_SIDE_MOST || !o->width != !o->height))
        return pith__fail(
            err, PITH_ERR_ARGUMENT,
            "width and height must both be 0, both PITH_DETECT_OWN_SIZE, or both from 1 to %d",
            DETECT_SIDE_MOST);
    PITH_TRY(pith__threads_check(o->call.threads, err));
    return PITH_OK;
}

static void detect_run(detect_call *c, size_t count, int threads) {
    if (count >= (size_t)threads) {
        c->inner_threads = 1;
        pith__threads_run_until(c->stop, detect_part, c, count, threads);
        return;
    }
    c->inner_threads = threads;
    for (size_t i = 0; i < count; i++) detect_part(c, i, 0);
}

static pith_status detect_finish(detect_call *c, size_t count, int threads, pith_error *err) {
    const detect_worker *first = NULL;
    for (int i = 0; i < threads; i++) {
        detect_worker *w = &c->workers[i];
        if (w->failed != SIZE_MAX && (!first || w->failed < first->failed)) first = w;
        for (int k = 0; k < PITH_DETECTOR_NETWORKS; k++)
            if (w->runners[k].runtime)
                pith__idle_runners_give(&c->detection->networks[k].idle, &w->runners[k]);
        pith__arena_free(&w->arena);
    }
    const pith_status stopped = pith__stop_check(c->stop, err);
    if (!first && !stopped) {
        pith__progress_tell(c->progress, "pictures", count, count);
        return PITH_OK;
    }
    for (size_t i = 0; i < count; i++) pith__faces_release(&c->faces[i]);
    if (stopped) return stopped;
    return pith__fail(err, first->fault.code, "picture %zu: %s", first->failed,
                      first->fault.message);
}

static pith_status detect_all(detect_call *c, size_t count, pith__arena *arena, pith_error *err) {
    int threads = pith__threads_count(c->options->call.threads);
    if (threads > DETECT_THREADS_MOST) threads = DETECT_THREADS_MOST;
    PITH_TRY(detect_get(&c->detection, c->m, c->stop, err));
    c->workers = pith__arena_array(arena, (size_t)threads, sizeof *c->workers);
    if (!c->workers) return pith__fail_memory(err, (size_t)threads * sizeof *c->workers);
    for (int i = 0; i < threads; i++) {
        c->workers[i] = (detect_worker){ .failed = SIZE_MAX };
        pith__arena_init(&c->workers[i].arena, c->executor.allocator);
    }
    for (size_t i = 0; i < count; i++) c->faces[i] = (pith_faces){ 0 };
    pith__busy_begin((pith__busy *)&c->m->busy, threads);
    detect_run(c, count, threads);
    pith__busy_end((pith__busy *)&c->m->busy, c->executor.counters);
    return detect_finish(c, count, threads, err);
}

void pith__faces_release(pith_faces *faces) {
    if (!faces) return;
    if (faces->faces)
        pith__memory_free(faces->allocator ? faces->allocator : &pith__allocator_default,
                          faces->faces);
    *faces = (pith_faces){ 0 };
}

pith_status pith__model_detect(pith_faces *faces, const pith_model *m, const pith_image *images,
                               size_t count, const pith_detect_options *options, pith_error *err) {
    pith_detect_options o;
    pith__arena arena;
    pith__progress told;
    PITH_TRY(detect_take_options(&o, options, err));
    PITH_TRY(detect_check(&o, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(stop, err));
    detect_call c = { .m = m,
                      .images = images,
                      .faces = faces,
                      .options = &o,
                      .stop = stop,
                      .progress = pith__progress_begin(&told, &o.call),
                      .count = count,
                      .executor = pith__model_executor_options(m) };
    atomic_init(&c.failed, SIZE_MAX);
    atomic_init(&c.done, 0);
    pith__arena_init(&arena, m->options.call.allocator);
    pith_status status = detect_all(&c, count, &arena, err);
    pith__arena_free(&arena);
    return pith__account_explain(&m->account, status, err);
}
