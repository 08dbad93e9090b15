/* module_class.h - the modules of sentence-transformers: each class is one file module_<name>.c and
 * one line MODULE(<name>) in select/modules.def; a class that is known and cannot be run is a line
 * REFUSED(…) there.
 *
 * Modules are read in the order of modules.json. A class checks that it fits what came before
 * (reader->stage) and adds what it does: settings, a step on rows, the pooling, or a step on the
 * vector. */
#ifndef PITH_MODELS_MODULES_MODULE_CLASS_H
#define PITH_MODELS_MODULES_MODULE_CLASS_H

#include "base/formats/json.h"
#include "formats/weights/tensor_files.h"
#include "models/modules/modules.h"

/* What the modules so far have made of a text. */
typedef enum pith__module_stage {
    PITH_STAGE_TEXT,
    PITH_STAGE_ROWS,
    PITH_STAGE_VECTOR
} pith__module_stage;

/* What the network of a Transformer is run for (transformer_task). */
typedef enum pith__module_task {
    PITH_TASK_FEATURES,
    PITH_TASK_FILL_MASK, /* its logits of masked words */
    PITH_TASK_CLASSIFY,  /* its logits of labels */
    PITH_TASK_GENERATE   /* its logits of the next word */
} pith__module_task;

/* Whether texts go through a chat template (modality_config.message), and in which form. */
typedef enum pith__module_messages {
    PITH_MESSAGES_UNKNOWN, /* no file says it */
    PITH_MESSAGES_NONE,
    PITH_MESSAGES_AUTO, /* they do; the template tells in which form */
    PITH_MESSAGES_FLAT,
    PITH_MESSAGES_STRUCTURED
} pith__module_messages;

struct pith__module_reader {
    pith__modules *modules;
    const pith__modules_source *source;
    pith__arena *arena;
    pith_error *err;
    pith__module_stage stage;
    bool routed, pooled; /* within a Router; a Pooling was read */
    pith__module_task task;
    pith__module_messages messages;
    const pith__chat_variable *variables; /* settings of the chat template
                                             (processing_kwargs.chat_template) */
    size_t variable_count;
    bool alone;         /* there is no modules.json */
    bool fills_only;    /* queries are filled up to a length, but not cut there */
    bool layered;       /* the network's settings ask for what its layers give */
    bool features;      /* texts go through get_text_features, which pools by itself; the two below
                           must be true then */
    bool pools, vector; /* method_output_name is pooler_output; module_output_name is
                           sentence_embedding */
    bool of_tokens;     /* the class is one of PyLate: it works on vectors of tokens, unless a file
                           says otherwise */
};

/* The keys of a file of settings; words stand apart by a space. */
typedef struct pith__module_keys {
    const char *file;     /* "config.json" */
    const char *reads;    /* "in_features bias parameters.default_route" */
    const char *ignores;  /* of training, and notes; NULL: none */
    const char *sections; /* "parameters.": objects whose keys are in the lists; NULL: none */
} pith__module_keys;

typedef struct pith__module_class {
    const char *name; /* the last part of the Python class: "Dense" */
    /* Reads the module in the folder (relative to the directory, "" for itself). The caller puts
     * the module's name in front of errors. */
    pith_status (*read)(pith__module_reader *r, pith_str folder);
    const char *refused;           /* read is NULL: why this class is not run */
    const pith__module_keys *keys; /* of the file in its folder; NULL: it has none, or the class
                                      checks them */
} pith__module_class;

/* Made from select/modules.def by select/tables.c. */
extern const pith__module_class *const pith__module_class_table[];
extern const size_t pith__module_class_count;

/* Reads one module by its Python class. */
pith_status pith__module_read(pith__module_reader *r, pith_str type, pith_str folder);

/* "folder/name" relative to the directory; data is NULL if memory is out. A NUL follows the folder,
 * as in all folders that classes are given. */
pith_str pith__module_path(const pith__module_reader *r, pith_str folder, const char *name);

typedef void pith__module_json_fn(pith__json *j, pith__module_reader *r, void *to);
/* Reads a JSON file of the folder with fn. *there may be NULL: the file must be there then. Strings
 * that are kept must be copied by fn. */
pith_status pith__module_json(bool *there, pith__module_reader *r, pith_str folder,
                              const char *name, pith__module_json_fn *fn, void *to);
/* Notes what becomes of the keys of a file, if it is there, and warns of those that are in no list.
 */
pith_status pith__module_keys_check(pith__module_reader *r, pith_str folder,
                                    const pith__module_keys *keys);
/* A string that must be the one given, or null: the key says how the vectors are made. */
void pith__module_expect(pith__json *j, const char *key, const char *known);

/* Opens the weights of a folder. *weights is empty if the settings are read without weights. */
pith_status pith__module_weights(pith__weights *weights, const char **file, pith__module_reader *r,
                                 pith_str folder);
/* A tensor of this shape as f32: in the file, or widened in the arena. */
pith_status pith__module_tensor(const float **data, pith__module_reader *r,
                                const pith__weights *weights, const char *file, const char *name,
                                int rank, const int64_t *dims);

/* A name or a list of names of "query" and "document" as bits 1 << PITH_ROLE_…; texts of other
 * tasks are not made here. */
uint32_t pith__module_roles(pith__json *j);
pith_status pith__module_add_step(pith__module_reader *r, const pith__vector_step *step);
pith_status pith__module_add_rows(pith__module_reader *r, const pith__row_step *step);
/* Notes a decision; name is of a file in the folder, NULL: no file says it. */
pith_status pith__module_decide(pith__module_reader *r, const char *what, pith_str folder,
                                const char *name, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Refuse a module that comes too early or too late. */
pith_status pith__module_needs(const pith__module_reader *r, pith__module_stage stage);

/* What a module works on: module_input_name and module_output_name, "sentence_embedding" or
 * "token_embeddings". */
typedef struct pith__module_places {
    pith_str input, output; /* data is NULL: not given */
    bool rows;              /* set by pith__module_check_places */
} pith__module_places;
/* clang-format off */
#define PITH_MODULE_PLACES_INIT { { NULL, 0 }, { NULL, 0 }, false }
/* clang-format on */
/* Reads the value of the key if it is one of the two. */
bool pith__module_place(pith__json *j, pith__module_reader *r, pith_str key,
                        pith__module_places *places);
/* Fails if the names are others, differ, or do not fit what the modules so far have made. */
pith_status pith__module_check_places(const pith__module_reader *r, pith_str folder,
                                      pith__module_places *places);

/* ---- nodes of row steps ---- */

/* A constant of f32 with the shape, at data, which must live as long as the graph. */
pith__value *pith__row_constant(pith__graph *graph, const float *data, int rank,
                                const int64_t *dims);
/* Fails if the width of the rows is known and is not the one that the class takes. */
bool pith__row_width_fits(const pith__value *rows, int64_t width, const char *name,
                          pith_error *err);
/* A node with one output; NULL if an input is NULL or memory is out. */
pith__value *pith__row_node(pith__graph *graph, pith_str place, const char *op,
                            pith__value *const *inputs, int count);
/* Makes a value an output with this name, which must outlive the graph, and sets *output to its
 * index. */
pith_status pith__row_output(int *output, pith__graph *graph, pith__value *value, pith_str name,
                             pith_error *err);

#endif
