/* backend_far.c - a kind of device whose memory the host cannot look into (far_memory.c). It lets
 * the CPU's operators compute, at once or late.
 *
 * Each thread that gives work to a context has a lane, in which the work is done in order. Work
 * under way is a list: a look at it (poll) does the first piece now and then, a wait does all. */
#include "far.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/shared/call_op.h"

far_control far = { .runs_left = -1, .bytes_left = -1 };

enum { LANES_MOST = 64 };

/* A piece of work. Of a run the tensors are copies, and so are inputs in host memory. */
typedef struct work {
    struct work *next;
    uint64_t mark;
    far_stream *stream; /* whose write is to be done first; NULL: this is none */
    void *to;           /* of a copy; NULL: it is a run */
    const void *from;
    size_t bytes;
    pith__run run;
    pith__exec exec;
    pith_tensor *tensors;
    const pith_tensor **in;
    pith_tensor **out;
    void **kept; /* [in_count] */
} work;

typedef struct lane {
    pthread_t thread;
    bool used;
    work *first, **last;
    uint64_t given, done; /* marks */
    uint64_t looks;
    pith_status status; /* of work that failed, until somebody is told */
    pith_error err;
} lane;

typedef struct far_context {
    int ordinal;
    uint64_t delay;
    size_t programs;
    bool rounds, rewrites;
    pthread_mutex_t lock; /* of the lanes; the thread that works holds it */
    lane lanes[LANES_MOST];
} far_context;

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;

static void count(size_t *counter, int64_t change) {
    pthread_mutex_lock(&count_lock);
    *counter = (size_t)((int64_t)*counter + change);
    pthread_mutex_unlock(&count_lock);
}

/* One more piece of work; false: the device is lost. */
static bool far_works(const far_context *c, size_t *counter) {
    pthread_mutex_lock(&count_lock);
    const bool counts = !far.loses || far.loses == c->ordinal + 1;
    const bool works = !counts || far.runs_left != 0;
    far.runs_left -= counts && far.runs_left > 0;
    ++*counter;
    if (counter == &far.steps) far.device_steps[c->ordinal]++;
    pthread_mutex_unlock(&count_lock);
    return works;
}

/* ---- settings ---- */

static pith_status far_check_setting(const char *key, const char *value, pith_error *err) {
    const bool numbers = !strcmp(key, "delay") || !strcmp(key, "programs"),
               precision = !strcmp(key, "precision"), rewrite = !strcmp(key, "rewrite");
    if (!numbers && !precision && !rewrite) return PITH_ERR_NOT_FOUND;
    if (numbers && strlen(value) == strspn(value, "0123456789")) return PITH_OK;
    if (precision && (!strcmp(value, "float32") || !strcmp(value, "bfloat16"))) return PITH_OK;
    if (rewrite && (!strcmp(value, "0") || !strcmp(value, "1"))) return PITH_OK;
    return pith__fail(err, PITH_ERR_ARGUMENT, "%s cannot be '%s'", key, value);
}

static pith_status far_open(void **context, const pith__device_choice *choice,
                            const pith_allocator *allocator, pith_error *err) {
    (void)allocator;
    if (far.open) return pith__fail(err, far.open, "no far memory in this machine");
    if (choice->ordinal >= FAR_DEVICES)
        return pith__fail(err, PITH_ERR_NOT_FOUND,
                          "there is no far device %d; this machine has %d of them", choice->ordinal,
                          FAR_DEVICES);
    far_context *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->ordinal = choice->ordinal;
    c->delay = (uint64_t)far.delay;
    c->programs = far.programs;
    for (size_t i = 0; i < choice->setting_count; i++) {
        const pith__device_setting *s = &choice->settings[i];
        if (!strcmp(s->key, "delay")) c->delay = strtoull(s->value, NULL, 10);
        if (!strcmp(s->key, "programs")) c->programs = strtoull(s->value, NULL, 10);
        if (!strcmp(s->key, "precision")) c->rounds = !strcmp(s->value, "bfloat16");
        if (!strcmp(s->key, "rewrite")) c->rewrites = *s->value == '1';
    }
    pthread_mutex_init(&c->lock, NULL);
    count(&far.opened, 1);
    *context = c;
    return PITH_OK;
}

static void far_accuracy(void *context, pith__accuracy *a) {
    const far_context *c = context;
    if (c->rounds) *a = (pith__accuracy){ "bfloat16", 0.05, 0.05 };
}

/* ---- work ---- */

static void work_free(work *w) {
    for (int i = 0; w->kept && i < w->run.in_count; i++) free(w->kept[i]);
    free(w->kept);
    free(w->tensors);
    free(w->in);
    free(w->out);
    free(w);
}

static void round_results(const pith__run *r) {
    for (int i = 0; i < r->out_count; i++) {
        if (!r->out[i] || r->out[i]->dtype != PITH_F32) continue;
        uint32_t *bits = r->out[i]->data;
        for (size_t k = 0; k < r->out[i]->bytes / sizeof *bits; k++)
            if ((bits[k] & 0x7F800000u) != 0x7F800000u)
                bits[k] = (bits[k] + 0x7FFFu + (bits[k] >> 16 & 1)) & 0xFFFF0000u;
    }
}

static pith_status far_compute(const far_context *c, pith__run *r) {
    const pith__claim *claim = pith__claim_of(r->node);
    far_window(1);
    pith_status status = claim ? far_run_program(claim, r) : far_op(r->node)->run(r);
    if (!status && c->rounds) round_results(r);
    far_window(-1);
    return status;
}

static void stream_write(far_stream *s) {
    if (s->bytes) far_write(s->to, s->from, s->bytes);
    s->bytes = 0;
}

static pith_status work_do(const far_context *c, work *w, pith_error *err) {
    if (w->stream) {
        stream_write(w->stream);
        return PITH_OK;
    }
    if (!far_works(c, w->to ? &far.copies : &far.steps))
        return pith__fail(err, PITH_ERR_RUN, "the device is lost");
    w->run.err = err;
    if (!w->to) return far_compute(c, &w->run);
    far_window(1);
    memcpy(w->to, w->from, w->bytes);
    far_window(-1);
    return PITH_OK;
}

/* After a failure the rest of the lane is never done. */
static void lane_do_first(const far_context *c, lane *l) {
    work *w = l->first;
    l->first = w->next;
    if (!l->first) l->last = &l->first;
    if (!l->status) l->status = work_do(c, w, &l->err);
    l->done = w->mark;
    work_free(w);
}

static pith_status lane_fault(lane *l, pith_error *err) {
    const pith_status status = l->status;
    if (status && err) *err = l->err;
    l->status = PITH_OK;
    return status;
}

/* The lane of this thread, with the lock held. */
static lane *lane_take(far_context *c) {
    pthread_mutex_lock(&c->lock);
    size_t i = 0;
    while (i < LANES_MOST && c->lanes[i].used && !pthread_equal(c->lanes[i].thread, pthread_self()))
        i++;
    for (size_t k = 0; i == LANES_MOST && k < LANES_MOST; k++)
        if (!c->lanes[k].first) i = k;
    if (i == LANES_MOST) abort();
    lane *l = &c->lanes[i];
    if (!l->used || !pthread_equal(l->thread, pthread_self())) l->last = &l->first;
    if (!l->given) l->given = l->done = (uint64_t)i << 48;
    l->used = true;
    l->thread = pthread_self();
    return l;
}

static pith_status lane_end(far_context *c, lane *l, pith_error *err) {
    while (l->first) lane_do_first(c, l);
    return lane_fault(l, err);
}

static pith_status lane_give(far_context *c, lane *l, work *w, pith_error *err) {
    w->mark = ++l->given;
    *l->last = w;
    l->last = &w->next;
    count(&far.begun, c->delay > 0);
    return c->delay ? lane_fault(l, err) : lane_end(c, l, err);
}

static uint64_t far_mark(void *context) {
    far_context *c = context;
    const lane *l = lane_take(c);
    const uint64_t mark = l->given;
    pthread_mutex_unlock(&c->lock);
    return mark;
}

static pith_status far_poll(void *context, uint64_t mark, bool wait, bool *done, pith_error *err) {
    far_context *c = context;
    pthread_mutex_lock(&c->lock);
    lane *l = &c->lanes[mark >> 48];
    while (wait && l->first && l->done < mark) lane_do_first(c, l);
    if (!wait && l->first && c->delay && ++l->looks % c->delay == 0) lane_do_first(c, l);
    *done = l->done >= mark;
    const pith_status status = lane_fault(l, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static void far_close(void *context) {
    far_context *c = context;
    for (size_t i = 0; i < LANES_MOST; i++)
        while (c->lanes[i].first) lane_do_first(c, &c->lanes[i]);
    pthread_mutex_destroy(&c->lock);
    free(c);
    count(&far.opened, -1);
}

/* ---- nodes ---- */

static uint32_t far_mix(uint32_t hash, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * 0x01000193u;
    return hash ^ hash >> 15;
}

static bool far_supports(void *context, const pith__node *node) {
    const far_context *c = context;
    const bool view = c->programs && node->op->flags & PITH_OP_VIEW;
    if (node->op != far_op(node)) return true;
    if (far.seed == FAR_NONE || (!node->op->run && !view)) return false;
    if (far.seed == FAR_ALL) return true;
    uint32_t hash = far_mix(0x811C9DC5u ^ (far.seed + 7919u * (uint32_t)c->ordinal) * 0x9E3779B9u,
                            node->op_type.data, node->op_type.size);
    for (int i = 0; far.seed % 2 && i < node->output_count; i++)
        if (node->outputs[i])
            hash = far_mix(hash, (const char *)&node->outputs[i]->id, sizeof node->outputs[i]->id);
    return hash >> 7 & 1;
}

static pith_status far_prepare(void *context, pith__prepare *c) {
    (void)context;
    return far_op(c->node)->prepare ? far_op(c->node)->prepare(c) : PITH_OK;
}

static pith_status far_scratch(void *context, const pith__infer *c, const void *state, int threads,
                               size_t *bytes) {
    (void)context;
    *bytes = 0;
    return pith__claim_of(c->node) ? PITH_OK : pith__op_scratch(c, state, threads, bytes);
}

static size_t far_program_least(void *context) { return ((const far_context *)context)->programs; }

static bool far_on_host(const pith__node *node, int input) {
    const pith__claim *claim = pith__claim_of(node);
    return claim ? claim->on_host[input] : input < 32 && node->op->shape_inputs >> input & 1;
}

static bool far_is_packed(const pith__node *node, int input) {
    const pith__claim *claim = pith__claim_of(node);
    return claim && claim->packed[input];
}

/* Everything is where the interface says it is. */
static pith_status far_check(const far_context *c, const pith__run *r) {
    const pith__op *op = r->node->op;
    for (int i = 0; i < r->in_count && !(op->flags & PITH_OP_SHAPE_ONLY); i++) {
        /* without data: it is packed */
        if (!r->in[i] || !r->in[i]->bytes || !r->in[i]->data || far_is_packed(r->node, i)) continue;
        if (far_memory_holds(c->ordinal, r->in[i]->data, r->in[i]->bytes) ==
            far_on_host(r->node, i))
            return pith__fail(r->err, PITH_ERR_RUN, "input %d is in the wrong memory", i);
    }
    for (int i = 0; i < r->out_count; i++)
        if (r->out[i] && r->out[i]->dtype &&
            !far_memory_holds(c->ordinal, r->out[i]->data, r->out[i]->bytes))
            return pith__fail(r->err, PITH_ERR_RUN, "output %d is in the wrong memory", i);
    if (r->scratch && !far_memory_holds(c->ordinal, r->scratch, 1))
        return pith__fail(r->err, PITH_ERR_RUN, "scratch is in the wrong memory");
    return PITH_OK;
}

static work *work_of_run(const pith__run *r) {
    work *w = calloc(1, sizeof *w);
    if (!w) abort();
    const size_t ins = pith__node_in_room(r->node), outs = pith__node_out_room(r->node);
    w->tensors = calloc(ins + outs + 1, sizeof *w->tensors);
    w->in = calloc(ins + 1, sizeof *w->in);
    w->out = calloc(outs + 1, sizeof *w->out);
    w->kept = calloc(ins + 1, sizeof *w->kept);
    if (!w->tensors || !w->in || !w->out || !w->kept) abort();
    for (int i = 0; i < r->in_count; i++) {
        if (!r->in[i]) continue;
        pith_tensor *t = &w->tensors[i];
        *t = *r->in[i];
        w->in[i] = t;
        if (!far_on_host(r->node, i) || !t->bytes || !t->data) continue;
        w->kept[i] = malloc(t->bytes);
        t->data = memcpy(w->kept[i], t->data, t->bytes);
    }
    for (int i = 0; i < r->out_count; i++) {
        if (!r->out[i]) continue;
        w->tensors[ins + (size_t)i] = *r->out[i];
        w->out[i] = &w->tensors[ins + (size_t)i];
    }
    w->exec = (pith__exec){ .threads = r->exec->threads,
                            .isa = r->exec->isa,
                            .loop_limit = r->exec->loop_limit };
    w->run = *r;
    w->run.in = w->in;
    w->run.out = w->out;
    w->run.exec = &w->exec;
    w->run.err = NULL;
    return w;
}

/* An operator that allocates its outputs ends within the call. */
static pith_status far_run(void *context, pith__run *r) {
    far_context *c = context;
    PITH_TRY(far_check(c, r));
    lane *l = lane_take(c);
    pith_status status = PITH_OK;
    const bool late = r->node->op->flags & PITH_OP_LATE;
    if (c->delay && !late) {
        status = lane_give(c, l, work_of_run(r), r->err);
        pthread_mutex_unlock(&c->lock);
        return status;
    }
    status = lane_end(c, l, r->err);
    pthread_mutex_unlock(&c->lock);
    if (status) return status;
    if (!far_works(c, &far.steps)) return pith__fail(r->err, PITH_ERR_RUN, "the device is lost");
    return far_compute(c, r);
}

/* ---- memory ---- */

static void *far_alloc(void *context, size_t bytes) {
    return far_memory_alloc(((const far_context *)context)->ordinal, bytes);
}

static void far_free(void *context, void *memory) {
    far_context *c = context;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < LANES_MOST; i++)
        while (c->lanes[i].first) lane_do_first(c, &c->lanes[i]);
    pthread_mutex_unlock(&c->lock);
    far_memory_free(memory);
}

static bool far_holds(void *context, const void *data, size_t bytes) {
    return far_memory_holds(((const far_context *)context)->ordinal, data, bytes);
}

static pith_status far_check_copy(const far_context *c, const void *to, const void *from,
                                  size_t bytes, pith__copy_way way, pith_error *err) {
    const bool from_far = way != PITH_COPY_TO_DEVICE, to_far = way != PITH_COPY_TO_HOST;
    if (bytes && (far_memory_holds(c->ordinal, from, bytes) != from_far ||
                  far_memory_holds(c->ordinal, to, bytes) != to_far))
        return pith__fail(err, PITH_ERR_RUN, "a copy between the wrong memories");
    return PITH_OK;
}

static pith_status far_begin_copy(void *context, void *to, const void *from, size_t bytes,
                                  pith__copy_way way, pith_error *err) {
    far_context *c = context;
    PITH_TRY(far_check_copy(c, to, from, bytes, way, err));
    work *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->to = to;
    w->from = from;
    w->bytes = bytes;
    lane *l = lane_take(c);
    const pith_status status = lane_give(c, l, w, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static pith_status far_copy(void *context, void *to, const void *from, size_t bytes,
                            pith__copy_way way, pith_error *err) {
    far_context *c = context;
    PITH_TRY(far_begin_copy(context, to, from, bytes, way, err));
    lane *l = lane_take(c);
    const pith_status status = lane_end(c, l, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- streams ---- */

static pith_status far_await(void *context, void *stream, pith_error *err) {
    far_context *c = context;
    work *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->stream = stream;
    w->stream->awaited++;
    lane *l = lane_take(c);
    const pith_status status = lane_give(c, l, w, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static pith_status far_follow(void *context, void *stream, pith_error *err) {
    (void)err;
    far_stream *s = stream;
    s->context = context;
    s->mark = far_mark(context);
    s->followed++;
    return PITH_OK;
}

void far_stream_finish(far_stream *s) {
    bool done = true;
    pith_error err = PITH_ERROR_INIT;
    stream_write(s);
    if (s->mark && far_poll(s->context, s->mark, true, &done, &err)) abort();
    s->mark = 0;
    if (!done) abort();
}

/* ---- the backend ---- */

static pith_status far_pass(void *context, pith__graph *graph, size_t *changes, pith_error *err) {
    return ((const far_context *)context)->rewrites ? far_rewrite(graph, changes, err) : PITH_OK;
}

static const pith__backend_pass far_passes[] = { { "twins", far_pass } };

const pith__backend pith__backend_far = {
    .name = "far",
    .settings = "delay, programs, precision, rewrite",
    .check = far_check_setting,
    .open = far_open,
    .close = far_close,
    .accuracy = far_accuracy,
    .passes = far_passes,
    .pass_count = 1,
    .supports = far_supports,
    .prepare = far_prepare,
    .program_least = far_program_least,
    .compile = far_compile,
    .scratch = far_scratch,
    .run = far_run,
    .alloc = far_alloc,
    .free = far_free,
    .copy = far_copy,
    .begin_copy = far_begin_copy,
    .mark = far_mark,
    .poll = far_poll,
    .holds = far_holds,
    .await = far_await,
    .follow = far_follow,
};
