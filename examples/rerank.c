/* rerank.c - the best answers to a query among passages, by a cross-encoder.
 *
 * A cross-encoder reads the query and a passage together, so it judges better than a comparison of
 * two vectors, and takes one run of the model per passage. A usual search ranks all passages by
 * vectors and the best hundred so.
 *
 *     cc rerank.c $(pkg-config --cflags --libs pith) -o rerank
 *     ./rerank bge-reranker-base "capital of France" A B …
 */
#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (argc < 4) return puts("usage: rerank MODEL QUERY PASSAGE..."), 2;
    if (pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;

    size_t count = (size_t)argc - 3;
    pith_str query = { argv[2], strlen(argv[2]) }, *passages = malloc(count * sizeof *passages);
    float *scores = malloc(count * sizeof *scores);
    if (!passages || !scores) return puts("out of memory"), 1;
    for (size_t i = 0; i < count; i++) passages[i] = (pith_str){ argv[3 + i], strlen(argv[3 + i]) };
    if (pith_rerank(scores, model, query, passages, count, NULL, &err)) return puts(err.message), 1;

    for (size_t rank = 0; rank < count; rank++) { /* the best of those that are left */
        size_t best = rank;
        for (size_t i = rank; i < count; i++)
            if (scores[i] > scores[best]) best = i;
        printf("%.6f %s\n", scores[best], passages[best].data);
        pith_str passage = passages[best];
        float score = scores[best];
        memmove(passages + rank + 1, passages + rank, (best - rank) * sizeof *passages);
        memmove(scores + rank + 1, scores + rank, (best - rank) * sizeof *scores);
        passages[rank] = passage;
        scores[rank] = score;
    }
    pith_model_close(model);
    free(passages);
    free(scores);
    return 0;
}
