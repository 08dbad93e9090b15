/* text_runs.h - running the texts of a calibration through an encoder, some at a time, for what its
 * steps see. */
#ifndef PITH_MODELS_QUANTIZE_TEXT_RUNS_H
#define PITH_MODELS_QUANTIZE_TEXT_RUNS_H

#include "models/encode/encoder.h"

typedef struct pith__text_runs {
    pith__encoder *encoder;
    const pith_calibrate_options *options; /* texts are set; its call context is not looked at */
    pith__stop *stop;                      /* may be NULL, like the next one */
    pith__progress *progress;
    void *user;
    pith_status (*after)(void *user); /* called after some texts; their number is added to *done
                                         before */
    bool (*enough)(void *user);       /* asked then; true: the other texts are not run. NULL: all
                                         are */
    size_t *done, total;              /* for progress; done may be NULL */
    pith_error *err;
} pith__text_runs;

/* How many of the texts are run. */
size_t pith__text_runs_count(const pith_calibrate_options *options);
/* Runs them on one thread, in chunks that do not depend on the machine. Steps are reported to the
 * encoder's trace. */
pith_status pith__text_runs_all(const pith__text_runs *runs);

#endif
