/* detect.c - a grey picture in, the number of faces out. */
#include <pith/detect.h>
#include <pith/pith.h>

#include <stdio.h>

int main(int argc, char **argv) {
    static uint8_t pixels[64 * 64 * 3];
    const pith_image image = { .pixels = pixels, .width = 64, .height = 64, .channels = 3 };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_faces faces;
    if (argc < 2 || pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;
    if (pith_detect(&faces, model, &image, 1, NULL, &err)) return puts(err.message), 1;
    printf("%zu\n", faces.count);
    pith_faces_free(&faces);
    pith_model_close(model);
    return 0;
}
