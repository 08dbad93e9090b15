/* model.h - the struct behind pith_model. */
#ifndef PITH_MODELS_MODEL_H
#define PITH_MODELS_MODEL_H

#include <pthread.h>

#include "base/memory/account.h"
#include "base/optional_part.h"
#include "base/os/busy_time.h"
#include "base/os/file.h"
#include "base/os/system_memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "engine/opt/pass.h"
#include "engine/runtime/runtime.h"
#include "formats/compiled/compiled.h"
#include "formats/compiled/constant_spans.h"
#include "models/lexical/word_models.h"
#include "models/modules/late_interaction.h"
#include "models/tasks/labels.h"
#include "models/texts/text_view.h"
#include "pith/session.h"

struct pith__source; /* models/open/reader.h */

/* The number of nodes with this operator in the file, before functions are inlined. */
typedef struct pith__op_count {
    pith_str domain, op_type;
    size_t count;
} pith__op_count;

/* How the model came to its runtime. */
typedef struct pith__chosen_runtime {
    pith_runtime_options options; /* in model->arena */
    const char *requested, *reason;
    size_t file_outputs; /* outputs of the graph as it was read; with PITH_OPEN_INNER those of the
                            file */
    const pith_str *file_names;
    pith_str inner; /* the file with the outputs of PITH_OPEN_INNER, for a runtime that runs files;
                       data NULL: none */
    bool is_auto, fallback;
} pith__chosen_runtime;

/* The part of the library that makes a model embed text (open_texts.c); NULL in builds without it.
 */
typedef struct pith__text_part {
    /* What a compiled file holds besides graph and settings. */
    pith_status (*load)(pith_model *m, const pith__constant_spans_in *weights, pith_error *err);
    /* tokenizer and encoder, when the graph is ready */
    pith_status (*open)(pith_model *m, pith_error *err);
    void (*close)(pith_model *m);
} pith__text_part;

/* Its half for models that are not compiled (open_text_modules.c); NULL in builds without one of
 * the two. */
typedef struct pith__text_modules_part {
    pith_status (*modules)(pith_model *m, pith_error *err); /* of a directory */
    /* Sets *output to the index of the output that dense vectors are made from; -1 if there is
     * none. Appends the modules that work on vectors of tokens to the graph, which is one of the
     * model's, with its types inferred; *output is then the output that they add. A graph of BM42
     * gets the output that its head reads, too. */
    pith_status (*output)(int *output, const pith_model *m, pith__graph *graph, pith_error *err);
    /* the output that becomes vectors, before passes run */
    pith_status (*rows)(pith_model *m, pith_error *err);
    /* and what else the directory says of texts */
    pith_status (*tokenizer)(pith_model *m, pith_error *err);
    /* what was decided about texts, when all is known */
    pith_status (*note)(pith_model *m, pith_error *err);
    /* for PITH_OPEN_DESCRIBE, where there is no encoder */
    pith_status (*tell)(pith_model *m, pith_error *err);
} pith__text_modules_part;

/* Sessions of calls that have none (models/session/model_runs.c). */
typedef struct pith__kept_sessions {
    void (*empty)(struct pith__kept_sessions *kept, const pith_model *m);
    void (*close)(struct pith__kept_sessions *kept, const pith_model *m);
} pith__kept_sessions;

struct pith_model {
    atomic_size_t references;
    pith__account account;
    pith_log log;
    pith__busy busy;
    pith__memory_gauge gauge;
    pith_open_options options; /* call.allocator and call.log point to the members above; the rest
                                  of call, stop_after and input_shapes are dropped after
                                  opening; operators are kept, with a reference */
    pith__making making;       /* of graph: the call that opens the model, then nothing, or the call
                                  that holds the lock (pith__model_begin_making) */
    pith__progress *progress;  /* of the call that opens it; NULL: nobody is told */
    pith__arena arena;         /* graphs, tokenizer and all else that is made at open */
    pith__files files;
    pith_str path, dir; /* the path that was opened; the directory with its small files (data NULL:
                           none) */
    const struct pith__reader *reader; /* the reader, and its source: */
    pith_str source_bytes;
    const char *source_folder;
    /* Called in place of the reader of a model that is identified only; NULL: it is opened. */
    pith_status (*identify)(struct pith_model *m, const struct pith__source *source,
                            pith_error *err);
    pith__compiled compiled;  /* writer is NULL unless the model is a compiled file */
    pith_str tokenizer_bytes; /* of a file that is model and tokenizer; data NULL: none */
    bool from_safetensors;
    const char *weights_file;         /* of from_safetensors; NULL: the first that is there */
    const struct pith__head *cascade; /* the detector whose networks are files of the directory or
                                         routes of the compiled file; NULL: none */
    pith_str *cascade_files;          /* [networks] paths; the first is that of graph; NULL: a
                                         compiled file */
    uint32_t network;                 /* which of them this model is, in a compiled file */
    pith__graph *graph;               /* optimised */
    const pith__runtime *runtime;
    pith__device_list devices;
    pith__chosen_runtime chosen_runtime;
    pith_tokenizer *tokenizer; /* NULL: none */
    pith__modules modules;
    bool modules_read; /* or tried */
    pith__hf_labels labels;
    pith__late_interaction late;
    pith__word_model word_model; /* of BM42 and miniCOIL; kind 0: none */
    const pith__text_part *texts;
    const pith__text_modules_part *text_modules;
    pith__text_view text; /* of the output that dense vectors are made from, if there is one */
    pith_error no_text;   /* why text has no encoder */
    pith_port *inputs, *outputs;
    const pith__opt_limits *limits; /* valid while the model is opened; NULL: every pass may run */
    bool no_ragged;                 /* packed texts gave other results when that was checked */
    pith__report report;            /* with PITH_OPEN_DESCRIBE only, like the operator counts
                                       below */
    pith__op_count *ops;
    size_t op_count;

    pthread_mutex_t view_lock;              /* guards views, pictures, detection and info */
    pith__text_view *views;                 /* of other outputs */
    struct pith__picture_view *pictures[2]; /* pooled by the model, and as rows; NULL: not made */
    struct pith__detection *detection;      /* NULL: not made */
    struct pith__model_info *info;          /* NULL: not made */
    /* Free what was opened or made; NULL: it was not. */
    void (*close_files)(pith_model *m);
    void (*close_pictures)(pith_model *m);
    void (*close_detection)(pith_model *m);
    void (*close_info)(pith_model *m);

    _Atomic(pith__kept_sessions *) kept_sessions; /* NULL: there was no such call */
    atomic_size_t pooled_idle; /* sessions that wait in pools of the caller, and in kept_sessions */

    pthread_mutex_t lock; /* guards the members below, which are made on first use */
    pith__arena program_arena;
    pith__program program; /* of graph */
};

/* Count the references to a model, which is destroyed with the last one. Thread-safe. */
void pith__model_keep(const pith_model *model);
void pith__model_release(const pith_model *model);

/* The optimisation level, 0 to 3. */
static inline int32_t pith__model_level(const pith_model *model) {
    return model->options.optimization > 0 ? model->options.optimization : 0;
}

/* Opens a program of a graph of the model, with its runtime and on its devices. */
pith_status pith__model_open_program(pith__program *program, const pith_model *model,
                                     pith__graph *graph, pith__arena *arena, pith_error *err);

/* Around what makes something of model->graph: takes the model's lock, and gives the graph the stop
 * of the call that makes it, which may be NULL. *before is for pith__model_end_making. What is made
 * with a `making` of its own needs the lock no more. */
pith_status pith__model_begin_making(pith__making *before, const pith_model *model,
                                     pith__stop *stop, pith_error *err);
void pith__model_end_making(const pith_model *model, pith__making before);
/* Returns the program of model->graph; makes it on first use, during some call whose stop this is.
 * Thread-safe. */
pith_status pith__model_program(const pith__program **program, const pith_model *model,
                                pith__stop *stop, pith_error *err);
/* Returns its plan. PITH_ERR_UNSUPPORTED if the model is run by another runtime than the builtin
 * one. Thread-safe. */
pith_status pith__model_plan(const pith__plan **plan, const pith_model *model, pith__stop *stop,
                             pith_error *err);

/* Returns an optimiser for a graph of the model, set up by the model's options. */
pith__opt pith__model_optimizer(const pith_model *model, pith__graph *graph, pith_error *err);

/* Returns the executor options of the model's sessions and of its encoder. */
pith__executor_options pith__model_executor_options(const pith_model *model);

/* Describes values of the model's graph, in model->arena. */
pith_status pith__model_make_ports(pith_port **ports, pith_model *model, pith__value *const *values,
                                   size_t count, pith_error *err);

/* Sets port->dim_names: the symbols of the declared dimensions; "" for numbers, and for sizes that
 * are computed or have no name. */
pith_status pith__model_name_dims(pith_port *port, pith_model *model, const pith__type *declared,
                                  pith_error *err);

/* Gives inputs the shapes of options.input_shapes. Call it after the graph was read and before
 * types are inferred. */
pith_status pith__model_fix_inputs(pith_model *model, pith_error *err);

/* Compares a tensor with the shape that the file declares for its input. A difference is an error
 * with strict shapes; else it is a warning, once as long as *warned is kept. */
pith_status pith__model_check_input(const pith_model *model, size_t input,
                                    const pith_tensor *tensor, bool *warned, pith_error *err);

/* The ModelProto that says what pith_model_report tells, with or without its graph; "" if the model
 * is not from an ONNX file. */
pith_str pith__model_about(const pith_model *model);

/* A message of the model without the path of its directory in front: what is saved does not depend
 * on where it was. */
pith_str pith__model_reason(const pith_model *model, const char *message);

/* Counts the operators of a graph into model->ops, sorted by domain and name. */
pith_status pith__model_count_ops(pith_model *model, const pith__graph *graph, pith_error *err);

#endif
