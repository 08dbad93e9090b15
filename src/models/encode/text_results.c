/* text_results.c - see text_results.h. */
#include "models/encode/text_results.h"

#include <string.h>

#include "base/error.h"
#include "base/optional_part.h"

/* A text without a result has a row without tokens. */
static void results_note(const encode_call *c, size_t text, const pith_error *fault) {
    const size_t number = c->first_text + text;
    if (fault) c->rows[text] = (pith__row){ .count = 0 };
    if (fault) c->truncated[text] = 0;
    c->job->results[number] =
        (pith_text_result){ fault ? fault->code : PITH_OK, (uint32_t)c->rows[text].count,
                            c->truncated[text] };
    if (!c->job->failures) return;
    if (fault)
        c->job->failures[number] = *fault;
    else
        c->job->failures[number].code = c->job->failures[number].message[0] = 0;
}

static pith_status results_emit_bad(encode_call *c, pith_error *err) {
    for (size_t i = 0; i < c->count; i++)
        if (c->job->results[c->first_text + i].status)
            PITH_TRY(pith__encode_emit_empty(c, i, true, err));
    return PITH_OK;
}

/* What heads say of a text names it already. */
void pith__encode_run_apart(encode_call *c, encode_worker *w, const encode_chunk *k) {
    for (size_t i = k->first; i < k->first + k->count; i++) {
        pith_error fault = PITH_ERROR_INIT;
        pith_status status = pith__encode_try_chunk(c, w, &(encode_chunk){ i, 1 }, &fault);
        if (!status) continue;
        if (pith__encode_is_of_text(status) && strncmp(fault.message, "text ", 5))
            pith__fail_at(&fault, status, "text %zu: ", c->first_text + c->order[i]);
        pith__encode_fail_text(c, w, &fault, c->order[i]);
    }
}

const pith__part pith__part_results = { "results", &(const pith__text_results_part){
                                                       results_note, pith__encode_run_apart,
                                                       results_emit_bad } };
