/* account.h - an allocator that counts the bytes of one handle, enforces a limit, and remembers
 * refused requests.
 *
 * A model's account stands between the model and the host's allocator. Sessions, executors,
 * tokenizers and calls of the model allocate from it. It therefore counts everything except mapped
 * files and arrays of the caller (tokens). Any thread may allocate and free. */
#ifndef PITH_BASE_MEMORY_ACCOUNT_H
#define PITH_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>

#include "base/memory/block_pool.h"

typedef struct pith__account {
    pith_allocator allocator; /* to allocate from; its user is the account, which must not move */
    pith_allocator host;
    size_t limit; /* bytes; 0: none */
    atomic_size_t held, peak;
    atomic_size_t refused;    /* bytes of the last refused request; 0: none so far */
    atomic_bool limited;      /* the limit caused the refusal */
    pith__counters counters;  /* of the handle; the account itself counts allocations */
    pith__pool pool;          /* its blocks count as held; they are freed before a request is
                                refused */
    struct pith__held *files; /* what reading files in memory of this account sees (base/os/file.h);
                                 NULL: what is there now */
    struct pith__stop *stop;  /* while the handle that holds the account is opened: what may end
                                 that; else NULL */
} pith__account;

/* own: bytes that the host allocated for the handle that holds the account; they count as held. An
 * account within another one sees its files. */
void pith__account_init(pith__account *account, const pith_allocator *host, size_t limit,
                        size_t own);

/* From now on freed blocks are pooled (base/memory/block_pool.h), until pith__account_end. */
pith_status pith__account_begin_pool(pith__account *account, size_t blocks, size_t bytes,
                                     pith_error *err);
/* Frees the pool. The account goes on without one. */
void pith__account_end(pith__account *account);
/* Frees memory of pith__memory_alloc without pooling it: nothing will ask for a block of its size
 * again. */
void pith__account_discard(const pith_allocator *allocator, void *memory);
/* Frees the blocks of the pool behind an allocator of an account, and returns their bytes. Does
 * nothing for any other allocator. */
size_t pith__account_trim(const pith_allocator *allocator);

/* Returns the final status of an opening. Some steps of opening, such as a fusion, are skipped when
 * memory is short. A refused request fails the opening nevertheless, so that the result never
 * depends on the memory that happened to be free. Otherwise, and for every PITH_ERR_MEMORY, this is
 * pith__account_explain. */
pith_status pith__account_settle(pith__account *account, pith_status status, pith_error *err);

/* Puts the limit in front of the message if the limit caused a PITH_ERR_MEMORY. Returns the status.
 */
pith_status pith__account_explain(const pith__account *account, pith_status status,
                                  pith_error *err);

/* pith__account_explain for the account that the allocator belongs to. Any other allocator leaves
 * the message as it is. */
pith_status pith__account_explain_for(const pith_allocator *allocator, pith_status status,
                                      pith_error *err);

/* True if `bytes` more would stay within the limit of the account that the allocator belongs to;
 * always true for any other allocator. Call it before memory from elsewhere is requested in a size
 * that a file decides. False counts as a refusal. */
bool pith__account_admits(const pith_allocator *allocator, size_t bytes);

/* Returns the bytes that may still be allocated within the limit, those of the pool included;
 * SIZE_MAX without one. */
size_t pith__account_room(const pith_allocator *allocator);

/* Returns the held files that go with an allocator; NULL: there are none. */
struct pith__held *pith__account_files(const pith_allocator *allocator);
/* Returns what may end the opening of the handle whose account the allocator belongs to, or of one
 * that this account lies within; NULL: none is opened. For reading, decoding and copying of what a
 * handle is made of, which all happen in memory of its account. */
struct pith__stop *pith__account_stop(const pith_allocator *allocator);

/* Returns the host's allocator behind an account's, or the allocator itself if it has no account.
 * For memory that may outlive the account. */
const pith_allocator *pith__account_host(const pith_allocator *allocator);

#endif
