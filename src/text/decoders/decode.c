/* decode.c - ids to text: the strings of the tokens, the tokenizer's decoders one after another,
 * and the result joined.
 *
 * A tokenizer without a decoder puts spaces between tokens, as Hugging Face does. Nothing here is
 * tuned for speed, because detokenizing is not needed for a vector. A stream decodes the ids since
 * the last point where the text was complete, and returns the new part. It waits while the text
 * ends in the middle of a character. */
#include "text/decoders/decode.h"

#include "base/caller_options.h"
#include "base/os/cpu.h"
#include "text/added_tokens.h"
#include "text/sources/key_report.h"

static const char replacement_character[] = "\xEF\xBF\xBD";

/* Two walks: the first counts the matches, so that the result is allocated once with its exact
 * size. */
bool pith__decoding_replace(pith__decoding *decoding, pith_str *token, pith_str what,
                            pith_str with) {
    size_t found = 0;
    const char *end = token->data + token->size;
    for (const char *p = token->data; (p = memmem(p, (size_t)(end - p), what.data, what.size));
         p += what.size)
        found++;
    if (!found) return true;
    size_t size = token->size - found * what.size + found * with.size;
    char *out = pith__arena_alloc(decoding->arena, size), *at = out;
    if (!out) {
        pith__fail_memory(decoding->err, size);
        return false;
    }
    const char *p = token->data;
    for (const char *match; (match = memmem(p, (size_t)(end - p), what.data, what.size));
         p = match + what.size) {
        memcpy(at, p, (size_t)(match - p));
        at += match - p;
        if (with.size) memcpy(at, with.data, with.size);
        at += with.size;
    }
    memcpy(at, p, (size_t)(end - p));
    *token = (pith_str){ out, size };
    return true;
}

bool pith__decoding_clean_up(pith__decoding *decoding, pith_str *token) {
    static const struct {
        pith_str what, with;
    } pairs[] = {
#define PAIR(what, with)                                                                           \
    {                                                                                              \
        { what, sizeof what - 1 }, { with, sizeof with - 1 }                                       \
    }
        PAIR(" .", "."),   PAIR(" ?", "?"),     PAIR(" !", "!"),     PAIR(" ,", ","),
        PAIR(" ' ", "'"),  PAIR(" n't", "n't"), PAIR(" 'm", "'m"),   PAIR(" do not", " don't"),
        PAIR(" 's", "'s"), PAIR(" 've", "'ve"), PAIR(" 're", "'re"),
#undef PAIR
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (!pith__decoding_replace(decoding, token, pairs[i].what, pairs[i].with)) return false;
    return true;
}

bool pith__decoding_fuse(pith__decoding *decoding) {
    size_t size = 0;
    for (size_t i = 0; i < decoding->count; i++) size += decoding->tokens[i].size;
    char *text = pith__arena_alloc(decoding->arena, size + 1), *at = text;
    if (!text) {
        pith__fail_memory(decoding->err, size);
        return false;
    }
    for (size_t i = 0; i < decoding->count; i++) {
        if (decoding->tokens[i].size)
            memcpy(at, decoding->tokens[i].data, decoding->tokens[i].size);
        at += decoding->tokens[i].size;
    }
    *at = 0;
    decoding->count = decoding->count ? 1 : 0;
    if (decoding->count) decoding->tokens[0] = (pith_str){ text, size };
    return true;
}

void *pith__decoder_parse(pith__json *j, pith__loader *loader, const void *usual, size_t size,
                          const pith__decoder_field *fields) {
    char *data = pith__arena_alloc(loader->arena, size);
    pith_str key;
    if (!data) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return NULL;
    }
    memcpy(data, usual, size);
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        const pith__decoder_field *f = fields;
        while (f->key && !pith__str_is(key, f->key)) f++;
        void *place = data + f->place;
        if (!f->key)
            pith__key_other(j, loader, key, "add_prefix_space trim_offsets use_regex cleanup");
        else if (f->kind == PITH_FIELD_STRING)
            *(pith_str *)place = pith__json_copy(j, loader->arena, pith__json_string(j));
        else if (f->kind == PITH_FIELD_BOOL)
            *(bool *)place = pith__json_bool(j);
        else
            *(int64_t *)place = pith__json_int(j);
    }
    return j->failed ? NULL : data;
}

static pith_status decode_decode(pith_str *text, const pith_tokenizer *tokenizer,
                                 const int32_t *ids, size_t count, bool skip_specials,
                                 pith__stop *stop, pith__arena *arena, pith_error *err) {
    pith__decoding d = { .arena = arena,
                         .stop = stop,
                         .err = err,
                         .tokens = pith__arena_array(arena, count, 2 * sizeof *d.tokens) };
    if (!d.tokens) return pith__fail_memory(err, count * 2 * sizeof *d.tokens);
    for (size_t i = 0; i < count; i++) {
        PITH_TRY(pith__decoding_look(&d, i));
        const pith__added_token *added = pith__added_tokens_find(tokenizer->added_tokens, ids[i]);
        pith_str token = pith__tokenizer_token(tokenizer, ids[i]);
        if (!token.data)
            return pith__fail(err, PITH_ERR_ARGUMENT, "id %d at index %zu is not in the vocabulary",
                              ids[i], i);
        if (!added || !skip_specials || !(added->flags & PITH_ADDED_SPECIAL))
            d.tokens[d.count++] = token;
    }
    for (size_t i = 0; i < tokenizer->decoders.count; i++) {
        const pith__decoder_desc *desc = tokenizer->decoders.steps[i].desc;
        const char *name = tokenizer->decoders.steps[i].self;
        if (!desc) PITH_TRY(pith__piece_check("decoders", pith__str_of(name), err));
        if (!desc) return pith__fail(err, PITH_ERR_UNSUPPORTED, "unknown decoder '%s'", name);
        PITH_TRY(pith__stop_check(stop, err));
        PITH_TRY(desc->run(tokenizer->decoders.steps[i].self, &d));
    }
    if (!tokenizer->decoders.count && d.count > 1) {
        /* The list was made twice as long as the tokens. */
        for (size_t i = d.count; i--;) d.tokens[2 * i] = d.tokens[i];
        for (size_t i = 0; i + 1 < d.count; i++) d.tokens[2 * i + 1] = PITH_STR(" ");
        d.count = 2 * d.count - 1;
    }
    if (!pith__decoding_fuse(&d)) return err ? err->code : PITH_ERR_MEMORY;
    *text = d.count ? d.tokens[0] : PITH_STR("");
    return PITH_OK;
}

pith_status pith__tokenizer_detokenize(char **text, size_t *size, const pith_tokenizer *tokenizer,
                                       const int32_t *ids, size_t count, int32_t skip_specials,
                                       const pith_call *call, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    pith__arena arena;
    pith_str result;
    PITH_TAKE_OPTIONS(o, call, err);
    pith__arena_init(&arena, tokenizer->allocator);
    pith_status status = decode_decode(&result, tokenizer, ids, count, skip_specials != 0,
                                       pith__stop_begin(&own, &o), &arena, err);
    if (!status) {
        char *copy = pith__memory_alloc(tokenizer->allocator, result.size + 1, 16);
        if (copy) {
            memcpy(copy, result.data, result.size);
            copy[result.size] = 0;
            *text = copy;
            *size = result.size;
        } else {
            status = pith__fail_memory(err, result.size + 1);
        }
    }
    pith__arena_free(&arena);
    return status;
}

void pith__tokenizer_free_text(const pith_tokenizer *tokenizer, char *text) {
    if (text) pith__memory_free(tokenizer->allocator, text);
}

/* ---- streams ---- */

/* A stream waits for the rest of a character for at most this many ids. A character has four bytes,
 * so a text that is still incomplete will stay so. */
enum { PENDING_MAX = 256 };

struct pith_text_stream {
    const pith_tokenizer *tokenizer;
    bool skip_specials;
    int32_t ids[PENDING_MAX];
    size_t count, known; /* ids[0, known) are those whose text, `prefix`, was given already */
    pith__arena prefix_arena, arena;
    pith_str prefix;
};

pith_status pith__tokenizer_stream_create(pith_text_stream **stream,
                                          const pith_tokenizer *tokenizer, int32_t skip_specials,
                                          pith_error *err) {
    pith_text_stream *s = pith__memory_alloc(tokenizer->allocator, sizeof *s, 16);
    if (!s) return pith__fail_memory(err, sizeof *s);
    *s = (pith_text_stream){ .tokenizer = tokenizer,
                             .skip_specials = skip_specials != 0,
                             .prefix = PITH_STR("") };
    pith__arena_init(&s->prefix_arena, tokenizer->allocator);
    pith__arena_init(&s->arena, tokenizer->allocator);
    *stream = s;
    return PITH_OK;
}

void pith__tokenizer_stream_destroy(pith_text_stream *stream) {
    if (!stream) return;
    pith__arena_free(&stream->prefix_arena);
    pith__arena_free(&stream->arena);
    pith__memory_free(stream->tokenizer->allocator, stream);
}

static bool ends_open(pith_str text) {
    size_t size = sizeof replacement_character - 1;
    return text.size >= size &&
           memcmp(text.data + text.size - size, replacement_character, size) == 0;
}

/* What the pending ids add; whole: also if it ends in the middle of a character. */
static pith_status decode_advance(pith_text_stream *s, pith_str *text, bool whole,
                                  pith_error *err) {
    pith_str all;
    *text = PITH_STR("");
    pith__arena_reset(&s->arena);
    PITH_TRY(decode_decode(&all, s->tokenizer, s->ids, s->count, s->skip_specials, NULL, &s->arena,
                           err));
    if (all.size <= s->prefix.size || (!whole && ends_open(all))) return PITH_OK;
    *text = (pith_str){ all.data + s->prefix.size, all.size - s->prefix.size };
    memmove(s->ids, s->ids + s->known, (s->count - s->known) * sizeof *s->ids);
    s->count -= s->known;
    s->known = s->count;
    pith__arena_reset(&s->prefix_arena);
    return decode_decode(&s->prefix, s->tokenizer, s->ids, s->count, s->skip_specials, NULL,
                         &s->prefix_arena, err);
}

pith_status pith__tokenizer_stream_push(pith_text_stream *stream, pith_str *text, int32_t id,
                                        pith_error *err) {
    if (!pith__added_tokens_find(stream->tokenizer->added_tokens, id) &&
        !pith__tokenizer_token(stream->tokenizer, id).data)
        return pith__fail(err, PITH_ERR_ARGUMENT, "id %d is not in the vocabulary", id);
    if (stream->count == PENDING_MAX) {
        memmove(stream->ids, stream->ids + 1, (PENDING_MAX - 1) * sizeof *stream->ids);
        stream->count--;
        stream->known -= stream->known > 0;
    }
    stream->ids[stream->count++] = id;
    return decode_advance(stream, text, stream->count == PENDING_MAX, err);
}

pith_status pith__tokenizer_stream_finish(pith_text_stream *stream, pith_str *text,
                                          pith_error *err) {
    pith_status status = decode_advance(stream, text, true, err);
    if (status) return status;
    stream->count = stream->known = 0;
    stream->prefix = PITH_STR("");
    return PITH_OK;
}
