/* norm_bert.h - the parts of BertNormalizer and what its fused form must know of them. */
#ifndef PITH_TEXT_NORMALIZERS_NORM_BERT_H
#define PITH_TEXT_NORMALIZERS_NORM_BERT_H

#include "text/pipeline.h"

/* The data of pith__bert_clean. */
typedef struct pith__bert_options {
    bool clean_text;    /* controls are dropped, white space becomes spaces */
    bool chinese_chars; /* spaces around ideographs */
} pith__bert_options;

bool pith__char_is_ideograph(uint32_t c);

/* BertNormalizer stands in a tokenizer as these: clean, then NFD and strip if accents go, then
 * Lowercase. */
extern const pith__normalizer_desc pith__bert_clean, pith__bert_strip;
extern const pith__normalizer_desc pith__normalizer_NFD, pith__normalizer_Lowercase;
extern const pith__pretokenizer_desc pith__pretokenizer_BertPreTokenizer;

#endif
