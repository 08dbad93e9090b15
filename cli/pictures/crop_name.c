/* crop_name.c - see crop_name.h. */
#include "cli/pictures/crop_name.h"

#include <string.h>

#include "cli/base/text_input.h"
#include "cli/pictures/picture_out.h"

/* Puts the rule for names in, with {stem}, {n} and {ext}, for face n (from 1) of a picture. */
static void put_rule(bytes *out, const char *rule, const char *last, const char *ending, size_t n) {
    const char *dot = strrchr(last, '.');
    const size_t stem = dot && dot > last ? (size_t)(dot - last) : strlen(last);
    while (*rule) {
        if (!strncmp(rule, "{stem}", 6))
            bytes_add(out, last, stem), rule += 6;
        else if (!strncmp(rule, "{n}", 3))
            bytes_print(out, "%zu", n), rule += 3;
        else if (!strncmp(rule, "{ext}", 5))
            bytes_add(out, ending, strlen(ending)), rule += 5;
        else
            bytes_add(out, rule++, 1);
    }
}

char *crop_name(const char *picture, const char *rule, int from_map, const char *format, size_t n) {
    bytes out = { NULL, 0, 0 };
    const char *slash = strrchr(picture, '/'), *last = slash ? slash + 1 : picture,
               *ending = strrchr(last, '.');
    if (!from_map && slash) bytes_add(&out, picture, (size_t)(slash - picture) + 1);
    put_rule(&out, rule, last, ending, n);
    bytes_add(&out, "", 1);
    const char *found = from_map ? picture_out_format(out.data) : "";
    if (!found || (from_map && format && strcmp(found, format) != 0)) {
        out.size--;
        bytes_add(&out, ending, strlen(ending));
        bytes_add(&out, "", 1);
    }
    return out.data;
}
