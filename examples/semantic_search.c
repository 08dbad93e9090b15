/* semantic_search.c - finds the texts whose meaning is nearest to a question.
 *
 * The texts are embedded once. An index looks at their vectors where they are and copies nothing,
 * so the array must stay until the index is destroyed. Then each question is embedded and compared
 * with all of them. The index does not change, so a server may search it in as many threads as it
 * likes.
 *
 *     cc semantic_search.c $(pkg-config --cflags --libs pith) -o semantic_search
 *     ./semantic_search all-MiniLM-L6-v2 "where do animals sleep" */
#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HITS = 3 };

static const char *const texts[] = { "the cat sleeps in the barn",  "interest rates rose again",
                                     "bread needs flour and water", "the stock market fell today",
                                     "a dog lay by the fire",       "the train was an hour late" };
enum { TEXTS = sizeof texts / sizeof texts[0] };

/* Prints the best texts for one question. */
static pith_status ask(const pith_model *model, const pith_search_index *index,
                       const char *question, pith_error *err) {
    pith_str text = { question, strlen(question) };
    pith_hit hits[HITS];
    float *vector = malloc(pith_embed_dim(model, NULL) * sizeof *vector);
    pith_status status = pith_embed(vector, model, &text, 1, NULL, err);
    if (!status) status = pith_search(hits, index, vector, 1, HITS, NULL, err);
    printf("%s\n", question);
    if (!status) {
        for (int i = 0; i < HITS; i++) printf("  %.3f  %s\n", hits[i].score, texts[hits[i].index]);
    }
    free(vector);
    return status;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_search_index *index = NULL;
    pith_str strings[TEXTS];
    if (pith_model_open(&model, argc > 1 ? argv[1] : "all-MiniLM-L6-v2", NULL, &err))
        return puts(err.message), 1;
    size_t dim = pith_embed_dim(model, NULL);
    float *vectors = malloc(TEXTS * dim * sizeof *vectors);
    for (int i = 0; i < TEXTS; i++) strings[i] = (pith_str){ texts[i], strlen(texts[i]) };

    /* The defaults: rows of f32, the cosine, no first pass. For a million vectors,
     * options.first_pass = PITH_FIRST_PASS_INT8 makes searches several times as fast and takes a
     * quarter more memory. */
    pith_search_index_options options = PITH_SEARCH_INDEX_OPTIONS_INIT;
    pith_status status = pith_embed(vectors, model, strings, TEXTS, NULL, &err);
    if (!status) status = pith_search_index_create(&index, vectors, TEXTS, dim, &options, &err);
    for (int i = 2; !status && i < argc; i++) status = ask(model, index, argv[i], &err);
    if (!status && argc < 3) status = ask(model, index, "where do animals sleep", &err);
    if (status) puts(err.message);
    pith_search_index_destroy(index);
    free(vectors);
    pith_model_close(model);
    return status != PITH_OK;
}
