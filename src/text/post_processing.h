/* post_processing.h - post-processors, truncation and padding: from the tokens of one or two texts
 * to the input of a model.
 *
 * All post-processors come down to one template for a single text and one for a pair, lists of
 * special tokens and of the two texts, plus the trimming of white space from offsets that
 * byte-level tokenizers ask for. */
#ifndef PITH_TEXT_POST_PROCESSING_H
#define PITH_TEXT_POST_PROCESSING_H

#include "text/pipeline.h"

typedef struct pith__frame_item {
    int32_t id; /* a special token; -1 - k: text k */
    int32_t type_id;
} pith__frame_item;

typedef struct pith__frame_template {
    pith__frame_item *items;
    size_t count, capacity;
    size_t specials;
} pith__frame_template;

typedef struct pith__truncation {
    bool on, left;
    pith_cut strategy;
    int64_t max_length, stride;
} pith__truncation;

typedef struct pith__padding {
    bool on, left;
    int64_t fixed;    /* tokens; 0: to the longest of a batch */
    int64_t multiple; /* 0: any */
    int32_t id, type_id;
} pith__padding;

typedef struct pith__post_processing {
    pith__frame_template templates[2]; /* single, pair; used if has_template */
    bool has_template, zero_types;
    bool trim, trim_prefix_space;
    pith__truncation truncation; /* the file's own sections */
    pith__padding padding;
} pith__post_processing;

/* Bits of an encoding's word ids where offsets are trimmed; pith__post_process takes them off. An
 * added token is trimmed when it is found, since only then its text is known (the model may give
 * the same id to other text); but whether one blank before it is its own depends on the token's
 * place in a window. */
enum { PITH_WORD_ADDED = 1 << 30, PITH_WORD_BLANK = 1 << 29 };
/* Trims the added token i of an encoding, whose offsets are those in the source and whose text was
 * `slice`. */
void pith__trim_added(struct pith__encoding *enc, size_t i, pith_str slice);

pith_status pith__post_processing_create(pith__loader *loader);
/* A value of "post_processor", "truncation", "padding"; faults are left in j. */
void pith__post_processing_parse(pith__json *j, pith__loader *loader);
void pith__truncation_parse(pith__json *j, pith__loader *loader, pith__truncation *truncation);
void pith__padding_parse(pith__json *j, pith__loader *loader, pith__padding *padding);
/* A token id; 0 after a failure. */
int32_t pith__json_id(pith__json *j);

/* Returns the number of special tokens around a text, or around the two of a pair. */
size_t pith__post_processing_specials(const pith__post_processing *post, bool pair);
/* Returns the truncation that a call asks for. */
pith__truncation pith__truncation_choose(const pith_tokenizer *tokenizer,
                                         const pith_tokenize_options *options, bool pair);

/* Returns the number of tokens to which texts are padded. `longest` is the length of the longest
 * text, which counts if the file does not set a length. */
size_t pith__padded_size(const pith__padding *padding, size_t longest);

/* Appends the encoding's tokens to tokens, of which the first `split` are of texts[0], the rest of
 * texts[1]: one window, or with options->overflow all, in Hugging Face's order. */
pith_status pith__post_process(pith_tokens *tokens, pith__encoding *enc, const pith_str texts[2],
                               size_t split, bool pair, const pith__truncation *truncation,
                               const pith_tokenize_options *options);

#endif
