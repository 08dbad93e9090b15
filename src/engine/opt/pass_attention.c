/* pass_attention.c - every spelling of scaled dot-product attention becomes pith.Attention.
 *
 *   softmax(q k^T * scale + terms) v
 *
 * The match begins at a Softmax (or at the Attention operator of opset 23) and follows meaning.
 * Factors may be on the scores or on q and k. Terms may be added or chosen by Where, in any order.
 * Heads may be split and joined by any chain of Reshape, Transpose and the like (tensor_view.h).
 * Keys and values may be repeated over groups of heads. attention_mask.h finds out what the terms
 * mean: a key mask and a window become attributes of the step, the rest stays an added bias. The
 * output replaces the value with heads joined, or is brought back to the layout that is read. */
#include <math.h>

#include "engine/kernels/attention.h"
#include "engine/opt/attention_heads.h"
#include "engine/opt/attention_mask.h"
#include "engine/opt/combined_masks.h"
#include "engine/opt/match_nodes.h"
#include "engine/opt/tensor_view.h"

/* The most terms and factors between the scores and the softmax, and the longest chain of views.
 * Exporters write up to about five; the bound only limits the work. */
#define CHAIN_MAX 16

enum { Q, K, V };

typedef struct attention {
    pith__heads in[3];
    int64_t heads;
    double scale;
    pith__value *bias;
    pith__skips skips;
    int step;      /* from the softmax down */
    int bias_step; /* of the bias nearest to the softmax; CHAIN_MAX: there is none */
    bool bias_left_out, zero_if_none;
    pith__node *product; /* whose output is softmax(…) v */
    const char *why;     /* for the report: what did not fit */
    struct known_masks *known;
    pith__opt *opt;
} attention;

/* What values mean, so that the layers of a network ask once. */
typedef struct known_masks {
    struct {
        const pith__value *v;
        pith__mask_form form;
        pith__mask_kind kind;
        pith__mask mask;
        const char *why;
    } items[8];
    int count;
} known_masks;

/* ---- terms ---- */

/* Layers mostly share one mask, and to recognise it means to run it, so the answers are remembered.
 * A full table begins anew. */
static pith_status recognize(attention *m, const pith__value *v, pith__mask_form form,
                             pith__mask_kind *kind, pith__mask *mask) {
    known_masks *known = m->known;
    int i = 0;
    while (i < known->count && (known->items[i].v != v || known->items[i].form != form)) i++;
    if (i == known->count) {
        if (i == (int)(sizeof known->items / sizeof known->items[0])) known->count = i = 0;
        PITH_TRY(pith__mask_recognize(&known->items[i].kind, &known->items[i].mask,
                                      &known->items[i].why, v, form, m->opt));
        known->items[i].v = v;
        known->items[i].form = form;
        known->count = i + 1;
    }
    *kind = known->items[i].kind;
    *mask = known->items[i].mask;
    m->why = known->items[i].why;
    return PITH_OK;
}

/* number: what a skipped key's score becomes, or has added, where the mask itself is no number. */
static pith_status take_mask(attention *m, const pith__value *v, pith__mask_form form,
                             double number, bool replaces, pith__mask_kind *kind) {
    pith__mask mask;
    PITH_TRY(recognize(m, v, form, kind, &mask));
    if (*kind != PITH_MASK_YES ||
        pith__skips_add(&m->skips, &mask, form, number, replaces, m->step))
        return PITH_OK;
    *kind = PITH_MASK_NO;
    m->why = "there are two masks";
    return PITH_OK;
}

/* The value before it was repeated to a shape it broadcasts to anyway. */
static pith__value *unexpanded(pith__value *v) {
    pith__node *expand = pith__match_maker(v, "Expand");
    if (!expand || expand->inputs[0]->type.rank < 1) return v;
    const pith__type *from = &expand->inputs[0]->type;
    return pith__dim_equal(from->dims[from->rank - 1], v->type.dims[v->type.rank - 1])
               ? unexpanded(expand->inputs[0])
               : v;
}

static pith_status attention_add_bias(attention *m, pith__value *v, pith__node *before) {
    v = unexpanded(v);
    if (m->step < m->bias_step) m->bias_step = m->step;
    if (!m->bias) {
        m->bias = v;
        return PITH_OK;
    }
    pith__value *inputs[] = { m->bias, v };
    pith__node *add = pith__graph_add_node(m->opt->graph, before, "", "Add", inputs, 2, NULL, 1);
    if (!add) return pith__fail_memory(m->opt->err, 0);
    m->bias = add->outputs[0];
    m->bias->type = v->type;
    return pith__op_bind_node(add, m->opt->err);
}

/* An added term: a mask, a bias, or both, added or one chosen by the other. It is tried as a whole
 * first, since a sum of two masks may mean a third. Only a term that is neither a mask nor a
 * constant is taken apart. A constant stays a bias even if it is a sum. before: where a sum of
 * biases may stand. */
static pith_status take_term(attention *m, pith__value *v, pith__node *before, int depth) {
    pith__mask_kind kind;
    PITH_TRY(take_mask(m, v, PITH_MASK_ADDED, 0.0, false, &kind));
    if (kind == PITH_MASK_YES) return PITH_OK;
    pith__node *add = pith__match_maker(v, "Add"), *where = pith__match_maker(v, "Where");
    double skipped;
    /* a bias where the mask keeps */
    const int choices = where && depth < 4 ? 3 : 0;
    for (int i = 1; kind == PITH_MASK_NO && i < choices; i++) {
        if (!pith__match_scalar(where->inputs[i], &skipped) || !(skipped <= -1e4)) continue;
        PITH_TRY(take_mask(m, where->inputs[0], i == 1 ? PITH_MASK_SKIPS : PITH_MASK_KEEPS, skipped,
                           false, &kind));
        if (kind != PITH_MASK_YES) continue;
        m->bias_left_out = true;
        return take_term(m, where->inputs[3 - i], before, depth + 1);
    }
    if (kind == PITH_MASK_NO && add && depth < 4) {
        PITH_TRY(take_term(m, add->inputs[0], before, depth + 1));
        return take_term(m, add->inputs[1], before, depth + 1);
    }
    if (kind == PITH_MASK_NO) {
        pith__report_add(m->opt->report, false, "mask",
                         "'" PITH_STR_FMT "' stays an added bias: %s", PITH_STR_ARG(v->name),
                         m->why);
    }
    return attention_add_bias(m, v, before);
}

/* ---- the pattern ---- */

/* Which operand of an Add are the scores: the one that a MatMul is behind; the deeper one if both
 * look so. */
static int scores_operand(const pith__node *add) {
    int scores = 0;
    for (int i = 0; i < 2; i++) {
        const pith__value *down = add->inputs[i];
        while (pith__match_maker(down, "Mul") || pith__match_maker(down, "Div") ||
               pith__match_maker(down, "Add")) {
            const pith__node *n = down->producer;
            down = pith__match_const(n->inputs[0]) ? n->inputs[1] : n->inputs[0];
        }
        if (pith__match_maker(down, "MatMul")) return i;
        if (pith__match_maker(down, "Where")) scores = i;
    }
    return scores;
}

/* Scores times or divided by a number: m->scale takes it, *v becomes the scores. */
static bool take_factor(attention *m, pith__value **v) {
    double factor;
    const pith__node *div = pith__match_maker(*v, "Div"), *mul = pith__match_maker(*v, "Mul");
    if (div && pith__match_scalar(div->inputs[1], &factor)) {
        m->scale /= factor;
        *v = div->inputs[0];
        return true;
    }
    for (int i = 0; i < 2; i++) {
        if (!mul || !pith__match_scalar(mul->inputs[i], &factor)) continue;
        m->scale *= factor;
        *v = mul->inputs[1 - i];
        return true;
    }
    return false;
}

/* Scores where a mask keeps them, a number far below 0 elsewhere: m->skips takes the mask, *v
 * becomes the scores. */
static pith_status take_choice(attention *m, pith__value **v, bool *taken) {
    const pith__node *where = (*v)->producer;
    double skipped;
    pith__mask_kind kind;
    *taken = false;
    bool skips = pith__match_scalar(where->inputs[1], &skipped);
    if (!skips && !pith__match_scalar(where->inputs[2], &skipped)) return PITH_OK;
    if (!(skipped <= -1e4)) return PITH_OK;
    PITH_TRY(take_mask(m, where->inputs[0], skips ? PITH_MASK_SKIPS : PITH_MASK_KEEPS, skipped,
                       true, &kind));
    *taken = kind == PITH_MASK_YES;
    if (*taken) *v = where->inputs[skips ? 2 : 1];
    return PITH_OK;
}

/* From the softmax's input down to q k^T, taking factors and terms. NULL if something else is met.
 * Terms are taken only above all factors, for below a factor they would be scaled as well. What the
 * terms mean is looked at last, when the matmul has been found: recognising a mask computes it,
 * which is too dear for every Softmax. */
static pith_status match_scores(attention *m, pith__value *v, pith__node *before,
                                pith__node **product) {
    struct {
        pith__value *v;
        int step;
    } terms[CHAIN_MAX];
    int term_count = 0;
    *product = NULL;
    for (m->step = 0; m->step < CHAIN_MAX; m->step++) {
        pith__node *matmul = pith__match_maker(v, "MatMul"), *add = pith__match_maker(v, "Add");
        if (matmul) {
            for (int i = 0; i < term_count; i++) {
                m->step = terms[i].step;
                PITH_TRY(take_term(m, terms[i].v, before, 0));
            }
            *product = matmul;
            return PITH_OK;
        }
        if (add && m->scale == 1.0) {
            int scores = scores_operand(add);
            terms[term_count].v = add->inputs[1 - scores];
            terms[term_count++].step = m->step;
            v = add->inputs[scores];
        } else if (pith__match_maker(v, "Where") && m->scale == 1.0) {
            bool taken;
            PITH_TRY(take_choice(m, &v, &taken));
            if (!taken) return PITH_OK;
        } else if (!take_factor(m, &v)) {
            m->why = "the softmax is not over a product";
            return PITH_OK;
        }
    }
    return PITH_OK;
}

/* From the softmax's output to the matmul with v: nothing, or NaN made zero. */
static pith__node *attention_match_product(attention *m, pith__node *softmax) {
    pith__value *p = softmax->outputs[0];
    if (p->output_uses) return NULL;
    for (size_t i = 0; i < p->user_count; i++) {
        pith__node *is_nan = p->users[i].node,
                   *where = is_nan ? pith__match_user(is_nan->outputs[0]) : NULL;
        if (!pith__match_is(is_nan, "IsNaN") || !pith__match_is(where, "Where") ||
            p->user_count != 2)
            continue;
        if (where->inputs[0] != is_nan->outputs[0] || where->inputs[2] != p) return NULL;
        if (!pith__match_scalar_near(where->inputs[1], 0.0, 0.0)) return NULL;
        m->zero_if_none = true;
        p = where->outputs[0];
        break;
    }
    pith__node *product = pith__match_user(p);
    return pith__match_is(product, "MatMul") && product->inputs[0] == p ? product : NULL;
}

static bool last_axis(const pith__node *softmax) {
    int64_t axis = pith__node_int(softmax, "axis", -1);
    return axis == -1 || axis == softmax->inputs[0]->type.rank - 1;
}

/* From a Softmax both ways: forward to the matmul with v, backward to q k^T, and from the operands
 * of both to the rows that hold the heads. The rank must be 4, with the heads as axis 1, as all
 * exporters write it. */
static pith_status match_softmax(attention *m, pith__node *softmax, bool *found) {
    *found = false;
    m->product = attention_match_product(m, softmax);
    pith__node *scores;
    if (!m->product || !last_axis(softmax) || softmax->inputs[0]->type.rank != 4) {
        m->why = "the softmax is not followed by a product with values";
        return PITH_OK;
    }
    pith__dim heads = softmax->inputs[0]->type.dims[1];
    if (!pith__dim_known(heads)) {
        m->why = "the number of heads is not known";
        return PITH_OK;
    }
    m->heads = heads;
    PITH_TRY(match_scores(m, softmax->inputs[0], softmax, &scores));
    if (!scores) return PITH_OK;
    m->why = "q, k or v is not cut from rows of heads";
    *found = pith__heads_trace(&m->in[Q], scores->inputs[0], PITH_HEADS_FIRST, heads, &m->scale) &&
             pith__heads_trace(&m->in[K], scores->inputs[1], PITH_HEADS_TURNED, heads, &m->scale) &&
             pith__heads_trace(&m->in[V], m->product->inputs[1], PITH_HEADS_FIRST, heads, NULL);
    return PITH_OK;
}

/* Are the operator's attributes those whose meaning is taken over, or of no effect? */
static bool plain_operator(const pith__node *node) {
    static const char *const known[] = { "is_causal",   "kv_num_heads",
                                         "q_num_heads", "qk_matmul_output_mode",
                                         "scale",       "softcap" };
    for (size_t i = 0; i < node->attr_count; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] && !pith__str_is(node->attrs[i].name, known[k]))
            k++;
        if (k == sizeof known / sizeof known[0]) return false;
    }
    return pith__node_float(node, "softcap", 0.0f) == 0.0f;
}

/* The Attention operator of ai.onnx on 4-D q, k and v, without past, softcap or further outputs. */
static pith_status attention_match_operator(attention *m, pith__node *node, bool *found) {
    *found = false;
    m->product = node;
    pith__value *q = node->inputs[0], *mask = pith__match_input(node, 3);
    m->zero_if_none = true;
    m->why = "it uses a past, a softcap or 3-D inputs";
    for (int i = 4; i < node->input_count; i++) {
        if (node->inputs[i]) return PITH_OK;
    }
    for (int i = 1; i < node->output_count; i++) {
        if (node->outputs[i] && (node->outputs[i]->user_count || node->outputs[i]->output_uses))
            return PITH_OK;
    }
    if (q->type.rank != 4 || !pith__dim_known(q->type.dims[1]) ||
        !pith__dim_known(q->type.dims[3]) || !plain_operator(node))
        return PITH_OK;
    m->heads = q->type.dims[1];
    m->scale =
        (double)pith__node_float(node, "scale", (float)(1.0 / sqrt((double)q->type.dims[3])));
    if (pith__node_int(node, "is_causal", 0)) {
        pith__mask causal = { .window_left = -1 };
        pith__skips_add(&m->skips, &causal, PITH_MASK_KEEPS, (double)-INFINITY, true, 0);
    }
    pith__dim kv_heads =
        node->inputs[1]->type.rank == 4 ? node->inputs[1]->type.dims[1] : PITH_DIM_UNKNOWN;
    m->why = "q, k or v is not cut from rows of heads";
    if (!pith__dim_known(kv_heads) ||
        !pith__heads_trace(&m->in[Q], q, PITH_HEADS_FIRST, m->heads, NULL) ||
        !pith__heads_trace(&m->in[K], node->inputs[1], PITH_HEADS_FIRST, kv_heads, NULL) ||
        !pith__heads_trace(&m->in[V], node->inputs[2], PITH_HEADS_FIRST, kv_heads, NULL))
        return PITH_OK;
    if (mask && mask->type.dtype == PITH_BOOL) {
        pith__mask_kind kind;
        PITH_TRY(take_mask(m, mask, PITH_MASK_KEEPS, (double)-INFINITY, true, &kind));
        if (kind != PITH_MASK_YES) return PITH_OK;
    } else if (mask) {
        PITH_TRY(take_term(m, mask, node, 0));
    }
    *found = true;
    return PITH_OK;
}

/* ---- the replacement ---- */

/* Is the view of a value [batch, heads, sequence, size] the rows [batch, sequence, heads * size],
 * all of them? */
static bool heads_joined(const pith__view *view, const pith__type *type) {
    static const int axes[] = { 0, 2, 1, 3 }, of[] = { 0, 1, 2, 2 };
    int next = 0;
    if (view->rank != 3) return false;
    for (int i = 0; i < 4; i++) {
        const pith__view_atom *atom = &view->atoms[next];
        if (view->offset[axes[i]]) return false;
        if (type->dims[axes[i]] == 1) continue;
        if (next == view->count || atom->axis != axes[i] || atom->of != of[i] ||
            atom->stride != 1 || !pith__dim_equal(atom->size, type->dims[axes[i]]))
            return false;
        next++;
    }
    return next == view->count;
}

/* Where the heads are joined again: the last value of a chain of moves after v; NULL if they never
 * are. */
static pith__value *joined_after(pith__value *v) {
    const pith__type *product = &v->type;
    pith__view view;
    pith__view_init(&view, product);
    for (int i = 0; i < CHAIN_MAX; i++) {
        pith__node *user = pith__match_user(v);
        if (!user || !pith__view_moves(user) || user->inputs[0] != v) return NULL;
        v = user->outputs[0];
        if (!pith__view_apply(&view, user, v)) return NULL;
        if (heads_joined(&view, product)) return v;
    }
    return NULL;
}

static pith_status set_attributes(const attention *m, pith__node *made, pith__none_left none_left,
                                  const float *numbers) {
    int64_t columns[] = { m->in[Q].column, m->in[K].column, m->in[V].column };
    int64_t pitches[] = { m->in[Q].pitch, m->in[K].pitch, m->in[V].pitch };
    int64_t head_major = m->in[Q].head_major | m->in[K].head_major << K | m->in[V].head_major << V;
    const struct {
        const char *name;
        int64_t value;
    } ints[] = {
        { "heads", m->heads },
        { "kv_heads", m->in[K].heads },
        { "size", m->in[Q].size },
        { "v_size", m->in[V].size },
        { "head_major", head_major },
        { "window_left", m->skips.window_left },
        { "window_right", m->skips.window_right },
        { "none_left", none_left },
        { "mask_numbers", m->skips.numbers },
    };
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        if (pith__node_set_int(made, ints[i].name, ints[i].value)) return PITH_ERR_MEMORY;
    }
    if (pith__node_set_ints(made, "columns", columns, 3) ||
        pith__node_set_ints(made, "pitches", pitches, 3) ||
        pith__node_set_floats(made, "skipped", numbers, PITH_SKIPS))
        return PITH_ERR_MEMORY;
    return pith__node_set_float(made, "scale", (float)m->scale);
}

static pith_status attention_fuse(attention *m, pith__none_left none_left, const float *numbers) {
    pith__value *joined = joined_after(m->product->outputs[0]),
                *old = joined ? joined : m->product->outputs[0];
    pith__value *inputs[] = { m->in[Q].root, m->in[K].root, m->in[V].root, m->bias,
                              m->skips.key_mask };
    int count = m->bias ? 4 : 3;
    if (m->skips.key_mask) count = 5;
    pith__node *before = m->product;
    pith__node *made =
        pith__graph_add_node(m->opt->graph, before, "pith", "Attention", inputs, count, NULL, 1);
    if (!made || set_attributes(m, made, none_left, numbers))
        return pith__fail_memory(m->opt->err, 0);
    made->name = m->product->name;
    PITH_TRY(pith__op_bind_node(made, m->opt->err));
    pith__value *by = made->outputs[0];
    if (!joined)
        PITH_TRY(pith__heads_split(&by, by, m->heads, m->in[V].size, PITH_HEADS_FIRST, before,
                                   m->opt->err));
    return pith__match_replace(old, by, m->opt->err);
}

/* ---- what must agree ---- */

static pith__dim rows_axis(const pith__heads *h) {
    return h->root->type.dims[h->head_major ? 2 : 1];
}

/* Does it broadcast to the scores, without making them larger? */
static bool bias_fits(const attention *m) {
    const pith__type *t = &m->bias->type;
    const pith__dim want[] = { m->in[Q].root->type.dims[0], m->heads, rows_axis(&m->in[Q]),
                               rows_axis(&m->in[K]) };
    if (t->rank < 1 || t->rank > 4 || !pith__match_f32(m->bias)) return false;
    for (int d = 0; d < t->rank; d++) {
        int axis = d + 4 - t->rank;
        bool one = t->dims[d] == 1 && axis < 3;
        if (!one && !pith__dim_equal(t->dims[d], want[axis])) return false;
    }
    return true;
}

/* True if batches, lengths and heads are those of one attention. The fused step has no
 * broadcasting, so nothing may be left to it here. */
static bool parts_agree(attention *m) {
    const pith__dim *q = m->in[Q].root->type.dims, *k = m->in[K].root->type.dims,
                    *v = m->in[V].root->type.dims;
    const pith__value *mask = m->skips.key_mask;
    if (m->in[K].heads != m->in[V].heads || m->in[Q].size != m->in[K].size ||
        m->in[Q].heads != m->heads)
        m->why = "q, k and v differ in heads or size";
    else if (!pith__dim_equal(q[0], k[0]) || !pith__dim_equal(q[0], v[0]) ||
             !pith__dim_equal(rows_axis(&m->in[K]), rows_axis(&m->in[V])))
        m->why = "q, k and v may differ in batch or length";
    else if (m->bias && !bias_fits(m))
        m->why = "what is added to the scores does not have their shape";
    else if (mask && (!pith__dim_equal(mask->type.dims[0], q[0]) ||
                      !pith__dim_equal(mask->type.dims[1], rows_axis(&m->in[K]))))
        m->why = "the key mask does not have the shape of the keys";
    else
        return true;
    return false;
}

/* A number that a bias with it would skip keys by. */
#define SKIPS_BY (-1e4)

static bool attention_has_skipping(const pith__value *v) {
    const pith_tensor *t = v->type.data;
    double x;
    if (pith__match_scalar(v, &x)) return !(x > SKIPS_BY);
    if (!t || t->dtype != PITH_F32) return false;
    const char *data = t->data;
    for (size_t i = 0; i < t->bytes / sizeof(float); i++) {
        float item;
        memcpy(&item, data + i * sizeof item, sizeof item);
        if (!(item > (float)SKIPS_BY)) return true;
    }
    return false;
}

/* Might the bias skip keys itself? Then, for a query without a key that the masks keep, its numbers
 * and theirs would have to be weighed against each other, which the fused step does not do. It is
 * looked for among the constants that the bias is made of. */
static bool attention_bias_skips(const pith__value *v, int depth) {
    enum { DEEPEST = 12 };
    const pith__node *node = v->producer;
    if (pith__match_const(v)) return attention_has_skipping(v);
    if (!node || v->type.dtype == PITH_BOOL || v->type.dtype == PITH_I64 ||
        v->type.dtype == PITH_I32)
        return false;
    if (depth == DEEPEST) return true;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] && attention_bias_skips(node->inputs[i], depth + 1)) return true;
    return false;
}

static pith_status pass_attention_run(pith__opt *o, size_t *changes) {
    known_masks known = { .count = 0 };
    for (pith__node *node = o->graph->first; node; node = node->next) {
        attention m = { .bias_step = CHAIN_MAX, .scale = 1.0, .known = &known, .opt = o };
        pith__none_left none_left;
        float numbers[PITH_SKIPS];
        bool softmax = pith__match_is(node, "Softmax"), found = false;
        if ((!softmax && !pith__match_is(node, "Attention")) || !pith__match_live(node)) continue;
        if (!pith__match_f32(node->inputs[0])) continue;
        pith__skips_init(&m.skips);
        PITH_TRY(softmax ? match_softmax(&m, node, &found)
                         : attention_match_operator(&m, node, &found));
        found = found && parts_agree(&m);
        if (found && (!pith__skips_settle(&m.skips, m.zero_if_none, &none_left, numbers) ||
                      (none_left == PITH_NONE_LEFT_SCORES && m.bias && m.bias_left_out) ||
                      pith__skips_show(&m.skips, m.bias_step) ||
                      (m.bias && m.skips.key_mask && attention_bias_skips(m.bias, 0)))) {
            m.why = "where all keys are masked, its masks do not go together";
            found = false;
        }
        if (!found) {
            pith__report_add(o->report, false, "attention", "'" PITH_STR_FMT "': %s",
                             PITH_STR_ARG(node->name),
                             m.why ? m.why : "an unknown operation on the scores");
            continue;
        }
        PITH_TRY(attention_fuse(&m, none_left, numbers));
        const char *window = m.skips.window_left >= 0 ? ", window" : "";
        if (m.skips.window_right == 0) window = ", causal";
        pith__report_add(o->report, true, "attention",
                         "%lld heads of %lld, %s%s%s '" PITH_STR_FMT "'", (long long)m.heads,
                         (long long)m.in[Q].size, m.skips.key_mask ? "key mask" : "no mask",
                         m.bias ? ", bias" : "", window, PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_attention = { "attention", 3, false, pass_attention_run };
