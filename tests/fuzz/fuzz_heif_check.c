/* Any bytes as a HEIC or AVIF file: the sizes in its streams are found, or it is refused. libheif
 * is not called. */
#include <stdint.h>
#include <stdlib.h>

#include "heif_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_image_call call = { .data = data, .size = size, .max_pixels = 1 << 18 };
    pith_image_outcome outcome = pith__heif_check(&call);
    if ((outcome == PITH_IMAGE_DAMAGED || outcome == PITH_IMAGE_UNKNOWN) && !call.message[0])
        abort();
    return 0;
}
