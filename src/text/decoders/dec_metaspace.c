/* dec_metaspace.c - the decoder Metaspace: the visible character becomes a space again. The first
 * token loses its own, unless none was put there. */
#include "text/decoders/decode.h"
#include "text/sources/key_report.h"

typedef struct metaspace {
    pith_str mark;
    bool keep_first;
} metaspace;

static pith_status dec_metaspace_run(const void *self, pith__decoding *d) {
    const metaspace *step = self;
    for (size_t i = 0; i < d->count; i++) {
        PITH_TRY(pith__decoding_look(d, i));
        pith_str with = i || step->keep_first ? PITH_STR(" ") : PITH_STR("");
        if (!pith__decoding_replace(d, &d->tokens[i], step->mark, with)) return PITH_ERR_MEMORY;
    }
    return PITH_OK;
}

/* Newer files have "prepend_scheme", older ones "add_prefix_space"; the newer key wins, whatever
 * the order of the two. */
static void dec_metaspace_parse(const void **self, pith__json *j, pith__loader *loader) {
    metaspace *step = pith__arena_array(loader->arena, 1, sizeof *step);
    pith_str key;
    if (!step) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    step->mark = PITH_STR("\xE2\x96\x81");
    bool has_scheme = false;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__json_null(j)) continue;
        if (pith__str_is(key, "replacement")) {
            step->mark = pith__json_copy(j, loader->arena, pith__json_string(j));
            if (!step->mark.size) pith__json_fail(j, PITH_ERR_FORMAT, "the replacement is empty");
        } else if (pith__str_is(key, "prepend_scheme")) {
            step->keep_first = pith__str_is(pith__json_string(j), "never");
            has_scheme = true;
        } else if (pith__str_is(key, "add_prefix_space")) {
            bool prefix = pith__json_bool(j);
            if (!has_scheme) step->keep_first = !prefix;
        } else {
            pith__key_other(j, loader, key, "split str_rep");
        }
    }
    *self = step;
}

const pith__decoder_desc pith__decoder_Metaspace = { .name = "Metaspace",
                                                     .parse = dec_metaspace_parse,
                                                     .run = dec_metaspace_run };
