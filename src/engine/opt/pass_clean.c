/* pass_clean.c - removes nodes that do nothing: Identity, Cast to the same dtype, Dropout in
 * inference, Concat of one, and Reshape, Expand, Transpose or Slice whose output is its input.
 * Shapes are compared symbolically, so a shape computed at run time counts as the same if it must
 * be. A pith.MoveAxis becomes a Transpose. */
#include "engine/kernels/move.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

static bool same_type(const pith__node *node) {
    const pith__type *in = &node->inputs[0]->type, *out = &node->outputs[0]->type;
    return in->dtype == out->dtype && in->dtype != PITH_UNDEFINED &&
           pith__match_same_shape(in, out);
}

static bool dropout(const pith__node *node) {
    bool mask_wanted = node->output_count > 1 && node->outputs[1] &&
                       (node->outputs[1]->user_count > 0 || node->outputs[1]->output_uses > 0);
    const pith__value *training = pith__match_input(node, 2);
    return !mask_wanted && (!training || pith__match_scalar_near(training, 0.0, 0.0));
}

static bool clean_cast(const pith__node *node) {
    return node->inputs[0]->type.dtype != PITH_UNDEFINED &&
           node->inputs[0]->type.dtype == pith__node_int(node, "to", PITH_UNDEFINED);
}

static bool clean_transpose(const pith__node *node) {
    size_t count;
    const int64_t *perm = pith__node_ints(node, "perm", &count);
    if (!perm) return node->inputs[0]->type.rank == 0 || node->inputs[0]->type.rank == 1;
    for (size_t i = 0; i < count; i++) {
        if (perm[i] != (int64_t)i) return false;
    }
    return true;
}

/* Equal sizes and steps of 1 leave no room for another start. */
static bool clean_slice(const pith__node *node) {
    int64_t steps[PITH_MAX_RANK], count;
    if (!same_type(node)) return false;
    if (!pith__match_input(node, 4)) return true;
    if (!pith__match_ints(node->inputs[4], steps, PITH_MAX_RANK, &count)) return false;
    for (int64_t i = 0; i < count; i++) {
        if (steps[i] != 1) return false;
    }
    return true;
}

static bool always(const pith__node *node) {
    (void)node;
    return true;
}

static bool one_input(const pith__node *node) { return node->input_count == 1; }

static const struct {
    const char *op_type;
    bool (*does_nothing)(const pith__node *node);
} idle[] = {
    { "Cast", clean_cast },   { "Concat", one_input },  { "Dropout", dropout },
    { "Expand", same_type },  { "Flatten", same_type }, { "Identity", always },
    { "Reshape", same_type }, { "Slice", clean_slice }, { "Transpose", clean_transpose },
};

/* A pith.MoveAxis whose rank is known becomes the Transpose it is. */
static pith_status name_axes(pith__opt *o, pith__node *node, size_t *changes) {
    int rank = node->inputs[0]->type.rank, perm[PITH_MAX_RANK], from, to;
    int64_t items[PITH_MAX_RANK];
    if (rank < 0 || !pith__match_live(node)) return PITH_OK;
    PITH_TRY(pith__axis_normalize(pith__node_int(node, "from", 0), rank, &from, o->err));
    PITH_TRY(pith__axis_normalize(pith__node_int(node, "to", 0), rank, &to, o->err));
    pith__move_axis_perm(perm, rank, from, to);
    for (int i = 0; i < rank; i++) items[i] = perm[i];
    pith__node *made;
    PITH_TRY(
        pith__match_put(&made, node->outputs[0], node, "", "Transpose", node->inputs, 1, o->err));
    ++*changes;
    return pith__node_set_ints(made, "perm", items, (size_t)rank) ? pith__fail_memory(o->err, 0)
                                                                  : PITH_OK;
}

static pith_status clean_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        if (pith__match_is_own(node, "MoveAxis")) {
            PITH_TRY(name_axes(o, node, changes));
            continue;
        }
        for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++) {
            if (!pith__match_is(node, idle[i].op_type)) continue;
            pith__value *out = node->outputs[0], *in = node->inputs[0];
            bool used = out->user_count > 0 || out->output_uses > 0;
            if (used && idle[i].does_nothing(node) && pith__match_replaceable(out, in)) {
                PITH_TRY(pith__match_replace(out, in, o->err));
                ++*changes;
            }
            break;
        }
    }
    return PITH_OK;
}

const pith__pass pith__pass_clean = { "clean", 1, false, clean_run };
