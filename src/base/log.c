/* log.c - writes one line to the host's log callback. */
#include "base/log.h"
#include "base/text_out.h"

#include <stdarg.h>
#include <stdio.h>

void pith__log_write(const pith_log *log, pith_log_level level, const char *format, ...) {
    if (!log || !log->write) return;
    char line[PITH_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    pith__text_format(line, sizeof line, format, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F) *p = ' ';
    log->write(log->user, level, line);
}
