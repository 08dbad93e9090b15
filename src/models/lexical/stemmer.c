/* stemmer.c - see stemmer.h. */
#include "models/lexical/stemmer.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <libstemmer.h>

#include "base/error.h"
#include "base/os/shared_library.h"

const char pith__stemmer_languages[] =
    "arabic, danish, dutch, english, finnish, french, german, greek, hungarian, "
    "italian, norwegian, portuguese, romanian, russian, spanish, swedish, tamil, "
    "turkish";

/* Letters of a language that are hidden, and the letter they are hidden behind; all have two bytes.
 */
typedef struct stemmer_hidden {
    const char *language, *letters[2], *behind;
} stemmer_hidden;

/* "ґ" is no vowel and stands in no Russian ending; "û" is a vowel and stands in no French ending.
 */
static const stemmer_hidden hidden_letters[] = { { "russian", { "ё", "ё" }, "ґ" },
                                                 { "french", { "ï", "ë" }, "û" } };

#define STEMMER_FUNCTIONS(F)                                                                       \
    F(sb_stemmer_, new) F(sb_stemmer_, delete) F(sb_stemmer_, stem) F(sb_stemmer_, length)

typedef struct stemmer_library {
    STEMMER_FUNCTIONS(PITH_LIBRARY_MEMBER)
} stemmer_library;

static stemmer_library library;
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

static pith_status stemmer_load(pith_error *err) {
    static const char *const names[] = { "libstemmer.so.0d", "libstemmer.so.0", "libstemmer.so" };
    stemmer_library found;
    PITH_TRY(pith__library_safe(err));
    void *handle = pith__library_load(names, sizeof names / sizeof *names);
    if (!handle)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "stemming needs libstemmer, which is not installed; install it (Debian: "
                          "apt-get install "
                          "libstemmer0d), or turn stemming off");
    if (pith__library_fill(&found, handle, STEMMER_FUNCTIONS(PITH_LIBRARY_NAME)))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "libstemmer is here, but lacks a function; install version 2");
    library = found;
    return PITH_OK;
}

int pith__stemmer_knows(const char *language) {
    size_t n = strlen(language);
    if (!n) return 0;
    for (const char *p = pith__stemmer_languages; (p = strstr(p, language)); p += n)
        if ((p == pith__stemmer_languages || p[-1] == ' ') && (p[n] == ',' || !p[n])) return 1;
    return 0;
}

pith_status pith__stemmer_create(pith__stemmer *stemmer, const char *language, pith_error *err) {
    stemmer->snowball = NULL;
    stemmer->hidden = NULL;
    pthread_mutex_lock(&library_lock);
    pith_status status = library.new ? PITH_OK : stemmer_load(err);
    pthread_mutex_unlock(&library_lock);
    if (status) return status;
    for (size_t i = 0; i < sizeof hidden_letters / sizeof *hidden_letters; i++)
        if (!strcmp(hidden_letters[i].language, language)) stemmer->hidden = &hidden_letters[i];
    stemmer->snowball = library.new(language, "UTF_8");
    return stemmer->snowball ? PITH_OK
                             : pith__fail(err, PITH_ERR_ARGUMENT,
                                          "libstemmer does not know the language '%s'", language);
}

void pith__stemmer_destroy(pith__stemmer *stemmer) {
    if (stemmer->snowball) library.delete(stemmer->snowball);
    stemmer->snowball = NULL;
}

static bool stemmer_hides(const stemmer_hidden *h, const char *at) {
    return !memcmp(at, h->letters[0], 2) || !memcmp(at, h->letters[1], 2);
}

/* Hides letters of the word in stemmer->word; false if there are none. */
static bool stemmer_hide(pith__stemmer *stemmer, pith_str word) {
    const stemmer_hidden *h = stemmer->hidden;
    bool any = false;
    if (!h || word.size > sizeof stemmer->word) return false;
    for (size_t i = 0; i + 1 < word.size && !any; i++) any = stemmer_hides(h, word.data + i);
    if (!any) return false;
    memcpy(stemmer->word, word.data, word.size);
    for (size_t i = 0; i + 1 < word.size; i++)
        if (stemmer_hides(h, word.data + i)) memcpy(stemmer->word + i, h->behind, 2);
    return true;
}

pith_str pith__stemmer_run(pith__stemmer *stemmer, pith_str word) {
    const bool hidden = stemmer_hide(stemmer, word);
    const char *from = hidden ? stemmer->word : word.data;
    const unsigned char *stem =
        library.stem(stemmer->snowball, (const unsigned char *)from, (int)word.size);
    const size_t size = stem ? (size_t)library.length(stemmer->snowball) : 0;
    if (!hidden || !stem || size > sizeof stemmer->word)
        return (pith_str){ (const char *)stem, size };
    memcpy(stemmer->word, stem, size);
    /* Stemming changes endings, so letters stay in their places. */
    for (size_t i = 0; i + 1 < size && i + 1 < word.size; i++)
        if (stemmer_hides(stemmer->hidden, word.data + i) &&
            !memcmp(stem + i, stemmer->hidden->behind, 2))
            memcpy(stemmer->word + i, word.data + i, 2);
    return (pith_str){ stemmer->word, size };
}
