/* embed_texts.c - embedding with an open model: the caller's options become a job of the encoder
 * and a request to a head. */
#include "models/texts/embed_texts.h"

#include "base/caller_options.h"
#include "base/error.h"
#include "base/os/threads.h"
#include "base/str.h"
#include "models/encode/given_tokens.h"
#include "models/heads/dense_request.h"
#include "models/heads/word_weights_request.h"
#include "models/modules/answer_logit.h"
#include "models/quantize/calibrate.h"

pith_status pith__model_check_dense(const pith_model *m, pith_error *err) {
    if (!m->text.encoder)
        return pith__fail(err, m->no_text.code ? m->no_text.code : PITH_ERR_UNSUPPORTED,
                          "this model cannot embed text: %s", m->no_text.message);
    const pith_str name = pith__graph_output_name(m->graph, (size_t)m->text.outputs[0]);
    if (pith__str_is(name, PITH_ANSWER_OUTPUT))
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the model has no dense vectors: its graph gives logits of a vocabulary "
                          "only, for scores of "
                          "pairs of texts (rerank)");
    if (!pith__str_is(name, PITH_BM42_OUTPUT)) return PITH_OK;
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "the model has no dense vectors: its graph gives attention only, for the "
                      "sparse vectors of BM42 "
                      "(PITH_ENCODE_SPARSE)");
}

static pith_status embed_complete(pith_embed_options *o, const pith_embed_options *given,
                                  const pith_model *m, pith_error *err) {
    *o = (pith_embed_options)PITH_EMBED_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(*o, given, err);
    return m->text.encoder ? PITH_OK
                           : pith__fail(err, m->no_text.code, "this model cannot embed text: %s",
                                        m->no_text.message);
}

/* The same, for what makes or counts dense vectors. */
static pith_status embed_complete_dense(pith_embed_options *o, const pith_embed_options *given,
                                        const pith_model *m, pith_error *err) {
    PITH_TRY(embed_complete(o, given, m, err));
    return pith__model_check_dense(m, err);
}

static pith__dense_request dense_request(const pith_embed_options *o, float *vectors) {
    return (pith__dense_request){
        .pooling = o->pooling, .normalize = o->normalize, .dim = o->dim, .vectors = vectors
    };
}

static pith__encode_job encode_job(const pith_embed_options *o, const pith_str *texts, size_t count,
                                   pith__stop *stop, pith__progress *progress) {
    return (pith__encode_job){ .texts = texts,
                               .count = count,
                               .prompt_name = o->prompt_name,
                               .threads = o->call.threads,
                               .max_length = o->max_length,
                               .batch_tokens = o->batch_tokens,
                               .stop = stop,
                               .progress = progress,
                               .profile = o->call.profile,
                               .stats = o->stats,
                               .results = o->results,
                               .failures = o->failures,
                               .batching = o->batching };
}

size_t pith__model_embed_dim(const pith_model *model, const pith_embed_options *options) {
    pith_embed_options o;
    pith__dense_request dense;
    if (embed_complete_dense(&o, options, model, NULL)) return 0;
    dense = dense_request(&o, NULL);
    return pith__dense_dim(pith__encoder_model(model->text.encoder, 0), &dense);
}

size_t pith__model_embed_max_length(const pith_model *model, const pith_embed_options *options) {
    pith_embed_options o;
    return embed_complete(&o, options, model, NULL)
               ? 0
               : (size_t)pith__encoder_max_length(model->text.encoder, o.max_length);
}

pith_status pith__model_predict(pith_memory_need *need, const pith_model *model, size_t count,
                                size_t tokens, const pith_embed_options *options, pith_error *err) {
    pith_embed_options o;
    PITH_TRY(embed_complete(&o, options, model, err));
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    pith__encode_job job = encode_job(&o, NULL, count, stop, NULL);
    return pith__account_explain(
        &model->account, pith__encoder_predict(need, model->text.encoder, &job, tokens, err), err);
}

/* Of texts, or of given ones; the options are complete. */
static pith_status embed_run(float *vectors, const pith_model *model, const pith_str *texts,
                             const pith__given_tokens *given, size_t count,
                             const pith_embed_options *o, pith_error *err) {
    pith__dense_request dense = dense_request(o, vectors);
    pith__stop own, *stop = pith__stop_begin(&own, &o->call);
    pith__progress told;
    pith__encode_job job = encode_job(o, texts, count, stop, pith__progress_begin(&told, &o->call));
    pith__head_use use = { .request = &dense };
    job.given = given;
    pith_status status = pith__head_find(&use.head, "dense", err);
    if (!status) status = pith__encoder_run(model->text.encoder, &job, &use, 1, err);
    return pith__account_explain(&model->account, status, err);
}

pith_status pith__model_embed(float *vectors, const pith_model *model, const pith_str *texts,
                              size_t count, const pith_embed_options *options, pith_error *err) {
    pith_embed_options o;
    PITH_TRY(embed_complete_dense(&o, options, model, err));
    return embed_run(vectors, model, texts, NULL, count, &o, err);
}

pith_status pith__model_embed_tokens(float *vectors, const pith_model *model,
                                     const pith_token_ids *texts, size_t count,
                                     const pith_embed_options *options, pith_error *err) {
    pith_embed_options o;
    pith__given_tokens given;
    PITH_TRY(embed_complete_dense(&o, options, model, err));
    if (o.stats) o.stats->texts_done = 0;
    PITH_TRY(pith__given_tokens_begin(&given, texts, o.max_length, o.prompt_name, err));
    o.prompt_name = "";
    return embed_run(vectors, model, NULL, &given, count, &o, err);
}

pith_status pith__model_next_chunk(pith_chunk *chunk, const pith_model *model, pith_str text,
                                   const pith_chunk_options *options, pith_error *err) {
    pith_chunk_options o = PITH_CHUNK_OPTIONS_INIT;
    pith_embed_options embed;
    pith__stop own;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(embed_complete(&embed, o.embed, model, err));
    if (embed.max_length < 0)
        return pith__fail(err, PITH_ERR_ARGUMENT, "max_length must not be negative");
    pith_status status =
        pith__encoder_next_chunk(chunk, model->text.encoder, text, embed.max_length, o.overlap,
                                 embed.prompt_name, pith__stop_begin(&own, &o.call), err);
    return pith__account_explain(&model->account, status, err);
}

pith_status pith__model_mean_chunks(float *mean, const pith_model *model, const double *sums,
                                    uint64_t tokens, const pith_embed_options *options,
                                    pith_error *err) {
    pith_embed_options o;
    PITH_TRY(embed_complete_dense(&o, options, model, err));
    if (!tokens) return pith__fail(err, PITH_ERR_ARGUMENT, "chunks without tokens have no mean");
    const pith__dense_request dense = dense_request(&o, NULL);
    return pith__dense_mean(mean, pith__encoder_model(model->text.encoder, 0), &dense, sums,
                            (double)tokens, err);
}

static pith_status check_calibrate(const pith_model *m, pith_error *err) {
    if (m->compiled.writer)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the model is compiled: calibrate before saving it");
    if (m->options.precision != PITH_PRECISION_INT8)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "only int8 weights are calibrated: open the model with precision int8");
    if (!m->text.encoder)
        return pith__fail(err, m->no_text.code, "this model cannot embed text: %s",
                          m->no_text.message);
    return PITH_OK;
}

pith_status pith__model_round(pith_model *model, const pith_calibrate_options *options,
                              pith_error *err) {
    pith_calibrate_options o = PITH_CALIBRATE_OPTIONS_INIT;
    PITH_TAKE_OPTIONS(o, options, err);
    PITH_TRY(pith__threads_check(o.call.threads, err));
    const pith__plan *whole;
    pith__stop own, *stop = pith__stop_begin(&own, &o.call);
    pith_status status = check_calibrate(model, err);
    if (!status) status = pith__stop_check(stop, err);
    if (!status) status = pith__model_plan(&whole, model, stop, err);
    if (!status) {
        pith__calibrate_parts parts = {
            model->text.encoder, { whole, NULL }, model->tokenizer, model->options.call.allocator
        };
        if (model->text.ragged)
            parts.plans[0] = pith__program_plan(&model->text.program), parts.plans[1] = whole;
        status = pith__calibrate(&parts, &o, err);
    }
    return pith__account_explain(&model->account, status, err);
}
