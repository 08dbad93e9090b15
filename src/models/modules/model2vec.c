/* model2vec.c - config.json of Model2Vec: normalize and max_length. Texts are cut at a number of
 * characters and then at max_length tokens, and unknown tokens are left out. (sentence-transformers
 * does neither: a directory with modules.json is read as it reads it.) Source: model2vec 0.10,
 * model.py. */
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

static void model2vec_read_config(pith__json *j, pith__module_reader *r, void *to) {
    model2vec_config *c = to;
    pith_str key;
    (void)r;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "model_type") && pith__json_peek(j) == PITH_JSON_STRING)
            c->is = c->is || pith__str_is(pith__json_string(j), "model2vec");
        else if (pith__str_is(key, "normalize") && pith__json_peek(j) == PITH_JSON_BOOL)
            c->normalize = pith__json_bool(j);
        else if (pith__str_is(key, "max_length") && pith__json_peek(j) == PITH_JSON_NULL)
            c->max_length = (int32_t)pith__json_limit(j, MODEL2VEC_LENGTH_MAX);
        else if (pith__str_is(key, "max_length") && pith__json_peek(j) == PITH_JSON_NUMBER)
            c->max_length = (int32_t)pith__json_int(j);
        else
            pith__json_skip(j);
    }
}

static void model2vec_read_unknown(pith__json *j, pith__module_reader *r, void *to) {
    pith_str key, inner;
    (void)to;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (!pith__str_is(key, "model")) {
            pith__json_skip(j);
            continue;
        }
        pith__json_object(j);
        while (pith__json_next_key(j, &inner)) {
            if (pith__str_is(inner, "unk_token") && pith__json_peek(j) == PITH_JSON_STRING)
                r->modules->dropped = pith__json_copy(j, r->arena, pith__json_string(j));
            else if (pith__str_is(inner, "unk_id") && pith__json_peek(j) == PITH_JSON_NUMBER)
                r->modules->dropped_id = (int32_t)pith__json_int(j);
            else
                pith__json_skip(j);
        }
    }
}

/* Model2Vec has no modules.json: config.json with its own model_type tells. Source:
 * StaticModel.from_pretrained and encode of the package model2vec. Unknown tokens are dropped, and
 * texts are cut in characters before they are tokenised, as there. */
pith_status pith__model2vec_read(bool *is, pith__module_reader *r) {
    const pith_str here = PITH_STR("");
    model2vec_config c = { .max_length = MODEL2VEC_LENGTH };
    bool there;
    PITH_TRY(pith__module_json(&there, r, here, "config.json", model2vec_read_config, &c));
    *is = c.is;
    if (!c.is) return PITH_OK;
    PITH_TRY(pith__static_table_read(r, here));
    PITH_TRY(pith__module_json(&there, r, here, "tokenizer.json", model2vec_read_unknown, NULL));
    r->modules->max_length = c.max_length;
    r->modules->max_length_file = PITH_STR("config.json");
    r->modules->cuts_characters = true;
    if (!c.normalize) return PITH_OK;
    PITH_TRY(pith__module_add_step(r, &(pith__vector_step){ .kind = PITH_STEP_NORMALIZE }));
    return pith__module_decide(r, "normalize", here, "config.json", "yes");
}
