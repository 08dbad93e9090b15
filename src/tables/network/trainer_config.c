/* trainer_config.c - the configuration of a model: JSON over the defaults. */
#include "base/error.h"
#include "base/formats/json.h"
#include "base/str.h"
#include "tables/network/trainer.h"

static int32_t config_whole(pith__json *j, int32_t low, int32_t high) {
    const int64_t x = pith__json_int(j);
    if (!j->failed && (x < low || x > high))
        pith__json_fail(j, PITH_ERR_FORMAT, "%lld is not from %d to %d", (long long)x, (int)low,
                        (int)high);
    return j->failed ? low : (int32_t)x;
}

static double config_fraction(pith__json *j, double most) {
    const double x = pith__json_double(j);
    if (!j->failed && !(x >= 0 && x <= most))
        pith__json_fail(j, PITH_ERR_FORMAT, "the number is out of range");
    return x;
}

static unsigned config_attend(pith__json *j) {
    unsigned kinds = 0;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        const pith_str name = pith__json_string(j);
        unsigned k = 0;
        while (k < PITH_ATTEND_KINDS && !pith__str_is(name, pith__attend_names[k])) k++;
        if (k == PITH_ATTEND_KINDS && !j->failed)
            pith__json_fail(j, PITH_ERR_FORMAT,
                            "'" PITH_STR_FMT
                            "' is no attention; there are column, feature, neighbour, full",
                            PITH_STR_ARG(name));
        else
            kinds |= 1u << k;
    }
    return kinds;
}

static bool config_shape(pith__json *j, pith__trainer_config *c, pith_str key) {
    if (pith__str_is(key, "dim"))
        c->shape.dim = config_whole(j, 16, 1024);
    else if (pith__str_is(key, "heads"))
        c->shape.heads = config_whole(j, 1, 64);
    else if (pith__str_is(key, "ff"))
        c->shape.ff = config_whole(j, 16, 4096);
    else if (pith__str_is(key, "blocks"))
        c->shape.blocks = config_whole(j, 1, PITH_NETWORK_BLOCKS);
    else if (pith__str_is(key, "attend"))
        c->shape.attend = config_attend(j);
    else
        return false;
    return true;
}

static void config_member(pith__json *j, pith__trainer_config *c, pith_str key) {
    if (config_shape(j, c, key)) return;
    if (pith__str_is(key, "batch"))
        c->batch = config_whole(j, 1, 4096);
    else if (pith__str_is(key, "steps"))
        c->steps = config_whole(j, 0, 100000000);
    else if (pith__str_is(key, "warmup"))
        c->warmup = config_whole(j, 1, 100000000);
    else if (pith__str_is(key, "rate"))
        c->rate = config_fraction(j, 1);
    else if (pith__str_is(key, "weight_decay"))
        c->decay = config_fraction(j, 1);
    else if (pith__str_is(key, "clip"))
        c->clip = config_fraction(j, 1e9);
    else if (pith__str_is(key, "width"))
        c->sample.width = (uint32_t)config_whole(j, 1, 256);
    else if (pith__str_is(key, "cells"))
        c->sample.cells = (uint32_t)config_whole(j, 16, 8192);
    else if (pith__str_is(key, "latest"))
        c->sample.latest = (uint32_t)config_whole(j, 0, 256);
    else if (pith__str_is(key, "lone_children"))
        c->sample.lone_children = pith__json_bool(j);
    else if (pith__str_is(key, "ages_alone"))
        c->sample.ages_alone = pith__json_bool(j);
    else if (pith__str_is(key, "hide_children"))
        c->sample.hide_children = pith__json_bool(j);
    else if (pith__str_is(key, "no_text"))
        c->sample.no_text = pith__json_bool(j);
    else
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "there is no member '" PITH_STR_FMT "'; docs/relational.md lists them",
                        PITH_STR_ARG(key));
}

/* JSON over the defaults, which docs/relational.md lists. Members that are not known are refused,
 * since one that is misspelt would leave its default without notice. Sizes are multiples of 16, so
 * that rows of a head and of the inner layer are whole vectors. */
pith_status pith__trainer_configure(pith__trainer_config *config, pith_str text, pith__arena *arena,
                                    pith_error *err) {
    pith__trainer_config c = {
        .shape = { .dim = 32, .heads = 2, .ff = 96, .blocks = 2, .attend = 7 },
        .sample = { .width = 40, .cells = 512, .latest = 20 },
        .batch = 32,
        .steps = 1600,
        .warmup = 200,
        .rate = 2e-3,
        .decay = 0.05,
        .clip = 1
    };
    pith_error own = PITH_ERROR_INIT;
    if (!err) err = &own;
    if (text.data) {
        pith__json *j = pith__arena_alloc(arena, sizeof *j);
        pith_str key;
        if (!j) return pith__fail_memory(err, sizeof *j);
        pith__json_init(j, text, "configuration", arena, err);
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) config_member(j, &c, key);
        if (!j->failed) pith__json_finish(j);
        if (j->failed) return err->code;
    }
    if (c.shape.dim % 16 || c.shape.ff % 16 || c.shape.dim % (c.shape.heads * 16) ||
        !c.shape.attend)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "configuration: ff must be a multiple of 16, dim one of 16 times heads, "
                          "and some attention must be on");
    *config = c;
    return PITH_OK;
}
