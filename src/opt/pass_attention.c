/* pass_attention.c - every spelling of scaled dot-product attention becomes pith.Attention.
 *
 *   softmax(q k^T * scale + terms) v
 * The match begins at a Softmax (or at the Attention operator of opset 23) and follows meaning: factors may be on the
 * scores or on q and k, terms may be added or chosen by Where in any order, heads may be split and joined by any chain
 * of Reshape, Transpose and the like (view.h), keys and values may be repeated over groups of heads. What the terms
 * mean mask.h finds out: a key mask and a window are attributes of the step, the rest stays an added bias.
 * The output takes the place of the value with heads joined, or is brought back to the layout that is read. */
#include <math.h>

#include "kernels/attention.h"
#include "opt/heads.h"
#include "opt/mask.h"
#include "opt/match.h"
#include "opt/view.h"

#define CHAIN_MAX 16

enum { Q, K, V };

typedef struct attention {
    pith_heads in[3];
    int64_t heads;
    double scale;
    pith_value *bias, *key_mask;
    int64_t window_left, window_right;
    bool finite, masked, zero_if_none;
    pith_node *product; /* whose output is softmax(…) v */
    const char *why;    /* for the report: what did not fit */
    struct known_masks *known;
    pith_opt *o;
} attention;

/* What values mean, so that the layers of a network ask once. */
typedef struct known_masks {
    struct {
        const pith_value *v;
        pith_mask_form form;
        pith_mask_kind kind;
        pith_mask mask;
        const char *why;
    } items[8];
    int count;
} known_masks;

/* ---- terms ---- */

static pith_status recognize(attention *m, const pith_value *v, pith_mask_form form, pith_mask_kind *kind,
                             pith_mask *mask) {
    known_masks *known = m->known;
    int i = 0;
    while (i < known->count && (known->items[i].v != v || known->items[i].form != form)) i++;
    if (i == known->count) {
        if (i == (int)(sizeof known->items / sizeof known->items[0])) known->count = i = 0;
        PITH_TRY(
            pith_mask_recognize(&known->items[i].kind, &known->items[i].mask, &known->items[i].why, v, form, m->o));
        known->items[i].v = v;
        known->items[i].form = form;
        known->count = i + 1;
    }
    *kind = known->items[i].kind;
    *mask = known->items[i].mask;
    m->why = known->items[i].why;
    return PITH_OK;
}

static pith_status take_mask(attention *m, const pith_value *v, pith_mask_form form, bool finite,
                             pith_mask_kind *kind) {
    pith_mask mask;
    PITH_TRY(recognize(m, v, form, kind, &mask));
    if (*kind != PITH_MASK_YES) return PITH_OK;
    if (mask.key_mask && m->key_mask && mask.key_mask != m->key_mask) {
        *kind = PITH_MASK_NO;
        m->why = "there are two masks";
        return PITH_OK;
    }
    if (mask.key_mask) m->key_mask = mask.key_mask;
    if (mask.window_left >= 0 && (m->window_left < 0 || mask.window_left < m->window_left))
        m->window_left = mask.window_left;
    if (mask.window_right >= 0 && (m->window_right < 0 || mask.window_right < m->window_right))
        m->window_right = mask.window_right;
    m->finite = m->finite && (form == PITH_MASK_ADDED ? mask.finite : finite);
    m->masked = true;
    return PITH_OK;
}

/* The value before it was repeated to a shape it broadcasts to anyway. */
static pith_value *unexpanded(pith_value *v) {
    pith_node *expand = pith_match_maker(v, "Expand");
    if (!expand || expand->inputs[0]->type.rank < 1) return v;
    const pith_type *from = &expand->inputs[0]->type;
    return pith_dim_equal(from->dims[from->rank - 1], v->type.dims[v->type.rank - 1]) ? unexpanded(expand->inputs[0])
                                                                                      : v;
}

static pith_status add_bias(attention *m, pith_value *v, pith_node *before) {
    v = unexpanded(v);
    if (!m->bias) {
        m->bias = v;
        return PITH_OK;
    }
    pith_value *inputs[] = { m->bias, v };
    pith_node *add = pith_graph_add_node(m->o->graph, before, "", "Add", inputs, 2, NULL, 1);
    if (!add) return pith_fail_memory(m->o->err, 0);
    m->bias = add->outputs[0];
    m->bias->type = v->type;
    return pith_op_bind_node(add, m->o->err);
}

/* An added term: a mask, a bias, or both, added or one chosen by the other. before: where a sum of biases may stand. */
static pith_status take_term(attention *m, pith_value *v, pith_node *before, int depth) {
    pith_mask_kind kind;
    PITH_TRY(take_mask(m, v, PITH_MASK_ADDED, false, &kind));
    if (kind == PITH_MASK_YES) return PITH_OK;
    pith_node *add = pith_match_maker(v, "Add"), *where = pith_match_maker(v, "Where");
    double skipped;
    for (int i = 1; kind == PITH_MASK_NO && where && i < 3 && depth < 4; i++) { /* a bias where the mask keeps */
        if (!pith_match_scalar(where->inputs[i], &skipped) || skipped > -1e4) continue;
        PITH_TRY(take_mask(m, where->inputs[0], i == 1 ? PITH_MASK_SKIPS : PITH_MASK_KEEPS, isfinite(skipped), &kind));
        if (kind == PITH_MASK_YES) return take_term(m, where->inputs[3 - i], before, depth + 1);
    }
    if (kind == PITH_MASK_NO && add && depth < 4) {
        PITH_TRY(take_term(m, add->inputs[0], before, depth + 1));
        return take_term(m, add->inputs[1], before, depth + 1);
    }
    if (kind == PITH_MASK_NO) {
        pith_report_add(m->o->report, false, "mask", "'" PITH_STR_FMT "' stays an added bias: %s",
                        PITH_STR_ARG(v->name), m->why);
    }
    return add_bias(m, v, before);
}

/* ---- the pattern ---- */

/* From the softmax's input down to q k^T, taking factors and terms. NULL if something else is met. */
static pith_status match_scores(attention *m, pith_value *v, pith_node *before, pith_node **product) {
    pith_value *terms[CHAIN_MAX];
    int term_count = 0;
    double factor;
    *product = NULL;
    for (int step = 0; step < CHAIN_MAX; step++) {
        pith_node *matmul = pith_match_maker(v, "MatMul"), *add = pith_match_maker(v, "Add"), *node = v->producer;
        if (matmul) {
            for (int i = 0; i < term_count; i++) PITH_TRY(take_term(m, terms[i], before, 0));
            *product = matmul;
            return PITH_OK;
        }
        if (add && m->scale == 1.0) {
            /* The scores are the operand that a MatMul is behind; the deeper one if both look so. */
            int scores = 0;
            for (int i = 0; i < 2; i++) {
                const pith_value *down = add->inputs[i];
                while (pith_match_maker(down, "Mul") || pith_match_maker(down, "Div") ||
                       pith_match_maker(down, "Add")) {
                    const pith_node *n = down->producer;
                    down = pith_match_const(n->inputs[0]) ? n->inputs[1] : n->inputs[0];
                }
                if (pith_match_maker(down, "MatMul") || pith_match_maker(down, "Where")) {
                    scores = i;
                    if (pith_match_maker(down, "MatMul")) break;
                }
            }
            terms[term_count++] = add->inputs[1 - scores];
            v = add->inputs[scores];
            continue;
        }
        if (pith_match_is(node, "Where") && m->scale == 1.0) {
            bool skips = pith_match_scalar(node->inputs[1], &factor);
            pith_mask_kind kind;
            if (!skips && !pith_match_scalar(node->inputs[2], &factor)) return PITH_OK;
            if (factor > -1e4) return PITH_OK;
            PITH_TRY(take_mask(m, node->inputs[0], skips ? PITH_MASK_SKIPS : PITH_MASK_KEEPS, isfinite(factor), &kind));
            if (kind != PITH_MASK_YES) return PITH_OK;
            v = node->inputs[skips ? 2 : 1];
            continue;
        }
        pith_node *div = pith_match_maker(v, "Div"), *mul = pith_match_maker(v, "Mul");
        if (div && pith_match_scalar(div->inputs[1], &factor)) {
            m->scale /= factor;
            v = div->inputs[0];
        } else if (mul && pith_match_scalar(mul->inputs[0], &factor)) {
            m->scale *= factor;
            v = mul->inputs[1];
        } else if (mul && pith_match_scalar(mul->inputs[1], &factor)) {
            m->scale *= factor;
            v = mul->inputs[0];
        } else {
            m->why = "the softmax is not over a product";
            return PITH_OK;
        }
    }
    return PITH_OK;
}

/* From the softmax's output to the product with v: nothing, or NaN made zero. */
static pith_node *match_product(attention *m, pith_node *softmax) {
    pith_value *p = softmax->outputs[0];
    if (p->output_uses) return NULL;
    for (size_t i = 0; i < p->user_count; i++) {
        pith_node *is_nan = p->users[i].node, *where = is_nan ? pith_match_user(is_nan->outputs[0]) : NULL;
        if (!pith_match_is(is_nan, "IsNaN") || !pith_match_is(where, "Where") || p->user_count != 2) continue;
        if (where->inputs[0] != is_nan->outputs[0] || where->inputs[2] != p) return NULL;
        if (!pith_match_scalar_near(where->inputs[1], 0.0, 0.0)) return NULL;
        m->zero_if_none = true;
        p = where->outputs[0];
        break;
    }
    pith_node *product = pith_match_user(p);
    return pith_match_is(product, "MatMul") && product->inputs[0] == p ? product : NULL;
}

static bool last_axis(const pith_node *softmax) {
    int64_t axis = pith_node_int(softmax, "axis", -1);
    return axis == -1 || axis == softmax->inputs[0]->type.rank - 1;
}

static pith_status match_softmax(attention *m, pith_node *softmax, bool *found) {
    *found = false;
    m->product = match_product(m, softmax);
    pith_node *scores;
    if (!m->product || !last_axis(softmax) || softmax->inputs[0]->type.rank != 4) {
        m->why = "the softmax is not followed by a product with values";
        return PITH_OK;
    }
    pith_dim heads = softmax->inputs[0]->type.dims[1];
    if (!pith_dim_known(heads)) {
        m->why = "the number of heads is not known";
        return PITH_OK;
    }
    m->heads = heads;
    PITH_TRY(match_scores(m, softmax->inputs[0], softmax, &scores));
    if (!scores) return PITH_OK;
    m->why = "q, k or v is not cut from rows of heads";
    *found = pith_heads_trace(&m->in[Q], scores->inputs[0], PITH_HEADS_FIRST, heads, &m->scale) &&
             pith_heads_trace(&m->in[K], scores->inputs[1], PITH_HEADS_TURNED, heads, &m->scale) &&
             pith_heads_trace(&m->in[V], m->product->inputs[1], PITH_HEADS_FIRST, heads, NULL);
    return PITH_OK;
}

/* The Attention operator of ai.onnx on 4-D q, k and v, without past, softcap or further outputs. */
static pith_status match_operator(attention *m, pith_node *node, bool *found) {
    *found = false;
    m->product = node;
    pith_value *q = node->inputs[0], *mask = pith_match_input(node, 3);
    m->why = "it uses a past, a softcap or 3-D inputs";
    for (int i = 4; i < node->input_count; i++) {
        if (node->inputs[i]) return PITH_OK;
    }
    for (int i = 1; i < node->output_count; i++) {
        if (node->outputs[i] && (node->outputs[i]->user_count || node->outputs[i]->output_uses)) return PITH_OK;
    }
    if (q->type.rank != 4 || !pith_dim_known(q->type.dims[1]) || !pith_dim_known(q->type.dims[3]) ||
        pith_node_float(node, "softcap", 0.0f) != 0.0f || pith_node_attr(node, "softmax_precision"))
        return PITH_OK;
    m->heads = q->type.dims[1];
    m->scale = (double)pith_node_float(node, "scale", (float)(1.0 / sqrt((double)q->type.dims[3])));
    if (pith_node_int(node, "is_causal", 0)) m->window_right = 0;
    pith_dim kv_heads = node->inputs[1]->type.rank == 4 ? node->inputs[1]->type.dims[1] : PITH_DIM_UNKNOWN;
    m->why = "q, k or v is not cut from rows of heads";
    if (!pith_dim_known(kv_heads) || !pith_heads_trace(&m->in[Q], q, PITH_HEADS_FIRST, m->heads, NULL) ||
        !pith_heads_trace(&m->in[K], node->inputs[1], PITH_HEADS_FIRST, kv_heads, NULL) ||
        !pith_heads_trace(&m->in[V], node->inputs[2], PITH_HEADS_FIRST, kv_heads, NULL))
        return PITH_OK;
    if (mask && mask->type.dtype == PITH_BOOL) {
        pith_mask_kind kind;
        PITH_TRY(take_mask(m, mask, PITH_MASK_KEEPS, false, &kind));
        if (kind != PITH_MASK_YES) return PITH_OK;
    } else if (mask) {
        PITH_TRY(take_term(m, mask, node, 0));
    }
    *found = true;
    return PITH_OK;
}

/* ---- the replacement ---- */

/* Is the view of [batch, heads, sequence, size] the rows [batch, sequence, heads * size]? */
static bool heads_joined(const pith_view *view) {
    static const int axes[] = { 0, 2, 1, 3 }, of[] = { 0, 1, 2, 2 };
    int next = 0;
    if (view->rank != 3) return false;
    for (int i = 0; i < view->count; i++) {
        while (next < 4 && axes[next] != view->atoms[i].axis) next++;
        if (next == 4 || view->atoms[i].of != of[next++]) return false;
    }
    return true;
}

/* Where the heads are joined again: the last value of a chain of moves after v; NULL if they never are. */
static pith_value *joined_after(pith_value *v) {
    pith_view view;
    pith_view_init(&view, &v->type);
    for (int i = 0; i < CHAIN_MAX; i++) {
        pith_node *user = pith_match_user(v);
        if (!user || !pith_view_moves(user) || user->inputs[0] != v) return NULL;
        v = user->outputs[0];
        if (!pith_view_apply(&view, user, v)) return NULL;
        if (heads_joined(&view)) return v;
    }
    return NULL;
}

static pith_status set_attributes(const attention *m, pith_node *made) {
    int64_t columns[] = { m->in[Q].column, m->in[K].column, m->in[V].column };
    int64_t head_major = m->in[Q].head_major | m->in[K].head_major << K | m->in[V].head_major << V;
    int64_t none_left = m->finite || !m->masked ? PITH_NONE_LEFT_MEAN
                        : m->zero_if_none       ? PITH_NONE_LEFT_ZERO
                                                : PITH_NONE_LEFT_NAN;
    const struct {
        const char *name;
        int64_t value;
    } ints[] = {
        { "heads", m->heads },
        { "kv_heads", m->in[K].heads },
        { "size", m->in[Q].size },
        { "v_size", m->in[V].size },
        { "head_major", head_major },
        { "window_left", m->window_left },
        { "window_right", m->window_right },
        { "none_left", none_left },
    };
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        if (pith_node_set_int(made, ints[i].name, ints[i].value)) return PITH_ERR_MEMORY;
    }
    if (pith_node_set_ints(made, "columns", columns, 3)) return PITH_ERR_MEMORY;
    return pith_node_set_float(made, "scale", (float)m->scale);
}

static pith_status fuse(attention *m) {
    pith_value *joined = joined_after(m->product->outputs[0]), *old = joined ? joined : m->product->outputs[0];
    pith_value *inputs[] = { m->in[Q].root, m->in[K].root, m->in[V].root, m->bias, m->key_mask };
    int count = m->key_mask ? 5 : m->bias ? 4 : 3;
    pith_node *before = m->product;
    pith_node *made = pith_graph_add_node(m->o->graph, before, "pith", "Attention", inputs, count, NULL, 1);
    if (!made || set_attributes(m, made)) return pith_fail_memory(m->o->err, 0);
    made->name = m->product->name;
    PITH_TRY(pith_op_bind_node(made, m->o->err));
    pith_value *by = made->outputs[0];
    if (!joined) PITH_TRY(pith_heads_split(&by, by, m->heads, m->in[V].size, PITH_HEADS_FIRST, before, m->o->err));
    return pith_match_replace(old, by, m->o->err);
}

static pith_status run(pith_opt *o, size_t *changes) {
    known_masks known = { .count = 0 };
    for (pith_node *node = o->graph->first; node; node = node->next) {
        attention m = { .scale = 1.0, .window_left = -1, .window_right = -1, .finite = true, .known = &known, .o = o };
        bool softmax = pith_match_is(node, "Softmax"), found = false;
        if ((!softmax && !pith_match_is(node, "Attention")) || !pith_match_live(node)) continue;
        if (!pith_match_f32(node->inputs[0])) continue;
        PITH_TRY(softmax ? match_softmax(&m, node, &found) : match_operator(&m, node, &found));
        if (found && (m.in[K].heads != m.in[V].heads || m.in[Q].size != m.in[K].size || m.in[Q].heads != m.heads)) {
            m.why = "q, k and v differ in heads or size";
            found = false;
        }
        if (!found) {
            pith_report_add(o->report, false, "attention", "'" PITH_STR_FMT "': %s", PITH_STR_ARG(node->name),
                            m.why ? m.why : "an unknown operation on the scores");
            continue;
        }
        PITH_TRY(fuse(&m));
        pith_report_add(o->report, true, "attention", "%lld heads of %lld, %s%s%s '" PITH_STR_FMT "'",
                        (long long)m.heads, (long long)m.in[Q].size, m.key_mask ? "key mask" : "no mask",
                        m.bias ? ", bias" : "",
                        m.window_right == 0  ? ", causal"
                        : m.window_left >= 0 ? ", window"
                                             : "",
                        PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith_pass pith_pass_attention = { "attention", 3, false, run };
