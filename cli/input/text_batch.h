/* text_batch.h - texts, or pairs of texts, in batches of bounded size: lines, or fields of JSON
 * objects. */
#ifndef PITH_CLI_INPUT_TEXT_BATCH_H
#define PITH_CLI_INPUT_TEXT_BATCH_H

#include "cli/input/bad_lines.h"
#include "cli/input/json_line.h"

typedef struct text_batch {
    text_input in; /* separator, replace and limit may be set between open and the first batch */
    json_line json;
    bad_lines bad;         /* of the batch; bad.report may be set as `in` may */
    const char *fields[2]; /* of JSON objects: the text, and the second text of a pair */
    size_t width;          /* 1: texts, 2: pairs; 0: lines are texts */
    bool keeps;            /* the objects are kept */
    size_t count;          /* texts of the batch */
    pith_str *texts[2];
    uint64_t cut;        /* lines of the batch that were longer than LINE_BYTES; their first
                            LINE_BYTES are kept */
    bytes kept;          /* of each object, all members but json.added, with an opening brace and no
                            closing one */
    size_t *kept_begins; /* [count + 1] */
    bytes data;
    size_t *begins; /* of the texts in data, [count * width + 1] */
    bool ended;
    char message[1400]; /* after a failure */
} text_batch;

/* Bytes of a text that are kept. Models see less of a text than this, and memory for one text stays
 * bounded. */
#define TEXT_BATCH_BYTES ((size_t)1 << 20)

/* files: none means stdin. field NULL: lines are texts; else it is the member with the text, and
 * pair, if not NULL, that with the second one. */
void text_batch_open(text_batch *b, const string_list *files, const char *field, const char *pair);
void text_batch_close(text_batch *b);
/* Reads the next texts: up to `most` of them, fewer if the next line is not there yet and a text
 * is. 1: there are some, or bad lines alone; 0: none are left; -1: message says why. */
int text_batch_next(text_batch *b, size_t most);

#endif
