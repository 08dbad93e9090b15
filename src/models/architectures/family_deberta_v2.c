/* family_deberta_v2.c - DeBERTa v2 and v3: scores have terms of the query with the distance and of
 * the key with it.
 *
 * He et al. 2021, "DeBERTa", and modeling_deberta_v2 of transformers. Distances are told apart in
 * buckets, exact near by and logarithmic further off. Which row of the table belongs to a distance
 * is computed here, up to the distance from which on it stays the same. */
#include <math.h>

#include "models/architectures/hf_encoder.h"
#include "models/architectures/hf_keys.h"

/* The largest distance in the tables below; settings whose buckets are not all reached by then are
 * like others that are. */
#define REACH_MAX (1 << 20)

typedef struct deberta {
    int64_t span; /* the table has two rows for each, one for each direction */
    int64_t buckets, distance_max;
    pith__value *table;             /* [2 * span, hidden] */
    pith__value *by_query, *by_key; /* rows of the table, [sequence, sequence] */
    bool c2p, p2c;                  /* the query's term, the key's */
    bool share;                     /* the table is projected as queries and keys are */
    bool norm;                      /* the table is normalised */
} deberta;

/* The signed bucket of `distance` places. */
static int64_t deberta_bucket(const deberta *d, int64_t distance) {
    int64_t mid = d->buckets / 2, n = distance < 0 ? -distance : distance;
    if (d->buckets < 1 || n <= mid) return distance;
    float scale = (float)log((double)((float)(d->distance_max - 1) / (float)mid));
    float part = (float)log((double)((float)n / (float)mid)) / scale * (float)(mid - 1);
    int64_t bucket = (int64_t)ceilf(part) + mid;
    return distance < 0 ? -bucket : bucket;
}

static int64_t deberta_row(const deberta *d, int64_t bucket) {
    int64_t row = bucket + d->span;
    if (row < 0) return 0;
    return row < 2 * d->span ? row : 2 * d->span - 1;
}

static pith__value *deberta_rows(pith__hf_builder *b, const int64_t *rows, int64_t count,
                                 pith__value *at) {
    return pith__hf_cast(b, PITH_HF_PUT(b, "Gather", pith__hf_i64s(b, rows, count), at), PITH_I32);
}

/* Rows of the table for all pairs: by the bucket of query minus key, and by its negative. */
static void deberta_prepare(pith__hf_builder *b, void *state, pith__value *ids) {
    deberta *d = state;
    const pith__hf_config *c = b->config;
    int64_t reach = 1;
    pith__hf_go_to(b, "encoder.rel_embeddings");
    pith__value *stored =
        pith__hf_tensor(b, ".weight", NULL, 2, (int64_t[]){ 2 * d->span, c->hidden_size });
    d->table = pith__hf_widen(b, stored, stored);
    pith__hf_go_to(b, "encoder.LayerNorm");
    if (d->norm) d->table = pith__hf_norm(b, d->table, c->hidden_size, c->layer_norm_eps, true);
    while (reach < REACH_MAX && deberta_bucket(d, reach) < d->span) reach++;
    int64_t *rows =
        b->status ? NULL : pith__arena_array(b->graph->arena, 2 * (size_t)reach + 1, sizeof *rows);
    if (!rows) {
        pith__hf_made(b, NULL);
        return;
    }
    pith__hf_go_to(b, "distances");
    pith__value *limit = pith__hf_i64_scalar(b, reach), *least = pith__hf_i64_scalar(b, -reach);
    pith__value *at =
        PITH_HF_PUT(b, "Clip", PITH_HF_PUT(b, "Neg", pith__hf_distances(b, ids)), least, limit);
    at = PITH_HF_PUT(b, "Add", at, limit);
    for (int64_t i = -reach; i <= reach; i++)
        rows[reach + i] = deberta_row(d, deberta_bucket(d, i));
    if (d->c2p) d->by_query = deberta_rows(b, rows, 2 * reach + 1, at);
    for (int64_t i = -reach; i <= reach; i++)
        rows[reach + i] = deberta_row(d, -deberta_bucket(d, i));
    if (d->p2c) d->by_key = deberta_rows(b, rows, 2 * reach + 1, at);
}

/* x by rows of the projected table: [batch, heads, sequence, sequence]. */
static pith__value *deberta_by_table(pith__hf_builder *b, const deberta *d, const char *name,
                                     pith__value *x, pith__value *index) {
    int64_t n = b->config->hidden_size, heads = b->config->heads;
    const int64_t split[] = { 2 * d->span, heads, n / heads }, columns[] = { 1, 2, 0 };
    pith__hf_in_layer(b, name);
    pith__value *rows = pith__hf_reshape(b, pith__hf_linear(b, d->table, n, n, true), split, 3);
    pith__value *table = pith__hf_transpose(b, rows, columns, 3);
    return pith__hf_pick(b, x, heads, n / heads, table, true, index);
}

static pith__value *deberta_relate(pith__hf_builder *b, const void *state, pith__value *q,
                                   pith__value *k) {
    const deberta *d = state;
    pith__value *by_query = NULL, *by_key = NULL;
    if (d->c2p) {
        const char *name = d->share ? "attention.self.key_proj" : "attention.self.pos_key_proj";
        by_query = deberta_by_table(b, d, name, q, d->by_query);
    }
    if (d->p2c) {
        const char *name = d->share ? "attention.self.query_proj" : "attention.self.pos_query_proj";
        by_key = deberta_by_table(b, d, name, k, d->by_key);
        by_key = pith__hf_transpose(b, by_key, (int64_t[]){ 0, 1, 3, 2 }, 4);
    }
    if (by_query && by_key) return PITH_HF_PUT(b, "Add", by_query, by_key);
    return by_query ? by_query : by_key;
}

static const pith__hf_encoder_layout deberta_layout = { .layer = "encoder.layer.",
                                                        .query = "attention.self.query_proj",
                                                        .key = "attention.self.key_proj",
                                                        .value = "attention.self.value_proj",
                                                        .attention_out = "attention.output.dense",
                                                        .attention_norm =
                                                            "attention.output.LayerNorm",
                                                        .up = "intermediate.dense",
                                                        .down = "output.dense",
                                                        .norm = "output.LayerNorm",
                                                        .projection = "embeddings.embed_proj",
                                                        .projects_first = true,
                                                        .type_input = true };

static void deberta_read_terms(pith__hf_builder *b, deberta *d) {
    int64_t count;
    pith_str *terms = pith__hf_strings(b, "pos_att_type", 8, &count);
    for (int64_t i = 0; i < count; i++) {
        bool c2p = pith__str_is(terms[i], "c2p"), p2c = pith__str_is(terms[i], "p2c");
        if (!c2p && !p2c)
            pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                          "config.json: pos_att_type \"" PITH_STR_FMT
                          "\" is not supported; supported are c2p, p2c",
                          PITH_STR_ARG(terms[i]));
        d->c2p |= c2p;
        d->p2c |= p2c;
    }
}

static void deberta_read(pith__hf_builder *b, deberta *d) {
    int64_t positions = b->config->positions;
    pith_str norm = pith__hf_string(b, "norm_rel_ebd", "none");
    *d = (deberta){ .buckets = pith__hf_int(b, "position_buckets", -1, -1, 1 << 20),
                    .distance_max = pith__hf_int(b, "max_relative_positions", -1, -1, 1 << 20),
                    .share = pith__hf_bool(b, "share_att_key", false),
                    .norm = pith__str_is(norm, "layer_norm") };
    deberta_read_terms(b, d);
    if (d->distance_max < 1) d->distance_max = positions;
    d->span = d->buckets > 0 ? d->buckets : d->distance_max;
    if (d->buckets > 0 && (d->buckets < 4 || d->distance_max - 1 <= d->buckets / 2))
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: position_buckets is %lld; it must be at least 4, and half of "
                      "it less than "
                      "max_relative_positions",
                      (long long)d->buckets);
    if (!d->norm && !pith__str_is(norm, "none"))
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: norm_rel_ebd \"" PITH_STR_FMT
                      "\" is not supported; supported are layer_norm, none",
                      PITH_STR_ARG(norm));
    if (pith__hf_int(b, "conv_kernel_size", 0, 0, 1 << 16) > 0)
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: conv_kernel_size: the convolution is not supported");
    pith__hf_int(b, "attention_head_size", b->config->hidden_size / b->config->heads,
                 b->config->hidden_size / b->config->heads,
                 b->config->hidden_size / b->config->heads);
}

static pith_status deberta_build(pith__graph *graph, const void *layout,
                                 const pith__hf_config *config, const pith__weights *weights,
                                 const char *weights_name, pith_error *err) {
    pith__hf_builder b;
    deberta d;
    pith__hf_encoder_layout f = *(const pith__hf_encoder_layout *)layout;
    PITH_TRY(pith__hf_begin(&b, graph, config, weights, weights_name, PITH_HF_ENCODER_ANCHOR, err));
    pith__hf_check_sizes(&b);
    pith__hf_check_heads(&b);
    if (b.status) return b.status;
    deberta_read(&b, &d);
    f.has_types = config->types > 0;
    f.no_positions = !pith__hf_bool(&b, "position_biased_input", true);
    f.scale = 1 / sqrt((double)(config->hidden_size / config->heads * (1 + d.c2p + d.p2c)));
    if (pith__hf_bool(&b, "relative_attention", false) && (d.c2p || d.p2c)) {
        f.prepare = deberta_prepare;
        f.relate = deberta_relate;
        f.state = &d;
    }
    return pith__hf_encoder_make(&b, &f);
}

static const pith__hf_keys deberta_keys = {
    .reads = "vocab_size=128100 hidden_size=1536 num_hidden_layers=24 num_attention_heads=24 "
             "intermediate_size=6144 hidden_act=gelu max_position_embeddings=512 type_vocab_size=0 "
             "layer_norm_eps=1e-7 relative_attention=false max_relative_positions=-1 "
             "position_biased_input=true pos_att_type position_buckets=-1 share_att_key=false "
             "norm_rel_ebd=none conv_kernel_size attention_head_size embedding_size "
             "pooler_hidden_act=gelu",
    .ignores =
        "attention_probs_dropout_prob classifier_dropout cls_dropout conv_act conv_groups legacy "
        "max_seq_length padding_idx pooler_dropout pooler_hidden_size pooling_hidden_size",
};

const pith__hf_family pith__hf_family_deberta_v2 = { .model_type = "deberta-v2",
                                                     .build = deberta_build,
                                                     .layout = &deberta_layout,
                                                     .keys = &deberta_keys };
