/* schedule.c - see schedule.h. Deadlines are in a pairing heap, whose links are in the requests: so
 * nothing but a key's first request needs memory: for its line, and for what it holds. */
#include "models/queue/schedule.h"

/* ---- the heap of deadlines ---- */

static pith__schedule_request *heap_join(pith__schedule_request *a, pith__schedule_request *b) {
    if (!a) return b;
    if (!b) return a;
    if (b->deadline < a->deadline) {
        pith__schedule_request *swap = a;
        a = b;
        b = swap;
    }
    b->previous = a;
    b->sibling = a->child;
    if (a->child) a->child->previous = b;
    a->child = b;
    return a;
}

/* Joins children by twos from the left, then all pairs from the right. */
static pith__schedule_request *heap_join_children(pith__schedule_request *r) {
    pith__schedule_request *pairs = NULL, *all = NULL, *child = r->child;
    r->child = NULL;
    while (child) {
        pith__schedule_request *a = child, *b = a->sibling;
        child = b ? b->sibling : NULL;
        a->sibling = a->previous = NULL;
        if (b) b->sibling = b->previous = NULL;
        a = heap_join(a, b);
        a->sibling = pairs;
        pairs = a;
    }
    while (pairs) {
        pith__schedule_request *next = pairs->sibling;
        pairs->sibling = NULL;
        all = heap_join(all, pairs);
        pairs = next;
    }
    return all;
}

static void heap_remove(pith__schedule *s, pith__schedule_request *r) {
    pith__schedule_request *children = heap_join_children(r);
    if (s->deadlines == r) {
        s->deadlines = children;
        return;
    }
    if (r->previous->child == r)
        r->previous->child = r->sibling;
    else
        r->previous->sibling = r->sibling;
    if (r->sibling) r->sibling->previous = r->previous;
    r->sibling = r->previous = NULL;
    s->deadlines = heap_join(s->deadlines, children);
}

/* ---- lines ---- */

static size_t schedule_bucket(uint64_t n) {
    return (size_t)(n * UINT64_C(0x9e3779b97f4a7c15) >> 54) % PITH_SCHEDULE_BUCKETS;
}

static size_t schedule_level(int32_t priority) {
    return (size_t)(priority + PITH_SCHEDULE_PRIORITY_MAX);
}

static void schedule_put_key(pith__schedule *s, pith__schedule_key *k) {
    const size_t level = schedule_level(k->priority);
    k->after = NULL;
    k->before = s->levels[level].last;
    if (k->before)
        k->before->after = k;
    else
        s->levels[level].first = k;
    s->levels[level].last = k;
}

static void schedule_take_key(pith__schedule *s, pith__schedule_key *k) {
    const size_t level = schedule_level(k->priority);
    if (k->before)
        k->before->after = k->after;
    else
        s->levels[level].first = k->after;
    if (k->after)
        k->after->before = k->before;
    else
        s->levels[level].last = k->before;
}

static void schedule_put_request(pith__schedule_key *k, pith__schedule_request *r) {
    r->line = k;
    r->after = NULL;
    r->before = k->last;
    if (k->last)
        k->last->after = r;
    else
        k->first = r;
    k->last = r;
}

static void schedule_take_request(pith__schedule_request *r) {
    pith__schedule_key *k = r->line;
    if (r->before)
        r->before->after = r->after;
    else
        k->first = r->after;
    if (r->after)
        r->after->before = r->before;
    else
        k->last = r->before;
    r->line = NULL;
}

/* The key's line; a new one if it has none. NULL: memory is out. */
static pith__schedule_key *schedule_find_key(pith__schedule *s, uint64_t key, int32_t priority) {
    pith__schedule_key **bucket = &s->keys[schedule_bucket(key + (uint64_t)priority)];
    pith__schedule_key *k = *bucket;
    while (k && (k->key != key || k->priority != priority)) k = k->same_bucket;
    if (k) return k;
    k = pith__memory_alloc(s->allocator, sizeof *k, 16);
    if (!k) return NULL;
    *k = (pith__schedule_key){ .key = key, .priority = priority, .same_bucket = *bucket };
    *bucket = k;
    schedule_put_key(s, k);
    return k;
}

static void schedule_drop_key(pith__schedule *s, pith__schedule_key *k) {
    pith__schedule_key **at = &s->keys[schedule_bucket(k->key + (uint64_t)k->priority)];
    schedule_take_key(s, k);
    while (*at != k) at = &(*at)->same_bucket;
    *at = k->same_bucket;
    pith__memory_free(s->allocator, k);
}

/* ---- what keys hold ---- */

static const pith__schedule_holder *schedule_find_holder(const pith__schedule *s, uint64_t key) {
    const pith__schedule_holder *h = s->holders[schedule_bucket(key)];
    while (h && h->key != key) h = h->same_bucket;
    return h;
}

/* A new one holds nothing. NULL: memory is out. */
static pith__schedule_holder *schedule_take_holder(pith__schedule *s, uint64_t key) {
    pith__schedule_holder **bucket = &s->holders[schedule_bucket(key)], *h = *bucket;
    while (h && h->key != key) h = h->same_bucket;
    if (h) return h;
    h = pith__memory_alloc(s->allocator, sizeof *h, 16);
    if (!h) return NULL;
    *h = (pith__schedule_holder){ .key = key, .same_bucket = *bucket };
    *bucket = h;
    return h;
}

/* Ends a holder that holds nothing. */
static void schedule_drop_holder(pith__schedule *s, pith__schedule_holder *h) {
    pith__schedule_holder **at = &s->holders[schedule_bucket(h->key)];
    if (h->requests) return;
    while (*at != h) at = &(*at)->same_bucket;
    *at = h->same_bucket;
    pith__memory_free(s->allocator, h);
}

/* Whether a key may hold so much when so much stays free. */
static bool schedule_is_share(const pith__schedule *s, size_t held, size_t unheld) {
    const double p = s->key_percent;
    return (double)held * (100 - p) <= (double)unheld * p;
}

/* ---- those that have not begun ---- */

static bool schedule_has_begun(const pith__schedule *s, const pith__schedule_request *r) {
    return !r->older && s->oldest != r;
}

static void schedule_begin(pith__schedule *s, pith__schedule_request *r) {
    if (schedule_has_begun(s, r)) return;
    if (r->older)
        r->older->newer = r->newer;
    else
        s->oldest = r->newer;
    if (r->newer)
        r->newer->older = r->older;
    else
        s->newest = r->older;
    r->older = r->newer = NULL;
}

/* Nothing is left to be taken of it. Its key stays, for the caller to drop. */
static void schedule_finish(pith__schedule *s, pith__schedule_request *r) {
    schedule_begin(s, r);
    if (r->deadline) heap_remove(s, r);
    schedule_take_request(r);
    s->waiting--;
    s->waiting_bytes -= r->bytes;
}

/* ---- what others call ---- */

void pith__schedule_init(pith__schedule *s, const pith_allocator *allocator, size_t max_requests,
                         size_t max_bytes, int key_percent) {
    *s = (pith__schedule){ .allocator = allocator,
                           .max_requests = max_requests,
                           .max_bytes = max_bytes,
                           .key_percent = key_percent };
}

/* The bytes of one request are compared with those that its key could hold in an empty queue first,
 * since a larger one need not come again. */
pith_status pith__schedule_check(const pith__schedule *s, uint64_t key, size_t bytes, bool *of_key,
                                 pith_error *err) {
    const pith__schedule_holder *h = schedule_find_holder(s, key);
    const size_t requests = h ? h->requests : 0, own = h ? h->bytes : 0;
    *of_key = false;
    if (bytes > s->max_bytes || !schedule_is_share(s, bytes, s->max_bytes - bytes))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the request needs %zu bytes, and one key may hold %d %% of %zu: make it "
                          "smaller, or raise max_bytes",
                          bytes, s->key_percent, s->max_bytes);
    if (s->held >= s->max_requests)
        return pith__fail(err, PITH_ERR_BUSY, "the queue is full: it has %zu requests", s->held);
    if (s->bytes > s->max_bytes - bytes)
        return pith__fail(err, PITH_ERR_BUSY,
                          "the queue is full: it holds %zu bytes of requests, and may hold %zu; "
                          "this one has %zu",
                          s->bytes, s->max_bytes, bytes);
    *of_key = true;
    if (requests && !schedule_is_share(s, requests + 1, s->max_requests - s->held - 1))
        return pith__fail(err, PITH_ERR_BUSY,
                          "the key has its share of the queue: %zu of %zu requests", requests,
                          s->max_requests);
    if (!schedule_is_share(s, own + bytes, s->max_bytes - s->bytes - bytes))
        return pith__fail(err, PITH_ERR_BUSY,
                          "the key has its share of the queue: %zu of %zu bytes; this request has "
                          "%zu",
                          own, s->max_bytes, bytes);
    *of_key = false;
    return PITH_OK;
}

/* The line of a request's key, where there are texts. */
static pith_status schedule_line_up(pith__schedule *s, pith__schedule_request *r, pith_error *err) {
    pith__schedule_key *k = schedule_find_key(s, r->key, r->priority);
    if (!k) return pith__fail_memory(err, sizeof *k);
    schedule_put_request(k, r);
    s->waiting++;
    s->waiting_texts += r->count;
    s->waiting_bytes += r->bytes;
    for (size_t i = 0; i < r->count; i++) s->waiting_cost += r->costs[i];
    r->older = s->newest;
    if (r->older)
        r->older->newer = r;
    else
        s->oldest = r;
    s->newest = r;
    if (r->deadline) s->deadlines = heap_join(s->deadlines, r);
    return PITH_OK;
}

pith_status pith__schedule_add(pith__schedule *s, pith__schedule_request *r, pith_error *err) {
    bool of_key;
    PITH_TRY(pith__schedule_check(s, r->key, r->bytes, &of_key, err));
    pith__schedule_holder *holder = schedule_take_holder(s, r->key);
    if (!holder) return pith__fail_memory(err, sizeof *holder);
    const pith_status status = r->count ? schedule_line_up(s, r, err) : PITH_OK;
    if (status) {
        schedule_drop_holder(s, holder);
        return status;
    }
    r->holder = holder;
    holder->requests++;
    holder->bytes += r->bytes;
    r->ticket = ++s->last_ticket;
    pith__schedule_request **bucket = &s->tickets[schedule_bucket(r->ticket)];
    r->same_bucket = *bucket;
    *bucket = r;
    r->held_after = s->all;
    if (s->all) s->all->held_before = r;
    s->all = r;
    s->held++;
    s->bytes += r->bytes;
    return PITH_OK;
}

/* One chunk while it is filled. */
typedef struct schedule_chunk {
    pith__schedule_text *texts;
    size_t count, room, passed;
    uint64_t cost, left;
    const void *group;
    bool more; /* it was begun by an earlier call */
    bool full;
} schedule_chunk;

static void schedule_fill_from(pith__schedule *s, schedule_chunk *c, pith__schedule_request *r) {
    pith__schedule_key *k = r->line;
    const size_t before = r->taken;
    while (r->taken < r->count && !c->full) {
        const uint64_t cost = r->costs[r->taken];
        if (c->count == c->room || (cost > c->left && (c->count || c->more))) {
            c->full = true;
            break;
        }
        c->texts[c->count++] = (pith__schedule_text){ r, r->taken++ };
        c->left -= cost < c->left ? cost : c->left;
        s->waiting_cost -= cost;
    }
    const size_t n = r->taken - before;
    if (!n) return;
    r->out += n;
    s->out += n;
    s->waiting_texts -= n;
    schedule_begin(s, r);
    if (r->taken == r->count) {
        schedule_finish(s, r);
        return;
    }
    schedule_take_request(r);
    schedule_put_request(k, r);
}

/* Each request of the key has its turn once. */
static void schedule_fill_from_key(pith__schedule *s, schedule_chunk *c, pith__schedule_key *k) {
    const size_t before = c->count;
    pith__schedule_request *const last = k->last;
    for (pith__schedule_request *r = k->first, *next; r && !c->full; r = next) {
        next = r == last ? NULL : r->after;
        if (!c->group) c->group = r->group;
        if (r->group == c->group)
            schedule_fill_from(s, c, r);
        else if (++c->passed == PITH_SCHEDULE_PASSED_MAX)
            c->full = true;
    }
    if (!k->first) {
        schedule_drop_key(s, k);
    } else if (c->count > before) {
        schedule_take_key(s, k);
        schedule_put_key(s, k);
    }
}

size_t pith__schedule_take(pith__schedule *s, pith__schedule_text *texts, size_t room,
                           uint64_t cost, const void **group) {
    schedule_chunk c = {
        .texts = texts, .room = room, .left = cost, .group = *group, .more = *group != NULL
    };
    for (size_t level = PITH_SCHEDULE_LEVELS; level--;) {
        if (c.full || !s->waiting) break;
        pith__schedule_key *const last = s->levels[level].last;
        for (pith__schedule_key *k = s->levels[level].first, *next; k && !c.full; k = next) {
            next = k == last ? NULL : k->after;
            schedule_fill_from_key(s, &c, k);
        }
    }
    *group = c.group;
    return c.count;
}

bool pith__schedule_return(pith__schedule *s, pith__schedule_request *r, size_t n) {
    r->out -= n;
    s->out -= n;
    return !r->out && (r->stopped || r->taken == r->count);
}

bool pith__schedule_stop(pith__schedule *s, pith__schedule_request *r) {
    r->stopped = true;
    pith__schedule_key *k = r->line;
    if (!k) return !r->out;
    for (size_t i = r->taken; i < r->count; i++) s->waiting_cost -= r->costs[i];
    s->waiting_texts -= r->count - r->taken;
    schedule_finish(s, r);
    if (!k->first) schedule_drop_key(s, k);
    return !r->out;
}

pith__schedule_request *pith__schedule_expired(const pith__schedule *s, uint64_t now) {
    return s->deadlines && s->deadlines->deadline <= now ? s->deadlines : NULL;
}

pith__schedule_request *pith__schedule_find(const pith__schedule *s, uint64_t ticket) {
    pith__schedule_request *r = s->tickets[schedule_bucket(ticket)];
    while (r && r->ticket != ticket) r = r->same_bucket;
    return r;
}

void pith__schedule_leave(pith__schedule *s, pith__schedule_request *r) {
    pith__schedule_request **at = &s->tickets[schedule_bucket(r->ticket)];
    while (*at != r) at = &(*at)->same_bucket;
    *at = r->same_bucket;
    if (r->held_before)
        r->held_before->held_after = r->held_after;
    else
        s->all = r->held_after;
    if (r->held_after) r->held_after->held_before = r->held_before;
    s->held--;
    s->bytes -= r->bytes;
    r->holder->requests--;
    r->holder->bytes -= r->bytes;
    schedule_drop_holder(s, r->holder);
}
