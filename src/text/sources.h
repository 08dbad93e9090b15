/* sources.h - what the loaders of tokenizer files share. */
#ifndef PITH_TEXT_SOURCES_H
#define PITH_TEXT_SOURCES_H

#include "base/file.h"
#include "text/pipeline.h"

/* The largest file a tokenizer is read from, in bytes; the largest known one has some 40 million. */
#define PITH_TOKENIZER_FILE_MAX (1u << 30)

/* PITH_ERR_UNSUPPORTED for a larger one. */
pith_status pith_source_check_size(const pith_loader *loader, const char *name, uint64_t size);
/* Opens one of the tokenizer's files; too large a one is refused before anything is read or allocated for it. */
pith_status pith_source_open(pith_file *file, const pith_loader *loader, const char *path, bool copy);

/* Makes the token a special one, behind the vocabulary if it is not in there; flags: further PITH_ADDED_*. */
pith_status pith_source_special(pith_loader *loader, pith_str token, uint32_t flags);

/* A post-processor of templates. 'A' and 'B' are the texts, digits index tokens; types has a digit for each character
 * of pair. "0A1", "0A11B1" is RoBERTa's. Without all of the tokens: none. */
pith_status pith_source_frame(pith_loader *loader, const pith_str *tokens, const char *single, const char *pair,
                              const char *types);

/* True if the class name of tokenizer_config.json is name, with or without "Fast". */
bool pith_source_class_is(const pith_loader *loader, const char *name);

static inline pith_str pith_source_token(pith_str token, const char *usual) {
    return token.data ? token : pith_str_of(usual);
}

#endif
