/* jpeg2000_cost.h - what a JPEG 2000 codestream makes its decoder do, counted before it is decoded.
 */
#ifndef PITH_IMAGE_JPEG2000_COST_H
#define PITH_IMAGE_JPEG2000_COST_H

#include "codec.h"

/* Reads the markers of the codestream in [stream, end), which begins with SOC and SIZ: the main
 * header and those of all tile-parts. PITH_IMAGE_UNKNOWN if there are more tiles, precincts, code
 * blocks, packets or steps from packet to packet than a picture of that size has,
 * PITH_IMAGE_DAMAGED if the markers cannot be followed; both with a message. */
pith_image_outcome pith__jpeg2000_cost(pith_image_call *call, const uint8_t *stream,
                                       const uint8_t *end);

#endif
