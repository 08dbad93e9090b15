/* tensor_view.c - see tensor_view.h. Each operator rewrites the list of atoms; sizes are compared
 * symbolically. */
#include "engine/opt/tensor_view.h"

#include "engine/opt/match_nodes.h"

static bool push(pith__view *v, pith__view_atom atom) {
    if (v->count == PITH_VIEW_ATOMS) return false;
    v->atoms[v->count++] = atom;
    return true;
}

void pith__view_init(pith__view *view, const pith__type *root) {
    *view = (pith__view){ .rank = root->rank };
    for (int i = 0; i < root->rank; i++) {
        if (root->dims[i] != 1) push(view, (pith__view_atom){ root->dims[i], 1, i, i });
    }
}

/* Distributes the atoms over the axes of another shape, from left to right: an axis takes whole
 * atoms while their sizes divide what it still needs, or the front part of one, whose rest then
 * begins the next axis. A Reshape keeps the order of elements, so this is all it can do to a list
 * of atoms. It fails if a cut does not fall between elements of an atom, or if a division is not
 * known to be exact for symbolic sizes. */
static bool regroup(pith__view *v, const pith__type *shape, pith__dims *dims) {
    pith__view r = *v;
    r.rank = shape->rank;
    r.count = 0;
    int next = 0;
    pith__view_atom rest = { .size = 1 };
    for (int axis = 0; axis < shape->rank; axis++) {
        pith__dim need = shape->dims[axis];
        while (need != 1) {
            if (rest.size == 1) {
                if (next == v->count) return false;
                rest = v->atoms[next++];
            }
            pith__view_atom atom = rest;
            atom.of = axis;
            if (pith__dim_known(need) && pith__dim_known(rest.size) && rest.size > need) {
                if (need < 1 || rest.size % need) return false;
                atom.size = need;
                rest.size /= need;
                atom.stride = rest.stride * rest.size;
            } else {
                rest.size = 1;
            }
            pith__dim left = pith__dim_apply(dims, PITH_DIM_FLOOR_DIV, need, atom.size);
            if (!pith__dim_equal(pith__dim_apply(dims, PITH_DIM_MUL, left, atom.size), need))
                return false;
            need = left;
            if (!push(&r, atom)) return false;
        }
    }
    if (rest.size != 1 || next != v->count) return false;
    *v = r;
    return true;
}

/* Atoms go with their axis. Without perm the axes are reversed. */
static bool permute(pith__view *v, const pith__node *node) {
    size_t count;
    const int64_t *perm = pith__node_ints(node, "perm", &count);
    pith__view r = *v;
    r.count = 0;
    if (perm && count != (size_t)v->rank) return false;
    for (int axis = 0; axis < v->rank; axis++) {
        int64_t from = perm ? perm[axis] : v->rank - 1 - axis;
        for (int i = 0; i < v->count; i++) {
            if (v->atoms[i].of != from) continue;
            r.atoms[r.count] = v->atoms[i];
            r.atoms[r.count++].of = axis;
        }
    }
    *v = r;
    return true;
}

/* Axes of size 1, or new in front, are repeated. */
static bool view_expand(pith__view *v, const pith__type *out) {
    pith__view r = *v;
    int lead = out->rank - v->rank;
    if (lead < 0) return false;
    r.rank = out->rank;
    r.count = 0;
    for (int axis = 0; axis < out->rank; axis++) {
        bool present = false;
        for (int i = 0; i < v->count; i++) {
            if (v->atoms[i].of != axis - lead) continue;
            present = true;
            r.atoms[r.count] = v->atoms[i];
            r.atoms[r.count++].of = axis;
        }
        if (!present && out->dims[axis] != 1 &&
            !push(&r, (pith__view_atom){ out->dims[axis], 0, -1, axis }))
            return false;
    }
    *v = r;
    return true;
}

/* Keeps size elements of an axis that is one atom: begin, begin + step, …. An axis of several atoms
 * is refused, since what is left of it need not be a product of atoms. An atom of size 1 is
 * dropped, as axes of size 1 have none. */
static bool narrow(pith__view *v, int axis, int64_t begin, int64_t step, pith__dim size) {
    int found = -1;
    for (int i = 0; i < v->count; i++) {
        if (v->atoms[i].of != axis) continue;
        if (found >= 0) return false;
        found = i;
    }
    if (found < 0) return begin == 0;
    pith__view_atom *atom = &v->atoms[found];
    if (pith__dim_equal(atom->size, size)) return begin == 0;
    if (!pith__dim_known(atom->size) || !pith__dim_known(size) || begin < 0 ||
        begin >= atom->size || size < 1 || size - 1 > (atom->size - 1 - begin) / step)
        return false;
    if (atom->axis >= 0) v->offset[atom->axis] += begin * atom->stride;
    atom->size = size;
    atom->stride *= step;
    if (size == 1) {
        for (int i = found; i + 1 < v->count; i++) v->atoms[i] = v->atoms[i + 1];
        v->count--;
    }
    return true;
}

/* Starts, axes and steps must be known, and steps go upwards. Ends are not looked at: the output's
 * size, which inference has found, says how many there are. */
static bool view_slice(pith__view *v, const pith__node *node, const pith__value *output) {
    int64_t starts[PITH_MAX_RANK], axes[PITH_MAX_RANK], steps[PITH_MAX_RANK], n, m;
    const pith__type *in = &node->inputs[0]->type;
    if (!pith__match_ints(node->inputs[1], starts, PITH_MAX_RANK, &n)) return false;
    for (int64_t i = 0; i < n; i++) axes[i] = i, steps[i] = 1;
    if (pith__match_input(node, 3) &&
        (!pith__match_ints(node->inputs[3], axes, PITH_MAX_RANK, &m) || m != n))
        return false;
    if (pith__match_input(node, 4) &&
        (!pith__match_ints(node->inputs[4], steps, PITH_MAX_RANK, &m) || m != n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int axis = (int)(axes[i] < 0 ? axes[i] + in->rank : axes[i]);
        if (steps[i] < 1 || axis < 0 || axis >= in->rank) return false;
        int64_t start = starts[i];
        if (start < 0) {
            if (!pith__dim_known(in->dims[axis])) return false;
            start += in->dims[axis];
        }
        if (!narrow(v, axis, start, steps[i], output->type.dims[axis])) return false;
    }
    return true;
}

static bool view_split(pith__view *v, const pith__node *node, const pith__value *output) {
    int64_t axis = pith__node_int(node, "axis", 0), begin = 0;
    if (axis < 0) axis += output->type.rank;
    if (axis < 0 || axis >= output->type.rank) return false;
    for (int i = 0; i < node->output_count && node->outputs[i] != output; i++) {
        if (!node->outputs[i] || !pith__dim_known(node->outputs[i]->type.dims[axis])) return false;
        begin += node->outputs[i]->type.dims[axis];
    }
    return narrow(v, (int)axis, begin, 1, output->type.dims[axis]);
}

/* Gather by one index: a slice of one element, whose axis then goes. */
static bool view_take(pith__view *v, const pith__node *node) {
    int64_t index, count, axis = pith__node_int(node, "axis", 0);
    int rank = node->inputs[0]->type.rank;
    if (node->inputs[1]->type.rank != 0 || !pith__match_ints(node->inputs[1], &index, 1, &count))
        return false;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    if (index < 0 && pith__dim_known(node->inputs[0]->type.dims[axis]))
        index += node->inputs[0]->type.dims[axis];
    if (!narrow(v, (int)axis, index, 1, 1)) return false;
    for (int i = 0; i < v->count; i++) {
        if (v->atoms[i].of > axis) v->atoms[i].of--;
    }
    v->rank--;
    return true;
}

bool pith__view_moves(const pith__node *node) {
    static const char *const names[] = { "Expand", "Flatten", "Gather",    "Reshape",  "Slice",
                                         "Split",  "Squeeze", "Transpose", "Unsqueeze" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (pith__match_is(node, names[i])) return true;
    }
    return false;
}

bool pith__view_apply(pith__view *view, const pith__node *node, const pith__value *output) {
    const pith__type *out = &output->type;
    if (out->rank < 0 || view->rank != node->inputs[0]->type.rank) return false;
    if (pith__match_is(node, "Transpose")) return permute(view, node);
    if (pith__match_is(node, "Expand")) return view_expand(view, out);
    if (pith__match_is(node, "Slice")) return view_slice(view, node, output);
    if (pith__match_is(node, "Split")) return view_split(view, node, output);
    if (pith__match_is(node, "Gather")) return view_take(view, node);
    return pith__view_moves(node) && regroup(view, out, node->graph->dims);
}
