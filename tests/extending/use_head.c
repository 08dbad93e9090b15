/* use_head.c - prints the energy of each text: a caller of the head that docs/extending.md adds.
 *
 * usage: use_head MODEL_DIR TEXT... */
#include <stdio.h>

#include "models/heads/energy.h"
#include "models/model.h"

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_str texts[8];
    double energies[8];
    size_t count = 0;
    for (int i = 2; i < argc && count < 8; i++) texts[count++] = pith__str_of(argv[i]);
    pith_status status = pith_model_open(&model, argv[1], NULL, &err);
    pith__energy request = { energies };
    pith__head_use use = { .request = &request };
    pith__encode_job job = { .texts = texts, .count = count };
    if (!status) status = pith__head_find(&use.head, "energy", &err);
    if (!status) status = pith__encoder_run(model->text.encoder, &job, &use, 1, &err);
    if (status) return fprintf(stderr, "%s\n", err.message), 1;
    for (size_t i = 0; i < count; i++) printf("%.9g\n", energies[i]);
    pith_model_close(model);
    return 0;
}
