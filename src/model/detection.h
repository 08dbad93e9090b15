/* detection.h - faces in pictures: pixels to the network's input, and its outputs to faces. */
#ifndef PITH_MODEL_DETECTION_H
#define PITH_MODEL_DETECTION_H

#include "heads/detector.h"
#include "model/model.h"
#include "runtime/idle_runners.h"

/* The way of pictures through a detector; made when it is first asked for, and kept by the model. */
typedef struct pith_detection {
    pith_arena arena;
    const pith_head *head;
    int places[PITH_DETECTOR_OUTPUTS]; /* of the detector's outputs among those of the graph */
    int64_t dims[2];                   /* height and width that the model declares; -1: any */
    pith_idle_runners idle;
} pith_detection;

pith_status pith_model_detect(pith_faces *faces, const pith_model *model, const pith_image *images, size_t count,
                              const pith_detect_options *options, pith_error *err);
/* NULL is allowed. */
void pith_faces_release(pith_faces *faces);
void pith_detection_free(pith_detection *detection, const pith_allocator *allocator);

#endif
