/* pb.h - values as the ONNX test folders hold them: TensorProto, SequenceProto, OptionalProto. */
#ifndef PITH_CLI_PB_H
#define PITH_CLI_PB_H

#include "cli/text_input.h"

/* Appends the message of a value; name may be "". With optional the value is wrapped in an OptionalProto, PITH_NONE as
 * an empty one. Format: onnx/onnx.proto and onnx/onnx-data.proto. */
void pb_write(bytes *out, const pith_tensor *value, const char *name, bool optional);

#endif
