/* family.h - the architectures of Hugging Face directories: each is one file family_<name>.c and
 * one line in select/families.def. */
#ifndef PITH_MODELS_ARCHITECTURES_FAMILY_H
#define PITH_MODELS_ARCHITECTURES_FAMILY_H

#include "engine/graph/graph.h"
#include "formats/weights/safetensors/safetensors.h"
#include "models/architectures/hf_config.h"

typedef struct pith__hf_family {
    const char *model_type; /* of config.json */
    /* Adds inputs, nodes and the output last_hidden_state to an empty graph; layout is the one
     * below. weights_name is for messages. */
    pith_status (*build)(pith__graph *graph, const void *layout, const pith__hf_config *config,
                         const pith__weights *weights, const char *weights_name, pith_error *err);
    const void *layout; /* private to build; a pith__hf_encoder_layout for pith__hf_encoder_build */
    /* For code that goes by another architecture's model_type: is it this one? Asked before
     * families without it. */
    bool (*takes)(const pith__hf_config *config);
    const struct pith__hf_keys *keys; /* of config.json; see hf_keys.h */
} pith__hf_family;

/* Which models of another architecture's model_type are of these families. They are here, and not
 * in the families' files, so that a build without such a family does not take its models for the
 * other architecture's (hf_build.c). */
bool pith__hf_takes_jina_bert(const pith__hf_config *config);
bool pith__hf_takes_jina_xlm_roberta(const pith__hf_config *config);
bool pith__hf_takes_nomic_native(const pith__hf_config *config);

/* Made from select/families.def by select/tables.c, in alphabetical order. */
extern const pith__hf_family *const pith__hf_family_table[];
extern const size_t pith__hf_family_count;

#endif
