/* kept_members.c - see kept_members.h. */
#include "cli/input/kept_members.h"

#include <stdlib.h>
#include <string.h>

void kept_members_set(json_line *line, const char *names, bool chunks) {
    static const char *const places[] = { "chunk", "begin", "end", NULL };
    line->added = "embedding";
    line->dropped = chunks ? places : NULL;
    line->kept = NULL;
    if (!names) return;
    string_list *list = grow(NULL, sizeof *list);
    *list = (string_list){ NULL, 0 };
    for (const char *end; *names; names = *end ? end + 1 : end) {
        end = names + strcspn(names, ",");
        const size_t size = (size_t)(end - names);
        char *name = grow(NULL, size + 1);
        memcpy(name, names, size);
        name[size] = 0;
        list_add(list, name);
    }
    line->kept = list;
}

void kept_members_free(json_line *line) {
    string_list *list = (string_list *)(uintptr_t)line->kept;
    if (!list) return;
    for (size_t i = 0; i < list->count; i++) free((char *)(uintptr_t)list->items[i]);
    free(list->items);
    free(list);
    line->kept = NULL;
}
