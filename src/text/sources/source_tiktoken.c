/* source_tiktoken.c - ranks of tiktoken: each line has a token's bytes in base64 and its rank,
 * which is also its id.
 *
 * Such a file has no merges: a token can be made from any two others it can be cut into. Tokens
 * come in the order of their ranks, and cuts in the order of the ranks of their parts, as in
 * Hugging Face's converter. The cutting expression is not in the file either: it is GPT-2's for
 * vocabularies of its size (gpt2, r50k, p50k, Whisper), o200k's for those of its size (and Llama
 * 4's), and cl100k's (and Llama 3's) for all others. */
#include "base/memory/span_map.h"
#include "text/byte_spelling.h"
#include "text/models/bpe_merges.h"
#include "text/sources/config_files.h"
#include "text/sources/tokenizer_source.h"

/* TOKEN_MAX: bytes of the longest token; published ones have up to 128. The others are sizes of
 * vocabularies, by which the cutting expression is chosen (see above). */
enum { TOKEN_MAX = 1024, GPT2_LEAST = 50000, GPT2_MOST = 51000, O200K_SIZE = 150000 };

typedef struct cut {
    pith_str left, right;
    uint32_t left_rank, right_rank;
} cut;

/* Decodes one base64 field in place of its text; returns its end or NULL. */
static const char *source_tiktoken_decode(const char *p, const char *end, char *out, size_t *size) {
    uint32_t bits = 0;
    unsigned count = 0;
    *size = 0;
    for (; p < end && *p != ' ' && *p != '='; p++, count++) {
        char c = *p;
        int value = -1;
        if (c >= 'A' && c <= 'Z')
            value = c - 'A';
        else if (c >= 'a' && c <= 'z')
            value = c - 'a' + 26;
        else if (c >= '0' && c <= '9')
            value = c - '0' + 52;
        else if (c == '+')
            value = 62;
        else if (c == '/')
            value = 63;
        if (value < 0) return NULL;
        bits = bits << 6 | (uint32_t)value;
        if (count % 4) out[(*size)++] = (char)(bits >> (6 - 2 * (count % 4)));
    }
    while (p < end && *p == '=') p++;
    return p < end && *p == ' ' && *size && *size <= TOKEN_MAX ? p + 1 : NULL;
}

/* Whether the first line is one of a token and its rank. */
static bool is_ranks(pith_str bytes) {
    char token[TOKEN_MAX];
    size_t most = bytes.size < TOKEN_MAX ? bytes.size : TOKEN_MAX, size;
    const char *stop = most ? memchr(bytes.data, '\n', most) : NULL;
    const char *p = stop ? source_tiktoken_decode(bytes.data, stop, token, &size) : NULL,
               *digits = p;
    while (p && p < stop && *p >= '0' && *p <= '9') p++;
    return p && p > digits && (p == stop || (*p == '\r' && p + 1 == stop));
}

/* Bytes written as the characters of byte-level vocabularies. */
static pith_str source_tiktoken_spell(pith__arena *arena, pith_str bytes) {
    char *out = pith__arena_alloc(arena, 2 * bytes.size);
    size_t size = 0;
    if (out)
        for (size_t i = 0; i < bytes.size; i++)
            size += pith__utf8_put(out + size, pith__byte_char((unsigned char)bytes.data[i]));
    return (pith_str){ out, size };
}

static bool cut_before(const cut *a, const cut *b) {
    return a->left_rank != b->left_rank ? a->left_rank < b->left_rank
                                        : a->right_rank < b->right_rank;
}

/* The merges that make a token, one for each cut into two tokens, those of low ranks first. */
static pith_status add_merges(pith__bpe_spec *spec, const pith__map *ranks, pith_str token,
                              pith_error *err) {
    cut cuts[TOKEN_MAX];
    size_t count = 0;
    for (size_t i = 1; i < token.size; i++) {
        cut c = { { token.data, i }, { token.data + i, token.size - i }, 0, 0 };
        c.left_rank = pith__map_get(ranks, c.left);
        c.right_rank = pith__map_get(ranks, c.right);
        if (c.left_rank == UINT32_MAX || c.right_rank == UINT32_MAX) continue;
        size_t at = count++;
        for (; at && cut_before(&c, &cuts[at - 1]); at--) cuts[at] = cuts[at - 1];
        cuts[at] = c;
    }
    for (size_t i = 0; i < count; i++) {
        pith_str left = source_tiktoken_spell(spec->vocab.scratch, cuts[i].left),
                 right = source_tiktoken_spell(spec->vocab.scratch, cuts[i].right);
        if (!left.data || !right.data || !pith__bpe_add_merge(spec, left, right))
            return pith__fail_memory(err, spec->merge_count);
    }
    return PITH_OK;
}

/* The tokens in the order of their ranks. */
static pith_status read_ranks(pith_str **by_rank, size_t *count, pith_str bytes,
                              pith__loader *loader) {
    const char *p = bytes.data, *end = p + bytes.size;
    size_t lines = 1;
    for (const char *q = p; q < end && (q = memchr(q, '\n', (size_t)(end - q))); q++) lines++;
    pith_str *tokens = pith__arena_array(loader->scratch, lines, sizeof *tokens);
    if (!tokens) return pith__fail_memory(loader->err, lines * sizeof *tokens);
    *count = 0;
    for (size_t number = 1; p < end; number++) {
        PITH_TRY(pith__loader_check(loader, number));
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > p && stop[-1] == '\r') stop--;
        if (p < stop) {
            size_t size = 0;
            char *token = pith__arena_alloc(loader->scratch, (size_t)(stop - p));
            if (!token) return pith__fail_memory(loader->err, (size_t)(stop - p));
            const char *digits = source_tiktoken_decode(p, stop, token, &size);
            uint64_t rank = 0;
            p = digits;
            if (digits)
                for (; p < stop && *p >= '0' && *p <= '9' && rank < lines; p++)
                    rank = rank * 10 + (uint64_t)(*p - '0');
            if (!digits || p == digits || p < stop || rank >= lines || tokens[rank].data)
                return pith__fail(loader->err, PITH_ERR_FORMAT,
                                  "%s:%zu: not a new token in base64 and its rank", loader->path,
                                  number);
            tokens[rank] = (pith_str){ token, size };
            if (rank >= *count) *count = (size_t)rank + 1;
        }
        p = next;
    }
    *by_rank = tokens;
    return PITH_OK;
}

/* Classes that say nothing of how a text is cut. */
static const char *const classes[] = { "PreTrainedTokenizer", "TokenizersBackend" };

static pith_status source_tiktoken_load(pith__loader *loader, const char *path, pith_str bytes) {
    pith__bpe_spec spec = { .vocab.scratch = loader->scratch, .ignore_merges = true };
    pith_str *tokens = NULL;
    const void *model = NULL;
    size_t count = 0;
    pith__map ranks;
    const void *row;
    (void)path;
    if (loader->config->tokenizer_class.data)
        PITH_TRY(pith__source_class(&row, loader, classes, sizeof classes / sizeof *classes,
                                    sizeof *classes, "tiktoken ranks"));
    PITH_TRY(read_ranks(&tokens, &count, bytes, loader));
    PITH_TRY(pith__map_init(&ranks, loader->scratch, count));
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(pith__loader_check(loader, i));
        if (!tokens[i].data) continue;
        pith_str spelled = source_tiktoken_spell(loader->scratch, tokens[i]);
        if (!spelled.data || !pith__map_put(&ranks, tokens[i], (uint32_t)i, NULL) ||
            !pith__vocab_add(&spec.vocab, spelled, (int32_t)i))
            return pith__fail_memory(loader->err, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (i % 256 == 0) PITH_TRY(pith__stop_check(loader->stop, loader->err));
        if (tokens[i].data) PITH_TRY(add_merges(&spec, &ranks, tokens[i], loader->err));
    }
    PITH_TRY(pith__bpe_build(&model, &spec, loader));
    pith__loader_set_model(loader, &pith__model_BPE, model);
#define START "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
#define CAPITAL "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define SMALL "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define FOLDED "(?i:" CONTRACTIONS ")"
#define END(tail)                                                                                  \
    "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[" tail                                              \
    "]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define GPT2                                                                                       \
    CONTRACTIONS "| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(regex)                                                                               \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                                          \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}"
    pith_str split = PITH_STR(SPLIT(FOLDED "|" START "\\\\p{L}+|" END("\\\\r\\\\n")));
    if (count >= GPT2_LEAST && count <= GPT2_MOST)
        split = PITH_STR(SPLIT(GPT2));
    else if (count >= O200K_SIZE)
        split = PITH_STR(SPLIT(START CAPITAL "*" SMALL "+" FOLDED "?|" START CAPITAL "+" SMALL
                                             "*" FOLDED "?|" END("\\\\r\\\\n/")));
    PITH_TRY(pith__loader_add(loader, "pre_tokenizer", split));
    PITH_TRY(pith__loader_add(
        loader, "pre_tokenizer",
        PITH_STR("{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}")));
    return pith__loader_add(loader, "decoder", PITH_STR("{\"type\":\"ByteLevel\"}"));
}

const pith__tokenizer_source pith__source_tiktoken = { "tiktoken ranks",         50,
                                                       { "tokenizer.tiktoken" }, ".tiktoken",
                                                       source_tiktoken_load,     is_ranks };
