/* gguf_tokens.c - tokenizers of GGUF files but WordPiece. */
#include "text/sources/gguf_tokens.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "text/added_tokens.h"
#include "text/sources/tokenizer_source.h"
#include "text/sources/spm_merges.h"

#define MARK "\xE2\x96\x81"

/* JSON that is being written. */
typedef struct gguf_json {
    pith__arena *arena;
    char *text;
    size_t size, capacity;
    bool failed;
} gguf_json;

static void gguf_json_put(gguf_json *j, pith_str part) {
    for (size_t i = 0; i < part.size && !j->failed; i++) {
        j->failed = !pith__arena_grow(j->arena, (void **)&j->text, j->size, &j->capacity, 1);
        if (!j->failed) j->text[j->size++] = part.data[i];
    }
}

static void gguf_json_text(gguf_json *j, const char *text) { gguf_json_put(j, pith__str_of(text)); }

static void gguf_json_quoted(gguf_json *j, pith_str s) {
    gguf_json_text(j, "\"");
    for (size_t i = 0; i < s.size; i++) {
        const unsigned char c = (unsigned char)s.data[i];
        char escaped[8];
        if (c >= 0x20 && c != '"' && c != '\\') {
            gguf_json_put(j, (pith_str){ s.data + i, 1 });
            continue;
        }
        snprintf(escaped, sizeof escaped, "\\u%04x", c);
        gguf_json_text(j, escaped);
    }
    gguf_json_text(j, "\"");
}

static pith_status gguf_json_load(gguf_json *j, pith__loader *loader) {
    if (j->failed) return pith__fail_memory(loader->err, j->size);
    return pith__loader_read_json(loader, "GGUF", (pith_str){ j->text, j->size });
}

/* ---- parts ---- */

double pith__gguf_score(const pith__gguf_tokens *t, size_t i) {
    return t->scores.kind == PITH_GGUF_NUMBERS ? pith__gguf_number(&t->scores, i) : 0;
}

pith_status pith__gguf_add_tokens(pith__loader *loader, const pith__gguf_tokens *t,
                                  bool mask_strips) {
    for (size_t i = 0; i < t->count; i++) {
        const pith_str token = t->tokens[i];
        const bool special = t->types[i] == PITH_GGUF_CONTROL || t->types[i] == PITH_GGUF_UNKNOWN;
        const bool own = (int64_t)i == t->mask || special;
        size_t spaces = 0;
        while (spaces < token.size && token.data[spaces] == ' ') spaces++;
        if (!token.size || spaces == token.size || (!own && t->types[i] != PITH_GGUF_USER_DEFINED))
            continue;
        const uint32_t strips = mask_strips && (int64_t)i == t->mask ? PITH_ADDED_LSTRIP : 0;
        PITH_TRY(pith__added_tokens_add_listed(loader, token, (int64_t)i,
                                               own ? PITH_ADDED_SPECIAL | strips : 0));
    }
    return PITH_OK;
}

/* Tokens before and behind a text: llama.cpp's add_bos_token, add_eos_token and add_sep_token as a
 * template. The separator stands between the two texts of a pair. */
pith_status pith__gguf_add_frame(pith__loader *loader, const pith__gguf_tokens *t, bool bos,
                                 bool eos, bool sep) {
    const struct {
        bool wanted;
        int64_t id;
        const char *name;
    } ends[] = { { bos, t->bos >= 0 ? t->bos : t->cls, "bos" },
                 { eos, t->eos, "eos" },
                 { sep, t->sep >= 0 ? t->sep : t->eos, "seperator" } };
    pith_str tokens[3] = { PITH_STR(""), PITH_STR(""), PITH_STR("") };
    char single[8], pair[12];
    static const char types[] = "00000000000";
    if (!bos && !eos) return PITH_OK;
    for (int i = 0; i < 3; i++) {
        if (!ends[i].wanted) continue;
        if (ends[i].id < 0 || ends[i].id >= (int64_t)t->count)
            return pith__fail(loader->err, PITH_ERR_FORMAT,
                              "GGUF: texts are to have a token of the kind '%s', but "
                              "'tokenizer.ggml.%s_token_id' is no token of the vocabulary",
                              ends[i].name, ends[i].name);
        tokens[i] = t->tokens[ends[i].id];
    }
    snprintf(single, sizeof single, "%sA%s", bos ? "0" : "", eos ? "1" : "");
    snprintf(pair, sizeof pair, "%s%sB%s", single, sep ? "2" : "", eos ? "1" : "");
    return pith__source_frame(loader, tokens,
                              &(pith__source_template){ single, types, pair, types });
}

/* ---- Unigram ----
 *
 * The steps are those of XLM-RoBERTa's tokenizer, whatever tokenizer.ggml.add_space_prefix and
 * remove_extra_whitespaces say: for a file made from tokenizer.json they are attributes of the
 * Python object that have no part in them. */

/* The least score of a token that a text can become. */
static double gguf_least_score(const pith__gguf_tokens *t) {
    double least = 0;
    for (size_t i = 0; i < t->count; i++)
        if (t->types[i] == PITH_GGUF_NORMAL && pith__gguf_score(t, i) < least)
            least = pith__gguf_score(t, i);
    return least;
}

static void gguf_charsmap(gguf_json *j, pith_str bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    gguf_json_text(j, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    for (size_t i = 0; i < bytes.size; i += 3) {
        uint32_t bits = 0;
        char four[4];
        for (size_t k = i; k < i + 3; k++)
            bits = bits << 8 | (k < bytes.size ? (unsigned char)bytes.data[k] : 0);
        for (unsigned k = 0; k < 4; k++)
            four[k] = k > bytes.size - i ? '=' : digits[bits >> (18 - 6 * k) & 63];
        gguf_json_put(j, (pith_str){ four, sizeof four });
    }
    gguf_json_text(j, "\"}");
}

/* XLM-RoBERTa's mask token is not in its SentencePiece model, so that files made from that only
 * have room for it. */
static pith_str gguf_unigram_token(const pith__gguf_tokens *t, size_t i) {
    const bool room = (int64_t)i == t->mask && t->types[i] == PITH_GGUF_UNUSED &&
                      t->tokens[i].size > 4 && !memcmp(t->tokens[i].data, "[PAD", 4);
    return room ? PITH_STR("<mask>") : t->tokens[i];
}

/* Written as a tokenizer.json and read as one, so that there is one reader of models and steps. */
pith_status pith__gguf_load_unigram(pith__loader *loader, const pith__gguf_tokens *t) {
    gguf_json j = { .arena = loader->scratch };
    const double least = gguf_least_score(t);
    char number[64];
    if (t->add_space == 0)
        pith__log_write(loader->log, PITH_LOG_WARNING,
                        "GGUF: 'tokenizer.ggml.add_space_prefix' is false, but a word begins with "
                        "a space nevertheless, "
                        "as in XLM-RoBERTa's tokenizer, of which such files are made");
    gguf_json_text(&j, "{\"normalizer\":");
    if (t->charsmap.kind == PITH_GGUF_NUMBERS)
        gguf_charsmap(&j, t->charsmap.text);
    else
        gguf_json_text(&j, "null");
    gguf_json_text(&j, ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                       "\"WhitespaceSplit\"},"
                       "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\","
                       "\"prepend_scheme\":\"always\",\"split\":true}]},\"decoder\":{\"type\":"
                       "\"Metaspace\",\"replacement\":\"" MARK
                       "\",\"prepend_scheme\":\"always\",\"split\":true},\"model\":{\"type\":"
                       "\"Unigram\",\"unk_id\":");
    snprintf(number, sizeof number, "%lld", (long long)(t->unk >= 0 ? t->unk : 2));
    gguf_json_text(&j, number);
    gguf_json_text(&j, ",\"byte_fallback\":false,\"vocab\":[");
    for (size_t i = 0; i < t->count; i++) {
        const double score = pith__gguf_score(t, i);
        PITH_TRY(pith__loader_check(loader, i));
        gguf_json_text(&j, i ? ",[" : "[");
        gguf_json_quoted(&j, gguf_unigram_token(t, i));
        /* Unused pieces must not lower the score of unknown characters, which follows from the
         * least one. */
        snprintf(number, sizeof number, ",%.17g]",
                 score >= least && score <= FLT_MAX ? score : least);
        gguf_json_text(&j, number);
    }
    gguf_json_text(&j, "]}}");
    PITH_TRY(gguf_json_load(&j, loader));
    if (t->mask >= 0 && t->mask < (int64_t)t->count)
        t->tokens[t->mask] = gguf_unigram_token(t, (size_t)t->mask);
    PITH_TRY(pith__gguf_add_tokens(loader, t, true));
    return pith__gguf_add_frame(loader, t, pith__gguf_flag(t->add_bos, false),
                                pith__gguf_flag(t->add_eos, true),
                                pith__gguf_flag(t->add_sep, false));
}

/* ---- BPE of bytes ---- */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                          \
    "\"},\"behavior\":\"Isolated\",\"invert\":false},"

/* The values of tokenizer.ggml.pre: how texts are cut before merging. */
typedef struct gguf_pre {
    const char *name, *split; /* split NULL: GPT-2's own way */
    bool composes;            /* texts become NFC */
    bool whole;               /* a piece that is a token stays one */
    bool bos, sep, strips;    /* usual flags; the mask token takes the space before it */
} gguf_pre;

#define QWEN2                                                                                      \
    SPLIT(CONTRACTIONS "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|" LINES), .composes = true
#define LLAMA3                                                                                     \
    SPLIT(CONTRACTIONS "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|" LINES),           \
        .whole = true, .bos = true

static const gguf_pre pres[] = {
    { "gpt-2", NULL, .bos = false },
    { "roberta-bpe", NULL, .sep = true, .strips = true },
    { "qwen2", QWEN2 },
    { "kormo", QWEN2 },
    { "f2llmv2", QWEN2 },
    { "llama-bpe", LLAMA3 },
    { "llama3", LLAMA3 },
    { "llama-v3", LLAMA3 },
    { "jina-v5-nano", LLAMA3 },
};

static pith_status gguf_find_pre(const gguf_pre **pre, pith__loader *loader,
                                 const pith__gguf_tokens *t) {
    pith_str known = PITH_STR("");
    for (size_t i = 0; i < sizeof pres / sizeof *pres; i++) {
        *pre = &pres[i];
        if (pith__str_is(t->pre, pres[i].name)) return PITH_OK;
        known =
            pith__arena_printf(loader->scratch, "%s%s%s", known.data, i ? ", " : "", pres[i].name);
        if (!known.data) return pith__fail_memory(loader->err, 64);
    }
    return pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                      "GGUF: 'tokenizer.ggml.pre' is '" PITH_STR_FMT
                      "'; known are %s; put the model's tokenizer.json "
                      "and config.json next to the file and give the directory as the model",
                      PITH_STR_ARG(t->pre), known.data);
}

static pith_status gguf_put_merges(gguf_json *j, pith__loader *loader, const pith__gguf_tokens *t) {
    pith__gguf at = t->merges.texts;
    if (t->merges.kind != PITH_GGUF_TEXTS)
        return pith__fail(loader->err, PITH_ERR_FORMAT,
                          "GGUF: a tokenizer of the kind gpt2 without "
                          "'tokenizer.ggml.merges'");
    gguf_json_text(j, "\"merges\":[");
    for (uint64_t i = 0; i < t->merges.count; i++) {
        pith_str merge;
        PITH_TRY(pith__loader_check(loader, i));
        PITH_TRY(pith__gguf_text(&at, &merge));
        if (pith__utf8_valid_prefix(merge.data, merge.size) < merge.size)
            return pith__fail(loader->err, PITH_ERR_FORMAT, "GGUF: merge %llu is no UTF-8",
                              (unsigned long long)i);
        if (i) gguf_json_text(j, ",");
        gguf_json_quoted(j, merge);
    }
    return PITH_OK;
}

/* The same for pairs of bytes. How texts are cut is not in the file, which only names the way; a
 * way that is not in `pres` is refused, since a near one would give other tokens. */
pith_status pith__gguf_load_bpe(pith__loader *loader, const pith__gguf_tokens *t) {
    gguf_json j = { .arena = loader->scratch };
    const gguf_pre *pre;
    char number[32];
    PITH_TRY(gguf_find_pre(&pre, loader, t));
    gguf_json_text(&j, pre->composes ? "{\"normalizer\":{\"type\":\"NFC\"}," : "{");
    gguf_json_text(&j, "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (pre->split) gguf_json_text(&j, pre->split);
    gguf_json_text(&j, "{\"type\":\"ByteLevel\",\"add_prefix_space\":");
    gguf_json_text(&j, pith__gguf_flag(t->add_space, false) ? "true" : "false");
    gguf_json_text(&j, pre->split ? ",\"use_regex\":false}]}," : ",\"use_regex\":true}]},");
    gguf_json_text(
        &j, "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"ignore_merges\":");
    gguf_json_text(&j, pre->whole ? "true,\"vocab\":{" : "false,\"vocab\":{");
    for (size_t i = 0; i < t->count; i++) {
        PITH_TRY(pith__loader_check(loader, i));
        if (i) gguf_json_text(&j, ",");
        gguf_json_quoted(&j, t->tokens[i]);
        snprintf(number, sizeof number, ":%zu", i);
        gguf_json_text(&j, number);
    }
    gguf_json_text(&j, "},");
    PITH_TRY(gguf_put_merges(&j, loader, t));
    gguf_json_text(&j, "]}}");
    PITH_TRY(gguf_json_load(&j, loader));
    PITH_TRY(pith__gguf_add_tokens(loader, t, pre->strips));
    return pith__gguf_add_frame(loader, t, pith__gguf_flag(t->add_bos, pre->bos),
                                pith__gguf_flag(t->add_eos, false),
                                pith__gguf_flag(t->add_sep, pre->sep));
}

/* ---- BPE of SentencePiece ---- */

/* The piece as SentencePiece has it: the converter writes the marks of tokens that users have
 * defined as spaces. */
static pith_str gguf_piece(pith__arena *scratch, pith_str token, uint8_t type) {
    pith_str piece = token;
    size_t size = 0;
    if (type != PITH_GGUF_USER_DEFINED || !memchr(token.data, ' ', token.size)) return token;
    char *text = pith__arena_alloc(scratch, 3 * token.size);
    if (text)
        for (size_t i = 0; i < token.size; i++) {
            const bool space = token.data[i] == ' ';
            memcpy(text + size, space ? MARK : token.data + i, space ? 3 : 1);
            size += space ? 3 : 1;
        }
    piece = (pith_str){ text, size };
    return piece;
}

/* Pairs of SentencePiece. The file has scores and no merges, so these are made from the scores
 * (spm_merges.h). Control tokens and bytes take no part in merges. */
pith_status pith__gguf_load_pieces(pith__loader *loader, const pith__gguf_tokens *t) {
    static const char *const decoders[] = { "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" MARK
                                            "\"},\"content\":\" \"}",
                                            "{\"type\":\"ByteFallback\"}", "{\"type\":\"Fuse\"}" };
    const bool prefix = pith__gguf_flag(t->add_space, true);
    const size_t unk = t->unk >= 0 ? (size_t)t->unk : 0;
    pith__bpe_spec spec = { .vocab.scratch = loader->scratch,
                            .fuse_unk = true,
                            .byte_fallback = true };
    const void *model = NULL;
    pith_str *pieces = pith__arena_array(loader->scratch, t->count, sizeof *pieces);
    double *scores = pith__arena_array(loader->scratch, t->count, sizeof *scores);
    bool *merges = pith__arena_array(loader->scratch, t->count, sizeof *merges);
    if (!pieces || !scores || !merges)
        return pith__fail_memory(loader->err, t->count * sizeof *pieces);
    if (unk >= t->count)
        return pith__fail(loader->err, PITH_ERR_FORMAT, "GGUF: the unknown token is no token");
    for (size_t i = 0; i < t->count; i++) { /* pieces of users come first, as their scores of 0 say
                                               in the model */
        const bool own = t->types[i] == PITH_GGUF_USER_DEFINED;
        PITH_TRY(pith__loader_check(loader, i));
        pieces[i] = gguf_piece(loader->scratch, t->tokens[i], t->types[i]);
        if (!pieces[i].data) return pith__fail_memory(loader->err, t->tokens[i].size);
        scores[i] = own ? 0 : pith__gguf_score(t, i);
        merges[i] = own || t->types[i] == PITH_GGUF_NORMAL;
    }
    spec.unk_token = pieces[unk];
    PITH_TRY(pith__spm_merges(&spec, loader, pieces, scores, merges, t->count));
    PITH_TRY(pith__bpe_build(&model, &spec, loader));
    pith__loader_set_model(loader, &pith__model_BPE, model);
    if (prefix)
        PITH_TRY(pith__loader_add(loader, "pre_tokenizer",
                                  PITH_STR("{\"type\":\"Metaspace\",\"replacement\":\"" MARK
                                           "\",\"prepend_scheme\":\"first\",\"split\":false}")));
    else
        PITH_TRY(pith__loader_add(
            loader, "normalizer",
            PITH_STR("{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK
                     "\"}")));
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        PITH_TRY(pith__loader_add(loader, "decoder", pith__str_of(decoders[i])));
    PITH_TRY(pith__gguf_add_tokens(loader, t, false));
    return pith__gguf_add_frame(loader, t, pith__gguf_flag(t->add_bos, true),
                                pith__gguf_flag(t->add_eos, false),
                                pith__gguf_flag(t->add_sep, false));
}
