/* hf_encoder.c - BERT and its relatives as a graph of ordinary operators.
 *
 * Each layer is norm(x + attention(x)), then norm(x + feed_forward(x)). A layout says how a family
 * names its tensors and what it has instead of BERT's parts. Sources: modeling_bert,
 * modeling_roberta, modeling_distilbert, modeling_mpnet, modeling_albert, modeling_electra of
 * transformers; the other families name theirs. */
#include "models/architectures/hf_encoder.h"

#include <math.h>

/* MPNet's buckets and the largest distance it tells apart; config.json only says how many rows the
 * table has. */
enum { RELATIVE_BUCKETS = 32, RELATIVE_DISTANCE_MAX = 128 };

/* What all layers share. */
typedef struct encoder {
    const pith__hf_encoder_layout *layout;
    pith__value *padding, *bias;
    pith__value *distances; /* indices of the table of relative_key */
    pith__hf_rotary turn;
    bool absolute; /* a table of positions is added to the embeddings */
    bool keys_too; /* relative_key_query */
} encoder;

/* ---- positions ---- */

/* Position of each token: 0, 1, 2, … [1, sequence], or counted over what is no padding [batch,
 * sequence]. */
static pith__value *hf_encoder_positions(pith__hf_builder *b, const encoder *e, pith__value *ids) {
    const pith__hf_config *c = b->config;
    if (e->layout->padded_positions) {
        int64_t pad = c->pad_token_id < 0 || e->layout->pads_with_one ? 1 : c->pad_token_id;
        pith__value *is_pad = PITH_HF_PUT(b, "Equal", ids, pith__hf_i64_scalar(b, pad));
        pith__value *real = pith__hf_cast(b, PITH_HF_PUT(b, "Not", is_pad), PITH_I64);
        pith__value *counted =
            PITH_HF_PUT(b, "Mul", PITH_HF_PUT(b, "CumSum", real, pith__hf_i64_scalar(b, 1)), real);
        return PITH_HF_PUT(b, "Add", counted, pith__hf_i64_scalar(b, pad));
    }
    int64_t *all =
        b->status ? NULL : pith__arena_array(b->graph->arena, (size_t)c->positions, sizeof *all);
    if (!all) return pith__hf_made(b, NULL);
    for (int64_t i = 0; i < c->positions; i++) all[i] = i;
    pith_tensor t = { .data = all,
                      .bytes = (size_t)c->positions * sizeof *all,
                      .dtype = PITH_I64,
                      .rank = 2,
                      .dims = { 1, c->positions } };
    pith__value *table =
        pith__hf_made(b, pith__graph_add_const(b->graph, PITH_STR("position_ids"), &t));
    return PITH_HF_PUT(b, "Slice", table, pith__hf_i64(b, 0),
                       pith__hf_unsqueeze(b, pith__hf_length(b, ids), 0), pith__hf_i64(b, 1));
}

/* MPNet's bias by distance. */
static pith__value *relative_term(pith__hf_builder *b, pith__value *ids) {
    const int64_t stated = b->config->relative_buckets, reach = b->config->positions - 1;
    const pith__hf_relative r = { .rows = stated ? stated : RELATIVE_BUCKETS,
                                  .buckets = RELATIVE_BUCKETS,
                                  .distance_max = RELATIVE_DISTANCE_MAX,
                                  .reach = reach };
    if (r.rows < RELATIVE_BUCKETS)
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: relative_attention_num_buckets is %lld; it must be at least %d",
                      (long long)stated, RELATIVE_BUCKETS);
    pith__hf_go_to(b, "encoder.relative_attention_bias");
    return pith__hf_relative_bias(b, ids, &r);
}

/* What BERT adds to the scores with relative_key: the learned row of the distance, by the query of
 * each head, and with relative_key_query by the key too. */
static pith__value *hf_encoder_relative_scores(pith__hf_builder *b, const encoder *e,
                                               pith__value *q, pith__value *k, int64_t size) {
    const int64_t rows = 2 * b->config->positions - 1;
    pith__hf_in_layer(b, "attention.self.distance_embedding");
    pith__value *stored = pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ rows, size });
    pith__value *table =
        pith__hf_transpose(b, pith__hf_widen(b, stored, stored), (int64_t[]){ 1, 0 }, 2);
    pith__value *by_query = pith__hf_pick(b, q, b->config->heads, size, table, false, e->distances);
    if (!e->keys_too) return by_query;
    /* By key: the rows belong to keys, so the distances are read the other way round. */
    pith__value *turned = pith__hf_transpose(b, e->distances, (int64_t[]){ 1, 0 }, 2);
    pith__value *by_key = pith__hf_pick(b, k, b->config->heads, size, table, false, turned);
    return PITH_HF_PUT(b, "Add", by_query,
                       pith__hf_transpose(b, by_key, (int64_t[]){ 0, 1, 3, 2 }, 4));
}

/* ---- parts ---- */

/* 0 for every token. */
static pith__value *hf_encoder_zeros(pith__hf_builder *b, pith__value *ids) {
    return PITH_HF_PUT(b, "Expand", pith__hf_reshape(b, pith__hf_i64(b, 0), (int64_t[]){ 1, 1 }, 2),
                       PITH_HF_PUT(b, "Shape", ids));
}

/* Words + token types + positions (+ tasks, of ERNIE), then the norm. ELECTRA and ALBERT have
 * narrower tables and a projection behind the norm; some layouts project first. Source:
 * BertEmbeddings and its relatives in transformers. */
static pith__value *hf_encoder_embed(pith__hf_builder *b, const encoder *e, pith__value *ids,
                                     pith__value *types) {
    const pith__hf_config *c = b->config;
    const pith__hf_encoder_layout *f = e->layout;
    bool tasks = f->task_types && pith__hf_bool(b, "use_task_id", false);
    int64_t n = f->projection ? pith__hf_int(b, "embedding_size", c->hidden_size, 1, 1 << 20)
                              : c->hidden_size;
    pith__hf_go_to(b, "embeddings.word_embeddings");
    pith__value *sum = pith__hf_look_up(b, c->vocab_size, n, ids);
    if (f->has_types) {
        if (!types) types = hf_encoder_zeros(b, ids);
        pith__hf_go_to(b, "embeddings.token_type_embeddings");
        sum = PITH_HF_PUT(b, "Add", sum, pith__hf_look_up(b, c->types, n, types));
    }
    if (e->absolute) {
        pith__hf_go_to(b, "embeddings.position_ids");
        pith__value *place = hf_encoder_positions(b, e, ids);
        pith__hf_go_to(b, "embeddings.position_embeddings");
        sum = PITH_HF_PUT(b, "Add", sum, pith__hf_look_up(b, c->positions, n, place));
    }
    if (tasks) {
        pith__hf_go_to(b, "embeddings.task_type_embeddings");
        int64_t rows = pith__hf_int(b, "task_type_vocab_size", 3, 1, 1 << 20);
        sum = PITH_HF_PUT(b, "Add", sum, pith__hf_look_up(b, rows, n, hf_encoder_zeros(b, ids)));
    }
    bool projects = f->projection && (n != c->hidden_size || f->projects);
    if (projects && f->projects_first) {
        pith__hf_go_to(b, f->projection);
        sum = pith__hf_linear(b, sum, n, c->hidden_size, false);
        projects = false;
        n = c->hidden_size;
    }
    pith__hf_go_to(b, f->table_norm ? f->table_norm : "embeddings.LayerNorm");
    pith__value *x = pith__hf_norm(b, sum, n, c->layer_norm_eps, true);
    if (!projects) return x;
    pith__hf_go_to(b, f->projection);
    return pith__hf_linear(b, x, n, c->hidden_size, true);
}

/* Query, key and value rows. */
static void hf_encoder_project(pith__hf_builder *b, const pith__hf_encoder_layout *f,
                               pith__value *x, pith__value **parts) {
    int64_t n = b->config->hidden_size;
    const char *names[] = { f->query, f->key, f->value },
               *norms[] = { f->query_norm, f->key_norm, NULL };
    if (f->qkv)
        pith__hf_split(b, parts, 3,
                       pith__hf_linear_in_layer(b, f->qkv, x, n, 3 * n, !f->no_attention_bias), n,
                       2);
    for (int i = 0; i < 3; i++) {
        if (!f->qkv)
            parts[i] = pith__hf_linear_in_layer(b, names[i], x, n, n, !f->no_attention_bias);
        if (norms[i]) parts[i] = pith__hf_norm_in_layer(b, norms[i], parts[i]);
    }
}

/* BertSelfAttention and BertSelfOutput.dense. What relative positions add is scaled as the scores
 * are; ALiBi's and MPNet's biases are not, and are added with the padding. */
static pith__value *hf_encoder_attend(pith__hf_builder *b, const encoder *e, pith__value *x) {
    const pith__hf_config *c = b->config;
    const pith__hf_encoder_layout *f = e->layout;
    int64_t n = c->hidden_size, size = n / c->heads;
    double scale = f->scale != 0 ? f->scale : 1 / sqrt((double)size);
    pith__value *parts[3] = { NULL };
    hf_encoder_project(b, f, x, parts);
    for (int i = 0; i < 3; i++) {
        parts[i] = pith__hf_heads(b, parts[i], c->heads, size);
        if (f->rotary && i < 2) parts[i] = pith__hf_turn(b, &e->turn, parts[i], c->heads, size);
    }
    pith__hf_in_layer(b, "attention");
    pith__value *scores = pith__hf_scores(b, parts[0], parts[1], scale);
    if (e->distances || f->relate) {
        pith__value *more = f->relate ? f->relate(b, f->state, parts[0], parts[1])
                                      : hf_encoder_relative_scores(b, e, parts[0], parts[1], size);
        scores = PITH_HF_PUT(b, "Add", scores,
                             PITH_HF_PUT(b, "Mul", more, pith__hf_f32(b, (float)scale)));
    }
    pith__value *biases[] = { e->bias, e->padding };
    pith__value *rows = pith__hf_attend(b, scores, biases, 2, parts[2], n);
    return pith__hf_linear_in_layer(b, f->attention_out, rows, n, n, !f->no_attention_bias);
}

/* With a gate in halves, one matrix makes both; which half is activated differs between families.
 */
static pith__value *hf_encoder_feed_forward(pith__hf_builder *b, const pith__hf_encoder_layout *f,
                                            pith__value *x) {
    int64_t n = b->config->hidden_size, inner = b->config->intermediate_size;
    bool halves = f->gating == PITH_HF_GATE_FIRST || f->gating == PITH_HF_GATE_SECOND;
    pith__value *y =
        pith__hf_linear_in_layer(b, f->up, x, n, halves ? 2 * inner : inner, !f->no_up_bias);
    if (halves) {
        y = pith__hf_gate_halves(b, y, inner, f->gating == PITH_HF_GATE_SECOND);
    } else if (f->gating == PITH_HF_GATE_APART) {
        pith__value *gate = pith__hf_linear_in_layer(b, f->gate, x, n, inner, !f->no_up_bias);
        y = PITH_HF_PUT(b, "Mul", y, pith__hf_activate(b, gate));
    } else {
        y = pith__hf_activate(b, y);
    }
    return pith__hf_linear_in_layer(b, f->down, y, inner, n, !f->no_down_bias);
}

/* One layer with norms behind its parts (post-norm). `again_norm` is Jina's second version, which
 * adds the layer's input twice. */
static pith__value *hf_encoder_encode(pith__hf_builder *b, const encoder *e, int64_t layer,
                                      pith__value *x) {
    const pith__hf_encoder_layout *f = e->layout;
    if (f->place)
        f->place(b, f->state, layer);
    else
        pith__hf_set_layer(
            b, pith__arena_printf(b->graph->arena, "%s%lld.", f->layer, (long long)layer));
    pith__value *y = hf_encoder_attend(b, e, x);
    y = pith__hf_norm_in_layer(b, f->attention_norm, PITH_HF_PUT(b, "Add", y, x));
    x = f->again_norm ? pith__hf_norm_in_layer(b, f->again_norm, PITH_HF_PUT(b, "Add", y, x)) : y;
    y = hf_encoder_feed_forward(b, f, x);
    return pith__hf_norm_in_layer(b, f->norm, PITH_HF_PUT(b, "Add", y, x));
}

/* ---- the whole ---- */

/* Settings that the tables of the layout cannot express. A form of positions that is not known
 * would give vectors that look right, so it is refused. */
static void hf_encoder_check(pith__hf_builder *b, encoder *e) {
    const pith__hf_config *c = b->config;
    pith__hf_check_sizes(b);
    if (e->layout->has_types) pith__hf_check_size(b, "type_vocab_size", c->types, 1 << 20);
    pith__hf_check_heads(b);
    if (c->is_decoder)
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: is_decoder is true; only encoders are supported");
    if (e->layout->alibi || e->layout->rotary || e->layout->no_positions) return;
    e->absolute = pith__str_is(c->position_embedding_type, "absolute");
    e->keys_too = pith__str_is(c->position_embedding_type, "relative_key_query");
    if (!e->absolute &&
        !(e->layout->relative_keys &&
          (e->keys_too || pith__str_is(c->position_embedding_type, "relative_key"))))
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: position_embedding_type \"" PITH_STR_FMT
                      "\" is not supported; supported %s",
                      PITH_STR_ARG(c->position_embedding_type),
                      e->layout->relative_keys ? "are absolute, relative_key, relative_key_query"
                                               : "is absolute");
}

/* Everything that all layers share is made once, in front of the first: the biases, the tables of
 * rotary positions, the indices of distances. */
pith_status pith__hf_encoder_make(pith__hf_builder *b, const pith__hf_encoder_layout *layout) {
    encoder e = { .layout = layout };
    hf_encoder_check(b, &e);
    if (b->status) return b->status;
    pith__value *ids = pith__hf_input(b, "input_ids"), *mask = pith__hf_input(b, "attention_mask");
    pith__value *types =
        layout->type_input && layout->has_types ? pith__hf_input(b, "token_type_ids") : NULL;
    pith__value *x = hf_encoder_embed(b, &e, ids, types);
    e.padding = pith__hf_padding_bias(b, mask);
    if (layout->relative_bias) e.bias = relative_term(b, ids);
    if (layout->alibi) e.bias = pith__hf_alibi_bias(b, ids, b->config->heads);
    if (layout->rotary) e.turn = pith__hf_rotary_tables(b, ids, mask, &layout->turn);
    if (layout->prepare) layout->prepare(b, layout->state, ids);
    if (!e.absolute && !layout->alibi && !layout->rotary && !layout->no_positions) {
        pith__hf_go_to(b, "distances"); /* of the query minus the key */
        pith__value *last = pith__hf_i64_scalar(b, b->config->positions - 1);
        e.distances =
            pith__hf_cast(b, PITH_HF_PUT(b, "Sub", last, pith__hf_distances(b, ids)), PITH_I32);
    }
    for (int64_t i = 0; i < b->config->layers; i++) {
        if (b->status) break;
        x = hf_encoder_encode(b, &e, i, pith__hf_layer_input(b, i, x));
    }
    return pith__hf_end(b, x);
}

pith_status pith__hf_encoder_build(pith__graph *graph, const void *layout,
                                   const pith__hf_config *config, const pith__weights *weights,
                                   const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    return pith__hf_encoder_make(&b, layout);
}
