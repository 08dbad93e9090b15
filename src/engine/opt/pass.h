/* pass.h - passes, which rewrite the graph, and the driver that repeats them until nothing changes.
 *
 * A pass is one file pass_<name>.c ending in `const pith__pass pith_pass_foo = { … };` and one line
 * PASS(foo) in select/passes.def, in the order they run. Passes edit only through
 * engine/graph/graph.h and engine/opt/match_nodes.h; after each pass the types of the graph are
 * inferred again and its invariants must hold. A pass matches meaning, not one exporter's
 * spelling. */
#ifndef PITH_ENGINE_OPT_PASS_H
#define PITH_ENGINE_OPT_PASS_H

#include "base/os/file.h"
#include "engine/ops/op.h"

/* The results of passes, for `pith inspect`: "fused attention: layer …", "not fused: node 12 …
 * because …". */
typedef struct pith__report_line {
    bool done;        /* true: fused; false: a near match, text is the reason */
    const char *what; /* "attention", "layer_norm", "gelu", "skip_norm", "embed_norm", "linear",
                         … */
    pith_str text;
} pith__report_line;

typedef struct pith__report {
    pith__arena *arena;
    pith__report_line *lines;
    size_t count, capacity;
} pith__report;

/* Which passes may run. Every attempt to run a pass counts, round by round in the order of the
 * table. */
typedef struct pith__opt_limits {
    size_t runs;                /* how many attempts are made; SIZE_MAX: all */
    const char *const *without; /* names of passes that are left out; "ragged" is the packed form */
    size_t without_count;
    bool to_write; /* the graph becomes a file: constants must not grow, and weights of few bits
                      stay so */
} pith__opt_limits;

typedef struct pith__opt {
    pith__graph *graph;
    int level;     /* 1 and up; see pith__pass.level */
    int precision; /* pith_precision */
    const pith_allocator *allocator;
    const pith__files *files;       /* where constants may lie; NULL: none */
    pith__report *report;           /* may be NULL */
    const pith__opt_limits *limits; /* NULL: none */
    pith_error *err;
} pith__opt;

typedef struct pith__pass {
    const char *name;
    int level; /* runs from this optimisation level on: 1 exact clean-ups (folding, dead code), also
                  of the graphs that nodes own; 2 fusions that keep the operators' meaning, 3
                  everything */
    bool once; /* not repeated until nothing changes */
    pith_status (*run)(pith__opt *o, size_t *changes);
} pith__pass;

extern const pith__pass *const pith__pass_table[];
extern const size_t pith__pass_table_count;

/* What is no longer read of a file leaves memory: a constant that only replaced nodes read. It may
 * be read again. */
static inline void pith__opt_release(const pith__opt *o, const pith__value *v) {
    if (o->files && v->type.data)
        pith__files_release(o->files, v->type.data->data, v->type.data->bytes);
}

/* stop_after: name of the pass after which to stop (for inspection), or NULL. */
pith_status pith__opt_run(pith__opt *o, const char *stop_after);

/* Returns a number that is larger than the attempts of any pith__opt_run. */
size_t pith__opt_runs_max(void);
/* True if `limits` excludes the pass of this name. limits may be NULL. */
bool pith__opt_without(const pith__opt_limits *limits, const char *name);

void pith__report_add(pith__report *report, bool done, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
