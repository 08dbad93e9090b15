/* api_build.c - the public functions of pith/build.h. */
#include "api/entry.h"
#include "models/describe/build_info.h"

pith_status pith_build_report(pith_build_info *info, pith_error *err) {
    PITH_ENTRY(pith__build_info_fill(info, err));
}

pith_status pith_runtime_probe(pith_runtime_report *report, const char *runtime,
                               const pith_runtime_options *options, pith_error *err) {
    PITH_ENTRY(pith__build_find_runtime(report, runtime, options, err));
}
