/* module_sparse_auto_encoder.c - SparseAutoEncoder: a text's vector becomes a longer one of which a
 * few components are not 0. Only the encoder is needed. The vector is standardised (if the settings
 * say so), goes through a dense layer, and keeps its largest components. Source:
 * sentence-transformers 6.2, sparse_encoder/modules/sparse_auto_encoder.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

typedef struct module_code {
    int64_t in, out, top;
    bool standardize;
} module_code;

static void code_read_config(pith__json *j, pith__module_reader *r, void *to) {
    module_code *c = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "input_dim"))
            c->in = pith__json_int(j);
        else if (pith__str_is(key, "hidden_dim"))
            c->out = pith__json_int(j);
        else if (pith__str_is(key, "k"))
            c->top = pith__json_int(j);
        else if (pith__str_is(key, "normalize"))
            c->standardize = pith__json_bool(j);
        else
            pith__json_skip(j);
    }
    if (!j->failed && (c->in < 1 || c->in > PITH_MODULE_WIDTH_MAX || c->out < 1 ||
                       c->out > PITH_MODULE_WIDTH_MAX || c->top < 1 || c->top > c->out))
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "input_dim is %lld and hidden_dim %lld, each from 1 to %d; k is %lld, from "
                        "1 to hidden_dim",
                        (long long)c->in, (long long)c->out, PITH_MODULE_WIDTH_MAX,
                        (long long)c->top);
}

/* weight (x - before) + after as weight x + bias, the bias summed in double. */
static pith_status code_fold_bias(pith__vector_step *s, pith__module_reader *r, const float *before,
                                  const float *after) {
    if (!s->weight) return PITH_OK;
    float *bias = pith__arena_array(r->arena, (size_t)s->out, sizeof *bias);
    if (!bias) return pith__fail_memory(r->err, (size_t)s->out * sizeof *bias);
    for (int64_t i = 0; i < s->out; i++) {
        double sum = (double)after[i];
        for (int64_t k = 0; k < s->in; k++)
            sum -= (double)s->weight[i * s->in + k] * (double)before[k];
        bias[i] = (float)sum;
    }
    s->bias = bias;
    return PITH_OK;
}

static pith_status code_read(pith__module_reader *r, pith_str folder) {
    module_code c = { .out = 512, .top = 8 };
    pith__weights weights;
    const char *file;
    const float *before, *after;
    PITH_TRY(pith__module_needs(r, PITH_STAGE_VECTOR));
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", code_read_config, &c));
    PITH_TRY(pith__module_weights(&weights, &file, r, folder));
    pith__vector_step dense = {
        .kind = PITH_STEP_DENSE, .in = c.in, .out = c.out, .activation = PITH_STEP_IDENTITY
    };
    const int64_t dims[] = { c.out, c.in };
    /* The decoder has the same matrix, and a file with one name for it may have that of the
     * decoder. */
    const bool turned = r->source->files &&
                        !pith__weights_find(&weights, PITH_STR("encoder.weight")) &&
                        pith__weights_find(&weights, PITH_STR("decoder.linear.weight"));
    const char *name = turned ? "decoder.linear.weight" : "encoder.weight";
    PITH_TRY(pith__module_tensor(&dense.weight, r, &weights, file, name, 2, dims));
    PITH_TRY(pith__module_tensor(&before, r, &weights, file, "pre_bias", 1, &c.in));
    PITH_TRY(pith__module_tensor(&after, r, &weights, file, "latent_bias", 1, &c.out));
    PITH_TRY(code_fold_bias(&dense, r, before, after));
    if (c.standardize)
        PITH_TRY(pith__module_add_step(
            r, &(pith__vector_step){ .kind = PITH_STEP_STANDARDIZE, .in = c.in, .out = c.in }));
    PITH_TRY(pith__module_add_step(r, &dense));
    PITH_TRY(pith__module_add_step(
        r, &(pith__vector_step){ .kind = PITH_STEP_TOP, .in = c.out, .out = c.out, .top = c.top }));
    r->modules->sparse.code = true;
    return pith__module_decide(r, "sparse", folder, file,
                               "SparseAutoEncoder, the %lld largest of %lld%s", (long long)c.top,
                               (long long)c.out, c.standardize ? ", of standardised vectors" : "");
}

static const pith__module_keys sparse_auto_encoder_keys = { .file = "config.json",
                                                            .reads =
                                                                "input_dim hidden_dim k normalize",
                                                            .ignores = "k_aux dead_threshold" };
const pith__module_class pith__module_class_sparse_auto_encoder = {
    .name = "SparseAutoEncoder", .read = code_read, .keys = &sparse_auto_encoder_keys
};
