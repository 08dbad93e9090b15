/* tensor_sets.h - sets of input tensors in a directory: each of its folders is one, or the
 * directory itself if it has none. An input NAME is in NAME.npy or NAME.pb, or in input_N.pb, N its
 * place. */
#ifndef PITH_CLI_ARRAYS_TENSOR_SETS_H
#define PITH_CLI_ARRAYS_TENSOR_SETS_H

#include "cli/arrays/tensor_file.h"

typedef struct tensor_sets {
    pith_tensor *tensors; /* [count, inputs], in the order of the model's inputs */
    tensor_file *files;   /* own their data */
    size_t count, inputs;
} tensor_sets;

/* *sets is zeroed before. EXIT_DONE, or another exit code after a message that names the input that
 * is missing. Free what was read in either case. */
int tensor_sets_read(tensor_sets *sets, const command *c, const char *model, const char *folder);
void tensor_sets_free(tensor_sets *sets);

#endif
