/* token_cache.c - vectors of lines from a pipe: each is tokenised once, a line with the same tokens
 * as an earlier one is not embedded again, and a bad line does not stop the others.
 *
 * Tokens are counted before anything runs, so a host can fill a batch by tokens or refuse what is
 * too long. A key of ids finds texts that differ only in what the tokenizer does not see, such as
 * the case of letters or the kind of blanks.
 *
 *     cc token_cache.c $(pkg-config --cflags --libs pith) -o token_cache
 *     printf 'A cat sat.\na  CAT sat.\nrates rose\n' | ./token_cache all-MiniLM-L6-v2
 */
#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 256, BATCH_TOKENS = 4096 };

static pith_tokens lines[LINES]; /* of the lines that are not the same as an earlier one */
static pith_token_ids batch[LINES];

/* The earlier line with the same tokens; count: none. */
static size_t find(const pith_tokens *tokens, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (lines[i].count == tokens->count &&
            !memcmp(lines[i].ids, tokens->ids, tokens->count * sizeof *tokens->ids))
            return i;
    return count;
}

static int embed(const pith_model *model, size_t count, size_t dim) {
    float *vectors = malloc(count * dim * sizeof *vectors);
    pith_text_result *results = malloc(count * sizeof *results);
    pith_error *failures = malloc(count * sizeof *failures);
    pith_error err = PITH_ERROR_INIT;
    pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
    o.results = results;
    o.failures = failures;
    if (!vectors || !results || !failures) return puts("out of memory"), 1;
    if (pith_embed_tokens(vectors, model, batch, count, &o, &err)) return puts(err.message), 1;
    for (size_t i = 0; i < count; i++) {
        if (results[i].status) /* its vector is NaN */
            printf("%s\n", failures[i].message);
        else
            printf("%u tokens: %.4f %.4f ...\n", results[i].tokens, vectors[i * dim],
                   vectors[i * dim + 1]);
        pith_tokens_free(&lines[i]);
    }
    free(vectors);
    free(results);
    free(failures);
    return 0;
}

int main(int argc, char **argv) {
    char line[4096];
    size_t count = 0, sum = 0;
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    if (argc != 2) return puts("usage: token_cache MODEL"), 2;
    if (pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;
    const size_t dim = pith_embed_dim(model, NULL);
    const pith_tokenizer *tokenizer = pith_model_tokenizer(model);
    pith_tokenize_options o = PITH_TOKENIZE_OPTIONS_INIT;
    o.max_length = (int32_t)pith_embed_max_length(model, NULL); /* tokens are not cut later */
    o.no_offsets = 1;
    while (fgets(line, sizeof line, stdin)) {
        const pith_str text = { line, strcspn(line, "\n") };
        pith_tokens *tokens = &lines[count];
        *tokens = (pith_tokens)PITH_TOKENS_INIT;
        if (pith_tokenize(tokens, tokenizer, text, NULL, &o, &err)) {
            puts(err.message);
            pith_tokens_free(tokens);
            continue;
        }
        const size_t same = find(tokens, count);
        if (same < count) {
            printf("the same tokens as those of text %zu\n", same);
            pith_tokens_free(tokens);
            continue;
        }
        batch[count++] = (pith_token_ids){ tokens->ids, tokens->type_ids, tokens->count, 0 };
        sum += tokens->count;
        if (count < LINES && sum < BATCH_TOKENS) continue;
        if (embed(model, count, dim)) return 1;
        count = sum = 0;
    }
    if (count && embed(model, count, dim)) return 1;
    pith_model_close(model);
    return 0;
}
