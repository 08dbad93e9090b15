/* false_ort.h - what the false library of ONNX Runtime tells test_runtime_ort.c: the symbol
 * false_ort_state. */
#ifndef FALSE_ORT_H
#define FALSE_ORT_H

#include <stddef.h>

typedef struct false_ort_state {
    char calls[4000]; /* one line per call that sets something up */
    int alive;        /* objects that were made and not released, statuses included */
    int calls_made;   /* of functions that may fail */
    int fail_at;      /* this call returns a status; 0: none */
    int sessions;     /* made so far */
    int waits;        /* 1: a run goes on until it is told to end */
    int unknown;      /* 1: providers other than CUDA and TensorRT are refused */
} false_ort_state;

#endif
