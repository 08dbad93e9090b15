/* image_test.h - what the tests of pictures share. */
#ifndef IMAGE_TEST_H
#define IMAGE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/os/file.h"
#include "pith/image.h"
#include "pith/image_module.h"

#define IMAGES PITH_TEST_DATA "/images/"
#define MODULE PITH_BINARY_DIR "/libpith_image.so"

/* A file of tests/data/images, in memory of its own: reading beyond it shows under the address
 * sanitizer. */
static inline uint8_t *image_bytes(size_t *size, const char *name) {
    char path[512];
    pith__file file;
    snprintf(path, sizeof path, IMAGES "%s", name);
    if (pith__file_open(&file, path, false, NULL, NULL)) fail_msg("%s is missing", path);
    uint8_t *bytes = malloc(file.size + 1);
    assert_non_null(bytes);
    memcpy(bytes, file.data, file.size);
    bytes[file.size] = 0;
    *size = file.size;
    pith__file_close(&file);
    return bytes;
}

static inline pith_status image_decode(pith_image *image, const void *data, size_t size,
                                       int channels, pith_error *err) {
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    options.channels = channels;
    options.module_path = MODULE;
    return pith_image_decode(image, data, size, &options, err);
}

static inline void image_open(pith_image *image, const char *name, int channels) {
    pith_error err = PITH_ERROR_INIT;
    size_t size;
    uint8_t *bytes = image_bytes(&size, name);
    if (image_decode(image, bytes, size, channels, &err)) fail_msg("%s: %s", name, err.message);
    free(bytes);
}

#endif
