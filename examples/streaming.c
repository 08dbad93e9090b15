/* streaming.c - texts from a pipe, one per line, in bounded memory.
 *
 * Texts are gathered until there are BATCH of them and then embedded together: the library spreads
 * a batch over all threads, so larger batches are faster, up to some hundred texts. The vector of a
 * text does not depend on the batch it came in. This program prints, for each line, how close it is
 * to the line before.
 *
 *     cc streaming.c $(pkg-config --cflags --libs pith) -o streaming
 *     ./streaming all-MiniLM-L6-v2 <texts.txt
 */
#define _POSIX_C_SOURCE 200809L /* getline */
#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256 };

typedef struct batch {
    pith_str texts[BATCH];
    char *lines[BATCH];
    size_t count;
} batch;

/* Reads up to BATCH lines. */
static void read_batch(batch *b, FILE *in) {
    for (b->count = 0; b->count < BATCH; b->count++) {
        char **line = &b->lines[b->count];
        size_t capacity = 0;
        *line = NULL;
        ssize_t size = getline(line, &capacity, in);
        if (size < 0) break;
        if ((*line)[size - 1] == '\n') size--;
        /* a length, so lines may hold NUL bytes */
        b->texts[b->count] = (pith_str){ *line, (size_t)size };
    }
    if (b->count < BATCH) free(b->lines[b->count]); /* of the getline that met the end */
}

static float dot(const float *a, const float *b, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    batch b;
    unsigned long number = 0;
    if (pith_model_open(&model, argc > 1 ? argv[1] : "all-MiniLM-L6-v2", NULL, &err))
        return puts(err.message), 1;
    size_t dim = pith_embed_dim(model, NULL);
    if (!dim) return puts("this model does not embed text"), 1;
    /* Row 0 is the last vector of the batch before. */
    float *rows = calloc((BATCH + 1) * dim, sizeof *rows);
    if (!rows) return puts("out of memory"), 1;
    do {
        read_batch(&b, stdin);
        /* A failure names the text: "text 3: invalid UTF-8 at byte 17". */
        if (pith_embed(rows + dim, model, b.texts, b.count, NULL, &err))
            return puts(err.message), 1;
        for (size_t i = 0; i < b.count; i++)
            printf("%lu %.4f\n", ++number, dot(rows + i * dim, rows + (i + 1) * dim, dim));
        memcpy(rows, rows + b.count * dim, dim * sizeof *rows);
        for (size_t i = 0; i < b.count; i++) free(b.lines[i]);
    } while (b.count == BATCH);
    free(rows);
    pith_model_close(model);
    return 0;
}
