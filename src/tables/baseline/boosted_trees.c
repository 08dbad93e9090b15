/* boosted_trees.c - see boosted_trees.h. A tree is grown level by level: the rows of a node are a
 * range of one list, in their order. Of many training rows each tree sees a part that is drawn
 * anew. Source: Friedman, Stochastic gradient boosting, Computational Statistics & Data Analysis
 * 38(4), 2002. */
#include "tables/baseline/boosted_trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/threads.h"
#include "tables/network/cell_sampler.h"

enum {
    TREES_MOST = 300,    /* rounds */
    TREES_CLASSES = 100, /* rounds where each has a tree for every class */
    TREES_PATIENCE = 25, /* rounds without a smaller loss, after which growing ends */
    TREES_ALONE = 100,   /* rounds where there are no validation rows to decide */
    TREES_ROWS = 32768,  /* rows that a tree sees: more take longer and change little */
    TREE_LEAST = 20      /* rows of a leaf: fewer would learn single rows */
};
static const int tree_depths[] = { 2, 3, 5 };
#define TREE_RATE 0.1    /* of what a leaf says; smaller needs more trees */
#define TREE_LAMBDA 1.0  /* pulls leaves of few rows to 0 */
#define TREE_SMOOTH 10.0 /* pulls rare categories to the middle of the order */

typedef struct tree_split {
    double gain;
    uint64_t left[4];
} tree_split;

typedef struct tree_grow {
    const pith__forest_data *data;
    const pith__work *work;
    pith__arena *arena;
    int threads, depth;
    uint64_t grown, most; /* trees so far, and at most; for progress */
    size_t all;
    double *scores, *slopes, *curves; /* [outputs][all]; [train]; [train]: of the output whose tree
                                         grows */
    uint32_t *list, *spare;           /* [train] */
    uint8_t *seen;                    /* [train] whether the tree that grows sees a row */
    size_t begin, end;                /* the node whose split is searched: a range of list */
    tree_split *splits;               /* [features] */
} tree_grow;

static double softplus(double z) { return (z > 0 ? z : 0) + log1p(exp(-fabs(z))); }

/* log of the sum of exp. */
static double tree_log_sum(const double *x, size_t stride, int n) {
    double most = x[0], sum = 0;
    for (int k = 1; k < n; k++) most = x[(size_t)k * stride] > most ? x[(size_t)k * stride] : most;
    for (int k = 0; k < n; k++) sum += exp(x[(size_t)k * stride] - most);
    return most + log(sum);
}

static double tree_loss(pith__forest_loss loss, int outputs, const double *x, size_t stride,
                        double truth) {
    if (loss == PITH_FOREST_BOOLEAN) return softplus(x[0]) - x[0] * truth;
    if (loss == PITH_FOREST_NUMBER) return fabs(x[0] - truth);
    return tree_log_sum(x, stride, outputs) - x[(size_t)truth * stride];
}

double pith__forest_loss_of(pith__forest_loss loss, int outputs, const double *answers,
                            double truth) {
    return tree_loss(loss, outputs, answers, 1, truth);
}

/* First and second derivatives of the loss of the training rows. Here and below, work that must end
 * leaves what it was to fill as it is; forest_depth then tells so. */
static void tree_slopes(tree_grow *g, int output) {
    const pith__forest_data *d = g->data;
    for (size_t i = 0; i < d->train; i++) {
        if (pith__row_stops(g->work->stop, i)) return;
        const double *x = g->scores + i;
        const double y = d->truths[i];
        if (d->loss == PITH_FOREST_NUMBER) {
            const double away = x[0] - y;
            g->slopes[i] = away;
            if (away > 1)
                g->slopes[i] = 1;
            else if (away < -1)
                g->slopes[i] = -1;
            g->curves[i] = 1;
            continue;
        }
        const bool classes = d->loss == PITH_FOREST_CLASSES;
        const double p = classes
                             ? exp(x[(size_t)output * g->all] - tree_log_sum(x, g->all, d->outputs))
                             : 1 / (1 + exp(-x[0]));
        g->slopes[i] = p - (classes ? (int)y == output : y);
        g->curves[i] = p * (1 - p) > 1e-6 ? p * (1 - p) : 1e-6;
    }
}

/* ---- splits ---- */

typedef struct tree_bin {
    double slope, curve, rows, order;
    int bin;
} tree_bin;

static int tree_bin_compare(const void *a, const void *b) {
    const tree_bin *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return x->bin - y->bin;
}

static double tree_worth(double slope, double curve) {
    return slope * slope / (curve + TREE_LAMBDA);
}

/* The best cut of bins in their order. */
static void tree_cut(tree_split *s, const tree_bin *bins, int count) {
    double slope = 0, curve = 0, rows = 0, left_slope = 0, left_curve = 0, left_rows = 0;
    int best = -1;
    for (int i = 0; i < count; i++) {
        slope += bins[i].slope;
        curve += bins[i].curve;
        rows += bins[i].rows;
    }
    s->gain = 1e-9;
    for (int i = 0; i + 1 < count; i++) {
        left_slope += bins[i].slope;
        left_curve += bins[i].curve;
        left_rows += bins[i].rows;
        if (left_rows < TREE_LEAST || rows - left_rows < TREE_LEAST) continue;
        const double gain = tree_worth(left_slope, left_curve) +
                            tree_worth(slope - left_slope, curve - left_curve) -
                            tree_worth(slope, curve);
        if (gain > s->gain) s->gain = gain, best = i;
    }
    memset(s->left, 0, sizeof s->left);
    if (best < 0) s->gain = 0;
    for (int i = 0; i <= best; i++) s->left[bins[i].bin >> 6] |= (uint64_t)1 << (bins[i].bin & 63);
}

/* The best cut of one feature for the rows of a node. Rows are added in their order by one thread,
 * so sums do not depend on the number of threads. Categories are sorted by their mean gradient,
 * which makes the best of all two-way splits a cut of that order (Fisher 1958). */
static void tree_search(void *context, size_t feature, int worker) {
    tree_grow *g = context;
    const uint8_t *bin = g->data->bins[feature];
    tree_bin bins[PITH_BINS];
    int count = 0;
    (void)worker;
    memset(bins, 0, sizeof bins);
    for (size_t i = g->begin; i < g->end; i++) {
        tree_bin *b = &bins[bin[g->list[i]]];
        b->slope += g->slopes[g->list[i]];
        b->curve += g->curves[g->list[i]];
        b->rows++;
    }
    for (int b = 0; b < PITH_BINS; b++) {
        if (bins[b].rows <= 0) continue;
        bins[count] = bins[b];
        bins[count].bin = b;
        bins[count].order =
            g->data->category[feature] ? bins[b].slope / (bins[b].curve + TREE_SMOOTH) : b;
        count++;
    }
    if (g->data->category[feature]) qsort(bins, (size_t)count, sizeof *bins, tree_bin_compare);
    tree_cut(&g->splits[feature], bins, count);
}

static bool tree_goes_left(const pith__tree_node *n, uint8_t bin) {
    return n->left[bin >> 6] >> (bin & 63) & 1;
}

/* Splits the rows of a node, which stay in order. Returns the first row of the second child. */
static size_t tree_part(tree_grow *g, const pith__tree_node *n, size_t begin, size_t end) {
    const uint8_t *bin = g->data->bins[n->feature];
    size_t left = begin, right = 0;
    for (size_t i = begin; i < end; i++) {
        const uint32_t row = g->list[i];
        if (tree_goes_left(n, bin[row]))
            g->list[left++] = row;
        else
            g->spare[right++] = row;
    }
    memcpy(g->list + left, g->spare, right * sizeof *g->list);
    return left;
}

static void tree_leaf(tree_grow *g, pith__tree_node *n, double *scores) {
    double slope = 0, curve = 0;
    for (size_t i = g->begin; i < g->end; i++) {
        slope += g->slopes[g->list[i]];
        curve += g->curves[g->list[i]];
    }
    n->feature = -1;
    n->value = -TREE_RATE * slope / (curve + TREE_LAMBDA);
    for (size_t i = g->begin; i < g->end; i++) scores[g->list[i]] += n->value;
}

/* Grows a node and its subtrees. Children of node n are 2n + 1 and 2n + 2. Nodes with few rows are
 * searched by one thread: starting others would take longer. */
static void tree_node_grow(tree_grow *g, pith__tree_node *tree, double *scores, int node, int level,
                           size_t begin, size_t end) {
    int best = 0;
    g->begin = begin;
    g->end = end;
    if (level == g->depth || end - begin < 2 * TREE_LEAST || !g->data->features) {
        tree_leaf(g, &tree[node], scores);
        return;
    }
    pith__threads_run_until(g->work->stop, tree_search, g, (size_t)g->data->features,
                            end - begin < 500 ? 1 : g->threads);
    if (pith__stop_asked(g->work->stop)) return;
    for (int f = 1; f < g->data->features; f++)
        if (g->splits[f].gain > g->splits[best].gain) best = f;
    if (g->splits[best].gain <= 0) {
        tree_leaf(g, &tree[node], scores);
        return;
    }
    tree[node].feature = best;
    memcpy(tree[node].left, g->splits[best].left, sizeof tree[node].left);
    const size_t middle = tree_part(g, &tree[node], begin, end);
    tree_node_grow(g, tree, scores, 2 * node + 1, level + 1, begin, middle);
    tree_node_grow(g, tree, scores, 2 * node + 2, level + 1, middle, end);
}

/* ---- the forest ---- */

static double tree_answer(const pith__tree_node *tree, uint8_t *const *columns, const uint8_t *bins,
                          size_t row) {
    int node = 0;
    while (tree[node].feature >= 0) {
        const int f = tree[node].feature;
        const uint8_t bin = bins ? bins[f] : columns[f][row];
        node = 2 * node + (tree_goes_left(&tree[node], bin) ? 1 : 2);
    }
    return tree[node].value;
}

/* Lists the rows that the trees of a round see. Returns how many. */
static size_t forest_draw(tree_grow *g, int round) {
    const size_t all = g->data->train;
    uint64_t state = pith__random_state(4, (uint64_t)round, 0, 0);
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        g->seen[i] =
            all <= TREES_ROWS || pith__random_next(&state) % (all - i) < TREES_ROWS - count;
        if (g->seen[i]) g->list[count++] = (uint32_t)i;
    }
    return count;
}

static void forest_round(tree_grow *g, pith__tree_node (*trees)[PITH_TREE_NODES], int round) {
    const pith__forest_data *d = g->data;
    double *before = g->scores;
    for (int o = 0; o < d->outputs; o++) {
        double *scores = before + (size_t)o * g->all;
        tree_slopes(g, o);
        tree_node_grow(g, trees[o], scores, 0, 0, 0, forest_draw(g, round));
        for (size_t i = 0; i < g->all; i++) {
            if (pith__row_stops(g->work->stop, i)) return;
            if (i >= d->train || !g->seen[i]) scores[i] += tree_answer(trees[o], d->bins, NULL, i);
        }
        pith__work_tell(g->work, "trees", ++g->grown, g->most);
    }
}

static double forest_validation(const tree_grow *g) {
    const pith__forest_data *d = g->data;
    double sum = 0;
    for (size_t i = d->train; i < g->all; i++) {
        if (pith__row_stops(g->work->stop, i)) return INFINITY;
        sum += tree_loss(d->loss, d->outputs, g->scores + i, g->all, d->truths[i]);
    }
    return d->validation ? sum / (double)d->validation : INFINITY;
}

/* Rounds of a forest at most. */
static int forest_most(const pith__forest_data *d) {
    if (!d->validation) return TREES_ALONE;
    return d->outputs > 1 ? TREES_CLASSES : TREES_MOST;
}

/* False if the call must end. */
static bool forest_depth(pith__forest *forest, tree_grow *g) {
    const pith__forest_data *d = g->data;
    const int most = forest_most(d);
    for (int o = 0; o < d->outputs; o++)
        for (size_t i = 0; i < g->all; i++) g->scores[(size_t)o * g->all + i] = d->start[o];
    forest->depth = g->depth;
    forest->outputs = d->outputs;
    forest->loss = forest_validation(g);
    forest->rounds = 0;
    for (int r = 0; r < most && (!d->validation || r < forest->rounds + TREES_PATIENCE); r++) {
        forest_round(g, forest->trees + (size_t)r * (size_t)d->outputs, r);
        const double loss = forest_validation(g);
        if (pith__stop_asked(g->work->stop)) return false;
        if (d->validation && !(loss < forest->loss)) continue;
        forest->loss = loss;
        forest->rounds = r + 1;
    }
    return true;
}

/* Tries several depths and keeps the forest with the least validation loss. With several classes
 * one depth is tried. */
bool pith__forest_grow(pith__forest *forest, const pith__forest_data *d, int threads,
                       const pith__work *work, pith__arena *arena) {
    const size_t depths = d->outputs > 1 ? 1 : sizeof tree_depths / sizeof *tree_depths;
    tree_grow g = { .data = d,
                    .work = work,
                    .arena = arena,
                    .threads = threads,
                    .most = (uint64_t)forest_most(d) * (uint64_t)d->outputs * depths,
                    .all = d->train + d->validation };
    pith__forest now = { .loss = INFINITY }, best = { .loss = INFINITY };
    const size_t trees = (size_t)TREES_MOST * (size_t)d->outputs;
    best.trees = pith__arena_array(arena, trees, sizeof *best.trees);
    const pith__arena_mark mark = pith__arena_get_mark(arena);
    now.trees = pith__arena_array(arena, trees, sizeof *now.trees);
    g.scores = pith__arena_array(arena, g.all * (size_t)d->outputs + 1, sizeof *g.scores);
    g.slopes = pith__arena_array(arena, d->train + 1, sizeof *g.slopes);
    g.curves = pith__arena_array(arena, d->train + 1, sizeof *g.curves);
    g.list = pith__arena_array(arena, d->train + 1, sizeof *g.list);
    g.spare = pith__arena_array(arena, d->train + 1, sizeof *g.spare);
    g.seen = pith__arena_array(arena, d->train + 1, sizeof *g.seen);
    g.splits = pith__arena_array(arena, (size_t)d->features + 1, sizeof *g.splits);
    if (!best.trees || !now.trees || !g.scores || !g.slopes || !g.curves || !g.list || !g.spare ||
        !g.seen || !g.splits)
        return false;
    for (size_t i = 0; i < depths; i++) {
        g.depth = tree_depths[d->outputs > 1 ? 1 : i];
        if (!forest_depth(&now, &g)) return false;
        if (i && !(now.loss < best.loss)) continue;
        pith__tree_node(*keep)[PITH_TREE_NODES] = best.trees;
        memcpy(keep, now.trees, (size_t)now.rounds * (size_t)d->outputs * sizeof *keep);
        best = now;
        best.trees = keep;
    }
    pith__arena_rewind(arena, mark);
    *forest = best;
    return true;
}

void pith__forest_answer(double *answers, const pith__forest *f, const uint8_t *bins) {
    for (int r = 0; r < f->rounds; r++)
        for (int o = 0; o < f->outputs; o++)
            answers[o] +=
                tree_answer(f->trees[(size_t)r * (size_t)f->outputs + (size_t)o], NULL, bins, 0);
}
