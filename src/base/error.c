/* error.c - writes messages that are safe to show.
 *
 * A message is first formatted into a buffer of its own, because the arguments may point into the error that is being
 * rewritten. It is then copied through a filter: control characters and bytes that are not UTF-8 appear as \xNN. */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* If a message is too long, its last CAUSE_SIZE bytes are kept, because the cause stands at the end, and CUT replaces
 * the middle. Larger keeps more of the cause and less of the place. */
#define CAUSE_SIZE 384
#define CUT " … "

/* Appends text to out from `used` on, whole characters only, and ends it with NUL. Returns the new length. */
static size_t append_clean(char *out, size_t used, const char *text) {
    size_t left = strlen(text);
    while (left) {
        const char *p = text;
        size_t want = 1;
        uint32_t c = 0;
        while (want <= 4 && want <= left && pith_utf8_valid_prefix(text, want) != want) want++;
        bool valid = want <= 4 && want <= left;
        if (valid)
            c = pith_utf8_next(&p);
        else
            want = 1;
        if (!valid || c < 0x20 || (c >= 0x7F && c < 0xA0)) {
            for (size_t i = 0; i < want; i++) {
                if (used + 4 >= PITH_ERROR_MESSAGE_SIZE) goto full;
                static const char hex[] = "0123456789abcdef";
                unsigned char b = (unsigned char)text[i];
                out[used++] = '\\', out[used++] = 'x', out[used++] = hex[b >> 4], out[used++] = hex[b & 15];
            }
        } else {
            if (used + want >= PITH_ERROR_MESSAGE_SIZE) break;
            memcpy(out + used, text, want);
            used += want;
        }
        text += want;
        left -= want;
    }
full:
    out[used] = 0;
    return used;
}

pith_status pith_fail(pith_error *err, pith_status code, const char *format, ...) {
    if (!err) return code;
    char text[PITH_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append_clean(err->message, 0, text);
    return err->code = code;
}

pith_status pith_fail_at(pith_error *err, pith_status code, const char *format, ...) {
    if (!err) return code;
    char text[PITH_ERROR_MESSAGE_SIZE], whole[2 * PITH_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (err->code == PITH_OK) err->code = code, err->message[0] = 0;
    size_t used = append_clean(whole, 0, text);
    strcpy(whole + used, err->message);
    used += strlen(err->message);
    if (used < PITH_ERROR_MESSAGE_SIZE) {
        memcpy(err->message, whole, used + 1);
        return err->code;
    }
    /* Too many places: the middle goes, since the cause stands at the end. */
    const char *end = whole + used - CAUSE_SIZE;
    while ((*end & 0xC0) == 0x80) end++;
    size_t head = PITH_ERROR_MESSAGE_SIZE - CAUSE_SIZE - sizeof CUT;
    while ((whole[head] & 0xC0) == 0x80) head--;
    memcpy(err->message, whole, head);
    memcpy(err->message + head, CUT, sizeof CUT - 1);
    strcpy(err->message + head + sizeof CUT - 1, end);
    return err->code;
}

pith_status pith_fail_memory(pith_error *err, size_t bytes) {
    return pith_fail(err, PITH_ERR_MEMORY, "out of memory: %zu bytes are needed", bytes);
}
