/* two_runtimes.c - see two_runtimes.h. */
#include "cli/compare/two_runtimes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 };

void two_runtimes_prepare(two_runtimes *t, pith_open_options *open, runtime_choice *choice,
                          int32_t threads) {
    choice->strict = true;
    runtime_choice_apply(open, choice, threads);
    for (int i = 0; i < RUNTIMES; i++)
        t->reports[i] = (pith_runtime_report)PITH_RUNTIME_REPORT_INIT;
}

/* What only the builtin runtime takes is meant for it alone. */
static pith_open_options two_runtimes_options(const pith_open_options *open, const char *runtime) {
    static const pith_open_options none = PITH_OPEN_OPTIONS_INIT;
    pith_open_options own = *open;
    own.runtime = runtime;
    if (!strcmp(runtime, "builtin")) return own;
    if (!(own.flags & PITH_OPEN_INNER)) own.optimization = none.optimization;
    own.inter_op_threads = none.inter_op_threads;
    own.flags &= ~(uint32_t)(PITH_OPEN_NO_ARENA | PITH_OPEN_NO_PLAN_REUSE);
    return own;
}

int two_runtimes_open_one(two_runtimes *t, const command *c, const char *model,
                          pith_open_options *open, int i) {
    pith_error err = PITH_ERROR_INIT;
    const pith_open_options own = two_runtimes_options(open, t->names[i]);
    double began = now_seconds();
    if (pith_model_open(&t->models[i], model, &own, &err)) return fail_model(c, &err, model);
    t->open_seconds[i] = now_seconds() - began;
    if (pith_model_runtime(&t->reports[i], t->models[i], &err) ||
        pith_session_create(&t->sessions[i], t->models[i], &err))
        return fail(c, "%s: %s", t->names[i], err.message);
    t->outputs[i] = grow(NULL, pith_model_output_count(t->models[i]) * sizeof *t->outputs[i]);
    return EXIT_DONE;
}

int two_runtimes_open(two_runtimes *t, const command *c, const char *model, pith_open_options open,
                      runtime_choice *choice, int32_t threads) {
    int code = EXIT_DONE;
    two_runtimes_prepare(t, &open, choice, threads);
    for (int i = 0; i < RUNTIMES && !code; i++) code = two_runtimes_open_one(t, c, model, &open, i);
    return code;
}

void two_runtimes_close(two_runtimes *t) {
    for (int i = 0; i < RUNTIMES; i++) {
        pith_session_destroy(t->sessions[i]);
        pith_model_close(t->models[i]);
        free(t->outputs[i]);
    }
}

int two_runtimes_run(two_runtimes *t, const command *c, const model_inputs *in,
                     const pith_run_options *run) {
    pith_error err = PITH_ERROR_INIT;
    for (int i = 0; i < RUNTIMES; i++)
        if (pith_session_run(t->sessions[i], t->outputs[i], in->names, in->tensors, in->count, run,
                             &err))
            return fail(c, "%s: %s", t->names[i], err.message);
    return EXIT_DONE;
}

static void compare_pair(difference_of *d, double a, double b, size_t at) {
    if (isfinite(a) && fabs(a) > d->largest) d->largest = fabs(a);
    if (isfinite(b) && fabs(b) > d->largest) d->largest = fabs(b);
    if (a == b || (isnan(a) && isnan(b))) return;
    double by = isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
    double rel = isfinite(by) ? by / fmax(fabs(a), fabs(b)) : INFINITY;
    if (rel > d->max_rel) d->max_rel = rel;
    if (by <= d->max_abs) return;
    d->max_abs = by;
    d->at = at;
    d->values[0] = a;
    d->values[1] = b;
}

/* Strings are equal or not. */
static void compare_strings(difference_of *d, const pith_str *a, const pith_str *b) {
    for (size_t i = 0; i < d->count; i++)
        compare_pair(
            d, 0, a[i].size != b[i].size || memcmp(a[i].data, b[i].data, a[i].size) ? INFINITY : 0,
            i);
}

int two_runtimes_compare(difference_of *d, const two_runtimes *t, const command *c, size_t i) {
    const pith_tensor *x = &t->outputs[0][i], *y = &t->outputs[1][i];
    double a[BLOCK], b[BLOCK];
    pith_error err = PITH_ERROR_INIT;
    *d = (difference_of){ .name = pith_model_output(t->models[0], i)->name };
    bool same = x->dtype == y->dtype && x->rank == y->rank;
    for (int k = 0; same && k < x->rank; k++) same = x->dims[k] == y->dims[k];
    if (!same) d->max_abs = d->max_rel = INFINITY;
    if (!same || x->dtype >= PITH_DTYPE_COUNT) return EXIT_DONE;
    d->count = (size_t)pith_shape_count(x->dims, x->rank);
    if (x->dtype == PITH_STRING) {
        compare_strings(d, x->data, y->data);
        return EXIT_DONE;
    }
    for (size_t at = 0, n; at < d->count; at += n) {
        n = d->count - at < BLOCK ? d->count - at : BLOCK;
        if (pith_tensor_convert(a, PITH_F64, x, at, n, &err) ||
            pith_tensor_convert(b, PITH_F64, y, at, n, &err))
            return fail(c, "output '%s': %s", d->name, err.message);
        for (size_t k = 0; k < n; k++) compare_pair(d, a[k], b[k], at + k);
    }
    return EXIT_DONE;
}
