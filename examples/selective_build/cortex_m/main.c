/* main.c - runs the network on one picture of 8 x 8, and prints its outputs and the memory it took.
 */
#include <pith/memory.h>
#include <pith/model.h>
#include <pith/session.h>

#include "port/port.h"

extern const unsigned char network_bytes[];
extern const size_t network_size;

int main(void) {
    static float x[64], *y;
    static const char *const names[] = { "x" };
    static const pith_allocator arena = { arena_alloc, arena_free, NULL };
    static pith_error err;
    pith_open_options options = PITH_OPEN_OPTIONS_INIT;
    pith_run_options run = PITH_RUN_OPTIONS_INIT;
    pith_model *model = NULL;
    pith_session *session = NULL;
    pith_tensor out,
        in = { .data = x, .bytes = sizeof x, .dtype = PITH_F32, .rank = 4, .dims = { 1, 1, 8, 8 } };
    for (int i = 0; i < 64; i++) x[i] = (float)(i % 7) / 8 - 0.25f;
    options.call.allocator = &arena;
    options.pool_blocks = options.sessions = options.pressure_percent = -1;
    run.call.threads = 1;
    pith_status status =
        pith_model_open_memory(&model, network_bytes, network_size, &options, &err);
    if (!status) status = pith_session_create(&session, model, &err);
    if (!status) status = pith_session_run(session, &out, names, &in, 1, &run, &err);
    if (status) {
        print("error %d: %s\n", (int)status, err.message);
        return 1;
    }
    y = out.data;
    for (int i = 0; i < (int)out.dims[1]; i++)
        print("%08x\n", (unsigned)((union {
                            float f;
                            unsigned u;
                        }){ y[i] })
                            .u);
    pith_session_destroy(session);
    pith_model_close(model);
    print("arena: %u of %u bytes, %u left in use\n", (unsigned)arena_most(), (unsigned)ARENA_BYTES,
          (unsigned)arena_used());
    return 0;
}
