/* token_pooling.h - the vectors of a text that are alike become their mean: hierarchical pooling of
 * tokens.
 *
 * What it computes, for the vectors x of a text behind the first `protects` ones, n of them:
 *   k = max(1, floor(n / factor)) clusters are made; with k >= n nothing is merged; d(i, j) = 1 -
 *   x_i . x_j in float32, held within 0 and 2, is the distance of two vectors (they have length 1);
 *   Ward's method: the two clusters that are nearest to each other are joined until one is left;
 *   the distance of the
 *     join of s and t to another cluster v is the root of ((|v| + |s|) d(v, s)^2 + (|v| + |t|) d(v,
 *     t)^2 - |v| d(s,
 * t)^2) / (|v| + |s| + |t|), in double; the clusters are those below the lowest distance at which
 * there are at most k of them. Joins at equal distances count as one, so that there may be fewer
 * than k. Each cluster becomes the mean of its vectors, summed in the order of the text. The
 * results stand behind the protected vectors in the order in which scipy's fcluster numbers them:
 * down the tree of joins, of two parts that with the smaller number first (single vectors are
 * numbered by their place, joins by their distance), and a single vector after the joined part
 * beside it.
 *
 * Ties: of clusters that are equally near, the one whose last vector stands first is taken, unless
 * the one before it in the chain of nearest neighbours is as near; of joins at equal distances, the
 * one that was found first counts as the lower one. That is what scipy 1.17 does. fastcluster,
 * which sentence-transformers takes where it is installed, may do otherwise with ties.
 *
 * Products are summed in double and rounded to float32 once, so that equal vectors have equal
 * distances and results are the same on every machine. The libraries round as torch's float32
 * product does, so distances that differ by their rounding only (of a vector that is there twice,
 * say) may be joined in another order there.
 *
 * Sources: sentence-transformers 6.2, multi_vector_encoder/modules/token_pooling.py
 * (_hierarchical_pool_one); scipy, cluster/hierarchy (linkage with method "ward": the
 * nearest-neighbour chain of Müllner, 1109.2378; fcluster with criterion "maxclust"). */
#ifndef PITH_MODELS_HEADS_TOKEN_POOLING_H
#define PITH_MODELS_HEADS_TOKEN_POOLING_H

#include "base/memory/memory.h"
#include "models/modules/late_interaction.h"

/* Vectors of a text that are pooled at most: the distances of so many are 256 MiB. */
#define PITH_TOKEN_POOL_MAX 8192

/* Pools rows [*count, width] and their ids [*count] in place and sets *count to the rows that are
 * left. The id of a cluster is that of the first of its tokens. Needs 4 n (n - 1) + 64 n bytes of
 * scratch, and time that grows with n^2. Thread-safe. PITH_ERR_UNSUPPORTED: more than
 * PITH_TOKEN_POOL_MAX vectors; PITH_ERR_RUN: a vector has a component that is no number. */
pith_status pith__token_pool(float *rows, int32_t *ids, size_t *count, int64_t width,
                             const pith__token_pool_settings *pool, pith__arena *scratch,
                             pith_error *err);

#endif
