/* tokenizer_source.h - helpers for the loaders of tokenizer files. */
#ifndef PITH_TEXT_SOURCES_TOKENIZER_SOURCE_H
#define PITH_TEXT_SOURCES_TOKENIZER_SOURCE_H

#include "base/os/file.h"
#include "text/pipeline.h"
#include "text/vocab.h"

/* The largest file a tokenizer is read from, in bytes; the largest known one has some 40 million.
 */
#define PITH_TOKENIZER_FILE_MAX (1u << 30)

/* Returns PITH_ERR_UNSUPPORTED for a larger file. */
pith_status pith__source_check_size(const pith__loader *loader, const char *name, uint64_t size);
/* Opens one of the tokenizer's files. Refuses one that is too large before it reads or allocates
 * anything. */
pith_status pith__source_open(pith__file *file, const pith__loader *loader, const char *path,
                              bool copy);

/* Reads the text of a tokenizer.json; path is for messages. */
pith_status pith__loader_read_json(pith__loader *loader, const char *path, pith_str bytes);

/* Makes the token a special one, behind the vocabulary if it is not in there; flags: further
 * PITH_ADDED_*. */
pith_status pith__source_special(pith__loader *loader, pith_str token, uint32_t flags);

/* A post-processor of templates. 'A' and 'B' are the texts, digits index tokens; the types have a
 * digit for each character. "0A1" and "0A11B1" are RoBERTa's. Without all of the tokens: none. */
typedef struct pith__source_template {
    const char *single, *single_types, *pair, *pair_types;
} pith__source_template;
pith_status pith__source_frame(pith__loader *loader, const pith_str *tokens,
                               const pith__source_template *frame);

/* The row of a source's table that has the tokenizer's class: the one tokenizer_config.json names,
 * else config.json, else the one that goes with its model_type. Rows begin with the class's name, a
 * const char *. *row is NULL where nothing names a class: then the source goes by its files. A
 * class that is not in the table is an error. */
pith_status pith__source_class(const void **row, const pith__loader *loader, const void *table,
                               size_t count, size_t row_size, const char *file);

/* The tokenizer of BERT, DistilBERT or MPNet around a vocabulary; the rest follows from
 * loader->config. file is for messages. */
pith_status pith__source_wordpiece(pith__loader *loader, const pith__vocab_builder *vocab,
                                   const char *file);

/* Whether a row's name is the class of a model type: "xlm-roberta" is XLMRobertaTokenizer. */
bool pith__source_type_is(pith_str model_type, const char *row);

/* Adds the tokens that tokenizer_config.json or added_tokens.json list. exact: a token that gets
 * another id than the one it is listed with is an error. */
pith_status pith__listed_tokens_add(pith__loader *loader, bool exact);

/* Returns token, or usual if token is not given. usual may be NULL. */
static inline pith_str pith__source_token(pith_str token, const char *usual) {
    return token.data || !usual ? token : pith__str_of(usual);
}

#endif
