/* tensor_file.h - tensors from and to .npy and .pb files; one tensor in words. */
#ifndef PITH_CLI_ARRAYS_TENSOR_FILE_H
#define PITH_CLI_ARRAYS_TENSOR_FILE_H

#include "cli/base/cli.h"

typedef struct tensor_file {
    pith_tensor tensor;
    pith_value_file *value; /* NULL: .npy, the tensor owns its data */
} tensor_file;

/* By the file's name: .pb is read as kind (a dtype, PITH_SEQUENCE or PITH_NONE). False: message
 * says why. */
bool tensor_file_open(tensor_file *file, const char *path, int32_t kind, char *message,
                      size_t size);
void tensor_file_close(tensor_file *file);
/* .npy has no bfloat16, 8-bit floats and the like: unsigned integers of the same size stand for
 * them, and bytes for types of 2 or 4 bits. What does not fit stays as it is. */
void tensor_file_reinterpret(tensor_file *file, int32_t wanted);

/* Where tensors are written: the command, for messages, and the files it read, which are not to be
 * overwritten. */
typedef struct tensor_sink {
    const command *command;
    const string_list *inputs;
} tensor_sink;

/* The kind of file that holds a value of the port (pith_value_open). */
int32_t tensor_file_kind_of(const pith_port *port);

/* Writes <path>.npy; sequences as <path>_0.npy, <path>_1.npy …; an empty optional writes nothing.
 * Returns an exit code. *raw is set if a type NumPy lacks was written as unsigned integers. */
int tensor_file_write(const tensor_sink *sink, const pith_tensor *tensor, const char *path,
                      bool *raw);

/* Writes <path>.pb, whatever the value is; port: the output of the model that it is. Returns an
 * exit code. */
int tensor_file_write_pb(const tensor_sink *sink, const pith_tensor *tensor, const char *path,
                         const pith_port *port);

/* "float32 [2, 3]" into buffer. */
const char *tensor_text(const pith_tensor *tensor, char *buffer, size_t size);

#endif
