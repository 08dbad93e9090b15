/* text_batch.h - texts, or pairs of texts, in batches of bounded size: lines, or fields of JSON
 * objects. */
#ifndef PITH_CLI_INPUT_TEXT_BATCH_H
#define PITH_CLI_INPUT_TEXT_BATCH_H

#include "cli/input/bad_lines.h"
#include "cli/input/row_options.h"

typedef struct text_batch {
    text_input in; /* may be changed between open and the first batch, as json and bad.how may */
    json_line json;
    bad_lines bad;         /* of the batch */
    const char *fields[2]; /* of objects: NULL (json.columns say which), and the second text of a
                              pair */
    size_t width;          /* 1: texts, 2: pairs; 0: lines are texts */
    bool keeps;            /* the objects are kept */
    size_t count;          /* texts of the batch */
    pith_str *texts[2];
    uint64_t cut;        /* lines of the batch that were longer than LINE_BYTES; their first
                            LINE_BYTES are kept */
    bytes kept;          /* of each object, all members but json.added, with an opening brace and no
                            closing one */
    size_t *kept_begins; /* [count + 1] */
    bytes ids;           /* of the objects, as text_batch_id gives them */
    size_t *id_ends;     /* [count] */
    bytes data;
    size_t *begins; /* of the texts in data, [count * width + 1] */
    bool ended;
    char message[1400]; /* after a failure */
} text_batch;

/* Bytes of a text that are kept. Models see less of a text than this, and memory for one text stays
 * bounded. */
#define TEXT_BATCH_BYTES ((size_t)1 << 20)

/* Opens the inputs of rows, which was taken and must stay. pair, if not NULL, is the member of
 * objects with the second text. */
void text_batch_open(text_batch *b, const row_options *rows, const char *pair);
void text_batch_close(text_batch *b);
/* Reads the next texts: up to `most` of them, fewer if the next line is not there yet and a text
 * is. 1: there are some, or bad lines alone; 0: none are left; -1: message says why. */
int text_batch_next(text_batch *b, size_t most);
/* The value of an object's id, as it is written; size 0: it has none. */
pith_str text_batch_id(const text_batch *b, size_t index);

#endif
