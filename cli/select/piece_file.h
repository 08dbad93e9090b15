/* piece_file.h - the file of a piece list: a small, strict part of YAML that people can write, too.
 *
 *     pith: 1                     the version of the format; the first line that is no comment
 *     operators:                  a kind of piece, then its pieces
 *       - Add f32 i64             an operator and the dtypes it works on; no dtypes: all
 *       - com.microsoft::BiasGelu with its domain, unless that is ai.onnx
 *     passes: []                  none of this kind
 *
 * A kind that does not occur is not limited. A comment begins with # at the beginning of a line or
 * behind a blank. */
#ifndef PITH_CLI_SELECT_PIECE_FILE_H
#define PITH_CLI_SELECT_PIECE_FILE_H

#include <stdio.h>

#include "cli/select/piece_list.h"

/* Reads a file's text. False: message[size] says what is wrong, where ("ops.yaml:12: …") and what
 * to do. */
bool piece_file_parse(piece_list *list, const char *text, size_t length, const char *path,
                      char *message, size_t size);
/* Opens and reads a file. */
bool piece_file_read(piece_list *list, const char *path, char *message, size_t size);
/* The same list gives the same bytes. title: comment lines for the top, each with "# ", or "". */
void piece_file_write(FILE *file, const piece_list *list, const char *title);

#endif
