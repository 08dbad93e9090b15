/* pre_metaspace.c - SentencePiece's spaces: written as a visible character and put before the text.
 * Pieces begin at them.
 *
 * The space that is put before a text belongs to the character it precedes. "first" means a piece
 * that begins where the source begins: not one whose first characters a normalizer has removed. */
#include "text/pipeline.h"
#include "text/sources/key_report.h"

typedef enum scheme { ALWAYS, FIRST, NEVER } scheme;

typedef struct metaspace {
    char mark[4]; /* the visible character */
    uint32_t mark_size;
    scheme scheme;
    bool split;
} metaspace;

static bool has_mark(const metaspace *step, const char *p, const char *end) {
    return (size_t)(end - p) >= step->mark_size && memcmp(p, step->mark, step->mark_size) == 0;
}

static bool begins_source(const pith__encoding *enc, pith__piece piece) {
    uint32_t begin, end;
    pith__encoding_range(enc, piece.begin, piece.begin + 1, &begin, &end);
    return begin == 0;
}

/* Writes the text with marks for spaces, and cuts before each mark if asked. A text that begins
 * with a space or mark gets none in front. */
static pith_status pre_metaspace_run(const void *self, pith__encoding *enc, pith__piece piece) {
    const metaspace *step = self;
    const char *text = enc->text.data, *p = text + piece.begin, *end = text + piece.end;
    uint32_t begin = (uint32_t)enc->out.size;
    if (p == end) return PITH_OK;
    bool wanted = step->scheme == ALWAYS || (step->scheme == FIRST && begins_source(enc, piece));
    if (wanted && *p != ' ' && !has_mark(step, p, end))
        pith__encoding_put(enc, step->mark, step->mark_size, piece.begin);
    while (p < end) {
        if (pith__encoding_stops(enc, (size_t)(p - text))) return PITH_OK;
        if (step->split && (*p == ' ' || has_mark(step, p, end))) {
            pith__encoding_emit(enc, begin, (uint32_t)enc->out.size);
            begin = (uint32_t)enc->out.size;
        }
        const char *stop = p + 1;
        if (*p == ' ') pith__encoding_put(enc, step->mark, step->mark_size, (uint32_t)(p++ - text));
        while (stop < end && *stop != ' ' && !has_mark(step, stop, end)) stop++;
        pith__encoding_copy(enc, (uint32_t)(p - text), (uint32_t)(stop - text));
        p = stop;
    }
    pith__encoding_emit(enc, begin, (uint32_t)enc->out.size);
    return PITH_OK;
}

static void pre_metaspace_parse(const void **self, pith__json *j, pith__loader *loader) {
    metaspace *step = pith__arena_array(loader->arena, 1, sizeof *step);
    pith_str key, mark = { NULL, 0 }, name;
    bool has_scheme = false, add_prefix_space = true;
    if (!step) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    step->split = true;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__json_null(j)) continue;
        if (pith__str_is(key, "replacement")) {
            mark = pith__json_string(j);
        } else if (pith__str_is(key, "prepend_scheme")) {
            name = pith__json_string(j);
            has_scheme = true;
            if (pith__str_is(name, "always"))
                step->scheme = ALWAYS;
            else if (pith__str_is(name, "first"))
                step->scheme = FIRST;
            else if (pith__str_is(name, "never"))
                step->scheme = NEVER;
            else
                pith__json_fail(j, PITH_ERR_UNSUPPORTED, "'" PITH_STR_FMT "'", PITH_STR_ARG(name));
        } else if (pith__str_is(key, "add_prefix_space")) {
            add_prefix_space = pith__json_bool(j);
        } else if (pith__str_is(key, "split")) {
            step->split = pith__json_bool(j);
        } else {
            pith__key_other(j, loader, key, "str_rep");
        }
    }
    if (!has_scheme && !add_prefix_space) step->scheme = NEVER;
    if (!j->failed && has_scheme && !add_prefix_space && step->scheme != NEVER)
        pith__json_fail(j, PITH_ERR_FORMAT,
                        "add_prefix_space and prepend_scheme contradict each other");
    const char *p = mark.data;
    if (!j->failed && mark.size) pith__utf8_next(&p);
    if (!j->failed && (!mark.size || p != mark.data + mark.size))
        pith__json_fail(j, PITH_ERR_FORMAT, "the replacement is not one character");
    if (j->failed) return;
    if (step->scheme == FIRST) loader->tokenizer->needs_origins = true;
    step->mark_size = (uint32_t)mark.size;
    memcpy(step->mark, mark.data, mark.size);
    *self = step;
}

static uint32_t pre_metaspace_nature(const void *self) {
    return ((const metaspace *)self)->split ? PITH_STEP_CUTS : 0;
}

const pith__pretokenizer_desc pith__pretokenizer_Metaspace = {
    .name = "Metaspace",
    .flags = PITH_STEP_REWRITES,
    .parse = pre_metaspace_parse,
    .run = pre_metaspace_run,
    .nature = pre_metaspace_nature,
};
