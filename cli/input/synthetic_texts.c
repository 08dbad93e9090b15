/* synthetic_texts.c - made-up English texts for measuring. */
#include "cli/input/synthetic_texts.h"

#include <math.h>
#include <string.h>

static const char *const words[] = {
    "the",    "of",     "and",    "to",     "in",     "a",      "is",     "that",   "for",
    "it",     "as",     "was",    "with",   "be",     "by",     "on",     "not",    "he",
    "his",    "but",    "at",     "are",    "this",   "have",   "from",   "or",     "had",
    "an",     "they",   "which",  "one",    "you",    "were",   "her",    "all",    "she",
    "there",  "would",  "their",  "we",     "him",    "been",   "has",    "when",   "who",
    "will",   "more",   "no",     "if",     "out",    "so",     "said",   "what",   "up",
    "its",    "about",  "into",   "than",   "them",   "can",    "only",   "other",  "new",
    "some",   "could",  "time",   "these",  "two",    "may",    "then",   "do",     "first",
    "any",    "my",     "now",    "such",   "like",   "river",  "market", "engine", "winter",
    "garden", "signal", "carbon", "policy", "vector", "window", "museum", "planet", "bridge",
    "copper", "harvest"
};

/* Uniform in [0, 1); Knuth's MMIX constants. */
static double uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-53;
}

void synthetic_words(bytes *out, int count, uint64_t *seed) {
    for (int i = 0; i < count; i++) {
        const char *word = words[(size_t)(uniform(seed) * (sizeof words / sizeof *words))];
        if (i) bytes_add(out, " ", 1);
        bytes_add(out, word, strlen(word));
    }
}

int synthetic_length(uint64_t *seed) {
    double radius = sqrt(-2.0 * log(1.0 - uniform(seed))),
           angle = 6.283185307179586 * uniform(seed);
    double length = exp(3.0 + 0.7 * radius * cos(angle)); /* Box and Muller */
    if (length < 3) return 3;
    if (length > 60) return 60;
    return (int)length;
}
