/* piece_list.h - the pieces of a build: a list per kind, as `pith select` makes them, files keep
 * them (piece_file.h) and a build is trimmed by them (tools/trim.c). Plain C without the library,
 * because a build runs it before there is one. */
#ifndef PITH_CLI_SELECT_PIECE_LIST_H
#define PITH_CLI_SELECT_PIECE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum piece_kind {
    PIECE_OPERATORS,
    PIECE_KERNELS,
    PIECE_PASSES,
    PIECE_RAGGED,
    PIECE_READERS,
    PIECE_FAMILIES,
    PIECE_TASKS,
    PIECE_MODULES,
    PIECE_HEADS,
    PIECE_TOKENIZER_SOURCES,
    PIECE_NORMALIZERS,
    PIECE_PRE_TOKENIZERS,
    PIECE_TOKENIZER_MODELS,
    PIECE_DECODERS,
    PIECE_RUNTIMES,
    PIECE_PARTS,
    PIECE_ISAS,
    PIECE_KINDS
} piece_kind;

extern const char *const piece_kind_names[PIECE_KINDS];
/* PIECE_KINDS: there is none of this name. */
piece_kind piece_kind_find(const char *name, size_t size);

/* Operators and kernels have dtypes: bit i stands for piece_dtypes[i]. 0: all of them. */
enum { PIECE_DTYPES = 26, PIECE_UPGRADED = 1u << 31 };
extern const char *const piece_dtypes[PIECE_DTYPES];
/* -1: there is none of this name. */
int piece_dtype_find(const char *name, size_t size);

/* An operator's name in the lists of src/select and in C: "com.microsoft::Gelu" is Gelu_ms, and
 * pith_op_Gelu_ms. An operator of a domain that is not known there has its plain name. */
void piece_symbol(char *symbol, size_t size, const char *name);
/* The other way round. */
void piece_name(char *name, size_t size, const char *symbol);

typedef struct piece_item {
    char *name;     /* owned */
    uint32_t facts; /* dtypes, and PIECE_UPGRADED for an operator of which a model has an older
                       form */
} piece_item;

/* The pieces of one kind. If the kind is not listed, all there are belong to the build. */
typedef struct piece_names {
    bool listed;
    piece_item *items; /* sorted by name, each once */
    size_t count;
} piece_names;

/* Begins as { 0 }: everything. */
typedef struct piece_list {
    piece_names kinds[PIECE_KINDS];
} piece_list;

/* Adds a piece; if it is there, its dtypes are united. The kind is listed from then on. False: out
 * of memory. */
bool piece_list_add(piece_list *list, piece_kind kind, const char *name, size_t size,
                    uint32_t facts);
/* NULL: it is not in the list, or the kind is not listed. */
const piece_item *piece_list_find(const piece_list *list, piece_kind kind, const char *name);
/* The pieces of both: what one does not list, neither does the result. False: out of memory. */
bool piece_list_unite(piece_list *list, const piece_list *other);
void piece_list_free(piece_list *list);

#endif
