/* A library for LD_PRELOAD: a machine of $PLAYED_PROCESSORS processors, whatever this one has. Threads may be pinned to
 * any of them, and are told so when they ask; where they really run is left to the kernel. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local cpu_set_t pinned;
static _Thread_local int is_pinned;

static int played(void) {
    const char *text = getenv("PLAYED_PROCESSORS");
    const int count = text ? atoi(text) : 0;
    return count > 0 && count <= CPU_SETSIZE ? count : 1;
}

static int get(size_t size, cpu_set_t *set) {
    if (size * 8 < (size_t)played()) return EINVAL;
    memset(set, 0, size);
    for (int i = 0; i < played(); i++)
        if (!is_pinned || CPU_ISSET(i, &pinned)) CPU_SET_S((size_t)i, size, set);
    return 0;
}

static int pin(size_t size, const cpu_set_t *set) {
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (int i = 0; i < played(); i++)
        if ((size_t)i < size * 8 && CPU_ISSET_S((size_t)i, size, set)) CPU_SET(i, &wanted);
    if (!CPU_COUNT(&wanted)) return EINVAL;
    pinned = wanted;
    is_pinned = 1;
    return 0;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    (void)process;
    errno = get(size, set);
    return errno ? -1 : 0;
}
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set) {
    (void)process;
    errno = pin(size, set);
    return errno ? -1 : 0;
}
int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set) {
    (void)thread;
    return get(size, set);
}
int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set) {
    (void)thread;
    return pin(size, set);
}
int get_nprocs(void) { return played(); }
int get_nprocs_conf(void) { return played(); }

long sysconf(int name) {
    if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return played();
    long (*real)(int);
    void *found = dlsym(RTLD_NEXT, "sysconf");
    memcpy(&real, &found, sizeof real);
    return real(name);
}
