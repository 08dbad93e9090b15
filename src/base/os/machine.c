/* machine.c - what the operating system says of caches and usable CPUs. Sources: Linux
 * Documentation/admin-guide/cgroup-v2 and cgroup-v1/cpu. */
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/threads.h"

/* The text of a small file, without the last newline; false if it cannot be read. */
static bool read_small(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0) return false;
    text[got] = 0;
    if (text[got - 1] == '\n') text[got - 1] = 0;
    return true;
}

/* Size of a cache of level 1 (data), 2 or 3 of the first processor; 0 if unknown. sysconf first,
 * which musl and some processors do not answer; then sysfs. */
static size_t cache_size(int level) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    static const int names[] = { _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                 _SC_LEVEL3_CACHE_SIZE };
    long size = sysconf(names[level - 1]);
    if (size > 0) return (size_t)size;
#endif
    for (int index = 0; index < 8; index++) {
        char path[96], text[32];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        if (!read_small(path, text, sizeof text)) break;
        if (atoi(text) != level) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        if (!read_small(path, text, sizeof text) || strcmp(text, "Instruction") == 0) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        if (!read_small(path, text, sizeof text)) continue;
        char *unit;
        size_t bytes = strtoul(text, &unit, 10);
        if (*unit == 'K') return bytes << 10;
        return *unit == 'M' ? bytes << 20 : bytes;
    }
    return 0;
}

static int affinity_count(void) {
    for (int limit = 1024; limit <= 1 << 18; limit *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)limit);
        if (!set) break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)limit);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

static void keep_least(int *least, long long quota, long long period) {
    if (quota <= 0 || period <= 0) return;
    long long count = quota / period + (quota % period != 0);
    if (count < INT32_MAX && (*least == 0 || count < *least)) *least = (int)count;
}

/* The group's own quota and those of all groups above it, as far as they can be seen. v2: cpu.max,
 * else cfs_*. */
static void group_quota(int *least, const char *mount, const char *group, bool v2) {
    char path[1024], text[64], dir[768];
    snprintf(dir, sizeof dir, "%s", strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        long long quota = 0, period = 0;
        if (v2) {
            snprintf(path, sizeof path, "%s%s/cpu.max", mount, dir);
            if (read_small(path, text, sizeof text)) {
                char *rest;
                quota = strtoll(text, &rest, 10); /* 0 for "max" */
                period = strtoll(rest, NULL, 10);
            }
        } else {
            snprintf(path, sizeof path, "%s%s/cpu.cfs_quota_us", mount, dir);
            if (read_small(path, text, sizeof text)) quota = atoll(text);
            snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", mount, dir);
            if (read_small(path, text, sizeof text)) period = atoll(text);
        }
        keep_least(least, quota, period);
        char *slash = strrchr(dir, '/');
        if (!slash) return;
        *slash = 0;
    }
}

/* The least number of CPUs that the process's control groups allow; 0: no limit. Lines of
 * /proc/self/cgroup name the group of the unified hierarchy (number 0, no controllers) and those of
 * version 1; on systems with both, the unified one is mounted below. */
int pith__cpu_quota(const char *proc_cgroup, const char *mount) {
    char text[8192], path[512];
    int least = 0;
    if (!read_small(proc_cgroup, text, sizeof text)) return 0;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *number = strsep(&line, ":"), *controllers = strsep(&line, ":"), *group = line;
        if (!group || group[0] != '/') continue;
        if (strcmp(number, "0") == 0 && !controllers[0]) {
            group_quota(&least, mount, group, true);
            snprintf(path, sizeof path, "%s/unified", mount);
            group_quota(&least, path, group, true);
            continue;
        }
        char *name;
        while ((name = strsep(&controllers, ","))) {
            if (strcmp(name, "cpu")) continue;
            snprintf(path, sizeof path, "%s/cpu", mount);
            group_quota(&least, path, group, false);
        }
    }
    return least;
}

void pith__machine_read(pith__cpu *cpu) {
    const size_t l1d = cache_size(1), l2 = cache_size(2), l3 = cache_size(3);
    if (l1d) cpu->l1d = l1d;
    if (l2) cpu->l2 = l2;
    if (l3 || cpu->l2 > cpu->l3) cpu->l3 = l3 ? l3 : cpu->l2;
    cpu->quota = pith__cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    cpu->allowed = affinity_count();
    cpu->threads = cpu->quota && cpu->quota < cpu->allowed ? cpu->quota : cpu->allowed;
}
