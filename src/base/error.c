/* error.c - writes messages that are safe to show.
 *
 * A message is first formatted into a buffer of its own, because the arguments may point into the
 * error that is being rewritten. It is then copied through a filter: control characters and bytes
 * that are not UTF-8 appear as \xNN. */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text_out.h"
#include "base/unicode/utf8.h"

/* If a message is too long, its last CAUSE_SIZE bytes are kept, because the cause stands at the
 * end, and CUT replaces the middle. Larger keeps more of the cause and less of the place. */
#define CAUSE_SIZE 384
#define CUT " … "

/* The character at text as it is shown: itself, or \xNN for each of its bytes. Returns its length
 * in shown and moves text behind it. */
static size_t clean_character(char shown[16], const char **text, size_t left) {
    static const char hex[] = "0123456789abcdef";
    const char *begin = *text, *p = begin;
    size_t want = 1;
    while (want <= 4 && want <= left && pith__utf8_valid_prefix(begin, want) != want) want++;
    const bool valid = want <= 4 && want <= left;
    const uint32_t c = valid ? pith__utf8_next(&p) : 0;
    if (!valid) want = 1;
    *text = begin + want;
    if (valid && c >= 0x20 && (c < 0x7F || c >= 0xA0)) {
        memcpy(shown, begin, want);
        return want;
    }
    for (size_t i = 0; i < want; i++) {
        const unsigned char b = (unsigned char)begin[i];
        const char bytes[] = { '\\', 'x', hex[b >> 4], hex[b & 15] };
        memcpy(shown + 4 * i, bytes, sizeof bytes);
    }
    return 4 * want;
}

/* Appends text to out from `used` on, whole characters only and "…" if it is cut, and ends it with
 * NUL. Returns the new length. */
static size_t append_clean(char *out, size_t used, const char *text) {
    static const char mark[] = "…";
    const char *end = text + strlen(text);
    size_t marked = used; /* where the mark fits */
    while (text < end) {
        char shown[16];
        const size_t size = clean_character(shown, &text, (size_t)(end - text));
        if (used + size >= PITH_ERROR_MESSAGE_SIZE) {
            memcpy(out + marked, mark, sizeof mark);
            return marked + sizeof mark - 1;
        }
        memcpy(out + used, shown, size);
        used += size;
        if (used + sizeof mark <= PITH_ERROR_MESSAGE_SIZE) marked = used;
    }
    out[used] = 0;
    return used;
}

pith_status pith__fail(pith_error *err, pith_status code, const char *format, ...) {
    if (!err) return code;
    char text[PITH_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    pith__text_format(text, sizeof text, format, args);
    va_end(args);
    append_clean(err->message, 0, text);
    return err->code = code;
}

/* Puts a place in front of the message. What is kept when the message grows too long is its
 * beginning, where the outermost place is, and its end, where the cause is. */
pith_status pith__fail_at(pith_error *err, pith_status code, const char *format, ...) {
    if (!err) return code;
    char text[PITH_ERROR_MESSAGE_SIZE], whole[2 * PITH_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    pith__text_format(text, sizeof text, format, args);
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

pith_status pith__fail_memory(pith_error *err, size_t bytes) {
    return pith__fail(err, PITH_ERR_MEMORY, "out of memory: %zu bytes are needed", bytes);
}
