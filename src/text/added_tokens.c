/* added_tokens.c - added tokens: ids, order, search. single_word, lstrip and rstrip mean what they mean in Hugging Face
 * tokenizers 0.23 (added_vocabulary.rs): ids that the model knows win over those of the file, and white space is what
 * \s matches. */
#include "text/added_tokens.h"

#include <stdlib.h>

#include "text/encoding.h"
#include "text/post_processing.h"
#include "text/sources/key_report.h"
#include "text/run_steps.h"
#include "base/unicode/tokenizer_characters.h"

const struct pith_added_flag pith_added_flags[PITH_ADDED_FLAGS] = {
    { "single_word", PITH_ADDED_SINGLE_WORD }, { "lstrip", PITH_ADDED_LSTRIP },   { "rstrip", PITH_ADDED_RSTRIP },
    { "normalized", PITH_ADDED_NORMALIZED },   { "special", PITH_ADDED_SPECIAL },
};

pith_status pith_added_create(pith_loader *loader) {
    pith_added *added = pith_arena_array(loader->arena, 1, sizeof *added);
    if (!added) return pith_fail_memory(loader->err, sizeof *added);
    loader->tokenizer->added = added;
    return pith_map_init(&added->by_content, loader->arena, 16);
}

/* The rules of add_tokens: a content seen before keeps its id, one the model knows takes the model's, others count on
 * from the number of tokens in the vocabulary. */
pith_status pith_loader_add_token(pith_loader *loader, pith_str content, int32_t id, uint32_t flags) {
    pith_tokenizer *t = loader->tokenizer;
    pith_added *added = t->added;
    if (!content.size) return PITH_OK;
    if (content.size > PITH_ADDED_MAX)
        return pith_fail(loader->err, PITH_ERR_UNSUPPORTED, "an added token has %zu bytes; at most %d are allowed",
                         content.size, PITH_ADDED_MAX);
    uint32_t known = pith_map_get(&added->by_content, content);
    if (known != UINT32_MAX) {
        added->tokens[known].flags = flags;
        return PITH_OK;
    }
    int32_t model_id = t->model->id(t->model_self, content);
    if (model_id >= 0)
        id = model_id;
    else if (id < 0) {
        if (!added->next_id) added->next_id = (t->model->count ? t->model->count : t->model->size)(t->model_self);
        if (added->next_id >= PITH_TOKEN_ID_MAX)
            return pith_fail(loader->err, PITH_ERR_FORMAT, "too many added tokens");
        id = added->next_id++;
    }
    size_t capacity = added->capacity;
    if (!pith_arena_grow(loader->arena, (void **)&added->tokens, added->count, &capacity, sizeof *added->tokens))
        return pith_fail_memory(loader->err, sizeof *added->tokens);
    added->capacity = capacity;
    content = pith_arena_str(loader->arena, content);
    if (!content.data || !pith_map_put(&added->by_content, content, (uint32_t)added->count, NULL))
        return pith_fail_memory(loader->err, content.size);
    added->tokens[added->count++] = (pith_added_token){ content, content, id, flags };
    return PITH_OK;
}

pith_status pith_added_add_listed(pith_loader *loader, pith_str content, int64_t listed, uint32_t flags) {
    const pith_added *added = loader->tokenizer->added;
    PITH_TRY(pith_loader_add_token(loader, content, -1, flags));
    uint32_t known = pith_map_get(&added->by_content, content);
    if (known == UINT32_MAX || added->tokens[known].id == listed) return PITH_OK;
    return pith_fail(loader->err, PITH_ERR_FORMAT,
                     "added token \"" PITH_STR_FMT "\" is listed with the id %lld, but the vocabulary gives it %d; the "
                     "files do not belong together",
                     PITH_STR_ARG(content), (long long)listed, (int)added->tokens[known].id);
}

void pith_added_parse(pith_json *j, pith_loader *loader) {
    pith_str key, content = { "", 0 };
    uint32_t flags = 0;
    int32_t id = -1;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        size_t i = 0;
        while (i < PITH_ADDED_FLAGS && !pith_str_is(key, pith_added_flags[i].key)) i++;
        if (i < PITH_ADDED_FLAGS)
            flags = (flags & ~pith_added_flags[i].flag) | (pith_json_bool(j) ? pith_added_flags[i].flag : 0);
        else if (loader->frozen.data && pith_str_is(key, "id"))
            id = pith_json_id(j);
        else if (pith_str_is(key, "content"))
            content = pith_json_string(j);
        else
            pith_key_other(j, loader, key, "id");
    }
    if (j->failed) return;
    if (pith_loader_add_token(loader, content, id, flags)) j->failed = true;
}

static int compare_patterns(pith_str a, pith_str b) {
    int c = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return c ? c : a.size < b.size ? -1 : a.size > b.size;
}

/* Shell sort: no libc qsort with context in C11, and lists are short. less(a, b) compares token indices. */
static void sort_indices(uint32_t *order, size_t count, const pith_added_token *tokens, bool by_id) {
    size_t gap = 1;
    while (gap < count / 3) gap = 3 * gap + 1;
    for (; gap; gap /= 3) {
        for (size_t i = gap; i < count; i++) {
            uint32_t x = order[i];
            size_t k = i;
            for (; k >= gap; k -= gap) {
                const pith_added_token *a = &tokens[order[k - gap]], *b = &tokens[x];
                int c = by_id ? (a->id > b->id) - (a->id < b->id) : compare_patterns(a->pattern, b->pattern);
                if (c < 0 || (c == 0 && order[k - gap] < x)) break;
                order[k] = order[k - gap];
            }
            order[k] = x;
        }
    }
}

static pith_status build_set(pith_added_set *set, const pith_added *added, uint32_t normalized, pith_loader *loader) {
    set->order = pith_arena_array(loader->arena, added->count + 1, sizeof *set->order);
    if (!set->order) return pith_fail_memory(loader->err, added->count * sizeof *set->order);
    for (uint32_t i = 0; i < added->count; i++)
        if ((added->tokens[i].flags & PITH_ADDED_NORMALIZED) == normalized && added->tokens[i].pattern.size &&
            !(added->specials_are_text && added->tokens[i].flags & PITH_ADDED_SPECIAL))
            set->order[set->count++] = i;
    sort_indices(set->order, set->count, added->tokens, false);
    uint32_t at = 0;
    for (int b = 0; b < 256; b++) {
        set->first[b] = at;
        while (at < set->count && (unsigned char)added->tokens[set->order[at]].pattern.data[0] == b) at++;
    }
    set->first[256] = at;
    set->only = -1;
    if (set->count) {
        int b = (unsigned char)added->tokens[set->order[0]].pattern.data[0];
        if (set->first[b + 1] == set->count) set->only = b;
    }
    return PITH_OK;
}

static pith_status normalise_patterns(pith_added *added, pith_loader *loader) {
    pith_encoding *enc = pith_encoding_acquire(loader->tokenizer);
    if (!enc) return pith_fail_memory(loader->err, sizeof *enc);
    pith_status status = PITH_OK;
    enc->err = loader->err;
    for (size_t i = 0; i < added->count && !status; i++) {
        pith_added_token *token = &added->tokens[i];
        if (!(token->flags & PITH_ADDED_NORMALIZED)) continue;
        status = pith_encoding_begin(enc, token->content, false) ? pith_normalize(enc) : PITH_ERR_MEMORY;
        if (status || enc->out_of_memory) break;
        token->pattern = pith_arena_str(loader->arena, (pith_str){ enc->text.data, enc->text.size });
        enc->out_of_memory = !token->pattern.data;
    }
    if (enc->out_of_memory) status = pith_fail_memory(loader->err, PITH_ADDED_MAX);
    for (size_t i = 0; i < added->count && !status; i++)
        if (!added->tokens[i].pattern.size)
            status = pith_fail(loader->err, PITH_ERR_UNSUPPORTED,
                               "the normalizer leaves nothing of the added token \"" PITH_STR_FMT "\", which would "
                               "match everywhere; set its \"normalized\" to false",
                               PITH_STR_ARG(added->tokens[i].content));
    pith_encoding_release(enc);
    return status;
}

pith_status pith_added_finish(pith_loader *loader) {
    pith_added *added = loader->tokenizer->added;
    if (loader->tokenizer->normalizers.count) PITH_TRY(normalise_patterns(added, loader));
    added->by_id = pith_arena_array(loader->arena, added->count, sizeof *added->by_id);
    if (!added->by_id) return pith_fail_memory(loader->err, added->count * sizeof *added->by_id);
    for (uint32_t i = 0; i < added->count; i++) added->by_id[i] = i;
    sort_indices(added->by_id, added->count, added->tokens, true);
    PITH_TRY(build_set(&added->raw, added, 0, loader));
    return build_set(&added->normalized, added, PITH_ADDED_NORMALIZED, loader);
}

const pith_added_token *pith_added_find(const pith_added *added, int32_t id) {
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

/* The longest token that begins at p, or NULL: the range of tokens that agree so far shrinks with every byte. */
static const pith_added_token *added_match_at(const pith_added *added, const pith_added_set *set, const char *p,
                                              const char *end) {
    uint32_t low = set->first[(unsigned char)*p], high = set->first[(unsigned char)*p + 1];
    const pith_added_token *best = NULL;
    for (size_t depth = 1; low < high; depth++) {
        const pith_added_token *token = &added->tokens[set->order[low]];
        if (token->pattern.size == depth) {
            best = token;
            while (low < high && added->tokens[set->order[low]].pattern.size == depth) low++;
        }
        if (p + depth == end) break;
        unsigned char b = (unsigned char)p[depth];
        uint32_t edges[2];
        for (int k = 0; k < 2; k++) { /* first token whose byte is at least b, then at least b + 1 */
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
    return pith_utf8_next(&p);
}

bool pith_added_split(pith_encoding *enc, const pith_added *added, const pith_added_set *set) {
    if (!set->count) return true;
    for (size_t i = 0; i < enc->piece_count; i++) {
        pith_piece piece = enc->pieces[i];
        if (piece.id >= 0) {
            if (!pith_encoding_emit_piece(enc, piece)) return false;
            continue;
        }
        const char *text = enc->text.data, *begin = text + piece.begin, *end = text + piece.end, *done = begin;
        for (const char *p = begin; p < end;) {
            if (set->only >= 0) {
                p = memchr(p, set->only, (size_t)(end - p));
                if (!p) break;
            } else {
                while (p < end && set->first[(unsigned char)*p] == set->first[(unsigned char)*p + 1]) p++;
                if (p == end) break;
            }
            const pith_added_token *token = added_match_at(added, set, p, end);
            if (!token) {
                p++;
                continue;
            }
            const char *from = p, *to = p + token->pattern.size;
            p = to;
            if (token->flags & PITH_ADDED_SINGLE_WORD) {
                const char *after = to;
                if ((from > begin && pith_char_is_word(char_before(begin, from))) ||
                    (to < end && pith_char_is_word(pith_utf8_next(&after))))
                    continue;
            }
            if (token->flags & PITH_ADDED_LSTRIP) {
                while (from > done && pith_char_is_space(char_before(begin, from))) do
                        from--;
                    while ((*from & 0xC0) == 0x80);
                if (from < done) from = done;
            }
            if (token->flags & PITH_ADDED_RSTRIP) {
                for (const char *next = to; next < end && pith_char_is_space(pith_utf8_next(&next));) to = next;
            }
            /* White space taken by rstrip may hold the next token. One that takes white space on its left begins after
             * what was taken and may have nothing left; another one overlaps, as it does in the peer. */
            if (from >= to) {
                if (done < to) done = to;
                continue;
            }
            if (done < from) pith_encoding_emit(enc, (uint32_t)(done - text), (uint32_t)(from - text));
            pith_piece found = { (uint32_t)(from - text), (uint32_t)(to - text), token->id };
            if (!pith_encoding_emit_piece(enc, found)) return false;
            done = to;
        }
        pith_encoding_emit(enc, (uint32_t)(done - text), piece.end);
    }
    pith_encoding_swap_pieces(enc);
    return !enc->out_of_memory;
}
