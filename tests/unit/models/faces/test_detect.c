/* test_detect.c - pith_detect: options, kinds of pictures, memory that runs out; decoding of
 * hostile outputs; which candidates stay. tests/cli/faces.py compares faces with OpenCV's. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing_alloc.h"
#include "images/resize_area.h"
#include "models/faces/detector.h"
#include "models/heads/head.h"
#include "pith/detect.h"

#define YUNET PITH_TEST_DATA "/yunet/yunet-s-640-other-sizes/model.onnx"

static pith_image read_face(int channels) {
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    pith_image_options o = PITH_IMAGE_OPTIONS_INIT;
    o.channels = channels;
    o.module_path = PITH_BINARY_DIR;
    assert_int_equal(pith_image_read(&image, PITH_TEST_DATA "/faces/face_1.jpg", &o, &err),
                     PITH_OK);
    return image;
}

static pith_model *open_yunet(void) {
    pith_model *model;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_model_open(&model, YUNET, NULL, &err), PITH_OK);
    return model;
}

/* ---- pictures ---- */

static void kinds_of_pictures(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_yunet();
    pith_image images[] = { read_face(3), read_face(4), read_face(1), { 0 } };
    pith_faces faces[3], again[3];
    pith_detect_options o = PITH_DETECT_OPTIONS_INIT;
    assert_int_equal(pith_detect(faces, model, images, 3, NULL, &err), PITH_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(faces[i].count, 1);
    assert_memory_equal(faces[0].faces, faces[1].faces, sizeof(pith_face));
    assert_true(faces[0].faces->score > 0.9f && faces[2].faces->score > 0.9f);
    for (o.call.threads = 1; o.call.threads < 6; o.call.threads += 2) {
        assert_int_equal(pith_detect(again, model, images, 3, &o, &err), PITH_OK);
        for (int i = 0; i < 3; i++) {
            assert_memory_equal(faces[i].faces, again[i].faces, sizeof(pith_face));
            pith_faces_free(&again[i]);
        }
    }
    assert_int_equal(pith_detect(again, model, images, 0, NULL, &err), PITH_OK);
    /* One bad picture: no faces are held, and it is named. */
    pith_image mixed[] = { images[0], images[3], images[1] };
    assert_int_equal(pith_detect(again, model, mixed, 3, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "picture 1: "));
    for (int i = 0; i < 3; i++) {
        assert_null(again[i].faces);
        pith_faces_free(&faces[i]);
        pith_image_free(&images[i]);
    }
    pith_faces_free(&faces[0]);
    pith_faces_free(NULL);
    pith_model_close(model);
}

/* The face many times, so large that threads share the work of scaling it. */
static pith_image tiled(const pith_image *face, int32_t columns, int32_t rows) {
    pith_image t = { NULL, face->width * columns, face->height * rows, face->channels, NULL };
    const size_t row = (size_t)face->width * (size_t)face->channels;
    t.pixels = malloc(row * (size_t)columns * (size_t)t.height);
    assert_non_null(t.pixels);
    for (size_t y = 0; y < (size_t)t.height; y++)
        for (size_t x = 0; x < (size_t)columns; x++)
            memcpy(t.pixels + (y * (size_t)columns + x) * row,
                   face->pixels + y % (size_t)face->height * row, row);
    return t;
}

static void scaled_by_threads(void **unused) {
    (void)unused;
    static const int32_t sizes[][2] = { { 0, 0 }, { 320, 320 }, { 333, 200 }, { 7, 3 } };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_yunet();
    for (int n = 0; n < 8; n++) {
        pith_detect_options o = PITH_DETECT_OPTIONS_INIT;
        pith_faces one, many;
        pith_image face = read_face(n / 4 ? 4 : 3), large = tiled(&face, 4, 3);
        o.width = sizes[n % 4][0];
        o.height = sizes[n % 4][1];
        o.call.threads = 1;
        assert_int_equal(pith_detect(&one, model, &large, 1, &o, &err), PITH_OK);
        if (n % 4 < 2) assert_int_equal(one.count, 12);
        for (o.call.threads = 2; o.call.threads < 9; o.call.threads += 3) {
            assert_int_equal(pith_detect(&many, model, &large, 1, &o, &err), PITH_OK);
            assert_int_equal(many.count, one.count);
            assert_memory_equal(many.faces, one.faces, one.count * sizeof(pith_face));
            pith_faces_free(&many);
        }
        pith_faces_free(&one);
        pith_image_free(&face);
        free(large.pixels);
    }
    pith_model_close(model);
}

static void wrong_options(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_yunet(), *other;
    const pith_detect_options fine = PITH_DETECT_OPTIONS_INIT;
    pith_detect_options wrong[9];
    for (int i = 0; i < 9; i++) wrong[i] = fine;
    wrong[0].score_threshold = 1.5f;
    wrong[1].score_threshold = NAN;
    wrong[2].nms_threshold = 1.5f;
    wrong[3].top_k = -1;
    wrong[4].score = 2;
    wrong[5].width = 320;
    wrong[6].width = wrong[6].height = 1 << 20;
    wrong[7].call.threads = -1;
    wrong[8].call.size = 0;
    for (int i = 0; i < 9; i++)
        assert_int_equal(pith_detect(NULL, model, NULL, 0, &wrong[i], &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_model_open(&other,
                                     PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx",
                                     NULL, &err),
                     PITH_OK);
    assert_int_equal(pith_detect(NULL, other, NULL, 0, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no detector that is known"));
    pith_model_close(other);
    pith_model_close(model);
}

static void strict_shapes(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_detect_options d = PITH_DETECT_OPTIONS_INIT;
    pith_image image = read_face(3);
    pith_faces faces;
    o.flags = PITH_OPEN_STRICT_SHAPES;
    assert_int_equal(pith_model_open(&model, YUNET, &o, &err), PITH_OK);
    assert_int_equal(pith_detect(&faces, model, &image, 1, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(
        strstr(err.message, "'input' is declared as [1, 3, 640, 640] but is [1, 3, 320, 320]"));
    d.width = d.height = 640;
    assert_int_equal(pith_detect(&faces, model, &image, 1, &d, &err), PITH_OK);
    assert_int_equal(faces.count, 1);
    pith_faces_free(&faces);
    pith_image_free(&image);
    pith_model_close(model);
}

/* Allocations of a call fail: the first, and so on in steps of 1 + at / slower. Each is an error,
 * nothing is lost, and the next call works and finds `count` faces (-1: any number). At least
 * `least` calls fail. */
static void check_memory(const char *path, int32_t size, long slower, int64_t count, int least) {
    counter memory = { .fail_at = 0 };
    pith_allocator allocator = { count_alloc, count_free, &memory };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_detect_options d = PITH_DETECT_OPTIONS_INIT;
    pith_image image = read_face(3);
    pith_faces faces;
    o.call.allocator = d.call.allocator = &allocator;
    o.sessions = -1;
    o.pool_blocks = -1;
    d.call.threads = 1;
    d.width = d.height = size;
    int failures = 0;
    for (long at = 1;; at += 1 + at / slower) {
        assert_int_equal(pith_model_open(&model, path, &o, &err), PITH_OK);
        const long before = memory.calls;
        memory.fail_at = before + at;
        pith_status status = pith_detect(&faces, model, &image, 1, &d, &err);
        const bool reached = memory.calls - before >= at;
        memory.fail_at = 0;
        if (status) {
            assert_int_equal(status, PITH_ERR_MEMORY);
            failures++;
            assert_int_equal(pith_detect(&faces, model, &image, 1, &d, &err), PITH_OK);
        }
        if (count >= 0) assert_int_equal(faces.count, count);
        pith_faces_free(&faces);
        pith_model_close(model);
        assert_int_equal(memory.live, 0);
        if (!reached) break;
    }
    assert_true(failures >= least);
    pith_image_free(&image);
}

static void memory_runs_out(void **unused) {
    (void)unused;
    check_memory(YUNET, 128, LONG_MAX, -1, 4); /* each allocation */
}

/* ---- decoding ---- */

/* The outputs for an input of 32 x 32: 16, 4 and 1 cells. */
typedef struct outputs {
    float data[12][160];
    pith_tensor tensors[12];
    pith__detector_outputs all;
} outputs;

static void outputs_make(outputs *o, float score) {
    static const int widths[] = { 1, 1, 4, 10 }, cells[] = { 16, 4, 1 };
    memset(o, 0, sizeof *o);
    o->all.width = o->all.height = 32;
    for (int i = 0; i < 12; i++) {
        const int n = cells[i % 3] * widths[i / 3];
        o->tensors[i] = (pith_tensor){ .data = o->data[i],
                                       .bytes = (size_t)n * sizeof(float),
                                       .dtype = PITH_F32,
                                       .rank = 3,
                                       .dims = { 1, cells[i % 3], widths[i / 3] } };
        o->all.tensors[i] = &o->tensors[i];
        for (int k = 0; k < n && i < 6; k++) o->data[i][k] = score;
    }
}

/* Options as a detector gets them: completed. */
static pith_detect_options taken(void) {
    pith_detect_options d = PITH_DETECT_OPTIONS_INIT;
    d.score_threshold = 0.9f;
    d.nms_threshold = 0.3f;
    d.top_k = 5000;
    return d;
}

static void decoding(void **unused) {
    (void)unused;
    const pith__head *head;
    pith_error err = PITH_ERROR_INIT;
    pith__arena arena;
    outputs o;
    pith_detect_options d = taken();
    assert_int_equal(pith__head_find(&head, "yunet", &err), PITH_OK);
    pith__arena_init(&arena, &pith__allocator_default);

    /* Cell 5 of the first grid is column 1, row 1 of stride 8. */
    pith__candidates found = { .arena = &arena };
    outputs_make(&o, 0);
    o.data[0][5] = 0.81f, o.data[3][5] = 4; /* a number above 1 counts as 1 */
    o.data[6][20] = 0.5f, o.data[6][21] = 0.25f, o.data[6][22] = logf(3), o.data[6][23] = logf(2);
    o.data[9][50] = -1, o.data[9][59] = 2;
    assert_int_equal(head->detector->decode(&found, &o.all, &d, &err), PITH_OK);
    assert_int_equal(found.count, 1);
    const pith_face *f = found.items;
    const float box[] = { 12 - 12, 10 - 8, 24, 16 };
    for (int i = 0; i < 4; i++) assert_true(fabsf(f->box[i] - box[i]) < 1e-4f);
    assert_true(f->landmarks[0][0] == 0 && f->landmarks[0][1] == 8 && f->landmarks[4][1] == 24);
    assert_true(fabsf(f->score - 0.9f) < 1e-6f);
    d.score = PITH_FACE_SCORE_PRODUCT;
    found.count = 0;
    assert_int_equal(head->detector->decode(&found, &o.all, &d, &err), PITH_OK);
    assert_int_equal(found.count, 0);

    /* NaN and infinity, in scores and in boxes. */
    d = taken();
    outputs_make(&o, 1);
    o.data[0][0] = NAN, o.data[3][1] = NAN, o.data[6][4 * 2] = NAN, o.data[6][4 * 3 + 2] = 1000,
    o.data[9][10 * 4] = -INFINITY;
    assert_int_equal(head->detector->decode(&found, &o.all, &d, &err), PITH_OK);
    assert_int_equal(found.count, 21 - 5);

    /* Sizes that do not fit the input. */
    o.tensors[8].dims[1] = 2;
    assert_int_equal(head->detector->decode(&found, &o.all, &d, &err), PITH_ERR_RUN);
    assert_non_null(strstr(err.message, "stride 32"));
    pith__arena_free(&arena);
}

static void add(pith__candidates *c, float x, float y, float w, float h, float score) {
    const pith_face face = { .box = { x, y, w, h }, .score = score };
    assert_int_equal(pith__candidates_add(c, &face, NULL), PITH_OK);
}

static void choosing(void **unused) {
    (void)unused;
    pith__arena arena;
    pith__arena_init(&arena, &pith__allocator_default);
    pith__candidates c = { .arena = &arena };
    add(&c, 0, 0, 10, 10, 0.5f);
    add(&c, 5.9f, 0, 10, 10, 0.7f); /* in whole pixels it begins at 5: overlap 50 / 150 with both
                                       neighbours */
    add(&c, 10, 0, 10, 10, 0.9f);
    add(&c, 100, 100, 5, 5, 0.7f);
    add(&c, 100, 100, 5, 5, 0.7f);
    assert_int_equal(pith__candidates_choose(&c, 0.3f, 5000, NULL), PITH_OK);
    assert_int_equal(c.count, 3);
    assert_true(c.items[0].score == 0.9f && c.items[1].box[0] == 100 && c.items[2].score == 0.5f);
    add(&c, 5.9f, 0, 10, 10, 0.7f);
    assert_int_equal(pith__candidates_choose(&c, 0.34f, 5000, NULL), PITH_OK);
    assert_int_equal(c.count, 4);
    assert_int_equal(pith__candidates_choose(&c, 0.34f, 2, NULL), PITH_OK);
    assert_int_equal(c.count, 2);
    /* Boxes of any size and place are safe; two without area count as the same. */
    c.count = 0;
    add(&c, -3e38f, -3e38f, 3e38f, 3e38f, 0.9f);
    add(&c, 3e38f, 3e38f, 3e38f, 3e38f, 0.8f);
    add(&c, 3, 3, 0.5f, 0.5f, 0.7f);
    add(&c, 9, 9, 0, -5, 0.6f);
    assert_int_equal(pith__candidates_choose(&c, 0.3f, 5000, NULL), PITH_OK);
    assert_int_equal(c.count, 3);
    pith__arena_free(&arena);
}

/* ---- cascades ---- */

/* The opening of two of MTCNN's three networks is a part of the call. */
static void cascade_memory_runs_out(void **unused) {
    (void)unused;
    check_memory(PITH_TEST_DATA "/mtcnn", 40, 16, 1, 21);
}

/* A cascade's networks, played: every cell and every box is a face, moved as `move` says. */
typedef struct played {
    pith__detector_run run;
    float move, score;
    int wrong; /* the network whose shapes are wrong; -1: none */
    pith_tensor tensors[3];
    size_t boxes[3]; /* that each network has seen */
} played;

static pith_status play(pith__detector_run *self, pith__detector_outputs *given, int network,
                        const pith_tensor *input, pith_error *err) {
    (void)err;
    played *p = (played *)self;
    static const int64_t widths[3][3] = { { 4, 2, 0 }, { 4, 2, 0 }, { 4, 10, 2 } };
    const int64_t columns = (input->dims[1] - 10) / 2, rows = (input->dims[2] - 10) / 2;
    p->boxes[network] += (size_t)input->dims[0];
    for (int i = 0; i < 3 && widths[network][i]; i++) {
        pith_tensor *t = &p->tensors[i];
        const int64_t width = widths[network][i];
        *t = (pith_tensor){ .dtype = PITH_F32, .rank = network ? 2 : 4 };
        if (network)
            t->dims[0] = input->dims[0], t->dims[1] = width;
        else
            t->dims[0] = 1, t->dims[1] = columns, t->dims[2] = rows, t->dims[3] = width;
        const size_t count = (size_t)(network ? input->dims[0] : columns * rows) * (size_t)width;
        float *data = pith__arena_array(self->arena, count, sizeof *data);
        assert_non_null(data);
        for (size_t k = 0; k < count; k++) data[k] = width == 2 ? p->score : p->move;
        t->data = data;
        if (p->wrong == network) t->dims[t->rank - 1]++;
        given->tensors[i] = t;
    }
    return PITH_OK;
}

static void played_cascade(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    const pith__head *head;
    uint8_t pixels[64 * 48 * 3] = { 0 };
    const pith_image image = { pixels, 64, 48, 3, NULL };
    pith_detect_options d = taken();
    assert_int_equal(pith__head_find(&head, "mtcnn", &err), PITH_OK);
    assert_int_equal(pith__detector_count(head->detector), 3);
    const float moves[] = { 0, NAN, INFINITY, -INFINITY, 3e38f, 1e5f, -1 };
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        for (int wrong = -1; wrong < 3; wrong++) {
            pith__arena arena;
            pith__arena_init(&arena, &pith__allocator_default);
            played p = { { &image, &d, &arena, &pith__allocator_default, play },
                         moves[i],
                         0.95f,
                         wrong,
                         { { 0 } },
                         { 0 } };
            pith__candidates found = { .arena = &arena };
            pith_status status = head->detector->find(&found, &p.run, &err);
            if (wrong == 0 || (wrong > 0 && p.boxes[wrong])) {
                assert_int_equal(status, PITH_ERR_RUN);
                assert_non_null(strstr(err.message, "does not fit its input"));
            } else {
                assert_int_equal(status, PITH_OK);
                assert_true(moves[i] == 0 ? found.count > 3 : isfinite(moves[i]) || !found.count);
            }
            pith__arena_free(&arena);
        }
    /* At most top_k boxes go on; a score that is no number is none. */
    for (int k = 0; k < 2; k++) {
        pith__arena arena;
        pith__arena_init(&arena, &pith__allocator_default);
        d.top_k = 2;
        played p = { { &image, &d, &arena, &pith__allocator_default, play },
                     0,
                     k ? NAN : 0.95f,
                     -1,
                     { { 0 } },
                     { 0 } };
        pith__candidates found = { .arena = &arena };
        assert_int_equal(head->detector->find(&found, &p.run, &err), PITH_OK);
        assert_int_equal(p.boxes[1], k ? 0 : 2);
        pith__arena_free(&arena);
    }
}

/* Means, interpolation and places outside of the picture; numbers are OpenCV's for INTER_AREA. */
static void resizing_by_area(void **unused) {
    (void)unused;
    static const uint8_t grey[] = { 10, 20, 30, 40, 50, 60, 70, 80, 91 };
    const pith_image image = { (uint8_t *)(uintptr_t)grey, 3, 3, 1, NULL };
    static const struct {
        pith__area_window window;
        int32_t width, height;
        bool rounded;
        float wanted[16];
    } cases[] = {
        { { 0, 0, 3, 3 }, 1, 1, false, { 451 / 9.0f } },
        { { 0, 0, 3, 3 }, 1, 1, true, { 50 } },
        { { 0, 0, 3, 3 }, 2, 2, true, { 23, 37, 63, 77 } },
        { { 0, 0, 3, 3 }, 3, 3, false, { 10, 20, 30, 40, 50, 60, 70, 80, 91 } },
        { { 0, 0, 2, 1 }, 4, 1, false, { 10, 10, 20, 20 } },
        { { 0, 0, 2, 1 }, 3, 1, false, { 10, 15, 20 } },
        { { -1, -1, 4, 4 }, 2, 2, false, { 2.5f, 12.5f, 27.5f, 70.25f } },
        { { 5, 5, 2, 2 }, 1, 1, false, { 0 } },
        { { -900000, -900000, 1000000, 1000000 }, 1, 1, false, { 451e-12f } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float got[16 * 3];
        pith__arena arena;
        pith__arena_init(&arena, &pith__allocator_default);
        assert_int_equal(pith__area_resize(got, cases[i].width, cases[i].height, &image,
                                           &cases[i].window, cases[i].rounded, &arena, NULL),
                         PITH_OK);
        for (int k = 0; k < cases[i].width * cases[i].height * 3; k++)
            if (!(fabsf(got[k] - cases[i].wanted[k / 3]) <= 1e-4f))
                fail_msg("case %zu, number %d: %g, not %g", i, k, (double)got[k],
                         (double)cases[i].wanted[k / 3]);
        pith__arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_pictures), cmocka_unit_test(scaled_by_threads),
        cmocka_unit_test(wrong_options),     cmocka_unit_test(strict_shapes),
        cmocka_unit_test(memory_runs_out),   cmocka_unit_test(decoding),
        cmocka_unit_test(choosing),          cmocka_unit_test(cascade_memory_runs_out),
        cmocka_unit_test(played_cascade),    cmocka_unit_test(resizing_by_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
