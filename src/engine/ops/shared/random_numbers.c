/* random_numbers.c - see random_numbers.h. */
#include "engine/ops/shared/random_numbers.h"

#include <math.h>

/* The sizes of MT19937. */
enum { N = 624, M = 397 };

void pith__random_seed(pith__random *g, uint32_t seed) {
    for (uint32_t i = 0; i < N; i++) {
        g->state[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    g->next = N;
    g->spare = NAN;
}

/* MT19937 of M. Matsumoto and T. Nishimura: the whole state is renewed at once, each number is then
 * tempered. */
static uint32_t random_draw(pith__random *g) {
    if (g->next == N) {
        for (int i = 0; i < N; i++) {
            uint32_t y = (g->state[i] & 0x80000000u) | (g->state[(i + 1) % N] & 0x7fffffffu);
            g->state[i] = g->state[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        g->next = 0;
    }
    uint32_t y = g->state[g->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

double pith__random_uniform(pith__random *g) {
    uint32_t high = random_draw(g) >> 5, low = random_draw(g) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

/* The polar method of G. Marsaglia, which gives two at a time; the second one is kept. */
double pith__random_normal(pith__random *g) {
    if (!isnan(g->spare)) {
        double spare = g->spare;
        g->spare = NAN;
        return spare;
    }
    double x, y, r;
    do {
        x = 2 * pith__random_uniform(g) - 1;
        y = 2 * pith__random_uniform(g) - 1;
        r = x * x + y * y;
    } while (r >= 1 || r == 0);
    double scale = sqrt(-2 * log(r) / r);
    g->spare = scale * x;
    return scale * y;
}
