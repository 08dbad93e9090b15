/* torch_file.h - the tensors of a file of torch.save: pytorch_model.bin, *.pt.
 *
 * Such a file is a zip archive with stored members (since PyTorch 1.6), or the older sequence of
 * pickles and storages. The pickle is read by torch_pickle.c, which knows the few things that
 * tensors are made of. Nothing is executed. */
#ifndef PITH_FORMATS_WEIGHTS_TORCH_TORCH_FILE_H
#define PITH_FORMATS_WEIGHTS_TORCH_TORCH_FILE_H

#include "formats/weights/tensor_files.h"

/* Adds the tensors of the dictionary in the file, or of its member "state_dict" or "model" if it
 * has no tensors itself. file_name is for messages. A pickle that holds anything else than plain
 * tensors gives PITH_ERR_UNSUPPORTED, and the message names it; a damaged file gives
 * PITH_ERR_FORMAT. */
pith_status pith__torch_read(pith__weights *weights, pith_str bytes, const char *file_name,
                             pith_error *err);

/* The part "torch" (base/optional_part.h). */
typedef struct pith__torch_part {
    pith_status (*read)(pith__weights *weights, pith_str bytes, const char *file_name,
                        pith_error *err);
} pith__torch_part;

#endif
