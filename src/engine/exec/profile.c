/* profile.c - records steps and phases, and writes them in the Chrome trace format.
 *
 * The format is that of "Trace Event Format" (catapult project): complete events (ph X) with times
 * in microseconds and one tid per lane. Perfetto and chrome://tracing read it. */
#include "engine/exec/profile.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/dtype.h"
#include "base/formats/json_write.h"
#include "base/os/clock.h"
#include "base/os/cpu.h"
#include "base/text_out.h"
#include "engine/ops/shared/elementwise.h"

/* Events that a profile keeps; later ones are only counted. An event takes about 250 bytes, so a
 * profile that is left on stays below a few hundred MB. */
#define EVENTS_MAX 1000000

/* Steps that ran side by side have tids of their own, so that their times may overlap: this times
 * the number of their branch, beside the lane's. */
#define BRANCH_TID 100000
/* So has what a device did beside other steps: this times the number of its memory. */
#define DEVICE_TID ((int64_t)BRANCH_TID * 10000)

typedef struct event {
    struct event *next;
    const char *name; /* a phase's, or the operator's */
    uint64_t begin_ns, end_ns;
    int64_t items; /* of a phase; -1: not said */
    /* What follows is a step's; isa is NULL for a phase. */
    const char *isa, *kernel, *shapes, *node; /* the last two NULL if memory was out */
    size_t index;
    int depth, threads;
    uint32_t branch;    /* 0: none */
    int memory;         /* of the device that did it beside other steps; 0: none did */
    const char *device; /* its name */
    double operations, bytes;
} event;

struct pith__lane {
    const pith__recorder *recorder;
    pith__lane *next;
    pith_profile *profile;
    pthread_t thread;
    int number; /* from 1 */
    pith__arena arena;
    event *first, **last;
};

struct pith_profile {
    const pith__recorder *recorder;
    pith_allocator allocator;
    pthread_mutex_t lock; /* of the list of lanes */
    pith__lane *lanes;
    int lane_count;
    atomic_int_fast64_t events, lost;
    void (*told)(void *user, const pith_phase *phase); /* NULL: nobody */
    void *user;
    bool only; /* nothing is recorded */
};

static const pith__recorder profile_recorder;

pith_status pith__profiling_create(pith_profile **profile, const pith_allocator *allocator,
                                   pith_error *err) {
    if (!allocator) allocator = &pith__allocator_default;
    pith_profile *p = pith__memory_alloc(allocator, sizeof *p, 64);
    if (!p) return pith__fail_memory(err, sizeof *p);
    *p = (pith_profile){ .recorder = &profile_recorder, .allocator = *allocator };
    if (pthread_mutex_init(&p->lock, NULL)) {
        pith__memory_free(allocator, p);
        return pith__fail_memory(err, sizeof p->lock);
    }
    *profile = p;
    return PITH_OK;
}

void pith__profiling_destroy(pith_profile *profile) {
    if (!profile) return;
    pith_allocator allocator = profile->allocator;
    for (pith__lane *lane = profile->lanes; lane;) {
        pith__lane *next = lane->next;
        pith__arena_free(&lane->arena);
        pith__memory_free(&allocator, lane);
        lane = next;
    }
    pthread_mutex_destroy(&profile->lock);
    pith__memory_free(&allocator, profile);
}

/* ---- recording ---- */

static pith__lane *add_lane(pith_profile *p) {
    pith__lane *lane = pith__memory_alloc(&p->allocator, sizeof *lane, 64);
    if (!lane) return NULL;
    *lane = (pith__lane){ .recorder = &profile_recorder,
                          .next = p->lanes,
                          .profile = p,
                          .thread = pthread_self(),
                          .number = ++p->lane_count };
    lane->last = &lane->first;
    pith__arena_init(&lane->arena, &p->allocator);
    return p->lanes = lane;
}

static pith__lane *profile_lane(pith_profile *profile) {
    pthread_mutex_lock(&profile->lock);
    pith__lane *lane = profile->lanes;
    while (lane && !pthread_equal(lane->thread, pthread_self())) lane = lane->next;
    if (!lane) lane = add_lane(profile);
    pthread_mutex_unlock(&profile->lock);
    return lane;
}

static event *add_event(pith__lane *lane, const char *name, uint64_t begin_ns, uint64_t end_ns) {
    pith_profile *p = lane->profile;
    bool fits = atomic_fetch_add_explicit(&p->events, 1, memory_order_relaxed) < EVENTS_MAX;
    event *e = fits ? pith__arena_array(&lane->arena, 1, sizeof *e) : NULL;
    if (!e) {
        atomic_fetch_add_explicit(&p->lost, 1, memory_order_relaxed);
        return NULL;
    }
    *e = (event){ .name = name, .begin_ns = begin_ns, .end_ns = end_ns, .items = -1 };
    *lane->last = e;
    lane->last = &e->next;
    return e;
}

void pith__profiling_tell(pith_profile *profile, void (*told)(void *user, const pith_phase *phase),
                          void *user, bool only) {
    profile->told = told;
    profile->user = user;
    profile->only = only;
}

static void tell_phase(const pith_profile *p, const char *name, uint64_t begin_ns, uint64_t end_ns,
                       int64_t items) {
    const pith_phase phase = { name, begin_ns, end_ns, items };
    if (p->told) p->told(p->user, &phase);
}

static void profile_phase(pith__lane *lane, const char *name, uint64_t begin_ns, int64_t items) {
    const uint64_t end_ns = pith__clock_ns();
    tell_phase(lane->profile, name, begin_ns, end_ns, items);
    event *e = lane->profile->only ? NULL : add_event(lane, name, begin_ns, end_ns);
    if (e) e->items = items;
}

void pith__profiling_phase(pith_profile *profile, const char *name, uint64_t begin_ns) {
    uint64_t end_ns = pith__clock_ns();
    if (!profile) return;
    tell_phase(profile, name, begin_ns, end_ns, -1);
    if (profile->only) return;
    pith__lane *lane = pith__profile_lane(profile);
    const char *copy = lane ? pith__arena_str(&lane->arena, pith__str_of(name)).data : NULL;
    if (copy) add_event(lane, copy, begin_ns, end_ns);
}

/* "float32 [12, 384], float32 [384] -> float32 [12]"; cut where it does not fit. */
static void list_shapes(char *text, size_t size, const pith__run *r) {
    pith__text_out out = pith__text_begin(text, size);
    for (int i = 0; i < r->in_count + r->out_count; i++) {
        bool is_output = i >= r->in_count;
        const pith_tensor *t = is_output ? r->out[i - r->in_count] : r->in[i];
        const char *between = i ? ", " : "";
        if (i == r->in_count) between = " -> ";
        char dims[160];
        if (t)
            pith__text_put(&out, "%s%s %s", between, pith__dtype_name(t->dtype),
                           pith__dims_text(t->dims, t->rank, dims, sizeof dims));
        else
            pith__text_put(&out, "%s-", between);
    }
}

static void record(void *context, const pith__trace_event *traced) {
    pith__lane *lane = context;
    const pith__run *r = traced->run;
    if (!traced->step) {
        add_event(lane, "bind", traced->begin_ns, traced->end_ns);
        return;
    }
    event *e = add_event(lane, r->node->op->name, traced->begin_ns, traced->end_ns);
    if (!e) return;
    const int tails = r->tail ? r->tail->count : 0;
    for (int i = 0; i < tails; i++) {
        const char *longer =
            pith__arena_printf(&lane->arena, "%s+%s", e->name, r->tail->names[i]).data;
        if (longer) e->name = longer;
    }
    char shapes[1024] = "";
    pith__cost cost = pith__run_cost(r);
    const pith__step *step = traced->step;
    if (!step->is_copy && step->device->backend->cost) step->device->backend->cost(r, &cost);
    list_shapes(shapes, sizeof shapes, r);
    e->node = pith__arena_str(&lane->arena, r->node->name).data;
    e->shapes = pith__arena_str(&lane->arena, pith__str_of(shapes)).data;
    e->kernel = cost.kernel;
    e->isa = pith__isa_name(r->exec->isa);
    e->index = traced->index;
    e->depth = traced->depth;
    e->branch = traced->branch;
    if (traced->device) {
        e->memory = traced->device->memory;
        e->device = pith__arena_str(&lane->arena, pith__str_of(traced->device->choice->name)).data;
    }
    e->threads = r->exec->threads;
    e->operations = cost.operations;
    e->bytes = cost.bytes;
}

static pith__trace_fn *profile_trace(const pith__lane *lane) {
    return lane->profile->only ? NULL : record;
}

static const pith__recorder profile_recorder = { .lane = profile_lane,
                                                 .phase = profile_phase,
                                                 .trace = profile_trace };

/* ---- writing ---- */

/* Microseconds with three decimals, whatever the locale. */
static void put_micros(pith__json_out *out, const char *key, uint64_t ns) {
    char text[40];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    pith__json_key(out, key);
    pith__json_put(out, text);
}

static void put_step(pith__json_out *out, const event *e) {
    char kernel[64];
    snprintf(kernel, sizeof kernel, "%s%s%s", e->kernel ? e->kernel : "", e->kernel ? " " : "",
             e->isa);
    pith__json_key_int(out, "step", (int64_t)e->index);
    pith__json_key_int(out, "depth", e->depth);
    pith__json_key_string(out, "node", pith__str_of(e->node ? e->node : ""));
    pith__json_key_string(out, "shapes", pith__str_of(e->shapes ? e->shapes : ""));
    pith__json_key_string(out, "kernel", pith__str_of(kernel));
    pith__json_key_int(out, "flop", (int64_t)e->operations);
    pith__json_key_int(out, "bytes", (int64_t)e->bytes);
    pith__json_key_int(out, "threads", e->threads);
    if (e->device) pith__json_key_string(out, "device", pith__str_of(e->device));
}

static void put_event(pith__json_out *out, const event *e, int lane, uint64_t origin) {
    pith__json_separate(out);
    pith__json_put(out, "\n");
    pith__json_open(out, "{");
    pith__json_key_string(out, "name", pith__str_of(e->name));
    pith__json_key_string(out, "cat", e->isa ? PITH_STR("step") : PITH_STR("phase"));
    pith__json_key_string(out, "ph", PITH_STR("X"));
    pith__json_key_int(out, "pid", 1);
    pith__json_key_int(out, "tid", lane + BRANCH_TID * (int64_t)e->branch + DEVICE_TID * e->memory);
    put_micros(out, "ts", e->begin_ns > origin ? e->begin_ns - origin : 0);
    put_micros(out, "dur", e->end_ns - e->begin_ns);
    pith__json_key(out, "args");
    pith__json_open(out, "{");
    if (e->isa)
        put_step(out, e);
    else if (e->items >= 0)
        pith__json_key_int(out, "items", e->items);
    pith__json_close(out, "}");
    pith__json_close(out, "}");
}

static void put_thread(pith__json_out *out, int lane) {
    char name[32];
    snprintf(name, sizeof name, "thread %d", lane);
    pith__json_separate(out);
    pith__json_put(out, "\n");
    pith__json_open(out, "{");
    pith__json_key_string(out, "name", PITH_STR("thread_name"));
    pith__json_key_string(out, "ph", PITH_STR("M"));
    pith__json_key_int(out, "pid", 1);
    pith__json_key_int(out, "tid", lane);
    pith__json_key(out, "args");
    pith__json_open(out, "{");
    pith__json_key_string(out, "name", pith__str_of(name));
    pith__json_close(out, "}");
    pith__json_close(out, "}");
}

pith_status pith__profiling_write(const pith_profile *profile, const pith_call *call,
                                  const pith_writer *writer, pith_error *err) {
    pith_call o = PITH_CALL_INIT;
    pith__stop own;
    PITH_TAKE_OPTIONS(o, call, err);
    if (!profile) return pith__fail(err, PITH_ERR_ARGUMENT, "profile must not be NULL");
    PITH_TRY(pith__writer_check(writer, err));
    pith__out written = { .writer = writer, .stop = pith__stop_begin(&own, &o) };
    pith__json_out out = { &written, false };
    uint64_t origin = UINT64_MAX;
    for (const pith__lane *lane = profile->lanes; lane; lane = lane->next)
        for (const event *e = lane->first; e; e = e->next)
            if (e->begin_ns < origin) origin = e->begin_ns;
    pith__json_open(&out, "{");
    pith__json_key_string(&out, "displayTimeUnit", PITH_STR("ms"));
    pith__json_key(&out, "traceEvents");
    pith__json_open(&out, "[");
    for (const pith__lane *lane = profile->lanes; lane; lane = lane->next) {
        put_thread(&out, lane->number);
        for (const event *e = lane->first; e; e = e->next) {
            if (written.failed) break;
            put_event(&out, e, lane->number, origin);
        }
    }
    pith__json_close(&out, "]");
    pith__json_key(&out, "otherData");
    pith__json_open(&out, "{");
    pith__json_key_int(&out, "lost_events", (int64_t)profile->lost);
    pith__json_close(&out, "}");
    pith__json_close(&out, "}");
    pith__json_put(&out, "\n");
    return pith__out_status(&written, "the profile", err);
}
