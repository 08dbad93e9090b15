/* detection.h - faces in pictures: pixels to the network's input, and its outputs to faces. */
#ifndef PITH_MODELS_FACES_DETECTION_H
#define PITH_MODELS_FACES_DETECTION_H

#include "engine/runtime/idle_runners.h"
#include "models/faces/detector.h"
#include "models/model.h"

/* One of a detector's networks. */
typedef struct pith__detection_network {
    const pith__program *program;
    int places[PITH_DETECTOR_OUTPUTS]; /* of its outputs among those of the graph */
    pith__idle_runners idle;
} pith__detection_network;

/* The way of pictures through a detector; made when it is first asked for, and kept by the model.
 */
typedef struct pith__detection {
    pith__arena arena;
    const pith__head *head;
    int64_t dims[2]; /* height and width that the model declares; -1: any */
    int count;
    pith__detection_network networks[PITH_DETECTOR_NETWORKS];
    pith_model *parts[PITH_DETECTOR_NETWORKS]; /* of networks after the first */
} pith__detection;

pith_status pith__model_detect(pith_faces *faces, const pith_model *model, const pith_image *images,
                               size_t count, const pith_detect_options *options, pith_error *err);
/* NULL is allowed. */
void pith__faces_release(pith_faces *faces);
void pith__detection_free(pith__detection *detection, const pith_allocator *allocator);

#endif
