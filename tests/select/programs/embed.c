/* embed.c - one text in, one vector out. */
#include <pith/pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (argc < 3 || pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;
    const size_t dim = pith_embed_dim(model, NULL);
    float *vector = malloc(dim * sizeof *vector);
    const pith_str text = { argv[2], strlen(argv[2]) };
    if (!vector || pith_embed(vector, model, &text, 1, NULL, &err)) return puts(err.message), 1;
    for (size_t i = 0; i < dim; i++) printf("%.9g\n", vector[i]);
    free(vector);
    pith_model_close(model);
    return 0;
}
