/* norm_replace.c - Replace: a fixed text replaces every match of a pattern. */
#include "text/sources/key_report.h"
#include "text/regex/pattern.h"
#include "text/pipeline.h"

typedef struct replace {
    const pith_pattern *pattern;
    pith_str content;
} replace;

static void norm_replace_parse(const void **self, pith_json *j, pith_loader *loader) {
    replace *r = pith_arena_array(loader->arena, 1, sizeof *r);
    pith_str key;
    if (!r) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "pattern"))
            r->pattern = pith_pattern_parse(j, loader);
        else if (pith_str_is(key, "content"))
            r->content = pith_json_copy(j, loader->arena, pith_json_string(j));
        else
            pith_key_other(j, loader, key, "");
    }
    if (!j->failed && (!r->content.data || !r->pattern))
        pith_json_fail(j, PITH_ERR_FORMAT, "needs pattern and content");
    *self = r;
}

/* What replaces a match comes from its last character; in front of everything it comes from nothing. */
static pith_status norm_replace_run(const void *self, pith_encoding *enc, pith_piece piece) {
    const replace *r = self;
    pith_matches matches = pith_pattern_begin(r->pattern, enc, piece);
    uint32_t done = piece.begin, begin, end;
    int found;
    while ((found = pith_pattern_next(&matches, &begin, &end)) != 0) {
        if (found < 0) return enc->err ? enc->err->code : PITH_ERR_RUN;
        if (end - begin == 1 && r->content.size == 1 && enc->text.data[begin] == r->content.data[0])
            continue; /* by itself */
        pith_encoding_copy(enc, done, begin);
        pith_encoding_put(enc, r->content.data, r->content.size, end > 0 ? end - 1 : PITH_ORIGIN_EMPTY);
        done = end;
    }
    pith_encoding_copy(enc, done, piece.end);
    return PITH_OK;
}

static uint32_t norm_replace_nature(const void *self) {
    return pith_pattern_is_local(((const replace *)self)->pattern) ? PITH_STEP_LOCAL : 0;
}

const pith_normalizer_desc pith_normalizer_Replace = { "Replace", 0, norm_replace_parse, norm_replace_run,
                                                       norm_replace_nature };
