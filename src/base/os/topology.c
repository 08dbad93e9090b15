/* topology.c - see topology.h. Source: Linux Documentation/admin-guide/cputopology; lists of
 * processors are written as "0-3,8" (Documentation/core-api/cpu_hotplug does the same). */
#include "base/os/topology.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a processor of the list below n is allowed: then the core is counted with that one. */
static bool earlier_sibling(const char *list, const unsigned char *allowed, int n) {
    while (*list >= '0' && *list <= '9') {
        char *end;
        long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < n; i++)
            if (allowed[i]) return true;
        if (*end != ',') return false;
        list = end + 1;
    }
    return false;
}

int pith__topology_cores(const char *root, const unsigned char *allowed, int count) {
    int cores = 0;
    for (int n = 0; n < count; n++) {
        char path[512], list[512] = "";
        if (!allowed[n]) continue;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 root ? root : "", n);
        FILE *file = fopen(path, "re");
        if (file && !fgets(list, sizeof list, file)) list[0] = 0;
        if (file) fclose(file);
        cores += !earlier_sibling(list, allowed, n);
    }
    return cores;
}

/* Cores that this process may use. The kernel's mask may be larger than a cpu_set_t, so the set
 * grows until sched_getaffinity takes it. */
int pith__topology_usable_cores(void) {
    for (int limit = 1024; limit <= 1 << 18; limit *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)limit);
        unsigned char *allowed = calloc((size_t)limit, 1);
        size_t bytes = CPU_ALLOC_SIZE((size_t)limit);
        const bool got = set && allowed && sched_getaffinity(0, bytes, set) == 0;
        int cores = 0;
        if (got) {
            for (int i = 0; i < limit; i++) allowed[i] = CPU_ISSET_S((size_t)i, bytes, set) != 0;
            cores = pith__topology_cores(NULL, allowed, limit);
        }
        if (set) CPU_FREE(set);
        free(allowed);
        if (cores > 0) return cores;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

void pith__topology_name(char *name, size_t size, const char *root) {
    char path[512], line[512];
    name[0] = 0;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root ? root : "");
    FILE *file = fopen(path, "re");
    while (file && !name[0] && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        colon += 1 + strspn(colon + 1, " ");
        snprintf(name, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (file) fclose(file);
}
