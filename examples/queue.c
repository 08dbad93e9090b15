/* queue.c - a server that answers many connections, each with a text or two.
 *
 * One call of pith_embed for each would read all weights for a few words. A queue puts the texts of
 * all callers together into chunks, while each caller gets its own answer, with the bits that a
 * call of its own has. Here lines of standard input stand for the connections.
 *
 *     cc queue.c $(pkg-config --cflags --libs pith) -o queue
 *     seq 1000 | ./queue all-MiniLM-L6-v2
 */
#include <pith/pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a server knows of a connection. */
typedef struct connection {
    char text[200];
} connection;

/* On a thread of the queue: a server would write the answer here, or hand it on. */
static void answer(void *user, const pith_response *response) {
    connection *c = user;
    if (response->status || response->failed)
        printf("%s: %s\n", c->text, response->message);
    else
        printf("%s: %u tokens, first number %.6f\n", c->text, response->results[0].tokens,
               response->encoded->dense[0]);
    free(c);
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model;
    pith_queue *queue;
    char line[200];
    if (pith_model_open(&model, argc > 1 ? argv[1] : "all-MiniLM-L6-v2", NULL, &err) ||
        pith_queue_create(&queue, model, NULL, &err))
        return puts(err.message), 1;
    while (fgets(line, sizeof line, stdin)) {
        connection *c = malloc(sizeof *c);
        if (!c) return puts("out of memory"), 1;
        line[strcspn(line, "\n")] = 0;
        strcpy(c->text, line);
        pith_str text = { c->text, strlen(c->text) };
        pith_request request = PITH_REQUEST_INIT;
        request.texts = &text; /* copied */
        request.count = 1;
        request.deadline_ns = pith_clock_now() + 60000000000; /* nobody waits for over a minute */
        request.done = answer;
        request.user = c;
        if (!pith_queue_submit(NULL, queue, &request, &err)) continue;
        printf("%s: %s\n", c->text, err.message); /* a full queue: the client may try later */
        free(c);
    }
    pith_queue_statistics n = PITH_QUEUE_STATISTICS_INIT;
    if (pith_queue_drain(queue, NULL, &err) || pith_queue_report(&n, queue, &err))
        return puts(err.message), 1;
    fprintf(stderr, "%llu requests in %llu chunks\n", (unsigned long long)n.requests,
            (unsigned long long)n.chunks);
    pith_queue_destroy(queue);
    pith_model_close(model);
    return 0;
}
