/* json_write.c - writes JSON text piece by piece to a sink. */
#include "base/formats/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/unicode/utf8.h"

void pith_json_put(pith_json_out *out, const char *text) { out->write(out->user, text, strlen(text)); }

void pith_json_put_string(pith_json_out *out, pith_str s) {
    pith_json_put(out, "\"");
    for (size_t i = 0; i < s.size;) {
        unsigned char c = (unsigned char)s.data[i];
        char escape[8];
        size_t good = 0;
        while (i + good < s.size && (unsigned char)s.data[i + good] >= 0x20 && s.data[i + good] != '"' &&
               s.data[i + good] != '\\')
            good++;
        good = pith_utf8_valid_prefix(s.data + i, good);
        out->write(out->user, s.data + i, good);
        i += good;
        if (good || i == s.size) continue;
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else
            snprintf(escape, sizeof escape, "\\u%04x", c < 0x20 ? c : 0xFFFD);
        pith_json_put(out, escape);
        i++;
    }
    pith_json_put(out, "\"");
}

void pith_json_separate(pith_json_out *out) {
    if (out->comma) pith_json_put(out, ", ");
    out->comma = true;
}

void pith_json_key(pith_json_out *out, const char *name) {
    pith_json_separate(out);
    pith_json_put_string(out, pith_str_of(name));
    pith_json_put(out, ": ");
}

void pith_json_open(pith_json_out *out, const char *bracket) {
    pith_json_put(out, bracket);
    out->comma = false;
}

void pith_json_close(pith_json_out *out, const char *bracket) {
    pith_json_put(out, bracket);
    out->comma = true;
}

void pith_json_key_int(pith_json_out *out, const char *name, int64_t number) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    pith_json_key(out, name);
    pith_json_put(out, text);
}

void pith_json_key_bool(pith_json_out *out, const char *name, bool yes) {
    pith_json_key(out, name);
    pith_json_put(out, yes ? "true" : "false");
}

void pith_json_key_string(pith_json_out *out, const char *name, pith_str s) {
    pith_json_key(out, name);
    pith_json_put_string(out, s);
}
