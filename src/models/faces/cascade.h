/* cascade.h - directories and compiled files with the networks of a detector that has several. */
#ifndef PITH_MODELS_FACES_CASCADE_H
#define PITH_MODELS_FACES_CASCADE_H

#include "models/model.h"

/* Looks at the .onnx files of a directory, if there are as many as some detector has networks, or a
 * few more. If each network is one of them, by its inputs and outputs, the model gets the detector
 * and the paths. Else model->cascade stays NULL. A file that cannot be read is none of them. */
pith_status pith__cascade_find(pith_model *model, const char *dir, pith_error *err);

/* Opens the networks after the first: parts[1 ..]; set up as the model is, whose memory limit they
 * share. The caller destroys those that are not NULL, also after an error. */
pith_status pith__cascade_open(pith_model **parts, const pith_model *model, pith__stop *stop,
                               pith_error *err);

/* Gives a model that was read from a compiled file the detector that the section "networks" names.
 */
pith_status pith__cascade_load(pith_model *model, pith_error *err);

/* The part "cascades" (base/optional_part.h): the functions above. */
typedef struct pith__cascade_part {
    pith_status (*find)(pith_model *model, const char *dir, pith_error *err);
    pith_status (*open)(pith_model **parts, const pith_model *model, pith__stop *stop,
                        pith_error *err);
    pith_status (*load)(pith_model *model, pith_error *err);
} pith__cascade_part;

#endif
