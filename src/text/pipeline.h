/* pipeline.h - the parts of a tokenizer: steps, and text that knows where its bytes came from.
 *
 * An encoding works on one text. Added tokens cut it into pieces; normalizers rewrite pieces,
 * pre-tokenizers cut (and some rewrite) them, the model turns each piece into tokens; the
 * post-processor frames the whole. A piece is a span of the current text; every byte of a rewritten
 * text knows the byte of the source it came from (only if offsets are wanted). All buffers belong
 * to the encoding and are reused by the next one: a step allocates nothing per piece or token.
 *
 * Each kind of step is one file ending in a descriptor (`const pith__normalizer_desc
 * pith__normalizer_Lowercase = {…}`) and one line in select/tokenizers.def
 * (`NORMALIZER(Lowercase)`). What a step learns when it is parsed lies in the tokenizer's arena, is
 * read-only afterwards and shared by threads; tables hold indices, not pointers. Sequences are
 * flattened by the loader and are no steps. Texts are valid UTF-8 below 2^30 bytes. */
#ifndef PITH_TEXT_PIPELINE_H
#define PITH_TEXT_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/left_out_pieces.h"
#include "base/memory/span_map.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "text/text_rules.h"

/* ---- text and pieces ---- */

#define PITH_TEXT_MAX (1u << 30)

/* origin[i] is the index of a source byte; the offsets of byte i are those of the source character
 * holding that byte. With this bit set it is an empty range at the index instead (inserted text
 * that belongs to nothing). */
#define PITH_ORIGIN_EMPTY 0x80000000u

typedef struct pith__text {
    char *data;       /* valid UTF-8; at least 16 readable bytes follow the last one once it was
                         rewritten */
    uint32_t *origin; /* [size]; NULL: offsets are not wanted, or byte i came from source byte i */
    size_t size;
    size_t capacity; /* 0: data is the caller's source text and is not written */
} pith__text;

/* Token ids are below this; files with larger ones are refused. */
#define PITH_TOKEN_ID_MAX (1 << 24)

/* A span of the current text. id >= 0: an added token, which later steps leave alone. */
typedef struct pith__piece {
    uint32_t begin, end;
    int32_t id;
} pith__piece;

/* Growable buffers for models, kept between calls of one pith__encoding, so caches may live in
 * them. The last two slots are not theirs. */
enum { PITH_SCRATCH_SLOTS = 7, PITH_SCRATCH_NORMAL = 5, PITH_SCRATCH_FRAME = 6 };

/* The state of one thread's work on one text. Steps use the functions below and read the fields. */
typedef struct pith__encoding {
    const pith_tokenizer *tokenizer;
    const pith_allocator *allocator;
    const pith_allocator *tokens_allocator; /* of the result, which may be the caller's */
    pith_str source;
    bool offsets;         /* origins are kept */
    pith__text text, out; /* the current text; what rewriting steps write */
    pith__piece *pieces, *next;
    size_t piece_count, next_count, piece_capacity, next_capacity;
    /* What the model emitted; offsets index `text` until the framework maps them to the source. */
    int32_t *ids;
    uint32_t *begin, *end;
    int32_t *words;
    size_t count, capacity;
    int32_t word; /* index of the piece at hand; fused steps count it up themselves */
    struct {
        void *data;
        size_t size;
    } scratch[PITH_SCRATCH_SLOTS];
    pith__text spare;
    pith_error *err;
    pith__stop *stop;    /* of the call; NULL: it cannot be stopped */
    size_t look;         /* see pith__encoding_stops */
    bool stopped;        /* the call must end; the framework reports it like the next one */
    bool out_of_memory;  /* set by the functions below; the framework reports it after the step */
    bool source_offsets; /* begin and end are in source bytes already (fused steps) */
    bool unfused;        /* set by a fused step that cannot do this text: it goes through the steps
                            instead */
    size_t limit;        /* tokens beyond this many will be cut off: fused steps may stop there */
} pith__encoding;

/* The slow part of pith__encoding_stops. */
bool pith__encoding_look(pith__encoding *enc, size_t at);

/* Whether the call must end, for loops that go through a long text: a step that sees it leaves its
 * loop, and what it has made is thrown away. at: a number that grows as the step goes on, at most
 * by the number of bytes it has gone through since; the framework calls pith__encoding_restart
 * before it begins at 0 again. */
static inline bool pith__encoding_stops(pith__encoding *enc, size_t at) {
    return at >= enc->look && pith__encoding_look(enc, at);
}
static inline void pith__encoding_restart(pith__encoding *enc) {
    enc->look = enc->stop ? 0 : SIZE_MAX;
}

/* The source byte range that text bytes [begin, end) stand for, begin < end. */
void pith__encoding_range(const pith__encoding *enc, uint32_t begin, uint32_t end,
                          uint32_t *source_begin, uint32_t *source_end);

/* Rewriting steps: room for more bytes at the end of out (and their origins). False: out of memory.
 */
bool pith__encoding_reserve_slow(pith__encoding *enc, size_t more);
static inline bool pith__encoding_reserve(pith__encoding *enc, size_t more) {
    return enc->out.size + more + 16 <= enc->out.capacity || pith__encoding_reserve_slow(enc, more);
}
/* Origins for out bytes [at, at + bytes): those of the text byte `from`; PITH_ORIGIN_EMPTY | i:
 * empty at source byte i. */
void pith__encoding_origin(pith__encoding *enc, size_t at, size_t bytes, uint32_t from);
/* Appends bytes that all come from the text byte `from` (a byte of the first replaced character, as
 * Hugging Face aligns them). Room is made as needed. */
static inline void pith__encoding_put(pith__encoding *enc, const char *bytes, size_t size,
                                      uint32_t from) {
    if (!pith__encoding_reserve(enc, size)) return;
    memcpy(enc->out.data + enc->out.size, bytes, size);
    if (enc->offsets) pith__encoding_origin(enc, enc->out.size, size, from);
    enc->out.size += size;
}
static inline void pith__encoding_put_char(pith__encoding *enc, uint32_t c, uint32_t from) {
    char bytes[4];
    pith__encoding_put(enc, bytes, pith__utf8_put(bytes, c), from);
}
/* Appends text bytes [begin, end) with their own origins. */
void pith__encoding_copy(pith__encoding *enc, uint32_t begin, uint32_t end);

/* Pre-tokenizers: the next piece, in order. Cutting steps give spans of text, rewriting ones spans
 * of out. Empty spans are dropped, as Hugging Face does. */
bool pith__encoding_grow_pieces(pith__encoding *enc);
static inline void pith__encoding_emit(pith__encoding *enc, uint32_t begin, uint32_t end) {
    if (begin == end) return;
    if (enc->next_count == enc->next_capacity && !pith__encoding_grow_pieces(enc)) return;
    enc->next[enc->next_count++] = (pith__piece){ begin, end, -1 };
}

/* Models: one token for text bytes [begin, end). The framework has made room for one token per byte
 * of the piece, but for PITH_PIECE_ROOM at most, plus eight; a step that gives more calls
 * pith__encoding_room first. */
enum { PITH_PIECE_ROOM = 4096 };
bool pith__encoding_room(pith__encoding *enc, size_t tokens);
static inline void pith__encoding_token(pith__encoding *enc, int32_t id, uint32_t begin,
                                        uint32_t end) {
    size_t i = enc->count++;
    enc->ids[i] = id;
    enc->begin[i] = begin;
    enc->end[i] = end;
    enc->words[i] = enc->word;
}

/* At least bytes of memory, 64-byte aligned, zeroed whenever it is newly made or grown; contents
 * stay between texts. NULL: out of memory (noted in the encoding). */
void *pith__encoding_scratch(pith__encoding *enc, int slot, size_t bytes);

/* How a pattern's matches cut a piece: Hugging Face's SplitDelimiterBehavior. */
typedef enum pith__behavior {
    PITH_SPLIT_REMOVED,
    PITH_SPLIT_ISOLATED,
    PITH_SPLIT_MERGED_WITH_PREVIOUS,
    PITH_SPLIT_MERGED_WITH_NEXT,
    PITH_SPLIT_CONTIGUOUS
} pith__behavior;

/* Feed it the matches of a piece in order (empty matches too: they cut), then end it. invert swaps
 * the roles of the matches and what lies between. */
typedef struct pith__splitter {
    pith__encoding *enc;
    pith__behavior behavior;
    bool invert, last_match, open;
    uint32_t begin, end; /* the piece being built, if open */
    uint32_t at, stop;
} pith__splitter;
void pith__split_begin(pith__splitter *s, pith__encoding *enc, pith__piece piece,
                       pith__behavior behavior, bool invert);
void pith__split_match(pith__splitter *s, uint32_t begin, uint32_t end);
void pith__split_end(pith__splitter *s);
/* "Removed", "Isolated", … */
pith__behavior pith__json_behavior(pith__json *j);

/* ---- steps ---- */

/* What parsing a step needs. */
typedef struct pith__loader {
    pith_tokenizer *tokenizer;
    pith__arena *arena;   /* of the tokenizer: results */
    pith__arena *scratch; /* freed when loading is done */
    const pith_allocator *allocator;
    pith_error *err;
    pith__stop *stop; /* of the call that opens the tokenizer; NULL: it cannot be stopped */
    const char *path; /* of the file or directory, for messages */
    pith_str frozen;  /* the model's tables (frozen_tokenizer.h); data NULL: they are read and
                         built */
    struct pith__tokenizer_config *config; /* config_files.h; fields are empty where the files are
                                              missing */
    const pith_log *log;                   /* may be NULL */
    const char *json_name;                 /* of the tokenizer.json whose keys are noted
                                              (key_report.h); NULL: none */
    const struct pith__token_class *class; /* that a source took the files for; NULL: none that is
                                              known */
    uint32_t mask_flags;                   /* of that class's mask token */
    pith__lacks lacks;                     /* steps that the tokenizer has and this build was made
                                              without */
} pith__loader;

/* For loops over a vocabulary: PITH_OK, or the error that ends the loading, which is asked for at
 * some of the entries i. */
static inline pith_status pith__loader_check(const pith__loader *loader, size_t i) {
    return i % 4096 ? PITH_OK : pith__stop_check(loader->stop, loader->err);
}

typedef struct pith__frozen_writer pith__frozen_writer;

/* Reads a whole JSON object (the "type" key included, unknown keys skipped) into *self, which is
 * the step's own data or NULL. Faults go through pith__json_fail; the caller checks j->failed. A
 * NULL function stands for a step without data. A normalizer may add other steps in its place by
 * pith__loader_add_normalizer and set *self to PITH_STEP_REPLACED. */
typedef void pith__parse_fn(const void **self, pith__json *j, pith__loader *loader);
extern const char pith__step_replaced;
#define PITH_STEP_REPLACED (&pith__step_replaced)

enum {
    PITH_STEP_ASCII_NOOP = 1u << 0, /* leaves ASCII text as it is: the framework skips it there */
    PITH_STEP_REWRITES = 1u << 1,   /* a pre-tokenizer that writes out; normalizers always do */
    /* About the place before a single space that stands between two ASCII letters, see
     * first_tokens.h. LOCAL: what comes of the text before it does not depend on what follows, but
     * for the piece that holds the place, and the space stays. CUTS: pieces always end there. */
    PITH_STEP_LOCAL = 1u << 2,
    PITH_STEP_CUTS = 1u << 3,
    /* A normalizer that goes through its piece a byte or a character at a time, and makes of each
     * what it would make of it alone: the framework gives it a long piece in slices. */
    PITH_STEP_EACH = 1u << 4
};

/* run appends the normalised piece to out. */
typedef struct pith__normalizer_desc {
    const char *name; /* "type" in tokenizer.json */
    uint32_t flags;
    pith__parse_fn *parse;
    pith_status (*run)(const void *self, pith__encoding *enc, pith__piece piece);
    uint32_t (*nature)(const void *self); /* further flags, which depend on the step's data; may be
                                             NULL */
} pith__normalizer_desc;

/* run emits the pieces of a piece. enc->next_count == 0 and piece.begin's origin tell whether it is
 * the first. */
typedef struct pith__pretokenizer_desc {
    const char *name;
    uint32_t flags;
    pith__parse_fn *parse;
    pith_status (*run)(const void *self, pith__encoding *enc, pith__piece piece);
    uint32_t (*nature)(const void *self); /* as above */
} pith__pretokenizer_desc;

typedef struct pith__model_desc {
    const char *name;
    pith__parse_fn *parse;
    /* Tokens of one piece of text, by pith__encoding_token. */
    pith_status (*encode)(const void *self, pith__encoding *enc, pith__piece piece);
    int32_t (*id)(const void *self, pith_str token); /* -1: none */
    /* data NULL: none. Valid as long as the tokenizer. */
    pith_str (*token)(const void *self, int32_t id);
    int32_t (*size)(const void *self); /* largest id + 1 */
    /* Its settings, as parse reads them, and its tables, which parse finds again where
     * loader->frozen is set. */
    void (*save)(const void *self, pith__frozen_writer *writer);
    /* May be NULL. After everything is parsed: if the model can do the tokenizer's whole chain from
     * raw text to tokens at once, with the same result, it returns data for `fused`, else NULL. */
    const void *(*fuse)(const void *self, pith__loader *loader);
    /* A raw piece of the source between added tokens → tokens (offsets in source bytes), counting
     * enc->word up by the number of pieces there would have been. Used when no added token is
     * matched in normalised text, or when there is no normalizer. */
    pith_status (*encode_fused)(const void *fused, pith__encoding *enc, pith__piece piece);
    int32_t (*count)(const void *self); /* tokens in the vocabulary, where that is not size; NULL:
                                           it is */
    /* Frees what a fused form has taken from the allocator while it worked. May be NULL. */
    void (*unfuse)(const void *fused, const pith_allocator *allocator);
    /* May be NULL. After everything is parsed: the model may take over the last pre-tokenizers by
     * removing them from the list, and returns its data from then on (self, if nothing changes;
     * NULL: a failure, in loader->err). */
    const void *(*adopt)(const void *self, pith__loader *loader);
    /* Frees what the model has taken from the allocator while it worked. May be NULL. */
    void (*unload)(const void *self);
} pith__model_desc;

struct pith__decoding;
/* Decoders work on a list of token strings; text/decoders/decode.h says how. */
typedef struct pith__decoder_desc {
    const char *name;
    pith__parse_fn *parse;
    pith_status (*run)(const void *self, struct pith__decoding *decoding);
} pith__decoder_desc;

enum { PITH_SOURCE_FILES = 5 };

/* A kind of tokenizer files that is not tokenizer.json. load fills loader->tokenizer, mostly by
 * pith__loader_add. */
typedef struct pith__tokenizer_source {
    const char *name;
    int rank;                             /* the lowest that is found in a directory wins;
                                             tokenizer.json has 0 */
    const char *files[PITH_SOURCE_FILES]; /* names looked for in a directory, any of them is
                                             enough */
    const char *suffixes;                 /* of a path given directly: ".model .spm" */
    pith_status (*load)(pith__loader *loader, const char *path, pith_str bytes);
    bool (*is)(pith_str bytes); /* true if the bytes are certainly of this kind; NULL: bytes cannot
                                   tell */
} pith__tokenizer_source;

typedef struct pith__text_step {
    const void *desc; /* the descriptor of its list; NULL: a decoder this build has not, self is its
                         name, a C string */
    const void *self;
} pith__text_step;

typedef struct pith__step_list {
    pith__text_step *steps;
    size_t count, capacity;
} pith__step_list;

/* ---- the tokenizer ---- */

/* A part of tokenizer.json as it was read, or as a source made it up. */
typedef struct pith__setting {
    const char *key; /* "normalizer", … */
    pith_str json;
} pith__setting;

enum {
    PITH_ADDED_SINGLE_WORD = 1,
    PITH_ADDED_LSTRIP = 2,
    PITH_ADDED_RSTRIP = 4,
    PITH_ADDED_NORMALIZED = 8,
    PITH_ADDED_SPECIAL = 16
};

struct pith_tokenizer {
    pith__arena *arena;
    const pith_allocator *allocator;
    pith__step_list normalizers, pretokenizers, decoders; /* flattened */
    const pith__model_desc *model;
    const void *model_self;
    const void *fused;                             /* NULL: step by step */
    struct pith__added_tokens *added_tokens;       /* added_tokens.h */
    struct pith__post_processing *post_processing; /* post_processing.h */
    const struct pith__tokenizer_config *config;
    struct pith__encoding_pool *calls;
    pith__setting *settings; /* everything but the model and added tokens, in the order of
                                reading */
    size_t setting_count, setting_capacity;
    struct pith__key_report *keys; /* key_report.h */
    size_t key_count, key_capacity;
    pith_str file;      /* that it was read from; data NULL: none */
    int32_t unknown_id; /* tokens of this id have the text they were found as, in the peer too; -1:
                           there is none */
    bool begins_alone;  /* see first_tokens.h */
    bool needs_origins; /* a step asks where a piece begins in the source */
    bool from_frozen;   /* token strings are unchecked; check them before showing them */
    bool left;          /* texts are cut at their beginning, if the caller does not say */
    bool untyped;       /* the model gets no token types: all are 0 */
    bool truncates;     /* the truncation of tokenizer.json holds, besides the caller's */
    pith__text_rules rules;
};

/* Adds a step (kind: "normalizer", "pre_tokenizer", "model", "post_processor", "decoder") from its
 * JSON text, as it would stand in tokenizer.json; null adds nothing. For sources that are not
 * tokenizer.json. */
pith_status pith__loader_add(pith__loader *loader, const char *kind, pith_str json);
/* False: out of memory. */
bool pith__loader_add_normalizer(pith__loader *loader, const pith__normalizer_desc *desc,
                                 const void *self);
/* The model from what a source has already built: self is its own data, as parse would have left
 * it. */
void pith__loader_set_model(pith__loader *loader, const pith__model_desc *desc, const void *self);
/* An added token; flags PITH_ADDED_*. The model must be set. A content the model knows has the
 * model's id; else id, or the next free one if id is -1. */
pith_status pith__loader_add_token(pith__loader *loader, pith_str content, int32_t id,
                                   uint32_t flags);

/* The JSON of a setting as it was read; "null" if there is none, or if several steps made it up. */
pith_str pith__loader_setting(const pith__loader *loader, const char *kind);
/* Puts another "normalizer" or "pre_tokenizer" in the place of the file's. */
pith_status pith__loader_replace(pith__loader *loader, const char *kind, pith_str json);

/* The lists of select/tokenizers.def, made by select/tables.c; each ends with NULL. */
extern const pith__normalizer_desc *const pith__normalizer_table[];
extern const pith__pretokenizer_desc *const pith__pretokenizer_table[];
extern const pith__model_desc *const pith__model_table[];
extern const pith__decoder_desc *const pith__decoder_table[];
extern const pith__tokenizer_source *const pith__tokenizer_sources[];

/* By name ("type" in tokenizer.json). NULL: not in this build. */
const pith__normalizer_desc *pith__normalizer_find(pith_str name);
const pith__pretokenizer_desc *pith__pretokenizer_find(pith_str name);
const pith__model_desc *pith__model_find(pith_str name);
const pith__decoder_desc *pith__decoder_find(pith_str name);

#endif
