/* name_set.c - see name_set.h. A table with open addressing. */
#include "cli/base/name_set.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits. */
static uint64_t name_hash(const char *name) {
    uint64_t h = 14695981039346656037u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* Where the name is, or would be. */
static size_t name_slot(const name_set *s, const char *name) {
    size_t i = (size_t)name_hash(name) & (s->room - 1);
    while (s->slots[i] && strcmp(s->slots[i], name) != 0) i = (i + 1) & (s->room - 1);
    return i;
}

bool name_set_has(const name_set *s, const char *name) {
    return s->room && s->slots[name_slot(s, name)];
}

static void name_set_grow(name_set *s) {
    name_set larger = { .room = s->room ? s->room * 2 : 64, .count = s->count };
    larger.slots = grow(NULL, larger.room * sizeof *larger.slots);
    memset(larger.slots, 0, larger.room * sizeof *larger.slots);
    for (size_t i = 0; i < s->room; i++)
        if (s->slots[i]) larger.slots[name_slot(&larger, s->slots[i])] = s->slots[i];
    free(s->slots);
    *s = larger;
}

char *name_set_add(name_set *s, char *name) {
    if (s->count * 2 >= s->room) name_set_grow(s);
    if (name_set_has(s, name)) {
        const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name,
                   *dot = strrchr(last, '.');
        const size_t stem = dot && dot > last ? (size_t)(dot - name) : strlen(name);
        char *other = grow(NULL, strlen(name) + 24);
        for (size_t n = 2; n == 2 || name_set_has(s, other); n++)
            sprintf(other, "%.*s-%zu%s", (int)stem, name, n, name + stem);
        free(name);
        name = other;
    }
    s->slots[name_slot(s, name)] = strcpy(grow(NULL, strlen(name) + 1), name);
    s->count++;
    return name;
}

void name_set_free(name_set *s) {
    for (size_t i = 0; i < s->room; i++) free(s->slots[i]);
    free(s->slots);
    *s = (name_set){ 0 };
}
