/* tensor_view.c - see tensor_view.h. Each operator rewrites the list of atoms; sizes are compared symbolically. */
#include "engine/opt/tensor_view.h"

#include "engine/opt/match_nodes.h"

static bool push(pith_view *v, pith_view_atom atom) {
    if (v->count == PITH_VIEW_ATOMS) return false;
    v->atoms[v->count++] = atom;
    return true;
}

void pith_view_init(pith_view *view, const pith_type *root) {
    *view = (pith_view){ .rank = root->rank };
    for (int i = 0; i < root->rank; i++) {
        if (root->dims[i] != 1) push(view, (pith_view_atom){ root->dims[i], 1, i, i });
    }
}

/* Distributes the atoms over the axes of another shape: whole ones, several to one axis, or a part of one. */
static bool regroup(pith_view *v, const pith_type *shape, pith_dims *dims) {
    pith_view r = *v;
    r.rank = shape->rank;
    r.count = 0;
    int next = 0;
    pith_view_atom rest = { .size = 1 };
    for (int axis = 0; axis < shape->rank; axis++) {
        pith_dim need = shape->dims[axis];
        while (need != 1) {
            if (rest.size == 1) {
                if (next == v->count) return false;
                rest = v->atoms[next++];
            }
            pith_view_atom atom = rest;
            atom.of = axis;
            if (pith_dim_known(need) && pith_dim_known(rest.size) && rest.size > need) {
                if (need < 1 || rest.size % need) return false;
                atom.size = need;
                rest.size /= need;
                atom.stride = rest.stride * rest.size;
            } else {
                rest.size = 1;
            }
            pith_dim left = pith_dim_apply(dims, PITH_DIM_FLOOR_DIV, need, atom.size);
            if (!pith_dim_equal(pith_dim_apply(dims, PITH_DIM_MUL, left, atom.size), need)) return false;
            need = left;
            if (!push(&r, atom)) return false;
        }
    }
    if (rest.size != 1 || next != v->count) return false;
    *v = r;
    return true;
}

static bool permute(pith_view *v, const pith_node *node) {
    size_t count;
    const int64_t *perm = pith_node_ints(node, "perm", &count);
    pith_view r = *v;
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
static bool view_expand(pith_view *v, const pith_type *out) {
    pith_view r = *v;
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
        if (!present && out->dims[axis] != 1 && !push(&r, (pith_view_atom){ out->dims[axis], 0, -1, axis }))
            return false;
    }
    *v = r;
    return true;
}

/* Keeps size elements of an axis that is one atom: begin, begin + step, … */
static bool narrow(pith_view *v, int axis, int64_t begin, int64_t step, pith_dim size) {
    int found = -1;
    for (int i = 0; i < v->count; i++) {
        if (v->atoms[i].of != axis) continue;
        if (found >= 0) return false;
        found = i;
    }
    if (found < 0) return begin == 0;
    pith_view_atom *atom = &v->atoms[found];
    if (pith_dim_equal(atom->size, size)) return begin == 0;
    if (!pith_dim_known(atom->size) || !pith_dim_known(size) || begin < 0 || begin >= atom->size || size < 1 ||
        size - 1 > (atom->size - 1 - begin) / step)
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

static bool view_slice(pith_view *v, const pith_node *node, const pith_value *output) {
    int64_t starts[PITH_MAX_RANK], axes[PITH_MAX_RANK], steps[PITH_MAX_RANK], n, m;
    const pith_type *in = &node->inputs[0]->type;
    if (!pith_match_ints(node->inputs[1], starts, PITH_MAX_RANK, &n)) return false;
    for (int64_t i = 0; i < n; i++) axes[i] = i, steps[i] = 1;
    if (pith_match_input(node, 3) && (!pith_match_ints(node->inputs[3], axes, PITH_MAX_RANK, &m) || m != n))
        return false;
    if (pith_match_input(node, 4) && (!pith_match_ints(node->inputs[4], steps, PITH_MAX_RANK, &m) || m != n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int axis = (int)(axes[i] < 0 ? axes[i] + in->rank : axes[i]);
        if (steps[i] < 1 || axis < 0 || axis >= in->rank) return false;
        int64_t start = starts[i];
        if (start < 0) {
            if (!pith_dim_known(in->dims[axis])) return false;
            start += in->dims[axis];
        }
        if (!narrow(v, axis, start, steps[i], output->type.dims[axis])) return false;
    }
    return true;
}

static bool view_split(pith_view *v, const pith_node *node, const pith_value *output) {
    int64_t axis = pith_node_int(node, "axis", 0), begin = 0;
    if (axis < 0) axis += output->type.rank;
    if (axis < 0 || axis >= output->type.rank) return false;
    for (int i = 0; i < node->output_count && node->outputs[i] != output; i++) {
        if (!node->outputs[i] || !pith_dim_known(node->outputs[i]->type.dims[axis])) return false;
        begin += node->outputs[i]->type.dims[axis];
    }
    return narrow(v, (int)axis, begin, 1, output->type.dims[axis]);
}

static bool view_take(pith_view *v, const pith_node *node) {
    int64_t index, count, axis = pith_node_int(node, "axis", 0);
    int rank = node->inputs[0]->type.rank;
    if (node->inputs[1]->type.rank != 0 || !pith_match_ints(node->inputs[1], &index, 1, &count)) return false;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    if (index < 0 && pith_dim_known(node->inputs[0]->type.dims[axis])) index += node->inputs[0]->type.dims[axis];
    if (!narrow(v, (int)axis, index, 1, 1)) return false;
    for (int i = 0; i < v->count; i++) {
        if (v->atoms[i].of > axis) v->atoms[i].of--;
    }
    v->rank--;
    return true;
}

bool pith_view_moves(const pith_node *node) {
    static const char *const names[] = { "Expand", "Flatten", "Gather",    "Reshape",  "Slice",
                                         "Split",  "Squeeze", "Transpose", "Unsqueeze" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (pith_match_is(node, names[i])) return true;
    }
    return false;
}

bool pith_view_apply(pith_view *view, const pith_node *node, const pith_value *output) {
    const pith_type *out = &output->type;
    if (out->rank < 0 || view->rank != node->inputs[0]->type.rank) return false;
    if (pith_match_is(node, "Transpose")) return permute(view, node);
    if (pith_match_is(node, "Expand")) return view_expand(view, out);
    if (pith_match_is(node, "Slice")) return view_slice(view, node, output);
    if (pith_match_is(node, "Split")) return view_split(view, node, output);
    if (pith_match_is(node, "Gather")) return view_take(view, node);
    return pith_view_moves(node) && regroup(view, out, node->graph->dims);
}
