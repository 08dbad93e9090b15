/* added_tokens.c - added tokens: ids, order, search. single_word, lstrip and rstrip mean what they
 * mean in Hugging Face tokenizers 0.23 (added_vocabulary.rs): ids that the model knows win over
 * those of the file, and white space is what \s matches. */
#include "text/added_tokens.h"

#include <stdlib.h>

#include "base/unicode/tokenizer_characters.h"
#include "text/encoding.h"
#include "text/post_processing.h"
#include "text/run_steps.h"
#include "text/sources/key_report.h"

const struct pith__added_flag pith__added_flags[PITH_ADDED_FLAGS] = {
    { "single_word", PITH_ADDED_SINGLE_WORD }, { "lstrip", PITH_ADDED_LSTRIP },
    { "rstrip", PITH_ADDED_RSTRIP },           { "normalized", PITH_ADDED_NORMALIZED },
    { "special", PITH_ADDED_SPECIAL },
};

pith_status pith__added_tokens_create(pith__loader *loader) {
    pith__added_tokens *added = pith__arena_array(loader->arena, 1, sizeof *added);
    if (!added) return pith__fail_memory(loader->err, sizeof *added);
    loader->tokenizer->added_tokens = added;
    return pith__map_init(&added->by_content, loader->arena, 16);
}

/* The rules of add_tokens: a content seen before keeps its id, one the model knows takes the
 * model's, others count on from the number of tokens in the vocabulary. */
pith_status pith__loader_add_token(pith__loader *loader, pith_str content, int32_t id,
                                   uint32_t flags) {
    pith_tokenizer *t = loader->tokenizer;
    pith__added_tokens *added = t->added_tokens;
    if (!content.size) return PITH_OK;
    if (content.size > PITH_ADDED_MAX)
        return pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                          "an added token has %zu bytes; at most %d are allowed", content.size,
                          PITH_ADDED_MAX);
    uint32_t known = pith__map_get(&added->by_content, content);
    if (known != UINT32_MAX) {
        added->tokens[known].flags = flags;
        return PITH_OK;
    }
    int32_t model_id = t->model->id(t->model_self, content);
    if (model_id >= 0)
        id = model_id;
    else if (id < 0) {
        if (!added->next_id)
            added->next_id = (t->model->count ? t->model->count : t->model->size)(t->model_self);
        if (added->next_id >= PITH_TOKEN_ID_MAX)
            return pith__fail(loader->err, PITH_ERR_FORMAT, "too many added tokens");
        id = added->next_id++;
    }
    size_t capacity = added->capacity;
    if (!pith__arena_grow(loader->arena, (void **)&added->tokens, added->count, &capacity,
                          sizeof *added->tokens))
        return pith__fail_memory(loader->err, sizeof *added->tokens);
    added->capacity = capacity;
    content = pith__arena_str(loader->arena, content);
    if (!content.data || !pith__map_put(&added->by_content, content, (uint32_t)added->count, NULL))
        return pith__fail_memory(loader->err, content.size);
    added->tokens[added->count++] = (pith__added_token){ content, content, id, flags };
    return PITH_OK;
}

pith_status pith__added_tokens_add_listed(pith__loader *loader, pith_str content, int64_t listed,
                                          uint32_t flags) {
    const pith__added_tokens *added = loader->tokenizer->added_tokens;
    PITH_TRY(pith__loader_add_token(loader, content, -1, flags));
    uint32_t known = pith__map_get(&added->by_content, content);
    if (known == UINT32_MAX || added->tokens[known].id == listed) return PITH_OK;
    return pith__fail(loader->err, PITH_ERR_FORMAT,
                      "added token \"" PITH_STR_FMT
                      "\" is listed with the id %lld, but the vocabulary gives it %d; the "
                      "files do not belong together",
                      PITH_STR_ARG(content), (long long)listed, (int)added->tokens[known].id);
}

/* One object of tokenizer.json's "added_tokens". The "id" of the file counts only in a frozen
 * tokenizer; elsewhere the model's vocabulary decides, as in Hugging Face tokenizers. */
void pith__added_tokens_parse(pith__json *j, pith__loader *loader) {
    pith_str key, content = { "", 0 };
    uint32_t flags = 0;
    int32_t id = -1;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        size_t i = 0;
        while (i < PITH_ADDED_FLAGS && !pith__str_is(key, pith__added_flags[i].key)) i++;
        if (i < PITH_ADDED_FLAGS)
            flags = (flags & ~pith__added_flags[i].flag) |
                    (pith__json_bool(j) ? pith__added_flags[i].flag : 0);
        else if (loader->frozen.data && pith__str_is(key, "id"))
            id = pith__json_id(j);
        else if (pith__str_is(key, "content"))
            content = pith__json_string(j);
        else
            pith__key_other(j, loader, key, "id");
    }
    if (j->failed) return;
    if (pith__loader_add_token(loader, content, id, flags)) j->failed = true;
}

static int compare_patterns(pith_str a, pith_str b) {
    int c = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    if (c) return c;
    if (a.size < b.size) return -1;
    return a.size > b.size;
}

/* Shell sort: no libc qsort with context in C11, and lists are short. less(a, b) compares token
 * indices. */
static void sort_indices(uint32_t *order, size_t count, const pith__added_token *tokens,
                         bool by_id) {
    size_t gap = 1;
    while (gap < count / 3) gap = 3 * gap + 1;
    for (; gap; gap /= 3) {
        for (size_t i = gap; i < count; i++) {
            uint32_t x = order[i];
            size_t k = i;
            for (; k >= gap; k -= gap) {
                const pith__added_token *a = &tokens[order[k - gap]], *b = &tokens[x];
                int c = by_id ? (a->id > b->id) - (a->id < b->id)
                              : compare_patterns(a->pattern, b->pattern);
                if (c < 0 || (c == 0 && order[k - gap] < x)) break;
                order[k] = order[k - gap];
            }
            order[k] = x;
        }
    }
}

/* Sorts the tokens of one set and notes, for each first byte, where its tokens begin in the order.
 * Where all tokens begin with the same byte, a text is searched with memchr alone. */
static pith_status build_set(pith__added_tokens_set *set, const pith__added_tokens *added,
                             uint32_t normalized, pith__loader *loader) {
    set->order = pith__arena_array(loader->arena, added->count + 1, sizeof *set->order);
    if (!set->order) return pith__fail_memory(loader->err, added->count * sizeof *set->order);
    for (uint32_t i = 0; i < added->count; i++)
        if ((added->tokens[i].flags & PITH_ADDED_NORMALIZED) == normalized &&
            added->tokens[i].pattern.size &&
            !(added->specials_are_text && added->tokens[i].flags & PITH_ADDED_SPECIAL))
            set->order[set->count++] = i;
    sort_indices(set->order, set->count, added->tokens, false);
    uint32_t at = 0;
    for (int b = 0; b < 256; b++) {
        set->first[b] = at;
        while (at < set->count && (unsigned char)added->tokens[set->order[at]].pattern.data[0] == b)
            at++;
    }
    set->first[256] = at;
    set->only = -1;
    if (set->count) {
        int b = (unsigned char)added->tokens[set->order[0]].pattern.data[0];
        if (set->first[b + 1] == set->count) set->only = b;
    }
    return PITH_OK;
}

/* Runs the normalizers over the contents of "normalized" tokens, because these are looked for in
 * normalised text. A token of which nothing is left would match everywhere, so it is refused. */
static pith_status normalise_patterns(pith__added_tokens *added, pith__loader *loader) {
    pith__encoding *enc = pith__encoding_acquire(loader->tokenizer);
    if (!enc) return pith__fail_memory(loader->err, sizeof *enc);
    pith_status status = PITH_OK;
    enc->err = loader->err;
    enc->stop = loader->stop;
    for (size_t i = 0; i < added->count && !status; i++) {
        pith__added_token *token = &added->tokens[i];
        if (!(token->flags & PITH_ADDED_NORMALIZED)) continue;
        status = pith__encoding_begin(enc, token->content, false) ? pith__normalize(enc)
                                                                  : PITH_ERR_MEMORY;
        if (status || enc->out_of_memory) break;
        token->pattern =
            pith__arena_str(loader->arena, (pith_str){ enc->text.data, enc->text.size });
        enc->out_of_memory = !token->pattern.data;
    }
    if (enc->out_of_memory) status = pith__fail_memory(loader->err, PITH_ADDED_MAX);
    for (size_t i = 0; i < added->count && !status; i++)
        if (!added->tokens[i].pattern.size)
            status = pith__fail(loader->err, PITH_ERR_UNSUPPORTED,
                                "the normalizer leaves nothing of the added token \"" PITH_STR_FMT
                                "\", which would "
                                "match everywhere; set its \"normalized\" to false",
                                PITH_STR_ARG(added->tokens[i].content));
    pith__encoding_release(enc);
    return status;
}

pith_status pith__added_tokens_finish(pith__loader *loader) {
    pith__added_tokens *added = loader->tokenizer->added_tokens;
    if (loader->tokenizer->normalizers.count) PITH_TRY(normalise_patterns(added, loader));
    added->by_id = pith__arena_array(loader->arena, added->count, sizeof *added->by_id);
    if (!added->by_id) return pith__fail_memory(loader->err, added->count * sizeof *added->by_id);
    for (uint32_t i = 0; i < added->count; i++) added->by_id[i] = i;
    PITH_TRY(pith__stop_check(loader->stop, loader->err));
    sort_indices(added->by_id, added->count, added->tokens, true);
    PITH_TRY(build_set(&added->raw, added, 0, loader));
    return build_set(&added->normalized, added, PITH_ADDED_NORMALIZED, loader);
}

const pith__added_token *pith__added_tokens_find(const pith__added_tokens *added, int32_t id) {
    size_t low = 0, high = added->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (added->tokens[added->by_id[middle]].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == added->count || added->tokens[added->by_id[low]].id != id) return NULL;
    return &added->tokens[added->by_id[low]];
}

/* The longest token that begins at p, or NULL: the range of tokens that agree so far shrinks with
 * every byte. */
static const pith__added_token *added_match_at(const pith__added_tokens *added,
                                               const pith__added_tokens_set *set, const char *p,
                                               const char *end) {
    uint32_t low = set->first[(unsigned char)*p], high = set->first[(unsigned char)*p + 1];
    const pith__added_token *best = NULL;
    for (size_t depth = 1; low < high; depth++) {
        const pith__added_token *token = &added->tokens[set->order[low]];
        if (token->pattern.size == depth) {
            best = token;
            while (low < high && added->tokens[set->order[low]].pattern.size == depth) low++;
        }
        if (p + depth == end) break;
        unsigned char b = (unsigned char)p[depth];
        uint32_t edges[2];
        for (int k = 0; k < 2; k++) { /* first token whose byte is at least b, then at least b +
                                         1 */
            uint32_t l = low, h = high;
            while (l < h) {
                uint32_t middle = (l + h) / 2;
                if ((unsigned char)added->tokens[set->order[middle]].pattern.data[depth] < b + k)
                    l = middle + 1;
                else
                    h = middle;
            }
            edges[k] = l;
        }
        low = edges[0];
        high = edges[1];
    }
    return best;
}

static uint32_t char_before(const char *begin, const char *p) {
    do p--;
    while (p > begin && (*p & 0xC0) == 0x80);
    return pith__utf8_next(&p);
}

/* The next byte from p on that a token of the set may begin with; NULL: there is none. */
static const char *added_next_start(const pith__added_tokens_set *set, const char *p,
                                    const char *end) {
    if (p == end) return NULL;
    if (set->only >= 0) return memchr(p, set->only, (size_t)(end - p));
    while (p < end && set->first[(unsigned char)*p] == set->first[(unsigned char)*p + 1]) p++;
    return p < end ? p : NULL;
}

/* Cuts every piece at the tokens of the set, leftmost and longest first. What single_word, lstrip
 * and rstrip do to a match, and which matches they give up, follows added_vocabulary.rs of Hugging
 * Face tokenizers. */
bool pith__added_tokens_split(pith__encoding *enc, const pith__added_tokens *added,
                              const pith__added_tokens_set *set) {
    if (!set->count) return true;
    pith__encoding_restart(enc);
    for (size_t i = 0; i < enc->piece_count; i++) {
        pith__piece piece = enc->pieces[i];
        if (piece.id >= 0) {
            if (!pith__encoding_emit_piece(enc, piece)) return false;
            continue;
        }
        const char *text = enc->text.data, *begin = text + piece.begin, *end = text + piece.end,
                   *done = begin;
        for (const char *p = begin; (p = added_next_start(set, p, end)) != NULL;) {
            if (pith__encoding_stops(enc, (size_t)(p - text))) return false;
            const pith__added_token *token = added_match_at(added, set, p, end);
            if (!token) {
                p++;
                continue;
            }
            const char *from = p, *to = p + token->pattern.size;
            p = to;
            if (token->flags & PITH_ADDED_SINGLE_WORD) {
                const char *after = to;
                if ((from > begin && pith__char_is_word(char_before(begin, from))) ||
                    (to < end && pith__char_is_word(pith__utf8_next(&after))))
                    continue;
            }
            if (token->flags & PITH_ADDED_LSTRIP) {
                while (from > done && pith__char_is_space(char_before(begin, from))) do
                        from--;
                    while ((*from & 0xC0) == 0x80);
                if (from < done) from = done;
            }
            if (token->flags & PITH_ADDED_RSTRIP) {
                for (const char *next = to;
                     next < end && pith__char_is_space(pith__utf8_next(&next));)
                    to = next;
            }
            /* White space taken by rstrip may hold the next token. One that takes white space on
             * its left begins after what was taken and may have nothing left; another one overlaps,
             * as it does in the peer. */
            if (from >= to) {
                if (done < to) done = to;
                continue;
            }
            if (done < from)
                pith__encoding_emit(enc, (uint32_t)(done - text), (uint32_t)(from - text));
            pith__piece found = { (uint32_t)(from - text), (uint32_t)(to - text), token->id };
            if (!pith__encoding_emit_piece(enc, found)) return false;
            done = to;
        }
        pith__encoding_emit(enc, (uint32_t)(done - text), piece.end);
    }
    pith__encoding_swap_pieces(enc);
    return !enc->out_of_memory;
}
