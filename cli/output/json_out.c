/* json_out.c - see json_out.h. */
#include "cli/output/json_out.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wanted, printed;

json_t *json_text(const char *text) {
    bytes valid = { NULL, 0, 0 };
    bytes_add(&valid, text, strlen(text));
    bytes_replace_invalid(&valid, 0);
    json_t *string = json_stringn(valid.data ? valid.data : "", valid.size);
    free(valid.data);
    return string;
}

void json_quote(bytes *out, pith_str text) {
    const size_t from = out->size;
    bytes_add(out, text.data, text.size);
    bytes_replace_invalid(out, from);
    json_t *string = json_stringn(out->data ? out->data + from : "", out->size - from);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (!quoted) grow(NULL, SIZE_MAX); /* memory is out */
    out->size = from;
    bytes_add(out, quoted, strlen(quoted));
    free(quoted);
    json_decref(string);
}

void json_print(json_t *object) {
    char *text =
        object ? json_dumps(object, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) | JSON_INDENT(1))
               : NULL;
    json_decref(object);
    if (!text) grow(NULL, SIZE_MAX); /* memory is out */
    puts(text);
    free(text);
    printed = true;
}

void json_failures(void) { wanted = true; }

void json_print_failure(const char *message) {
    if (wanted && !printed) json_print(json_pack("{s:o}", "error", json_text(message)));
}
