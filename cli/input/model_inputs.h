/* model_inputs.h - a model's input tensors from the command line: files, shapes, or zeros. */
#ifndef PITH_CLI_INPUT_MODEL_INPUTS_H
#define PITH_CLI_INPUT_MODEL_INPUTS_H

#include "cli/arrays/tensor_file.h"

/* names[i] goes with tensors[i]; all zero at first. */
typedef struct model_inputs {
    const char **names;
    tensor_file *files; /* own the data of tensors */
    pith_tensor *tensors;
    size_t count;
    string_list paths; /* the files that were read */
} model_inputs;

/* given: NAME=FILE, or FILE alone if the model has one input. These return EXIT_DONE, or a code
 * after a message. */
int model_inputs_load(model_inputs *in, const command *c, const pith_model *model,
                      const string_list *given);
/* shapes: NAME=1x3x480x640, as the model was opened with. Inputs of files take them; the number of
 * elements stays. */
int model_inputs_shape(model_inputs *in, const command *c, const string_list *shapes);
/* Adds zeros for missing inputs, in the model's shapes with 1 for free sizes. */
int model_inputs_invent(model_inputs *in, const command *c, const pith_model *model);
/* The tensor of an input, or NULL. */
const pith_tensor *model_inputs_find(const model_inputs *in, const char *name);
/* The size of a free axis d of a port: that of the inputs that are there if one has an axis of this
 * name, else what `choose` says of the model's first axis of this name. */
int64_t model_inputs_size(const model_inputs *in, const pith_model *model, const pith_port *port,
                          int d, int64_t (*choose)(const pith_port *port, const char *name, int d));
/* Adds a tensor, whose data is from malloc and now belongs to the inputs. */
void model_inputs_add(model_inputs *in, const char *name, const pith_tensor *tensor);
void model_inputs_free(model_inputs *in);

#endif
