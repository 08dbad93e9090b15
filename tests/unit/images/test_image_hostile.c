/* test_image_hostile.c - pictures that lie about their size, end too early or have wrong bytes;
 * memory that runs out; modules that are missing or are none. Nothing may be read or written
 * outside, and every error says what to do. */
#include "support/image_test.h"

#include <unistd.h>

typedef struct counting {
    pith_allocator allocator;
    size_t calls, largest, fail_at; /* fail_at: the call that gets nothing; 0: none */
    long held;
} counting;

static void *counting_alloc(void *user, size_t bytes) {
    counting *c = user;
    if (++c->calls == c->fail_at) return NULL;
    if (bytes > c->largest) c->largest = bytes;
    void *memory = malloc(bytes);
    c->held += memory != NULL;
    return memory;
}

static void counting_free(void *user, void *memory) {
    ((counting *)user)->held -= memory != NULL;
    free(memory);
}

static void counting_init(counting *c) {
    *c = (counting){ .allocator = { counting_alloc, counting_free, c } };
}

/* Refused before memory is taken, with both numbers. */
static void test_too_many_pixels(void **state) {
    (void)state;
    static const char *const names[][2] = {
        { "large.png",
          "the PNG picture has 40000 x 25000 = 1000000000 pixels, max_pixels is 100000000" },
        { "large.jpg", "the JPEG picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.webp", "the WebP picture has 16384 x 16384 = 268435456 pixels" },
        { "large.tif", "the TIFF picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.j2k", "the JPEG 2000 picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.gif", "the GIF picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.heic", "the HEIC picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.avif", "the AVIF picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.bmp", "the BMP picture has 40000 x 25000 = 1000000000 pixels" },
        { "large.ppm", "the PNM picture has 40000 x 25000 = 1000000000 pixels" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size;
        uint8_t *bytes = image_bytes(&size, names[i][0]);
        counting c;
        pith_image image;
        pith_error err = PITH_ERROR_INIT;
        pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
        counting_init(&c);
        options.module_path = MODULE;
        options.call.allocator = &c.allocator;
        assert_int_equal(pith_image_decode(&image, bytes, size, &options, &err), PITH_ERR_ARGUMENT);
        if (!strstr(err.message, names[i][1])) fail_msg("%s: %s", names[i][0], err.message);
        assert_int_equal(c.calls, 0);
        free(bytes);
    }
}

/* The streams of these say 2000 x 2000, the files 16 x 16. */
static void test_large_streams(void **state) {
    (void)state;
    static const char *const names[] = { "stream.heic", "stream.avif" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        pith_image image;
        pith_error err = PITH_ERROR_INIT;
        pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
        size_t size;
        uint8_t *bytes = image_bytes(&size, names[i]);
        options.module_path = MODULE;
        options.max_pixels = 1 << 20;
        assert_int_equal(pith_image_decode(&image, bytes, size, &options, &err),
                         PITH_ERR_UNSUPPORTED);
        if (!strstr(err.message,
                    "a part of it has 2000 x 2000 pixels, which is more than max_pixels"))
            fail_msg("%s: %s", names[i], err.message);
        options.max_pixels = 0;
        assert_int_equal(pith_image_decode(&image, bytes, size, &options, &err), PITH_ERR_FORMAT);
        if (!strstr(err.message, "it has another size than it says"))
            fail_msg("%s: %s", names[i], err.message);
        free(bytes);
    }
}

static void expect_error(const void *bytes, size_t size, pith_status code, const char *message) {
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    pith_status status = image_decode(&image, bytes, size, 3, &err);
    if (status != code || !strstr(err.message, message))
        fail_msg("%d %s, not: %s", status, err.message, message);
}

static void test_odd_files(void **state) {
    (void)state;
    static const struct {
        const char *name;
        pith_status code;
        const char *message;
    } files[] = {
        { "film.jpg", PITH_ERR_UNSUPPORTED,
          "a film, or a picture in a file of another kind, is not a format that is" },
        { "tiny_tiles.j2k", PITH_ERR_UNSUPPORTED, "its tiles are smaller than 1024 pixels" },
        { "components.j2k", PITH_ERR_UNSUPPORTED, "it has 16384 components; 1 to 4 are supported" },
        { "cases.txt", PITH_ERR_UNSUPPORTED,
          "what the bytes hold is not a format that is decoded" },
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t size;
        uint8_t *bytes = image_bytes(&size, files[i].name);
        expect_error(bytes, size, files[i].code, files[i].message);
        free(bytes);
    }
    expect_error("", 0, PITH_ERR_UNSUPPORTED, "the file is empty");
    expect_error("P6 1 1 65535 ", 13, PITH_ERR_UNSUPPORTED, "only pictures of 8 bits");
    expect_error("P6 0 1 255 ", 11, PITH_ERR_FORMAT, "its size is not a positive number");
    expect_error("P6 2 1 255 abc", 14, PITH_ERR_FORMAT,
                 "the PNM picture is damaged: it is cut off");
    expect_error("\xFF\xD8\xFF", 3, PITH_ERR_FORMAT, "the JPEG picture is damaged");
}

static const char *const kinds[] = { "rgb.jpg",
                                     "progressive.jpg",
                                     "cmyk.jpg",
                                     "turned3.jpg",
                                     "rgb.png",
                                     "interlaced.png",
                                     "palette_transparent.png",
                                     "turned6.png",
                                     "lossy.webp",
                                     "alpha.webp",
                                     "animated.webp",
                                     "turned8.webp",
                                     "rgb.tif",
                                     "rgba.tif",
                                     "fax.tif",
                                     "palette.tif",
                                     "turned5.tif",

                                     "rgb.jp2",
                                     "grey_alpha.jp2",
                                     "lossy.j2k",
                                     "tiles.jp2",
                                     "rgb.bmp",
                                     "palette4.bmp",
                                     "runs4.bmp",
                                     "runs8.bmp",
                                     "masks32.bmp",
                                     "os2.bmp",
                                     "interlaced.gif",
                                     "transparent.gif",
                                     "part.gif",
                                     "rgb.heic",
                                     "alpha.heic",
                                     "grid.heic",
                                     "alpha.avif",
                                     "rgb.ppm" };

/* A picture cut anywhere decodes to the same pixels, if nothing but its end marker is missing, or
 * is an error. */
static void test_cut_off(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t size, decoded = 0;
        pith_image whole;
        uint8_t *bytes = image_bytes(&size, kinds[k]);
        image_open(&whole, kinds[k], 0);
        size_t pixels = (size_t)whole.width * (size_t)whole.height * (size_t)whole.channels;
        for (size_t n = 0; n < size; n++) {
            pith_image image;
            pith_error err = PITH_ERROR_INIT;
            uint8_t *part = malloc(n ? n : 1);
            memcpy(part, bytes, n);
            if (image_decode(&image, part, n, 0, &err)) {
                if (!err.message[0]) fail_msg("%s cut at %zu: no message", kinds[k], n);
            } else {
                decoded++;
                if (image.width == whole.width && image.channels == whole.channels &&
                    memcmp(image.pixels, whole.pixels, pixels) && n < size / 2)
                    fail_msg("%s cut at %zu of %zu: decoded to something else", kinds[k], n, size);
                pith_image_free(&image);
            }
            free(part);
        }
        if (decoded > size / 2)
            fail_msg("%s: %zu of %zu cut files were decoded", kinds[k], decoded, size);
        pith_image_free(&whole);
        free(bytes);
    }
}

/* Wrong bytes: an error or a picture, within a small limit on pixels. */
static void test_wrong_bytes(void **state) {
    (void)state;
    uint32_t seed = 12345;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t size;
        uint8_t *bytes = image_bytes(&size, kinds[k]), *wrong = malloc(size);
        for (int n = 0; n < 300; n++) {
            pith_image image;
            pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
            counting c;
            counting_init(&c);
            options.module_path = MODULE;
            options.max_pixels = 1 << 20;
            options.call.allocator = &c.allocator;
            memcpy(wrong, bytes, size);
            for (int i = 0; i <= n % 3; i++) {
                seed = seed * 1664525u + 1013904223u;
                wrong[(seed >> 8) % (n % 2        ? size
                                     : size < 200 ? size
                                                  : 200)] = (uint8_t)(seed >> 24);
            }
            if (!pith_image_decode(&image, wrong, size, &options, NULL)) pith_image_free(&image);
            assert_int_equal(c.held, 0);
            assert_true(c.largest <= (4u << 20) + 4096);
        }
        free(bytes);
        free(wrong);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    size_t size;
    uint8_t *bytes = image_bytes(&size, "turned5.tif");
    for (size_t n = 1;; n++) {
        pith_image image, resized;
        pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
        pith_image_resize_options resize = PITH_IMAGE_RESIZE_OPTIONS_INIT;
        counting c;
        counting_init(&c);
        options.module_path = MODULE;
        options.channels = 4;
        options.call.allocator = resize.call.allocator = &c.allocator;
        resize.width = 9;
        resize.height = 30;
        c.fail_at = n;
        pith_status status = pith_image_decode(&image, bytes, size, &options, NULL);
        if (!status) {
            status = pith_image_resize(&resized, &image, &resize, NULL);
            pith_image_free(&image);
            if (!status) pith_image_free(&resized);
        }
        assert_int_equal(c.held, 0);
        if (c.calls < n) break;
        assert_int_equal(status, PITH_ERR_MEMORY);
    }
    free(bytes);
}

static void expect_module_error(const char *path, pith_status code, const char *message) {
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    options.module_path = path;
    pith_status status = pith_image_read(&image, IMAGES "rgb.png", &options, &err);
    if (status != code || !strstr(err.message, message))
        fail_msg("%d %s, not: %s", status, err.message, message);
}

/* HEIC and AVIF have a module of their own, which lies beside the other. */
static void expect_heif_error(const char *path, pith_status code, const char *message) {
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    options.module_path = path;
    pith_status status = pith_image_read(&image, IMAGES "rgb.heic", &options, &err);
    if (status != code || !strstr(err.message, message))
        fail_msg("%d %s, not: %s", status, err.message, message);
}

static void test_modules(void **state) {
    (void)state;
    char dir[] = "/tmp/pith-module-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/libpith_image.so", dir);
    expect_module_error(path, PITH_ERR_NOT_FOUND,
                        "libpith_image.so: there is no module; give the path");
    expect_module_error(dir, PITH_ERR_NOT_FOUND,
                        "/libpith_image.so: there is no module; give the path");
    FILE *f = fopen(path, "w");
    fputs("this is a text, not a module\n", f);
    fclose(f);
    expect_module_error(dir, PITH_ERR_UNSUPPORTED, "cannot be loaded; build or install it again");
    expect_heif_error(dir, PITH_ERR_NOT_FOUND,
                      "/libpith_heif.so: there is no module; give the path of libpith_heif.so");
    expect_heif_error(path, PITH_ERR_NOT_FOUND, "/libpith_heif.so: there is no module");
    unlink(path);
    snprintf(path, sizeof path, "%s/libpith_heif.so", dir);
    f = fopen(path, "w");
    fputs("this is a text, not a module\n", f);
    fclose(f);
    expect_heif_error(dir, PITH_ERR_UNSUPPORTED,
                      "cannot be loaded; install the Debian package libheif1");
    unlink(path);
    rmdir(dir);
    expect_module_error(PITH_BINARY_DIR "/libpith.so", PITH_ERR_UNSUPPORTED,
                        "not a module of libpith");
    expect_module_error(
        PITH_BINARY_DIR "/tests/odd_image_module.so", PITH_ERR_UNSUPPORTED,
        "the module has interface 5, this library needs 4; install the module of libpith");
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    /* needs no module */
    assert_int_equal(pith_image_read(&image, IMAGES "rgb.ppm", NULL, &err), 0);
    pith_image_free(&image);
}

/* Neither registered nor where it is searched: this program is in a folder without it. */
static void test_search(void **state) {
    (void)state;
    pith_image image;
    pith_error err = PITH_ERROR_INIT;
    static const pith_image_module odd = { PITH_IMAGE_MODULE_ABI + 1, "", NULL, 0 };
    static const pith_image_module empty = { PITH_IMAGE_MODULE_ABI, "", NULL, 0 };
    assert_int_equal(pith_image_register(&odd, &err), PITH_ERR_UNSUPPORTED);
    assert_int_equal(pith_image_register(&empty, &err), PITH_OK);
    assert_int_equal(pith_image_read(&image, IMAGES "rgb.png", NULL, &err), PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the module of decoders was built without PNG"));
    assert_int_equal(pith_image_register(NULL, &err), PITH_OK);
    pith_status status = pith_image_read(&image, IMAGES "rgb.png", NULL, &err);
    if (!status) {
        print_message("a module is installed on this machine\n");
        pith_image_free(&image);
        return;
    }
    assert_int_equal(status, PITH_ERR_NOT_FOUND);
    assert_non_null(
        strstr(err.message,
               "rgb.png: PNG pictures need the module libpith_image.so, which is not there: /"));
    assert_non_null(strstr(err.message, "build it with make, or set module_path"));
    assert_int_equal(pith_image_read(&image, IMAGES "rgb.avif", NULL, &err), PITH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message,
                           "AVIF pictures need the module libpith_heif.so, which is not there: /"));
    assert_non_null(
        strstr(err.message, "install the Debian package libheif-dev and build it with make"));
}

/* Sizes that fit in no memory are refused, whatever the picture. */
static void test_resize_limits(void **state) {
    (void)state;
    static const struct {
        int width, height, new_width, new_height, shortest;
        const char *message;
    } sizes[] = {
        { 1, 200000, 0, 0, 224, "would have 44800000 pixels along the other" },
        { 10, 10, 20000, 20000, 0, "would have 20000 x 20000 pixels; max_pixels is 100000000" },
        { 10, 10, -1, 5, 0, "give width and height, or" },
        { 10, 10, 5, 0, 0, "give width and height, or" },
        { 10, 10, 5, 5, 5, "give width and height, or" },
        { 1000000, 1, 1000, 50000, 0, NULL },
    };
    uint8_t *pixels = calloc(1000000, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pith_image image = { pixels, sizes[i].width, sizes[i].height, 1, NULL }, resized;
        pith_image_resize_options options = PITH_IMAGE_RESIZE_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        options.width = sizes[i].new_width;
        options.height = sizes[i].new_height;
        options.shortest_edge = sizes[i].shortest;
        pith_status status = pith_image_resize(&resized, &image, &options, &err);
        if (sizes[i].message &&
            (status != PITH_ERR_ARGUMENT || !strstr(err.message, sizes[i].message)))
            fail_msg("%d %s, not: %s", status, err.message, sizes[i].message);
        if (!status) pith_image_free(&resized);
    }
    pith_image empty = { NULL, 0, 0, 3, NULL }, two = { pixels, 2, 2, 2, NULL }, resized;
    pith_error err = PITH_ERROR_INIT;
    assert_int_equal(pith_image_resize(&resized, &empty, NULL, &err), PITH_ERR_ARGUMENT);
    assert_int_equal(pith_image_resize(&resized, &two, NULL, &err), PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "the picture has 2 channels"));
    free(pixels);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_many_pixels), cmocka_unit_test(test_large_streams),
        cmocka_unit_test(test_odd_files),       cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_wrong_bytes),     cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_modules),         cmocka_unit_test(test_search),
        cmocka_unit_test(test_resize_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
