/* json_scan.h - reads JSON where it stands, value by value: everything is checked (RFC 8259), and
 * only what is asked for is converted.
 *
 *   json_scan s; json_scan_begin(&s, text, &decoded);
 *   json_scan_object(&s);
 *   pith_str key;
 *   while (json_scan_key(&s, &key)) json_scan_skip(&s);
 *   json_scan_end(&s);
 *   if (s.failed) puts(s.message);
 *
 * A value is consumed after each key and item. After the first fault, `failed` stays set and every
 * call returns zero. */
#ifndef PITH_CLI_INPUT_JSON_SCAN_H
#define PITH_CLI_INPUT_JSON_SCAN_H

#include "cli/base/cli.h"

#define JSON_SCAN_DEPTH 256

typedef struct json_scan {
    const char *p, *end;
    string_list *decoded; /* strings that had escapes, from malloc */
    bool failed;
    char message[1024]; /* after a failure: the path of the value and what is wrong */
    int depth;
    struct {
        pith_str key;
        int64_t index;
        bool is_object, started;
    } open[JSON_SCAN_DEPTH]; /* containers around the place */
} json_scan;

/* text is UTF-8. decoded: receives strings that the caller frees. */
void json_scan_begin(json_scan *s, pith_str text, string_list *decoded);
/* The first character of the next value, or 0 if there is none. */
char json_scan_peek(json_scan *s);
void json_scan_object(json_scan *s); /* enters an object; then json_scan_key until it returns
                                        false */
bool json_scan_key(json_scan *s, pith_str *key);
void json_scan_array(json_scan *s); /* enters an array; then json_scan_item until it returns
                                       false */
bool json_scan_item(json_scan *s);
int64_t json_scan_int(json_scan *s);     /* fails on fractions and overflow */
pith_str json_scan_string(json_scan *s); /* half a surrogate pair becomes U+FFFD */
pith_str json_scan_skip(json_scan *s);   /* consumes any value; returns it as it was written */
void json_scan_end(json_scan *s);        /* fails if anything but white space is left */
void json_scan_fail(json_scan *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
