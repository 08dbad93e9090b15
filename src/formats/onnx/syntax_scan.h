/* syntax_scan.h - the characters of ONNX's text syntax: white space, comments from # to the end of a line, names,
 * numbers, strings.
 *
 * The first fault is stored in err with its line and column; then `failed` is set, nothing is left to read, every call
 * returns nothing, and so loops end. */
#ifndef PITH_FORMATS_ONNX_SYNTAX_SCAN_H
#define PITH_FORMATS_ONNX_SYNTAX_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/formats/decimal.h"
#include "base/memory/memory.h"

typedef struct pith_syntax_scan {
    const char *p, *begin, *end;
    pith_arena *arena; /* of strings with escapes */
    pith_error *err;
    pith_decimal decimal;
    bool failed;
    pith_status code; /* of the fault */
} pith_syntax_scan;

typedef enum pith_syntax_literal {
    PITH_LITERAL_NONE,
    PITH_LITERAL_INT,
    PITH_LITERAL_FLOAT,
    PITH_LITERAL_STRING
} pith_syntax_literal;

void pith_scan_fail(pith_syntax_scan *s, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
bool pith_scan_letter(char c); /* that may begin an identifier */
/* The next character that means something, which is not taken; 0 at the end. */
unsigned char pith_scan_peek(pith_syntax_scan *s);
bool pith_scan_take(pith_syntax_scan *s, char c);           /* takes c if it is the next one */
void pith_scan_need(pith_syntax_scan *s, const char *what); /* takes these characters; fails if they are not there */
void pith_scan_expected(pith_syntax_scan *s, const char *what); /* fails with "what is expected, not 'x'" */

pith_str pith_scan_peek_word(pith_syntax_scan *s); /* an identifier, which is not taken; "" if there is none */
pith_str pith_scan_word(pith_syntax_scan *s);      /* an identifier; "" if there is none */
pith_str pith_scan_identifier(pith_syntax_scan *s, const char *what); /* an identifier; fails if there is none */
pith_str pith_scan_name(pith_syntax_scan *s, const char *what);       /* an identifier or a string likewise */
pith_str pith_scan_string(pith_syntax_scan *s, const char *what);     /* a string; fails if there is none */

/* A number's text, or a string's contents. A word that is no number is none. */
pith_syntax_literal pith_scan_literal(pith_syntax_scan *s, pith_str *text);
/* Numbers; they fail if there is none, or beyond the type. */
int64_t pith_scan_int(pith_syntax_scan *s);
uint64_t pith_scan_uint(pith_syntax_scan *s);
float pith_scan_f32(pith_syntax_scan *s);
double pith_scan_f64(pith_syntax_scan *s);
/* The same of a literal's text. */
int64_t pith_scan_int_of(pith_syntax_scan *s, pith_str text);
float pith_scan_f32_of(pith_syntax_scan *s, pith_str text);

#endif
