/* model2vec.c - config.json of Model2Vec: normalize and max_length. Texts are cut at a number of characters and then at
 * max_length tokens, and unknown tokens are left out. (sentence-transformers does neither: a directory with
 * modules.json is read as it reads it.) Source: model2vec 0.10, model.py. */
#include "models/modules/model2vec.h"

#include "base/error.h"
#include "base/str.h"
#include "models/modules/static_table.h"

/* The length at which texts are cut if config.json does not say. */
#define MODEL2VEC_LENGTH 512
#define MODEL2VEC_LENGTH_MAX (1 << 30)

typedef struct model2vec_config {
    bool is, normalize;
    int32_t max_length;
} model2vec_config;

static void model2vec_read_config(pith_json *j, pith_module_reader *r, void *to) {
    model2vec_config *c = to;
    pith_str key;
    (void)r;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "model_type") && pith_json_peek(j) == PITH_JSON_STRING)
            c->is = c->is || pith_str_is(pith_json_string(j), "model2vec");
        else if (pith_str_is(key, "normalize") && pith_json_peek(j) == PITH_JSON_BOOL)
            c->normalize = pith_json_bool(j);
        else if (pith_str_is(key, "max_length") && pith_json_peek(j) == PITH_JSON_NULL)
            c->max_length = (int32_t)pith_json_limit(j, MODEL2VEC_LENGTH_MAX);
        else if (pith_str_is(key, "max_length") && pith_json_peek(j) == PITH_JSON_NUMBER)
            c->max_length = (int32_t)pith_json_int(j);
        else
            pith_json_skip(j);
    }
}

static void model2vec_read_unknown(pith_json *j, pith_module_reader *r, void *to) {
    pith_str key, inner;
    (void)to;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (!pith_str_is(key, "model")) {
            pith_json_skip(j);
            continue;
        }
        pith_json_object(j);
        while (pith_json_next_key(j, &inner)) {
            if (pith_str_is(inner, "unk_token") && pith_json_peek(j) == PITH_JSON_STRING)
                r->modules->dropped = pith_json_copy(j, r->arena, pith_json_string(j));
            else if (pith_str_is(inner, "unk_id") && pith_json_peek(j) == PITH_JSON_NUMBER)
                r->modules->dropped_id = (int32_t)pith_json_int(j);
            else
                pith_json_skip(j);
        }
    }
}

pith_status pith_model2vec_read(bool *is, pith_module_reader *r) {
    const pith_str here = PITH_STR("");
    model2vec_config c = { .max_length = MODEL2VEC_LENGTH };
    bool there;
    PITH_TRY(pith_module_json(&there, r, here, "config.json", model2vec_read_config, &c));
    *is = c.is;
    if (!c.is) return PITH_OK;
    PITH_TRY(pith_static_table_read(r, here));
    PITH_TRY(pith_module_json(&there, r, here, "tokenizer.json", model2vec_read_unknown, NULL));
    r->modules->max_length = c.max_length;
    r->modules->max_length_file = PITH_STR("config.json");
    r->modules->cuts_characters = true;
    if (!c.normalize) return PITH_OK;
    PITH_TRY(pith_module_add_step(r, &(pith_vector_step){ .kind = PITH_STEP_NORMALIZE }));
    return pith_module_decide(r, "normalize", here, "config.json", "yes");
}
