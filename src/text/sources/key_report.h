/* key_report.h - what became of the keys of a tokenizer's files: read, known to change no id, or
 * not known. */
#ifndef PITH_TEXT_SOURCES_KEY_REPORT_H
#define PITH_TEXT_SOURCES_KEY_REPORT_H

#include "base/memory/span_map.h"
#include "text/pipeline.h"

typedef enum pith__key_fate {
    PITH_KEY_READ,
    PITH_KEY_IGNORED,
    PITH_KEY_UNKNOWN,
    PITH_KEY_FATES
} pith__key_fate;

/* Of one file: names with commas between them, in the tokenizer's arena. */
typedef struct pith__key_report {
    pith_str file;
    pith_str keys[PITH_KEY_FATES];
    size_t room[PITH_KEY_FATES]; /* bytes at keys[].data */
    pith__map seen;              /* by name: a bit for each fate that it had */
} pith__key_report;

/* Notes a key of a file; both are copied. A frozen tokenizer has no report. */
pith_status pith__key_note(pith__loader *loader, const char *file, pith_str key,
                           pith__key_fate fate);
/* Consumes the value of a key that a step of tokenizer.json does not read. "type", values of null,
 * and the harmless keys, words with spaces between, change nothing; others are told to the log. */
void pith__key_other(pith__json *j, pith__loader *loader, pith_str key, const char *harmless);
/* The reports of a tokenizer, [*count]. */
const pith__key_report *pith__tokenizer_key_reports(const pith_tokenizer *tokenizer, size_t *count);

#endif
