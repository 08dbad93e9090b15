/* stemmer.c - see stemmer.h. The functions are those of libstemmer.h of Snowball 2. */
#include "lexical/stemmer.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"

const char pith_stemmer_languages[] = "arabic, danish, dutch, english, finnish, french, german, greek, hungarian, "
                                      "italian, norwegian, portuguese, romanian, russian, spanish, swedish, tamil, "
                                      "turkish";

typedef struct stemmer_library {
    pith_stemmer *(*create)(const char *language, const char *encoding);
    void (*destroy)(pith_stemmer *);
    const unsigned char *(*run)(pith_stemmer *, const unsigned char *word, int size);
    int (*length)(pith_stemmer *);
} stemmer_library;

static stemmer_library library;
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

/* A function of the library; ISO C has no conversion from an object's address to a function's. */
static bool stemmer_find(void *function, void *handle, const char *name) {
    void *found = dlsym(handle, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* The library is never unloaded. */
static pith_status stemmer_load(pith_error *err) {
    static const char *const names[] = { "libstemmer.so.0d", "libstemmer.so.0", "libstemmer.so" };
    stemmer_library found;
    void *handle = NULL;
    int saved = errno;
    for (size_t i = 0; i < sizeof names / sizeof *names && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    errno = saved;
    if (!handle)
        return pith_fail(err, PITH_ERR_NOT_FOUND,
                         "stemming needs libstemmer, which is not installed; install it (Debian: apt-get install "
                         "libstemmer0d), or turn stemming off");
    if (!stemmer_find(&found.create, handle, "sb_stemmer_new") ||
        !stemmer_find(&found.destroy, handle, "sb_stemmer_delete") ||
        !stemmer_find(&found.run, handle, "sb_stemmer_stem") ||
        !stemmer_find(&found.length, handle, "sb_stemmer_length"))
        return pith_fail(err, PITH_ERR_UNSUPPORTED, "libstemmer is here, but lacks a function; install version 2");
    library = found;
    return PITH_OK;
}

int pith_stemmer_knows(const char *language) {
    size_t n = strlen(language);
    for (const char *p = pith_stemmer_languages; n && (p = strstr(p, language)); p += n)
        if ((p == pith_stemmer_languages || p[-1] == ' ') && (p[n] == ',' || !p[n])) return 1;
    return 0;
}

pith_status pith_stemmer_create(pith_stemmer **stemmer, const char *language, pith_error *err) {
    pthread_mutex_lock(&library_lock);
    pith_status status = library.create ? PITH_OK : stemmer_load(err);
    pthread_mutex_unlock(&library_lock);
    if (status) return status;
    *stemmer = library.create(language, "UTF_8");
    return *stemmer ? PITH_OK
                    : pith_fail(err, PITH_ERR_ARGUMENT, "libstemmer does not know the language '%s'", language);
}

void pith_stemmer_destroy(pith_stemmer *stemmer) {
    if (stemmer) library.destroy(stemmer);
}

pith_str pith_stemmer_run(pith_stemmer *stemmer, pith_str word) {
    const unsigned char *stem = library.run(stemmer, (const unsigned char *)word.data, (int)word.size);
    return (pith_str){ (const char *)stem, stem ? (size_t)library.length(stemmer) : 0 };
}
