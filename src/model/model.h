/* model.h - what an open model is made of, for the files of this folder. */
#ifndef PITH_MODEL_MODEL_H
#define PITH_MODEL_MODEL_H

#include <pthread.h>

#include "base/account.h"
#include "base/file.h"
#include "compiled/compiled.h"
#include "encode/encoder.h"
#include "opt/pass.h"
#include "pith/session.h"

/* How often an operator stands in the file, subgraphs and functions' bodies not inlined. */
typedef struct pith_op_count {
    pith_str domain, op_type;
    size_t count;
} pith_op_count;

struct pith_model {
    pith_account account;
    pith_log log;
    pith_open_options options; /* allocator and log point at those above; stop_after and input_shapes are not kept */
    pith_arena arena;          /* graphs, tokenizer, everything made at open */
    pith_files files;
    pith_str path, dir; /* what was opened; the directory with its small files, data NULL if there is none */
    const struct pith_reader *reader; /* reader.h; what it was given: */
    pith_str source_bytes;
    const char *source_folder;
    pith_compiled compiled; /* writer is NULL unless the model was opened from such a file */
    bool from_safetensors;
    pith_graph *graph;         /* optimised */
    pith_graph *ragged;        /* its form over packed tokens with the one output embedding wants, or NULL */
    pith_str ragged_reason;    /* why there is none */
    pith_arena text_arena;     /* of text_plan */
    pith_plan *text_plan;      /* of ragged; NULL if there is none */
    pith_tokenizer *tokenizer; /* NULL: none */
    pith_modules modules;
    pith_encoder *encoder; /* NULL: no_text says why */
    int text_output;       /* of graph, which embedding reads; -1: none */
    pith_error no_text;
    pith_port *inputs, *outputs;
    const pith_opt_limits *limits; /* NULL: every pass may run; only while the model is opened */
    pith_report report;            /* with PITH_OPEN_DESCRIBE, as what follows */
    pith_op_count *ops;
    size_t op_count;

    pthread_mutex_t lock; /* of what follows: made when first wanted */
    pith_arena plan_arena;
    pith_plan *plan; /* of graph */
};

/* The plan of the graph as it stands, with the model's own inputs and outputs. Thread-safe. */
pith_status pith_model_plan(const pith_plan **plan, const pith_model *model, pith_error *err);

/* The optimiser as the model's options want it, for a graph of the model's. */
pith_opt pith_model_optimizer(const pith_model *model, pith_graph *graph, pith_error *err);

/* How the model's sessions and its encoder run. */
pith_executor_options pith_model_executor_options(const pith_model *model);

/* Describes values of the model's graph, in model->arena. */
pith_status pith_model_make_ports(pith_port **ports, pith_model *model, pith_value *const *values, size_t count,
                                  pith_error *err);

/* Gives inputs the shapes of options.input_shapes. After the graph was read, before anything is inferred. */
pith_status pith_model_fix_inputs(pith_model *model, pith_error *err);

/* A tensor given for an input against the shape the file declares: a warning, once while *warned stays, or an error if
 * shapes are strict. */
pith_status pith_model_check_input(const pith_model *model, size_t input, const pith_tensor *tensor, bool *warned,
                                   pith_error *err);

/* Counts the operators of a graph into model->ops, sorted by domain and name. */
pith_status pith_model_count_ops(pith_model *model, const pith_graph *graph, pith_error *err);

#endif
