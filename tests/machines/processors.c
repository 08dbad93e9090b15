/* A library for LD_PRELOAD: a machine of $PLAYED_PROCESSORS processors (at most 64), whatever this
 * one has. Threads and commands may be pinned to any of them, and are told so when they ask; really
 * they run on those that this machine has, in turn. $PLAYED_ONLY hands a pinned process's set on to
 * what it starts, as the kernel does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PINS = 256 };
static struct {
    pthread_t thread;
    uint64_t set;
} pins[PINS];
static int pin_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int played(void) {
    const char *text = getenv("PLAYED_PROCESSORS");
    const int count = text ? atoi(text) : 0;
    return count > 0 && count <= 64 ? count : 1;
}

static uint64_t allowed(pthread_t thread) {
    const char *only = getenv("PLAYED_ONLY");
    uint64_t set = only ? strtoull(only, NULL, 16) : UINT64_MAX >> (64 - played());
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pin_count; i++)
        if (pthread_equal(pins[i].thread, thread)) set = pins[i].set;
    pthread_mutex_unlock(&lock);
    return set;
}

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* The processors of this machine that stand for those of `wanted`. */
static cpu_set_t standing_for(uint64_t wanted) {
    cpu_set_t here, set;
    int numbers[CPU_SETSIZE], count = 0;
    CPU_ZERO(&here);
    CPU_ZERO(&set);
    syscall(SYS_sched_getaffinity, getpid(), sizeof here, &here);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &here)) numbers[count++] = i;
    for (int i = 0; count && i < 64; i++)
        if (wanted >> i & 1) CPU_SET(numbers[i % count], &set);
    return set;
}

static int get(pthread_t thread, size_t size, cpu_set_t *set) {
    if (size * 8 < (size_t)played()) return EINVAL;
    const uint64_t known = allowed(thread);
    memset(set, 0, size);
    for (size_t i = 0; i < 64 && i < size * 8; i++)
        if (known >> i & 1) CPU_SET_S(i, size, set);
    return 0;
}

static int pin(pthread_t thread, size_t size, const cpu_set_t *set) {
    uint64_t wanted = 0;
    int place = 0;
    for (size_t i = 0; i < (size_t)played() && i < size * 8; i++)
        if (CPU_ISSET_S(i, size, set)) wanted |= (uint64_t)1 << i;
    if (!wanted) return EINVAL;
    pthread_mutex_lock(&lock);
    while (place < pin_count && !pthread_equal(pins[place].thread, thread)) place++;
    if (place < PINS) {
        pins[place].thread = thread;
        pins[place].set = wanted;
        if (place == pin_count) pin_count++;
    }
    pthread_mutex_unlock(&lock);
    int (*really)(pthread_t, size_t, const cpu_set_t *);
    void *found = real("pthread_setaffinity_np");
    memcpy(&really, &found, sizeof really);
    const cpu_set_t here = standing_for(wanted);
    return place < PINS ? really(thread, sizeof here, &here) : ENOMEM;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    (void)process;
    errno = get(pthread_self(), size, set);
    return errno ? -1 : 0;
}
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set) {
    (void)process;
    errno = pin(pthread_self(), size, set);
    if (errno) return -1;
    if (gettid() == getpid()) {
        char text[20];
        snprintf(text, sizeof text, "%llx", (unsigned long long)allowed(pthread_self()));
        setenv("PLAYED_ONLY", text, 1);
    }
    return 0;
}
int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set) {
    return get(thread, size, set);
}
int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set) {
    return pin(thread, size, set);
}
int get_nprocs(void) { return played(); }
int get_nprocs_conf(void) { return played(); }

long sysconf(int name) {
    if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return played();
    long (*really)(int);
    void *found = real("sysconf");
    memcpy(&really, &found, sizeof really);
    return really(name);
}
