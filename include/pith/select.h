/* select.h - which pieces of the library a program uses: what a smaller build of it has to hold.
 *
 *     pith_pieces_record(&err);
 *     … open models, embed texts, run sessions …
 *     pith_pieces_read(print_piece, NULL, &err);
 *
 * A piece is an operator, a kernel, a graph pass, a tokenizer step and so on:
 * docs/selective-build.md names the lists and says how a build is made from them. */
#ifndef PITH_SELECT_H
#define PITH_SELECT_H

#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pith_build_piece {
    const char *list;   /* "operators", "kernels", "passes", …; docs/selective-build.md lists
                           them */
    const char *name;   /* in that list: "MatMul", "com.microsoft::BiasGelu", "gemm f32",
                           "BertNormalizer" */
    const char *dtypes; /* those an operator works on, with a blank between them: "f32 i64"; "":
                           none are known, or it is no operator */
    int32_t upgraded;   /* not 0: a model was written in an older form of this operator, or in one
                           that it replaces */
} pith_build_piece;

/* Begins to note what this process uses, in all its threads, from an empty list on. Where a choice
 * depends on features of the processor, all alternatives are noted. So the same calls on the same
 * models give the same list on every processor. Thread-safe. PITH_ERR_ARGUMENT: it has begun
 * already. */
PITH_API pith_status pith_pieces_record(pith_error *err);

/* Ends that, and calls piece for each piece that was used, list by list, in the order of the
 * library's lists. The strings are valid during the callback. Thread-safe. PITH_ERR_ARGUMENT: it
 * has not begun. */
PITH_API pith_status pith_pieces_read(void (*piece)(void *user, const pith_build_piece *piece),
                                      void *user, pith_error *err);

/* Calls piece for each piece that this build of the library holds, list by list; operators without
 * their dtypes. The strings are valid during the callback. Thread-safe. PITH_ERR_ARGUMENT: piece is
 * NULL. */
PITH_API pith_status pith_pieces_list(void (*piece)(void *user, const pith_build_piece *piece),
                                      void *user, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
