/* head.h - heads turn the rows that a model computes for a text into a result.
 *
 * The encoder (models/encode/encoder.h) runs texts through a model and hands the rows of each text
 * to a head. The head turns them into the result that was asked for: one dense vector, weights by
 * token, a label, and so on. A head is one file head_<name>.c that ends in `const pith__head
 * pith__head_<name> = { … }`, and one line HEAD(<name>) in select/heads.def. It sees one text at a
 * time, so a result cannot depend on the other texts of a call. */
#ifndef PITH_MODELS_HEADS_HEAD_H
#define PITH_MODELS_HEADS_HEAD_H

#include "base/os/cpu.h"
#include "engine/graph/graph.h"
#include "models/heads/vector_steps.h"
#include "models/modules/modules.h"

/* The facts about the model, and about the output that the head reads. */
typedef struct pith__head_model {
    const pith__modules *modules;    /* settings from the directory's small files */
    int64_t width;                   /* floats per row */
    bool pooled;                     /* the output has one row per text, not one per token */
    const pith__vector_steps *steps; /* behind the pooling; NULL: none, or the output is pooled */
    pith__isa isa;
} pith__head_model;

/* The rows of one text. They are valid during the call of emit. */
typedef struct pith__head_rows {
    size_t text;       /* index of the text in the call */
    const float *rows; /* [count, width]; NULL if the call is about tokens only
                          (pith__encode_job.tokens_only) */
    int64_t count;     /* tokens of the text; 1 if the model is pooled; 0 if the text has no
                          tokens */
    int64_t width;
    int64_t prompt; /* the first so many rows are those of a prompt that the pooling leaves out; may
                       be above count */
    const int32_t *ids;   /* the ids of the text's tokens: [count], if the model is not pooled */
    pith__arena *scratch; /* memory until emit returns */
    bool bad; /* the text has no result: NaN, or nothing where results differ in size. rows and ids
                 are NULL, and count is 0 */
} pith__head_rows;

/* Bits of pith__head.takes. */
enum {
    PITH_HEAD_TOKENS = 1u << 0 /* one row per token */,
    PITH_HEAD_TEXTS = 1u << 1 /* one row per text */
};

typedef struct pith__head {
    const char *name;
    const char *phase;   /* what its work is called in profiles */
    const char *outputs; /* names of the outputs of a graph that it reads, the best first, between
                            blanks */
    uint32_t takes;      /* the forms of outputs that it can read */
    /* Checks the request (a struct of the head's own, filled in by the caller) against the model
     * and makes the state that emit reads, in the arena. PITH_ERR_ARGUMENT names the option that
     * does not fit. */
    pith_status (*open)(const void **state, const pith__head_model *model, const void *request,
                        pith__arena *arena, pith_error *err);
    /* Writes the result of one text. Threads call it at the same time, each with another text. A
     * text whose window is run again, after memory was short, is emitted again. */
    pith_status (*emit)(const void *state, const pith__head_rows *rows, pith_error *err);
    const struct pith__detector *detector; /* of a head that finds things in pictures, which has no
                                              open and no emit; NULL: of any other. See
                                              models/faces/detector.h */
} pith__head;

/* In the order of select/heads.def; defined by select/tables.c. */
extern const pith__head *const pith__head_table[];
extern const size_t pith__head_table_count;

/* Returns the index of the graph output that the head reads: the first of head->outputs that is
 * there, else the first floating-point output of a form that it takes; -1 if there is none. The
 * types of the graph are inferred. */
int pith__head_output(const pith__head *head, const pith__graph *graph);

/* Whether the output is one that the head reads by name. */
bool pith__head_is_named(const pith__head *head, const pith__graph *graph, int output);

/* The head of this name; PITH_ERR_UNSUPPORTED if this build does not have it. */
pith_status pith__head_find(const pith__head **head, const char *name, pith_error *err);

#endif
