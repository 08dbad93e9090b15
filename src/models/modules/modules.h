/* modules.h - the settings for embedding in the small files of a model directory, and the modules
 * of sentence-transformers as steps: some are part of the graph, one is the pooling, the others
 * work on a text's vector. */
#ifndef PITH_MODELS_MODULES_MODULES_H
#define PITH_MODELS_MODULES_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/os/file.h"
#include "engine/graph/graph.h"
#include "models/modules/late_interaction.h"
#include "models/modules/rerank_prompt.h"

/* One mode of pooling, four bits of pith__modules.pooling. */
enum {
    PITH_POOL_CLS = 1,
    PITH_POOL_MAX = 2,
    PITH_POOL_MEAN = 3,
    PITH_POOL_MEAN_SQRT = 4, /* sum divided by the square root of the length */
    PITH_POOL_WEIGHTED = 5,  /* mean weighted by position, counted from 1 */
    PITH_POOL_LAST = 6,
    PITH_POOL_MODES = 7,     /* modes are below this */
    PITH_POOL_PARTS_MAX = 8, /* modes whose vectors are concatenated */
    PITH_POOL_BITS = 4
};

typedef struct pith__prompt {
    pith_str name, text;
} pith__prompt;

/* The largest width of a vector. */
#define PITH_MODULE_WIDTH_MAX (1 << 20)

/* What was decided, and by which file (relative to the directory; "" if no file says it). */
typedef struct pith__decision {
    const char *what; /* "pooling" */
    pith_str value, file;
} pith__decision;

/* The activation of a dense step. The numbers are stored in compiled files. */
typedef enum pith__step_activation {
    PITH_STEP_IDENTITY = 0,
    PITH_STEP_TANH = 1,
    PITH_STEP_GELU = 2,
    PITH_STEP_RELU = 3,
    PITH_STEP_SIGMOID = 4,
    PITH_STEP_SILU = 5,
    PITH_STEP_ACTIVATIONS = 6
} pith__step_activation;

typedef enum pith__step_kind {
    PITH_STEP_DENSE = 0,
    PITH_STEP_LAYER_NORM = 1,
    PITH_STEP_NORMALIZE = 2,
    PITH_STEP_STANDARDIZE = 3,
    PITH_STEP_TOP = 4,
    PITH_STEP_KINDS = 5
} pith__step_kind;

/* A step on a text's vector, after pooling. y = activation(weight x + bias) + shortcut; or a norm
 * with weight and bias; or x divided by its length; or (x - mean) / (standard deviation of n - 1 +
 * 1e-5); or zeros but for the `top` largest components that are greater than 0. */
typedef struct pith__vector_step {
    pith__step_kind kind;
    int64_t in, out; /* components; 0 for PITH_STEP_NORMALIZE, which takes any number */
    int64_t top;     /* of PITH_STEP_TOP, at least 1 */
    pith__step_activation activation;
    bool residual;         /* DENSE: x is added to the result, through shortcut if that is not
                              NULL */
    const float *weight;   /* DENSE: [out, in]; LAYER_NORM: [in] */
    const float *bias;     /* [out], or NULL */
    const float *shortcut; /* [out, in], or NULL */
} pith__vector_step;

/* A name by which a caller may ask for a route of a Router module. */
typedef struct pith__route_name {
    pith_str name, route; /* a NUL follows the name */
} pith__route_name;

/* The part of the graph that a module makes of token rows [batch, sequence, width]. */
typedef struct pith__row_step {
    const void *module; /* private to the class */
    /* Returns the new rows, or NULL after it has set *err. Inputs of the graph can be found by
     * name. */
    pith__value *(*append)(pith__graph *graph, pith__value *rows, const void *module,
                           pith_error *err);
    pith_str place; /* of the module, for messages and names of nodes */
} pith__row_step;

/* Weights of tokens, by which means of rows are divided. */
typedef struct pith__row_weights {
    const void *module;
    /* Returns the weights [batch, sequence, 1] of f32, or NULL after it has set *err. */
    pith__value *(*make)(pith__graph *graph, const void *module, pith_error *err);
} pith__row_weights;

/* Builds the graph of a directory whose first module is no Transformer. */
typedef struct pith__input_module {
    const void *module;
    pith_status (*build)(pith__graph *graph, const void *module, pith_error *err);
} pith__input_module;

/* How logits of a masked language model become weights of vocabulary entries. */
typedef struct pith__sparse_settings {
    bool only;    /* the directory is for sparse vectors: it has no pooling for dense ones */
    bool sum;     /* summed over tokens, not maximised */
    bool twice;   /* log(1 + log(1 + relu)), not log(1 + relu) */
    bool words;   /* each token of a text has one weight, whatever it stands for; negative ones
                     count too */
    bool code;    /* the vector behind the pooling is sparse itself */
    int32_t most; /* the largest weights that are kept; 0: all */
} pith__sparse_settings;

/* A vector with a number for each word: how often a text has it, times the word's weight. */
typedef struct pith__bag_settings {
    int32_t words; /* 0: the model is no such thing */
    bool once;     /* a word counts once */
} pith__bag_settings;

typedef struct pith__modules {
    uint32_t pooling;     /* PITH_POOL_* of PITH_POOL_BITS each, the first in the lowest bits; mean
                             by default */
    bool normalize;       /* the last step scales vectors to length 1 */
    bool weighted;        /* the last number of a row is its weight, by whose sum means are
                             divided */
    bool include_prompt;  /* false: pooling ignores the prompt's tokens */
    bool lower_case;      /* texts are made lower case before the tokenizer's own normalizers */
    bool tokenizer_alone; /* tokenizer.json counts without the files beside it, its truncation
                             included */
    bool no_specials;     /* no tokens such as [CLS] are added */
    bool cuts_characters; /* texts are first cut at max_length times the median length of a token,
                             in characters */
    int32_t max_length;   /* 0: not given */
    int32_t positions;    /* tokens for which config.json has positions; 0: not known */
    int32_t pad_token_id;
    int32_t truncate_dim; /* components that are kept if the caller does not say; 0: all */
    pith_str dropped;     /* a token that is left out of texts; size 0: none */
    int32_t dropped_id;   /* such a token by its id; -1: none */
    pith__sparse_settings sparse;
    pith__bag_settings bag;     /* rows are weights of words, [tokens, 1] */
    pith__rerank_prompt rerank; /* of rerankers */
    const pith__prompt *prompts;
    size_t prompt_count;
    pith_str default_prompt;        /* name; data is NULL if none */
    pith_str similarity;            /* the function that vectors are meant for: "cosine"; size 0:
                                       not given */
    pith_str route;                 /* of the Router module; size 0: there is none */
    const pith__route_name *routes; /* [route_count] */
    size_t route_count;
    const pith_str *tasks; /* [task_count] of config.json (lora_adaptations), by the numbers that a
                              network takes */
    size_t task_count;
    int32_t task;             /* the one that is taken; -1: none */
    pith__vector_step *steps; /* between pooling and normalisation */
    size_t step_count, step_capacity;
    pith__decision *decisions;
    size_t decision_count, decision_capacity;
    /* The rest is about files and the graph, and not in compiled models. */
    pith_str max_length_file;  /* that gave max_length, relative to the directory */
    pith_str config_args;      /* settings before those of config.json, "\"key\": value", until they
                                  are applied */
    pith_str folder;           /* of config.json, weights and tokenizer, relative to the directory;
                                  "" for itself */
    pith__input_module input;  /* build is NULL: the folder holds a network */
    pith__row_step *row_steps; /* in the order in which they are appended to the graph */
    size_t row_step_count, row_step_capacity;
    pith__row_weights row_weights; /* make is NULL: none */
    pith__late_interaction late;   /* what modules say about late interaction; see
                                      pith__late_interaction_read */
} pith__modules;

#define PITH_MODULES_INIT                                                                          \
    {                                                                                              \
        .pooling = PITH_POOL_MEAN, .include_prompt = true, .dropped_id = -1, .task = -1,           \
        .rerank = PITH_RERANK_INIT, .folder = PITH_STR("")                                         \
    }

/* The name of the task that is taken; size 0: none. Also of modules that are all zero. */
static inline pith_str pith__modules_task(const pith__modules *m) {
    return m->task >= 0 && (size_t)m->task < m->task_count ? m->tasks[m->task] : PITH_STR("");
}

/* What the settings are read for. */
typedef struct pith__modules_source {
    const char *dir;
    const char *route;   /* which route of a Router to take; NULL: its default */
    pith__files *files;  /* weights of modules stay open in it; NULL: modules are read without their
                            weights */
    const pith_log *log; /* may be NULL */
    const pith_allocator *allocator;
} pith__modules_source;

/* Reads the settings. A missing file leaves the defaults, unless modules.json names it. Unreadable
 * and damaged files are errors, and so are modules that this build cannot run. Strings and weights
 * are in the arena or in source->files. */
pith_status pith__modules_read(pith__modules *modules, const pith__modules_source *source,
                               pith__arena *arena, pith_error *err);

/* Adds a decision; value and file are copied. */
pith_status pith__modules_note(pith__modules *modules, const char *what, pith_str value,
                               pith_str file, pith__arena *arena, pith_error *err);

/* Appends the row steps to output number *output of the graph, which embedding reads, and makes the
 * result another output. Sets *output to its index. A graph that pools by itself, whose output has
 * rank 2, is taken to contain them. */
pith_status pith__modules_append(int *output, pith__graph *graph, const pith__modules *modules,
                                 pith_error *err);

/* Returns the number of tokens at which texts are cut; 0: no limit. The first that is given counts:
 * flag, sentence_bert_config.json, tokenizer_config.json, config.json. The number of positions
 * limits all of them. tokenizer is model_max_length, or 0 if it is not given. */
int32_t pith__modules_max_length(const pith__modules *modules, int32_t flag, int32_t tokenizer);

#endif
