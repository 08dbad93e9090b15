/* account.h - an allocator that counts: what one handle of the library holds, a limit that is kept, and whether memory
 * was refused.
 *
 * A model's account stands between it and the host's allocator; sessions, executors, tokenizers and calls of the model
 * take their memory from it, so its figures are complete but for mapped files and what belongs to the caller (tokens).
 * Any thread may allocate and free. */
#ifndef PITH_BASE_ACCOUNT_H
#define PITH_BASE_ACCOUNT_H

#include <stdatomic.h>

#include "base/memory.h"

typedef struct pith_account {
    pith_allocator allocator; /* to hand on; its user is the account, which must not move */
    pith_allocator host;
    size_t limit; /* bytes; 0: none */
    atomic_size_t held, peak;
    atomic_size_t refused; /* bytes of the last request that got nothing; 0: none so far */
    atomic_bool limited;   /* the limit was why */
} pith_account;

/* own: bytes the host gave for the handle that holds the account. */
void pith_account_init(pith_account *account, const pith_allocator *host, size_t limit, size_t own);

/* For the end of an opening, which can do without much (a fusion, a size that is not inferred): with memory refused it
 * failed all the same, since what was opened must not depend on how much memory there was at some moment. Else, and
 * always for MEMORY, as pith_account_explain. */
pith_status pith_account_settle(pith_account *account, pith_status status, pith_error *err);

/* Puts the limit before the message of a MEMORY status that it caused; returns the status. */
pith_status pith_account_explain(const pith_account *account, pith_status status, pith_error *err);

/* pith_account_explain for the account an allocator belongs to; with any other one the status as it is. */
pith_status pith_account_explain_for(const pith_allocator *allocator, pith_status status, pith_error *err);

/* Whether so many bytes more would stay within the limit of the account an allocator belongs to; always with any other
 * one. For memory that is not taken from the account but that a file decides the size of. A no counts as a refusal. */
bool pith_account_admits(const pith_allocator *allocator, size_t bytes);

/* The host's allocator below an account's; any other one itself. For memory that may outlive the account. */
const pith_allocator *pith_account_host(const pith_allocator *allocator);

#endif
