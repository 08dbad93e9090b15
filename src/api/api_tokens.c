/* api_tokens.c - the public functions of pith/tokens.h. */
#include "api/entry.h"
#include "models/model.h"
#include "models/open/tokenizer_only.h"
#include "text/token_rows.h"
#include "text/tokenizer.h"

pith_status pith_tokenizer_open(pith_tokenizer **tokenizer, const char *path,
                                const pith_open_options *options, pith_error *err) {
    PITH_ENTRY(pith__tokenizer_only_open(tokenizer, path, options, err));
}

void pith_tokenizer_close(pith_tokenizer *tokenizer) { pith__tokenizer_only_close(tokenizer); }

pith_status pith_tokenizer_limit(int32_t *tokens, const pith_tokenizer *tokenizer, const char *path,
                                 pith_error *err) {
    PITH_ENTRY(pith__tokenizer_only_limit(tokens, tokenizer, path, err));
}

int32_t pith_tokenizer_cuts_left(const pith_tokenizer *tokenizer) {
    return pith__tokenizer_left(tokenizer);
}

const pith_tokenizer *pith_model_tokenizer(const pith_model *model) { return model->tokenizer; }

pith_status pith_tokenize(pith_tokens *tokens, const pith_tokenizer *tokenizer, pith_str text,
                          const pith_str *pair, const pith_tokenize_options *options,
                          pith_error *err) {
    PITH_ENTRY(pith__tokenizer_tokenize(tokens, tokenizer, text, pair, options, err));
}

pith_status pith_tokenize_batch(pith_tokens *tokens, size_t *ends, const pith_tokenizer *tokenizer,
                                const pith_str *texts, const pith_str *pairs, size_t count,
                                const pith_tokenize_options *options, pith_error *err) {
    PITH_ENTRY(
        pith__tokenizer_tokenize_batch(tokens, ends, tokenizer, texts, pairs, count, options, err));
}

void pith_tokens_free(pith_tokens *tokens) { pith__token_rows_free(tokens); }

pith_str pith_token_text(const pith_tokenizer *tokenizer, int32_t id) {
    return pith__tokenizer_token(tokenizer, id);
}

pith_status pith_detokenize(char **text, size_t *size, const pith_tokenizer *tokenizer,
                            const int32_t *ids, size_t count, int32_t skip_specials,
                            const pith_call *call, pith_error *err) {
    PITH_ENTRY(
        pith__tokenizer_detokenize(text, size, tokenizer, ids, count, skip_specials, call, err));
}

void pith_text_free(const pith_tokenizer *tokenizer, char *text) {
    pith__tokenizer_free_text(tokenizer, text);
}

pith_status pith_text_stream_create(pith_text_stream **stream, const pith_tokenizer *tokenizer,
                                    int32_t skip_specials, pith_error *err) {
    return pith__tokenizer_stream_create(stream, tokenizer, skip_specials, err);
}

void pith_text_stream_destroy(pith_text_stream *stream) { pith__tokenizer_stream_destroy(stream); }

pith_status pith_text_stream_push(pith_text_stream *stream, pith_str *text, int32_t id,
                                  pith_error *err) {
    PITH_ENTRY(pith__tokenizer_stream_push(stream, text, id, err));
}

pith_status pith_text_stream_finish(pith_text_stream *stream, pith_str *text, pith_error *err) {
    PITH_ENTRY(pith__tokenizer_stream_finish(stream, text, err));
}
