/* other_races.c - races that ThreadSanitizer reports in ONNX Runtime. That library is not compiled
 * with it, so its locks and atomic numbers are not seen, and each block that passes from one of its
 * threads to another looks like a race. ThreadSanitizer asks this function. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "called_from_lib:libonnxruntime.so\nrace:libonnxruntime.so\n";
}
