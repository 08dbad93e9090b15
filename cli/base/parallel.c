/* parallel.c - see parallel.h. */
#include "cli/base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct pool {
    void (*work)(void *context, size_t part);
    void *context;
    size_t parts;
    atomic_size_t next; /* the first part that no thread has taken */
} pool;

static void *parallel_take(void *context) {
    pool *p = context;
    for (size_t part; (part = atomic_fetch_add(&p->next, 1)) < p->parts;) p->work(p->context, part);
    return NULL;
}

void parallel_run(void (*work)(void *context, size_t part), void *context, size_t parts,
                  int32_t threads) {
    pool p = { .work = work, .context = context, .parts = parts };
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    size_t count = (size_t)(threads > 0 ? threads : cpu.threads), made = 0;
    if (count > parts) count = parts;
    pthread_t *others = grow(NULL, count * sizeof *others);
    while (made + 1 < count && !pthread_create(&others[made], NULL, parallel_take, &p)) made++;
    parallel_take(&p);
    for (size_t i = 0; i < made; i++) pthread_join(others[i], NULL);
    free(others);
}
