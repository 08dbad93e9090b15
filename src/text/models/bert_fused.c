/* bert_fused.c - BertNormalizer, BertPreTokenizer and WordPiece in one pass over the raw text,
 * without tables of offsets.
 *
 * What normalising and splitting do to a character depends on that character alone: it is dropped,
 * ends a word, is a word of its own (with a known id), or adds a few bytes to the current word.
 * ASCII has tables. Other characters have pages of 256 entries, made when first needed and shared
 * by all threads. The exception are marks that survive and would be reordered: a text with one of
 * those goes through the steps instead (enc->unfused). */
#include <stdatomic.h>

#include "base/unicode/tokenizer_characters.h"
#include "text/normalizers/norm_bert.h"
#include "text/models/model_wordpiece.h"

enum { WORD, DROP, SPACE, ALONE, REORDERED };

/* Characters below this have pages. Those above are rare and are computed each time. */
#define PAGED 0x20000u
/* The longest max_input_chars_per_word for which the fused form is used; it bounds the buffers
 * below. BERT has 100. */
#define CHARS_MAX 512
/* Bytes of a word: 4 per character, one character over the maximum, and the expansion of the last
 * one. */
#define WORD_BYTES (4 * (CHARS_MAX + 1) + 16)

typedef struct entry {
    uint8_t kind;
    uint8_t size;  /* WORD: bytes it adds */
    uint8_t chars; /* WORD: characters it adds */
    union {
        char bytes[12]; /* WORD: three letters of a Hangul syllable are 9, and one character more
                           must fit after 8 */
        int32_t id;     /* ALONE */
    };
} entry;

typedef struct page {
    entry entries[256];
} page;

typedef struct fused {
    const pith__wordpiece *model;
    pith__bert_options clean;
    bool strip, lowercase;
    uint8_t kind[128];
    uint8_t fold[256]; /* the byte a word gets, 0 where the character is no part of one or not
                          ASCII */
    int32_t alone[128];
    _Atomic(page *) *pages; /* [PAGED / 256] */
} fused;

/* ---- characters ---- */

static int32_t lone_id(const fused *f, const char *bytes, size_t size) {
    int32_t id =
        f->model->max_chars ? pith__vocab_id(&f->model->vocab, (pith_str){ bytes, size }) : -1;
    return id >= 0 ? id : f->model->unk_id;
}

/* What cleaning, NFD, stripping of marks, lower case and splitting make of one character, in the
 * order of those steps. REORDERED stands for all that an entry cannot say: a mark that survives,
 * whose place depends on its neighbours, more bytes than an entry holds, or several characters that
 * do not all belong to a word. */
static void classify(const fused *f, uint32_t c, entry *e) {
    uint32_t d[PITH_DECOMPOSITION_MAX];
    size_t n = 1;
    *e = (entry){ .kind = DROP };
    if (f->clean.clean_text) {
        bool blank = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (!blank && pith__char_is_other(c))) return;
    }
    if (pith__char_is_space(c)) {
        e->kind = SPACE;
        return;
    }
    d[0] = c;
    if (f->strip) n = pith__char_decompose(c, d);
    size_t words = 0, size = 0, chars = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t lower[2] = { d[i], 0 };
        size_t k = 1;
        if (f->strip && pith__char_is_nonspacing(d[i])) continue;
        if (f->strip && pith__char_combining_class(d[i])) e->kind = REORDERED;
        if (f->lowercase) k = pith__char_lower(d[i], lower);
        for (size_t x = 0; x < k; x++) {
            if (size + 4 > sizeof e->bytes) {
                e->kind = REORDERED;
                return;
            }
            words += !pith__char_is_space(lower[x]) && !pith__char_is_punctuation(lower[x]);
            size += pith__utf8_put(e->bytes + size, lower[x]);
            chars++;
        }
    }
    if (e->kind == REORDERED || chars == 0) return;
    if (words == chars && !(f->clean.chinese_chars && pith__char_is_ideograph(c))) {
        e->kind = WORD;
        e->size = (uint8_t)size;
        e->chars = (uint8_t)chars;
    } else if (chars == 1) {
        e->kind = ALONE;
        e->id = lone_id(f, e->bytes, size);
    } else
        e->kind = REORDERED;
}

/* The entry of a character, by pages of 256. A page is made by the first thread that needs it and
 * published with a compare-and-swap; a thread that comes second drops its own and takes the
 * other's, so no lock is held. The page is complete before it is visible. Characters beyond the
 * pages are classified each time, into *own. */
static const entry *bert_fused_look_up(const fused *f, pith__encoding *enc, uint32_t c,
                                       entry *own) {
    if (c < PAGED) {
        _Atomic(page *) *place = &f->pages[c / 256];
        page *p = atomic_load_explicit(place, memory_order_acquire);
        if (p) return &p->entries[c % 256];
        p = pith__memory_alloc(enc->tokenizer->allocator, sizeof *p, 64);
        if (p) {
            for (uint32_t i = 0; i < 256; i++) classify(f, c / 256 * 256 + i, &p->entries[i]);
            page *theirs = NULL;
            if (atomic_compare_exchange_strong(place, &theirs, p)) return &p->entries[c % 256];
            pith__memory_free(enc->tokenizer->allocator, p);
            return &theirs->entries[c % 256];
        }
        enc->out_of_memory = true;
    }
    classify(f, c, own);
    return own;
}

/* ---- words ---- */

typedef struct word {
    uint32_t size, chars;
    uint64_t hash;
    uint32_t first, last; /* where its first and last characters begin in the source */
    char bytes[WORD_BYTES];
    uint32_t origin[WORD_BYTES];
} word;

static uint32_t char_end(const char *text, uint32_t at) {
    unsigned char b = (unsigned char)text[at];
    if (b < 0x80) return at + 1;
    if (b < 0xE0) return at + 2;
    return b < 0xF0 ? at + 3 : at + 4;
}

/* The pieces of a word that is no token as a whole, or the unknown token. Hashes of all prefixes
 * are made once; that of any part then follows from two of them (vocab.h). */
static pith_status put_pieces(const fused *f, pith__encoding *enc, const word *w) {
    const char *text = enc->source.data;
    uint64_t hashes[WORD_BYTES + 1];
    int32_t ids[WORD_BYTES];
    uint32_t ends[WORD_BYTES];
    size_t n = 0;
    if (w->chars <= f->model->max_chars) {
        hashes[0] = 0;
        for (uint32_t i = 0; i < w->size; i++)
            hashes[i + 1] = pith__vocab_step(hashes[i], (unsigned char)w->bytes[i]);
        n = pith__wordpiece_split(f->model, w->bytes, w->size, hashes, ids, ends);
    }
    for (size_t i = 0; i < n; i++) {
        if (enc->offsets)
            pith__encoding_token(enc, ids[i], w->origin[i ? ends[i - 1] : 0],
                                 char_end(text, w->origin[ends[i] - 1]));
        else
            pith__encoding_token(enc, ids[i], 0, 0);
    }
    if (n) return PITH_OK;
    if (f->model->unk_id < 0) return pith__wordpiece_no_unk(f->model, enc->err);
    pith__encoding_token(enc, f->model->unk_id, w->first, char_end(text, w->last));
    return PITH_OK;
}

static inline pith_status end_word(const fused *f, pith__encoding *enc, word *w) {
    pith_status status = PITH_OK;
    if (!w->chars) return PITH_OK;
    if (enc->count + w->size + 1 > enc->capacity && !pith__encoding_room(enc, w->size + 1024))
        return pith__fail_memory(enc->err, 1024);
    int32_t id = -1;
    if (w->chars <= f->model->max_chars)
        id = pith__vocab_find(&f->model->vocab, w->hash, PITH_STR(""), w->bytes, w->size);
    if (id >= 0)
        pith__encoding_token(enc, id, w->first, char_end(enc->source.data, w->last));
    else
        status = put_pieces(f, enc, w);
    enc->word++;
    w->size = w->chars = 0;
    w->hash = 0;
    return status;
}

static pith_status put_alone(const fused *f, pith__encoding *enc, int32_t id, uint32_t at) {
    if (id < 0) return pith__wordpiece_no_unk(f->model, enc->err);
    if (enc->count + 1 > enc->capacity && !pith__encoding_room(enc, 1024))
        return pith__fail_memory(enc->err, 1024);
    pith__encoding_token(enc, id, at, char_end(enc->source.data, at));
    enc->word++;
    return PITH_OK;
}

static void bert_fused_add_bytes(word *w, const entry *e, uint32_t at, bool offsets) {
    if (!w->chars) w->first = at;
    w->last = at;
    w->chars += e->chars;
    if (w->size + e->size > WORD_BYTES) return; /* too long a word, unknown already */
    for (uint32_t i = 0; i < e->size; i++) {
        w->hash = pith__vocab_step(w->hash, (unsigned char)e->bytes[i]);
        if (offsets) w->origin[w->size] = at;
        w->bytes[w->size++] = e->bytes[i];
    }
}

/* ASCII letters, digits and the like from p: as many as a word may hold, and one more. The rest of
 * a longer word is only counted. */
static const char *add_ascii(const fused *f, word *w, const char *p, const char *end,
                             const char *text, bool offsets) {
    const uint8_t *fold = f->fold;
    uint32_t room = f->model->max_chars + 1 > w->chars ? f->model->max_chars + 1 - w->chars : 0,
             size = w->size;
    const char *begin = p, *stop = (size_t)(end - p) > room ? p + room : end;
    uint64_t hash = w->hash;
    uint8_t b;
    for (; p < stop && (b = fold[(unsigned char)*p]); p++) {
        hash = pith__vocab_step(hash, b);
        w->bytes[size++] = (char)b;
    }
    if (offsets)
        for (uint32_t i = w->size; i < size; i++)
            w->origin[i] = (uint32_t)(begin - text) + i - w->size;
    if (p == stop)
        while (p < end && fold[(unsigned char)*p]) p++;
    if (!w->chars) w->first = (uint32_t)(begin - text);
    w->last = (uint32_t)(p - 1 - text);
    w->chars += (uint32_t)(p - begin);
    w->size = size;
    w->hash = hash;
    return p;
}

/* One pass over the raw text. Letters are folded and added to the word with its hash as they come,
 * so that a word that is a token costs one look-up and is never copied. Stops with enc->unfused set
 * where a character needs its neighbours; the caller then starts again by the steps. */
pith_status pith__bert_encode_fused(const void *self, pith__encoding *enc, pith__piece piece) {
    const fused *f = self;
    const char *text = enc->source.data, *p = text + piece.begin, *end = text + piece.end;
    word w;
    w.size = w.chars = 0;
    w.hash = 0;
    while (p < end && enc->count <= enc->limit) {
        unsigned char b = (unsigned char)*p;
        uint32_t at = (uint32_t)(p - text);
        if (pith__encoding_stops(enc, at)) return PITH_OK;
        if (f->fold[b]) {
            p = add_ascii(f, &w, p, end, text, enc->offsets);
            continue;
        }
        entry own;
        int kind;
        int32_t id;
        if (b < 0x80) {
            p++;
            kind = f->kind[b];
            id = f->alone[b];
        } else {
            const entry *e = bert_fused_look_up(f, enc, pith__utf8_next(&p), &own);
            kind = e->kind;
            if (kind == WORD) {
                bert_fused_add_bytes(&w, e, at, enc->offsets);
                continue;
            }
            id = e->id;
        }
        if (kind == DROP) continue;
        if (kind == REORDERED) {
            enc->unfused = true;
            return PITH_OK;
        }
        PITH_TRY(end_word(f, enc, &w));
        if (kind == ALONE) PITH_TRY(put_alone(f, enc, id, at));
    }
    return end_word(f, enc, &w);
}

/* ---- making ---- */

/* The steps must be those of BertNormalizer, as norm_bert.c leaves them, and BertPreTokenizer. */
static bool read_steps(fused *f, const pith_tokenizer *t) {
    const pith__text_step *s = t->normalizers.steps;
    size_t n = t->normalizers.count, i = 0;
    if (t->pretokenizers.count != 1 ||
        t->pretokenizers.steps[0].desc != &pith__pretokenizer_BertPreTokenizer)
        return false;
    if (i < n && s[i].desc == &pith__bert_clean)
        f->clean = *(const pith__bert_options *)s[i++].self;
    if (i + 1 < n && s[i].desc == &pith__normalizer_NFD && s[i + 1].desc == &pith__bert_strip) {
        f->strip = true;
        i += 2;
    }
    if (i < n && s[i].desc == &pith__normalizer_Lowercase) {
        f->lowercase = true;
        i++;
    }
    return i == n;
}

/* Returns NULL if the tokenizer's steps are others than those this file does in one, or if words
 * may be too long for its buffers: the steps then run one by one. */
const void *pith__bert_fuse(const void *wordpiece, pith__loader *loader) {
    const pith__wordpiece *model = wordpiece;
    fused f = { .model = model };
    if (model->max_chars > CHARS_MAX || !read_steps(&f, loader->tokenizer)) return NULL;
    for (uint32_t c = 0; c < 128; c++) {
        entry e;
        classify(&f, c, &e);
        f.kind[c] = e.kind;
        f.alone[c] = e.kind == ALONE ? e.id : -1;
        if (e.kind == WORD) f.fold[c] = (uint8_t)e.bytes[0];
    }
    f.fold[0] = 0;
    if (f.kind[0] == WORD) return NULL; /* NUL as a letter: only where text is not cleaned */
    fused *made = pith__arena_alloc64(loader->arena, sizeof *made);
    f.pages = pith__arena_array(loader->arena, PAGED / 256, sizeof *f.pages);
    if (!made || !f.pages) {
        pith__fail_memory(loader->err, sizeof f);
        return NULL;
    }
    *made = f;
    return made;
}

void pith__bert_unfuse(const void *self, const pith_allocator *allocator) {
    const fused *f = self;
    for (uint32_t i = 0; i < PAGED / 256; i++)
        pith__memory_free(allocator, atomic_exchange(&f->pages[i], NULL));
}
