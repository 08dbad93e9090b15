/* inner_values.c - see inner_values.h. */
#include "cli/compare/inner_values.h"

#include <stdlib.h>
#include <string.h>

/* A thousandth: rounding, and sums in another order, stay far below it in f32. Next to zero,
 * functions such as Sigmoid are approximated: a millionth is nothing. */
#define INNER_SHARE 1e-3
#define INNER_LEAST 1e-6
enum { ORT_LEVEL_NONE = 1 }; /* of --ort-level, which counts from "not given" */

static bool inner_differs(const difference_of *d, const inner_limits *limits) {
    if (limits->atol >= 0 || limits->rtol >= 0)
        return (limits->atol >= 0 && d->max_abs > limits->atol) ||
               (limits->rtol >= 0 && d->max_rel > limits->rtol);
    return d->max_abs > INNER_SHARE * d->largest && d->max_abs > INNER_LEAST;
}

static int inner_compare(inner_values *found, const command *c, const two_runtimes *t,
                         const inner_limits *limits) {
    int code = EXIT_DONE;
    found->count = pith_model_output_count(t->models[0]);
    for (size_t i = 0; i < found->count && !code && !found->differs; i++) {
        code = two_runtimes_compare(&found->first, t, c, i);
        found->differs = !code && inner_differs(&found->first, limits);
        found->index = i;
    }
    if (!found->differs) return code;
    found->name = strdup(found->first.name);
    found->first.name = found->name;
    return code;
}

int inner_values_find(inner_values *found, const command *c, const char *model,
                      pith_open_options open, runtime_choice *choice, const model_inputs *in,
                      const pith_run_options *run, const inner_limits *limits) {
    two_runtimes t = { .names = { "builtin", "ort" } };
    runtime_choice written = *choice;
    written.names = NULL; /* made and freed again */
    written.providers = (string_list){ NULL, 0 };
    if (!written.level) written.level = ORT_LEVEL_NONE;
    open.optimization = PITH_OPTIMIZATION_NONE;
    open.flags |= PITH_OPEN_INNER;
    *found = (inner_values){ .count = 0 };
    int code = two_runtimes_open(&t, c, model, open, &written, run->call.threads);
    if (!code) code = two_runtimes_run(&t, c, in, run);
    if (!code) code = inner_compare(found, c, &t, limits);
    two_runtimes_close(&t);
    free(written.providers.items);
    free(written.names);
    return code;
}
