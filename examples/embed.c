#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (pith_model_open(&model, argc > 1 ? argv[1] : "all-MiniLM-L6-v2", NULL, &err))
        return puts(err.message), 1;
    pith_str texts[] = { { "a cat sat on the mat", 20 }, { "interest rates rose", 19 } };
    size_t dim = pith_embed_dim(model, NULL);
    float *vectors = malloc(2 * dim * sizeof *vectors), dot = 0;
    if (pith_embed(vectors, model, texts, 2, NULL, &err)) return puts(err.message), 1;
    for (size_t i = 0; i < dim; i++) dot += vectors[i] * vectors[dim + i];
    printf("cosine %.4f\n", dot);
    pith_model_close(model);
    free(vectors);
}
