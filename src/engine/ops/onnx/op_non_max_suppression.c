/* op_non_max_suppression.c - NonMaxSuppression: the boxes of each class that overlap no better one.
 *
 * Per batch and class, candidates are sorted by score. Each is kept unless it overlaps a kept one
 * by more than iou_threshold. That is quadratic in the number kept, which
 * max_output_boxes_per_class bounds. How many there are is known in the run only. Source: ONNX
 * NonMaxSuppression (opset 11). */
#include <math.h>
#include <string.h>

#include "engine/kernels/sort_order.h"
#include "engine/ops/shared/as_doubles.h"

/* The boxes of a class with a score that is high enough, by ascending index, and their order: best
 * score first, then the lower index. */
typedef struct candidates {
    int64_t n;
    double *score;
    int64_t *box, *order, *spare;
} candidates;

static pith_status nms_make_room(pith__run *r, candidates *c, int64_t count) {
    const size_t room = (size_t)count + 1;
    c->score = r->exec->alloc(r->exec, room * sizeof *c->score);
    c->box = r->exec->alloc(r->exec, room * 3 * sizeof *c->box);
    if (!c->score || !c->box) return pith__fail_memory(r->err, room * 4 * sizeof *c->box);
    c->order = c->box + room;
    c->spare = c->order + room;
    return PITH_OK;
}

static pith_status nms_find(const pith__run *r, candidates *c, const double *scores, int64_t count,
                            double least) {
    c->n = 0;
    for (int64_t i = 0; i < count; i++) {
        PITH_TRY(pith__run_step(r, i));
        if (!(scores[i] > least)) continue;
        c->score[c->n] = scores[i];
        c->box[c->n++] = i;
    }
    pith__k_sort_f64(c->order, c->spare, c->score, c->n, 1, true, r->exec->stop);
    return pith__run_look(r);
}

typedef struct box {
    double x0, y0, x1, y1;
} box;

static box nms_read_box(const double *b, bool centre) {
    if (centre) return (box){ b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2 };
    return (box){ fmin(b[1], b[3]), fmin(b[0], b[2]), fmax(b[1], b[3]), fmax(b[0], b[2]) };
}

static double nms_overlap(box a, box b) {
    double width = fmin(a.x1, b.x1) - fmax(a.x0, b.x0),
           height = fmin(a.y1, b.y1) - fmax(a.y0, b.y0);
    double area_a = (a.x1 - a.x0) * (a.y1 - a.y0), area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
    if (width <= 0 || height <= 0 || area_a <= 0 || area_b <= 0) return 0;
    return width * height / (area_a + area_b - width * height);
}

static pith_status nms_infer(pith__infer *c) {
    for (int i = 0; i < 2; i++)
        if (c->in[i]->rank >= 0 && c->in[i]->rank != 3)
            return pith__op_fail(c, "input %d has %d dimensions, not 3", i, c->in[i]->rank);
    pith__type_set(&c->out[0], PITH_I64, 2, (pith__dim[]){ PITH_DIM_UNKNOWN, 3 });
    return PITH_OK;
}

static double nms_scalar_or(const pith__run *r, const pith__wide *w, int i, double fallback) {
    return i < r->in_count && r->in[i] && pith__tensor_count(r->in[i]) ? w->in[i][0] : fallback;
}

/* Kept boxes of a class are the last entries of `kept`, so only those are compared. Memory is sized
 * for per_class boxes of every class; the product is checked first. */
static pith_status nms_run(pith__run *r) {
    const pith_tensor *boxes = r->in[0], *scores = r->in[1];
    int64_t batch = boxes->dims[0], count = boxes->dims[1], classes = scores->dims[1], found = 0;
    if (boxes->dims[2] != 4 || scores->dims[0] != batch || scores->dims[2] != count)
        return pith__fail(r->err, PITH_ERR_ARGUMENT,
                          "boxes must be [batch, n, 4] and scores [batch, classes, n]");
    pith__wide w;
    PITH_TRY(pith__wide_open(&w, r));
    double most = fmax(nms_scalar_or(r, &w, 2, 0), 0), iou = nms_scalar_or(r, &w, 3, 0),
           least = nms_scalar_or(r, &w, 4, -INFINITY);
    bool centre = pith__node_int(r->node, "center_point_box", 0) != 0;
    int64_t per_class = most < (double)count ? (int64_t)most : count, *kept = NULL, spent = 0;
    candidates list = { .n = 0 };
    PITH_TRY(nms_make_room(r, &list, count));
    if (per_class > 0 && batch * classes > INT64_MAX / 24 / per_class)
        return pith__op_fail(r, "too many boxes");
    kept = r->exec->alloc(r->exec, (size_t)(batch * classes * per_class + 1) * 3 * sizeof *kept);
    if (!kept)
        return pith__fail_memory(r->err, (size_t)(batch * classes * per_class) * 3 * sizeof *kept);
    for (int64_t row = 0; row < batch * classes; row++) {
        const double *of = w.in[0] + row / classes * count * 4;
        int64_t first = found;
        PITH_TRY(nms_find(r, &list, w.in[1] + row * count, count, least));
        for (int64_t i = 0; i < list.n && found - first < per_class; i++) {
            const int64_t own = list.box[list.order[i]];
            PITH_TRY(pith__run_spend(r, &spent, 4 * (found - first) + 64));
            box b = nms_read_box(of + own * 4, centre);
            bool suppressed = false;
            for (int64_t k = first; k < found && !suppressed; k++)
                suppressed = nms_overlap(b, nms_read_box(of + kept[3 * k + 2] * 4, centre)) > iou;
            if (suppressed) continue;
            kept[3 * found] = row / classes, kept[3 * found + 1] = row % classes,
                     kept[3 * found + 2] = own;
            found++;
        }
    }
    PITH_TRY(pith__run_alloc(r, 0, PITH_I64, 2, (int64_t[]){ found, 3 }));
    memcpy(r->out[0]->data, kept, (size_t)found * 3 * sizeof *kept);
    return PITH_OK;
}

const pith__op pith__op_NonMaxSuppression = {
    .domain = "",
    .name = "NonMaxSuppression",
    .since = 10,
    .newest = 11,
    .min_inputs = 2,
    .max_inputs = 5,
    .max_outputs = 1,
    .types = "eele",
    .attrs = "center_point_box bool = 0",
    .flags = PITH_OP_LATE,
    .infer = nms_infer,
    .scratch = pith__wide_scratch,
    .run = nms_run,
};
