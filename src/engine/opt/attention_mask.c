/* attention_mask.c - see attention_mask.h. */
#include "engine/opt/attention_mask.h"

#include <math.h>

#include "base/dtype.h"
#include "engine/opt/evaluate_node.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"

/* Nodes of a mask's subgraph, and bytes of a value in a probe: bounds for hostile files, far above
 * what exporters write. */
#define CONE_NODES_MAX 256
#define PROBE_BYTES_MAX ((size_t)64 << 20)
/* A probe must be longer than twice the largest integer of the subgraph, or it would miss a window.
 * If that integer is above DIRECT_MAX, such probes would be slow. Then it and the integers within
 * CLUSTER of it are made smaller together, by a different amount in each of SMALL_WINDOWS probes:
 * the side of a window moves by as much, or stays. Tables of more than TABLE_MAX rows are not
 * probed that way. */
#define DIRECT_MAX 256
#define CLUSTER 4
#define TABLE_MAX 2048
enum { SMALL_WINDOWS = 3 };
/* A number that is added to a score skips the key if it is at most this: 2^x is then 0 for every
 * score that models have. Exporters write -1e4 for f16 and the lowest number for f32. */
#define SKIPPED (-1e4f)

/* The nodes between the value and what it is made of. */
typedef struct cone {
    const pith__graph *graph;
    const pith__value *value;
    pith__value *input; /* the only graph input whose contents matter, or NULL */
    uint8_t *wanted;    /* by value id: a node's output inside the cone */
    bool positional;    /* positions take part */
    bool fixed;         /* a large limit is no integer: no probe can be long enough */
    int64_t largest;    /* integer constant, without sign */
    int64_t second;     /* the largest that is not within CLUSTER of it */
    int64_t table;      /* the longest axis of a constant that is no list of numbers: positions
                           after it have none */
    int nodes;
    const char *why;
} cone;

/* True for a leaf of the cone: a constant, or integers that follow from shapes. */
static bool mask_known(const pith__value *v) {
    return v->type.data ||
           (v->type.elems && pith__dtype_is_int(v->type.dtype) && pith__type_count(&v->type) >= 0);
}

/* True if each element of the result is a function of elements of the operands at known places.
 * Operators that sum or search over the mask are not: small probes would say little about long
 * masks. */
static bool maps_or_moves(const pith__node *node) {
    return node->op->flags & PITH_OP_ELEMENTWISE || pith__view_moves(node) ||
           pith__match_is(node, "Cast") || pith__match_is(node, "Concat") ||
           pith__match_is(node, "GatherND") || pith__match_is(node, "Where");
}

/* Keeps the two largest integers of the cone, which may be the sides of a window. Those within
 * CLUSTER of the largest count as the same one, since exporters write n, n - 1 and n + 1 of one
 * window. */
static void note_integer(cone *c, int64_t size) {
    if (size > c->largest) {
        if (c->largest < size - CLUSTER) c->second = c->largest;
        c->largest = size;
    } else if (size > c->second && size < c->largest - CLUSTER) {
        c->second = size;
    }
}

/* Notes what a constant says of the lengths to probe: a limit on distances, as an integer or as a
 * number in a float type, or the length of a table that holds a row per position. */
static void note_constant(cone *c, const pith__value *v) {
    pith__dim d;
    double x;
    if (pith__type_count(&v->type) > PITH_ELEMS_MAX) {
        c->positional = true;
        for (int i = 0; i < v->type.rank; i++) {
            if (pith__dim_known(v->type.dims[i]) && v->type.dims[i] > c->table)
                c->table = v->type.dims[i];
        }
    }
    /* a limit, unless it is added to scores */
    if (pith__match_scalar(v, &x) && !pith__dtype_is_int(v->type.dtype)) {
        bool limit = fabs(x) < (double)-SKIPPED;
        if (limit) note_integer(c, (int64_t)ceil(fabs(x)));
        c->fixed = c->fixed || (limit && fabs(x) > DIRECT_MAX);
    }
    if (!pith__dtype_is_int(v->type.dtype)) return;
    for (int64_t i = 0; i < pith__type_count(&v->type) && pith__type_elem(&v->type, i, &d); i++) {
        if (pith__dim_known(d) && d < INT32_MAX && -d < INT32_MAX) note_integer(c, d < 0 ? -d : d);
    }
}

/* Walks up from v and collects the nodes that compute it. It fails if they read more than one graph
 * input, a subgraph or random numbers, or if something that depends on the input's contents goes
 * through an operator that does not map or move elements. *depends: contents of a graph input reach
 * v. */
static bool mask_collect(cone *c, pith__value *v, bool *depends, int depth) {
    if (mask_known(v)) {
        note_constant(c, v);
        return true;
    }
    if (v->kind == PITH_VALUE_INPUT) {
        *depends = true;
        if (!c->input) c->input = v;
        if (c->input != v) c->why = "it depends on two inputs";
        return c->input == v;
    }
    pith__node *node = v->producer;
    if (v->kind != PITH_VALUE_NODE || node->capture_count || node->op->flags & PITH_OP_RANDOM) {
        c->why = "it depends on a subgraph or on chance";
        return false;
    }
    if (c->wanted[v->id]) {
        *depends |= c->wanted[v->id] == 2;
        return true;
    }
    if (++c->nodes > CONE_NODES_MAX || depth > CONE_NODES_MAX) {
        c->why = "too many nodes compute it";
        return false;
    }
    bool below = false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && !mask_collect(c, node->inputs[i], &below, depth + 1)) return false;
    }
    if (pith__match_is(node, "Range")) c->positional = true;
    if (below && !maps_or_moves(node)) {
        c->why = "an operator mixes elements of the mask";
        return false;
    }
    c->wanted[v->id] = below ? 2 : 1;
    *depends |= below;
    return true;
}

/* ---- computing the cone ---- */

typedef struct probe {
    const cone *cone;
    pith__arena *arena;
    int64_t batch, keys;
    uint32_t pattern;         /* chooses the mask */
    double odd;               /* not 0: every other key has this number, the rest 1 */
    const pith__dim *symbols; /* sizes by symbol */
    int64_t shift;            /* by which the largest integers are taken down */
    pith_tensor result;
    bool out_of_memory;
} probe;

/* Is key k of sequence b kept in this pattern? 0 keeps all, 1 none; 2 and 3 pad right and left;
 * then mixtures. */
static bool mask_kept(const probe *p, int64_t b, int64_t k) {
    switch (p->pattern) {
    case 0: return true;
    case 1: return false;
    case 2: return k < p->keys - 1 - b;
    case 3: return k > b;
    default:
        return (0x9E3779B9u * (uint32_t)(p->pattern * 64 + (uint32_t)b * 16 + (uint32_t)k) >> 15 &
                1) != 0;
    }
}

static void store(pith_tensor *t, int64_t i, double x) {
    switch (t->dtype) {
    case PITH_F32: ((float *)t->data)[i] = (float)x; break;
    case PITH_I64: ((int64_t *)t->data)[i] = (int64_t)x; break;
    case PITH_I32: ((int32_t *)t->data)[i] = (int32_t)x; break;
    default: ((uint8_t *)t->data)[i] = (uint8_t)x; break;
    }
}

static pith_tensor *mask_new_tensor(probe *p, int dtype, int rank, const int64_t *dims) {
    size_t bytes;
    if (!pith__dtype_bytes(dtype, pith__dims_count(dims, rank), &bytes)) return NULL;
    pith_tensor *t = pith__arena_array(p->arena, 1, sizeof *t);
    void *data = pith__arena_alloc64(p->arena, bytes);
    p->out_of_memory |= !t || !data;
    if (p->out_of_memory) return NULL;
    *t = (pith_tensor){ .data = data, .bytes = bytes, .dtype = dtype, .rank = rank };
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
    return t;
}

static int64_t shifted(const probe *p, int64_t x) {
    int64_t size = x < 0 ? -x : x;
    if (size > p->cone->largest || size < p->cone->largest - CLUSTER) return x;
    return x < 0 ? x + p->shift : x - p->shift;
}

/* Is the constant one whose integers a probe may change? */
static bool shifts(const probe *p, const pith__value *v) {
    return p->shift && (v->type.data->dtype == PITH_I64 || v->type.data->dtype == PITH_I32) &&
           pith__type_count(&v->type) <= PITH_ELEMS_MAX;
}

/* A leaf as a tensor; NULL if it cannot be made. */
static const pith_tensor *leaf(probe *p, const pith__value *v) {
    if (v->type.data && !shifts(p, v)) return v->type.data;
    if (v->kind == PITH_VALUE_INPUT) {
        pith_tensor *t = mask_new_tensor(p, v->type.dtype, 2, (int64_t[]){ p->batch, p->keys });
        if (!t) return NULL;
        for (int64_t i = 0; i < p->batch * p->keys; i++) {
            bool odd = p->odd != 0.0 && i % p->keys % 2;
            store(t, i, odd ? p->odd : (double)mask_kept(p, i / p->keys, i % p->keys));
        }
        return t;
    }
    int64_t dims[PITH_MAX_RANK], count = pith__type_count(&v->type);
    for (int i = 0; i < v->type.rank; i++) dims[i] = v->type.dims[i];
    if (v->type.dtype != PITH_I64 && v->type.dtype != PITH_I32) return NULL;
    pith_tensor *t = mask_new_tensor(p, v->type.dtype, v->type.rank, dims);
    if (!t) return NULL;
    for (int64_t i = 0; i < count; i++) {
        pith__dim d;
        if (!pith__type_elem(&v->type, i, &d)) return NULL;
        bool is_number = pith__dim_known(d);
        d = pith__dim_eval(p->cone->graph->dims, d, p->symbols);
        if (!pith__dim_known(d)) return NULL;
        store(t, i, (double)(is_number ? shifted(p, d) : d));
    }
    return t;
}

/* Runs the cone's nodes in graph order; false if one of them cannot run. */
static bool compute(probe *p) {
    const cone *c = p->cone;
    const pith_tensor **tensors =
        pith__arena_array(p->arena, c->graph->value_count, sizeof *tensors);
    p->out_of_memory = !tensors;
    if (!tensors) return false;
    for (const pith__node *node = c->graph->first; node; node = node->next) {
        bool wanted = false;
        for (int i = 0; i < node->output_count; i++)
            wanted |= node->outputs[i] && c->wanted[node->outputs[i]->id];
        if (!wanted) continue;
        const pith_tensor **in = pith__arena_array(p->arena, (size_t)node->input_count, sizeof *in);
        pith_tensor *out = pith__arena_array(p->arena, (size_t)node->output_count, sizeof *out);
        p->out_of_memory = !in || !out;
        if (p->out_of_memory) return false;
        for (int i = 0; i < node->input_count; i++) {
            const pith__value *v = node->inputs[i];
            if (!v) continue;
            if (!tensors[v->id]) tensors[v->id] = leaf(p, v);
            in[i] = tensors[v->id];
            if (!in[i]) return false;
        }
        pith_status status = pith__eval_node(out, node, in, PROBE_BYTES_MAX, p->arena, NULL);
        p->out_of_memory = status == PITH_ERR_MEMORY;
        if (status) return false;
        for (int i = 0; i < node->output_count; i++) {
            if (!node->outputs[i]) continue;
            tensors[node->outputs[i]->id] = &out[i];
            if (node->outputs[i] == c->value) {
                p->result = out[i];
                return true;
            }
        }
    }
    return false;
}

/* ---- reading the result ---- */

typedef enum verdict { SAYS_KEEP, SAYS_SKIP, SAYS_OTHER } verdict;

/* What the result has for query q and key k of sequence b; all heads agree, since only shapes [b|1,
 * 1, q|1, k] fit. */
static double mask_element(const probe *p, int64_t b, int64_t q, int64_t k) {
    const pith_tensor *t = &p->result;
    int64_t at[4] = { b, 0, q, k }, index = 0;
    for (int d = 0; d < t->rank; d++) {
        int64_t size = t->dims[d], i = at[d + 4 - t->rank];
        index = index * size + (size == 1 ? 0 : i);
    }
    return t->dtype == PITH_BOOL ? ((const uint8_t *)t->data)[index] != 0
                                 : (double)((const float *)t->data)[index];
}

static verdict says(const probe *p, pith__mask_form form, int64_t b, int64_t q, int64_t k,
                    double *x) {
    *x = mask_element(p, b, q, k);
    if (form != PITH_MASK_ADDED)
        return (*x != 0.0) == (form == PITH_MASK_KEEPS) ? SAYS_KEEP : SAYS_SKIP;
    if (*x == 0.0) return SAYS_KEEP;
    return *x <= (double)SKIPPED ? SAYS_SKIP : SAYS_OTHER;
}

static bool shape_fits(const probe *p, pith__mask_form form) {
    const pith_tensor *t = &p->result;
    int64_t want[4] = { p->batch, 1, p->keys, p->keys };
    if (t->rank < 1 || t->rank > 4 || t->dtype != (form == PITH_MASK_ADDED ? PITH_F32 : PITH_BOOL))
        return false;
    for (int d = 0; d < t->rank; d++) {
        if (t->dims[d] != 1 && t->dims[d] != want[d + 4 - t->rank]) return false;
    }
    return t->dims[t->rank - 1] == p->keys;
}

static bool mask_in_window(const pith__mask *m, int64_t q, int64_t k) {
    return (m->window_left < 0 || q - k <= m->window_left) &&
           (m->window_right < 0 || k - q <= m->window_right);
}

/* Reads the limits of the window from a probe in which no key is padded: the last query shows how
 * far back keys are kept, the first one how far ahead. A window that is wider than the probe reads
 * as no limit, hence the lengths in find_window. */
static void read_window(const probe *p, pith__mask_form form, pith__mask *m) {
    int64_t first = p->keys - 1, last = 0;
    double x;
    while (first > 0 && says(p, form, 0, p->keys - 1, first - 1, &x) == SAYS_KEEP) first--;
    while (last < p->keys - 1 && says(p, form, 0, 0, last + 1, &x) == SAYS_KEEP) last++;
    if (first > 0) m->window_left = p->keys - 1 - first;
    if (last < p->keys - 1) m->window_right = last;
}

/* Every element of the computed mask against its assumed meaning. The numbers added to skipped keys
 * are learned on the way: there is one for each reason, and a second one contradicts. */
static bool agrees(const probe *p, pith__mask_form form, pith__mask *m) {
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t q = 0; q < p->keys; q++) {
            for (int64_t k = 0; k < p->keys; k++) {
                bool padded = m->key_mask && !mask_kept(p, b, k),
                     outside = !mask_in_window(m, q, k);
                double x;
                if (says(p, form, b, q, k, &x) != (padded || outside ? SAYS_SKIP : SAYS_KEEP))
                    return false;
                if (form != PITH_MASK_ADDED || (!padded && !outside)) continue;
                float *added = &m->added[pith__mask_skip_of(padded, outside)];
                if (*added != 0.0f && *added != (float)x) return false; /* one number for all */
                *added = (float)x;
            }
        }
    }
    return true;
}

/* Sizes of the symbols in the shape of the mask (or of the value): batch and keys. */
static bool bind_symbols(const cone *c, pith__dim *symbols, int64_t batch, int64_t keys) {
    const pith__type *type = c->input ? &c->input->type : &c->value->type;
    if (c->input && (type->rank != 2 || (type->dtype != PITH_I64 && type->dtype != PITH_I32 &&
                                         type->dtype != PITH_BOOL && type->dtype != PITH_F32)))
        return false;
    for (size_t i = 0; i < pith__dims_symbol_count(c->graph->dims); i++)
        symbols[i] = PITH_DIM_UNKNOWN;
    if (type->rank < 1) return false;
    int32_t b = pith__dim_symbol_index(c->graph->dims, type->dims[0]);
    int32_t k = pith__dim_symbol_index(c->graph->dims, type->dims[type->rank - 1]);
    if (b >= 0) symbols[b] = batch;
    if (k >= 0) symbols[k] = keys;
    return k >= 0;
}

static bool computes(probe *p, pith__mask_form form, pith__dim *symbols) {
    return bind_symbols(p->cone, symbols, p->batch, p->keys) && compute(p) && shape_fits(p, form);
}

/* One probe: computes, and compares with *m; with `read`, *m's window is read from it first. */
static bool test_once(probe *p, pith__mask_form form, pith__mask *m, pith__dim *symbols,
                      bool read) {
    if (!computes(p, form, symbols)) return false;
    if (read) read_window(p, form, m);
    return agrees(p, form, m);
}

/* A probe that is long enough to show the window; then the same one with some keys padded, inside
 * and outside of it. */
static bool test_window(probe *p, pith__mask_form form, pith__mask *m, pith__dim *symbols) {
    enum { MIXED = 4 }; /* the first pattern that skips keys here and there */
    if (!test_once(p, form, m, symbols, true)) return false;
    if (!p->cone->input) return true;
    p->pattern = MIXED;
    bool yes = test_once(p, form, m, symbols, false);
    p->pattern = 0;
    return yes;
}

/* What a side of the window is, from what it was in probes with integers taken down by shift[i]. A
 * side that moved by as much as the integers did is made of the largest integer, and its true size
 * is what was seen plus the shift. One that stayed does not depend on it. Anything else has no
 * answer. */
static bool mask_resolve(int64_t *side, const int64_t *seen, const int64_t *shift) {
    bool moved = true, stayed = true;
    for (int i = 1; i < SMALL_WINDOWS; i++) {
        moved = moved && seen[i] + shift[i] == seen[0] + shift[0];
        stayed = stayed && seen[i] == seen[0];
    }
    *side = stayed ? seen[0] : seen[0] + shift[0];
    return stayed || moved;
}

/* Finds the window, where all keys are kept. The probe must be so long that a limit shows: longer
 * than twice the largest integer in the cone, and beyond the end of a table of positions, unless
 * the cone cannot be computed there. A window of thousands would need a mask with millions of
 * elements. Its integer is made small instead, by three different amounts, and the true size is
 * concluded from how the seen sides follow (mask_resolve). */
static bool find_window(probe *p, pith__mask_form form, pith__mask *m, pith__dim *symbols) {
    static const int64_t sizes[SMALL_WINDOWS] = { 8, 11, 13 };
    int64_t left[SMALL_WINDOWS], right[SMALL_WINDOWS], shift[SMALL_WINDOWS];
    const int64_t least = p->keys, largest = p->cone->largest, second = p->cone->second,
                  table = p->cone->table;
    if (table > TABLE_MAX) return false;
    p->keys = table + 1;
    if (table && !computes(p, form, symbols)) {
        p->keys = table; /* as far as it goes, or what is after the first positions goes unseen */
        return test_window(p, form, m, symbols);
    }
    if (largest <= DIRECT_MAX) {
        p->keys = 2 * largest + 3 > least ? 2 * largest + 3 : least;
        return test_window(p, form, m, symbols);
    }
    if (second > DIRECT_MAX || p->cone->fixed) return false;
    for (int i = 0; i < SMALL_WINDOWS; i++) {
        pith__mask found = *m;
        int64_t size = sizes[i] > second ? sizes[i] : second;
        shift[i] = p->shift = largest - sizes[i];
        p->keys = 2 * size + 3 > least ? 2 * size + 3 : least;
        if (!test_window(p, form, &found, symbols)) return false;
        left[i] = found.window_left;
        right[i] = found.window_right;
        memcpy(m->added, found.added, sizeof m->added);
    }
    p->shift = 0;
    return mask_resolve(&m->window_left, left, shift) &&
           mask_resolve(&m->window_right, right, shift);
}

static bool close_to(double a, double b) { return a == b || fabs(a - b) <= 1e-5 * fabs(b); }

/* Finds out what the value makes of other numbers than 0 and 1 in the key mask: whether each of
 * them keeps the key, or whether what is added is linear in it, as in (1 - mask) * -10000. Else the
 * fused step refuses such numbers at run time (PITH_MASK_BINARY). */
static int find_numbers(probe *p, pith__mask_form form, const pith__mask *m, pith__dim *symbols) {
    static const double odd[] = { 2, -1, 3, 0.5 };
    int dtype = m->key_mask->type.dtype, count = dtype == PITH_F32 ? 4 : 3;
    bool keeps = true, linear = form == PITH_MASK_ADDED;
    p->batch = 1;
    p->pattern = 0;
    if (dtype == PITH_BOOL) count = 0; /* it has no other numbers */
    for (int i = 0; i < count; i++) {
        p->odd = odd[i];
        if (!computes(p, form, symbols)) return PITH_MASK_BINARY;
        double x;
        keeps = keeps && says(p, form, 0, 1, 1, &x) == SAYS_KEEP;
        linear = linear && close_to(mask_element(p, 0, 1, 1),
                                    (1.0 - odd[i]) * (double)m->added[PITH_SKIP_PADDED]);
    }
    if (keeps) return PITH_MASK_ANY_KEEPS;
    return linear ? PITH_MASK_LINEAR : PITH_MASK_BINARY;
}

/* Computes the value for a number of masks and compares; *yes: it means *m. The sizes of batch and
 * keys differ, to tell axes apart. This is a test, not a proof: it is sound as far as the cone's
 * operators treat all places alike, which mask_collect has made sure of. */
static pith_status test_meaning(bool *yes, const cone *c, pith__mask_form form, pith__mask *m,
                                pith__arena *arena, pith_error *err) {
    enum {
        PATTERNS = 8,
        KEYS = 5,
        BATCH = 3
    }; /* masks to try; sizes that differ, to tell axes
                                                   apart */
    pith__dim *symbols =
        pith__arena_array(arena, pith__dims_symbol_count(c->graph->dims) + 1, sizeof *symbols);
    if (!symbols) return pith__fail_memory(err, 0);
    probe p = { .cone = c, .arena = arena, .batch = 1, .keys = 2 * KEYS, .symbols = symbols };
    *yes = !c->positional || find_window(&p, form, m, symbols);
    p.batch = BATCH;
    p.keys = KEYS;
    for (; *yes && p.pattern < (c->input ? PATTERNS : 1); p.pattern++)
        *yes = test_once(&p, form, m, symbols, false);
    if (*yes && m->key_mask) m->numbers = find_numbers(&p, form, m, symbols);
    return p.out_of_memory ? pith__fail_memory(err, 0) : PITH_OK;
}

pith_status pith__mask_recognize(pith__mask_kind *kind, pith__mask *mask, const char **why,
                                 const pith__value *v, pith__mask_form form, pith__opt *o) {
    pith__arena scratch;
    pith__arena_init(&scratch, o->allocator);
    cone c = { .graph = o->graph,
               .value = v,
               .why = "it means something else than skipping padded keys" };
    c.wanted = pith__arena_array(&scratch, o->graph->value_count, 1);
    if (!c.wanted) {
        pith__arena_free(&scratch);
        return pith__fail_memory(o->err, o->graph->value_count);
    }
    *mask = (pith__mask){ .window_left = -1, .window_right = -1 };
    *kind = PITH_MASK_NO;
    bool depends = false, yes = false;
    pith_status status = PITH_OK;
    if (mask_collect(&c, (pith__value *)v, &depends, 0)) {
        mask->key_mask = c.input;
        if (v->kind == PITH_VALUE_NODE && !mask_known(v))
            status = test_meaning(&yes, &c, form, mask, &scratch, o->err);
        if (!depends) *kind = PITH_MASK_CONSTANT;
        if (yes) *kind = PITH_MASK_YES;
    }
    *why = c.why;
    pith__arena_free(&scratch);
    return status;
}
