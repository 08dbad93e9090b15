/* open_model.h - making and destroying a model; the caller has set the floating-point mode. */
#ifndef PITH_MODELS_OPEN_OPEN_MODEL_H
#define PITH_MODELS_OPEN_OPEN_MODEL_H

#include "models/model.h"

/* Where a model is read from. */
typedef struct pith__origin {
    pith_status (*open)(pith_model *model, const struct pith__origin *origin, pith_error *err);
    const char *path;
    pith_str bytes;
    uint32_t network; /* of a compiled file with the networks of a detector */
    pith__held *held; /* the files of a source, with its path as it was found; NULL: none */
} pith__origin;
pith__origin pith__origin_path(const char *path); /* a file, a directory or a name of the model
                                                     cache */
pith__origin pith__origin_file(const char *path); /* a file */
pith__origin pith__origin_memory(pith_str bytes);

/* Opens a model as pith_model_open does, but runs only the passes that `limits` allows (NULL: all).
 */
pith_status pith__model_open_limited(pith_model **model, const pith__origin *origin,
                                     const pith_open_options *options,
                                     const pith__opt_limits *limits, pith_error *err);
/* The same as part of a call that may be stopped, whose options are not these. stop may be NULL. */
pith_status pith__model_open_stoppable(pith_model **model, const pith__origin *origin,
                                       const pith_open_options *options,
                                       const pith__opt_limits *limits, pith__stop *stop,
                                       pith_error *err);
/* Implements pith_model_open and pith_model_open_memory, with the check of passes if the options
 * ask for it. */
pith_status pith__model_make(pith_model **model, pith__origin origin,
                             const pith_open_options *options, pith_error *err);
/* Makes a model that is opened no further than to its reader, in whose place `identify` is called:
 * path, directory and reader are known. */
pith_status pith__model_identify(
    pith_model **model, const pith__origin *origin, const pith_open_options *options,
    pith_status (*identify)(pith_model *model, const struct pith__source *source, pith_error *err),
    pith__stop *stop, pith_error *err);
void pith__model_destroy(pith_model *model);
/* Notes what a model takes whose texts have an encoder, or whose outputs modules added to
 * (base/piece_listener.h). */
void pith__texts_note_use(void);

#endif
