/* json_line.h - lines that hold one JSON object each: the texts in some of its fields, and its
 * source as written.
 *
 * Other fields are checked but never converted, so numbers of any size and unpaired surrogates stay
 * as they are. A byte order mark before the object is skipped. */
#ifndef PITH_CLI_INPUT_JSON_LINE_H
#define PITH_CLI_INPUT_JSON_LINE_H

#include "base/memory/memory.h"
#include "cli/base/text_input.h"

/* The largest object, which is held in memory. */
#define JSON_LINE_BYTES ((size_t)64 << 20)
/* Members whose texts are joined to one, at most. */
#define JSON_LINE_COLUMNS 16

typedef struct json_line {
    pith__arena decoded;        /* strings of the line read last that had escapes */
    pith_error fault;           /* the scanner's */
    const char *added;          /* the member that the command adds; an old one of this name is not
                                   kept. NULL: none */
    const string_list *kept;    /* the names of members that are kept; NULL: all */
    const char *const *dropped; /* more names of members that are not kept, up to NULL; NULL:
                                   none */
    const string_list
        *columns;       /* members with the text; several are joined, with a line end between
                                   them. NULL or none: the first object says which (see
                                   json_line_texts) */
    bool asks;          /* then "query" and "question" are such members too */
    bytes chosen;       /* the name of that member, with a NUL; empty: none yet */
    bytes joined;       /* the text of several members */
    const char *id;     /* the member that is kept under the name "id", and that must be
                                   there; NULL: "id", if there is one */
    pith_str id_value;  /* of the line read last, as it is written; size 0: there is none */
    bool row;           /* the line is a row of a table, so messages speak of columns */
    bool lost;          /* no member was named, and none was found */
    bool replace;       /* half a surrogate pair in a text becomes U+FFFD; else it is an
                                   error */
    char message[1024]; /* after a failure: the reason, without the place */
} json_line;

void json_line_init(json_line *l, bool replace);
void json_line_free(json_line *l);

/* True if a line is empty or white space only, and so holds no object. */
bool json_line_blank(pith_str line);
/* Finds the texts in these fields, valid until the next call, as id_value is. If a field occurs
 * twice, the last one counts. Returns false with a message. A field that is NULL is the text by
 * `columns`: where none are named, the member "text" of the first object; else its only member of a
 * name that texts have (text_column_usual); else its only member. If kept is not NULL, the members
 * other than `added` are appended to it as they were written, with an opening brace and no closing
 * one. */
bool json_line_texts(json_line *l, pith_str *texts, pith_str line, const char *const *fields,
                     size_t count, bytes *kept);
/* Appends the value of a member as text: a string without its quotes and escapes, null as nothing,
 * anything else as it is written. */
void json_line_plain(json_line *l, bytes *out, pith_str value);
/* The same as a cell of CSV, with quotes where it needs them. */
void json_line_cell(json_line *l, bytes *out, pith_str value, char delimiter);
/* Whether the object, which json_line_texts has taken, has this member; else message lists those it
 * has. */
bool json_line_has(json_line *l, pith_str line, const char *name);
/* The value of a member of an object that json_line_texts has taken, as it is written; size 0:
 * there is none. */
pith_str json_line_member(json_line *l, pith_str line, const char *name);
/* The texts in {"query": "...", "documents": ["...", ...]}, valid until the next call; *documents
 * is memory of grow(). Returns false with a message. */
bool json_line_question(json_line *l, pith_str *query, pith_str **documents, size_t *count,
                        pith_str line);
/* The numbers in a line that is an array of them, or an object with such an array as "ids", or
 * (single) one number. */
bool json_line_ids(json_line *l, int32_t **ids, size_t *count, pith_str line, bool single);

#endif
