/* Any bytes as a compiled model that is opened, described, run, asked for vectors and saved again:
 * an error or a result. The header is put right first, so that the contents are met. */
#include "compiled_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_counts counts = { 0 };
    use_compiled(data, size, &counts);
    return 0;
}
