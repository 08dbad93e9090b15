/* source_sentencepiece.c - SentencePiece's model files (protobuf): unigram and BPE pieces and the character map. What
 * the file does not say (frames, white space, moved ids) follows from the class in tokenizer_config.json, or from the
 * name of the file and the special pieces, as Hugging Face's tokenizer classes have it.
 *
 * Field numbers are those of sentencepiece_model.proto; fields not named here are skipped. A BPE file has no merges: a
 * piece arises from every two pieces it can be cut into, the best score first. */
#include <float.h>
#include <stdlib.h>

#include "base/map.h"
#include "text/bpe.h"
#include "text/bytes.h"
#include "text/sources.h"
#include "text/unigram.h"

enum { UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNIGRAM = 1, PAIRS = 2, PIECE_MAX = 1024, EXTRA_IDS = 100 };

typedef enum family { PLAIN, XLM_ROBERTA, T5, ALBERT, DEBERTA, LLAMA, GEMMA } family;

typedef struct spm {
    pith_loader *loader;
    pith_str *pieces;
    double *scores;
    uint8_t *types;
    size_t count, piece_capacity, score_capacity, type_capacity;
    int64_t model_type, unk_id;
    bool byte_fallback;
    pith_str charsmap;
} spm;

/* ---- protobuf ---- */

typedef struct field {
    uint64_t number, value; /* value: of varints */
    pith_str bytes;         /* of length-delimited and fixed fields; data NULL otherwise */
} field;

static bool read_varint(pith_str *in, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && in->size; shift += 7) {
        unsigned char b = (unsigned char)*in->data++;
        in->size--;
        *value |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return true;
    }
    return false;
}

/* Takes the next field off the message; false at its end and, with *damaged set, at a fault. */
static bool next_field(pith_str *in, field *f, bool *damaged) {
    uint64_t key, size = 0;
    if (!in->size) return false;
    *damaged = true;
    *f = (field){ 0, 0, { NULL, 0 } };
    if (!read_varint(in, &key)) return false;
    f->number = key >> 3;
    switch (key & 7) {
    case 0: *damaged = !read_varint(in, &f->value); return !*damaged;
    case 1: size = 8; break;
    case 2:
        if (!read_varint(in, &size)) return false;
        break;
    case 5: size = 4; break;
    default: return false;
    }
    if (size > in->size) return false;
    f->bytes = (pith_str){ in->data, (size_t)size };
    in->data += size;
    in->size -= size;
    *damaged = false;
    return true;
}

static bool add_piece(spm *s, pith_str piece, double score, uint8_t type) {
    pith_arena *arena = s->loader->scratch;
    if (!pith_arena_grow(arena, (void **)&s->pieces, s->count, &s->piece_capacity, sizeof *s->pieces) ||
        !pith_arena_grow(arena, (void **)&s->scores, s->count, &s->score_capacity, sizeof *s->scores) ||
        !pith_arena_grow(arena, (void **)&s->types, s->count, &s->type_capacity, sizeof *s->types))
        return false;
    s->pieces[s->count] = piece;
    s->scores[s->count] = score;
    s->types[s->count++] = type;
    return true;
}

static pith_status read_piece(spm *s, pith_str message) {
    pith_str piece = PITH_STR("");
    float score = 0;
    uint8_t type = 1;
    bool damaged = false;
    for (field f; next_field(&message, &f, &damaged);) {
        if (f.number == 1 && f.bytes.data)
            piece = f.bytes;
        else if (f.number == 2 && f.bytes.size == 4)
            memcpy(&score, f.bytes.data, 4);
        else if (f.number == 3)
            type = (uint8_t)f.value;
    }
    if (damaged || pith_utf8_valid_prefix(piece.data, piece.size) < piece.size || piece.size > PIECE_MAX)
        return pith_fail(s->loader->err, PITH_ERR_FORMAT, "piece %zu is damaged", s->count);
    return add_piece(s, piece, score, type) ? PITH_OK : pith_fail_memory(s->loader->err, s->count);
}

static pith_status read_model(spm *s, pith_str message) {
    bool damaged = false, inner = false;
    for (field f, g; next_field(&message, &f, &damaged);) {
        if (f.number == 1 && f.bytes.data) PITH_TRY(read_piece(s, f.bytes));
        while (f.number == 2 && f.bytes.data && next_field(&f.bytes, &g, &inner)) {
            if (g.number == 3)
                s->model_type = (int64_t)g.value;
            else if (g.number == 35)
                s->byte_fallback = g.value != 0;
            else if (g.number == 40)
                s->unk_id = (int64_t)g.value;
        }
        while (f.number == 3 && f.bytes.data && next_field(&f.bytes, &g, &inner))
            if (g.number == 2 && g.bytes.data) s->charsmap = g.bytes;
    }
    if (damaged || inner || !s->count)
        return pith_fail(s->loader->err, PITH_ERR_FORMAT, "%s is no SentencePiece model", s->loader->path);
    if (s->model_type != UNIGRAM && s->model_type != PAIRS)
        return pith_fail(s->loader->err, PITH_ERR_UNSUPPORTED,
                         "a SentencePiece model of type %lld (unigram and bpe are known)", (long long)s->model_type);
    if (s->unk_id < 0 || s->unk_id >= (int64_t)s->count)
        return pith_fail(s->loader->err, PITH_ERR_FORMAT, "unk_id %lld is outside %zu pieces", (long long)s->unk_id,
                         s->count);
    return PITH_OK;
}

/* ---- families ---- */

static bool has_piece(const spm *s, const char *piece) {
    for (size_t i = 0; i < s->count && i < 512; i++)
        if (pith_str_is(s->pieces[i], piece)) return true;
    return false;
}

static family find_family(const spm *s, const char *path) {
    static const struct {
        const char *name;
        family family;
    } names[] = {
        { "AlbertTokenizer", ALBERT },   { "DebertaV2Tokenizer", DEBERTA },
        { "GemmaTokenizer", GEMMA },     { "LlamaTokenizer", LLAMA },
        { "T5Tokenizer", T5 },           { "XLMRobertaTokenizer", XLM_ROBERTA },
        { "CodeLlamaTokenizer", LLAMA }, { "MT5Tokenizer", T5 },
    };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (pith_source_class_is(s->loader, names[i].name)) return names[i].family;
    if (s->model_type == PAIRS) return has_piece(s, "<bos>") ? GEMMA : LLAMA;
    if (strcmp(name, "sentencepiece.bpe.model") == 0) return XLM_ROBERTA;
    if (strcmp(name, "spm.model") == 0) return DEBERTA;
    if (strcmp(name, "spiece.model") == 0) return has_piece(s, "[CLS]") ? ALBERT : T5;
    return PLAIN;
}

/* fairseq's order of special pieces stands before the rest of the vocabulary, the mask behind. */
static bool move_fairseq(spm *s) {
    static const char *const first[] = { "<s>", "<pad>", "</s>", "<unk>" };
    if (s->count < 3 || !add_piece(s, PITH_STR("<mask>"), 0, CONTROL) || !add_piece(s, PITH_STR(""), 0, CONTROL))
        return false;
    size_t rest = s->count - 5;
    memmove(s->pieces + 4, s->pieces + 3, (rest + 1) * sizeof *s->pieces);
    memmove(s->scores + 4, s->scores + 3, (rest + 1) * sizeof *s->scores);
    memmove(s->types + 4, s->types + 3, (rest + 1) * sizeof *s->types);
    for (size_t i = 0; i < 4; i++) {
        s->pieces[i] = pith_str_of(first[i]);
        s->scores[i] = 0;
        s->types[i] = i == 3 ? UNKNOWN : CONTROL;
    }
    s->unk_id = 3;
    return true;
}

static bool add_extra_ids(spm *s) {
    for (int i = EXTRA_IDS; i--;) {
        pith_str name = pith_arena_printf(s->loader->scratch, "<extra_id_%d>", i);
        if (!name.data || !add_piece(s, name, 0, CONTROL)) return false;
    }
    return true;
}

typedef struct scored {
    float score;
    uint32_t piece;
} scored;

static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

/* The pieces, best score first: what merges go by. Scores that are no numbers count as the least. */
static scored *sort_pieces(const spm *s) {
    scored *order = pith_arena_array(s->loader->scratch, s->count, sizeof *order);
    for (size_t i = 0; order && i < s->count; i++)
        order[i] = (scored){ s->scores[i] >= -FLT_MAX ? s->scores[i] : -FLT_MAX, (uint32_t)i };
    if (order) qsort(order, s->count, sizeof *order, by_score);
    return order;
}

static pith_status build_pairs(const spm *s, const void **model, bool with_unknown) {
    pith_bpe_spec spec = { .vocab.scratch = s->loader->scratch, .fuse_unk = true, .byte_fallback = true };
    pith_map ids;
    const scored *order = sort_pieces(s);
    if (!order) return pith_fail_memory(s->loader->err, s->count * sizeof *order);
    if (with_unknown) spec.unk_token = s->pieces[s->unk_id];
    PITH_TRY(pith_map_init(&ids, s->loader->scratch, s->count));
    for (size_t i = 0; i < s->count; i++)
        if (!pith_map_put(&ids, s->pieces[i], (uint32_t)i, NULL) ||
            !pith_vocab_add(&spec.vocab, s->pieces[i], (int32_t)i))
            return pith_fail_memory(s->loader->err, s->count);
    for (size_t i = 0; i < s->count; i++) {
        pith_str piece = s->pieces[order[i].piece];
        for (const char *p = piece.data, *end = p + piece.size; p < end;) {
            pith_utf8_next(&p);
            pith_str left = { piece.data, (size_t)(p - piece.data) }, right = { p, (size_t)(end - p) };
            if (!right.size || pith_map_get(&ids, left) == UINT32_MAX || pith_map_get(&ids, right) == UINT32_MAX)
                continue;
            if (!pith_bpe_add_merge(&spec, left, right)) return pith_fail_memory(s->loader->err, spec.merge_count);
        }
    }
    return pith_bpe_build(model, &spec, s->loader);
}

static pith_status build_model(spm *s, family kind) {
    const void *model = NULL;
    if (s->model_type == PAIRS) {
        PITH_TRY(build_pairs(s, &model, kind != LLAMA));
        pith_loader_set_model(s->loader, &pith_model_BPE, model);
        return PITH_OK;
    }
    if (kind == XLM_ROBERTA && !move_fairseq(s)) return pith_fail_memory(s->loader->err, s->count);
    if (kind == T5 && !add_extra_ids(s)) return pith_fail_memory(s->loader->err, s->count);
    bool bytes = s->byte_fallback && kind == PLAIN;
    model = pith_unigram_build(s->pieces, s->scores, s->count, (int32_t)s->unk_id, bytes, s->loader);
    if (!model) return s->loader->err->code;
    pith_loader_set_model(s->loader, &pith_model_Unigram, model);
    return PITH_OK;
}

/* ---- steps ---- */

#define REPLACE(what, with) "{\"type\":\"Replace\",\"pattern\":" what ",\"content\":\"" with "\"}"
#define MARK "\xE2\x96\x81"
#define METASPACE(scheme, split)                                                                                       \
    "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"" scheme "\",\"split\":" split "}"

static pith_status add_precompiled(const spm *s) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *head = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"";
    size_t size = s->charsmap.size, head_size = strlen(head), at = head_size;
    if (!size) return PITH_OK;
    if (size > INT32_MAX) return pith_fail(s->loader->err, PITH_ERR_UNSUPPORTED, "a charsmap of %zu bytes", size);
    char *json = pith_arena_alloc(s->loader->scratch, head_size + size / 3 * 4 + 8);
    if (!json) return pith_fail_memory(s->loader->err, size);
    memcpy(json, head, head_size);
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = 0;
        for (size_t k = i; k < i + 3; k++) bits = bits << 8 | (k < size ? (unsigned char)s->charsmap.data[k] : 0);
        for (unsigned k = 0; k < 4; k++) json[at++] = k > size - i ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
    memcpy(json + at, "\"}", 2);
    return pith_loader_add(s->loader, "normalizer", (pith_str){ json, at + 2 });
}

static pith_status add_normalizers(const spm *s, family kind) {
    pith_loader *l = s->loader;
    const pith_tokenizer_config *c = l->config;
    if (kind == LLAMA) return PITH_OK;
    if (kind == GEMMA) return pith_loader_add(l, "normalizer", PITH_STR(REPLACE("{\"String\":\" \"}", MARK)));
    if (kind == ALBERT) {
        PITH_TRY(pith_loader_add(l, "normalizer", PITH_STR(REPLACE("{\"String\":\"``\"}", "\\\""))));
        PITH_TRY(pith_loader_add(l, "normalizer", PITH_STR(REPLACE("{\"String\":\"''\"}", "\\\""))));
        PITH_TRY(pith_loader_add(l, "normalizer", PITH_STR("{\"type\":\"NFKD\"}")));
        PITH_TRY(pith_loader_add(l, "normalizer", PITH_STR("{\"type\":\"StripAccents\"}")));
    }
    if ((kind == ALBERT && c->do_lower_case) || (kind == DEBERTA && c->do_lower_case == 1))
        PITH_TRY(pith_loader_add(l, "normalizer", PITH_STR("{\"type\":\"Lowercase\"}")));
    if (kind == DEBERTA) {
        PITH_TRY(
            pith_loader_add(l, "normalizer", PITH_STR(REPLACE("{\"Regex\":\"\\\\s{2,}|[\\\\n\\\\r\\\\t]\"}", " "))));
        PITH_TRY(pith_loader_add(l, "normalizer", PITH_STR("{\"type\":\"NFC\"}")));
        return pith_loader_add(l, "normalizer",
                               PITH_STR("{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}"));
    }
    PITH_TRY(add_precompiled(s));
    if (kind != PLAIN) return PITH_OK;
    return pith_loader_add(l, "normalizer", PITH_STR(REPLACE("{\"String\":\" \"}", MARK)));
}

static pith_status add_cuts(const spm *s, family kind) {
    pith_loader *l = s->loader;
    bool words = kind == XLM_ROBERTA || kind == T5 || kind == ALBERT;
    if (words) PITH_TRY(pith_loader_add(l, "pre_tokenizer", PITH_STR("{\"type\":\"WhitespaceSplit\"}")));
    if (words || kind == DEBERTA) {
        PITH_TRY(pith_loader_add(l, "pre_tokenizer", PITH_STR(METASPACE("always", "true"))));
        return pith_loader_add(l, "decoder", PITH_STR(METASPACE("always", "true")));
    }
    if (kind == LLAMA) PITH_TRY(pith_loader_add(l, "pre_tokenizer", PITH_STR(METASPACE("first", "false"))));
    if (kind == GEMMA)
        PITH_TRY(pith_loader_add(l, "pre_tokenizer",
                                 PITH_STR("{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},"
                                          "\"behavior\":\"MergedWithPrevious\",\"invert\":false}")));
    PITH_TRY(pith_loader_add(l, "decoder", PITH_STR(REPLACE("{\"String\":\"" MARK "\"}", " "))));
    if (kind == PLAIN && !s->byte_fallback) return PITH_OK;
    PITH_TRY(pith_loader_add(l, "decoder", PITH_STR("{\"type\":\"ByteFallback\"}")));
    PITH_TRY(pith_loader_add(l, "decoder", PITH_STR("{\"type\":\"Fuse\"}")));
    if (kind != LLAMA) return PITH_OK;
    return pith_loader_add(l, "decoder", PITH_STR("{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}"));
}

static pith_status add_tokens(const spm *s, family kind) {
    for (size_t i = 0; i < s->count; i++) {
        bool mask = pith_str_is(s->pieces[i], kind == XLM_ROBERTA ? "<mask>" : "[MASK]");
        if (s->types[i] == CONTROL || s->types[i] == UNKNOWN)
            PITH_TRY(pith_source_special(s->loader, s->pieces[i], mask && kind != PLAIN ? PITH_ADDED_LSTRIP : 0));
        else if (s->types[i] == USER_DEFINED && s->pieces[i].size)
            PITH_TRY(pith_loader_add_token(s->loader, s->pieces[i], -1, 0));
    }
    if (kind == GEMMA)
        return pith_source_special(s->loader, pith_source_token(s->loader->config->mask_token, "<mask>"), 0);
    return PITH_OK;
}

static pith_status add_frame(const spm *s, family kind) {
    const pith_tokenizer_config *c = s->loader->config;
    if (kind == XLM_ROBERTA) {
        pith_str tokens[] = { pith_source_token(c->cls_token, "<s>"), pith_source_token(c->sep_token, "</s>") };
        return pith_source_frame(s->loader, tokens, "0A1", "0A11B1", "000000");
    }
    if (kind == T5) {
        pith_str end = pith_source_token(c->eos_token, "</s>");
        return pith_source_frame(s->loader, &end, "A0", "A0B0", "0000");
    }
    if (kind == ALBERT || kind == DEBERTA) {
        pith_str tokens[] = { pith_source_token(c->cls_token, "[CLS]"), pith_source_token(c->sep_token, "[SEP]") };
        return pith_source_frame(s->loader, tokens, "0A1", "0A1B1", "00011");
    }
    pith_str ends[] = { pith_source_token(c->bos_token, kind == GEMMA ? "<bos>" : "<s>"),
                        pith_source_token(c->eos_token, kind == GEMMA ? "<eos>" : "</s>") };
    bool begin = c->add_bos_token == 1, end = c->add_eos_token == 1;
    if (kind == PLAIN || (!begin && !end)) return PITH_OK;
    return pith_source_frame(s->loader, ends,
                             begin && end ? "0A1"
                             : begin      ? "0A"
                                          : "A1",
                             begin && end ? "0A10B1"
                             : begin      ? "0A0B"
                                          : "A1B1",
                             begin && end ? "000111" : "0011");
}

static pith_status load(pith_loader *loader, const char *path, pith_str bytes) {
    spm s = { .loader = loader, .model_type = UNIGRAM };
    PITH_TRY(read_model(&s, bytes));
    family kind = find_family(&s, path);
    PITH_TRY(build_model(&s, kind));
    PITH_TRY(add_normalizers(&s, kind));
    PITH_TRY(add_cuts(&s, kind));
    PITH_TRY(add_tokens(&s, kind));
    return add_frame(&s, kind);
}

const pith_tokenizer_source pith_source_sentencepiece = {
    "SentencePiece model", 20,   { "sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "spm.model" },
    ".model .spm",         load, NULL
};
