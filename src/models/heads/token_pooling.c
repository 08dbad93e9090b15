/* token_pooling.c - see token_pooling.h. */
#include "models/heads/token_pooling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Two clusters that become one. At first their places in `distances`; then, by linkage_number,
 * their numbers: vectors are 0 to n - 1, and join i is n + i. */
typedef struct pool_join {
    size_t parts[2];
    double distance;
    size_t found; /* as which one */
} pool_join;

typedef struct linkage {
    size_t n;
    double *distances; /* [n (n - 1) / 2] of clusters, by their places, i < j */
    size_t *sizes;     /* [n] of clusters, by their places; 0: there is none */
    size_t *chain;     /* [2 n - 1] places; later the parents of numbers, or a stack of them */
    size_t chained;
    pool_join *joins; /* [n - 1] */
    size_t *labels;   /* [n] */
    uint8_t *seen;    /* [n - 1] joins */
} linkage;

static double *linkage_distance(const linkage *l, size_t i, size_t j) {
    const size_t a = i < j ? i : j, b = i < j ? j : i;
    return &l->distances[l->n * a - a * (a + 1) / 2 + b - a - 1];
}

static pith_status linkage_prepare(linkage *l, size_t n, pith__arena *scratch, pith_error *err) {
    *l = (linkage){ .n = n };
    l->distances = pith__arena_array(scratch, n * (n - 1) / 2, sizeof *l->distances);
    l->sizes = pith__arena_array(scratch, n, sizeof *l->sizes);
    l->chain = pith__arena_array(scratch, 2 * n, sizeof *l->chain);
    l->joins = pith__arena_array(scratch, n, sizeof *l->joins);
    l->labels = pith__arena_array(scratch, n, sizeof *l->labels);
    l->seen = pith__arena_array(scratch, n, sizeof *l->seen);
    if (!l->distances || !l->sizes || !l->chain || !l->joins || !l->labels || !l->seen)
        return pith__fail_memory(err, n * (n - 1) / 2 * sizeof *l->distances);
    for (size_t i = 0; i < n; i++) l->sizes[i] = 1;
    return PITH_OK;
}

/* Products are summed in double, so that equal vectors have equal distances on every machine. */
static pith_status linkage_measure(linkage *l, const float *rows, int64_t width, pith_error *err) {
    double *to = l->distances;
    for (size_t i = 0; i < l->n; i++) {
        const float *x = rows + (int64_t)i * width;
        for (int64_t k = 0; k < width; k++)
            if (!isfinite(x[k]))
                return pith__fail(err, PITH_ERR_RUN,
                                  "a token has a vector with a component that is no number, so its "
                                  "text cannot be pooled");
        for (size_t j = i + 1; j < l->n; j++) {
            const float *y = rows + (int64_t)j * width;
            double product = 0;
            for (int64_t k = 0; k < width; k++) product += (double)x[k] * (double)y[k];
            float distance = 1.0f - (float)product;
            if (distance < 0) distance = 0;
            if (distance > 2) distance = 2;
            *to++ = (double)distance;
        }
    }
    return PITH_OK;
}

/* The cluster nearest to the last one of the chain. The one before it in the chain wins ties:
 * without that the chain could go round in a circle of equal distances. */
static size_t linkage_nearest(const linkage *l, double *least) {
    const size_t x = l->chain[l->chained - 1];
    size_t nearest = x;
    *least = INFINITY;
    if (l->chained > 1) {
        nearest = l->chain[l->chained - 2];
        *least = *linkage_distance(l, x, nearest);
    }
    for (size_t i = 0; i < l->n; i++) {
        if (!l->sizes[i] || i == x) continue;
        const double distance = *linkage_distance(l, x, i);
        if (distance < *least) {
            *least = distance;
            nearest = i;
        }
    }
    return nearest;
}

/* The clusters at places x < y become one at y. */
static void linkage_join(linkage *l, size_t x, size_t y, double distance) {
    const double nx = (double)l->sizes[x], ny = (double)l->sizes[y];
    l->sizes[y] += l->sizes[x];
    l->sizes[x] = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (!l->sizes[i] || i == y) continue;
        const double ni = (double)l->sizes[i], t = 1 / (nx + ny + ni),
                     dx = *linkage_distance(l, i, x);
        double *dy = linkage_distance(l, i, y);
        *dy = sqrt((ni + nx) * t * dx * dx + (ni + ny) * t * *dy * *dy -
                   ni * t * distance * distance);
    }
}

/* All joins, by the nearest-neighbour chain: follow nearest neighbours until two are each other's,
 * join these, and go on with what is left of the chain. Ward's distance to a joined cluster is
 * never less than to the nearer part, so the chain before the pair stays valid. That takes n^2
 * steps in all, where looking for the nearest pair before each join would take n^3. Joins come in
 * another order than by distance; linkage_number puts them right. Source: F. Murtagh, "A survey of
 * recent advances in hierarchical clustering algorithms"; D. Müllner, "Modern hierarchical,
 * agglomerative clustering algorithms". */
static void linkage_find_joins(linkage *l) {
    for (size_t k = 0; k + 1 < l->n; k++) {
        double distance;
        size_t y;
        if (!l->chained) {
            size_t first = 0;
            while (!l->sizes[first]) first++;
            l->chain[l->chained++] = first;
        }
        while (y = linkage_nearest(l, &distance), l->chained < 2 || y != l->chain[l->chained - 2])
            l->chain[l->chained++] = y;
        size_t x = l->chain[l->chained - 1];
        l->chained -= 2;
        if (x > y) {
            const size_t t = x;
            x = y;
            y = t;
        }
        l->joins[k] = (pool_join){ { x, y }, distance, k };
        linkage_join(l, x, y, distance);
    }
}

static int linkage_compare(const void *a, const void *b) {
    const pool_join *x = a, *y = b;
    if (x->distance < y->distance || x->distance > y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->found > y->found) - (x->found < y->found);
}

static size_t linkage_root(size_t *parents, size_t i) {
    while (parents[i] != i) {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    return i;
}

/* Joins by their distances, with the numbers of their parts, the smaller first. */
static void linkage_number(linkage *l) {
    size_t *parents = l->chain;
    qsort(l->joins, l->n - 1, sizeof *l->joins, linkage_compare);
    for (size_t i = 0; i < 2 * l->n - 1; i++) parents[i] = i;
    for (size_t i = 0; i + 1 < l->n; i++) {
        pool_join *join = &l->joins[i];
        const size_t x = linkage_root(parents, join->parts[0]),
                     y = linkage_root(parents, join->parts[1]);
        join->parts[0] = x < y ? x : y;
        join->parts[1] = x < y ? y : x;
        parents[x] = parents[y] = l->n + i;
    }
}

/* The lowest distance at which there are at most `most` clusters. */
static double linkage_cut(const linkage *l, size_t most) {
    size_t i = l->n - most - 1; /* joins 0 to i leave `most` clusters */
    return l->joins[i].distance;
}

/* Labels from 0, as fcluster gives them. Returns how many there are. A walk down the tree with a
 * stack of its own, since a chain of joins may be as deep as there are vectors. The highest join at
 * or below the cut leads a cluster, and all vectors below it get its label; a vector outside of
 * such a join is a cluster alone. */
static size_t linkage_label(linkage *l, double cut) {
    const size_t n = l->n, none = SIZE_MAX;
    size_t *stack = l->chain, depth = 1, count = 0, leader = none;
    memset(l->seen, 0, n);
    stack[0] = n - 2; /* joins */
    while (depth) {
        const size_t at = stack[depth - 1];
        const pool_join *join = &l->joins[at];
        size_t below = none;
        if (leader == none && join->distance <= cut) {
            leader = at;
            count++;
        }
        for (int side = 0; side < 2 && below == none; side++)
            if (join->parts[side] >= n && !l->seen[join->parts[side] - n])
                below = join->parts[side] - n;
        if (below != none) {
            l->seen[below] = 1;
            stack[depth++] = below;
            continue;
        }
        for (int side = 0; side < 2; side++) {
            if (join->parts[side] >= n) continue;
            count += leader == none;
            l->labels[join->parts[side]] = count - 1;
        }
        if (leader == at) leader = none;
        depth--;
    }
    return count;
}

/* The means of the clusters take the place of the rows. */
static pith_status linkage_average(float *rows, int32_t *ids, const linkage *l, size_t clusters,
                                   int64_t width, pith__arena *scratch, pith_error *err) {
    float *sums = pith__arena_array(scratch, clusters * (size_t)width, sizeof *sums);
    int32_t *firsts = pith__arena_array(scratch, clusters, sizeof *firsts);
    size_t *sizes = l->sizes;
    if (!sums || !firsts) return pith__fail_memory(err, clusters * (size_t)width * sizeof *sums);
    memset(sums, 0, clusters * (size_t)width * sizeof *sums);
    memset(sizes, 0, l->n * sizeof *sizes);
    for (size_t i = 0; i < l->n; i++) {
        const size_t label = l->labels[i];
        if (!sizes[label]++) firsts[label] = ids[i];
        for (int64_t k = 0; k < width; k++)
            sums[(int64_t)label * width + k] += rows[(int64_t)i * width + k];
    }
    for (size_t i = 0; i < clusters; i++)
        for (int64_t k = 0; k < width; k++)
            rows[(int64_t)i * width + k] = sums[(int64_t)i * width + k] / (float)sizes[i];
    memcpy(ids, firsts, clusters * sizeof *ids);
    return PITH_OK;
}

/* Clusters by Ward's method, cut where at most n / factor of them are left, each replaced by its
 * mean. Memory grows with the square of the tokens, so there is a limit to them. */
pith_status pith__token_pool(float *rows, int32_t *ids, size_t *count, int64_t width,
                             const pith__token_pool_settings *pool, pith__arena *scratch,
                             pith_error *err) {
    const size_t first = (size_t)pool->protects < *count ? (size_t)pool->protects : *count,
                 n = *count - first;
    const double wanted = floor((double)n / pool->factor);
    size_t most = wanted < 1 ? 1 : (size_t)wanted;
    linkage l;
    if (pool->factor <= 1 || most >= n) return PITH_OK;
    if (n > PITH_TOKEN_POOL_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the text has vectors of %zu tokens; HierarchicalTokenPooling pools at "
                          "most %d: set "
                          "pith_embed_options.max_length",
                          n, PITH_TOKEN_POOL_MAX);
    rows += (int64_t)first * width;
    PITH_TRY(linkage_prepare(&l, n, scratch, err));
    PITH_TRY(linkage_measure(&l, rows, width, err));
    linkage_find_joins(&l);
    linkage_number(&l);
    most = linkage_label(&l, linkage_cut(&l, most));
    PITH_TRY(linkage_average(rows, ids + first, &l, most, width, scratch, err));
    *count = first + most;
    return PITH_OK;
}
