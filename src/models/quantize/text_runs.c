/* text_runs.c - see text_runs.h. */
#include "models/quantize/text_runs.h"

#include "base/error.h"

/* TEXTS_MAX: texts of the caller that are run; more take longer and improve little. TEXTS_AT_ONCE:
 * texts whose rows are kept between the run and what is made of them; more keep threads busier and
 * need more memory. CHUNK_TOKENS: tokens of a chunk, fixed here because a different cut would
 * change the order of sums and so the weights. */
enum { TEXTS_MAX = 1024, TEXTS_AT_ONCE = 8, CHUNK_TOKENS = 256 };

/* The head of calibration: only the rows inside the model are of interest. */
static pith_status ignore_open(const void **state, const pith__head_model *model,
                               const void *request, pith__arena *arena, pith_error *err) {
    (void)model, (void)request, (void)arena, (void)err;
    *state = NULL;
    return PITH_OK;
}

static pith_status ignore_emit(const void *state, const pith__head_rows *rows, pith_error *err) {
    (void)state, (void)rows, (void)err;
    return PITH_OK;
}

size_t pith__text_runs_count(const pith_calibrate_options *options) {
    return options->text_count < TEXTS_MAX ? options->text_count : TEXTS_MAX;
}

pith_status pith__text_runs_all(const pith__text_runs *r) {
    static const pith__head ignore = { .name = "calibrate",
                                       .phase = "calibrate",
                                       .outputs = "",
                                       .open = ignore_open,
                                       .emit = ignore_emit };
    const pith__head_use use = { .head = &ignore };
    const pith_calibrate_options *o = r->options;
    const size_t count = o->text_count, runs = pith__text_runs_count(o);
    for (size_t i = 0; i < runs;) {
        pith_str texts[TEXTS_AT_ONCE];
        size_t some = 0;
        for (; some < TEXTS_AT_ONCE && i < runs; some++, i++)
            texts[some] = o->texts[i * count / runs];
        pith__encode_job job = { .texts = texts,
                                 .count = some,
                                 .threads = 1,
                                 .batch_tokens = CHUNK_TOKENS,
                                 .stop = r->stop };
        PITH_TRY(pith__encoder_run(r->encoder, &job, &use, 1, r->err));
        PITH_TRY(r->after(r->user));
        if (r->done) *r->done += some;
        if (r->done) pith__progress_tell(r->progress, "texts", *r->done, r->total);
        if (r->enough && r->enough(r->user)) return PITH_OK;
    }
    return PITH_OK;
}
