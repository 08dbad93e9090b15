/* post_processing.c - truncation windows, templates, padding. The arithmetic of truncation is that
 * of Hugging Face tokenizers 0.23 (truncation.rs, encoding.rs). A maximum below the number of
 * special tokens keeps the special tokens alone. */
#include "text/post_processing.h"

#include "base/memory/account.h"
#include "base/unicode/tokenizer_characters.h"
#include "text/added_tokens.h"
#include "text/token_rows.h"

size_t pith__post_processing_specials(const pith__post_processing *post, bool pair) {
    return post->has_template ? post->templates[pair].specials : 0;
}

pith__truncation pith__truncation_choose(const pith_tokenizer *tokenizer,
                                         const pith_tokenize_options *options, bool pair) {
    const pith__post_processing *post = tokenizer->post_processing;
    pith__truncation t = { 0 };
    const bool left = options->left ? options->left > 0 : tokenizer->left;
    const bool own = tokenizer->truncates && post->truncation.on && !options->overflow;
    if (options->raw || own) t = post->truncation;
    if (options->max_length > 0 && !(own && t.max_length <= options->max_length))
        t = (pith__truncation){ true, left, (pith_cut)options->cut, options->max_length,
                                options->stride };
    const size_t specials = options->no_specials ? 0 : pith__post_processing_specials(post, pair);
    t.max_length = t.max_length > (int64_t)specials ? t.max_length - (int64_t)specials : 0;
    return t;
}

typedef struct range {
    size_t begin, end;
} range;

/* In how many windows n tokens come when at most max are kept. With max 0 nothing is kept and all
 * overflows at once. */
static size_t windows(size_t n, size_t max, const pith__truncation *t) {
    if (!t->on || max >= n) return 1;
    if (max == 0) return 2;
    size_t step = max - (size_t)t->stride;
    return 1 + (n - max + step - 1) / step;
}

/* Window k, below the count. */
static range window(size_t n, size_t max, const pith__truncation *t, size_t k) {
    if (!t->on || max >= n) return (range){ 0, n };
    if (max == 0) return (range){ 0, k ? n : 0 };
    size_t shift = k * (max - (size_t)t->stride);
    if (t->left) return (range){ n - shift > max ? n - shift - max : 0, n - shift };
    return (range){ shift, n - shift > max ? shift + max : n };
}

/* How many tokens each text may keep. longest_first of a pair: the shorter text stays whole if it
 * can, and the longer one is cut; where both are long, each gets half, and the longer one the odd
 * token. This is the result of the loop in Hugging Face's truncation.rs, which cuts the longer one
 * token by token, in closed form. */
static pith_status budget(size_t keep[2], const size_t n[2], const pith__truncation *t, bool pair,
                          pith_error *err) {
    keep[0] = n[0];
    keep[1] = n[1];
    size_t max = (size_t)t->max_length, total = n[0] + n[1];
    if (!t->on || (max && total <= max)) return PITH_OK;
    if (max == 0)
        keep[0] = keep[1] = 0;
    else if (t->strategy == PITH_CUT_LONGEST) {
        if (!pair)
            keep[0] = max;
        else {
            size_t small = n[0] > n[1], large = !small;
            keep[large] = max - keep[small];
            if (keep[small] > max || keep[small] > max - keep[small]) keep[large] = keep[small];
            if (keep[0] + keep[1] > max) {
                keep[small] = max / 2;
                keep[large] = max / 2 + max % 2;
            }
        }
    } else {
        int target = t->strategy == PITH_CUT_SECOND;
        if (target && !pair)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "the second text should be cut, but there is none");
        if (n[target] <= total - max)
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "the text to truncate is too short for a maximum of %zu tokens", max);
        keep[target] = n[target] - (total - max);
    }
    for (int i = 0; i <= pair; i++)
        if (keep[i] && keep[i] < n[i] && (size_t)t->stride >= keep[i])
            return pith__fail(err, PITH_ERR_ARGUMENT,
                              "truncation stride %lld does not fit in %zu tokens",
                              (long long)t->stride, keep[i]);
    return PITH_OK;
}

/* Window k of both texts: with x windows of A and y of B, Hugging Face merges A's overflows each
 * with every window of B first, then A's first window with B's overflows. Returns whether k
 * exists. */
static bool window_pair(range r[2], const size_t n[2], const size_t keep[2],
                        const pith__truncation *t, size_t k) {
    size_t x = windows(n[0], keep[0], t), y = windows(n[1], keep[1], t), a = 0, b = 0,
           of_a = (x - 1) * y;
    if (k >= x * y) return false;
    if (k > of_a)
        b = k - of_a;
    else if (k > 0) {
        a = 1 + (k - 1) / y;
        b = (k - 1) % y;
    }
    r[0] = window(n[0], keep[0], t, a);
    r[1] = window(n[1], keep[1], t, b);
    return true;
}

/* 0x120 is the space of byte-level */
static bool is_blank(uint32_t c) { return c == 0x120 || pith__char_is_space(c); }

/* The blanks at both ends of a token's text. */
static void count_blanks(pith_str text, size_t *leading, size_t *trailing) {
    const char *p = text.data, *end = text.data + text.size;
    *leading = *trailing = 0;
    while (p < end && is_blank(pith__utf8_next(&p))) ++*leading;
    for (p = end; p > text.data; ++*trailing) {
        const char *c;
        do p--;
        while (p > text.data && (*p & 0xC0) == 0x80);
        c = p;
        if (!is_blank(pith__utf8_next(&c))) break;
    }
}

/* Leaves so many characters out of a range of the source. The counts are by characters: the peer's
 * offsets are in characters where it trims them. */
static void trim_range(uint32_t *begin, uint32_t *end, pith_str source, size_t leading,
                       size_t trailing) {
    const char *b = source.data + *begin, *e = source.data + *end;
    for (; leading > 0 && b < e; leading--) pith__utf8_next(&b);
    const char *stop = e; /* where the trailing ones begin, unless that is before the source: then
                             none are left out */
    for (; trailing > 0 && stop > source.data; trailing--) do
            stop--;
        while ((*stop & 0xC0) == 0x80);
    if (!trailing) e = stop < b ? b : stop;
    *begin = (uint32_t)(b - source.data);
    *end = (uint32_t)(e - source.data);
}

void pith__trim_added(pith__encoding *enc, size_t i, pith_str slice) {
    size_t leading, trailing;
    count_blanks(slice, &leading, &trailing);
    bool waits = leading == 1 && enc->tokenizer->post_processing->trim_prefix_space &&
                 enc->begin[i] < enc->end[i];
    trim_range(&enc->begin[i], &enc->end[i], enc->source, waits ? 0 : leading, trailing);
    if (waits) enc->words[i] |= PITH_WORD_BLANK;
}

/* process_offsets of Hugging Face's ByteLevel: white space at a token's ends is left out of its
 * offsets. A blank that was put before a text is no part of it, so the first token keeps one. */
static void trim_offsets(pith_tokens *tokens, size_t i, const pith_tokenizer *t, bool first,
                         pith_str source) {
    int32_t word = tokens->word_ids[i];
    bool keeps = (first || tokens->begin[i] == 0) && t->post_processing->trim_prefix_space;
    size_t leading = word & PITH_WORD_BLANK ? 1 : 0, trailing = 0;
    tokens->word_ids[i] = word & ~(PITH_WORD_ADDED | PITH_WORD_BLANK);
    if (!(word & PITH_WORD_ADDED)) {
        pith_str text = t->model->token(t->model_self, tokens->ids[i]);
        if (!text.data ||
            (t->from_frozen && pith__utf8_valid_prefix(text.data, text.size) < text.size))
            return;
        count_blanks(text, &leading, &trailing);
    } else if (leading && !keeps) { /* the trailing ones are gone already, this one perhaps among
                                       them */
        const char *b = source.data + tokens->begin[i];
        pith__utf8_next(&b);
        tokens->begin[i] = (uint32_t)(b - source.data);
        if (tokens->end[i] < tokens->begin[i]) tokens->end[i] = tokens->begin[i];
        return;
    }
    trim_range(&tokens->begin[i], &tokens->end[i], source, keeps && leading == 1 ? 0 : leading,
               trailing);
}

/* ---- offsets in characters ---- */

/* The count of characters is stored for every MILESTONE-th byte. Fewer bytes make look-ups shorter
 * and the table larger. */
enum { MILESTONE = 64 };

static uint32_t post_processing_count_characters(const char *p, size_t size) {
    uint32_t count = 0;
    for (size_t i = 0; i < size; i++) count += (p[i] & 0xC0) != 0x80;
    return count;
}

/* For each milestone of the text the characters before it. */
static void fill_milestones(uint32_t *milestones, pith_str text) {
    uint32_t count = 0;
    for (size_t at = 0; at <= text.size; at += MILESTONE) {
        *milestones++ = count;
        count += post_processing_count_characters(
            text.data + at, text.size - at < MILESTONE ? text.size - at : MILESTONE);
    }
}

static uint32_t character_at(const uint32_t *milestones, pith_str text, uint32_t byte) {
    uint32_t from = byte - byte % MILESTONE;
    return milestones[byte / MILESTONE] +
           post_processing_count_characters(text.data + from, byte - from);
}

/* ---- windows ---- */

static void post_processing_put_text(pith_tokens *tokens, const pith__encoding *enc, size_t begin,
                                     size_t end, int32_t type_id, int text, uint32_t window_index) {
    size_t at = tokens->count, n = end - begin;
    if (n == 0) return;
    memcpy(tokens->ids + at, enc->ids + begin, n * sizeof *enc->ids);
    if (enc->offsets) {
        memcpy(tokens->begin + at, enc->begin + begin, n * sizeof *enc->begin);
        memcpy(tokens->end + at, enc->end + begin, n * sizeof *enc->end);
    }
    memcpy(tokens->word_ids + at, enc->words + begin, n * sizeof *enc->words);
    for (size_t i = at; i < at + n; i++) tokens->type_ids[i] = type_id;
    for (size_t i = at; i < at + n; i++) tokens->windows[i] = window_index;
    memset(tokens->sequence_ids + at, text, n);
    memset(tokens->special + at, 0, n);
    memset(tokens->attention + at, 1, n);
    tokens->count += n;
}

size_t pith__padded_size(const pith__padding *p, size_t longest) {
    size_t size = p->fixed ? (size_t)p->fixed : longest;
    if (p->multiple && size % (size_t)p->multiple)
        size += (size_t)p->multiple - size % (size_t)p->multiple;
    return size;
}

/* longest: tokens of the first window, which the others are padded to as well. */
static pith_status pad(pith_tokens *tokens, size_t first, size_t longest, const pith__padding *p,
                       uint32_t window_index, const pith__encoding *enc, pith_error *err) {
    size_t n = tokens->count - first, target = pith__padded_size(p, longest);
    if (target <= n) return PITH_OK;
    size_t more = target - n, bytes = (first + target) * pith__tokens_row_bytes();
    if (!pith__account_admits(enc->allocator, bytes) ||
        !pith__tokens_reserve(tokens, enc->tokens_allocator, more))
        return pith__fail_memory(err, bytes);
    if (p->left) pith__tokens_copy(tokens, first + more, tokens, first, n, true);
    for (size_t i = 0; i < more; i++)
        pith__tokens_put(tokens, (p->left ? first : first + n) + i, p->id, p->type_id, window_index,
                         false);
    tokens->count = first + target;
    return PITH_OK;
}

/* What all windows of a text or pair have in common. */
typedef struct frame {
    const pith__encoding *enc;
    const pith_tokenize_options *options;
    const pith_str *texts;
    const pith__frame_item *items;
    size_t item_count;
    size_t n[2], keep[2];          /* tokens of the texts, and how many of them a window may have */
    const uint32_t *milestones[2]; /* NULL: offsets are in bytes */
} frame;

static size_t window_size(const frame *f, const range r[2]) {
    size_t size = 0;
    for (size_t i = 0; i < f->item_count; i++) {
        int k = -1 - f->items[i].id;
        size += f->items[i].id < 0 ? r[k].end - r[k].begin : !f->options->no_specials;
    }
    return size;
}

/* Writes one window: special tokens and texts in the order of the template. Offsets are trimmed,
 * and then counted in characters, for the tokens of this window only. */
static pith_status put_window(pith_tokens *tokens, const frame *f, const range r[2],
                              uint32_t index) {
    const pith__encoding *enc = f->enc;
    const pith__post_processing *post = enc->tokenizer->post_processing;
    size_t room = window_size(f, r);
    if (!pith__tokens_reserve(tokens, enc->tokens_allocator, room))
        return pith__fail_memory(enc->err, room);
    for (size_t i = 0; i < f->item_count; i++) {
        if (f->items[i].id >= 0) {
            if (!f->options->no_specials)
                pith__tokens_put(tokens, tokens->count++, f->items[i].id, f->items[i].type_id,
                                 index, true);
            continue;
        }
        int k = -1 - f->items[i].id;
        size_t at = tokens->count, base = k ? f->n[0] : 0;
        post_processing_put_text(tokens, enc, base + r[k].begin, base + r[k].end,
                                 post->zero_types ? 0 : f->items[i].type_id, k, index);
        if (post->trim && enc->offsets)
            for (size_t x = at; x < tokens->count; x++) {
                if (x % 4096 == 0) PITH_TRY(pith__stop_check(enc->stop, enc->err));
                trim_offsets(tokens, x, enc->tokenizer, x == at, f->texts[k]);
            }
        if (f->milestones[k])
            for (size_t x = at; x < tokens->count; x++) {
                if (x % 4096 == 0) PITH_TRY(pith__stop_check(enc->stop, enc->err));
                tokens->begin[x] = character_at(f->milestones[k], f->texts[k], tokens->begin[x]);
                tokens->end[x] = character_at(f->milestones[k], f->texts[k], tokens->end[x]);
            }
    }
    if (r[0].end - r[0].begin < f->n[0] || r[1].end - r[1].begin < f->n[1]) tokens->truncated = 1;
    return PITH_OK;
}

/* Windows overlap by the stride and are made until the text is covered; only the first one is made
 * unless the caller asks for the others. Offsets in characters use milestones, the number of
 * characters before every so many bytes, so that an offset costs a short count instead of one from
 * the beginning. */
pith_status pith__post_process(pith_tokens *tokens, pith__encoding *enc, const pith_str texts[2],
                               size_t split, bool pair, const pith__truncation *truncation,
                               const pith_tokenize_options *options) {
    static const pith__frame_item plain[] = { { -1, 0 }, { -2, 1 } };
    const pith__post_processing *post = enc->tokenizer->post_processing;
    frame f = {
        .enc = enc, .options = options, .texts = texts, .n = { split, enc->count - split }
    };
    range r[2];
    size_t longest = 0;
    f.items = post->has_template ? post->templates[pair].items : plain;
    f.item_count = post->has_template ? post->templates[pair].count : 1 + (size_t)pair;
    PITH_TRY(budget(f.keep, f.n, truncation, pair, enc->err));
    if (options->characters && enc->offsets) {
        size_t counts[2] = { texts[0].size / MILESTONE + 1, texts[1].size / MILESTONE + 1 };
        uint32_t *milestones = pith__encoding_scratch(enc, PITH_SCRATCH_FRAME,
                                                      (counts[0] + counts[1]) * sizeof *milestones);
        if (!milestones) return PITH_ERR_MEMORY;
        for (int k = 0; k < 2; milestones += counts[k++]) {
            fill_milestones(milestones, texts[k]);
            f.milestones[k] = milestones;
        }
    }
    for (size_t i = 0; window_pair(r, f.n, f.keep, truncation, i) && (!i || options->overflow);
         i++) {
        size_t first = tokens->count;
        if (i % 64 == 0) PITH_TRY(pith__stop_check(enc->stop, enc->err));
        if (!i) longest = window_size(&f, r);
        PITH_TRY(put_window(tokens, &f, r, (uint32_t)i));
        if (options->raw && post->padding.on)
            PITH_TRY(pad(tokens, first, longest, &post->padding, (uint32_t)i, enc, enc->err));
    }
    return PITH_OK;
}
