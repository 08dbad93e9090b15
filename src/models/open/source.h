/* source.h - the struct behind pith_source: where a model is read from, with its files held. */
#ifndef PITH_MODELS_OPEN_SOURCE_H
#define PITH_MODELS_OPEN_SOURCE_H

#include "models/open/held_files.h"
#include "models/open/open_model.h"
#include "pith/source.h"

struct pith_source {
    pith__account account;
    pith__arena arena;
    pith__held_files files;
    atomic_size_t users; /* who opened it, until it is closed, and the models opened from it */
    const char *path;    /* NULL: bytes in memory */
    pith_str bytes;      /* in memory, or data NULL */
    const char *model_file, *route;
    size_t memory_limit;
    const struct pith_operator_set *operators; /* with a reference; NULL: none */
    pith_source_info info;
};

/* The implementations of pith_source_open, pith_source_open_memory and pith_source_close. The
 * caller has set the floating-point mode, here and below. */
pith_status pith__model_source_open(pith_source **source, const char *path, pith_str bytes,
                                    const pith_source_options *options, pith_error *err);
void pith__model_source_close(pith_source *source);
pith_status pith__model_source_report(pith_source_info *info, const pith_source *source,
                                      pith_error *err);

/* Gives the options of opening what the source says; they must not name a file or a route. */
pith_status pith__model_source_options(pith_open_options *options, const pith_source *source,
                                       pith_error *err);
/* What pith__model_open_limited and the like open with these options. */
pith__origin pith__model_source_origin(const pith_source *source);
/* The implementation of pith_model_open_source. */
pith_status pith__model_source_open_model(pith_model **model, const pith_source *source,
                                          const pith_open_options *options, pith_error *err);

/* The bytes of a source that is one file, which is closed with it; of a directory the error of
 * opening it as a file. */
pith_status pith__model_source_bytes(pith_str *bytes, const pith_source *source, pith__stop *stop,
                                     pith_error *err);

#endif
