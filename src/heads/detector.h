/* detector.h - heads that find things in pictures.
 *
 * The outputs of a detector are grids over the whole picture, so such a head has no rows and no emit; it has this
 * instead. What the picture's pixels become, and which of the candidates stay, is the same for all of them
 * (model/detection.c). */
#ifndef PITH_HEADS_DETECTOR_H
#define PITH_HEADS_DETECTOR_H

#include "base/memory.h"
#include "pith/detect.h"

enum { PITH_DETECTOR_OUTPUTS = 16 };

/* The network's outputs for one picture. */
typedef struct pith_detector_outputs {
    const pith_tensor *tensors[PITH_DETECTOR_OUTPUTS]; /* by place in pith_detector.outputs; f32 */
    int64_t width, height;                             /* of the network's input */
} pith_detector_outputs;

/* Candidates, in the order in which they were found. */
typedef struct pith_candidates {
    pith_face *items;
    size_t count, capacity;
    pith_arena *arena;
} pith_candidates;

typedef struct pith_detector {
    const char *outputs[PITH_DETECTOR_OUTPUTS]; /* names of the outputs that it reads; NULL ends the list */
    int stride;                                 /* sides of the network's input are multiples of it */
    int planes[3]; /* which channel of RGB each plane of the input is; the numbers are 0 to 255 */
    /* Adds the candidates whose score is at least options->score_threshold, in pixels of the input. */
    pith_status (*decode)(pith_candidates *candidates, const pith_detector_outputs *outputs,
                          const pith_detect_options *options, pith_error *err);
} pith_detector;

/* PITH_ERR_MEMORY if there is no room for one more. */
pith_status pith_candidates_add(pith_candidates *candidates, const pith_face *face, pith_error *err);

/* Sorts the candidates by falling score, in their order where scores are equal, and leaves out all but the best top_k,
 * and every one whose box overlaps a better one by more than the threshold. Boxes are compared as OpenCV does: rounded
 * towards zero; a single candidate is not looked at. Source: NMSBoxes of OpenCV's modules/dnn. */
pith_status pith_candidates_choose(pith_candidates *candidates, float threshold, size_t top_k, pith_error *err);

#endif
