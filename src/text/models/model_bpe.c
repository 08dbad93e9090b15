/* model_bpe.c - byte-pair encoding: a piece becomes symbols, one per character or byte, which
 * bpe_merges.c merges. When there is much text to encode, the same tokens are found as longest
 * matches (bpe_longest.c).
 *
 * Symbols are looked up with the prefix of inner ones and the suffix of last ones. A symbol that is
 * not in the vocabulary falls back to byte tokens or to the unknown token, or vanishes, exactly as
 * in Hugging Face tokenizers, where token lengths add up from the start of the piece. If ByteLevel
 * is the last pre-tokenizer, text is not spelled in its 256 characters at all: adopt() drops that
 * step, and symbols are looked up by byte. Dropout counts as off. */
#include <pthread.h>
#include <stdatomic.h>

#include "text/byte_spelling.h"
#include "text/frozen_tokenizer.h"
#include "text/models/bpe_merges.h"
#include "text/models/bpe_cuts.h"
#include "text/models/bpe_longest.h"
#include "text/models/word_cache.h"
#include "text/pretokenizers/pre_bytelevel.h"
#include "text/sources/key_report.h"

/* A text without pre-tokenizer is cut at spaces where no merge joins the characters, else into
 * parts of at least this many bytes. Shorter parts repeat more often and are found in the cache;
 * too short ones cost more than they save. */
enum { PART_MIN = 24 };
/* A piece of more bytes that is read by byte is cut where no merge joins. It bounds memory, not
 * speed. */
enum { RAW_PART = 1 << 16 };

/* SentencePiece's space, U+2581. */
static const char space_mark[] = "\xE2\x96\x81";

/* DIRECT: characters below this have their ids in an array: Latin. AFFIX_MAX: the longest prefix or
 * suffix; SPELLED_MAX: bytes of a character with both. */
enum { DIRECT = 0x180, AFFIX_MAX = 64, SPELLED_MAX = 2 * AFFIX_MAX + 8 };

/* The suffix of last symbols, for bpe_longest.h: a byte that no text has. */
enum { END_MARK = 0xFF };

/* Where a symbol stands in its piece: inner ones carry the prefix, last ones the suffix. */
enum { INNER = 1, LAST = 2, PLACES = 4 };

/* The tables of longest matches are made when this many bytes of new words were merged for each
 * merge of the vocabulary. Making them takes about as long as that merging did, so they pay from
 * then on. Earlier would slow down a process that tokenizes a few texts. */
enum { BYTES_PER_MERGE = 8 };

/* They are read from a frozen tokenizer, or made by the thread that merges the last of these bytes;
 * others go on merging. */
typedef struct matches {
    pith__bpe_longest tables;
    _Atomic(const pith__bpe_longest *) ready; /* NULL: merge */
    _Atomic int64_t left;                     /* bytes to be merged before that */
    atomic_bool tried;                        /* read, made, or not to be had */
    pthread_mutex_t making;                   /* held while tables, tried and arena change */
    pith__arena arena;                        /* of tables made */
} matches;

typedef struct bpe {
    pith__vocab vocab; /* first: vocab.h */
    pith__merges merges;
    pith__bpe_cuts *cuts;
    matches *matches;
    int32_t unk_id, mark_id;            /* of unk_token and U+2581; -1: not in the vocabulary */
    pith_str unk_token, prefix, suffix; /* data NULL: none */
    bool fuse_unk, byte_fallback, ignore_merges;
    bool raw;                       /* the text is bytes, not the characters that spell them */
    int32_t direct[PLACES][DIRECT]; /* ids of characters (raw: bytes), -1 where there is none */
    int32_t byte_ids[256];          /* of "<0x00>" …; -1 where missing */
} bpe;

static int32_t model_bpe_look_up(const bpe *model, const char *token, size_t size) {
    return pith__vocab_id(&model->vocab, (pith_str){ token, size });
}

/* The symbol of a character as the vocabulary writes it; returns its size. */
static size_t model_bpe_spell(const bpe *model, char out[SPELLED_MAX], const char *character,
                              size_t bytes, unsigned place) {
    size_t size = 0;
    if (place & INNER && model->prefix.size) {
        memcpy(out, model->prefix.data, model->prefix.size);
        size = model->prefix.size;
    }
    memcpy(out + size, character, bytes);
    size += bytes;
    if (place & LAST && model->suffix.size) {
        memcpy(out + size, model->suffix.data, model->suffix.size);
        size += model->suffix.size;
    }
    return size;
}

/* Byte tokens for everything in the text, or nothing. */
static bool model_bpe_add_bytes(const bpe *model, pith__symbol *symbols, size_t *count,
                                const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (model->byte_ids[(unsigned char)text[i]] < 0) return false;
    for (size_t i = 0; i < size; i++)
        symbols[(*count)++] = (pith__symbol){ model->byte_ids[(unsigned char)text[i]], 1 };
    return true;
}

/* The symbols of a piece as they are found. */
typedef struct symbol_list {
    pith__symbol *list;
    size_t count;
    uint32_t unknown; /* bytes of the unknown token that is still to be added */
} symbol_list;

static void flush_unknown(const bpe *model, symbol_list *s) {
    if (s->unknown) s->list[s->count++] = (pith__symbol){ model->unk_id, s->unknown };
    s->unknown = 0;
}

static void add_unknown(const bpe *model, symbol_list *s, uint32_t bytes) {
    if (!model->fuse_unk) flush_unknown(model, s);
    s->unknown += bytes;
}

static void add_known(const bpe *model, symbol_list *s, int32_t id, uint32_t bytes) {
    flush_unknown(model, s);
    s->list[s->count++] = (pith__symbol){ id, bytes };
}

static unsigned place_of(bool first, bool last) { return (first ? 0 : INNER) | (last ? LAST : 0); }

/* Symbols of a piece in bytes. */
static size_t split_bytes(const bpe *model, pith__symbol *list, const char *text, size_t size) {
    symbol_list s = { list, 0, 0 };
    for (size_t i = 0; i < size; i++) {
        int32_t id = model->direct[place_of(i == 0, i + 1 == size)][(unsigned char)text[i]];
        if (id >= 0)
            add_known(model, &s, id, 1);
        else
            add_unknown(model, &s, 1);
    }
    flush_unknown(model, &s);
    return s.count;
}

/* Symbols of a piece in characters; SIZE_MAX: it needs the unknown token, which is not in the
 * vocabulary. For a character that has no symbol: its byte tokens, if the model falls back to bytes
 * and has all of them; else the unknown token, joined with one right before it if the model says
 * so; else nothing. */
static size_t split_characters(const bpe *model, pith__symbol *list, const char *text,
                               size_t size) {
    symbol_list s = { list, 0, 0 };
    for (const char *p = text, *end = text + size; p < end;) {
        const char *begin = p;
        uint32_t c = pith__utf8_next(&p), bytes = (uint32_t)(p - begin);
        unsigned place = place_of(begin == text, p == end);
        char spelled[SPELLED_MAX];
        size_t spelled_size = c < DIRECT ? 0 : model_bpe_spell(model, spelled, begin, bytes, place);
        int32_t id =
            c < DIRECT ? model->direct[place][c] : model_bpe_look_up(model, spelled, spelled_size);
        if (id >= 0) {
            add_known(model, &s, id, bytes);
            continue;
        }
        if (model->byte_fallback) {
            if (c < DIRECT) spelled_size = model_bpe_spell(model, spelled, begin, bytes, place);
            if (model_bpe_add_bytes(model, s.list, &s.count, spelled, spelled_size)) continue;
        }
        if (!model->unk_token.data) continue;
        if (model->unk_id < 0) return SIZE_MAX;
        add_unknown(model, &s, bytes);
    }
    flush_unknown(model, &s);
    return s.count;
}

/* Symbols of bytes, with the mark after those that carry the suffix; list has room for 512, texts
 * for 1,024. */
static size_t list_bytes(const bpe *model, pith__bpe_letter *list, char *texts) {
    size_t count = 0;
    for (unsigned b = 0; b < END_MARK; b++) {
        char *text = texts + (size_t)2 * b;
        text[0] = (char)b;
        text[1] = (char)END_MARK;
        list[count++] = (pith__bpe_letter){ { text, 1 }, model->direct[0][b] };
        if (model->suffix.size)
            list[count++] = (pith__bpe_letter){ { text, 2 }, model->direct[LAST][b] };
    }
    return count;
}

/* Tokens of one character; list has room for all. */
static size_t list_characters(const bpe *model, pith__bpe_letter *list) {
    size_t count = 0;
    for (int32_t id = 0; id < model->vocab.id_count; id++) {
        pith_str token = pith__vocab_token(&model->vocab, id);
        const char *after = token.data;
        if (token.size && (pith__utf8_next(&after), after == token.data + token.size))
            list[count++] = (pith__bpe_letter){ token, id };
    }
    return count;
}

static pith_status make_tables(const bpe *model, pith__arena *scratch, pith__stop *stop,
                               pith_error *err) {
    size_t room = model->raw ? (size_t)2 * 256 : (size_t)model->vocab.id_count;
    pith__bpe_letter *letters = pith__arena_array(scratch, room, sizeof *letters);
    char *texts = pith__arena_alloc(scratch, 2 * room);
    if (!letters || !texts) return pith__fail_memory(err, room * sizeof *letters);
    size_t count = model->raw ? list_bytes(model, letters, texts) : list_characters(model, letters);
    return pith__bpe_longest_build(&model->matches->tables, &model->merges, letters, count,
                                   model->vocab.id_count, &model->matches->arena, scratch, stop,
                                   err);
}

/* Once; where memory is out or the merges are not of the kind, merging stays. Called with the lock
 * held. */
static void make_matches(const bpe *model, pith__stop *stop) {
    matches *m = model->matches;
    pith__arena scratch;
    pith_error err = PITH_ERROR_INIT;
    if (m->tried) return;
    m->tried = true;
    if (model->prefix.size || (model->suffix.size && !model->raw)) return;
    pith__arena_init(&scratch, m->arena.allocator);
    const pith_status status = make_tables(model, &scratch, stop, &err);
    if (!status && m->tables.splits)
        atomic_store_explicit(&m->ready, &m->tables, memory_order_release);
    else
        pith__arena_free(&m->arena);
    if (pith__status_stops(status)) m->tried = false; /* the next call that merges much tries */
    pith__arena_free(&scratch);
}

/* Counts bytes that were merged, and makes the tables of longest matches when the count is used up.
 * Only the thread that takes the lock makes them; others do not wait but go on merging. */
static void count_merged(const bpe *model, size_t bytes, pith__stop *stop) {
    matches *m = model->matches;
    if (atomic_load_explicit(&m->tried, memory_order_relaxed)) return;
    if (atomic_fetch_sub_explicit(&m->left, (int64_t)bytes, memory_order_relaxed) > (int64_t)bytes)
        return;
    if (pthread_mutex_trylock(&m->making)) return;
    make_matches(model, stop);
    pthread_mutex_unlock(&m->making);
}

/* The tokens of a piece by longest matches; 0: merge instead, or memory is out, noted in the
 * encoding. A suffix of last symbols is spelled as END_MARK, one more byte behind the text, whose
 * size is taken off the last token again. */
static size_t find_tokens(const bpe *model, pith__encoding *enc, pith__symbol *list,
                          pith_str text) {
    const pith__bpe_longest *tables =
        atomic_load_explicit(&model->matches->ready, memory_order_acquire);
    uint64_t few[4], *dead = few;
    size_t words = pith__bpe_longest_words(text.size + 1);
    if (!tables) return 0;
    if (words > sizeof few / sizeof *few &&
        !(dead = pith__encoding_scratch(enc, 2, words * sizeof *dead)))
        return 0;
    if (!model->suffix.size)
        return pith__bpe_longest_encode(tables, &model->merges, text, list, dead, enc);
    char *marked = pith__encoding_scratch(enc, 1, text.size + 1);
    if (!marked) return 0;
    memcpy(marked, text.data, text.size);
    marked[text.size] = (char)END_MARK;
    size_t count = pith__bpe_longest_encode(tables, &model->merges,
                                            (pith_str){ marked, text.size + 1 }, list, dead, enc);
    if (count) list[count - 1].size--;
    return count;
}

static int32_t whole_piece(const bpe *model, pith__encoding *enc, const char *text, size_t size) {
    if (size > model->vocab.longest) return -1;
    if (!model->raw) return model_bpe_look_up(model, text, size);
    char small[256], *spelled = small;
    if (2 * size > sizeof small && !(spelled = pith__encoding_scratch(enc, 1, 2 * size))) return -1;
    size_t bytes = 0;
    for (size_t i = 0; i < size; i++)
        bytes += pith__utf8_put(spelled + bytes, pith__byte_char((unsigned char)text[i]));
    return model_bpe_look_up(model, spelled, bytes);
}

/* One word: the whole of it as a token, where the model ignores merges; else its tokens by longest
 * matches; else by merging. Offsets add up from the sizes of tokens and never pass the end of the
 * piece, as in Hugging Face tokenizers, where a character that vanished shifts those after it. */
static pith_status model_bpe_encode_word(const void *self, pith__encoding *enc, pith__piece piece) {
    const bpe *model = self;
    const char *text = enc->text.data + piece.begin;
    size_t size = piece.end - piece.begin, most = size, count;
    if (model->byte_fallback) most += model->prefix.size * size + model->suffix.size;
    pith__symbol *symbols = pith__encoding_scratch(enc, 0, most * sizeof *symbols);
    if (!symbols) return PITH_ERR_MEMORY;
    count = find_tokens(model, enc, symbols, (pith_str){ text, size });
    if (enc->stopped) return PITH_ERR_CANCELLED;
    if (model->ignore_merges && count != 1) {
        int32_t id = whole_piece(model, enc, text, size);
        if (enc->out_of_memory) return PITH_ERR_MEMORY;
        if (id >= 0) {
            pith__encoding_token(enc, id, piece.begin, piece.end);
            return PITH_OK;
        }
    }
    if (!count) {
        count = model->raw ? split_bytes(model, symbols, text, size)
                           : split_characters(model, symbols, text, size);
        if (count == SIZE_MAX)
            return pith__fail(enc->err, PITH_ERR_ARGUMENT,
                              "the text has a character outside the vocabulary, as is the unknown "
                              "token '" PITH_STR_FMT "'",
                              PITH_STR_ARG(model->unk_token));
        count = pith__bpe_merge(&model->merges, enc, symbols, count);
        if (enc->stopped) return PITH_ERR_CANCELLED;
        count_merged(model, size, enc->stop);
    }
    if (count == SIZE_MAX || !pith__encoding_room(enc, count)) return PITH_ERR_MEMORY;
    uint32_t at = piece.begin;
    for (size_t i = 0; i < count; i++) {
        uint32_t end = symbols[i].size < piece.end - at ? at + symbols[i].size : piece.end;
        pith__encoding_token(enc, symbols[i].id, at, end);
        at = end;
    }
    return PITH_OK;
}

static bool is_mark(const char *p) {
    return p[0] == space_mark[0] && p[1] == space_mark[1] && p[2] == space_mark[2];
}

/* Whether the character at p has a symbol of its own: unknown ones before it are then done with. */
static bool model_bpe_is_known(const bpe *model, const char *p) {
    const char *after = p;
    uint32_t c = pith__utf8_next(&after);
    if (c >= DIRECT && is_mark(p)) return model->mark_id >= 0;
    return (c < DIRECT ? model->direct[0][c] : model_bpe_look_up(model, p, (size_t)(after - p))) >=
           0;
}

static bool may_end(const bpe *model, const char *text, uint32_t at) {
    return !pith__bpe_cuts_join(model->cuts, text, at) && model_bpe_is_known(model, text + at);
}

/* The first place that may be cut, and is worth it: before a space, however it is written, or after
 * some characters. */
static uint32_t end_of_part(const bpe *model, const char *text, uint32_t begin, uint32_t end) {
    uint32_t at = begin + 1, near = end - begin > PART_MIN ? begin + PART_MIN : end;
    for (; at < near; at++)
        if ((text[at] == ' ' || text[at] == space_mark[0]) &&
            (text[at] == ' ' || is_mark(text + at)) && may_end(model, text, at))
            return at;
    for (; at < end; at++)
        if ((text[at] & 0xC0) != 0x80 && may_end(model, text, at)) return at;
    return end;
}

/* The same in a piece that is read by byte: only long ones are cut, so that memory does not grow
 * with them. */
static uint32_t end_of_raw_part(const bpe *model, const char *text, uint32_t begin, uint32_t end) {
    uint32_t at = end - begin > RAW_PART ? begin + RAW_PART : end;
    while (at < end && pith__bpe_cuts_join_bytes(model->cuts, (unsigned char)text[at - 1],
                                                 (unsigned char)text[at]))
        at++;
    return at;
}

/* Words of pre-tokenizers are encoded as they are, by way of the cache. A text without
 * pre-tokenizer is one word of any length: it is cut where no merge can join (bpe_cuts.h), so that
 * its parts repeat and are found in the cache, and memory does not grow with it. */
static pith_status model_bpe_encode(const void *self, pith__encoding *enc, pith__piece piece) {
    const bpe *model = self;
    uint32_t size = piece.end - piece.begin;
    if (!model->cuts->bits || (model->raw && (size <= RAW_PART || size <= model->vocab.longest)))
        return pith__word_encode(model, enc, piece, model_bpe_encode_word);
    pith__piece part = { piece.begin, piece.begin, -1 };
    for (; part.end < piece.end; part.begin = part.end) {
        if (enc->count > enc->limit) break;
        if (pith__encoding_stops(enc, part.begin)) return PITH_ERR_CANCELLED;
        if (!pith__encoding_room(enc, PITH_WORD_LONG)) return PITH_ERR_MEMORY;
        part.end = (model->raw ? end_of_raw_part : end_of_part)(model, enc->text.data, part.begin,
                                                                piece.end);
        PITH_TRY(pith__word_encode(model, enc, part, model_bpe_encode_word));
    }
    return PITH_OK;
}

/* The model that looks symbols up by byte instead of by character: possible if each byte has one at
 * every place, or those that have none are unknown tokens. NULL: it is not possible, or memory is
 * out. */
static const bpe *model_bpe_read_bytes(const bpe *model, pith__loader *loader) {
    pith__step_list *steps = &loader->tokenizer->pretokenizers;
    if (!steps->count || steps->steps[steps->count - 1].desc != &pith__pretokenizer_ByteLevel)
        return NULL;
    for (size_t i = 0; i + 1 < steps->count; i++)
        if (steps->steps[i].desc == &pith__pretokenizer_ByteLevel) return NULL;
    bool unknowns = model->unk_id >= 0 && !model->byte_fallback;
    bpe *raw = pith__arena_array(loader->arena, 1, sizeof *raw);
    if (!raw) {
        pith__fail_memory(loader->err, sizeof *raw);
        return NULL;
    }
    *raw = *model;
    raw->raw = true;
    for (unsigned place = 0; place < PLACES; place++)
        for (unsigned b = 0; b < 256; b++) {
            raw->direct[place][b] = model->direct[place][pith__byte_char(b)];
            if (raw->direct[place][b] < 0 && !unknowns) return NULL;
        }
    steps->count--;
    return raw;
}

/* Whether symbols stand for nothing but their own characters, and none of them vanishes: what
 * bpe_cuts.h takes for granted. Unknown tokens and bytes may come in as long as they never
 * merge. */
static bool may_cut(const bpe *model) {
    const pith__vocab *vocab = &model->vocab;
    uint32_t tokens = 0;
    int32_t first_byte = INT32_MAX, last_byte = -1;
    if (model->prefix.size || model->suffix.size) return false;
    if (model->raw) {
        bool known = true; /* then no byte becomes an unknown token */
        for (unsigned b = 0; b < 256; b++) known &= model->direct[0][b] >= 0;
        return known;
    }
    if (model->ignore_merges || model->unk_id < 0) return false;
    for (int32_t id = 0; id < vocab->id_count; id++)
        tokens += pith__vocab_token(vocab, id).data != NULL;
    if (model->byte_fallback)
        for (unsigned b = 0; b < 256; b++) {
            if (model->byte_ids[b] > last_byte) last_byte = model->byte_ids[b];
            if (model->byte_ids[b] >= 0 && model->byte_ids[b] < first_byte)
                first_byte = model->byte_ids[b];
        }
    bool good = tokens == vocab->count;
    for (size_t i = 0; good && i < model->merges.count; i++) {
        int32_t left = model->merges.merges[i].left, right = model->merges.merges[i].right;
        good = (left < first_byte || left > last_byte) &&
               (right < first_byte || right > last_byte) && left != model->unk_id &&
               right != model->unk_id;
    }
    return good;
}

static pith_status open_matches(const bpe *model, pith__loader *loader) {
    matches *m = model->matches;
    PITH_TRY(pith__bpe_longest_open(&m->tables, &model->merges, model->vocab.id_count, loader));
    m->tried = true;
    if (m->tables.splits) atomic_store(&m->ready, &m->tables);
    return PITH_OK;
}

static const void *adopt(const void *self, pith__loader *loader) {
    const bpe *model = self, *raw = model_bpe_read_bytes(model, loader);
    if (raw) model = raw;
    if (loader->err->code) return NULL;
    if (loader->frozen.data) {
        if (!pith__bpe_cuts_open(model->cuts, loader)) open_matches(model, loader);
    } else if (may_cut(model)) {
        pith__bpe_cuts_build(model->cuts, &model->merges, &model->vocab, loader->arena,
                             loader->err);
    }
    return loader->err->code ? NULL : model;
}

static void unload(const void *self) {
    const bpe *model = self;
    pthread_mutex_destroy(&model->matches->making);
    pith__arena_free(&model->matches->arena);
}

/* ---- building ---- */

bool pith__bpe_add_merge(pith__bpe_spec *spec, pith_str left, pith_str right) {
    if (!pith__arena_grow(spec->vocab.scratch, (void **)&spec->merges, spec->merge_count,
                          &spec->merge_capacity, sizeof *spec->merges))
        return false;
    spec->merges[spec->merge_count++] = (pith__bpe_pair){ left, right };
    return true;
}

bool pith__bpe_split_merge(pith_str line, pith_str *left, pith_str *right) {
    const char *space = line.size ? memchr(line.data, ' ', line.size) : NULL;
    size_t size = space ? (size_t)(space - line.data) : 0;
    if (!space || memchr(space + 1, ' ', line.size - size - 1)) return false;
    *left = (pith_str){ line.data, size };
    *right = (pith_str){ space + 1, line.size - size - 1 };
    return true;
}

static void model_bpe_read_merges(pith__bpe_spec *spec, pith__json *j) {
    for (pith__json_array(j); pith__json_next_item(j);) {
        pith_str left = { "", 0 }, right = left;
        if (pith__json_peek(j) == PITH_JSON_ARRAY) {
            pith__json_array(j);
            bool complete = pith__json_next_item(j);
            if (complete) left = pith__json_string(j);
            complete = complete && pith__json_next_item(j);
            if (complete) right = pith__json_string(j);
            if (!complete || pith__json_next_item(j))
                pith__json_fail(j, PITH_ERR_FORMAT, "a merge is not two tokens");
        } else {
            pith_str line = pith__json_string(j);
            if (line.size >= 8 && memcmp(line.data, "#version", 8) == 0) continue;
            if (!pith__bpe_split_merge(line, &left, &right))
                pith__json_fail(j, PITH_ERR_FORMAT,
                                "'" PITH_STR_FMT "' is not two tokens and a space",
                                PITH_STR_ARG(line));
        }
        if (!j->failed && !pith__bpe_add_merge(spec, left, right))
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory after %zu merges",
                            spec->merge_count);
    }
}

/* Looks up the ids of both sides and of their sum. The hash of the left side goes on over the right
 * one without its prefix, so the joined text is never made. */
static pith_status build_merges(bpe *model, const pith__bpe_spec *s, pith__loader *loader) {
    const pith__vocab *vocab = &model->vocab;
    pith__merge *merges = pith__arena_array(loader->arena, s->merge_count, sizeof *merges);
    if (!merges) return pith__fail_memory(loader->err, s->merge_count * sizeof *merges);
    for (size_t i = 0; i < s->merge_count; i++) {
        pith_str left = s->merges[i].left, right = s->merges[i].right;
        PITH_TRY(pith__loader_check(loader, i));
        uint64_t left_hash = pith__vocab_hash(0, left.data, left.size);
        int32_t left_id =
            pith__vocab_find(vocab, left_hash, PITH_STR(""), left.data, (uint32_t)left.size);
        int32_t right_id = pith__vocab_id(vocab, right);
        if (left_id < 0 || right_id < 0)
            return pith__fail(loader->err, PITH_ERR_FORMAT,
                              "merges[%zu]: '" PITH_STR_FMT "' is not in the vocabulary", i,
                              PITH_STR_ARG(left_id < 0 ? left : right));
        if (!left.size || right.size <= model->prefix.size)
            return pith__fail(loader->err, PITH_ERR_FORMAT, "merges[%zu] has an empty side", i);
        right.data += model->prefix.size;
        right.size -= model->prefix.size;
        uint64_t hash = pith__vocab_hash(left_hash, right.data, right.size);
        int32_t id = pith__vocab_find(vocab, hash, left, right.data, (uint32_t)right.size);
        if (id < 0)
            return pith__fail(loader->err, PITH_ERR_FORMAT,
                              "merges[%zu]: '" PITH_STR_FMT "' + '" PITH_STR_FMT
                              "' is not in the vocabulary",
                              i, PITH_STR_ARG(left), PITH_STR_ARG(right));
        merges[i] = (pith__merge){ left_id, right_id, id };
    }
    return pith__merges_build(&model->merges, merges, s->merge_count, loader->arena, loader->stop,
                              loader->err);
}

/* Ids of short characters and of bytes in tables, by where the symbol stands in its word, so that
 * most symbols need no look-up. */
static void build_direct(bpe *model) {
    for (unsigned place = 0; place < PLACES; place++)
        for (uint32_t c = 0; c < DIRECT; c++) {
            char character[4], spelled[SPELLED_MAX];
            model->direct[place][c] = model_bpe_look_up(
                model, spelled,
                model_bpe_spell(model, spelled, character, pith__utf8_put(character, c), place));
        }
    for (unsigned b = 0; b < 256; b++) {
        pith__byte_token token = pith__byte_token_of(b);
        model->byte_ids[b] = model_bpe_look_up(model, token.text, sizeof token.text);
    }
    model->mark_id = model_bpe_look_up(model, space_mark, sizeof space_mark - 1);
    model->unk_id = model->unk_token.data
                        ? model_bpe_look_up(model, model->unk_token.data, model->unk_token.size)
                        : -1;
}

/* A copy of a setting in the arena; empty ones are none. */
static pith_status copy_text(pith_str *copy, pith_str s, const char *name, pith__loader *loader) {
    if (!s.size) return PITH_OK;
    if (s.size > AFFIX_MAX)
        return pith__fail(loader->err, PITH_ERR_UNSUPPORTED, "%s is longer than %d bytes", name,
                          AFFIX_MAX);
    *copy = pith__arena_str(loader->arena, s);
    return copy->data ? PITH_OK : pith__fail_memory(loader->err, s.size);
}

pith_status pith__bpe_build(const void **model, const pith__bpe_spec *spec, pith__loader *loader) {
    bpe *m = pith__arena_array(loader->arena, 1, sizeof *m);
    if (!m || !(m->cuts = pith__arena_array(loader->arena, 1, sizeof *m->cuts)) ||
        !(m->matches = pith__arena_array(loader->arena, 1, sizeof *m->matches)))
        return pith__fail_memory(loader->err, sizeof *m);
    m->fuse_unk = spec->fuse_unk;
    m->byte_fallback = spec->byte_fallback;
    m->ignore_merges = spec->ignore_merges;
    PITH_TRY(copy_text(&m->unk_token, spec->unk_token, "unk_token", loader));
    PITH_TRY(copy_text(&m->prefix, spec->prefix, "continuing_subword_prefix", loader));
    PITH_TRY(copy_text(&m->suffix, spec->suffix, "end_of_word_suffix", loader));
    PITH_TRY(pith__vocab_take(&m->vocab, &spec->vocab, loader));
    PITH_TRY(loader->frozen.data ? pith__merges_open(&m->merges, m->vocab.id_count, loader)
                                 : build_merges(m, spec, loader));
    build_direct(m);
    pith__arena_init(&m->matches->arena, loader->allocator);
    pthread_mutex_init(&m->matches->making, NULL);
    atomic_init(&m->matches->left, (int64_t)BYTES_PER_MERGE * m->merges.count);
    *model = m;
    return PITH_OK;
}

static void model_bpe_parse(const void **self, pith__json *j, pith__loader *loader) {
    pith__bpe_spec spec = { .vocab.scratch = loader->scratch };
    bool has_vocab = loader->frozen.data;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__json_null(j)) continue;
        if (pith__str_is(key, "vocab")) {
            pith__vocab_parse(&spec.vocab, j);
            has_vocab = true;
        } else if (pith__str_is(key, "merges"))
            model_bpe_read_merges(&spec, j);
        else if (pith__str_is(key, "continuing_subword_prefix"))
            spec.prefix = pith__json_string(j);
        else if (pith__str_is(key, "end_of_word_suffix"))
            spec.suffix = pith__json_string(j);
        else if (pith__str_is(key, "unk_token"))
            spec.unk_token = pith__json_string(j);
        else if (pith__str_is(key, "fuse_unk"))
            spec.fuse_unk = pith__json_bool(j);
        else if (pith__str_is(key, "byte_fallback"))
            spec.byte_fallback = pith__json_bool(j);
        else if (pith__str_is(key, "ignore_merges"))
            spec.ignore_merges = pith__json_bool(j);
        else
            pith__key_other(j, loader, key, "");
    }
    if (j->failed) return;
    if (!has_vocab)
        pith__json_fail(j, PITH_ERR_FORMAT, "no vocab");
    else if (pith__bpe_build(self, &spec, loader))
        j->failed = true;
}

static void model_bpe_save(const void *self, pith__frozen_writer *writer) {
    const bpe *model = self;
    pthread_mutex_lock(&model->matches->making);
    make_matches(model, NULL);
    pthread_mutex_unlock(&model->matches->making);
    pith__frozen_put_string(writer, "unk_token", model->unk_token);
    pith__frozen_put_string(writer, "continuing_subword_prefix", model->prefix);
    pith__frozen_put_string(writer, "end_of_word_suffix", model->suffix);
    pith__frozen_put_bool(writer, "fuse_unk", model->fuse_unk);
    pith__frozen_put_bool(writer, "byte_fallback", model->byte_fallback);
    pith__frozen_put_bool(writer, "ignore_merges", model->ignore_merges);
    pith__vocab_save(&model->vocab, writer);
    pith__merges_save(&model->merges, writer);
    pith__bpe_cuts_save(model->cuts, writer);
    pith__bpe_longest_save(&model->matches->tables, writer);
}

const pith__model_desc pith__model_BPE = {
    .name = "BPE",
    .parse = model_bpe_parse,
    .save = model_bpe_save,
    .encode = model_bpe_encode,
    .id = pith__vocab_model_id,
    .token = pith__vocab_model_token,
    .size = pith__vocab_model_size,
    .adopt = adopt,
    .unload = unload,
};
