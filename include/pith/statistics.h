/* statistics.h - what a model has done so far, counted where it happens. */
#ifndef PITH_STATISTICS_H
#define PITH_STATISTICS_H

#include "pith/call.h"
#include "pith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts since the model was opened or pith_model_reset_statistics was called. Times are in
 * nanoseconds; those of a stage are summed over the threads that worked on it. */
typedef struct pith_statistics {
    size_t size; /* sizeof(pith_statistics), set by the caller */
    /* memory */
    uint64_t allocations;       /* requests that reached the host's allocator */
    uint64_t allocation_ns;     /* time the host's allocator took for them */
    uint64_t pool_hits;         /* requests that a pooled block answered */
    uint64_t pool_misses;       /* requests of a size that the pool keeps, but had no block for */
    uint64_t pool_evictions;    /* blocks freed because the pool was full, or unused for longest */
    uint64_t pressure_cleanups; /* times the pool and idle sessions were freed because memory was
                                   short */
    /* texts */
    uint64_t calls;
    uint64_t texts;
    uint64_t tokens;                    /* fed to the model, without padding */
    uint64_t padded_tokens;             /* rows computed for padding */
    uint64_t truncated;                 /* texts that were cut */
    uint64_t windows;                   /* groups of texts that were finished together */
    uint64_t batches;                   /* groups of texts that ran through the model together */
    uint64_t batch_tokens_most;         /* tokens of the largest of them */
    uint64_t batches_predicted_smaller; /* times a batch was made smaller because its memory would
                                           exceed the limit */
    uint64_t batches_retried_smaller;   /* times a window was run again in smaller batches after it
                                           met the limit */
    /* runs of the graph */
    uint64_t runs;
    uint64_t plans_made;     /* memory plans made for the shapes of a run */
    uint64_t plans_reused;   /* runs whose shapes had a plan */
    uint64_t branches;       /* branches of graphs that ran side by side */
    uint64_t buffers_made;   /* runs that needed a new or larger activation buffer */
    uint64_t buffers_reused; /* runs that used the buffer of the run before */
    uint64_t tensors_bound;  /* inputs and outputs that the run used where they lie */
    uint64_t tensors_copied; /* inputs and outputs that were copied */
    /* sessions: the runners of text calls, and sessions of pools */
    uint64_t sessions_made;
    uint64_t sessions_borrowed; /* times one that existed was reused; new ones are in made */
    uint64_t sessions_waited;   /* times a caller waited for one */
    uint64_t sessions_evicted;  /* ended because too many were idle, or idle for too long, or
                                   because the call was so long that keeping their memory would save
                                   less than it costs */
    /* devices */
    uint64_t device_choices; /* devices that were tried, once for each program of the model: that of
                                the graph, that of packed texts, … */
    uint64_t device_successes;     /* runs that ended on the devices they were placed on */
    uint64_t device_fallbacks;     /* times work continued on other devices: a device was not there,
                                  or failed */
    uint64_t device_copies;        /* copies between the host's memory and that of a device */
    uint64_t device_copies_beside; /* of these, copies that ran next to other steps */
    /* time */
    uint64_t tokenize_ns;
    uint64_t plan_ns;
    uint64_t run_ns;
    uint64_t head_ns;
    uint64_t busy_ns;   /* wall time while at least one text call was under way */
    uint64_t cpu_ns;    /* CPU time that the process used in that time, in all its threads */
    uint64_t thread_ns; /* busy_ns times the threads that the calls asked for */
    /* the state at this moment */
    uint64_t bytes;      /* as pith_model_bytes */
    uint64_t peak_bytes; /* as pith_model_bytes */
    uint64_t pool_blocks;
    uint64_t pool_bytes;
    uint64_t sessions_idle; /* that text calls and pools keep */
} pith_statistics;

#define PITH_STATISTICS_INIT PITH_SIZED_INIT(pith_statistics)

/* Fills *statistics. A struct of an older header gets the members it has. Thread-safe; numbers that
 * are counted while this reads may differ by what happens meanwhile. */
PITH_API pith_status pith_model_statistics(pith_statistics *statistics, const pith_model *model,
                                           pith_error *err);
/* Sets all counts to 0, and the peak of pith_model_bytes to what is held now. Thread-safe. */
PITH_API void pith_model_reset_statistics(const pith_model *model);

typedef enum pith_statistics_form {
    PITH_STATISTICS_JSON = 0, /* one object: the members above, and the ratios */
    PITH_STATISTICS_TEXT = 1  /* a table for people */
} pith_statistics_form;

/* Writes the numbers and what follows from them: pool_hit_ratio, buffer_reuse_ratio,
 * zero_copy_ratio, plan_reuse_ratio, device_success_ratio, allocation_mean_ns, batch_mean_tokens
 * and cpu_utilisation (CPU time / wall time / threads). A ratio whose denominator is 0 is null in
 * JSON and "-" in the table. */
PITH_API pith_status pith_statistics_write(const pith_statistics *statistics,
                                           pith_statistics_form form, const pith_writer *writer,
                                           pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
