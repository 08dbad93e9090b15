/* detector.h - heads that find things in pictures.
 *
 * The outputs of a detector are grids over the whole picture, or belong to parts of it, so such a
 * head has no rows and no emit; it has this instead. There are two kinds. A detector of one network
 * says how the picture is laid out and decodes the outputs (`decode`). A cascade has several
 * networks and runs them itself (`find`). Which of the candidates stay, and the way back to pixels
 * of the picture, is the same for all (models/faces/detection.c). */
#ifndef PITH_MODELS_FACES_DETECTOR_H
#define PITH_MODELS_FACES_DETECTOR_H

#include "engine/graph/graph.h"
#include "pith/detect.h"

enum { PITH_DETECTOR_OUTPUTS = 16, PITH_DETECTOR_NETWORKS = 4 };

/* The network's outputs for one picture. */
typedef struct pith__detector_outputs {
    /* in the order of pith__detector_network.outputs; f32 */
    const pith_tensor *tensors[PITH_DETECTOR_OUTPUTS];
    int64_t width, height; /* of the network's input */
} pith__detector_outputs;

/* Candidates, in the order in which they were found. */
typedef struct pith__candidates {
    pith_face *items;
    size_t count, capacity;
    pith__arena *arena;
} pith__candidates;

/* An output that a network must have: one of this name, or else the first that is left with this
 * form. */
typedef struct pith__detector_output {
    const char *name; /* NULL: it goes by its form */
    int rank;         /* 0, without a name: the end of the list */
    int64_t width;    /* the last size */
} pith__detector_output;

/* A network by what it takes and gives. Its one input has four sizes, and everything is f32. */
typedef struct pith__detector_network {
    int64_t input[4]; /* the declared sizes; 0: any */
    pith__detector_output outputs[PITH_DETECTOR_OUTPUTS];
} pith__detector_network;

/* What a cascade works with, for one picture. */
typedef struct pith__detector_run pith__detector_run;
struct pith__detector_run {
    const pith_image *image; /* scaled, if the caller asks for that */
    const pith_detect_options *options;
    pith__arena *arena; /* memory until the picture is done */
    const pith_allocator *allocator;
    /* Runs one of the detector's networks. `outputs` are as in pith__detector_outputs and last
     * until its next run. */
    pith_status (*run)(pith__detector_run *self, pith__detector_outputs *outputs, int network,
                       const pith_tensor *input, pith_error *err);
};

typedef struct pith__detector {
    pith__detector_network networks[PITH_DETECTOR_NETWORKS]; /* one without outputs ends the list */
    /* One network: */
    int stride;    /* sides of the network's input are multiples of it */
    int planes[3]; /* which channel of RGB each plane of the input is; the numbers are 0 to 255 */
    /* Adds the candidates whose score is at least options->score_threshold, in pixels of the input.
     */
    pith_status (*decode)(pith__candidates *candidates, const pith__detector_outputs *outputs,
                          const pith_detect_options *options, pith_error *err);
    /* A cascade, in place of these: adds such candidates in pixels of run->image. NULL: `decode` is
     * there. */
    pith_status (*find)(pith__candidates *candidates, pith__detector_run *run, pith_error *err);
} pith__detector;

/* The number of its networks. */
int pith__detector_count(const pith__detector *detector);

/* Whether a graph, read and perhaps not inferred yet, is this network. Sets places to where each of
 * the network's outputs is among those of the graph. */
bool pith__detector_takes(int places[PITH_DETECTOR_OUTPUTS], const pith__detector_network *network,
                          const pith__graph *graph);

/* PITH_ERR_MEMORY if there is no room for one more. */
pith_status pith__candidates_add(pith__candidates *candidates, const pith_face *face,
                                 pith_error *err);

/* Sorts the candidates by falling score, in their order where scores are equal, and leaves out all
 * but the best top_k, and every one whose box overlaps a better one by more than the threshold.
 * Boxes are compared as OpenCV does: rounded towards zero; a single candidate is not looked at.
 * Source: NMSBoxes of OpenCV's modules/dnn. */
pith_status pith__candidates_choose(pith__candidates *candidates, float threshold, size_t top_k,
                                    pith_error *err);

#endif
