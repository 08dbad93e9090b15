/* bert.h - the parts of BertNormalizer and what its fused form must know of them. */
#ifndef PITH_TEXT_MODELS_BERT_H
#define PITH_TEXT_MODELS_BERT_H

#include "text/pipeline.h"

/* The data of pith_bert_clean. */
typedef struct pith_bert_options {
    bool clean_text;    /* controls are dropped, white space becomes spaces */
    bool chinese_chars; /* spaces around ideographs */
} pith_bert_options;

bool pith_char_is_ideograph(uint32_t c);

/* BertNormalizer stands in a tokenizer as these: clean, then NFD and strip if accents go, then Lowercase. */
extern const pith_normalizer_desc pith_bert_clean, pith_bert_strip;
extern const pith_normalizer_desc pith_normalizer_NFD, pith_normalizer_Lowercase;
extern const pith_pretokenizer_desc pith_pretokenizer_BertPreTokenizer;

#endif
