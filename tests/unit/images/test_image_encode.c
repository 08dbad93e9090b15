/* test_image_encode.c - pith_image_encode: what is written is read again; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pith/image.h"

typedef struct file {
    uint8_t *bytes;
    size_t size, most; /* most: further bytes are refused */
} file;

static int32_t take(void *user, const void *data, size_t size) {
    file *f = user;
    if (size > f->most - f->size) return 1;
    f->bytes = realloc(f->bytes, f->size + size + 1);
    memcpy(f->bytes + f->size, data, size);
    f->size += size;
    return 0;
}

static pith_image_encode_options as(const char *format, int quality) {
    pith_image_encode_options o = PITH_IMAGE_ENCODE_OPTIONS_INIT;
    o.format = format;
    o.quality = quality;
    o.module_path = PITH_BINARY_DIR;
    return o;
}

/* Slopes with a little noise; alpha is never 0, where WebP may change colours. */
static pith_image make_picture(int width, int height, int channels) {
    pith_image image = { malloc((size_t)width * (size_t)height * (size_t)channels), width, height,
                         channels, NULL };
    uint32_t noise = 7;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) {
                noise = noise * 1664525u + 1013904223u;
                image.pixels[((size_t)y * (size_t)width + (size_t)x) * (size_t)channels +
                             (size_t)c] =
                    (uint8_t)(20 + (x + y * (c + 1)) * 200 / (width + height * (c + 1)) +
                              (int)(noise >> 30));
            }
    return image;
}

/* Encodes, decodes, and returns the mean square of the differences to the picture as `channels`. */
static double round_trip(const pith_image *image, const pith_image_encode_options *o,
                         int channels) {
    file f = { .most = SIZE_MAX };
    pith_error err = PITH_ERROR_INIT;
    pith_image back;
    pith_image_options read = PITH_IMAGE_OPTIONS_INIT;
    read.module_path = PITH_BINARY_DIR;
    assert_int_equal(pith_image_encode(image, o, &(pith_writer){ take, NULL, &f }, &err), PITH_OK);
    assert_int_equal(pith_image_decode(&back, f.bytes, f.size, &read, &err), PITH_OK);
    assert_int_equal(back.channels, channels);
    assert_int_equal(back.width, image->width);
    assert_int_equal(back.height, image->height);
    double sum = 0;
    const size_t pixels = (size_t)back.width * (size_t)back.height;
    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c++) {
            int from = image->channels == 1 ? 0 : c;
            double d = (double)back.pixels[i * (size_t)channels + (size_t)c] -
                       image->pixels[i * (size_t)image->channels + (size_t)from];
            sum += d * d;
        }
    pith_image_free(&back);
    free(f.bytes);
    return sum / (double)(pixels * (size_t)channels);
}

static void round_trips(void **unused) {
    (void)unused;
    static const int sizes[][2] = { { 1, 1 }, { 37, 53 }, { 300, 7 } };
    for (size_t s = 0; s < 3; s++)
        for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
            pith_image image = make_picture(sizes[s][0], sizes[s][1], channels);
            pith_image_encode_options png = as("png", 0), webp = as("webp", 100),
                                      jpeg = as("jpeg", 95), poor = as("jpeg", 20);
            assert_true(round_trip(&image, &png, channels) == 0);
            assert_true(round_trip(&image, &webp, channels == 1 ? 3 : channels) == 0);
            double fine = round_trip(&image, &jpeg, channels == 1 ? 1 : 3),
                   coarse = round_trip(&image, &poor, channels == 1 ? 1 : 3);
            assert_true(fine < 4);
            if (s) assert_true(coarse > fine);
            webp.quality = 90;
            assert_true(round_trip(&image, &webp, channels == 1 ? 3 : channels) < 60);
            free(image.pixels);
        }
}

static void refused(void **unused) {
    (void)unused;
    static const char *const formats[] = { "png", "jpeg", "webp" };
    pith_error err = PITH_ERROR_INIT;
    file f = { .most = SIZE_MAX };
    pith_image image = make_picture(64, 64, 3), none = { 0 }, wide = make_picture(70000, 1, 3);
    pith_image_encode_options gif = as("gif", 0), tiff = as("tiff", 0), bad = as("jpeg", 101),
                              unnamed = as(NULL, 0);
    file png = { .most = SIZE_MAX };
    assert_int_equal(pith_image_encode(&image, &gif, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_int_equal(pith_image_encode(&image, &tiff, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_int_equal(pith_image_encode(&image, &unnamed, &(pith_writer){ take, NULL, &png }, &err),
                     PITH_OK);
    assert_memory_equal(png.bytes, "\x89PNG", 4);
    free(png.bytes);
    assert_int_equal(pith_image_encode(&image, &bad, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_ARGUMENT);
    for (int i = 0; i < 3; i++) {
        pith_image_encode_options o = as(formats[i], 0);
        file small = { .most = 30 };
        assert_int_equal(pith_image_encode(&none, &o, &(pith_writer){ take, NULL, &f }, &err),
                         PITH_ERR_ARGUMENT);
        assert_int_equal(pith_image_encode(&image, &o, &(pith_writer){ take, NULL, &small }, &err),
                         PITH_ERR_IO);
        free(small.bytes);
    }
    pith_image_encode_options jpeg = as("jpeg", 0), webp = as("webp", 0);
    assert_int_equal(pith_image_encode(&wide, &jpeg, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cannot be written as JPEG"));
    assert_int_equal(pith_image_encode(&wide, &webp, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_int_equal(f.size, 0);
    free(image.pixels);
    free(wide.pixels);
}

/* A profile that says for what it is, and no more: enough for JPEG and WebP, which do not look into
 * it. */
static void make_profile(uint8_t profile[160], const char *space) {
    memset(profile, 0, 160);
    profile[3] = 160;
    memcpy(profile + 16, space, 4);
    memcpy(profile + 36, "acsp", 4);
}

static void profiles(void **unused) {
    (void)unused;
    static const struct {
        const char *space, *format, *message;
        int channels;
    } cases[] = {
        { "RGB ", "jpeg", NULL, 3 },
        { "RGB ", "webp", NULL, 4 },
        { "GRAY", "jpeg", NULL, 1 },
        { "GRAY", "jpeg", "the colour profile is for grey; the picture has 3 channels", 3 },
        { "GRAY", "webp", "the colour profile is for grey; the picture has 3 channels", 1 },
        { "RGB ", "png", "the colour profile is for RGB; the picture has 1 channels", 1 },
        { "CMYK", "jpeg", "the colour profile is for other colours than grey and RGB", 3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t profile[160];
        pith_image_details details = PITH_IMAGE_DETAILS_INIT, found = PITH_IMAGE_DETAILS_INIT;
        pith_image image = make_picture(20, 10, cases[i].channels), back;
        pith_image_encode_options o = as(cases[i].format, 90);
        pith_image_options read = PITH_IMAGE_OPTIONS_INIT;
        pith_error err = PITH_ERROR_INIT;
        file f = { .most = SIZE_MAX };
        make_profile(profile, cases[i].space);
        details.profile = profile;
        details.profile_size = sizeof profile;
        details.dots[0] = 72;
        details.dots[1] = 150;
        o.details = &details;
        read.module_path = PITH_BINARY_DIR;
        read.details = &found;
        pith_status status = pith_image_encode(&image, &o, &(pith_writer){ take, NULL, &f }, &err);
        if (cases[i].message) {
            assert_int_equal(status, PITH_ERR_ARGUMENT);
            assert_non_null(strstr(err.message, cases[i].message));
        } else {
            assert_int_equal(status, PITH_OK);
            assert_int_equal(pith_image_decode(&back, f.bytes, f.size, &read, &err), PITH_OK);
            assert_int_equal(found.profile_size, sizeof profile);
            assert_memory_equal(found.profile, profile, sizeof profile);
            assert_int_equal(found.channels, cases[i].channels);
            assert_int_equal(found.profile_channels, cases[i].channels == 1 ? 1 : 3);
            assert_true(found.dots[0] == 72 && found.dots[1] == 150);
            pith_image_free(&back);
            pith_image_details_free(&found);
            assert_null(found.profile);
            assert_int_equal(pith_image_decode(&back, f.bytes, f.size / 4, &read, &err),
                             PITH_ERR_FORMAT);
            assert_null(found.profile);
        }
        free(image.pixels);
        free(f.bytes);
    }
}

/* What libpng finds fault with is an error, not a file without it. */
static void bad_profile(void **unused) {
    (void)unused;
    uint8_t profile[160];
    pith_image_details details = PITH_IMAGE_DETAILS_INIT;
    pith_image image = make_picture(20, 10, 3);
    pith_image_encode_options png = as("png", 0), jpeg = as("jpeg", 0);
    pith_error err = PITH_ERROR_INIT;
    file f = { .most = SIZE_MAX };
    make_profile(profile, "RGB ");
    details.profile = profile;
    details.profile_size = sizeof profile;
    png.details = jpeg.details = &details;
    assert_int_equal(pith_image_encode(&image, &png, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "its colour profile is damaged"));
    profile[36] = 'x';
    assert_int_equal(pith_image_encode(&image, &jpeg, &(pith_writer){ take, NULL, &f }, &err),
                     PITH_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "the colour profile is damaged"));
    pith_image_details_free(NULL);
    free(image.pixels);
    free(f.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(round_trips), cmocka_unit_test(refused),
                                        cmocka_unit_test(profiles), cmocka_unit_test(bad_profile) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
