/* message.c - see message.h.
 *
 * Names come from files and from arguments, and a terminal obeys what it is sent. So every message
 * is formatted first, and then copied without what a terminal would obey. */
#include "cli/base/message.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text_out.h"

/* More names than any line has. */
enum { COPIES = 16 };

/* Whether a control character begins here: C0, DEL, or C1 in UTF-8. */
static bool is_control(const unsigned char *p) {
    return *p < 0x20 || *p == 0x7F || (p[0] == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0);
}

char *printable(char *out, size_t size, const char *text) {
    size_t n = 0;
    const unsigned char *p = (const unsigned char *)text;
    for (; *p && n + 5 < size; p++) {
        if (!is_control(p)) {
            out[n++] = (char)*p;
            continue;
        }
        p += *p == 0xC2;
        n += (size_t)snprintf(out + n, size - n, "\\x%02x", *p);
    }
    out[n] = 0;
    if (*p) pith__text_cut(out, n + 1);
    return out;
}

const char *shown(const char *text) {
    static char copies[COPIES][4096];
    static unsigned next;
    bool clean = true;
    for (const char *p = text; *p && clean; p++) clean = !is_control((const unsigned char *)p);
    return clean ? text : printable(copies[next++ % COPIES], sizeof copies[0], text);
}

static void put_stars(char *from, const char *end) {
    for (; from < end; from++) *from = '*';
}

void hide_passwords(char *text) {
    static const char parameter[] = "password=";
    for (char *at = text; (at = strstr(at, "://"));) {
        at += 3;
        char *end = at + strcspn(at, " \n\"'"), *host = NULL, *name = strchr(at, ':');
        for (char *p = at; p < end; p++)
            if (*p == '@') host = p;
        if (host && name && name < host) put_stars(name + 1, host);
        at = end;
    }
    for (char *at = text; (at = strstr(at, parameter));) {
        at += sizeof parameter - 1;
        put_stars(at, at + strcspn(at, "& \n\"'"));
    }
}

static atomic_bool line_stands;

void note_over_line(void) { atomic_store(&line_stands, true); }

void note_line_end(void) {
    if (atomic_exchange(&line_stands, false)) fputs("\n", stderr);
}

void note(const char *format, ...) {
    char text[4000], shown[8000];
    va_list list;
    va_start(list, format);
    pith__text_format(text, sizeof text, format, list);
    va_end(list);
    hide_passwords(text);
    if (atomic_exchange(&line_stands, false)) fputs("\r\033[K", stderr);
    fprintf(stderr, "%s\n", printable(shown, sizeof shown, text));
}
