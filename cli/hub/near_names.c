/* near_names.c - see near_names.h.
 *
 * The distance is the number of letters that must be changed, whatever their capitals, against the
 * whole name or what follows its slash, the smaller of both. A name that holds the typed one counts
 * as near, however much longer it is. */
#include "cli/hub/near_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/base/cli.h"
#include "cli/hub/known_models.h"
#include "cli/hub/local_models.h"

static size_t near_distance(const char *typed, const char *name) {
    char a[40], b[40];
    small_letters(a, sizeof a, typed, SIZE_MAX);
    small_letters(b, sizeof b, name, SIZE_MAX);
    const size_t d = spelling_distance(a, b), n = strlen(a);
    return n > 2 && strstr(b, a) && d > 2 ? 2 : d;
}

static size_t near_any(const char *typed, const char *name) {
    const char *typed_end = strrchr(typed, '/'), *name_end = strrchr(name, '/');
    const size_t whole = near_distance(typed, name);
    const size_t end =
        near_distance(typed_end ? typed_end + 1 : typed, name_end ? name_end + 1 : name);
    return whole < end ? whole : end;
}

/* Puts a name in its place among those that are nearest. */
static void near_offer(near_name *near, size_t *count, const char *typed, const char *name,
                       bool here) {
    const size_t distance = near_any(typed, name);
    size_t at = 0;
    for (size_t i = 0; i < *count; i++)
        if (!strcasecmp(near[i].name, name)) return;
    while (at < *count && near[at].distance <= distance) at++;
    if (at == NEAR_NAMES || strlen(name) >= NEAR_NAME_CHARS) return;
    if (*count < NEAR_NAMES) ++*count;
    memmove(&near[at + 1], &near[at], (*count - at - 1) * sizeof *near);
    near[at] = (near_name){ .here = here, .distance = distance };
    snprintf(near[at].name, sizeof near[at].name, "%s", name);
}

size_t near_names(near_name *near, const char *typed) {
    local_models local;
    known_model known;
    short_name shorter;
    size_t count = 0;
    const char *at = NULL;
    local_models_find(&local);
    for (size_t i = 0; i < local.count; i++)
        near_offer(near, &count, typed, local.items[i].name, true);
    local_models_free(&local);
    while (short_next(&shorter, &at)) near_offer(near, &count, typed, shorter.name, false);
    at = NULL;
    while (known_next(&known, &at)) near_offer(near, &count, typed, known.field[KNOWN_NAME], false);
    return count;
}
