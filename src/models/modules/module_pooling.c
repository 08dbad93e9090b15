/* module_pooling.c - Pooling: the modes and their order. Source: sentence-transformers 6,
 * modules/pooling.py. */
#include "base/error.h"
#include "base/str.h"
#include "models/modules/module_class.h"

/* In the order in which old files concatenate their vectors. */
static const struct {
    const char *key, *name;
    uint32_t mode;
} modes[] = {
    { "pooling_mode_cls_token", "cls", PITH_POOL_CLS },
    { "pooling_mode_max_tokens", "max", PITH_POOL_MAX },
    { "pooling_mode_mean_tokens", "mean", PITH_POOL_MEAN },
    { "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PITH_POOL_MEAN_SQRT },
    { "pooling_mode_weightedmean_tokens", "weightedmean", PITH_POOL_WEIGHTED },
    { "pooling_mode_lasttoken", "lasttoken", PITH_POOL_LAST },
};
enum { MODES = sizeof modes / sizeof *modes };

typedef struct pooling_config {
    bool flags[MODES];
    bool named; /* by pooling_mode, which counts before the flags */
    uint32_t pooling;
    int parts;
} pooling_config;

static void pooling_add_mode(pooling_config *c, uint32_t mode) {
    c->pooling |= mode << (PITH_POOL_BITS * c->parts++);
}

static void read_mode(pith__json *j, pooling_config *c) {
    pith_str name = pith__json_string(j);
    size_t i = 0;
    if (j->failed) return;
    while (i < MODES && !pith__str_is(name, modes[i].name)) i++;
    if (i == MODES)
        pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                        "pooling mode '" PITH_STR_FMT
                        "' is not supported; supported are cls, max, mean, mean_sqrt_len_tokens, "
                        "weightedmean, lasttoken",
                        PITH_STR_ARG(name));
    else if (c->parts == PITH_POOL_PARTS_MAX)
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "more than %d pooling modes", PITH_POOL_PARTS_MAX);
    else
        pooling_add_mode(c, modes[i].mode);
}

/* A name or a list of them, as sentence-transformers 6 writes it. */
static void pooling_read_modes(pith__json *j, pooling_config *c) {
    c->named = true;
    c->pooling = 0;
    c->parts = 0;
    if (pith__json_peek(j) != PITH_JSON_ARRAY) {
        read_mode(j, c);
        return;
    }
    pith__json_array(j);
    while (pith__json_next_item(j)) read_mode(j, c);
    if (!j->failed && !c->parts)
        pith__json_fail(j, PITH_ERR_FORMAT, "the list of pooling modes is empty");
}

static void pooling_read_config(pith__json *j, pith__module_reader *r, void *to) {
    pooling_config *c = to;
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        size_t i = 0;
        while (i < MODES && !pith__str_is(key, modes[i].key)) i++;
        if (i < MODES)
            c->flags[i] = pith__json_bool(j);
        else if (pith__str_is(key, "pooling_mode"))
            pooling_read_modes(j, c);
        else if (pith__str_is(key, "include_prompt"))
            r->modules->include_prompt = pith__json_bool(j);
        else
            pith__json_skip(j);
    }
}

static pith_status pooling_note(pith__module_reader *r, pith_str folder) {
    pith_str text = PITH_STR("");
    for (uint32_t left = r->modules->pooling; left; left >>= PITH_POOL_BITS)
        for (size_t i = 0; i < MODES; i++) {
            if (modes[i].mode != (left & ((1u << PITH_POOL_BITS) - 1))) continue;
            text = pith__arena_printf(r->arena, "%s%s%s", text.data, text.size ? " + " : "",
                                      modes[i].name);
            if (!text.data) return pith__fail_memory(r->err, 64);
        }
    return pith__module_decide(r, "pooling", folder, "config.json", "%s%s", text.data,
                               r->modules->include_prompt ? "" : ", without the prompt's tokens");
}

static pith_status pooling_read(pith__module_reader *r, pith_str folder) {
    pooling_config c = { .parts = 0 };
    PITH_TRY(pith__module_needs(r, PITH_STAGE_ROWS));
    if (r->modules->late.masked)
        return pith__fail(r->err, PITH_ERR_UNSUPPORTED,
                          "it follows a MultiVectorMask, whose mask this version does not pool by");
    r->stage = PITH_STAGE_VECTOR;
    PITH_TRY(pith__module_json(NULL, r, folder, "config.json", pooling_read_config, &c));
    for (size_t i = 0; i < MODES && !c.named; i++)
        if (c.flags[i]) pooling_add_mode(&c, modes[i].mode);
    if (!c.parts)
        c.pooling = PITH_POOL_MEAN; /* as sentence-transformers takes a file that sets no
                                                 mode */
    r->modules->pooling = c.pooling;
    return pooling_note(r, folder);
}

static const pith__module_keys pooling_keys = {
    .file = "config.json",
    .reads = "pooling_mode pooling_mode_cls_token pooling_mode_max_tokens pooling_mode_mean_tokens "
             "pooling_mode_mean_sqrt_len_tokens pooling_mode_weightedmean_tokens "
             "pooling_mode_lasttoken include_prompt",
    .ignores = "embedding_dimension word_embedding_dimension"
};
const pith__module_class pith__module_class_pooling = { .name = "Pooling",
                                                        .read = pooling_read,
                                                        .keys = &pooling_keys };
