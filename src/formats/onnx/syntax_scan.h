/* syntax_scan.h - the characters of ONNX's text syntax: white space, comments from # to the end of
 * a line, names, numbers, strings.
 *
 * The first fault is stored in err with its line and column; then `failed` is set, nothing is left
 * to read, every call returns nothing, and so loops end. */
#ifndef PITH_FORMATS_ONNX_SYNTAX_SCAN_H
#define PITH_FORMATS_ONNX_SYNTAX_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/formats/decimal.h"
#include "base/memory/memory.h"
#include "base/stop.h"

typedef struct pith__syntax_scan {
    const char *at, *begin, *end;
    pith__arena *arena; /* of strings with escapes */
    pith_error *err;
    pith__stop *stop; /* may be NULL */
    pith__decimal decimal;
    bool failed;
    pith_status code; /* of the fault */
} pith__syntax_scan;

typedef enum pith__syntax_literal {
    PITH_LITERAL_NONE,
    PITH_LITERAL_INT,
    PITH_LITERAL_FLOAT,
    PITH_LITERAL_STRING
} pith__syntax_literal;

void pith__scan_fail(pith__syntax_scan *s, pith_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* Fails if the work must end; to be called where it can last long. */
void pith__scan_look(pith__syntax_scan *s);
bool pith__scan_letter(char c); /* that may begin an identifier */
/* The next character that means something, which is not taken; 0 at the end. */
unsigned char pith__scan_peek(pith__syntax_scan *s);
bool pith__scan_take(pith__syntax_scan *s, char c); /* takes c if it is the next one */
/* takes these characters; fails if they are not there */
void pith__scan_need(pith__syntax_scan *s, const char *what);
/* fails with "what is expected, not 'x'" */
void pith__scan_expected(pith__syntax_scan *s, const char *what);

/* an identifier, which is not taken; "" if there is none */
pith_str pith__scan_peek_word(pith__syntax_scan *s);
pith_str pith__scan_word(pith__syntax_scan *s); /* an identifier; "" if there is none */
/* an identifier; fails if there is none */
pith_str pith__scan_identifier(pith__syntax_scan *s, const char *what);
/* an identifier or a string likewise */
pith_str pith__scan_name(pith__syntax_scan *s, const char *what);
/* a string; fails if there is none */
pith_str pith__scan_string(pith__syntax_scan *s, const char *what);

/* A number's text, or a string's contents. A word that is no number is none. */
pith__syntax_literal pith__scan_literal(pith__syntax_scan *s, pith_str *text);
/* Numbers; they fail if there is none, or beyond the type. */
int64_t pith__scan_int(pith__syntax_scan *s);
uint64_t pith__scan_uint(pith__syntax_scan *s);
float pith__scan_f32(pith__syntax_scan *s);
double pith__scan_f64(pith__syntax_scan *s);
/* The same of a literal's text. */
int64_t pith__scan_int_of(pith__syntax_scan *s, pith_str text);
float pith__scan_f32_of(pith__syntax_scan *s, pith_str text);

#endif
