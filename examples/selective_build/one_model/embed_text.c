/* embed_text.c - one text to one vector, a number per line. usage: embed_text MODEL TEXT */
#include <pith/embed.h>
#include <pith/model.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL;
    if (argc < 3) return puts("usage: embed_text MODEL TEXT"), 2;
    if (pith_model_open(&model, argv[1], NULL, &err)) return printf("%s\n", err.message), 1;
    const size_t dim = pith_embed_dim(model, NULL);
    const pith_str text = { argv[2], strlen(argv[2]) };
    float *vector = malloc(dim * sizeof *vector + 1);
    if (!vector || pith_embed(vector, model, &text, 1, NULL, &err))
        return printf("%s\n", err.message), 1;
    for (size_t i = 0; i < dim; i++) printf("%.9g\n", (double)vector[i]);
    free(vector);
    pith_model_close(model);
    return 0;
}
