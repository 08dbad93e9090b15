/* spm_family.h - how Hugging Face's tokenizer classes use a SentencePiece model: the ids of its
 * pieces and the steps around it. Source: transformers, convert_slow_tokenizer.py, and the classes
 * of those that are not in there. */
#ifndef PITH_TEXT_SOURCES_SPM_FAMILY_H
#define PITH_TEXT_SOURCES_SPM_FAMILY_H

#include "text/pipeline.h"

typedef enum pith__spm_type { PITH_SPM_ANY, PITH_SPM_UNIGRAM, PITH_SPM_BPE } pith__spm_type;

typedef struct pith__spm_family {
    const char *name; /* of the class; the first member: see pith__source_class */
    pith__spm_type type;

    /* Ids are given to the words of head, the model's pieces from number `skip` on, the words of
     * tail, in this order. The words are special tokens. "<a_2..4>" stands for <a_2> <a_3> <a_4>,
     * "..-4" counts down; "@-100" behind a word is its score, which is 0 without. */
    const char *head, *tail;
    uint32_t skip;
    int32_t unk;      /* id of the unknown token; -1: that of the model's own, where head and skip
                         move it */
    bool no_unknown;  /* BPE without an unknown token */
    bool byte_pieces; /* unknown characters become byte pieces, where the model has such */
    bool plain;       /* steps follow from the model itself, as in SentencePiece */
    bool commas;      /* pieces that end in a digit and a comma lose 100 of their score */
    const char *mask; /* a special token that takes the white space before it with it */
    const char *last; /* mask_token, if tokenizer_config.json does not say, of classes that add it
                         behind all pieces */

    /* Steps, a letter each. Normalizers: q `` and '' become "; k NFKD without accents, unless
     * keep_accents is set; K the same only if keep_accents is false; l lower case, unless
     * do_lower_case is false; L only if it is true; c the model's character map; S no white space
     * at both ends; t no white space at the end; s runs of spaces become one; u runs of spaces
     * become one mark; m spaces become marks. Cuts: w at white space; p at punctuation, if
     * split_by_punct is true; m Metaspace; f Metaspace at the beginning of the text only, unless
     * add_prefix_space is false (nowhere) or legacy true (each piece); g behind spaces. Decoders: m
     * Metaspace; r marks become spaces; b ByteFallback; f Fuse; s no space at the beginning; B
     * bytes and Fuse, where the model has byte pieces. */
    const char *normalizers, *cuts, *decoders;

    /* The frame, see pith__source_frame. A token is a letter (c cls_token, s sep_token, b
     * bos_token, e eos_token, l src_lang) and what it is if tokenizer_config.json does not say.
     * Without `single` the tokens, bos and eos, are put where add_bos_token and add_eos_token ask
     * for them. */
    const char *tokens[2];
    const char *single, *single_types, *pair, *pair_types;
} pith__spm_family;

/* By class; those without a class have names in brackets, which no file can give. */
extern const pith__spm_family pith__spm_families[];
extern const size_t pith__spm_family_count;

#endif
