/* gguf_model.c - see gguf_model.h. */
#include "models/checkpoint/gguf_model.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/log.h"
#include "base/str.h"
#include "formats/weights/gguf/gguf.h"
#include "formats/weights/gguf/gguf_config.h"
#include "models/checkpoint/hf_build.h"

/* llama.cpp's kinds of pooling; rank is the head of a reranker. */
enum { GGUF_POOL_NONE, GGUF_POOL_MEAN, GGUF_POOL_CLS, GGUF_POOL_LAST, GGUF_POOL_RANK };

typedef struct gguf_model {
    pith__gguf_settings settings;
    pith__weights weights;
    pith__modules *modules;
    const char *name;
    pith__arena *arena;
    const pith_log *log;
    pith_error *err;
} gguf_model;

static pith_status gguf_model_note(gguf_model *m, const char *what, pith_str value) {
    return value.size ? pith__modules_note(m->modules, what, value, pith__str_of(m->name), m->arena,
                                           m->err)
                      : PITH_OK;
}

/* ---- modules ---- */

static pith_status gguf_model_pooling(gguf_model *m) {
    static const struct {
        uint32_t pooling;
        const char *name;
    } poolings[GGUF_POOL_RANK] = { { PITH_POOL_MEAN, "mean" },
                                   { PITH_POOL_MEAN, "mean" },
                                   { PITH_POOL_CLS, "cls" },
                                   { PITH_POOL_LAST, "lasttoken" } };
    const char *arch = m->settings.arch->name;
    const uint64_t kind = pith__gguf_setting_count(&m->settings, "pooling_type", GGUF_POOL_NONE);
    if (kind >= GGUF_POOL_RANK)
        return pith__fail(m->err, PITH_ERR_UNSUPPORTED,
                          "%s: %s.pooling_type %llu; none, mean, cls and last (0 to 3) are known, "
                          "rerankers are not",
                          m->name, arch, (unsigned long long)kind);
    if (kind == GGUF_POOL_NONE)
        pith__log_write(m->log, PITH_LOG_WARNING,
                        "%s: '%s.pooling_type' names no pooling; the mean over a text's tokens is "
                        "used, unless another "
                        "pooling is asked for",
                        m->name, arch);
    m->modules->pooling = poolings[kind].pooling;
    return pith__modules_note(m->modules, "pooling", pith__str_of(poolings[kind].name),
                              kind ? pith__str_of(m->name) : PITH_STR(""), m->arena, m->err);
}

/* The numbers of a matrix in f32. */
static pith_status gguf_model_f32(const float **numbers, gguf_model *m, const pith_tensor *t) {
    const size_t count = (size_t)pith__dims_count(t->dims, t->rank);
    *numbers = t->data;
    if (t->dtype == PITH_F32) return PITH_OK;
    float *to = pith__arena_alloc64(m->arena, count * sizeof *to);
    if (!to) return pith__fail_memory(m->err, count * sizeof *to);
    for (size_t i = 0; i < count; i++) {
        const uint16_t half = ((const uint16_t *)t->data)[i];
        to[i] = t->dtype == PITH_F16 ? pith__f32_of_f16(half) : pith__f32_of_bf16(half);
    }
    *numbers = to;
    return PITH_OK;
}

/* The layers dense_2 and dense_3 of EmbeddingGemma, without biases and activations. */
static pith_status gguf_model_dense(gguf_model *m) {
    static const struct {
        const char *tensor, *in, *out;
    } layers[] = { { "dense_2.weight", "dense_2_feat_in", "dense_2_feat_out" },
                   { "dense_3.weight", "dense_3_feat_in", "dense_3_feat_out" } };
    pith__modules *to = m->modules;
    if (!m->settings.arch->windows) return PITH_OK;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const pith_tensor *t = pith__weights_find(&m->weights, pith__str_of(layers[i].tensor));
        const uint64_t in = pith__gguf_setting_count(&m->settings, layers[i].in, 0);
        const uint64_t out = pith__gguf_setting_count(&m->settings, layers[i].out, 0);
        if (!t && !in && !out) continue;
        if (!t || t->rank != 2 || (uint64_t)t->dims[1] != in || (uint64_t)t->dims[0] != out ||
            in < 1 || out < 1 || in > PITH_MODULE_WIDTH_MAX || out > PITH_MODULE_WIDTH_MAX)
            return pith__fail(
                m->err, PITH_ERR_FORMAT,
                "%s: '%s' must be a matrix of the sizes that '%s' and '%s' say (%llu and %llu)",
                m->name, layers[i].tensor, layers[i].in, layers[i].out, (unsigned long long)in,
                (unsigned long long)out);
        pith__vector_step step = { .kind = PITH_STEP_DENSE, .in = t->dims[1], .out = t->dims[0] };
        PITH_TRY(gguf_model_f32(&step.weight, m, t));
        if (!pith__arena_grow(m->arena, (void **)&to->steps, to->step_count, &to->step_capacity,
                              sizeof *to->steps))
            return pith__fail_memory(m->err, sizeof *to->steps);
        to->steps[to->step_count++] = step;
        PITH_TRY(gguf_model_note(m, "module", pith__str_of(layers[i].tensor)));
    }
    return PITH_OK;
}

static pith_status gguf_model_modules(gguf_model *m) {
    int context;
    PITH_TRY(pith__gguf_setting_needed(&context, &m->settings, "context_length"));
    *m->modules = (pith__modules)PITH_MODULES_INIT;
    m->modules->normalize = true;
    m->modules->positions = m->modules->max_length = context;
    m->modules->max_length_file = pith__str_of(m->name);
    PITH_TRY(gguf_model_pooling(m));
    PITH_TRY(gguf_model_dense(m));
    return pith__modules_note(m->modules, "normalize", PITH_STR("yes"), PITH_STR(""), m->arena,
                              m->err);
}

/* ---- tensors ---- */

static bool gguf_model_begins(pith_str name, const char *with) {
    const size_t n = strlen(with);
    return name.size >= n && !memcmp(name.data, with, n);
}

/* Whether the graph, or a module, may have read it. */
static bool gguf_model_takes(const pith__gguf_arch *arch, pith_str name) {
    if (gguf_model_begins(name, arch->layer)) return true;
    for (const pith__gguf_name *n = arch->plain; n->gguf; n++)
        if (gguf_model_begins(name, n->hf)) return true;
    return arch->windows &&
           (gguf_model_begins(name, "dense_2.") || gguf_model_begins(name, "dense_3."));
}

/* Tensors that no one reads: the matrix that predicts tokens and heads of rerankers change no
 * vector, factors of rotary positions do. */
static pith_status gguf_model_tensors(gguf_model *m) {
    for (size_t i = 0; i < m->weights.count; i++) {
        const pith_str name = m->weights.keys[i];
        if (gguf_model_takes(m->settings.arch, name) || pith__str_is(name, "output.weight") ||
            gguf_model_begins(name, "cls."))
            continue;
        if (gguf_model_begins(name, "rope_"))
            return pith__fail(m->err, PITH_ERR_UNSUPPORTED,
                              "%s: tensor '" PITH_STR_FMT
                              "', factors of rotary positions, is not supported",
                              m->name, PITH_STR_ARG(name));
        pith__log_write(m->log, PITH_LOG_WARNING,
                        "%s: tensor '" PITH_STR_FMT
                        "' is not known for the architecture %s and is ignored",
                        m->name, PITH_STR_ARG(name), m->settings.arch->name);
    }
    return PITH_OK;
}

static pith_status gguf_model_graph(pith__graph **graph, gguf_model *m) {
    pith__hf_config values;
    pith_str config, read, ignored, unknown;
    PITH_TRY(pith__gguf_config(&config, &m->settings, &m->weights, m->arena));
    PITH_TRY(gguf_model_modules(m));
    PITH_TRY(gguf_model_tensors(m));
    PITH_TRY(pith__gguf_settings_check(&read, &ignored, &unknown, &m->settings, m->arena, m->log));
    PITH_TRY(gguf_model_note(m, "settings read", read));
    PITH_TRY(gguf_model_note(m, "settings ignored", ignored));
    PITH_TRY(gguf_model_note(m, "settings not known", unknown));
    PITH_TRY(pith__hf_config_read(&values, config, m->name, m->arena, m->err));
    PITH_TRY(
        pith__hf_build_weights(graph, &values, &m->weights, m->name, m->arena, m->log, m->err));
    (*graph)->producer = PITH_STR("gguf");
    return PITH_OK;
}

pith_status pith__gguf_build(pith__graph **graph, pith__modules *modules, pith_str bytes,
                             const char *name, pith__arena *arena, const pith_log *log,
                             pith_error *err) {
    gguf_model m = { .modules = modules, .name = name, .arena = arena, .log = log, .err = err };
    PITH_TRY(pith__weights_init(&m.weights, arena, err));
    PITH_TRY(pith__gguf_read(&m.weights, bytes, name, err));
    PITH_TRY(pith__gguf_settings_read(&m.settings, bytes, name, arena, err));
    pith__gguf_setting_count(&m.settings, "general.alignment", 0); /* pith__gguf_read has read it */
    return gguf_model_graph(graph, &m);
}
