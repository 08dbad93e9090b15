/* head_yunet.c - the face detector YuNet (Wu, Peng and Yu, "YuNet: A Tiny Millisecond-level Face
 * Detector", 2023).
 *
 * The network looks at the picture on three grids, with cells of 8, 16 and 32 pixels. For each cell
 * there are: whether there is a face, how well the box fits it, the box and five landmarks. Source
 * of the formulas: face_detect.cpp of OpenCV's modules/objdetect, and libfacedetection.train. For
 * the cell in column c and row r of stride s:
 *   box: centre ((c + b0) s, (r + b1) s), width exp(b2) s, height exp(b3) s; landmark i: ((c + k2i)
 *   s, (r + k2i+1) s).
 */
#include <math.h>

#include "base/dtype.h"
#include "base/error.h"
#include "models/faces/detector.h"
#include "models/heads/head.h"

enum { YUNET_LEVELS = 3 };
enum { YUNET_CLS = 0, YUNET_OBJ = 1, YUNET_BOX = 2, YUNET_POINTS = 3, YUNET_KINDS = 4 };
static const int yunet_strides[YUNET_LEVELS] = { 8, 16, 32 };
static const int yunet_widths[YUNET_KINDS] = { 1, 1, 4, 2 * PITH_FACE_LANDMARKS };

/* The data of one grid; its cells are in row-major order. */
typedef struct yunet_grid {
    const float *of[YUNET_KINDS];
    int64_t columns, rows;
    float stride;
} yunet_grid;

/* x within 0 and 1; NaN becomes 0, since no comparison with it is true. */
static float yunet_clamp(float x) {
    if (!(x > 0)) return 0;
    return x < 1 ? x : 1;
}

static float yunet_score(const yunet_grid *g, int64_t cell, int how) {
    float product = yunet_clamp(g->of[YUNET_CLS][cell]) * yunet_clamp(g->of[YUNET_OBJ][cell]);
    return how == PITH_FACE_SCORE_ROOT ? sqrtf(product) : product;
}

/* False if a number of the cell is not finite. */
static bool yunet_face(pith_face *face, const yunet_grid *g, int64_t column, int64_t row) {
    const int64_t cell = row * g->columns + column;
    const float *b = g->of[YUNET_BOX] + cell * 4,
                *k = g->of[YUNET_POINTS] + cell * 2 * PITH_FACE_LANDMARKS;
    const float c = (float)column, r = (float)row, s = g->stride;
    float cx = (c + b[0]) * s, cy = (r + b[1]) * s;
    float w = (float)exp((double)b[2]) * s, h = (float)exp((double)b[3]) * s;
    bool finite = true;
    face->box[0] = cx - w / 2;
    face->box[1] = cy - h / 2;
    face->box[2] = w;
    face->box[3] = h;
    for (int i = 0; i < 4; i++) finite = finite && isfinite(face->box[i]);
    for (int i = 0; i < PITH_FACE_LANDMARKS; i++) {
        face->landmarks[i][0] = (k[2 * i] + c) * s;
        face->landmarks[i][1] = (k[2 * i + 1] + r) * s;
        finite = finite && isfinite(face->landmarks[i][0]) && isfinite(face->landmarks[i][1]);
    }
    return finite;
}

static pith_status yunet_grid_of(yunet_grid *g, const pith__detector_outputs *o, int level,
                                 pith_error *err) {
    const int stride = yunet_strides[level];
    *g = (yunet_grid){ .columns = o->width / stride,
                       .rows = o->height / stride,
                       .stride = (float)stride };
    for (int kind = 0; kind < YUNET_KINDS; kind++) {
        const pith_tensor *t = o->tensors[kind * YUNET_LEVELS + level];
        if (pith__dims_count(t->dims, t->rank) != g->columns * g->rows * yunet_widths[kind]) {
            char shape[128];
            return pith__fail(err, PITH_ERR_RUN,
                              "an output of stride %d has shape %s; %lld cells of %d numbers are "
                              "needed for an input of "
                              "%lldx%lld",
                              stride, pith__dims_text(t->dims, t->rank, shape, sizeof shape),
                              (long long)(g->columns * g->rows), yunet_widths[kind],
                              (long long)o->width, (long long)o->height);
        }
        g->of[kind] = t->data;
    }
    return PITH_OK;
}

static pith_status yunet_decode(pith__candidates *candidates, const pith__detector_outputs *outputs,
                                const pith_detect_options *options, pith_error *err) {
    for (int level = 0; level < YUNET_LEVELS; level++) {
        yunet_grid g;
        PITH_TRY(yunet_grid_of(&g, outputs, level, err));
        for (int64_t cell = 0; cell < g.columns * g.rows; cell++) {
            pith_face face = { .score = yunet_score(&g, cell, options->score) };
            if (face.score < options->score_threshold) continue;
            if (!yunet_face(&face, &g, cell % g.columns, cell / g.columns)) continue;
            PITH_TRY(pith__candidates_add(candidates, &face, err));
        }
    }
    return PITH_OK;
}

static const pith__detector yunet_detector = {
    .networks = { { .outputs = { { .name = "cls_8" },
                                 { .name = "cls_16" },
                                 { .name = "cls_32" },
                                 { .name = "obj_8" },
                                 { .name = "obj_16" },
                                 { .name = "obj_32" },
                                 { .name = "bbox_8" },
                                 { .name = "bbox_16" },
                                 { .name = "bbox_32" },
                                 { .name = "kps_8" },
                                 { .name = "kps_16" },
                                 { .name = "kps_32" } } } },
    .stride = 32,
    .planes = { 2, 1, 0 },
    .decode = yunet_decode,
};

const pith__head pith__head_yunet = {
    .name = "yunet", .phase = "faces", .outputs = "", .detector = &yunet_detector
};
