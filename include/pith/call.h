/* call.h - the call context: what the options of every call begin with.
 *
 *     pith_embed_options o = PITH_EMBED_OPTIONS_INIT;
 *     o.call.threads = 2;
 *     o.call.deadline_ns = pith_clock_now() + 50000000; // 50 ms from now
 *     if (pith_embed(vectors, model, texts, count, &o, &err) == PITH_ERR_DEADLINE) retry_later();
 *
 * The context is the first member of every options struct. Zero is the default of each of its
 * members, and of every other member of an options struct. */
#ifndef PITH_CALL_H
#define PITH_CALL_H

#include "pith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pith_profile; /* pith/profile.h */

/* A plain value: it never grows. */
typedef struct pith_call {
    size_t size;     /* of the options struct that begins with this context; its _INIT macro sets
                        it */
    int32_t threads; /* number of threads, at most 4096; 0: as pith_set_threads says, by default all
                        CPUs that the process may use. Work that one thread does ignores it. */
    int32_t reserved; /* 0 */
    /* Three ways to end a call early. It returns within 50 ms; handles stay usable, and what had
     * been finished before stays valid where the function says so. Not ended within are functions
     * of the host, such as a custom operator or a writer; what other libraries do in one piece,
     * such as a picture of HEIC (pith/image.h), loading ONNX Runtime, or a read from a slow disk;
     * and a sum, a softmax or the like along an axis of tens of millions of elements. */
    uint64_t deadline_ns;        /* a time of pith_clock_now: the call then ends with
                                   PITH_ERR_DEADLINE. 0: none */
    const volatile int *cancel;  /* any thread, or a signal's handler, may set it to non-zero: the
                                   call then ends with PITH_ERR_CANCELLED. NULL: no flag */
    int32_t (*stop)(void *user); /* asked every few milliseconds, on the calling thread only;
                                    non-zero ends the call with PITH_ERR_CANCELLED. It must not
                                    call the library. NULL: no question. While a host's pool
                                    (pith_executor) has the calling thread, only in parts that it
                                    runs there */
    void (*progress)(void *user, const char *what, uint64_t done, uint64_t total); /* reports the
                                    progress, on the calling thread: `what` names what is counted,
                                    such as "texts", and is valid during the call; total 0: not
                                    known. Only calls whose options, or whose own comments, say so
                                    report it, and what. done rises while `what` is the same; the
                                    end is reported, and there are ten reports in a second at most.
                                    Short calls may report nothing. NULL: no reports */
    void *user;                      /* passed to stop and progress */
    const pith_log *log;             /* receives warnings; NULL: they are dropped */
    struct pith_profile *profile;    /* records steps and phases; NULL: nothing is recorded */
    const pith_allocator *allocator; /* of handles and results that the call makes, which keep a
                                        copy of it. NULL: malloc and free, and mmap for large
                                        blocks; of calls on an open handle, the handle's own */
} pith_call;

/* Returns the time of the library's clock, which is monotonic, in nanoseconds. Thread-safe. */
PITH_API uint64_t pith_clock_now(void);

/* ---- threads of the process ---- */

/* The number of threads of calls whose options say 0, of the whole process; 0: all CPUs that the
 * process may use. Errors: PITH_ERR_ARGUMENT for less than 0 or more than 512; PITH_ERR_UNSUPPORTED
 * for more than 1 in a build without threads. Thread-safe; calls that are running keep theirs. */
PITH_API pith_status pith_set_threads(int32_t threads, pith_error *err);

/* If pin is 1, each thread that the library creates from now on is pinned to one CPU of the
 * caller's current affinity mask. The first CPU is left for the calling thread, which is never
 * pinned. The default is 0: pinning helps on a machine that does nothing else and harms on a shared
 * one. Call it before the first model is opened. Thread-safe. */
PITH_API void pith_pin_threads(int32_t pin);

/* How long an idle thread of the library looks for work before it sleeps, in microseconds; 0: it
 * sleeps at once; a negative number: the default, a few hundred. Spinning makes short calls faster
 * and costs time that other programs could use. Thread-safe. */
PITH_API void pith_set_spin(int32_t microseconds);

/* Ends the library's threads, which are gone when it returns; they are created again when a call
 * needs them. Call it before a fork, before the library is unloaded, or where idle threads are in
 * the way. Those of a queue (pith/queue.h) end with it only. In a build without threads it does
 * nothing. Error: PITH_ERR_BUSY if a call has work on the threads; it does not wait for that call.
 * Thread-safe. */
PITH_API pith_status pith_stop_threads(pith_error *err);

/* Work that a host's thread pool does: run calls task(context, part) once for each part from 0 to
 * parts - 1, and returns when all are done. The parts may run on any threads, in any order, at the
 * same time or one after the other. It may run parts on the calling thread, and must if that is a
 * thread of the pool and all others may be in calls of the library too. There are as many parts as
 * threads, at most 512; each draws work until none is left, so a part that begins late finds little
 * to do. Threads need 1 MiB of stack. A part makes no runs of its own. width: the most that may run
 * at the same time. */
typedef struct pith_executor {
    void (*run)(void *user, void (*task)(void *context, size_t part), void *context, size_t parts,
                int32_t width);
    void *user; /* passed to run */
} pith_executor;

/* From now on the library creates no threads except those of queues (pith/queue.h); what it would
 * give to them goes to this pool. Those that it has sleep; pith_stop_threads ends them. The struct
 * is copied, and what it points to must live until another one has replaced it. NULL: the library's
 * own threads again. Results keep their bits. A child of fork keeps the pool. In a build without
 * threads it has no effect. Errors: PITH_ERR_ARGUMENT if there is no run; PITH_ERR_BUSY if a call
 * has work on the threads. Thread-safe. */
PITH_API pith_status pith_set_executor(const pith_executor *executor, pith_error *err);

/* ---- where results go ---- */

/* Receives what a call writes: a file, text, a picture. A plain value: it never grows. */
typedef struct pith_writer {
    /* Receives the next size bytes, in order, on the calling thread. Non-zero: they cannot be
     * written; the call then ends with PITH_ERR_IO, and write is not called again. */
    int32_t (*write)(void *user, const void *data, size_t size);
    /* Receives the number of all bytes before the first ones, where it is known by then; may be
     * NULL. Non-zero is as above. */
    int32_t (*begin)(void *user, uint64_t total);
    void *user; /* passed to both */
} pith_writer;

/* ---- initialisers ---- */

/* An options struct, or another struct that begins with its size, whose other members are 0. */
#ifdef __cplusplus
}
template <class T> inline T pith_init_of_size() noexcept {
    T value{};
    *reinterpret_cast<size_t *>(&value) = sizeof(T);
    return value;
}
#define PITH_OPTIONS_INIT(type) pith_init_of_size<type>()
#define PITH_SIZED_INIT(type) pith_init_of_size<type>()
#else
/* clang-format off */
#define PITH_OPTIONS_INIT(type) { .call = { .size = sizeof(type) } }
#define PITH_SIZED_INIT(type) { .size = sizeof(type) }
/* clang-format on */
#endif

/* For functions with a context and no options. There, NULL is a context whose members are 0. */
#define PITH_CALL_INIT PITH_SIZED_INIT(pith_call)

#endif
