/* json_write.c - writes JSON text piece by piece to a sink. */
#include "base/formats/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/formats/decimal.h"
#include "base/unicode/utf8.h"

void pith__json_put(pith__json_out *out, const char *text) {
    pith__out_put(out->out, text, strlen(text));
}

/* Writes runs that need no escape as they are. A byte that is not valid UTF-8 becomes U+FFFD, so
 * that the output is JSON whatever the string is. */
void pith__json_put_string(pith__json_out *out, pith_str s) {
    pith__json_put(out, "\"");
    for (size_t i = 0; i < s.size;) {
        unsigned char c = (unsigned char)s.data[i];
        char escape[8];
        size_t good = 0;
        while (i + good < s.size && (unsigned char)s.data[i + good] >= 0x20 &&
               s.data[i + good] != '"' && s.data[i + good] != '\\')
            good++;
        good = pith__utf8_valid_prefix(s.data + i, good);
        pith__out_put(out->out, s.data + i, good);
        i += good;
        if (good || i == s.size) continue;
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else
            snprintf(escape, sizeof escape, "\\u%04x", c < 0x20 ? c : 0xFFFD);
        pith__json_put(out, escape);
        i++;
    }
    pith__json_put(out, "\"");
}

void pith__json_separate(pith__json_out *out) {
    if (out->comma) pith__json_put(out, ", ");
    out->comma = true;
}

void pith__json_key(pith__json_out *out, const char *name) {
    pith__json_separate(out);
    pith__json_put_string(out, pith__str_of(name));
    pith__json_put(out, ": ");
}

void pith__json_open(pith__json_out *out, const char *bracket) {
    pith__json_put(out, bracket);
    out->comma = false;
}

void pith__json_close(pith__json_out *out, const char *bracket) {
    pith__json_put(out, bracket);
    out->comma = true;
}

void pith__json_key_int(pith__json_out *out, const char *name, int64_t number) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    pith__json_key(out, name);
    pith__json_put(out, text);
}

void pith__json_key_double(pith__json_out *out, const char *name, double x) {
    char text[PITH_DECIMAL_CHARS];
    pith__decimal_print(text, 9, x);
    pith__json_key(out, name);
    pith__json_put(out, x - x == 0 ? text : "null");
}

void pith__json_key_bool(pith__json_out *out, const char *name, bool yes) {
    pith__json_key(out, name);
    pith__json_put(out, yes ? "true" : "false");
}

void pith__json_key_string(pith__json_out *out, const char *name, pith_str s) {
    pith__json_key(out, name);
    pith__json_put_string(out, s);
}
