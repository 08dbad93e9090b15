/* gguf_model.c - see gguf_model.h. The settings become a config.json, so that they are checked as any other. */
#include "hf/gguf_model.h"

#include "base/error.h"
#include "base/gguf_header.h"
#include "base/str.h"
#include "hf/gguf.h"
#include "hf/hf.h"

typedef struct gguf_settings {
    uint64_t layers, hidden, inner, heads, context, pooling;
    double eps;
} gguf_settings;

/* llama.cpp's kinds of pooling; rank is the head of a reranker. */
enum { GGUF_POOL_NONE, GGUF_POOL_MEAN, GGUF_POOL_CLS, GGUF_POOL_LAST, GGUF_POOL_RANK };

static pith_status gguf_model_settings(gguf_settings *s, pith_str bytes, const char *name, pith_error *err) {
    *s = (gguf_settings){ .eps = -1 };
    const struct {
        const char *key;
        uint64_t *count;
    } counts[] = {
        { "bert.block_count", &s->layers },        { "bert.embedding_length", &s->hidden },
        { "bert.feed_forward_length", &s->inner }, { "bert.attention.head_count", &s->heads },
        { "bert.context_length", &s->context },    { "bert.pooling_type", &s->pooling },
    };
    enum { COUNTS = sizeof counts / sizeof *counts, NEEDED = COUNTS - 1 };
    pith_gguf g;
    PITH_TRY(pith_gguf_begin(&g, bytes, name, err));
    while (g.entries) {
        pith_gguf_entry e;
        PITH_TRY(pith_gguf_next(&g, &e));
        for (int i = 0; i < COUNTS; i++)
            if (e.kind == PITH_GGUF_COUNT && pith_str_is(e.key, counts[i].key)) *counts[i].count = e.count;
        if (e.kind == PITH_GGUF_REAL && pith_str_is(e.key, "bert.attention.layer_norm_epsilon")) s->eps = e.real;
    }
    for (int i = 0; i < NEEDED; i++)
        if (!*counts[i].count || *counts[i].count > INT32_MAX)
            return pith_fail(err, PITH_ERR_FORMAT,
                             "%s: no usable setting '%s'; if a config.json lies beside the file, give the directory "
                             "as the model",
                             name, counts[i].key);
    if (!(s->eps >= 0))
        return pith_fail(err, PITH_ERR_FORMAT, "%s: no usable setting 'bert.attention.layer_norm_epsilon'", name);
    if (s->pooling >= GGUF_POOL_RANK)
        return pith_fail(err, PITH_ERR_UNSUPPORTED,
                         "%s: bert.pooling_type %llu; none, mean, cls and last (0 to 3) are known, rerankers are not",
                         name, (unsigned long long)s->pooling);
    return PITH_OK;
}

/* Rows of a table; 0: there is no such tensor, which the builder of the graph reports. */
static long long gguf_model_rows(const pith_weights *weights, const char *name) {
    const pith_tensor *t = pith_weights_find(weights, pith_str_of(name));
    return t && t->rank ? (long long)t->dims[0] : 0;
}

static pith_status gguf_model_modules(pith_modules *m, const gguf_settings *s, const char *name, pith_arena *arena,
                                      pith_error *err) {
    static const struct {
        uint32_t pooling;
        const char *name;
    } poolings[GGUF_POOL_RANK] = { { PITH_POOL_MEAN, "mean" },
                                   { PITH_POOL_MEAN, "mean" },
                                   { PITH_POOL_CLS, "cls" },
                                   { PITH_POOL_LAST, "lasttoken" } };
    *m = (pith_modules)PITH_MODULES_INIT;
    m->pooling = poolings[s->pooling].pooling;
    m->normalize = true;
    m->positions = m->max_length = (int32_t)s->context;
    m->max_length_file = pith_str_of(name);
    PITH_TRY(pith_modules_note(m, "pooling", pith_str_of(poolings[s->pooling].name),
                               s->pooling ? pith_str_of(name) : PITH_STR(""), arena, err));
    return pith_modules_note(m, "normalize", PITH_STR("yes"), PITH_STR(""), arena, err);
}

pith_status pith_gguf_build(pith_graph **graph, pith_modules *modules, pith_str bytes, const char *name,
                            pith_arena *arena, const pith_log *log, pith_error *err) {
    gguf_settings s;
    pith_weights weights;
    pith_hf_config values;
    PITH_TRY(pith_weights_init(&weights, arena, err));
    PITH_TRY(pith_gguf_read(&weights, bytes, name, err));
    PITH_TRY(gguf_model_settings(&s, bytes, name, err));
    PITH_TRY(gguf_model_modules(modules, &s, name, arena, err));
    const pith_str config = pith_arena_printf(
        arena,
        "{\"model_type\":\"bert\",\"num_hidden_layers\":%d,\"hidden_size\":%d,\"intermediate_size\":%d,"
        "\"num_attention_heads\":%d,\"max_position_embeddings\":%lld,"
        "\"type_vocab_size\":%lld,\"vocab_size\":%lld}",
        (int)s.layers, (int)s.hidden, (int)s.inner, (int)s.heads,
        gguf_model_rows(&weights, "embeddings.position_embeddings.weight"),
        gguf_model_rows(&weights, "embeddings.token_type_embeddings.weight"),
        gguf_model_rows(&weights, "embeddings.word_embeddings.weight"));
    if (!config.data) return pith_fail_memory(err, 256);
    PITH_TRY(pith_hf_config_read(&values, config, name, arena, err));
    values.layer_norm_eps = s.eps;
    PITH_TRY(pith_hf_build_weights(graph, &values, &weights, name, arena, log, err));
    (*graph)->producer = PITH_STR("gguf");
    return PITH_OK;
}
