/* post_processing.h - post-processors, truncation and padding: from the tokens of one or two texts to the input of a model.
 *
 * All post-processors come down to one template for a single text and one for a pair, lists of special tokens and of
 * the two texts, plus the trimming of white space from offsets that byte-level tokenizers ask for. */
#ifndef PITH_TEXT_POST_PROCESSING_H
#define PITH_TEXT_POST_PROCESSING_H

#include "text/pipeline.h"

typedef struct pith_frame_item {
    int32_t id; /* a special token; -1 - k: text k */
    int32_t type_id;
} pith_frame_item;

typedef struct pith_frame_template {
    pith_frame_item *items;
    size_t count, capacity;
    size_t specials;
} pith_frame_template;

typedef struct pith_truncation {
    bool on, left;
    pith_cut strategy;
    int64_t max_length, stride;
} pith_truncation;

typedef struct pith_padding {
    bool on, left;
    int64_t fixed;    /* tokens; 0: to the longest of a batch */
    int64_t multiple; /* 0: any */
    int32_t id, type_id;
} pith_padding;

typedef struct pith_framing {
    pith_frame_template templates[2]; /* single, pair; used if has_template */
    bool has_template, zero_types;
    bool trim, trim_prefix_space;
    pith_truncation truncation; /* the file's own sections */
    pith_padding padding;
} pith_framing;

/* Bits of an encoding's word ids where offsets are trimmed; pith_frame takes them off. An added token is trimmed
 * when it is found, since only then its text is known (the model may give the same id to other text); but whether
 * one blank before it is its own depends on the token's place in a window. */
enum { PITH_WORD_ADDED = 1 << 30, PITH_WORD_BLANK = 1 << 29 };
/* Trims the added token i of an encoding, whose offsets are those in the source and whose text was `slice`. */
void pith_trim_added(struct pith_encoding *enc, size_t i, pith_str slice);

pith_status pith_framing_create(pith_loader *loader);
/* A value of "post_processor", "truncation", "padding"; faults are left in j. */
void pith_framing_parse(pith_json *j, pith_loader *loader);
void pith_truncation_parse(pith_json *j, pith_loader *loader, pith_truncation *truncation);
void pith_padding_parse(pith_json *j, pith_loader *loader, pith_padding *padding);
/* A token id; 0 after a failure. */
int32_t pith_json_id(pith_json *j);

/* Returns the number of special tokens around a text, or around the two of a pair. */
size_t pith_framing_specials(const pith_framing *framing, bool pair);
/* Returns the truncation that a call asks for. */
pith_truncation pith_truncation_choose(const pith_tokenizer *tokenizer, const pith_tokenize_options *options,
                                       bool pair);

/* Returns the number of tokens to which texts are padded. `longest` is the length of the longest text, which counts if
 * the file does not set a length. */
size_t pith_padded_size(const pith_padding *padding, size_t longest);

/* Appends the encoding's tokens to tokens, of which the first `split` are of texts[0], the rest of texts[1]: one
 * window, or with options->overflow all, in Hugging Face's order. */
pith_status pith_frame(pith_tokens *tokens, pith_encoding *enc, const pith_str texts[2], size_t split, bool pair,
                       const pith_truncation *truncation, const pith_tokenize_options *options);

#endif
