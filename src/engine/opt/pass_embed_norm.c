/* pass_embed_norm.c - looked-up rows, their sum and the normalisation after it become
 * pith.EmbedNorm.
 *
 * The sum is a tree of Add whose leaves are Gather along axis 0 of constant f32 matrices, or of f16
 * or bf16 ones whose rows are cast to f32; the rows are added in the order of the leaves, first to
 * last. It runs before pass_skip_norm, which would take the last Add. */
#include "engine/opt/match_nodes.h"
#include "engine/opt/pass.h"

/* Tables that are added: words, positions, types. op_pith_embed_norm.c takes no more. */
#define TABLES_MAX 3

typedef struct leaves {
    pith__value *table[TABLES_MAX], *ids[TABLES_MAX];
    int count;
    const char *why;
} leaves;

static bool embed_norm_is_table(const pith__value *v, bool is_cast) {
    if (!pith__match_const(v) || v->type.data->rank != 2) return false;
    int dtype = v->type.data->dtype;
    return is_cast ? dtype == PITH_F16 || dtype == PITH_BF16 : dtype == PITH_F32;
}

static bool embed_norm_collect(leaves *l, const pith__value *v, int depth) {
    pith__node *add = pith__match_maker(v, "Add"),
               *cast = pith__match_f32(v) ? pith__match_maker(v, "Cast") : NULL;
    pith__node *gather = pith__match_maker(cast ? cast->inputs[0] : v, "Gather");
    if (add && depth < TABLES_MAX && pith__match_user(v)) {
        return embed_norm_collect(l, add->inputs[0], depth + 1) &&
               embed_norm_collect(l, add->inputs[1], depth + 1);
    }
    if (!gather) return false;
    if (!embed_norm_is_table(gather->inputs[0], cast != NULL) ||
        pith__node_int(gather, "axis", 0) != 0) {
        l->why = "a table is not a constant matrix of floats";
        return false;
    }
    if (l->count == TABLES_MAX) {
        l->why = "there are more than three tables";
        return false;
    }
    l->table[l->count] = gather->inputs[0];
    l->ids[l->count++] = gather->inputs[1];
    return true;
}

static pith_status pass_embed_norm_run(pith__opt *o, size_t *changes) {
    for (pith__node *node = o->graph->first; node; node = node->next) {
        bool rms = pith__match_is(node, "RMSNormalization");
        if ((!rms && !pith__match_is(node, "LayerNormalization")) || node->output_count != 1)
            continue;
        if (!pith__match_live(node)) continue;
        int64_t axis = pith__node_int(node, "axis", -1);
        const pith__value *x = node->inputs[0], *beta = pith__match_input(node, 2);
        if (x->type.rank < 2 || (axis != -1 && axis != x->type.rank - 1) || !pith__match_user(x))
            continue;
        int64_t n = x->type.dims[x->type.rank - 1];
        if (!pith__match_vector(node->inputs[1], n) || (beta && !pith__match_vector(beta, n)))
            continue;
        leaves l = { .count = 0 };
        if (!embed_norm_collect(&l, x, 0)) {
            if (l.why) {
                pith__report_add(o->report, false, "embed_norm", "before '" PITH_STR_FMT "' %s",
                                 PITH_STR_ARG(node->name), l.why);
            }
            continue;
        }
        pith__value *inputs[2 + 2 * TABLES_MAX] = { node->inputs[1], pith__match_input(node, 2) };
        for (int i = 0; i < l.count; i++) {
            inputs[2 + 2 * i] = l.table[i];
            inputs[3 + 2 * i] = l.ids[i];
        }
        pith__node *made;
        PITH_TRY(pith__match_put(&made, node->outputs[0], node, "pith", "EmbedNorm", inputs,
                                 2 + 2 * l.count, o->err));
        if (pith__node_set_float(made, "epsilon", pith__node_float(node, "epsilon", 1e-5f)) ||
            pith__node_set_int(made, "rms", rms))
            return pith__fail_memory(o->err, 0);
        pith__report_add(o->report, true, "embed_norm", "%d tables and norm '" PITH_STR_FMT "'",
                         l.count, PITH_STR_ARG(node->name));
        ++*changes;
    }
    return PITH_OK;
}

const pith__pass pith__pass_embed_norm = { "embed_norm", 2, false, pass_embed_norm_run };
