/* ort_config.h - required_operators.config, from which ONNX Runtime makes its reduced builds.
 *
 *     # a comment
 *     ai.onnx;14,17;Add,Gather{"inputs": {"0": ["float"], "1": ["int64_t"]}}
 *     !globally_allowed_types;float,int64_t
 *
 * Source: docs/Reduced_Operator_Kernel_build.md and reduced_build_config_parser.py of ONNX Runtime.
 * What its optimiser puts into graphs is in ort_fusions.def. */
#ifndef PITH_CLI_SELECT_ORT_CONFIG_H
#define PITH_CLI_SELECT_ORT_CONFIG_H

#include <jansson.h>
#include <stdio.h>

#include "cli/base/cli.h"
#include "cli/select/piece_list.h"

/* Whether a path is that of such a file: its name ends in .config. */
bool ort_config_is(const char *path);

/* Adds the operators of a file, with their dtypes. Each line that is not understood, and each
 * operator that this Pith does not have, is a message on stderr with the number of its line; then
 * *unread becomes EXIT_FAILED, and the other lines count. The operators of Pith's own passes are
 * added, so that graphs may be fused. EXIT_DONE, or EXIT_FAILED after a message if the file cannot
 * be read. */
int ort_config_read(piece_list *list, const char *path, const command *c, int *unread);

/* Adds what one model needs: its operators as the file has them, and those that ONNX Runtime's
 * optimiser may put in their place. config: a new json_object(), or one that has models. EXIT_DONE,
 * or another exit code after a message, such as for a model that ONNX Runtime cannot read. */
int ort_config_add_model(json_t *config, const char *path, const pith_open_options *open,
                         const command *c);

/* The same models give the same bytes, in any order. */
void ort_config_write(FILE *file, const json_t *config);

#endif
