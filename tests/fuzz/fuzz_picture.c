/* Any bytes as a picture: decoded, resized and made the input of a model, or refused, within a
 * small limit on pixels. */
#include <stdint.h>
#include <stdlib.h>

#include "pith/image.h"
#include "pith/image_module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_image image, resized;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    pith_image_resize_options resize = PITH_IMAGE_RESIZE_OPTIONS_INIT;
    if (pith_image_register(&pith_image_codecs, NULL)) abort();
    options.max_pixels = 1 << 18;
    options.channels = (const int32_t[]){ 0, 1, 3, 4 }[size % 4];
    if (pith_image_decode(&image, data, size, &options, NULL)) return 0;
    if (options.channels && image.channels != options.channels) abort();
    resize.shortest_edge = 9;
    resize.filter = PITH_IMAGE_NEAREST + (int32_t)(size % 6);
    if (!pith_image_resize(&resized, &image, &resize, NULL)) {
        unsigned sum = 0;
        for (int64_t i = 0; i < (int64_t)resized.width * resized.height * resized.channels; i++)
            sum += resized.pixels[i];
        volatile unsigned seen = sum;
        (void)seen;
        pith_image_free(&resized);
    }
    pith_image_free(&image);
    return 0;
}
