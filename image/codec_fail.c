/* codec_fail.c - messages of decoders. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"

pith_image_outcome pith__codec_fail(pith_image_call *call, pith_image_outcome outcome,
                                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(call->message, sizeof call->message, format, args);
    va_end(args);
    size_t length = strlen(call->message);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)call->message[i] < ' ' || (unsigned char)call->message[i] > '~')
            call->message[i] = ' ';
    while (length && call->message[length - 1] == ' ') call->message[--length] = 0;
    return outcome;
}
