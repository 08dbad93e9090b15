/* random_numbers.h - the generator of operators that draw numbers: MT19937 (Matsumoto and Nishimura
 * 1998), seeded and read as numpy.random.RandomState does, so that seeded results are those of the
 * ONNX project's reference. */
#ifndef PITH_ENGINE_OPS_SHARED_RANDOM_NUMBERS_H
#define PITH_ENGINE_OPS_SHARED_RANDOM_NUMBERS_H

#include <stdint.h>

typedef struct pith__random {
    uint32_t state[624];
    int next;
    double spare; /* the second of a pair of normal numbers; NaN: none */
} pith__random;

void pith__random_seed(pith__random *g, uint32_t seed);
double pith__random_uniform(pith__random *g); /* [0, 1), 53 bits */
double pith__random_normal(pith__random *g);  /* mean 0, variance 1; Marsaglia's polar method */

#endif
