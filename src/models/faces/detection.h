/* detection.h - faces in pictures: pixels to the network's input, and its outputs to faces. */
#ifndef PITH_MODELS_FACES_DETECTION_H
#define PITH_MODELS_FACES_DETECTION_H

#include "models/faces/detector.h"
#include "models/model.h"
#include "engine/runtime/idle_runners.h"

/* One of a detector's networks. */
typedef struct pith_detection_network {
    const pith_program *program;
    int places[PITH_DETECTOR_OUTPUTS]; /* of its outputs among those of the graph */
    pith_idle_runners idle;
} pith_detection_network;

/* The way of pictures through a detector; made when it is first asked for, and kept by the model. */
typedef struct pith_detection {
    pith_arena arena;
    const pith_head *head;
    int64_t dims[2]; /* height and width that the model declares; -1: any */
    int count;
    pith_detection_network networks[PITH_DETECTOR_NETWORKS];
    pith_model *parts[PITH_DETECTOR_NETWORKS]; /* of networks after the first */
} pith_detection;

pith_status pith_model_detect(pith_faces *faces, const pith_model *model, const pith_image *images, size_t count,
                              const pith_detect_options *options, pith_error *err);
/* NULL is allowed. */
void pith_faces_release(pith_faces *faces);
void pith_detection_free(pith_detection *detection, const pith_allocator *allocator);

#endif
