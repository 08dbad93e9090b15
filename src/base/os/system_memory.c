/* system_memory.c - see system_memory.h. The files are documented in the kernel's admin-guide:
 * cgroup-v2.rst, cgroup-v1/memory.rst, and accounting/psi.rst. */
#include "base/os/system_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/caller_options.h"
#include "base/error.h"
#include "base/formats/read_double.h"
#include "base/os/clock.h"

enum { FILE_MOST = 8 << 10 };

/* The beginning of a file, as a string; false if it cannot be read. */
static bool memory_read(char text[FILE_MOST], const char *root, const char *path) {
    char full[2048];
    int n = snprintf(full, sizeof full, "%s%s", root ? root : "", path);
    FILE *f = n > 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
    if (!f) return false;
    text[fread(text, 1, FILE_MOST - 1, f)] = 0;
    fclose(f);
    return true;
}

/* The number behind `name` at the beginning of a line; 0 if there is none. */
static uint64_t memory_field(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, n)) return strtoull(line + n, NULL, 10);
    }
    return 0;
}

/* A file that holds one number; 0 for "max" and for files that cannot be read. */
static uint64_t memory_number(const char *root, const char *folder, const char *name) {
    char text[FILE_MOST], path[1200];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || !memory_read(text, root, path)) return 0;
    return strtoull(text, NULL, 10);
}

/* The names that the two versions of control groups have for the same numbers. */
typedef struct memory_names {
    const char *mount, *limits[2], *used, *inactive;
} memory_names;

static const memory_names versions[] = {
    { "/sys/fs/cgroup", { "memory.max", "memory.high" }, "memory.current", "inactive_file " },
    { "/sys/fs/cgroup/memory",
      { "memory.limit_in_bytes", NULL },
      "memory.usage_in_bytes",
      "total_inactive_file " },
};

/* Numbers above this are version 1's way to say that there is no limit. */
#define NO_LIMIT ((uint64_t)1 << 60)

/* Takes the limit of the group in this folder, if it leaves less than the one in info. */
static void memory_look_at(pith_memory_info *info, const char *root, const memory_names *v,
                           const char *folder) {
    char text[FILE_MOST], path[1200];
    uint64_t limit = 0;
    for (int i = 0; i < 2 && v->limits[i]; i++) {
        uint64_t n = memory_number(root, folder, v->limits[i]);
        if (n && n < NO_LIMIT && (!limit || n < limit)) limit = n;
    }
    if (!limit) return;
    uint64_t used = memory_number(root, folder, v->used), cache = 0;
    int n = snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (n > 0 && (size_t)n < sizeof path && memory_read(text, root, path))
        cache = memory_field(text, v->inactive);
    used -= cache < used ? cache : used;
    double share = (double)used / (double)limit;
    if (info->group_limit && share <= (double)info->group_used / (double)info->group_limit) return;
    info->group_limit = limit;
    info->group_used = used;
}

/* Looks at a group and at the groups above it; each may have a limit. In a container the path may
 * be one of outside, so the mount itself is looked at too. */
static void memory_look_up(pith_memory_info *info, const char *root, const memory_names *v,
                           const char *path, size_t n) {
    char folder[1024];
    int length = snprintf(folder, sizeof folder, "%s%.*s", v->mount, (int)n, path);
    size_t mount = strlen(v->mount);
    if (length < 0 || (size_t)length >= sizeof folder) return;
    for (char *end = folder + length; (size_t)(end - folder) > mount; *end = 0) {
        memory_look_at(info, root, v, folder);
        while ((size_t)(end - folder) > mount && *--end != '/') continue;
    }
    folder[mount] = 0;
    memory_look_at(info, root, v, folder);
}

static void memory_groups(pith_memory_info *info, const char *root) {
    char text[FILE_MOST];
    if (!memory_read(text, root, "/proc/self/cgroup")) return;
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t n = strcspn(line, "\n");
        const char *names = memchr(line, ':', n);
        const char *path = names ? memchr(names + 1, ':', n - (size_t)(names + 1 - line)) : NULL;
        if (!path) continue;
        bool v2 = path == names + 1;
        bool memory = v2 || (size_t)(path - names) == strlen(":memory")
                          ? v2 || !strncmp(names, ":memory", 7)
                          : false;
        path++;
        if (memory) memory_look_up(info, root, &versions[!v2], path, n - (size_t)(path - line));
    }
}

static double memory_stalled(const char *root) {
    static const char *const files[] = { "/sys/fs/cgroup/memory.pressure",
                                         "/proc/pressure/memory" };
    char text[FILE_MOST];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!memory_read(text, root, files[i])) continue;
        const char *full = strstr(text, "full avg10=");
        if (!full) continue;
        full += strlen("full avg10=");
        return pith__read_double((pith_str){ full, strspn(full, "0123456789.") }) / 100;
    }
    return 0;
}

pith_status pith__system_memory(pith_memory_info *theirs, const char *root, pith_error *err) {
    pith_memory_info info = PITH_MEMORY_INFO_INIT;
    char text[FILE_MOST];
    if (theirs->size < sizeof theirs->size)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the memory info has no size; initialise it with PITH_MEMORY_INFO_INIT");
    if (memory_read(text, root, "/proc/meminfo")) {
        info.total = memory_field(text, "MemTotal:") << 10;
        info.available = memory_field(text, "MemAvailable:") << 10;
    }
    memory_groups(&info, root);
    info.stalled = memory_stalled(root);
    if (info.total && info.available <= info.total)
        info.used = 1 - (double)info.available / (double)info.total;
    double group = info.group_limit ? (double)info.group_used / (double)info.group_limit : 0;
    if (group > info.used) info.used = group;
    size_t size = theirs->size;
    memcpy(theirs, &info, size < sizeof info ? size : sizeof info);
    theirs->size = size;
    return PITH_OK;
}

/* Looks at the system's memory at most once in a pause, whichever thread comes first; the others go
 * on at once. Memory is short if its share in use is above the threshold or tasks stall for it.
 * *text says which memory it is. */
bool pith__memory_gauge_short(pith__memory_gauge *gauge, char *text, size_t size) {
    if (!gauge->threshold) return false;
    uint64_t now = pith__clock_ns(),
             next = atomic_load_explicit(&gauge->next, memory_order_relaxed);
    if (now < next ||
        !atomic_compare_exchange_strong_explicit(&gauge->next, &next, now + gauge->pause,
                                                 memory_order_relaxed, memory_order_relaxed))
        return false;
    pith_memory_info info = PITH_MEMORY_INFO_INIT;
    if (pith__system_memory(&info, gauge->root, NULL)) return false;
    bool stalled = info.stalled >= PITH_MEMORY_STALLED;
    if (!stalled && info.used < gauge->threshold) return false;
    bool group =
        info.group_limit && info.used <= (double)info.group_used / (double)info.group_limit;
    snprintf(
        text, size,
        "memory is short: %.0f %% of %s is in use, and tasks waited for it %.0f %% of the time",
        100 * info.used, group ? "the control group's limit" : "the machine's memory",
        100 * info.stalled);
    return true;
}
