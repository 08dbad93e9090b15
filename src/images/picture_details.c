/* picture_details.c - see picture_details.h. The header of a profile is in ICC.1:2022, 7.2: its
 * size comes first, the colour space is at byte 16, the signature "acsp" at byte 36. */
#include "images/picture_details.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory/memory.h"

enum { PROFILE_HEADER = 128 };
/* Resolutions beyond these are mistakes. */
static const double dots_least = 0.01, dots_most = 1e6;

int pith__profile_channels(const uint8_t *profile, size_t size) {
    if (size < PROFILE_HEADER || memcmp(profile + 36, "acsp", 4) != 0) return -1;
    const uint64_t said = (uint64_t)profile[0] << 24 | (uint64_t)profile[1] << 16 |
                          (uint64_t)profile[2] << 8 | profile[3];
    if (said < PROFILE_HEADER || said > size) return -1;
    if (!memcmp(profile + 16, "RGB ", 4)) return 3;
    return !memcmp(profile + 16, "GRAY", 4) ? 1 : 0;
}

static double details_dots(double dots) {
    return dots >= dots_least && dots <= dots_most ? dots : 0;
}

static const pith_allocator *details_allocator(const pith_allocator *allocator) {
    return allocator ? allocator : &pith__allocator_default;
}

pith_status pith__details_take(pith_image_details *details, const pith_image_header *header,
                               bool turned, const pith_allocator *allocator, pith_error *err) {
    *details = (pith_image_details)PITH_IMAGE_DETAILS_INIT;
    details->channels = (int32_t)header->meaning;
    const double across = details_dots(header->dots[0]), down = details_dots(header->dots[1]);
    details->dots[0] = turned ? down : across;
    details->dots[1] = turned ? across : down;
    if (header->colours) snprintf(details->colours, sizeof details->colours, "%s", header->colours);
    if (!header->profile || !header->profile_size) return PITH_OK;
    const int channels = pith__profile_channels(header->profile, header->profile_size);
    if (channels < 0) {
        snprintf(details->colours, sizeof details->colours, "its colour profile is damaged");
        return PITH_OK;
    }
    details->profile = pith__memory_alloc(details_allocator(allocator), header->profile_size, 1);
    if (!details->profile) return pith__fail_memory(err, header->profile_size);
    memcpy(details->profile, header->profile, header->profile_size);
    details->profile_size = header->profile_size;
    details->profile_channels = channels;
    details->allocator = allocator;
    return PITH_OK;
}

void pith__details_free(pith_image_details *details) {
    if (!details) return;
    if (details->profile)
        pith__memory_free(details_allocator(details->allocator), details->profile);
    *details = (pith_image_details)PITH_IMAGE_DETAILS_INIT;
}
