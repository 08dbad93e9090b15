/* image_search.c - finds pictures by words, with a model of texts and pictures such as CLIP.
 *
 * The pictures and the question become vectors in one space. Pictures are read one at a time here;
 * pith_embed_images takes many at once and shares them among threads.
 *
 *     cc image_search.c $(pkg-config --cflags --libs pith) -o image_search
 *     ./image_search clip-vit-base-patch32 "a dog on the beach" photos/1.jpg photos/2.jpg */
#include <pith/image.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HITS = 3 };

/* The vectors of all pictures that can be read; paths keeps their names. */
static pith_status read_pictures(float *vectors, size_t *count, const char **paths,
                                 size_t path_count, size_t dim, const pith_model *model,
                                 pith_error *err) {
    pith_status status = PITH_OK;
    *count = 0;
    for (size_t i = 0; !status && i < path_count; i++) {
        pith_error why = PITH_ERROR_INIT;
        pith_image picture;
        if (pith_image_read(&picture, paths[i], NULL, &why)) {
            fprintf(stderr, "%s\n", why.message); /* one broken file is no reason to stop */
            continue;
        }
        status = pith_embed_images(vectors + *count * dim, model, &picture, 1, NULL, err);
        pith_image_free(&picture);
        paths[*count] = paths[i];
        ++*count;
    }
    return status;
}

/* Prints the pictures that are nearest to the words. */
static pith_status ask(const pith_model *model, const float *vectors, size_t count, size_t dim,
                       const char *question, const char **paths, pith_error *err) {
    /* the cosine: lengths do not matter */
    pith_search_index_options options = PITH_SEARCH_INDEX_OPTIONS_INIT;
    pith_search_index *index;
    pith_str text = { question, strlen(question) };
    pith_hit hits[HITS];
    size_t best = count < HITS ? count : HITS;
    float *vector = malloc(dim * sizeof *vector);
    pith_status status = pith_embed(vector, model, &text, 1, NULL, err);
    if (!status &&
        !(status = pith_search_index_create(&index, vectors, count, dim, &options, err))) {
        status = pith_search(hits, index, vector, 1, best, NULL, err);
        if (!status) {
            for (size_t i = 0; i < best; i++)
                printf("%.3f  %s\n", hits[i].score, paths[hits[i].index]);
        }
        pith_search_index_destroy(index);
    }
    free(vector);
    return status;
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    size_t dim, count;
    if (argc < 4) return puts("usage: image_search MODEL WORDS PICTURE..."), 2;
    if (pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;
    pith_status status = pith_embed_images_dim(&dim, model, NULL, &err);
    if (!status) {
        const char **paths = (const char **)argv + 3;
        float *vectors = malloc((size_t)(argc - 3) * dim * sizeof *vectors);
        status = read_pictures(vectors, &count, paths, (size_t)(argc - 3), dim, model, &err);
        if (!status && count) status = ask(model, vectors, count, dim, argv[2], paths, &err);
        free(vectors);
    }
    if (status) puts(err.message);
    pith_model_close(model);
    return status != PITH_OK;
}
