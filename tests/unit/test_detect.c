/* test_detect.c - pith_detect: options, kinds of pictures, memory that runs out; decoding of hostile outputs; which
 * candidates stay. tests/cli/faces.py compares faces with OpenCV's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "heads/detector.h"
#include "heads/head.h"
#include "pith/detect.h"

#define YUNET PITH_TEST_DATA "/yunet/yunet-s-640-other-sizes/model.onnx"

static pith_image read_face(int channels) {
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    pith_image_options o = PITH_IMAGE_OPTIONS_INIT;
    o.channels = channels;
    o.module_path = PITH_BINARY_DIR;
    assert_int_equal(pith_image_read(&image, PITH_TEST_DATA "/faces/face_1.jpg", &o, &err), PITH_OK);
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
    for (o.threads = 1; o.threads < 6; o.threads += 2) {
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

static void wrong_options(void **unused) {
    (void)unused;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = open_yunet(), *other;
    const pith_detect_options fine = PITH_DETECT_OPTIONS_INIT;
    pith_detect_options wrong[9];
    for (int i = 0; i < 9; i++) wrong[i] = fine;
    wrong[0].score_threshold = 1.5f;
    wrong[1].score_threshold = NAN;
    wrong[2].nms_threshold = -0.1f;
    wrong[3].top_k = 0;
    wrong[4].score = 2;
    wrong[5].width = 320;
    wrong[6].width = wrong[6].height = 1 << 20;
    wrong[7].threads = -1;
    wrong[8].size = 0;
    for (int i = 0; i < 9; i++) assert_int_equal(pith_detect(NULL, model, NULL, 0, &wrong[i], &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_model_open(&other, PITH_TEST_DATA "/models/bert-base-script17-sdpa/model.onnx", NULL, &err),
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
    assert_non_null(strstr(err.message, "'input' is declared as [1, 3, 640, 640] but is [1, 3, 320, 320]"));
    d.width = d.height = 640;
    assert_int_equal(pith_detect(&faces, model, &image, 1, &d, &err), PITH_OK);
    assert_int_equal(faces.count, 1);
    pith_faces_free(&faces);
    pith_image_free(&image);
    pith_model_close(model);
}

/* Each allocation of the call fails once: an error, nothing lost, and the next call works. */
static void memory_runs_out(void **unused) {
    (void)unused;
    counter memory = { .fail_at = 0 };
    pith_allocator allocator = { count_alloc, count_free, &memory };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_open_options o = PITH_OPEN_OPTIONS_INIT;
    pith_detect_options d = PITH_DETECT_OPTIONS_INIT;
    pith_image image = read_face(3);
    pith_faces faces;
    o.allocator = d.allocator = &allocator;
    o.sessions = -1;
    o.pool_blocks = -1;
    d.threads = 1;
    d.width = d.height = 128;
    int failures = 0;
    for (long at = 1;; at++) {
        assert_int_equal(pith_model_open(&model, YUNET, &o, &err), PITH_OK);
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
        pith_faces_free(&faces);
        pith_model_close(model);
        assert_int_equal(memory.live, 0);
        if (!reached) break;
    }
    assert_true(failures >= 4);
    pith_image_free(&image);
}

/* ---- decoding ---- */

/* The outputs for an input of 32 x 32: 16, 4 and 1 cells. */
typedef struct outputs {
    float data[12][160];
    pith_tensor tensors[12];
    pith_detector_outputs all;
} outputs;

static void outputs_make(outputs *o, float score) {
    static const int widths[] = { 1, 1, 4, 10 }, cells[] = { 16, 4, 1 };
    memset(o, 0, sizeof *o);
    o->all.width = o->all.height = 32;
    for (int i = 0; i < 12; i++) {
        const int n = cells[i % 3] * widths[i / 3];
        o->tensors[i] =
            (pith_tensor){ o->data[i], (size_t)n * sizeof(float), PITH_F32, 3, { 1, cells[i % 3], widths[i / 3] } };
        o->all.tensors[i] = &o->tensors[i];
        for (int k = 0; k < n && i < 6; k++) o->data[i][k] = score;
    }
}

static void decoding(void **unused) {
    (void)unused;
    const pith_head *head;
    pith_error err = PITH_ERROR_INIT;
    pith_arena arena;
    outputs o;
    pith_detect_options d = PITH_DETECT_OPTIONS_INIT;
    assert_int_equal(pith_head_find(&head, "yunet", &err), PITH_OK);
    pith_arena_init(&arena, &pith_allocator_default);

    /* Cell 5 of the first grid is column 1, row 1 of stride 8. */
    pith_candidates found = { .arena = &arena };
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
    d = (pith_detect_options)PITH_DETECT_OPTIONS_INIT;
    outputs_make(&o, 1);
    o.data[0][0] = NAN, o.data[3][1] = NAN, o.data[6][4 * 2] = NAN, o.data[6][4 * 3 + 2] = 1000,
    o.data[9][10 * 4] = -INFINITY;
    assert_int_equal(head->detector->decode(&found, &o.all, &d, &err), PITH_OK);
    assert_int_equal(found.count, 21 - 5);

    /* Sizes that do not fit the input. */
    o.tensors[8].dims[1] = 2;
    assert_int_equal(head->detector->decode(&found, &o.all, &d, &err), PITH_ERR_RUN);
    assert_non_null(strstr(err.message, "stride 32"));
    pith_arena_free(&arena);
}

static void add(pith_candidates *c, float x, float y, float w, float h, float score) {
    const pith_face face = { .box = { x, y, w, h }, .score = score };
    assert_int_equal(pith_candidates_add(c, &face, NULL), PITH_OK);
}

static void choosing(void **unused) {
    (void)unused;
    pith_arena arena;
    pith_arena_init(&arena, &pith_allocator_default);
    pith_candidates c = { .arena = &arena };
    add(&c, 0, 0, 10, 10, 0.5f);
    add(&c, 5.9f, 0, 10, 10, 0.7f); /* in whole pixels it begins at 5: overlap 50 / 150 with both neighbours */
    add(&c, 10, 0, 10, 10, 0.9f);
    add(&c, 100, 100, 5, 5, 0.7f);
    add(&c, 100, 100, 5, 5, 0.7f);
    assert_int_equal(pith_candidates_choose(&c, 0.3f, 5000, NULL), PITH_OK);
    assert_int_equal(c.count, 3);
    assert_true(c.items[0].score == 0.9f && c.items[1].box[0] == 100 && c.items[2].score == 0.5f);
    add(&c, 5.9f, 0, 10, 10, 0.7f);
    assert_int_equal(pith_candidates_choose(&c, 0.34f, 5000, NULL), PITH_OK);
    assert_int_equal(c.count, 4);
    assert_int_equal(pith_candidates_choose(&c, 0.34f, 2, NULL), PITH_OK);
    assert_int_equal(c.count, 2);
    /* Boxes of any size and place are safe; two without area count as the same. */
    c.count = 0;
    add(&c, -3e38f, -3e38f, 3e38f, 3e38f, 0.9f);
    add(&c, 3e38f, 3e38f, 3e38f, 3e38f, 0.8f);
    add(&c, 3, 3, 0.5f, 0.5f, 0.7f);
    add(&c, 9, 9, 0, -5, 0.6f);
    assert_int_equal(pith_candidates_choose(&c, 0.3f, 5000, NULL), PITH_OK);
    assert_int_equal(c.count, 3);
    pith_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_pictures), cmocka_unit_test(wrong_options), cmocka_unit_test(strict_shapes),
        cmocka_unit_test(memory_runs_out),   cmocka_unit_test(decoding),      cmocka_unit_test(choosing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
