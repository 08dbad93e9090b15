/* bm25_numbers.h - the numbers of the formula of BM25, as options give them. */
#ifndef PITH_MODELS_LEXICAL_BM25_NUMBERS_H
#define PITH_MODELS_LEXICAL_BM25_NUMBERS_H

#define PITH_BM25_K 1.2
#define PITH_BM25_B 0.75

/* k or b: 0 stands for its default, and a negative number for 0. */
static inline double pith__bm25_number(double given, double usual) {
    if (given == 0) return usual;
    return given < 0 ? 0 : given;
}

#endif
