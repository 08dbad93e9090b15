/* Any bytes as an ONNX file that is opened and run: an error or a result. */
#include "run_ones.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_counts counts = { 0 };
    open_and_run(data, size, &counts);
    return 0;
}
