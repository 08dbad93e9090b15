/* log.h - one line to the host's log callback, if there is one. */
#ifndef PITH_BASE_LOG_H
#define PITH_BASE_LOG_H

#include "pith/types.h"

void pith__log_write(const pith_log *log, pith_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
