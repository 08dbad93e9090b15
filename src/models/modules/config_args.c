/* config_args.c - see config_args.h. Source: transformers, configuration_utils.py (from_dict): an
 * argument takes the place of the attribute. Attributes from which a class computes others when it
 * is made (rotary positions, kinds of layers) are not taken, since an argument comes too late for
 * these. */
#include "models/modules/config_args.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

static const char config_args_known[] = "activation hidden_act hidden_activation layer_norm_eps "
                                        "layer_norm_epsilon norm_eps rms_norm_eps";

static bool config_args_have(pith_str object, pith_str wanted, pith__arena *arena) {
    pith_error err = PITH_ERROR_INIT;
    pith__json j;
    pith_str key;
    bool found = false;
    pith__json_init(&j, object, "config_args", arena, &err);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        found |= pith__str_eq(key, wanted);
        pith__json_skip(&j);
    }
    return found;
}

bool pith__config_arg_take(pith__json *j, pith__module_reader *r, pith_str key) {
    pith__modules *m = r->modules;
    pith_str value;
    const pith__json_kind kind = pith__json_peek(j);
    if (!pith__hf_keys_find(&value, config_args_known, key)) return false;
    if (kind != PITH_JSON_NUMBER && kind != PITH_JSON_STRING) return false;
    value = pith__json_raw(j);
    if (j->failed) return true;
    if (m->config_args.size) {
        const pith_str object =
            pith__arena_printf(r->arena, "{" PITH_STR_FMT "}", PITH_STR_ALL(m->config_args));
        if (!object.data || config_args_have(object, key, r->arena)) {
            pith__json_fail(j, PITH_ERR_FORMAT, "'" PITH_STR_FMT "' is there twice",
                            PITH_STR_ARG(key));
            return true;
        }
    }
    pith_str all =
        pith__arena_printf(r->arena, "%s%s\"" PITH_STR_FMT "\": " PITH_STR_FMT,
                           m->config_args.size ? m->config_args.data : "",
                           m->config_args.size ? ", " : "", PITH_STR_ALL(key), PITH_STR_ALL(value));
    if (!all.data)
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
    else
        m->config_args = all;
    return true;
}

static pith_status config_args_check(pith_str object, const pith__hf_keys *keys, pith__arena *arena,
                                     pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    pith__json j;
    pith_str key, value;
    pith__json_init(&j, object, "config_args", arena, &fault);
    for (pith__json_object(&j); pith__json_next_key(&j, &key);) {
        if (!keys || !pith__hf_keys_find(&value, keys->reads, key))
            return pith__fail(
                err, PITH_ERR_UNSUPPORTED,
                "config_args or config_kwargs of sentence_bert_config.json: '" PITH_STR_FMT
                "' is no setting of this model_type; remove it there",
                PITH_STR_ARG(key));
        pith__json_skip(&j);
    }
    return j.failed ? pith__fail(err, fault.code, "%s", fault.message) : PITH_OK;
}

/* Copies the keys of *from to `at` that the arguments do not have; each is shorter there, or as
 * long. */
static char *config_args_copy(char *at, pith__json *from, pith_str object, pith__arena *arena) {
    pith_str key;
    for (pith__json_object(from); pith__json_next_key(from, &key);) {
        const bool plain = !memchr(key.data, '"', key.size) && !memchr(key.data, '\\', key.size);
        const bool replaced = config_args_have(object, key, arena);
        const pith_str value = pith__json_raw(from);
        if (from->failed) return at;
        if (!plain)
            pith__json_fail(from, PITH_ERR_UNSUPPORTED,
                            "a key with quotes next to config_args is not supported");
        if (replaced) continue;
        *at++ = '"';
        memcpy(at, key.data, key.size);
        at += key.size;
        memcpy(at, "\":", 2);
        memcpy(at + 2, value.data, value.size);
        at += 2 + value.size;
        *at++ = ',';
    }
    return at;
}

pith_status pith__config_args_merge(pith_str *text, pith_str args, const pith__hf_keys *keys,
                                    pith__arena *arena, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    pith__json j;
    pith_str object = pith__arena_printf(arena, "{" PITH_STR_FMT "}", PITH_STR_ALL(args));
    char *merged = pith__arena_alloc(arena, text->size + args.size + 4), *at = merged;
    if (!object.data || !merged) return pith__fail_memory(err, text->size + args.size);
    PITH_TRY(config_args_check(object, keys, arena, err));
    pith__json_init(&j, *text, "config.json", arena, &fault);
    j.python = true;
    *at++ = '{';
    at = config_args_copy(at, &j, object, arena);
    if (j.failed) return pith__fail(err, fault.code, "%s", fault.message);
    memcpy(at, args.data, args.size);
    at += args.size;
    *at++ = '}';
    *text = (pith_str){ merged, (size_t)(at - merged) };
    return PITH_OK;
}
