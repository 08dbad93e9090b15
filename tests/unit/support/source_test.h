/* source_test.h - a call on the source of a path, which is opened and closed around it. */
#ifndef PITH_TESTS_SUPPORT_SOURCE_TEST_H
#define PITH_TESTS_SUPPORT_SOURCE_TEST_H

#include "pith/pith.h"

/* The status of `call`, an expression with `source` in it, or of opening the path. */
#define WITH_SOURCE(path, source_flags, call)                                                      \
    __extension__({                                                                                \
        pith_source_options from_ = PITH_SOURCE_OPTIONS_INIT;                                      \
        pith_source *source = NULL;                                                                \
        from_.flags = (source_flags);                                                              \
        pith_status status_ = pith_source_open(&source, path, &from_, &err);                       \
        if (!status_) status_ = (call);                                                            \
        pith_source_close(source);                                                                 \
        status_;                                                                                   \
    })

#endif
