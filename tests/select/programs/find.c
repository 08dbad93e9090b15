/* find.c - embeds texts, and prints for a query the nearest ones with their scores, in every metric
 * and with every first pass. usage: find MODEL QUERY TEXT... */
#include <pith/pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HITS = 3 };

static pith_status find(const float *rows, size_t count, size_t dim, const float *query, int metric,
                        int pass, pith_error *err) {
    pith_search_index_options options = PITH_SEARCH_INDEX_OPTIONS_INIT;
    pith_search_index *index;
    pith_hit hits[HITS];
    options.metric = metric;
    options.first_pass = pass;
    pith_status status = pith_search_index_create(&index, rows, count, dim, &options, err);
    if (status) return status;
    status = pith_search(hits, index, query, 1, HITS, NULL, err);
    pith_search_index_destroy(index);
    for (size_t i = 0; i < HITS && !status; i++)
        printf("%d %d %lld %.9g\n", metric, pass, (long long)hits[i].index, (double)hits[i].score);
    return status;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (argc < 3 + HITS || pith_model_open(&model, argv[1], NULL, &err))
        return puts(err.message), 1;
    const size_t dim = pith_embed_dim(model, NULL), count = (size_t)argc - 3;
    float *rows = malloc((count + 1) * dim * sizeof *rows);
    pith_str *texts = malloc((count + 1) * sizeof *texts);
    for (size_t i = 0; i <= count && texts; i++)
        texts[i] = (pith_str){ argv[2 + i], strlen(argv[2 + i]) };
    if (!rows || !texts || pith_embed(rows, model, texts, count + 1, NULL, &err))
        return puts(err.message), 1;
    for (size_t i = 0; i < (count + 1) * dim; i++) printf("%.9g\n", (double)rows[i]);
    for (int metric = PITH_METRIC_COSINE; metric <= PITH_METRIC_L2; metric++)
        for (int pass = PITH_FIRST_PASS_NONE; pass <= PITH_FIRST_PASS_BINARY; pass++)
            if (find(rows + dim, count, dim, rows, metric, pass, &err)) return puts(err.message), 1;
    free(texts);
    free(rows);
    pith_model_close(model);
    return 0;
}
