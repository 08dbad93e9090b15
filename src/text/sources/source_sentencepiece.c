/* source_sentencepiece.c - SentencePiece's model files (protobuf): unigram and BPE pieces and the
 * character map.
 *
 * The file does not say everything (frames, white space, moved ids). The rest follows from the
 * tokenizer's class (spm_family.h) or, if no file names one, from the name of the file and the
 * special pieces. Field numbers are those of sentencepiece_model.proto; fields not named here are
 * skipped. A BPE file has no merges: a piece can be made from every two pieces it can be cut into,
 * the best score first. */
#include <stdio.h>
#include <stdlib.h>

#include "text/byte_spelling.h"
#include "text/models/bpe_merges.h"
#include "text/models/model_unigram.h"
#include "text/sources/tokenizer_source.h"
#include "text/sources/spm_family.h"
#include "text/sources/spm_merges.h"
#include "text/sources/token_class.h"

/* Kinds of pieces and of models, by the numbers of sentencepiece_model.proto. PIECE_MAX: bytes of
 * the longest piece; SentencePiece itself makes pieces of up to 16 characters by default. */
enum {
    NORMAL = 1,
    UNKNOWN = 2,
    CONTROL = 3,
    USER_DEFINED = 4,
    UNIGRAM = PITH_SPM_UNIGRAM,
    PAIRS = PITH_SPM_BPE,
    PIECE_MAX = 1024
};

typedef struct spm {
    pith__loader *loader;
    const pith__spm_family *family;
    pith_str *pieces;
    double *scores;
    uint8_t *types;
    size_t count, piece_capacity, score_capacity, type_capacity;
    int64_t model_type, unk_id, bos_id, eos_id;
    bool byte_fallback;
    bool prefix, trims, escapes; /* a space is put before a text; spaces are trimmed and joined, and
                                    become marks */
    pith_str charsmap;
} spm;

/* ---- protobuf ---- */

typedef struct field {
    uint64_t number, value; /* value: of varints */
    pith_str bytes;         /* of length-delimited and fixed fields; data NULL otherwise */
} field;

static bool source_sentencepiece_read_varint(pith_str *in, uint64_t *value) {
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
    if (!source_sentencepiece_read_varint(in, &key)) return false;
    f->number = key >> 3;
    switch (key & 7) {
    case 0: *damaged = !source_sentencepiece_read_varint(in, &f->value); return !*damaged;
    case 1: size = 8; break;
    case 2:
        if (!source_sentencepiece_read_varint(in, &size)) return false;
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
    pith__arena *arena = s->loader->scratch;
    if (!pith__arena_grow(arena, (void **)&s->pieces, s->count, &s->piece_capacity,
                          sizeof *s->pieces) ||
        !pith__arena_grow(arena, (void **)&s->scores, s->count, &s->score_capacity,
                          sizeof *s->scores) ||
        !pith__arena_grow(arena, (void **)&s->types, s->count, &s->type_capacity, sizeof *s->types))
        return false;
    s->pieces[s->count] = piece;
    s->scores[s->count] = score;
    s->types[s->count++] = type;
    return true;
}

static pith_status source_sentencepiece_read_piece(spm *s, pith_str message) {
    PITH_TRY(pith__loader_check(s->loader, s->count));
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
    if (damaged || pith__utf8_valid_prefix(piece.data, piece.size) < piece.size ||
        piece.size > PIECE_MAX)
        return pith__fail(s->loader->err, PITH_ERR_FORMAT, "piece %zu is damaged", s->count);
    return add_piece(s, piece, score, type) ? PITH_OK : pith__fail_memory(s->loader->err, s->count);
}

/* ModelProto: field 1 is a piece, 2 the trainer's settings, 3 the normalizer's. Spans of the file
 * are kept, not copies. */
static pith_status source_sentencepiece_read_model(spm *s, pith_str message) {
    bool damaged = false, inner = false;
    int64_t *const special_ids[] = { &s->unk_id, &s->bos_id, &s->eos_id }; /* fields 40 to 42 */
    for (field f, g; next_field(&message, &f, &damaged);) {
        if (f.number == 1 && f.bytes.data) PITH_TRY(source_sentencepiece_read_piece(s, f.bytes));
        while (f.number == 2 && f.bytes.data && next_field(&f.bytes, &g, &inner)) {
            if (g.number == 3)
                s->model_type = (int64_t)g.value;
            else if (g.number == 35)
                s->byte_fallback = g.value != 0;
            else if (g.number >= 40 && g.number <= 42)
                *special_ids[g.number - 40] = (int32_t)g.value;
        }
        while (f.number == 3 && f.bytes.data && next_field(&f.bytes, &g, &inner)) {
            if (g.number == 2 && g.bytes.data) s->charsmap = g.bytes;
            if (g.number == 3) s->prefix = g.value != 0;
            if (g.number == 4) s->trims = g.value != 0;
            if (g.number == 5) s->escapes = g.value != 0;
        }
    }
    if (damaged || inner || !s->count)
        return pith__fail(s->loader->err, PITH_ERR_FORMAT, "%s is not a SentencePiece model",
                          s->loader->path);
    if (s->model_type != UNIGRAM && s->model_type != PAIRS)
        return pith__fail(s->loader->err, PITH_ERR_UNSUPPORTED,
                          "the SentencePiece model has type %lld; supported are unigram and bpe",
                          (long long)s->model_type);
    if (s->unk_id < 0 || s->unk_id >= (int64_t)s->count)
        return pith__fail(s->loader->err, PITH_ERR_FORMAT, "unk_id %lld is outside %zu pieces",
                          (long long)s->unk_id, s->count);
    return PITH_OK;
}

/* ---- families ---- */

static bool has_piece(const spm *s, const char *piece) {
    for (size_t i = 0; i < s->count && i < 512; i++)
        if (pith__str_is(s->pieces[i], piece)) return true;
    return false;
}

/* What the files are usually, where nothing names a class. */
static const char *usual_class(const spm *s, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const pith__tokenizer_config *c = s->loader->config;
    /* what these two classes alone have */
    const bool framed = c->add_bos_token >= 0 || c->add_eos_token >= 0;
    if (s->model_type == PAIRS) {
        if (!framed) return "(plain)";
        return has_piece(s, "<bos>") ? "GemmaTokenizer" : "LlamaTokenizer";
    }
    if (strcmp(name, "sentencepiece.bpe.model") == 0) return "XLMRobertaTokenizer";
    if (strcmp(name, "spm.model") == 0) return "DebertaV2Tokenizer";
    if (strcmp(name, "spiece.model") == 0)
        return has_piece(s, "[CLS]") ? "AlbertTokenizer" : "T5Tokenizer";
    return "(plain)";
}

static pith_status source_sentencepiece_find_family(spm *s, const char *path) {
    const void *row;
    const char *slash = strrchr(path, '/'), *name = usual_class(s, path);
    PITH_TRY(pith__source_class(&row, s->loader, pith__spm_families, pith__spm_family_count,
                                sizeof *pith__spm_families, slash ? slash + 1 : path));
    for (size_t i = 0; i < pith__spm_family_count && !row; i++)
        if (strcmp(pith__spm_families[i].name, name) == 0) row = &pith__spm_families[i];
    s->family = row;
    if (s->family->type == PITH_SPM_ANY || s->family->type == s->model_type) return PITH_OK;
    return pith__fail(
        s->loader->err, PITH_ERR_UNSUPPORTED,
        "%s: a %s model, but a %s needs the other type; put the tokenizer.json of the model there",
        path, s->model_type == PAIRS ? "bpe" : "unigram", s->family->name);
}

/* ---- ids ---- */

/* The words of a family's head or tail. */
static pith_status add_words(spm *s, const char *words) {
    for (const char *p = words; *p; p += *p == ' ') {
        size_t size = strcspn(p, " @"), stem = 0;
        double score = 0;
        int first = 0, last = 0, read = 0;
        while (stem < size && (p[stem] < '0' || p[stem] > '9')) stem++;
        bool range =
            stem < size && sscanf(p + stem, "%d..%d>%n", &first, &last, &read) == 2 && read;
        if (!range) first = last = 0;
        const char *word = p;
        p += size;
        if (*p == '@') score = strtol(p + 1, (char **)(uintptr_t)&p, 10);
        for (int i = first;; i += first < last ? 1 : -1) {
            pith_str name =
                range ? pith__arena_printf(s->loader->scratch, "%.*s%d>", (int)stem, word, i)
                      : (pith_str){ word, size };
            if (!name.data || !add_piece(s, name, score, CONTROL))
                return pith__fail_memory(s->loader->err, s->count);
            if (i == last) break;
        }
    }
    return PITH_OK;
}

/* Gives the ids: puts the family's words around the pieces. */
static pith_status lay_out(spm *s) {
    const pith__spm_family *f = s->family;
    const int32_t extra = s->loader->config->extra_ids;
    const char *tail = f->tail;
    if (extra >= 0 && !strncmp(tail, "<extra_id_", 10)) /* as many as tokenizer_config.json says */
        tail = extra
                   ? pith__arena_printf(s->loader->scratch, "<extra_id_%d..0>", (int)extra - 1).data
                   : "";
    if (!tail) return pith__fail_memory(s->loader->err, 64);
    spm laid = *s;
    laid.pieces = NULL;
    laid.scores = NULL;
    laid.types = NULL;
    laid.count = laid.piece_capacity = laid.score_capacity = laid.type_capacity = 0;
    if (s->count < f->skip)
        return pith__fail(s->loader->err, PITH_ERR_FORMAT, "%zu pieces are too few for a %s",
                          s->count, f->name);
    PITH_TRY(add_words(&laid, f->head));
    int64_t moved = (int64_t)laid.count - f->skip;
    for (size_t i = f->skip; i < s->count; i++) {
        PITH_TRY(pith__loader_check(s->loader, i));
        pith_str piece = s->pieces[i];
        bool less = f->commas && piece.size > 1 && piece.data[piece.size - 1] == ',' &&
                    piece.data[piece.size - 2] >= '0' && piece.data[piece.size - 2] <= '9';
        if (!add_piece(&laid, piece, s->scores[i] - (less ? 100 : 0), s->types[i]))
            return pith__fail_memory(s->loader->err, s->count);
    }
    PITH_TRY(add_words(&laid, tail));
    laid.unk_id = f->unk >= 0 ? f->unk : s->unk_id + moved;
    if (laid.unk_id < 0 || laid.unk_id >= (int64_t)laid.count)
        return pith__fail(s->loader->err, PITH_ERR_FORMAT, "unk_id %lld is outside %zu pieces",
                          (long long)laid.unk_id, laid.count);
    laid.types[laid.unk_id] = UNKNOWN;
    *s = laid;
    return PITH_OK;
}

/* Without a class (plain) the model decides, as SentencePiece itself does: bytes if it has them,
 * merges of normal pieces alone, and pieces that users have defined stay whole. With a class,
 * unknown characters become bytes in any case. */
static pith_status build_pairs(const spm *s, const void **model) {
    pith__bpe_spec spec = { .vocab.scratch = s->loader->scratch,
                            .fuse_unk = true,
                            .byte_fallback = true };
    bool *merges = NULL;
    if (!s->family->no_unknown) spec.unk_token = s->pieces[s->unk_id];
    if (s->family->plain) {
        spec.byte_fallback = s->byte_fallback;
        merges = pith__arena_array(s->loader->scratch, s->count, sizeof *merges);
        if (!merges) return pith__fail_memory(s->loader->err, s->count);
        for (size_t i = 0; i < s->count; i++) {
            spec.ignore_merges |= s->types[i] == USER_DEFINED;
            merges[i] = s->types[i] == NORMAL;
        }
    }
    PITH_TRY(pith__spm_merges(&spec, s->loader, s->pieces, s->scores, merges, s->count));
    return pith__bpe_build(model, &spec, s->loader);
}

static pith_status build_model(spm *s) {
    const void *model = NULL;
    if (s->model_type == PAIRS) {
        PITH_TRY(build_pairs(s, &model));
        pith__loader_set_model(s->loader, &pith__model_BPE, model);
        return PITH_OK;
    }
    bool bytes = s->byte_fallback && s->family->byte_pieces;
    model =
        pith__unigram_build(s->pieces, s->scores, s->count, (int32_t)s->unk_id, bytes, s->loader);
    if (!model) return s->loader->err->code;
    pith__loader_set_model(s->loader, &pith__model_Unigram, model);
    return PITH_OK;
}

/* ---- steps ---- */

#define REPLACE(what, with) "{\"type\":\"Replace\",\"pattern\":" what ",\"content\":\"" with "\"}"
#define MARK "\xE2\x96\x81"
#define METASPACE(scheme, split)                                                                   \
    "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"" scheme            \
    "\",\"split\":" split "}"

static pith_status add_precompiled(const spm *s) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *head = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"";
    size_t size = s->charsmap.size, head_size = strlen(head), at = head_size;
    if (!size) return PITH_OK;
    if (size > INT32_MAX)
        return pith__fail(s->loader->err, PITH_ERR_UNSUPPORTED, "a charsmap of %zu bytes", size);
    char *json = pith__arena_alloc(s->loader->scratch, head_size + size / 3 * 4 + 8);
    if (!json) return pith__fail_memory(s->loader->err, size);
    memcpy(json, head, head_size);
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = 0;
        for (size_t k = i; k < i + 3; k++)
            bits = bits << 8 | (k < size ? (unsigned char)s->charsmap.data[k] : 0);
        for (unsigned k = 0; k < 4; k++)
            json[at++] = k > size - i ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
    memcpy(json + at, "\"}", 2);
    return pith__loader_add(s->loader, "normalizer", (pith_str){ json, at + 2 });
}

typedef struct step {
    char letter; /* of pith__spm_family */
    const char *json;
} step;

static pith_status source_sentencepiece_add_steps(pith__loader *l, const char *kind, char letter,
                                                  const step *steps, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (steps[i].letter == letter)
            PITH_TRY(pith__loader_add(l, kind, pith__str_of(steps[i].json)));
    return PITH_OK;
}

/* The steps of the family's letters (spm_family.h), in their order; settings of
 * tokenizer_config.json leave some out. */
static pith_status add_normalizers(const spm *s) {
    static const step steps[] = {
        { 'q', REPLACE("{\"String\":\"``\"}", "\\\"") },
        { 'q', REPLACE("{\"String\":\"''\"}", "\\\"") },
        { 'k', "{\"type\":\"NFKD\"}" },
        { 'k', "{\"type\":\"StripAccents\"}" },
        { 'l', "{\"type\":\"Lowercase\"}" },
        { 'S', "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}" },
        { 't', "{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}" },
        { 's', REPLACE("{\"Regex\":\" {2,}\"}", " ") },
        { 'u', REPLACE("{\"Regex\":\" {2,}\"}", MARK) },
        { 'm', REPLACE("{\"String\":\" \"}", MARK) },
    };
    const pith__tokenizer_config *c = s->loader->config;
    for (const char *p = s->family->normalizers; *p; p++) {
        char letter = *p;
        if (letter == 'c') PITH_TRY(add_precompiled(s));
        if ((letter == 'k' && c->keep_accents == 1) || (letter == 'K' && c->keep_accents != 0))
            continue;
        if ((letter == 'l' && c->do_lower_case == 0) || (letter == 'L' && c->do_lower_case != 1))
            continue;
        if (letter == 'K' || letter == 'L') letter = (char)(letter - 'A' + 'a');
        PITH_TRY(source_sentencepiece_add_steps(s->loader, "normalizer", letter, steps,
                                                sizeof steps / sizeof *steps));
    }
    return PITH_OK;
}

/* The same for cuts and decoders. */
static pith_status add_cuts(const spm *s) {
    static const step cuts[] = {
        { 'w', "{\"type\":\"WhitespaceSplit\"}" },
        { 'm', METASPACE("always", "true") },
        { 'p', "{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"}" },
        { 'f', METASPACE("first", "false") },
        { 'a', METASPACE("always", "false") },
        { 'n', METASPACE("never", "false") },
        { 'g',
          "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\","
          "\"invert\":false}" },
    };
    static const step decoders[] = {
        { 'm', METASPACE("always", "true") },
        { 'r', REPLACE("{\"String\":\"" MARK "\"}", " ") },
        { 'b', "{\"type\":\"ByteFallback\"}" },
        { 'f', "{\"type\":\"Fuse\"}" },
        { 'B', "{\"type\":\"ByteFallback\"}" },
        { 'B', "{\"type\":\"Fuse\"}" },
        { 's', "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" },
    };
    const pith__tokenizer_config *c = s->loader->config;
    for (const char *p = s->family->cuts; *p; p++) {
        char letter = 'f';
        if (*p != 'f')
            letter = *p;
        else if (c->add_prefix_space == 0)
            letter = 'n';
        else if (c->legacy == 1)
            letter = 'a';
        if (letter != 'p' || c->split_by_punct == 1)
            PITH_TRY(source_sentencepiece_add_steps(s->loader, "pre_tokenizer", letter, cuts,
                                                    sizeof cuts / sizeof *cuts));
    }
    for (const char *p = s->family->decoders; *p; p++)
        if (*p != 'B' || s->byte_fallback)
            PITH_TRY(source_sentencepiece_add_steps(s->loader, "decoder", *p, decoders,
                                                    sizeof decoders / sizeof *decoders));
    return PITH_OK;
}

/* Cuts at the pieces that users have defined, the longest first. */
static pith_status add_user_pieces(const spm *s) {
    static const char special[] = "\\^$.|?*+()[]{}-#&~ \t\n\r\v\f\"";
    pith__arena *scratch = s->loader->scratch;
    size_t room = 128, at, most = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->types[i] == USER_DEFINED) room += 12 * s->pieces[i].size + 1;
    if (room == 128) return PITH_OK;
    char *json = pith__arena_alloc(scratch, room);
    if (!json) return pith__fail_memory(s->loader->err, room);
    at = (size_t)snprintf(json, room, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"");
    const size_t begin = at;
    for (size_t i = 0; i < s->count; i++)
        if (s->types[i] == USER_DEFINED && s->pieces[i].size > most) most = s->pieces[i].size;
    for (size_t size = most; size; size--) {
        PITH_TRY(pith__stop_check(s->loader->stop, s->loader->err));
        for (size_t i = 0; i < s->count; i++) {
            if (s->types[i] != USER_DEFINED || s->pieces[i].size != size) continue;
            if (at > begin) json[at++] = '|';
            for (size_t k = 0; k < size; k++) {
                const char c = s->pieces[i].data[k];
                const bool plain = (unsigned char)c >= 0x80 || !memchr(special, c, sizeof special);
                if (plain)
                    json[at++] = c;
                else
                    at += (size_t)snprintf(json + at, room - at, "\\\\x{%x}", (unsigned char)c);
            }
        }
    }
    at += (size_t)snprintf(json + at, room - at, "\"},\"behavior\":\"Isolated\",\"invert\":false}");
    return pith__loader_add(s->loader, "pre_tokenizer", (pith_str){ json, at });
}

/* The steps that the model itself asks for. Source: transformers 5.24,
 * SpmConverter.build_tokenizer_from_spm_proto. */
static pith_status add_plain(const spm *s) {
    pith__loader *l = s->loader;
    const bool always = l->config->legacy != 0;
    PITH_TRY(add_precompiled(s));
    if (s->trims) {
        PITH_TRY(pith__loader_add(l, "normalizer",
                                  PITH_STR(REPLACE("{\"Regex\":\"\\\\A +| +\\\\z\"}", ""))));
        PITH_TRY(
            pith__loader_add(l, "normalizer", PITH_STR(REPLACE("{\"Regex\":\" {2,}\"}", " "))));
    }
    if (s->escapes)
        PITH_TRY(pith__loader_add(l, "normalizer", PITH_STR(REPLACE("{\"String\":\" \"}", MARK))));
    if (s->prefix && always)
        PITH_TRY(pith__loader_add(l, "normalizer",
                                  PITH_STR(REPLACE("{\"Regex\":\"\\\\A" MARK "\"}", MARK MARK))));
    if (s->prefix)
        PITH_TRY(pith__loader_add(l, "pre_tokenizer",
                                  always ? PITH_STR(METASPACE("always", "false"))
                                         : PITH_STR(METASPACE("first", "false"))));
    return add_user_pieces(s);
}

static pith_status add_tokens(const spm *s) {
    const char *mask = s->family->mask;
    s->loader->class = pith__token_class_find(pith__str_of(s->family->name));
    s->loader->mask_flags = mask ? PITH_ADDED_LSTRIP : 0;
    if (s->family->plain) {
        for (size_t i = 0; i < s->count; i++)
            if (s->types[i] == UNKNOWN || (int64_t)i == s->bos_id || (int64_t)i == s->eos_id)
                PITH_TRY(pith__source_special(s->loader, s->pieces[i], 0));
    }
    if (!s->family->plain)
        for (size_t i = 0; i < s->count; i++) {
            bool strips = mask && pith__str_is(s->pieces[i], mask);
            if (s->types[i] == CONTROL || s->types[i] == UNKNOWN)
                PITH_TRY(
                    pith__source_special(s->loader, s->pieces[i], strips ? PITH_ADDED_LSTRIP : 0));
            else if (s->types[i] == USER_DEFINED && s->pieces[i].size)
                PITH_TRY(pith__loader_add_token(s->loader, s->pieces[i], -1, 0));
        }
    if (!s->family->last) return PITH_OK;
    return pith__source_special(
        s->loader, pith__source_token(s->loader->config->mask_token, s->family->last), 0);
}

static pith_str frame_token(const pith__tokenizer_config *c, const char *token) {
    pith_str said = c->src_lang;
    if (*token == 'c')
        said = c->cls_token;
    else if (*token == 's')
        said = c->sep_token;
    else if (*token == 'b')
        said = c->bos_token;
    else if (*token == 'e')
        said = c->eos_token;
    return pith__source_token(said, token + 1);
}

static pith_status source_sentencepiece_add_frame(const spm *s) {
    /* By add_bos_token and add_eos_token. */
    static const pith__source_template ends[2][2] = {
        { { NULL, NULL, NULL, NULL }, { "A1", "00", "A1B1", "0011" } },
        { { "0A", "00", "0A0B", "0011" }, { "0A1", "000", "0A10B1", "000111" } },
    };
    const pith__spm_family *f = s->family;
    const pith__tokenizer_config *c = s->loader->config;
    pith__source_template frame = { f->single, f->single_types, f->pair, f->pair_types };
    pith_str tokens[2] = { PITH_STR(""), PITH_STR("") };
    for (int i = 0; i < 2; i++)
        if (f->tokens[i]) tokens[i] = frame_token(c, f->tokens[i]);
    if (!frame.single && f->tokens[0]) frame = ends[c->add_bos_token == 1][c->add_eos_token == 1];
    return frame.single ? pith__source_frame(s->loader, tokens, &frame) : PITH_OK;
}

static pith_status source_sentencepiece_load(pith__loader *loader, const char *path,
                                             pith_str bytes) {
    spm s = { .loader = loader, .model_type = UNIGRAM, .bos_id = 1, .eos_id = 2 };
    s.prefix = s.trims = s.escapes = true;
    PITH_TRY(source_sentencepiece_read_model(&s, bytes));
    PITH_TRY(source_sentencepiece_find_family(&s, path));
    PITH_TRY(lay_out(&s));
    PITH_TRY(build_model(&s));
    if (s.family->plain) PITH_TRY(add_plain(&s));
    PITH_TRY(add_normalizers(&s));
    PITH_TRY(add_cuts(&s));
    PITH_TRY(add_tokens(&s));
    return source_sentencepiece_add_frame(&s);
}

const pith__tokenizer_source pith__source_sentencepiece = { "SentencePiece model",
                                                            20,
                                                            { "sentencepiece.bpe.model",
                                                              "spiece.model", "tokenizer.model",
                                                              "spm.model", "sentencepiece.model" },
                                                            ".model .spm",
                                                            source_sentencepiece_load,
                                                            NULL };
