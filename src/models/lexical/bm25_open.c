/* bm25_open.c - opens BM25: its options, its stop words, and the first worker, whose stemmer shows
 * that there is one. */
#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/os/file.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "models/hub/hub.h"
#include "models/lexical/bm25_numbers.h"
#include "models/lexical/bm25_state.h"

/* Ranges that keep the formula finite. Comparisons are written so that NaN fails them. */
static pith_status bm25_check(const pith_bm25_options *o, pith_error *err) {
    if (!o->language || !pith__stemmer_knows(o->language))
        return pith__fail(err, PITH_ERR_ARGUMENT, "language '%s' is not known; known are %s",
                          o->language ? o->language : "", pith__stemmer_languages);
    if (!(o->k >= 0) || o->k > 1e6)
        return pith__fail(err, PITH_ERR_ARGUMENT, "k is %g; it must be from 0 to 1e6", o->k);
    if (!(o->b >= 0) || o->b > 1)
        return pith__fail(err, PITH_ERR_ARGUMENT, "b is %g; it must be from 0 to 1", o->b);
    if (!(o->avg_len > 0) || o->avg_len > 1e12)
        return pith__fail(err, PITH_ERR_ARGUMENT, "avg_len is %g; it must be above 0", o->avg_len);
    if (o->token_max_length < 1 || o->token_max_length > PITH_WORD_CHARS)
        return pith__fail(err, PITH_ERR_ARGUMENT, "token_max_length is %d; it must be from 1 to %d",
                          o->token_max_length, PITH_WORD_CHARS);
    return PITH_OK;
}

/* Completes the caller's options and checks them. */
static pith_status bm25_take_options(pith_bm25_options *o, const pith_bm25_options *given,
                                     pith_error *err) {
    *o = (pith_bm25_options)PITH_BM25_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    if (!o->language) o->language = "english";
    o->k = pith__bm25_number(o->k, PITH_BM25_K);
    o->b = pith__bm25_number(o->b, PITH_BM25_B);
    if (o->avg_len == 0) o->avg_len = 256;
    if (!o->token_max_length) o->token_max_length = 40;
    return bm25_check(o, err);
}

/* Adds a stop word; its bytes must last as long as the arena. */
static pith_status bm25_add_stop(pith_bm25 *b, pith_str word, pith_error *err) {
    uint32_t old;
    return !word.size || pith__map_put(&b->stops, word, 1, &old)
               ? PITH_OK
               : pith__fail_memory(err, word.size);
}

/* fastembed keeps its stop words in <language>.txt of the model's directory, a word per line. A
 * language without such a file has none. */
static pith_status bm25_read_stops(pith_bm25 *b, const char *dir, const char *language,
                                   pith__stop *stop, pith_error *err) {
    pith_str path, folder;
    bool there;
    pith__file file;
    pith_str name = pith__arena_printf(&b->arena, "%s.txt", language);
    if (!name.data) return pith__fail_memory(err, 64);
    PITH_TRY(pith__hub_find(&folder, dir, &b->arena, err));
    if (!pith__dir_exists(folder.data))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "%s: is not a directory with lists of stop words, such as %s", dir,
                          name.data);
    PITH_TRY(pith__file_find(&there, &path, &b->arena, folder.data, name.data, err));
    if (!there) return PITH_OK;
    PITH_TRY(pith__file_open(&file, path.data, true, b->arena.allocator, err));
    pith_status status = PITH_OK;
    pith_str text = pith__arena_str(&b->arena, (pith_str){ (const char *)file.data, file.size });
    pith__file_close(&file);
    if (!text.data) return pith__fail_memory(err, file.size);
    if (pith__utf8_valid_prefix(text.data, text.size) < text.size)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: is not UTF-8", path.data);
    for (size_t at = 0, end; at < text.size && !status; at = end + 1) {
        for (end = at; end < text.size && text.data[end] != '\n';) end++;
        pith_str word = { text.data + at, end - at };
        if (word.size && word.data[word.size - 1] == '\r') word.size--;
        status = bm25_add_stop(b, word, err);
        if (!status && !(b->stops.count & 4095)) status = pith__stop_check(stop, err);
    }
    return status;
}

/* Words are compared in lower case, so those of the caller are made lower case too. */
static pith_status bm25_take_stops(pith_bm25 *b, const pith_bm25_options *o, pith__stop *stop,
                                   pith_error *err) {
    char lower[PITH_WORD_BYTES];
    for (size_t i = 0; i < o->stop_word_count; i++) {
        pith_str word = pith__str_of(o->stop_words[i]);
        if (!(i & 4095)) PITH_TRY(pith__stop_check(stop, err));
        if (pith__utf8_valid_prefix(word.data, word.size) < word.size)
            return pith__fail(err, PITH_ERR_ARGUMENT, "stop word %zu is not UTF-8", i);
        word = pith__arena_str(&b->arena, (pith_str){ lower, pith__words_lower(lower, word) });
        if (!word.data) return pith__fail_memory(err, sizeof lower);
        PITH_TRY(bm25_add_stop(b, word, err));
    }
    return PITH_OK;
}

/* A worker is made at once, so that a missing libstemmer is told when the model is opened. */
static pith_status bm25_fill(pith_bm25 *b, const char *dir, const pith_bm25_options *o,
                             pith__stop *stop, pith_error *err) {
    bm25_worker *worker;
    b->language = pith__arena_str(&b->arena, pith__str_of(o->language)).data;
    if (!b->language || pith__map_init(&b->stops, &b->arena, 64)) return pith__fail_memory(err, 64);
    if (o->stop_words)
        PITH_TRY(bm25_take_stops(b, o, stop, err));
    else if (dir && !o->no_stemming)
        PITH_TRY(bm25_read_stops(b, dir, o->language, stop, err));
    PITH_TRY(pith__bm25_borrow(&worker, b, err));
    pith__bm25_return(b, worker);
    return PITH_OK;
}

/* The model never changes after this, but for its idle workers. */
pith_status pith__bm25_open(pith_bm25 **bm25, const char *dir, const pith_bm25_options *given,
                            pith_error *err) {
    pith_bm25_options o;
    PITH_TRY(bm25_take_options(&o, given, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    PITH_TRY(pith__stop_check(stop, err));
    const pith_allocator *allocator =
        o.call.allocator ? o.call.allocator : &pith__allocator_default;
    pith_bm25 *b = pith__memory_alloc(allocator, sizeof *b, 64);
    if (!b) return pith__fail_memory(err, sizeof *b);
    *b = (pith_bm25){ .allocator = *allocator,
                      .k = o.k,
                      .b = o.b,
                      .avg_len = o.avg_len,
                      .longest = o.token_max_length,
                      .stems = !o.no_stemming };
    if (pthread_mutex_init(&b->lock, NULL)) {
        pith__memory_free(allocator, b);
        return pith__fail_memory(err, sizeof b->lock);
    }
    pith__arena_init(&b->arena, &b->allocator);
    pith_status status = bm25_fill(b, dir, &o, stop, err);
    if (status)
        pith__bm25_close(b);
    else
        *bm25 = b;
    return status;
}

void pith__bm25_close(pith_bm25 *b) {
    if (!b) return;
    while (b->idle_count) pith__bm25_end(b, b->idle[--b->idle_count]);
    pthread_mutex_destroy(&b->lock);
    pith__arena_free(&b->arena);
    pith_allocator allocator = b->allocator;
    pith__memory_free(&allocator, b);
}
