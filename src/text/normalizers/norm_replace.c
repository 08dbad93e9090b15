/* norm_replace.c - Replace: a fixed text replaces every match of a pattern. */
#include "text/pipeline.h"
#include "text/regex/pattern.h"
#include "text/sources/key_report.h"

typedef struct replace {
    const pith__pattern *pattern;
    pith_str content;
} replace;

static void norm_replace_parse(const void **self, pith__json *j, pith__loader *loader) {
    replace *r = pith__arena_array(loader->arena, 1, sizeof *r);
    pith_str key;
    if (!r) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "pattern"))
            r->pattern = pith__pattern_parse(j, loader);
        else if (pith__str_is(key, "content"))
            r->content = pith__json_copy(j, loader->arena, pith__json_string(j));
        else
            pith__key_other(j, loader, key, "");
    }
    if (!j->failed && (!r->content.data || !r->pattern))
        pith__json_fail(j, PITH_ERR_FORMAT, "needs pattern and content");
    *self = r;
}

/* What replaces a match comes from its last character; in front of everything it comes from
 * nothing. */
static pith_status norm_replace_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const replace *r = self;
    pith__matches matches = pith__pattern_begin(r->pattern, enc, piece);
    uint32_t done = piece.begin, begin, end;
    int found;
    while ((found = pith__pattern_next(&matches, &begin, &end)) != 0) {
        if (enc->stopped) return PITH_OK;
        if (found < 0) return enc->err ? enc->err->code : PITH_ERR_RUN;
        if (end - begin == 1 && r->content.size == 1 && enc->text.data[begin] == r->content.data[0])
            continue; /* by itself */
        pith__encoding_copy(enc, done, begin);
        pith__encoding_put(enc, r->content.data, r->content.size,
                           end > 0 ? end - 1 : PITH_ORIGIN_EMPTY);
        done = end;
    }
    pith__encoding_copy(enc, done, piece.end);
    return PITH_OK;
}

static uint32_t norm_replace_nature(const void *self) {
    return pith__pattern_is_local(((const replace *)self)->pattern) ? PITH_STEP_LOCAL : 0;
}

const pith__normalizer_desc pith__normalizer_Replace = { "Replace", 0, norm_replace_parse,
                                                         norm_replace_run, norm_replace_nature };
