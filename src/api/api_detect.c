/* api_detect.c - the public functions of pith/detect.h. */
#include "api/entry.h"
#include "models/faces/detection.h"

void pith_faces_free(pith_faces *faces) { pith__faces_release(faces); }

pith_status pith_detect(pith_faces *faces, const pith_model *model, const pith_image *images,
                        size_t count, const pith_detect_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_detect(faces, model, images, count, options, err));
}
