/* test_image.c - pictures as Pillow and the image processors of transformers have them
 * (tests/data/images); geometry, options, refusals of settings. */
#include "support/image_test.h"

#include <math.h>
#include <unistd.h>

typedef struct cases {
    char *text, *at;
    uint8_t *expected, *next, *end;
} cases;

static int cases_setup(void **state) {
    static cases c;
    size_t size;
    c.at = c.text = (char *)image_bytes(&size, "cases.txt");
    c.next = c.expected = image_bytes(&size, "expected.bin");
    c.end = c.expected + size;
    *state = &c;
    return 0;
}

static int cases_teardown(void **state) {
    cases *c = *state;
    free(c->text);
    free(c->expected);
    return 0;
}

static void check_pixels(const char *line, const pith_image *got, const uint8_t *expected,
                         int height, int width, int channels, int tolerance) {
    if (got->width != width || got->height != height || got->channels != channels)
        fail_msg("%s: %d x %d pixels of %d channels", line, got->width, got->height, got->channels);
    for (int i = 0; i < height * width * channels; i++)
        if (abs(got->pixels[i] - expected[i]) > tolerance)
            fail_msg("%s: byte %d is %d, expected %d", line, i, got->pixels[i], expected[i]);
}

static void check_decode(cases *c, const char *line) {
    char name[64];
    int tolerance, channels, height, width;
    pith_image image;
    assert_int_equal(
        sscanf(line, "decode %63s %d %d %d %d", name, &tolerance, &channels, &height, &width), 5);
    image_open(&image, name, channels);
    check_pixels(line, &image, c->next, height, width, channels, tolerance);
    pith_image_free(&image);
    c->next += height * width * channels;
}

static void check_resize(cases *c, const char *line) {
    char name[64];
    int channels, filter, height, width;
    pith_image image, resized;
    pith_error err = PITH_ERROR_INIT;
    pith_image_resize_options options = PITH_IMAGE_RESIZE_OPTIONS_INIT;
    assert_int_equal(
        sscanf(line, "resize %63s %d %d %d %d", name, &channels, &filter, &height, &width), 5);
    image_open(&image, name, channels);
    options.width = width;
    options.height = height;
    options.filter = filter + 1;
    if (pith_image_resize(&resized, &image, &options, &err)) fail_msg("%s: %s", line, err.message);
    check_pixels(line, &resized, c->next, height, width, channels, 0);
    pith_image_free(&image);
    pith_image_free(&resized);
    c->next += height * width * channels;
}

static const char *write_settings(const char *json) {
    static char path[] = "/tmp/pith-preprocessor-XXXXXX";
    snprintf(path, sizeof path, "/tmp/pith-preprocessor-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, strlen(json)), strlen(json));
    close(fd);
    return path;
}

static void check_process(cases *c, const char *line) {
    char name[64];
    int height, width, json;
    int64_t dims[3];
    pith_image image;
    pith_image_processor *processor;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(sscanf(line, "process %63s %d %d %n", name, &height, &width, &json), 3);
    image_open(&image, name, 3);
    const char *path = write_settings(line + json);
    if (pith_image_processor_open(&processor, path, NULL, &err) ||
        pith_image_processor_shape(dims, processor, image.width, image.height, &err))
        fail_msg("%s: %s", line, err.message);
    unlink(path);
    if (dims[0] != 3 || dims[1] != height || dims[2] != width)
        fail_msg("%s: %d x %d", line, (int)dims[1], (int)dims[2]);
    size_t count = (size_t)(3 * height * width);
    float *got = malloc(count * sizeof *got), *expected = malloc(count * sizeof *expected);
    memcpy(expected, c->next, count * sizeof *expected);
    if (pith_image_process(got, processor, &image, NULL, &err))
        fail_msg("%s: %s", line, err.message);
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - expected[i]) <= 1e-6f))
            fail_msg("%s: value %zu is %.9g, expected %.9g", line, i, (double)got[i],
                     (double)expected[i]);
    free(got);
    free(expected);
    pith_image_free(&image);
    pith_image_processor_close(processor);
    c->next += count * sizeof *got;
}

static void test_cases(void **state) {
    cases *c = *state;
    int count = 0;
    for (char *line = strtok(c->at, "\n"); line; line = strtok(NULL, "\n"), count++) {
        if (!strncmp(line, "decode", 6))
            check_decode(c, line);
        else if (!strncmp(line, "resize", 6))
            check_resize(c, line);
        else
            check_process(c, line);
    }
    assert_true(count > 200);
    assert_ptr_equal(c->next, c->end);
}

/* 0 channels: as the file has them. */
static void test_channels(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int channels;
    } files[] = {
        { "rgb.jpg", 3 },       { "grey.jpg", 1 },
        { "cmyk.jpg", 3 },      { "rgb.png", 3 },
        { "bits.png", 1 },      { "grey_alpha.png", 4 },
        { "palette.png", 3 },   { "palette_transparent.png", 4 },
        { "fax.tif", 1 },       { "rgba.tif", 4 },
        { "rgb.tif", 3 },       { "alpha.webp", 4 },
        { "animated.webp", 4 }, { "grey_alpha.jp2", 4 },
        { "rgb.bmp", 3 },       { "grey.pgm", 1 },
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        pith_image image;
        image_open(&image, files[i].name, 0);
        if (image.channels != files[i].channels)
            fail_msg("%s: %d channels", files[i].name, image.channels);
        pith_image_free(&image);
    }
}

static void test_orientation_kept(void **state) {
    (void)state;
    pith_image kept, turned;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    options.module_path = MODULE;
    options.keep_orientation = 1;
    assert_int_equal(pith_image_read(&kept, IMAGES "turned6.png", &options, NULL), 0);
    image_open(&turned, "turned6.png", 3);
    assert_int_equal(kept.width, turned.height);
    assert_int_equal(kept.height, turned.width);
    for (int y = 0; y < turned.height; y++)
        for (int x = 0; x < turned.width; x++)
            assert_memory_equal(turned.pixels + (y * turned.width + x) * 3,
                                kept.pixels + ((kept.height - 1 - x) * kept.width + y) * 3, 3);
    pith_image_free(&kept);
    pith_image_free(&turned);
}

static void test_edges(void **state) {
    (void)state;
    static const struct {
        int width, height, shortest, longest, new_width, new_height;
    } sizes[] = {
        { 300, 200, 100, 0, 150, 100 }, { 200, 300, 100, 0, 100, 150 },
        { 301, 200, 100, 0, 150, 100 }, { 400, 100, 50, 120, 120, 30 },
        { 400, 100, 50, 0, 200, 50 },   { 400, 100, 0, 80, 80, 20 },
        { 100, 400, 0, 80, 20, 80 },    { 1000, 1, 0, 10, 10, 1 },
        { 7, 7, 5, 0, 5, 5 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *pixels = calloc((size_t)(sizes[i].width * sizes[i].height), 1);
        pith_image image = { pixels, sizes[i].width, sizes[i].height, 1, NULL }, resized;
        pith_image_resize_options options = PITH_IMAGE_RESIZE_OPTIONS_INIT;
        options.shortest_edge = sizes[i].shortest;
        options.longest_edge = sizes[i].longest;
        assert_int_equal(pith_image_resize(&resized, &image, &options, NULL), 0);
        assert_int_equal(resized.width, sizes[i].new_width);
        assert_int_equal(resized.height, sizes[i].new_height);
        pith_image_free(&resized);
        free(pixels);
    }
}

/* Where the difference is odd, a cut leaves the extra pixel behind, padding puts it in front. */
static void test_center_crop(void **state) {
    (void)state;
    uint8_t pixels[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    pith_image image = { pixels, 4, 2, 1, NULL }, cropped;
    assert_int_equal(pith_image_center_crop(&cropped, &image, 3, 1, NULL, NULL), 0);
    assert_memory_equal(cropped.pixels, ((uint8_t[]){ 1, 2, 3 }), 3);
    pith_image_free(&cropped);
    assert_int_equal(pith_image_center_crop(&cropped, &image, 2, 5, NULL, NULL), 0);
    assert_memory_equal(cropped.pixels, ((uint8_t[]){ 0, 0, 0, 0, 2, 3, 6, 7, 0, 0 }), 10);
    pith_image_free(&cropped);
}

static void expect_refusal(const char *json, const char *message) {
    pith_image_processor *processor;
    pith_error err = PITH_ERROR_INIT;
    const char *path = write_settings(json);
    pith_status status = pith_image_processor_open(&processor, path, NULL, &err);
    unlink(path);
    if (!status || !strstr(err.message, message))
        fail_msg("%s: %d %s, not: %s", json, status, err.message, message);
}

static void test_settings_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        { "{\"image_processor_type\": \"FuyuImageProcessor\"}",
          "image_processor_type: 'FuyuImageProcessor' is not supported" },
        { "{\"size\": 224}",
          "names no image_processor_type, and there is no config.json next to it" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\", \"do_sharpen\": true}",
          "do_sharpen: the key is not known" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\", \"do_pad\": true}",
          "do_pad: the key is not known" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\", \"resample\": 6}",
          "resample: resample 6 is not" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"max_height\": 5}}",
          "size.max_height: a size has" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"height\": 5}}",
          "needs shortest_edge, or height" },
        { "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"shortest_edge\": 5}}",
          "needs height and width" },
        { "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": 0}",
          "0 is not an edge of 1 to" },
        { "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": [1, 2, 3]}", "not 3" },
        { "{\"image_processor_type\": \"ViTImageProcessor\", \"image_mean\": [0.5, 0.5]}",
          "image_mean: 2 values" },
        { "{\"image_processor_type\": \"ViTImageProcessor\", \"data_format\": \"channels_last\"}",
          "only channels_first" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\", \"crop_size\": {\"shortest_edge\": "
          "3}}",
          "crop_size: height and" },
        { "{\"image_processor_type\": \"ConvNextImageProcessor\", \"crop_pct\": 0}",
          "crop_pct: must be above 0" },
        { "{\"image_processor_type\": \"ViTImageProcessor\"", "the text ends" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refusal(wrong[i][0], wrong[i][1]);
    assert_int_equal(
        pith_image_processor_open(&(pith_image_processor *){ NULL }, IMAGES "none", NULL, NULL),
        PITH_ERR_NOT_FOUND);
}

/* The class by the model's type, where the file names none. */
static void test_class_by_model(void **state) {
    (void)state;
    char dir[] = "/tmp/pith-processor-XXXXXX", path[64], config[64];
    pith_image_processor *processor;
    pith_error err = PITH_ERROR_INIT;
    int64_t dims[3];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/preprocessor_config.json", dir);
    snprintf(config, sizeof config, "%s/config.json", dir);
    FILE *f = fopen(path, "w");
    fputs("{\"do_normalize\": true}", f);
    fclose(f);
    f = fopen(config, "w");
    fputs("{\"model_type\": \"dinov2\"}", f);
    fclose(f);
    if (pith_image_processor_open(&processor, dir, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(pith_image_processor_shape(dims, processor, 640, 480, &err), 0);
    assert_int_equal(dims[1], 224);
    pith_image_processor_close(processor);
    f = fopen(config, "w");
    fputs("{\"model_type\": \"bert\"}", f);
    fclose(f);
    assert_int_equal(pith_image_processor_open(&processor, dir, NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "none is known for the model_type 'bert'"));
    unlink(path);
    unlink(config);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cases, cases_setup, cases_teardown),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_orientation_kept),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_center_crop),
        cmocka_unit_test(test_settings_refused),
        cmocka_unit_test(test_class_by_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
