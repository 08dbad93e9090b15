/* schedule.h - who comes next: requests of many callers, from which chunks of texts are taken. Pure
 * data: it knows no model, no thread and no clock. The caller holds a lock around every function.
 *
 * The highest priority comes first. Within it keys take turns, and within a key its requests, in
 * the order in which they came. Whoever has given texts to a chunk and has more goes behind the
 * others: so a short request waits for no more than one chunk of each other key and of each other
 * request of its own key, however many texts these have.
 *
 * What requests may hold together is bounded, and what those of one key may hold by what is free: a
 * request comes in only if its key then holds no more than p / (100 - p) times what stays free, for
 * a share of p percent. With p = 50 a key alone takes at most half, two that take what they can get
 * a third each, n of them 1 / (n + 1) each; so there is always room left for another key.
 *
 * The texts of a chunk are of one group: those that one run of a model can take. Requests of other
 * groups are passed over, and keep their places. */
#ifndef PITH_MODELS_QUEUE_SCHEDULE_H
#define PITH_MODELS_QUEUE_SCHEDULE_H

#include "base/error.h"
#include "base/memory/memory.h"

enum {
    PITH_SCHEDULE_PRIORITY_MAX = 100,
    PITH_SCHEDULE_LEVELS = 2 * PITH_SCHEDULE_PRIORITY_MAX + 1,
    PITH_SCHEDULE_BUCKETS = 1024,
    /* Requests and keys of other groups that a chunk passes over at most, so that filling it takes
     * no longer the more of them wait. */
    PITH_SCHEDULE_PASSED_MAX = 64
};

struct pith__schedule_key;
struct pith__schedule_holder;

typedef struct pith__schedule_request {
    /* Filled in by the caller. */
    uint64_t key, deadline; /* deadline 0: none */
    int32_t priority;       /* -100 to 100 */
    const void *group;      /* not NULL */
    const uint32_t *costs;  /* [count] what each text takes of a chunk */
    size_t count;           /* texts */
    size_t bytes;
    uint64_t came; /* when */
    /* Of the schedule, to read. */
    uint64_t ticket;
    size_t taken; /* texts taken so far, in order */
    size_t out;   /* of these, not returned yet */
    bool stopped; /* no more are taken */
    /* Of the schedule. */
    struct pith__schedule_key
        *line; /* of whose requests it is one; NULL: nothing is left to take */
    struct pith__schedule_holder *holder;                      /* of its key */
    struct pith__schedule_request *before, *after;             /* in the line */
    struct pith__schedule_request *older, *newer;              /* of those that have not begun */
    struct pith__schedule_request *held_before, *held_after;   /* of all */
    struct pith__schedule_request *same_bucket;                /* of tickets */
    struct pith__schedule_request *child, *sibling, *previous; /* in the heap of deadlines */
} pith__schedule_request;

typedef struct pith__schedule_key {
    uint64_t key;
    int32_t priority;
    pith__schedule_request *first, *last;
    struct pith__schedule_key *before, *after; /* in the line of its priority */
    struct pith__schedule_key *same_bucket;
} pith__schedule_key;

/* What the requests of a key hold, of all priorities, waiting or running. */
typedef struct pith__schedule_holder {
    uint64_t key;
    size_t requests, bytes;
    struct pith__schedule_holder *same_bucket;
} pith__schedule_holder;

typedef struct pith__schedule {
    const pith_allocator *allocator;
    size_t max_requests, max_bytes;
    int key_percent; /* 1 to 100 */
    uint64_t last_ticket;
    size_t held, bytes;                 /* requests that wait or run, and their bytes */
    size_t waiting, waiting_texts, out; /* requests and texts to be taken; texts that are out */
    size_t waiting_bytes;               /* of the requests that have texts to be taken */
    uint64_t waiting_cost;              /* of these texts */
    pith__schedule_request *oldest, *newest; /* of those that have not begun */
    pith__schedule_request *all;
    pith__schedule_request *deadlines; /* the root of the heap */
    struct {
        pith__schedule_key *first, *last;
    } levels[PITH_SCHEDULE_LEVELS]; /* by priority */
    pith__schedule_key *keys[PITH_SCHEDULE_BUCKETS];
    pith__schedule_holder *holders[PITH_SCHEDULE_BUCKETS];
    pith__schedule_request *tickets[PITH_SCHEDULE_BUCKETS];
} pith__schedule;

void pith__schedule_init(pith__schedule *s, const pith_allocator *allocator, size_t max_requests,
                         size_t max_bytes, int key_percent);

/* Whether a request of this key and size may come. PITH_ERR_BUSY: not now; *of_key is then whether
 * its key holds its share, rather than all keys together what there may be. PITH_ERR_ARGUMENT: a
 * key may never hold so much. A key that holds nothing is let in with one request if one may come
 * at all and its bytes fit. */
pith_status pith__schedule_check(const pith__schedule *s, uint64_t key, size_t bytes, bool *of_key,
                                 pith_error *err);
/* Lets a request in, which lives until pith__schedule_leave, and gives it a ticket. Errors: those
 * of pith__schedule_check; PITH_ERR_MEMORY. */
pith_status pith__schedule_add(pith__schedule *s, pith__schedule_request *r, pith_error *err);

typedef struct pith__schedule_text {
    pith__schedule_request *request;
    size_t text;
} pith__schedule_text;

/* Takes texts of one group, up to `room` of them and up to this cost, but at least one if any
 * waits. *group NULL: that of whoever comes next, which it is set to; else only of this group, and
 * none that costs more. Returns how many. */
size_t pith__schedule_take(pith__schedule *s, pith__schedule_text *texts, size_t room,
                           uint64_t cost, const void **group);
/* Gives back n texts of a request that were taken, and have been run. Returns whether the request
 * is done: none of its texts is out or left. */
bool pith__schedule_return(pith__schedule *s, pith__schedule_request *r, size_t n);
/* No more texts of the request are taken. Returns whether it is done. */
bool pith__schedule_stop(pith__schedule *s, pith__schedule_request *r);
/* Returns a request with texts to be taken whose deadline is at `now` or before; NULL: none. */
pith__schedule_request *pith__schedule_expired(const pith__schedule *s, uint64_t now);
/* Returns the request of this ticket, or NULL. */
pith__schedule_request *pith__schedule_find(const pith__schedule *s, uint64_t ticket);
/* Lets a request that is done go. */
void pith__schedule_leave(pith__schedule *s, pith__schedule_request *r);

#endif
