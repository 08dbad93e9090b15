/* op_ml_tree_ensemble.c - TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier of
 * ai.onnx.ml.
 *
 * The two older forms name nodes by (tree, node) and say BRANCH_* or LEAF per node. prepare brings
 * all three forms to one list of nodes and one of leaves. A walk follows at most as many edges as
 * there are nodes, so a cycle in a hostile file is an error, not a hang. Source: ONNX operators of
 * these names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "engine/ops/shared/ml_scores.h"

typedef enum mode { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } mode;
typedef enum aggregate { AVERAGE, SUM, MIN, MAX } aggregate;
typedef struct node {
    mode mode;
    bool missing_is_true;
    int64_t feature;
    double split;
    int64_t next[2];             /* false, true; < 0: leaf ~next */
    int64_t members, member_end; /* of MEMBER, into members */
} node;

typedef struct leaf {
    int64_t target, next; /* further leaves of the same place, -1: none */
    double weight;
} leaf;

typedef struct ensemble {
    node *nodes;
    leaf *leaves;
    int64_t *roots; /* as next */
    double *members;
    int64_t node_count, leaf_count, root_count, targets;
    double *base; /* added to the scores */
    size_t base_count;
    aggregate aggregate;
    pith__post post;
    /* classifier */
    const int64_t *int_labels;
    const pith_str *string_labels;
    size_t label_count;
    bool binary;   /* two labels scored by one target */
    bool positive; /* no weight is negative: a binary score is a probability */
} ensemble;

/* ---- reading ---- */

static pith_status tree_bad(pith__prepare *c, const char *what, int64_t index) {
    return pith__fail(c->err, PITH_ERR_ARGUMENT, "%s[%lld] is out of range", what,
                      (long long)index);
}

/* A list attribute that must have `count` entries; NULL if absent. */
static pith_status tree_ints(pith__prepare *c, const char *name, size_t count,
                             const int64_t **out) {
    size_t n;
    *out = pith__node_ints(c->node, name, &n);
    if (*out && n != count)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "%s has %zu entries, not %zu", name, n, count);
    return PITH_OK;
}

/* One more of each than asked for, because an allocation of 0 may be NULL. */
static pith_status tree_allocate(pith__prepare *c, ensemble *e, size_t nodes, size_t leaves,
                                 size_t roots, size_t members) {
    e->nodes = pith__arena_array(c->arena, nodes + 1, sizeof *e->nodes);
    e->leaves = pith__arena_array(c->arena, leaves + 1, sizeof *e->leaves);
    e->roots = pith__arena_array(c->arena, roots + 1, sizeof *e->roots);
    e->members = pith__arena_array(c->arena, members + 1, sizeof *e->members);
    if (!e->nodes || !e->leaves || !e->roots || !e->members)
        return pith__fail_memory(c->err, nodes * sizeof *e->nodes);
    e->node_count = (int64_t)nodes;
    e->leaf_count = (int64_t)leaves;
    e->root_count = (int64_t)roots;
    return PITH_OK;
}

/* The lists of TreeEnsemble, opset 5. */
typedef struct tree_lists {
    size_t nodes, leaves, roots;
    const int64_t *features, *on_true, *on_false, *true_leafs, *false_leafs, *missing, *targets,
        *root;
    const pith_tensor *modes, *splits, *weights, *members;
} tree_lists;

/* The lists of TreeEnsemble, all of the length of the first one. */
static pith_status tree_read_lists(pith__prepare *c, tree_lists *l) {
    l->features = pith__node_ints(c->node, "nodes_featureids", &l->nodes);
    l->targets = pith__node_ints(c->node, "leaf_targetids", &l->leaves);
    l->root = pith__node_ints(c->node, "tree_roots", &l->roots);
    l->modes = pith__node_tensor(c->node, "nodes_modes");
    l->splits = pith__node_tensor(c->node, "nodes_splits");
    l->weights = pith__node_tensor(c->node, "leaf_weights");
    l->members = pith__node_tensor(c->node, "membership_values");
    PITH_TRY(tree_ints(c, "nodes_truenodeids", l->nodes, &l->on_true));
    PITH_TRY(tree_ints(c, "nodes_falsenodeids", l->nodes, &l->on_false));
    PITH_TRY(tree_ints(c, "nodes_trueleafs", l->nodes, &l->true_leafs));
    PITH_TRY(tree_ints(c, "nodes_falseleafs", l->nodes, &l->false_leafs));
    PITH_TRY(tree_ints(c, "nodes_missing_value_tracks_true", l->nodes, &l->missing));
    bool whole = l->features && l->on_true && l->on_false && l->true_leafs && l->false_leafs &&
                 l->targets && l->root && l->modes && l->splits && l->weights;
    if (!whole || l->modes->dtype != PITH_U8 || pith__tensor_count(l->modes) != (int64_t)l->nodes ||
        pith__tensor_count(l->splits) != (int64_t)l->nodes ||
        pith__tensor_count(l->weights) != (int64_t)l->leaves)
        return pith__fail(c->err, PITH_ERR_ARGUMENT,
                          "the lists of nodes and leaves are incomplete or do not fit");
    return PITH_OK;
}

/* members: how many; those of a node end at a NaN. */
static pith_status tree_read_nodes(pith__prepare *c, ensemble *e, const tree_lists *l,
                                   int64_t members) {
    int64_t n = (int64_t)l->nodes, leaves = (int64_t)l->leaves, at = 0;
    for (int64_t i = 0; i < n; i++) {
        node *v = &e->nodes[i];
        int64_t on_true = l->on_true[i], on_false = l->on_false[i];
        if (on_true < 0 || on_true >= (l->true_leafs[i] ? leaves : n))
            return tree_bad(c, "nodes_truenodeids", i);
        if (on_false < 0 || on_false >= (l->false_leafs[i] ? leaves : n))
            return tree_bad(c, "nodes_falsenodeids", i);
        int m = ((const uint8_t *)l->modes->data)[i];
        if (m > MEMBER) return tree_bad(c, "nodes_modes", i);
        *v = (node){ .mode = (mode)m,
                     .feature = l->features[i],
                     .split = pith__wide_get(l->splits, i),
                     .missing_is_true = l->missing && l->missing[i],
                     .members = at,
                     .next = { l->false_leafs[i] ? ~on_false : on_false,
                               l->true_leafs[i] ? ~on_true : on_true } };
        if (m != MEMBER) continue;
        while (at < members && !isnan(e->members[at])) at++;
        v->member_end = at;
        at++;
    }
    return PITH_OK;
}

/* Everything that a walk uses as an index is checked here, except features, which depend on the
 * input. */
static pith_status tree_prepare_trees(pith__prepare *c) {
    tree_lists l;
    ensemble *e = pith__arena_array(c->arena, 1, sizeof *e);
    if (!e) return pith__fail_memory(c->err, sizeof *e);
    c->state = e;
    PITH_TRY(tree_read_lists(c, &l));
    int64_t members = l.members ? pith__tensor_count(l.members) : 0;
    PITH_TRY(tree_allocate(c, e, l.nodes, l.leaves, l.roots, (size_t)members));
    e->targets = pith__node_int(c->node, "n_targets", 1);
    e->aggregate = (aggregate)pith__node_int(c->node, "aggregate_function", SUM);
    e->post = (pith__post)pith__node_int(c->node, "post_transform", PITH_POST_NONE);
    if (e->targets < 1 || e->targets > INT32_MAX || (unsigned)e->aggregate > MAX ||
        (unsigned)e->post > PITH_POST_PROBIT)
        return pith__fail(c->err, PITH_ERR_ARGUMENT,
                          "n_targets, aggregate_function or post_transform is out of range");
    for (int64_t i = 0; i < members; i++) e->members[i] = pith__wide_get(l.members, i);
    PITH_TRY(tree_read_nodes(c, e, &l, members));
    for (size_t i = 0; i < l.leaves; i++) {
        if (l.targets[i] < 0 || l.targets[i] >= e->targets)
            return tree_bad(c, "leaf_targetids", (int64_t)i);
        e->leaves[i] = (leaf){ l.targets[i], -1, pith__wide_get(l.weights, (int64_t)i) };
    }
    for (size_t i = 0; i < l.roots; i++) {
        if (l.root[i] < 0 || l.root[i] >= (int64_t)l.nodes)
            return tree_bad(c, "tree_roots", (int64_t)i);
        e->roots[i] = l.root[i];
    }
    return PITH_OK;
}

/* Where a node of the older spelling stands, sorted by tree and number. */
typedef struct tree_place {
    int64_t tree, id, at;
} tree_place;

static int tree_place_order(const void *a, const void *b) {
    const tree_place *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The place of node `id` of a tree in the file's lists, or -1. */
static int64_t tree_place_find(const tree_place *places, size_t count, int64_t tree, int64_t id) {
    const tree_place key = { tree, id, 0 };
    const tree_place *found = bsearch(&key, places, count, sizeof *places, tree_place_order);
    return found ? found->at : -1;
}

static pith_status tree_read_mode(pith__prepare *c, pith_str name, mode *m) {
    static const char *const names[] = { "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF" };
    for (int i = 0; i <= LEAF; i++)
        if (i != MEMBER && pith__str_is(name, names[i])) return *m = (mode)i, PITH_OK;
    return pith__fail(c->err, PITH_ERR_ARGUMENT, "mode '" PITH_STR_FMT "' is unknown",
                      PITH_STR_ARG(name));
}

/* The value list under its float name or, from opset 3, as a tensor. */
static pith_status tree_values(pith__prepare *c, const char *name, const char *tensor_name,
                               double **out, size_t *count) {
    const float *f = pith__node_floats(c->node, name, count);
    const pith_tensor *t = pith__node_tensor(c->node, tensor_name);
    if (t) *count = (size_t)pith__tensor_count(t);
    *out = pith__arena_array(c->arena, *count + 1, sizeof **out);
    if (!*out) return pith__fail_memory(c->err, *count * sizeof **out);
    for (size_t i = 0; i < *count; i++) (*out)[i] = t ? pith__wide_get(t, (int64_t)i) : f[i];
    return PITH_OK;
}

static pith_status tree_values_of(pith__prepare *c, const char *name, const char *tensor_name,
                                  size_t count, double **out) {
    size_t n;
    PITH_TRY(tree_values(c, name, tensor_name, out, &n));
    if (n != count)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "%s has %zu entries, not %zu", name, n, count);
    return PITH_OK;
}

/* The lists of the older spellings; those of leaves begin with "class" or "target". */
typedef struct old_lists {
    size_t nodes, leaves;
    const int64_t *trees, *ids, *features, *on_true, *on_false, *missing, *leaf_trees, *leaf_nodes,
        *leaf_targets;
    const pith_str *modes;
    double *splits, *weights;
    tree_place *places; /* one per node, sorted */
} old_lists;

/* Sorted by (tree, node), in which children are then looked up by bisection. */
static pith_status tree_old_read_places(pith__prepare *c, old_lists *l) {
    l->places = pith__arena_array(c->arena, l->nodes + 1, sizeof *l->places);
    if (!l->places) return pith__fail_memory(c->err, l->nodes * sizeof *l->places);
    for (size_t i = 0; i < l->nodes; i++)
        l->places[i] = (tree_place){ l->trees[i], l->ids[i], (int64_t)i };
    qsort(l->places, l->nodes, sizeof *l->places, tree_place_order);
    for (size_t i = 1; i < l->nodes; i++)
        if (!tree_place_order(&l->places[i - 1], &l->places[i]))
            return pith__fail(c->err, PITH_ERR_ARGUMENT,
                              "nodes_nodeids: node %lld of tree %lld is there twice",
                              (long long)l->places[i].id, (long long)l->places[i].tree);
    return PITH_OK;
}

/* The lists of the older forms; a classifier's leaves have names of their own. */
static pith_status tree_old_read_lists(pith__prepare *c, old_lists *l, bool classifier) {
    size_t strings;
    l->trees = pith__node_ints(c->node, "nodes_treeids", &l->nodes);
    l->modes = pith__node_strs(c->node, "nodes_modes", &strings);
    PITH_TRY(tree_ints(c, "nodes_nodeids", l->nodes, &l->ids));
    PITH_TRY(tree_ints(c, "nodes_featureids", l->nodes, &l->features));
    PITH_TRY(tree_ints(c, "nodes_truenodeids", l->nodes, &l->on_true));
    PITH_TRY(tree_ints(c, "nodes_falsenodeids", l->nodes, &l->on_false));
    PITH_TRY(tree_ints(c, "nodes_missing_value_tracks_true", l->nodes, &l->missing));
    l->leaf_trees =
        pith__node_ints(c->node, classifier ? "class_treeids" : "target_treeids", &l->leaves);
    PITH_TRY(
        tree_ints(c, classifier ? "class_nodeids" : "target_nodeids", l->leaves, &l->leaf_nodes));
    PITH_TRY(tree_ints(c, classifier ? "class_ids" : "target_ids", l->leaves, &l->leaf_targets));
    if (!l->trees || !l->ids || !l->features || !l->on_true || !l->on_false || !l->modes ||
        strings != l->nodes || !l->leaf_trees || !l->leaf_nodes || !l->leaf_targets)
        return pith__fail(c->err, PITH_ERR_ARGUMENT,
                          "the lists of nodes and leaves are incomplete or do not fit");
    PITH_TRY(tree_values_of(c, "nodes_values", "nodes_values_as_tensor", l->nodes, &l->splits));
    return tree_values_of(c, classifier ? "class_weights" : "target_weights",
                          classifier ? "class_weights_as_tensor" : "target_weights_as_tensor",
                          l->leaves, &l->weights);
}

/* How scores come from leaves, and how many there are. */
static pith_status tree_old_read_scores(pith__prepare *c, ensemble *e, bool classifier) {
    PITH_TRY(pith__post_read(&e->post, c->node, c->err));
    e->aggregate = SUM;
    pith_str function = pith__node_str(c->node, "aggregate_function", "SUM");
    if (pith__str_is(function, "AVERAGE")) e->aggregate = AVERAGE;
    if (pith__str_is(function, "MIN")) e->aggregate = MIN;
    if (pith__str_is(function, "MAX")) e->aggregate = MAX;
    if (classifier) {
        e->string_labels = pith__node_strs(c->node, "classlabels_strings", &e->label_count);
        if (!e->string_labels)
            e->int_labels = pith__node_ints(c->node, "classlabels_int64s", &e->label_count);
        if (!e->label_count)
            return pith__fail(c->err, PITH_ERR_ARGUMENT, "the class labels are missing");
    }
    e->targets = classifier ? (int64_t)e->label_count : pith__node_int(c->node, "n_targets", 1);
    if (e->targets < 1 || e->targets > INT32_MAX)
        return pith__fail(c->err, PITH_ERR_ARGUMENT, "n_targets is out of range");
    return tree_values(c, "base_values", "base_values_as_tensor", &e->base, &e->base_count);
}

/* leaf_at, by node: its first leaf + 1. */
static pith_status tree_old_read_leaves(pith__prepare *c, ensemble *e, const old_lists *l,
                                        bool classifier, int64_t *leaf_at) {
    bool one_target = true;
    e->positive = true;
    for (size_t i = 0; i < l->leaves; i++) {
        int64_t target = l->leaf_targets[i];
        if (target < 0 || target >= e->targets)
            return tree_bad(c, classifier ? "class_ids" : "target_ids", (int64_t)i);
        one_target &= target == l->leaf_targets[0];
        e->positive &= l->weights[i] >= 0;
        e->leaves[i] = (leaf){ target, -1, l->weights[i] };
    }
    e->binary = classifier && e->label_count == 2 && one_target;
    for (size_t i = l->leaves; i-- > 0;) {
        int64_t at = tree_place_find(l->places, l->nodes, l->leaf_trees[i], l->leaf_nodes[i]);
        if (at < 0) return tree_bad(c, classifier ? "class_nodeids" : "target_nodeids", (int64_t)i);
        e->leaves[i].next = leaf_at[at] - 1;
        leaf_at[at] = (int64_t)i + 1;
    }
    return PITH_OK;
}

/* A tree begins where the number of the tree changes. A leaf leads to itself in both directions: ~
 * of its first weight, -1 if it has none. */
static pith_status tree_old_read_nodes(pith__prepare *c, ensemble *e, const old_lists *l,
                                       const int64_t *leaf_at) {
    int64_t n = (int64_t)l->nodes;
    e->root_count = 0;
    for (int64_t i = 0; i < n; i++) {
        node *v = &e->nodes[i];
        *v = (node){ .feature = l->features[i],
                     .split = l->splits[i],
                     .missing_is_true = l->missing && l->missing[i] };
        PITH_TRY(tree_read_mode(c, l->modes[i], &v->mode));
        if (i == 0 || l->trees[i] != l->trees[i - 1]) e->roots[e->root_count++] = i;
        if (v->mode == LEAF) {
            /* -1 + 1: a leaf without weight leads to leaf -1 */
            v->next[0] = v->next[1] = ~(leaf_at[i] - 1);
            continue;
        }
        v->next[1] = tree_place_find(l->places, l->nodes, l->trees[i], l->on_true[i]);
        v->next[0] = tree_place_find(l->places, l->nodes, l->trees[i], l->on_false[i]);
        if (v->next[1] < 0) return tree_bad(c, "nodes_truenodeids", i);
        if (v->next[0] < 0) return tree_bad(c, "nodes_falsenodeids", i);
    }
    return PITH_OK;
}

/* Nodes by place, then leaves, then nodes with their children, which need both. */
static pith_status tree_prepare_old(pith__prepare *c, bool classifier) {
    old_lists l;
    ensemble *e = pith__arena_array(c->arena, 1, sizeof *e);
    if (!e) return pith__fail_memory(c->err, sizeof *e);
    c->state = e;
    PITH_TRY(tree_old_read_lists(c, &l, classifier));
    PITH_TRY(tree_old_read_places(c, &l));
    PITH_TRY(tree_allocate(c, e, l.nodes, l.leaves, l.nodes, 0));
    PITH_TRY(tree_old_read_scores(c, e, classifier));
    int64_t *leaf_at = pith__arena_array(c->arena, l.nodes + 1, sizeof *leaf_at);
    if (!leaf_at) return pith__fail_memory(c->err, l.nodes * sizeof *leaf_at);
    PITH_TRY(tree_old_read_leaves(c, e, &l, classifier, leaf_at));
    return tree_old_read_nodes(c, e, &l, leaf_at);
}

static pith_status tree_prepare_regressor(pith__prepare *c) { return tree_prepare_old(c, false); }
static pith_status tree_prepare_classifier(pith__prepare *c) { return tree_prepare_old(c, true); }

/* ---- shapes ---- */

static pith_status tree_infer_scores(pith__infer *c, pith__dim targets, int dtype, int output) {
    if (c->in[0]->rank > 2 || c->in[0]->rank == 0)
        return pith__op_fail(c, "input has %d dimensions, not 1 or 2", c->in[0]->rank);
    pith__dim dims[2] = { PITH_DIM_UNKNOWN, targets };
    if (c->in[0]->rank > 0) dims[0] = c->in[0]->rank == 2 ? c->in[0]->dims[0] : 1;
    pith__type_set(&c->out[output], dtype, 2, dims);
    return PITH_OK;
}

static pith_status tree_infer_trees(pith__infer *c) {
    return tree_infer_scores(c, pith__node_int(c->node, "n_targets", 1), c->in[0]->dtype, 0);
}
static pith_status tree_infer_regressor(pith__infer *c) {
    return tree_infer_scores(c, pith__node_int(c->node, "n_targets", 1), PITH_F32, 0);
}

static pith_status tree_infer_classifier(pith__infer *c) {
    size_t strings, numbers;
    pith__node_strs(c->node, "classlabels_strings", &strings);
    pith__node_ints(c->node, "classlabels_int64s", &numbers);
    PITH_TRY(tree_infer_scores(c, (pith__dim)(strings ? strings : numbers), PITH_F32, 1));
    pith__type_set(&c->out[0], strings ? PITH_STRING : PITH_I64, 1, c->out[1].dims);
    return PITH_OK;
}

/* ---- walking ---- */

/* NaN goes where the node says, and compares as false without that. */
static bool tree_decide(const ensemble *e, const node *v, double x) {
    if (isnan(x) && v->missing_is_true) return true;
    switch (v->mode) {
    case LEQ: return x <= v->split;
    case LT: return x < v->split;
    case GTE: return x >= v->split;
    case GT: return x > v->split;
    case EQ: return x == v->split;
    case NEQ: return x != v->split;
    case MEMBER:
        for (int64_t i = v->members; i < v->member_end; i++)
            if (e->members[i] == x) return true;
        return false;
    case LEAF: break;
    }
    return false;
}

static void tree_add(const ensemble *e, double *score, bool *set, double weight) {
    if (e->aggregate == MIN || e->aggregate == MAX) {
        bool better = !*set || (e->aggregate == MIN ? weight < *score : weight > *score);
        if (better) *score = weight;
    } else {
        *score += e->aggregate == AVERAGE ? weight / (double)e->root_count : weight;
    }
    *set = true;
}

/* next below 0 is a leaf: ~next is the first of its list of weights. */
static pith_status tree_walk(pith__run *r, const ensemble *e, int64_t root, const pith_tensor *x,
                             int64_t row, int64_t columns, double *scores, bool *set) {
    int64_t at = root;
    for (int64_t steps = 0; at >= 0; steps++) {
        const node *v = &e->nodes[at];
        if (steps) PITH_TRY(pith__run_step(r, steps));
        if (steps > e->node_count)
            return pith__fail(r->err, PITH_ERR_FORMAT, "the tree of node %lld has a cycle",
                              (long long)root);
        double value = 0;
        if (v->mode != LEAF) {
            if (v->feature < 0 || v->feature >= columns)
                return pith__fail(r->err, PITH_ERR_RUN, "feature %lld is outside of %lld columns",
                                  (long long)v->feature, (long long)columns);
            value = pith__wide_get(x, row * columns + v->feature);
        }
        at = v->next[tree_decide(e, v, value)];
    }
    for (int64_t k = ~at; k >= 0 && k < e->leaf_count; k = e->leaves[k].next)
        tree_add(e, &scores[e->leaves[k].target], &set[e->leaves[k].target], e->leaves[k].weight);
    return PITH_OK;
}

/* Base values are added after the trees. One score for two labels decides at 0, or at 0.5 if all
 * weights are positive and nothing is applied to it. */
static pith_status tree_run(pith__run *r) {
    const ensemble *e = r->state;
    const pith_tensor *x = r->in[0];
    int64_t columns = x->dims[x->rank - 1], rows = x->rank == 2 ? x->dims[0] : 1;
    double *scores = r->exec->alloc(r->exec, (size_t)e->targets * sizeof *scores);
    bool *set = r->exec->alloc(r->exec, (size_t)e->targets);
    if (!scores || !set) return pith__fail_memory(r->err, (size_t)e->targets * sizeof *scores);
    bool classifier = e->label_count > 0;
    pith_tensor *y = r->out_count > classifier ? r->out[classifier] : NULL;
    for (int64_t row = 0; row < rows; row++) {
        memset(set, 0, (size_t)e->targets);
        for (int64_t i = 0; i < e->targets; i++) scores[i] = 0;
        for (int64_t i = 0; i < e->root_count; i++) {
            PITH_TRY(pith__run_step(r, (row * e->root_count + i) * 8));
            PITH_TRY(tree_walk(r, e, e->roots[i], x, row, columns, scores, set));
        }
        int64_t best = 0, scored = e->binary && e->leaf_count ? e->leaves[0].target : 0;
        for (int64_t i = 0; i < e->targets; i++)
            if ((size_t)i < e->base_count) scores[e->base_count == 1 ? scored : i] += e->base[i];
        if (e->binary) { /* one score for two labels: the other is its complement */
            double s = scores[scored];
            bool plain = e->post == PITH_POST_NONE && e->positive;
            best = plain ? s > 0.5 : s > 0;
            scores[0] = plain ? 1 - s : -s;
            scores[1] = s;
        } else {
            for (int64_t i = 1; i < e->targets; i++)
                if (scores[i] > scores[best]) best = i;
        }
        pith__post_apply(e->post, scores, e->targets);
        if (y)
            pith__convert(y->data, y->dtype, row * e->targets, scores, PITH_F64, 0, e->targets,
                          true);
        if (!classifier || !r->out[0]) continue;
        if (e->string_labels)
            ((pith_str *)r->out[0]->data)[row] = e->string_labels[best];
        else
            ((int64_t *)r->out[0]->data)[row] = e->int_labels[best];
    }
    return PITH_OK;
}

const pith__op pith__op_ml_TreeEnsemble = {
    .domain = "ai.onnx.ml",
    .name = "TreeEnsemble",
    .since = 5,
    .newest = 5,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "f",
    .attrs = "aggregate_function int 0..3 = 1; leaf_targetids ints!; "
             "leaf_weights tensor!; membership_values tensor; n_targets int 1..; "
             "nodes_falseleafs ints! 0|1; nodes_falsenodeids ints!; "
             "nodes_featureids ints!; nodes_hitrates tensor; "
             "nodes_missing_value_tracks_true ints 0|1; nodes_modes tensor!; "
             "nodes_splits tensor!; nodes_trueleafs ints! 0|1; nodes_truenodeids ints!; "
             "post_transform int 0..4 = 0; tree_roots ints! 0..",
    .infer = tree_infer_trees,
    .prepare = tree_prepare_trees,
    .run = tree_run,
};

const pith__op pith__op_ml_TreeEnsembleClassifier = {
    .domain = "ai.onnx.ml",
    .name = "TreeEnsembleClassifier",
    .since = 1,
    .newest = 5,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 2,
    .types = "g",
    .attrs =
        "base_values floats; base_values_as_tensor tensor @3; class_ids ints; "
        "class_nodeids ints; class_treeids ints; class_weights floats; "
        "class_weights_as_tensor tensor @3; classlabels_int64s ints any; "
        "classlabels_strings strings; nodes_falsenodeids ints; "
        "nodes_featureids ints; nodes_hitrates floats; "
        "nodes_hitrates_as_tensor tensor @3; "
        "nodes_missing_value_tracks_true ints 0|1; "
        "nodes_modes strings BRANCH_LEQ|BRANCH_LT|BRANCH_GTE|BRANCH_GT|BRANCH_EQ|BRANCH_NEQ|LEAF; "
        "nodes_nodeids ints; nodes_treeids ints; nodes_truenodeids ints; "
        "nodes_values floats; nodes_values_as_tensor tensor @3; "
        "post_transform string NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT = NONE",
    .infer = tree_infer_classifier,
    .prepare = tree_prepare_classifier,
    .run = tree_run,
};

const pith__op pith__op_ml_TreeEnsembleRegressor = {
    .domain = "ai.onnx.ml",
    .name = "TreeEnsembleRegressor",
    .since = 1,
    .newest = 5,
    .min_inputs = 1,
    .max_inputs = 1,
    .max_outputs = 1,
    .types = "g",
    .attrs =
        "aggregate_function string AVERAGE|SUM|MIN|MAX = SUM; base_values floats; "
        "base_values_as_tensor tensor @3; n_targets int 1..; "
        "nodes_falsenodeids ints; nodes_featureids ints; nodes_hitrates floats; "
        "nodes_hitrates_as_tensor tensor @3; "
        "nodes_missing_value_tracks_true ints 0|1; "
        "nodes_modes strings BRANCH_LEQ|BRANCH_LT|BRANCH_GTE|BRANCH_GT|BRANCH_EQ|BRANCH_NEQ|LEAF; "
        "nodes_nodeids ints; nodes_treeids ints; nodes_truenodeids ints; "
        "nodes_values floats; nodes_values_as_tensor tensor @3; "
        "post_transform string NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT = NONE; "
        "target_ids ints; target_nodeids ints; target_treeids ints; "
        "target_weights floats; target_weights_as_tensor tensor @3",
    .infer = tree_infer_regressor,
    .prepare = tree_prepare_regressor,
    .run = tree_run,
};
