/* api_encode.c - the public functions of pith/encode.h. */
#include "api/entry.h"
#include "models/texts/encode_texts.h"

uint32_t pith_encode_can(const pith_model *model) { return pith__model_encode_can(model); }

pith_status pith_encode(pith_encoded **encoded, const pith_model *model, const pith_str *texts,
                        size_t count, const pith_encode_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_encode(encoded, model, texts, count, options, err));
}

pith_status pith_encode_into(pith_encoded *encoded, const pith_encode_memory *memory,
                             const pith_model *model, const pith_str *texts, size_t count,
                             const pith_encode_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_encode_into(encoded, memory, model, texts, count, options, err));
}

pith_status pith_encode_tokens(pith_encoded **encoded, const pith_model *model,
                               const pith_token_ids *texts, size_t count,
                               const pith_encode_options *options, pith_error *err) {
    PITH_ENTRY(pith__model_encode_tokens(encoded, model, texts, count, options, err));
}

pith_status pith_encode_tokens_into(pith_encoded *encoded, const pith_encode_memory *memory,
                                    const pith_model *model, const pith_token_ids *texts,
                                    size_t count, const pith_encode_options *options,
                                    pith_error *err) {
    PITH_ENTRY(pith__model_encode_tokens_into(encoded, memory, model, texts, count, options, err));
}

void pith_encoded_free(pith_encoded *encoded) { pith__model_free_encoded(encoded); }
