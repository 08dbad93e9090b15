/* images.c - a grey picture in, one vector out. */
#include <pith/image.h>
#include <pith/pith.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static uint8_t pixels[64 * 64 * 3];
    const pith_image image = { .pixels = pixels, .width = 64, .height = 64, .channels = 3 };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    size_t dim;
    if (argc < 2 || pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;
    if (pith_embed_images_dim(&dim, model, NULL, &err)) return puts(err.message), 1;
    float *vector = malloc(dim * sizeof *vector);
    if (!vector || pith_embed_images(vector, model, &image, 1, NULL, &err))
        return puts(err.message), 1;
    for (size_t i = 0; i < dim; i++) printf("%.9g\n", vector[i]);
    free(vector);
    pith_model_close(model);
    return 0;
}
