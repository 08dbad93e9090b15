/* profile.c - where the time goes: a trace of every step of a model, for ui.perfetto.dev.
 *
 * A profile may be given to any number of calls. It records the steps of the graph with their
 * kernels and shapes, and the phases around them; the host can add phases of its own. Without a
 * profile nothing is recorded and nothing is paid.
 *
 *     cc profile.c $(pkg-config --cflags --libs pith) -o profile
 *     ./profile all-MiniLM-L6-v2 >trace.json
 */
#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>

/* The trace arrives in pieces; non-zero says that one could not be written. */
static int32_t write_piece(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, user) != size;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_profile *profile;
    pith_model *model;
    pith_str texts[] = { { "a cat sat on the mat", 20 }, { "interest rates rose", 19 } };
    float sum = 0;
    if (pith_profile_create(&profile, NULL, &err)) return fputs(err.message, stderr), 1;

    pith_open_options open = PITH_OPEN_OPTIONS_INIT;
    open.call.profile = profile; /* phases of opening: read, optimise, ... */
    if (pith_model_open(&model, argc > 1 ? argv[1] : "all-MiniLM-L6-v2", &open, &err))
        return fputs(err.message, stderr), 1;

    pith_embed_options embed = PITH_EMBED_OPTIONS_INIT;
    embed.call.profile = profile;
    size_t dim = pith_embed_dim(model, &embed);
    float *vectors = malloc(2 * dim * sizeof *vectors);
    if (!vectors || pith_embed(vectors, model, texts, 2, &embed, &err))
        return fputs(err.message, stderr), 1;

    uint64_t begin = pith_profile_now(); /* a phase of the host's own */
    for (size_t i = 0; i < dim; i++) sum += vectors[i] * vectors[dim + i];
    pith_profile_phase(profile, "compare", begin);
    fprintf(stderr, "cosine %.4f\n", sum);

    free(vectors);
    pith_model_close(model); /* the profile holds copies, so it may outlive the model */
    const pith_writer writer = { .write = write_piece, .user = stdout };
    if (pith_profile_write(profile, NULL, &writer, &err)) return fputs(err.message, stderr), 1;
    pith_profile_destroy(profile);
    return 0;
}
