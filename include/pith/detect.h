/* pith/detect.h - faces in pictures, with YuNet or MTCNN: where they are, and where eyes, nose and
 * mouth are.
 *
 *     pith_faces faces;
 *     if (pith_model_open(&model, "face_detection_yunet_2023mar.onnx", NULL, &err))
 *         puts(err.message);
 *     if (pith_image_read(&picture, "group.jpg", NULL, &err)) puts(err.message);
 *     if (pith_detect(&faces, model, &picture, 1, NULL, &err)) puts(err.message);
 *     for (size_t i = 0; i < faces.count; i++)
 *         printf("%.0f %.0f\n", faces.faces[i].box[0], faces.faces[i].box[1]);
 *     pith_faces_free(&faces);
 *
 * The rules of pith.h hold here too. All functions may be called by several threads at once. */
#ifndef PITH_DETECT_H
#define PITH_DETECT_H

#include "pith/call.h"
#include <pith/image.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PITH_FACE_LANDMARKS = 5 };

/* All in pixels of the picture; the top left corner of its first pixel is 0, 0. */
typedef struct pith_face {
    float box[4]; /* x and y of the top left corner, width, height; parts may lie outside of the
                     picture */
    float landmarks[PITH_FACE_LANDMARKS][2]; /* x, y of the person's right eye, left eye, nose tip,
                                                right and left corner of the mouth */
    float score;                             /* 0 to 1 */
} pith_face;

/* The faces of one picture. */
typedef struct pith_faces {
    pith_face *faces; /* [count], by falling score; NULL if there are none */
    size_t count;
    const pith_allocator *allocator; /* of faces; NULL: the library's own */
} pith_faces;

/* Frees the faces and sets the struct to zeros. NULL and zeros are allowed. */
PITH_API void pith_faces_free(pith_faces *faces);

/* How YuNet's two numbers, a face and how well the box fits it, become one score; MTCNN has one
 * number. */
typedef enum pith_face_score {
    PITH_FACE_SCORE_ROOT = 0,   /* the square root of their product, as in OpenCV's
                                   FaceDetectorYN */
    PITH_FACE_SCORE_PRODUCT = 1 /* their product, as in the evaluation of YuNet's authors */
} pith_face_score;

/* As width and height of pith_detect_options: pictures keep their size, as in OpenCV's
 * FaceDetectorYN. */
#define PITH_DETECT_OWN_SIZE (-1)

/* In the call context, only log has no effect; progress reports "pictures", and allocator is
 * that of the faces and must outlive them. */
typedef struct pith_detect_options {
    pith_call call;
    float score_threshold; /* faces with a lower score are left out; at most 1. 0: 0.9; a negative
                              number: none is left out */
    float nms_threshold;   /* of two boxes that overlap by more (area of both divided by area of
                              either) the one with the lower score is left out; at most 1. 0: 0.3; a
                              negative number stands for 0 */
    int32_t top_k;         /* the most candidates that are compared with each other, those with the
                              best scores; 0: 5000 */
    int32_t score;         /* a pith_face_score */
    int32_t width, height; /* the picture is scaled, in its proportions, to fit into so many pixels.
                              Both 0: YuNet looks at it at up to two sizes, for faces of any size;
                              MTCNN does so by itself. Both PITH_DETECT_OWN_SIZE: it keeps its size.
                              Zeros fill it on the right and below to multiples of 32. */
} pith_detect_options;

#define PITH_DETECT_OPTIONS_INIT PITH_OPTIONS_INIT(pith_detect_options)

/* Finds the faces of pictures: faces[count], which the caller frees one by one. The model is any
 * file of YuNet, with outputs cls_8 to kps_32, or a directory with the three networks of MTCNN
 * (docs/faces.md). A picture may have any size, whatever the file declares, and 1, 3 or 4 channels;
 * alpha is dropped. Its faces do not depend on the other pictures or on the number of threads.
 * Thresholds, and the rounding of boxes when they are compared, are those of OpenCV's
 * FaceDetectorYN; with PITH_DETECT_OWN_SIZE the faces are its faces too.
 *   - By default a picture that fits into 640x640 is looked at in its own size, and at half of it
 *     if a large face has a low score. A larger one is looked at scaled to fit into 320x320, and in
 *     its own size if that is no more than full HD (1920x1080), else as large as three runs of
 *     640x640 in all allow. Where boxes overlap, the best score decides.
 *   - A model that was opened with PITH_OPEN_STRICT_SHAPES accepts only the size that its file
 *     declares.
 *   - ONNX Runtime accepts declared sizes only; the sizes above are then put together from windows
 *     of the declared size.
 * After an error no faces are held. An error names the picture by its index. PITH_ERR_UNSUPPORTED:
 * the model is no detector that is known. */
PITH_API pith_status pith_detect(pith_faces *faces, const pith_model *model,
                                 const pith_image *images, size_t count,
                                 const pith_detect_options *options, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
