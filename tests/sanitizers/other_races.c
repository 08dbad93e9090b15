/* other_races.c - races that ThreadSanitizer reports in other people's libraries, whose locks and
 * atomic numbers it does not see, since they are not compiled with it: ONNX Runtime, whose threads
 * pass blocks of memory to each other, and the dynamic loader of glibc, which takes a lock of its
 * own in dlopen and dlsym. ThreadSanitizer, a library of its own, asks this function. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:libonnxruntime.so\n"
           "race:do_lookup_unique\n";
}
