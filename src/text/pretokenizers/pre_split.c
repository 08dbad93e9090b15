/* pre_split.c - Split: cuts where a string or an expression matches. */
#include "text/regex/pattern.h"
#include "text/sources/key_report.h"

typedef struct split {
    const pith__pattern *pattern;
    pith__behavior behavior;
    bool invert;
} split;

static pith_status pre_split_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const split *step = self;
    pith__splitter splitter;
    pith__split_begin(&splitter, enc, piece, step->behavior, step->invert);
    pith__matches matches = pith__pattern_begin(step->pattern, enc, piece);
    uint32_t begin, end;
    int found;
    while ((found = pith__pattern_next(&matches, &begin, &end)) > 0)
        pith__split_match(&splitter, begin, end);
    if (enc->stopped) return PITH_OK;
    if (found < 0) return enc->err->code;
    pith__split_end(&splitter);
    return PITH_OK;
}

static void pre_split_parse(const void **self, pith__json *j, pith__loader *loader) {
    split *step = pith__arena_array(loader->arena, 1, sizeof *step);
    pith_str key;
    bool has_behavior = false;
    if (!step) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "pattern"))
            step->pattern = pith__pattern_parse(j, loader);
        else if (pith__str_is(key, "invert"))
            step->invert = pith__json_bool(j);
        else if (pith__str_is(key, "behavior")) {
            step->behavior = pith__json_behavior(j);
            has_behavior = true;
        } else
            pith__key_other(j, loader, key, "");
    }
    if (!j->failed && (!step->pattern || !has_behavior))
        pith__json_fail(j, PITH_ERR_FORMAT, "Split needs a pattern and a behavior");
    *self = step;
}

static uint32_t pre_split_nature(const void *self) {
    const split *step = self;
    bool apart = step->behavior == PITH_SPLIT_ISOLATED || step->behavior == PITH_SPLIT_REMOVED;
    return (pith__pattern_is_local(step->pattern) ? PITH_STEP_LOCAL : 0) |
           (apart && pith__pattern_cuts_words(step->pattern) ? PITH_STEP_CUTS : 0);
}

const pith__pretokenizer_desc pith__pretokenizer_Split = {
    .name = "Split", .parse = pre_split_parse, .run = pre_split_run, .nature = pre_split_nature
};
