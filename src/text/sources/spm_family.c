/* spm_family.c - the table of SentencePiece tokenizers by class. */
#include "text/sources/spm_family.h"

#define FAIRSEQ .type = PITH_SPM_UNIGRAM, .head = "<s> <pad> </s> <unk>", .skip = 3, .unk = 3
#define OWN_IDS .type = PITH_SPM_UNIGRAM, .head = "", .tail = "", .unk = -1
#define FRAME_ROBERTA                                                                              \
    .tokens = { "c<s>", "s</s>" }, .single = "0A1", .single_types = "000", .pair = "0A11B1",       \
    .pair_types = "000000"
#define FRAME_BERT                                                                                 \
    .tokens = { "c[CLS]", "s[SEP]" }, .single = "0A1", .single_types = "000", .pair = "0A1B1",     \
    .pair_types = "00011"
#define FRAME_END .tokens = { "e</s>", NULL }, .single = "A0", .single_types = "00"
#define WORDS .cuts = "wm", .decoders = "m"
#define WHOLE .cuts = "m", .decoders = "m"
#define MBART_LANGUAGES                                                                            \
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT "   \
    "lv_LV "                                                                                       \
    "my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
#define MBART50_LANGUAGES                                                                          \
    "af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF "   \
    "pt_XX "                                                                                       \
    "sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
#define XLM_ROBERTA                                                                                \
    FAIRSEQ, .tail = "<mask>", .mask = "<mask>", .normalizers = "c", WORDS, FRAME_ROBERTA
#define T5 OWN_IDS_T5, .normalizers = "c", WORDS, FRAME_END, .pair = "A0B0", .pair_types = "0000"
#define OWN_IDS_T5 .type = PITH_SPM_UNIGRAM, .head = "", .tail = "<extra_id_99..0>", .unk = -1
#define LLAMA                                                                                      \
    .type = PITH_SPM_BPE, .head = "", .tail = "", .unk = -1, .no_unknown = true,                   \
    .byte_pieces = true, .normalizers = "", .cuts = "f", .decoders = "rbfs",                       \
    .tokens = { "b<s>", "e</s>" }

#define PLAIN                                                                                      \
    .type = PITH_SPM_ANY, .head = "", .tail = "", .unk = -1, .byte_pieces = true, .plain = true,   \
    .normalizers = "", .cuts = "", .decoders = "rB"

const pith__spm_family pith__spm_families[] = {
    { .name = "(plain)", PLAIN },
    { .name = "AlbertTokenizer",
      OWN_IDS,
      .mask = "[MASK]",
      .normalizers = "qklc",
      WORDS,
      FRAME_BERT },
    { .name = "BarthezTokenizer",
      .type = PITH_SPM_UNIGRAM,
      .head = "",
      .tail = "",
      .unk = 3,
      .mask = "<mask>",
      .normalizers = "ctu",
      WHOLE,
      FRAME_ROBERTA },
    { .name = "BigBirdTokenizer",
      OWN_IDS,
      .mask = "[MASK]",
      .normalizers = "ctu",
      WHOLE,
      FRAME_BERT },
    { .name = "CamembertTokenizer",
      .type = PITH_SPM_UNIGRAM,
      .head = "<s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED@-100",
      .skip = 1,
      .unk = 3,
      .tail = "<mask>",
      .mask = "<mask>",
      .normalizers = "c",
      WORDS,
      FRAME_ROBERTA },
    { .name = "CodeLlamaTokenizer", LLAMA },
    { .name = "DebertaV2Tokenizer",
      OWN_IDS,
      .mask = "[MASK]",
      .normalizers = "LScs",
      .cuts = "pm",
      .decoders = "m",
      FRAME_BERT },
    { .name = "GemmaTokenizer",
      .type = PITH_SPM_BPE,
      .head = "",
      .tail = "",
      .unk = -1,
      .byte_pieces = true,
      .last = "<mask>",
      .normalizers = "m",
      .cuts = "g",
      .decoders = "rbf",
      .tokens = { "b<bos>", "e<eos>" } },
    { .name = "LayoutXLMTokenizer", XLM_ROBERTA },
    { .name = "LlamaTokenizer", LLAMA },
    { .name = "MBart50Tokenizer",
      FAIRSEQ,
      .tail = MBART_LANGUAGES " " MBART50_LANGUAGES " <mask>",
      .mask = "<mask>",
      .normalizers = "ctu",
      WHOLE,
      .tokens = { "len_XX", "e</s>" },
      .single = "0A1",
      .single_types = "000",
      .pair = "0AB1",
      .pair_types = "0000" },
    { .name = "MBartTokenizer",
      FAIRSEQ,
      .tail = MBART_LANGUAGES " <mask>",
      .mask = "<mask>",
      .normalizers = "ctu",
      WHOLE,
      .tokens = { "e</s>", "len_XX" },
      .single = "A01",
      .single_types = "000",
      .pair = "AB01",
      .pair_types = "0000" },
    { .name = "MT5Tokenizer", T5 },
    { .name = "PreTrainedTokenizerFast", PLAIN },
    { .name = "PegasusTokenizer",
      .type = PITH_SPM_UNIGRAM,
      .head = "<pad> </s> <mask_1> <mask_2> <unk_2..102>@-100",
      .skip = 2,
      .tail = "",
      .unk = -1,
      .normalizers = "ctu",
      WORDS,
      FRAME_END,
      .pair = "AB0",
      .pair_types = "000" },
    { .name = "RemBertTokenizer",
      OWN_IDS,
      .mask = "[MASK]",
      .normalizers = "qsKLc",
      WHOLE,
      FRAME_BERT },
    { .name = "T5Tokenizer", T5 },
    { .name = "TokenizersBackend", PLAIN },
    { .name = "XGLMTokenizer",
      FAIRSEQ,
      .tail = "<madeupword0..6>",
      .normalizers = "ctu",
      WHOLE,
      .tokens = { "e</s>", NULL },
      .single = "0A",
      .single_types = "00",
      .pair = "0A00B",
      .pair_types = "00000" },
    { .name = "XLMRobertaTokenizer", XLM_ROBERTA },
    { .name = "XLNetTokenizer",
      OWN_IDS,
      .commas = true,
      .mask = "<mask>",
      .normalizers = "qkLcs",
      WHOLE,
      .tokens = { "s<sep>", "c<cls>" },
      .single = "A01",
      .single_types = "002",
      .pair = "A0B01",
      .pair_types = "00112" },
};

const size_t pith__spm_family_count = sizeof pith__spm_families / sizeof *pith__spm_families;
