/* bm25_state.h - the inside of BM25, shared by bm25_open.c, which makes it, and bm25.c, which
 * encodes. */
#ifndef PITH_MODELS_LEXICAL_BM25_STATE_H
#define PITH_MODELS_LEXICAL_BM25_STATE_H

#include <pthread.h>

#include "base/memory/span_map.h"
#include "models/lexical/bm25.h"
#include "models/lexical/stemmer.h"
#include "models/lexical/words.h"

/* A worker remembers what became of words: a direct-mapped table, in which a newer word replaces an
 * older one. */
enum { BM25_KNOWN = 8192, BM25_KNOWN_BYTES = 27, BM25_IDLE = 64 };

typedef struct bm25_known {
    uint32_t id, check; /* of the stem: its number, and another hash */
    uint8_t size;       /* of the word; 0: the place is empty */
    char word[BM25_KNOWN_BYTES];
} bm25_known;

typedef struct bm25_counted { /* a stem in a text */
    uint32_t id, check, times, place;
} bm25_counted;

typedef struct bm25_worker {
    pith__stemmer stemmer; /* none: words are not stemmed */
    pith__words words;
    bm25_counted *stems; /* of the text: [2 * stem_capacity], the second half for sorting */
    uint32_t *places;    /* [mask + 1], 1 + the index of a stem; all 0 between texts */
    size_t stem_count, stem_capacity;
    uint32_t mask;
    bm25_known known[BM25_KNOWN];
} bm25_worker;

struct pith_bm25 {
    pith_allocator allocator;
    pith__arena arena;
    const char *language;
    double k, b, avg_len;
    int32_t longest;
    bool stems;
    pith__map stops;
    pthread_mutex_t lock; /* guards the idle workers */
    bm25_worker *idle[BM25_IDLE];
    size_t idle_count;
};

/* Take a worker out, or make one; give it back; end it. Thread-safe. */
pith_status pith__bm25_borrow(bm25_worker **worker, pith_bm25 *b, pith_error *err);
void pith__bm25_return(pith_bm25 *b, bm25_worker *worker);
void pith__bm25_end(pith_bm25 *b, bm25_worker *worker);

#endif
