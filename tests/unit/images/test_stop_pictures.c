/* test_stop_pictures.c - decoding, encoding, resizing and preparing pictures ends when the call
 * must; a decoder that may be stopped gives the same pixels as one that may not. */
#include "support/image_test.h"
#include "support/stop_test.h"

enum { WIDTH = 1300, HEIGHT = 900, SCALE_LONG = 4, FORMATS = 4 };

typedef struct file {
    uint8_t *bytes;
    size_t size, room;
} file;

static pith_image picture, alpha;
static struct {
    const char *name;
    int quality;
    file file;
} formats[FORMATS] = { { "jpeg", 90, { NULL, 0, 0 } },
                       { "png", 0, { NULL, 0, 0 } },
                       { "webp", 80, { NULL, 0, 0 } },
                       { "webp", 100, { NULL, 0, 0 } } };
static file bitmap;
static pith_image_processor *processor;

static int32_t take(void *user, const void *data, size_t size) {
    file *f = user;
    if (f->room - f->size < size) {
        f->room = 2 * (f->size + size);
        f->bytes = realloc(f->bytes, f->room);
        assert_non_null(f->bytes);
    }
    memcpy(f->bytes + f->size, data, size);
    f->size += size;
    return 0;
}

static pith_status encode_as(file *f, const pith_image *image, const char *format, int quality,
                             const pith_call *call, pith_error *err) {
    pith_image_encode_options o = PITH_IMAGE_ENCODE_OPTIONS_INIT;
    const size_t size = o.call.size;
    if (call) o.call = *call;
    o.call.size = size;
    o.format = format;
    o.quality = quality;
    o.module_path = PITH_BINARY_DIR;
    f->size = 0;
    return pith_image_encode(image, &o, &(pith_writer){ take, NULL, f }, err);
}

static pith_status decode_as(pith_image *image, const file *f, int channels, const pith_call *call,
                             pith_error *err) {
    pith_image_options o = PITH_IMAGE_OPTIONS_INIT;
    const size_t size = o.call.size;
    if (call) o.call = *call;
    o.call.size = size;
    o.channels = channels;
    o.module_path = PITH_BINARY_DIR;
    return pith_image_decode(image, f->bytes, f->size, &o, err);
}

static uint64_t sum_of(const pith_image *image) {
    return pith__hash_of(image->pixels,
                         (size_t)image->width * (size_t)image->height * (size_t)image->channels);
}

/* ---- the calls ---- */

static pith_status decodes(const void *work, const pith_call *call, uint64_t *sum,
                           pith_error *err) {
    pith_image image;
    const pith_status status = decode_as(&image, work, 0, call, err);
    if (status) return status;
    stop_test_over();
    *sum = sum_of(&image);
    pith_image_free(&image);
    return PITH_OK;
}

static pith_status encodes(const void *work, const pith_call *call, uint64_t *sum,
                           pith_error *err) {
    const int i = *(const int *)work;
    file f = { NULL, 0, 0 };
    const pith_status status =
        encode_as(&f, &picture, formats[i].name, formats[i].quality, call, err);
    stop_test_over();
    if (!status) *sum = pith__hash_of(f.bytes, f.size);
    free(f.bytes);
    return status;
}

static pith_status resizes(const void *work, const pith_call *call, uint64_t *sum,
                           pith_error *err) {
    pith_image_resize_options o = PITH_IMAGE_RESIZE_OPTIONS_INIT;
    pith_image made;
    const size_t size = o.call.size;
    o.call = *call;
    o.call.size = size;
    o.filter = *(const int *)work;
    o.width = picture.width * 4 / 5;
    o.height = picture.height / 3;
    const pith_status status = pith_image_resize(&made, &alpha, &o, err);
    if (status) return status;
    stop_test_over();
    *sum = sum_of(&made);
    pith_image_free(&made);
    return PITH_OK;
}

static pith_status crops(const void *work, const pith_call *call, uint64_t *sum, pith_error *err) {
    pith_image made;
    (void)work;
    const pith_status status =
        pith_image_center_crop(&made, &picture, picture.width + 100, picture.height, call, err);
    if (status) return status;
    stop_test_over();
    *sum = sum_of(&made);
    pith_image_free(&made);
    return PITH_OK;
}

static pith_status prepares(const void *work, const pith_call *call, uint64_t *sum,
                            pith_error *err) {
    int64_t dims[3];
    (void)work;
    assert_int_equal(pith_image_processor_shape(dims, processor, alpha.width, alpha.height, err),
                     PITH_OK);
    const size_t bytes = (size_t)(dims[0] * dims[1] * dims[2]) * sizeof(float);
    float *values = malloc(bytes);
    assert_non_null(values);
    const pith_status status = pith_image_process(values, processor, &alpha, call, err);
    stop_test_over();
    if (!status) *sum = pith__hash_of(values, bytes);
    free(values);
    return status;
}

static void test_pictures(void **state) {
    static const int numbers[FORMATS] = { 0, 1, 2, 3 };
    static const int lanczos = PITH_IMAGE_LANCZOS, nearest = PITH_IMAGE_NEAREST;
    (void)state;
    const stop_case cases[] = {
        { .name = "decode JPEG", .run = decodes, .work = &formats[0].file },
        { .name = "decode PNG", .run = decodes, .work = &formats[1].file },
        { .name = "decode WebP", .run = decodes, .work = &formats[2].file },
        { .name = "decode WebP without loss", .run = decodes, .work = &formats[3].file },
        { .name = "decode PNM", .run = decodes, .work = &bitmap },
        { .name = "encode JPEG", .run = encodes, .work = &numbers[0] },
        { .name = "encode PNG", .run = encodes, .work = &numbers[1] },
        { .name = "encode WebP", .run = encodes, .work = &numbers[2] },
        { .name = "resize", .run = resizes, .work = &lanczos },
        { .name = "resize, nearest", .run = resizes, .work = &nearest },
        { .name = "crop", .run = crops },
        { .name = "prepare", .run = prepares },
    };
    stop_test_all(cases, sizeof cases / sizeof *cases);
}

/* ---- the same pixels, of every format ---- */

static int32_t never(void *user) {
    (void)user;
    return 0;
}

static void compare_decoders(const char *name, const file *f) {
    pith_error err = PITH_ERROR_INIT;
    pith_image plain, stoppable;
    pith_call call = PITH_CALL_INIT;
    call.stop = never;
    if (decode_as(&plain, f, 0, NULL, &err) || decode_as(&stoppable, f, 0, &call, &err))
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(plain.width, stoppable.width);
    assert_int_equal(plain.height, stoppable.height);
    assert_int_equal(plain.channels, stoppable.channels);
    if (sum_of(&plain) != sum_of(&stoppable)) fail_msg("%s: other pixels", name);
    pith_image_free(&plain);
    pith_image_free(&stoppable);
    volatile int cancel = 1;
    call.stop = NULL;
    call.cancel = &cancel;
    if (decode_as(&plain, f, 0, &call, &err) != PITH_ERR_CANCELLED)
        fail_msg("%s: %s", name, err.message);
}

static void test_same(void **state) {
    static const char *const names[] = {
        "alpha.webp",     "animated.gif",   "animated.webp",  "bits.bmp",        "cmyk.jpg",
        "cmyk.tif",       "fax.tif",        "grey.bmp",       "grey.jpg",        "grey.pgm",
        "grey_alpha.jp2", "interlaced.gif", "interlaced.png", "lossy.j2k",       "lossy.webp",
        "pages.tif",      "palette.tif",    "part.gif",       "progressive.jpg", "rgb.gif",
        "rgb.jp2",        "rgb.jpg",        "rgb.png",        "rgb.ppm",         "rgb.tif",
        "runs8.bmp",      "tiles.jp2",      "turned6.jpg",
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        file f = { .size = 0 };
        f.bytes = image_bytes(&f.size, names[i]);
        compare_decoders(names[i], &f);
        free(f.bytes);
    }
    for (int i = 0; i < FORMATS; i++) compare_decoders(formats[i].name, &formats[i].file);
}

/* ---- pictures ---- */

static void make_picture(pith_image *image, int channels) {
    const int scale = stop_test_long() ? SCALE_LONG : 1;
    uint32_t noise = 7;
    *image = (pith_image){ .width = WIDTH * scale, .height = HEIGHT * scale, .channels = channels };
    const size_t bytes = (size_t)image->width * (size_t)image->height * (size_t)channels;
    image->pixels = malloc(bytes);
    assert_non_null(image->pixels);
    for (size_t i = 0; i < bytes; i++) {
        noise = noise * 1664525u + 1013904223u;
        image->pixels[i] = (uint8_t)(i / 97 % 200 + (noise >> 29));
    }
}

static int make_all(void **state) {
    pith_error err = PITH_ERROR_INIT;
    char head[64];
    (void)state;
    make_picture(&picture, 3);
    make_picture(&alpha, 4);
    for (int i = 0; i < FORMATS; i++)
        if (encode_as(&formats[i].file, &picture, formats[i].name, formats[i].quality, NULL, &err))
            fail_msg("%s", err.message);
    const int size = snprintf(head, sizeof head, "P6 %d %d 255\n", picture.width, picture.height);
    take(&bitmap, head, (size_t)size);
    take(&bitmap, picture.pixels, (size_t)picture.width * (size_t)picture.height * 3);
    FILE *out = fopen(PITH_BINARY_DIR "/stop_preprocessor_config.json", "w");
    assert_non_null(out);
    fputs("{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 1400},"
          " \"crop_size\": {\"height\": 1300, \"width\": 1300}, \"do_center_crop\": true}",
          out);
    fclose(out);
    if (pith_image_processor_open(&processor, PITH_BINARY_DIR "/stop_preprocessor_config.json",
                                  NULL, &err))
        fail_msg("%s", err.message);
    return 0;
}

static int free_all(void **state) {
    (void)state;
    pith_image_processor_close(processor);
    for (int i = 0; i < FORMATS; i++) free(formats[i].file.bytes);
    free(bitmap.bytes);
    free(picture.pixels);
    free(alpha.pixels);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pictures),
                                        cmocka_unit_test(test_same) };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
