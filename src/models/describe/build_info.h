/* build_info.h - what a host is told of the build. */
#ifndef PITH_MODELS_DESCRIBE_BUILD_INFO_H
#define PITH_MODELS_DESCRIBE_BUILD_INFO_H

#include "pith/build.h"

/* Fills as much of the caller's struct as its size says there is. */
pith_status pith__build_info_fill(pith_build_info *info, pith_error *err);

/* pith_runtime_probe. */
pith_status pith__build_find_runtime(pith_runtime_report *report, const char *runtime,
                                     const pith_runtime_options *options, pith_error *err);

#endif
