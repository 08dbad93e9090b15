/* threads.c - one model, several threads, a session each.
 *
 * A model never changes once it is open, so all threads share it, with its weights in memory once.
 * What a run needs besides (activations, the shapes it has seen) is in a session, and each thread
 * makes its own. A server that answers requests in threads has this form. For vectors of many texts
 * pith_embed is simpler: it starts threads by itself.
 *
 *     cc threads.c $(pkg-config --cflags --libs pith) -pthread -o threads
 *     ./threads all-MiniLM-L6-v2
 */
#include <pith/pith.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, TOKENS_MAX = 64 };

typedef struct request {
    const pith_model *model; /* shared */
    const char *text;
    int64_t rows;   /* of the result: one per token */
    float first;    /* number in it */
    pith_error err; /* each thread has an error of its own, too */
} request;

/* The graph's inputs by name: the tokens of one text, and a mask of ones, both [1, tokens]. */
static pith_status run_text(request *r, pith_session *session, const pith_tokens *tokens) {
    int64_t ids[TOKENS_MAX], mask[TOKENS_MAX], types[TOKENS_MAX] = { 0 };
    for (size_t i = 0; i < tokens->count; i++) ids[i] = tokens->ids[i], mask[i] = 1;
    const char *names[] = { "input_ids", "attention_mask", "token_type_ids" };
    pith_tensor inputs[3], outputs[8];
    void *const data[] = { ids, mask, types };
    for (int i = 0; i < 3; i++)
        inputs[i] = (pith_tensor){ .data = data[i],
                                   .bytes = tokens->count * sizeof(int64_t),
                                   .dtype = PITH_I64,
                                   .rank = 2,
                                   .dims = { 1, (int64_t)tokens->count } };
    pith_run_options options = PITH_RUN_OPTIONS_INIT;
    options.call.threads = 1; /* the threads of this program are enough */
    pith_status status = pith_session_run(session, outputs, names, inputs, 3, &options, &r->err);
    if (status) return status;
    r->rows = outputs[0].dims[1]; /* outputs belong to the session and last until its next run */
    r->first = ((const float *)outputs[0].data)[0];
    return PITH_OK;
}

static void *answer(void *context) {
    request *r = context;
    pith_session *session;
    pith_tokens tokens = PITH_TOKENS_INIT;
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.max_length = TOKENS_MAX;
    pith_str text = { r->text, strlen(r->text) };
    if (pith_session_create(&session, r->model, &r->err)) return NULL;
    if (!pith_tokenize(&tokens, pith_model_tokenizer(r->model), text, NULL, &options, &r->err))
        run_text(r, session, &tokens);
    pith_tokens_free(&tokens);
    pith_session_destroy(session);
    return NULL;
}

int main(int argc, char **argv) {
    static const char *const texts[THREADS] = { "a cat", "a cat sat on the mat",
                                                "interest rates rose", "a cat" };
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pthread_t threads[THREADS];
    request requests[THREADS];
    if (pith_model_open(&model, argc > 1 ? argv[1] : "all-MiniLM-L6-v2", NULL, &err))
        return puts(err.message), 1;
    for (int i = 0; i < THREADS; i++) {
        requests[i] = (request){ .model = model, .text = texts[i] };
        if (pthread_create(&threads[i], NULL, answer, &requests[i]))
            return puts("no thread can be made"), 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (requests[i].err.code) return puts(requests[i].err.message), 1;
        printf("%-22s %d tokens, first number %.6f\n", texts[i], (int)requests[i].rows,
               requests[i].first);
    }
    pith_model_close(model);
    return 0;
}
