/* test_vision.c - vectors of pictures, and of texts in the same space, beside transformers
 * (tests/data/vision). */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "support/image_test.h"

#define VISION PITH_TEST_DATA "/vision/"
#define LAYOUT PITH_BINARY_DIR "/vision-layout"

enum { PICTURES = 5, TEXTS = 5, WIDTH = 64 };

static const char *const pictures[PICTURES] = { "rgb.png", "palette.png", "rgb.bmp", "grey.pgm",
                                                "rgba.png" };
static pith_image images[PICTURES];

static const struct model {
    const char *name;
    int dim;
    bool pictures, texts;
} models[] = {
    { "clip", 12, true, true },           { "clip-text", 12, false, true },
    { "clip-vision", 12, true, false },   { "siglip", 16, true, true },
    { "siglip-vision", 16, true, false }, { "vit", 16, true, false },
    { "vit-plain", 16, true, false },     { "resnet", 32, true, false },
    { "resnet-basic", 32, true, false },
};
enum { MODELS = sizeof models / sizeof *models };

static pith_model *open_path(const char *path, const pith_open_options *options) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (pith_model_open(&model, path, options, &err)) fail_msg("%s", err.message);
    return model;
}

static pith_model *open_named(const char *name, const pith_open_options *options) {
    char path[600];
    snprintf(path, sizeof path, VISION "%s", name);
    return open_path(path, options);
}

static void read_expected(float *to, const char *name, const char *file, size_t count) {
    char path[600];
    snprintf(path, sizeof path, VISION "%s/%s", name, file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(to, sizeof *to, count, f), count);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

/* Rows as directions: what is left of their difference once both have length 1. */
static void near(const char *name, const float *a, const float *b, size_t rows, size_t dim) {
    for (size_t r = 0; r < rows; r++, a += dim, b += dim) {
        double aa = 0, bb = 0, worst = 0;
        for (size_t i = 0; i < dim; i++) aa += (double)a[i] * a[i], bb += (double)b[i] * b[i];
        for (size_t i = 0; i < dim; i++)
            worst = fmax(worst, fabs(a[i] / sqrt(aa) - b[i] / sqrt(bb)));
        if (!(worst <= 1e-5) || !(fabs(sqrt(aa / bb) - 1) <= 1e-4))
            fail_msg("%s: row %zu is off by %g", name, r, worst);
    }
}

static void embed_pictures(float *vectors, const pith_model *model, size_t count,
                           const pith_embed_images_options *options) {
    pith_error err = PITH_ERROR_INIT;
    if (pith_embed_images(vectors, model, images, count, options, &err))
        fail_msg("%s", err.message);
}

/* ---- right ---- */

static void test_pictures(void **state) {
    (void)state;
    static float ours[PICTURES * WIDTH], theirs[PICTURES * WIDTH];
    for (int m = 0; m < MODELS; m++) {
        if (!models[m].pictures) continue;
        for (int level = 0; level <= 3; level++) {
            pith_open_options o = PITH_OPEN_OPTIONS_INIT;
            o.optimization = level ? level : PITH_OPTIMIZATION_NONE;
            pith_model *model = open_named(models[m].name, &o);
            size_t dim;
            assert_int_equal(pith_embed_images_dim(&dim, model, NULL, NULL), PITH_OK);
            assert_int_equal(dim, models[m].dim);
            embed_pictures(ours, model, PICTURES, NULL);
            read_expected(theirs, models[m].name, "images.f32", PICTURES * dim);
            near(models[m].name, ours, theirs, PICTURES, dim);
            pith_model_close(model);
        }
    }
}

static void read_texts(pith_str *texts, char text[][400]) {
    static const char *const first[TEXTS] = { "w5 w6 w7", "", "w94", NULL, "w9 w9 unknown w8" };
    for (int i = 0; i < TEXTS; i++) {
        size_t used = 0;
        if (first[i]) used = (size_t)snprintf(text[i], 400, "%s", first[i]);
        for (int w = 0; !first[i] && w < 40; w++)
            used +=
                (size_t)snprintf(text[i] + used, 400 - used, "%sw%d", w ? " " : "", 5 + w * 7 % 80);
        texts[i] = (pith_str){ text[i], used };
    }
}

static void test_texts(void **state) {
    (void)state;
    static float ours[TEXTS * WIDTH], theirs[TEXTS * WIDTH];
    static char text[TEXTS][400];
    pith_str texts[TEXTS];
    read_texts(texts, text);
    for (int m = 0; m < MODELS; m++) {
        if (!models[m].texts) continue;
        for (int level = 0; level <= 3; level++) {
            pith_error err = PITH_ERROR_INIT;
            pith_open_options o = PITH_OPEN_OPTIONS_INIT;
            o.optimization = level ? level : PITH_OPTIMIZATION_NONE;
            pith_model *model = open_named(models[m].name, &o);
            size_t dim = pith_embed_dim(model, NULL);
            assert_int_equal(dim, models[m].dim);
            assert_int_equal(pith_embed_max_length(model, NULL), 16);
            if (pith_embed(ours, model, texts, TEXTS, NULL, &err)) fail_msg("%s", err.message);
            read_expected(theirs, models[m].name, "texts.f32", TEXTS * dim);
            near(models[m].name, ours, theirs, TEXTS, dim);
            pith_model_close(model);
        }
    }
}

/* The mean of the patches' rows; the first components, scaled. */
static void test_options(void **state) {
    (void)state;
    static float ours[PICTURES * WIDTH], theirs[PICTURES * WIDTH];
    pith_model *model = open_named("vit", NULL);
    pith_embed_images_options o = PITH_EMBED_IMAGES_OPTIONS_INIT;
    size_t dim;
    o.pooling = PITH_POOLING_MEAN;
    embed_pictures(ours, model, PICTURES, &o);
    read_expected(theirs, "vit", "rows.f32", PICTURES * 16);
    near("vit mean", ours, theirs, PICTURES, 16);
    o = (pith_embed_images_options)PITH_EMBED_IMAGES_OPTIONS_INIT;
    o.dim = 5;
    o.normalize = 1;
    assert_int_equal(pith_embed_images_dim(&dim, model, &o, NULL), PITH_OK);
    assert_int_equal(dim, 5);
    embed_pictures(ours, model, PICTURES, &o);
    read_expected(theirs, "vit", "images.f32", PICTURES * 16);
    for (int p = 0; p < PICTURES; p++) {
        double length = 0;
        for (int i = 0; i < 5; i++) length += (double)theirs[16 * p + i] * theirs[16 * p + i];
        for (int i = 0; i < 5; i++)
            assert_true(fabs(ours[5 * p + i] - theirs[16 * p + i] / sqrt(length)) < 1e-5);
    }
    pith_model_close(model);
}

/* A picture's vector has the same bits alone and among others, with any number of threads, and in a
 * second call. */
static void test_bits(void **state) {
    (void)state;
    static float all[PICTURES * WIDTH], again[PICTURES * WIDTH];
    for (int m = 0; m < MODELS; m++) {
        if (!models[m].pictures) continue;
        const size_t dim = (size_t)models[m].dim, bytes = PICTURES * dim * sizeof *all;
        pith_model *model = open_named(models[m].name, NULL);
        embed_pictures(all, model, PICTURES, NULL);
        for (int threads = 1; threads <= 8; threads++) {
            pith_embed_images_options o = PITH_EMBED_IMAGES_OPTIONS_INIT;
            o.call.threads = threads;
            memset(again, 0, sizeof again);
            embed_pictures(again, model, PICTURES, &o);
            assert_memory_equal(again, all, bytes);
        }
        for (size_t p = 0; p < PICTURES; p++) {
            pith_error err = PITH_ERROR_INIT;
            if (pith_embed_images(again, model, &images[p], 1, NULL, &err))
                fail_msg("%s", err.message);
            assert_memory_equal(again, all + p * dim, dim * sizeof *all);
        }
        pith_model_close(model);
    }
}

/* ---- layouts ---- */

static void link_file(const char *from, const char *to) {
    unlink(to);
    assert_int_equal(symlink(from, to), 0);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* The module CLIPModel of sentence-transformers in a folder of its own. */
static void test_sentence_transformers(void **state) {
    (void)state;
    static float ours[PICTURES * WIDTH], theirs[PICTURES * WIDTH];
    pith_error err = PITH_ERROR_INIT;
    mkdir(LAYOUT, 0777);
    link_file(VISION "clip", LAYOUT "/0_CLIPModel");
    write_file(LAYOUT "/modules.json",
               "[{\"idx\": 0, \"name\": \"0\", \"path\": \"0_CLIPModel\", \"type\": "
               "\"sentence_transformers.models.CLIPModel\"},"
               " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Normalize\", \"type\": "
               "\"sentence_transformers.models.Normalize\"}]");
    pith_model *model = open_path(LAYOUT, NULL);
    embed_pictures(ours, model, PICTURES, NULL);
    read_expected(theirs, "clip", "images.f32", PICTURES * 12);
    for (int p = 0; p < PICTURES; p++) {
        double length = 0;
        for (int i = 0; i < 12; i++) length += (double)theirs[12 * p + i] * theirs[12 * p + i];
        for (int i = 0; i < 12; i++) theirs[12 * p + i] /= (float)sqrt(length);
    }
    near("0_CLIPModel", ours, theirs, PICTURES, 12);
    const pith_str text = PITH_STR("w5 w6 w7");
    if (pith_embed(ours, model, &text, 1, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_embed_dim(model, NULL), 12);
    pith_model_close(model);
}

/* An ONNX file without a preprocessor_config.json: the caller gives the processor. */
static void test_onnx(void **state) {
    (void)state;
    float vectors[PICTURES * WIDTH];
    pith_error err = PITH_ERROR_INIT;
    pith_image_processor *processor;
    pith_embed_images_options o = PITH_EMBED_IMAGES_OPTIONS_INIT;
    pith_model *model = open_path(PITH_TEST_DATA "/families/clip-vision-script14/model.onnx", NULL);
    assert_int_equal(pith_embed_images(vectors, model, images, 1, NULL, &err), PITH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "put the model's preprocessor_config.json next to it"));
    mkdir(LAYOUT, 0777);
    write_file(LAYOUT "/preprocessor_config.json",
               "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 8, "
               "\"width\": 8}}");
    assert_int_equal(
        pith_image_processor_open(&processor, LAYOUT "/preprocessor_config.json", NULL, &err),
        PITH_OK);
    o.processor = processor;
    assert_int_not_equal(pith_embed_images(vectors, model, images, PICTURES, &o, &err), PITH_OK);
    if (!strstr(err.message, "picture 0: the model declares pictures of 3x32x32, but "
                             "preprocessor_config.json makes 3x8x8"))
        fail_msg("%s", err.message);
    pith_image_processor_close(processor);
    write_file(LAYOUT "/preprocessor_config.json",
               "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 32, "
               "\"width\": 32}}");
    assert_int_equal(
        pith_image_processor_open(&processor, LAYOUT "/preprocessor_config.json", NULL, &err),
        PITH_OK);
    o.processor = processor;
    embed_pictures(vectors, model, PICTURES, &o);
    pith_image_processor_close(processor);
    pith_model_close(model);
    unlink(LAYOUT "/preprocessor_config.json");
}

/* ---- what is refused ---- */

static void test_refused(void **state) {
    (void)state;
    float vectors[PICTURES * WIDTH];
    size_t dim;
    pith_error err = PITH_ERROR_INIT;
    pith_embed_images_options o = PITH_EMBED_IMAGES_OPTIONS_INIT;
    const pith_str text = PITH_STR("w5");
    pith_model *model = open_named("clip-text", NULL);
    assert_int_equal(pith_embed_images_dim(&dim, model, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no input of pixels"));
    pith_model_close(model);
    model = open_named("vit", NULL);
    assert_int_equal(pith_embed(vectors, model, &text, 1, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "pith_embed_images of pith/image.h"));
    o.dim = 17;
    assert_int_equal(pith_embed_images(vectors, model, images, 1, &o, &err), PITH_ERR_ARGUMENT);
    o.dim = 0;
    o.call.threads = -1;
    assert_int_equal(pith_embed_images(vectors, model, images, 1, &o, &err), PITH_ERR_ARGUMENT);
    o.call.threads = 0;
    const int stop = 1;
    o.call.cancel = &stop;
    assert_int_equal(pith_embed_images(vectors, model, images, 1, &o, &err), PITH_ERR_CANCELLED);
    pith_image odd[2] = { images[0], images[0] };
    odd[1].channels = 2;
    assert_int_equal(pith_embed_images(vectors, model, odd, 2, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "picture 1: "));
    assert_int_equal(pith_embed_images(vectors, model, images, 0, NULL, &err), PITH_OK);
    pith_model_close(model);
    model = open_named("resnet", NULL);
    o = (pith_embed_images_options)PITH_EMBED_IMAGES_OPTIONS_INIT;
    o.pooling = PITH_POOLING_MEAN;
    assert_int_equal(pith_embed_images(vectors, model, images, 1, &o, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "no output last_hidden_state"));
    pith_model_close(model);
}

/* A bad picture has its own error, and the others the vectors that they have without it. */
static void test_failures(void **state) {
    (void)state;
    float wanted[PICTURES * WIDTH], got[PICTURES * WIDTH];
    pith_error err = PITH_ERROR_INIT, failures[PICTURES];
    pith_model *model = open_named("clip-vision", NULL);
    pith_image some[PICTURES];
    const size_t dim = 12;
    embed_pictures(wanted, model, PICTURES, NULL);
    memcpy(some, images, sizeof some);
    some[0].channels = 2;
    some[3].pixels = NULL;
    for (int threads = 1; threads <= 8; threads *= 2) {
        pith_embed_images_options o = PITH_EMBED_IMAGES_OPTIONS_INIT;
        o.call.threads = threads;
        o.failures = failures;
        memset(failures, 1, sizeof failures);
        if (pith_embed_images(got, model, some, PICTURES, &o, &err)) fail_msg("%s", err.message);
        for (size_t i = 0; i < PICTURES; i++) {
            const bool bad = i == 0 || i == 3;
            assert_int_equal(failures[i].code, bad ? PITH_ERR_ARGUMENT : PITH_OK);
            assert_int_equal(failures[i].message[0] != 0, bad);
            if (!bad) assert_memory_equal(got + i * dim, wanted + i * dim, dim * sizeof *got);
            for (size_t k = 0; bad && k < dim; k++) assert_true(isnan(got[i * dim + k]));
        }
        const int stop = 1;
        o.call.cancel = &stop;
        assert_int_equal(pith_embed_images(got, model, some, PICTURES, &o, &err),
                         PITH_ERR_CANCELLED);
    }
    pith_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_sentence_transformers),
        cmocka_unit_test(test_onnx),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failures),
    };
    for (int i = 0; i < PICTURES; i++) image_open(&images[i], pictures[i], 3);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < PICTURES; i++) pith_image_free(&images[i]);
    return failed;
}
