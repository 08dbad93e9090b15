/* gguf.h - the tensors of a GGUF file, under the names that Hugging Face gives them.
 *
 * F32, F16 and BF16 tensors stay spans of the mapped file; blocks (gguf_blocks.h) are decoded to
 * f32 in the arena. Names of tensors depend on the architecture (gguf_arch.h). Settings and
 * tokenizer are those of the directory, not of the file. Source: ggml, docs/gguf.md (versions 2 and
 * 3), and ggml-common.h for the blocks. */
#ifndef PITH_FORMATS_WEIGHTS_GGUF_GGUF_H
#define PITH_FORMATS_WEIGHTS_GGUF_GGUF_H

#include "formats/weights/tensor_files.h"

/* Adds all tensors of a file. file_name is for messages. A damaged file gives PITH_ERR_FORMAT,
 * another architecture or type of tensor PITH_ERR_UNSUPPORTED. */
pith_status pith__gguf_read(pith__weights *weights, pith_str bytes, const char *file_name,
                            pith_error *err);

#endif
