/* model.h - what an open model is made of; shared by pith.c, which opens it, save.c, which writes it, describe.c, which
 * tells of it, defaults.c, input_shapes.c and lone_tokenizer.c. */
#ifndef PITH_MODEL_H
#define PITH_MODEL_H

#include <pthread.h>

#include "base/account.h"
#include "base/file.h"
#include "compiled/compiled.h"
#include "encode/encoder.h"
#include "opt/pass.h"

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
    pith_str path, dir;     /* what was opened; the directory with its small files, data NULL if there is none */
    pith_str onnx;          /* bytes of the ONNX file, data NULL if it was none */
    const char *onnx_dir;   /* of its external data; NULL: there is none */
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

/* Options of any size up to ours over the defaults; false if theirs have none. */
bool pith_options_take(void *mine, size_t my_size, const void *theirs);

#define PITH_TAKE_OPTIONS(mine, theirs, err)                                                                           \
    if (!pith_options_take(&(mine), sizeof(mine), theirs))                                                             \
    return pith_fail(err, PITH_ERR_ARGUMENT, "options without a size: begin with their _INIT macro")

/* The plan of the graph as it stands, with the model's own inputs and outputs. Thread-safe. */
pith_status pith_model_plan(const pith_plan **plan, const pith_model *model, pith_error *err);

/* The optimiser as the model's options want it, for a graph of the model's. */
pith_opt pith_model_optimizer(const pith_model *model, pith_graph *graph, pith_error *err);

/* The model planned again with some inputs that have a default made ordinary ones; a session that is fed other values
 * for them keeps one. */
typedef struct pith_fed pith_fed;
/* open: by input, those that are fed; apart: every axis of an input has a symbol of its own; options: of its executor.
 * Thread-safe; the model must outlive it. */
pith_status pith_fed_create(pith_fed **fed, const pith_model *model, const bool *open, bool apart,
                            const pith_executor_options *options, pith_error *err);
void pith_fed_destroy(pith_fed *fed); /* NULL is fine */
/* The executor to run on. Opened inputs that are not given get their defaults here; inputs in the graph's order. */
pith_executor *pith_fed_ready(const pith_fed *fed, pith_tensor *inputs);
/* Whether a tensor given for an input that has a default differs from it. */
bool pith_fed_needs(const pith_model *model, size_t input, const pith_tensor *tensor);
/* Sizes by symbolic name, while the inputs of a run are compared; and the axis that has another one. */
typedef struct pith_named_sizes {
    struct pith_named_size {
        bool given; /* false between calls */
        size_t input;
        int64_t size;
    } * items; /* by symbol of the model's graph */
    int32_t symbol;
    size_t input;
    int axis;
    int64_t size;
} pith_named_sizes;
/* Whether axes of inputs that have one symbol are given different sizes, in a model that can be planned for that. */
bool pith_fed_apart(const pith_model *model, const pith_tensor *inputs, pith_named_sizes *sizes);
/* "input 'b' has size 3 at axis 1, where input 'a' makes sequence 2", after they differed. */
const char *pith_named_sizes_text(const pith_named_sizes *sizes, const pith_model *model, char *buffer, size_t size);
/* Whether all inputs that `open` marks are opened, and axes have symbols of their own if `apart`. */
bool pith_fed_has(const pith_fed *fed, const bool *open, bool apart);

/* What the model's passes made, out of a compiled file: graphs, ports, modules, report. file outlives the model. */
pith_status pith_model_load(pith_model *model, pith_str file, pith_error *err);
/* Parts of a compiled file that are of use alone. */
pith_status pith_compiled_tokenizer(pith_tokenizer **tokenizer, const pith_compiled *compiled,
                                    const pith_open_options *options, pith_arena *arena, pith_error *err);
pith_status pith_compiled_modules(pith_modules *modules, const pith_compiled *compiled, pith_arena *arena,
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
