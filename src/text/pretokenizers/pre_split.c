/* pre_split.c - Split: cuts where a string or an expression matches. */
#include "text/sources/key_report.h"
#include "text/regex/pattern.h"

typedef struct split {
    const pith_pattern *pattern;
    pith_behavior behavior;
    bool invert;
} split;

static pith_status pre_split_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const split *step = self;
    pith_splitter splitter;
    pith_split_begin(&splitter, enc, piece, step->behavior, step->invert);
    pith_matches matches = pith_pattern_begin(step->pattern, enc, piece);
    uint32_t begin, end;
    int found;
    while ((found = pith_pattern_next(&matches, &begin, &end)) > 0) pith_split_match(&splitter, begin, end);
    if (found < 0) return enc->err->code;
    pith_split_end(&splitter);
    return PITH_OK;
}

static void pre_split_parse(const void **self, pith_json *j, pith_loader *loader) {
    split *step = pith_arena_array(loader->arena, 1, sizeof *step);
    pith_str key;
    bool has_behavior = false;
    if (!step) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "pattern"))
            step->pattern = pith_pattern_parse(j, loader);
        else if (pith_str_is(key, "invert"))
            step->invert = pith_json_bool(j);
        else if (pith_str_is(key, "behavior")) {
            step->behavior = pith_json_behavior(j);
            has_behavior = true;
        } else
            pith_key_other(j, loader, key, "");
    }
    if (!j->failed && (!step->pattern || !has_behavior))
        pith_json_fail(j, PITH_ERR_FORMAT, "Split needs a pattern and a behavior");
    *self = step;
}

static uint32_t pre_split_nature(const void *self) {
    const split *step = self;
    bool apart = step->behavior == PITH_SPLIT_ISOLATED || step->behavior == PITH_SPLIT_REMOVED;
    return (pith_pattern_is_local(step->pattern) ? PITH_STEP_LOCAL : 0) |
           (apart && pith_pattern_cuts_words(step->pattern) ? PITH_STEP_CUTS : 0);
}

const pith_pretokenizer_desc pith_pretokenizer_Split = {
    .name = "Split", .parse = pre_split_parse, .run = pre_split_run, .nature = pre_split_nature
};
