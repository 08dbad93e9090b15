/* core.c - opens a compiled model in memory and runs it: the engine without operators, tokenizers
 * and files. */
#include <pith/pith.h>

#include <stdio.h>

extern const unsigned char model_bytes[];
extern const size_t model_size;

int main(void) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_session *session;
    static pith_tensor input, output[4];
    static const char *const names[] = { "x" };
    if (pith_model_open_memory(&model, model_bytes, model_size, NULL, &err))
        return puts(err.message), 1;
    pith_status status = pith_session_create(&session, model, &err);
    if (!status) status = pith_session_run(session, output, names, &input, 1, NULL, &err);
    if (status) return puts(err.message), 1;
    pith_session_destroy(session);
    pith_model_close(model);
    return 0;
}
