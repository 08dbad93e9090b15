/* call_files.h - the files that a call of the command reads and writes.
 *
 * options.def says of each option whether it names a file, and each verb what its arguments are.
 * From these all inputs and outputs of a call are known before any is opened, and none may be two
 * of them. */
#ifndef PITH_CLI_OUTPUT_CALL_FILES_H
#define PITH_CLI_OUTPUT_CALL_FILES_H

#include "cli/base/cli.h"

/* Notes the files that the settings and the arguments of a call name, and the configuration (NULL:
 * none), and compares each output with every input and with every other output: by device and
 * inode, or, where no file is yet, by folder and name, after symbolic links. Devices, pipes and
 * sockets may be named more than once. A model stands for all files of its directory, an .onnx file
 * for its external data too. Returns -1 to go on, else EXIT_USAGE after a message that names both.
 * The strings must stay. */
int call_files_declare(const command *c, const void *settings, const string_list *rest,
                       const char *config);

/* For the file of an output whose name the call does not say in full, such as one in an output
 * folder: whether it is a file that the call names otherwise. EXIT_DONE, or EXIT_USAGE after a
 * message. */
int call_files_check(const command *c, const char *path);

/* The name that symbolic links lead to, from malloc, where no file need be yet; NULL and errno if
 * they lead nowhere. */
char *call_files_follow(const char *path);

#endif
