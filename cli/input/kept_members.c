/* kept_members.c - see kept_members.h. */
#include "cli/input/kept_members.h"

#include <stdlib.h>

#include "cli/input/name_list.h"

void kept_members_set(json_line *line, const char *names, bool chunks) {
    static const char *const places[] = { "chunk", "begin", "end", NULL };
    line->added = "embedding";
    line->dropped = chunks ? places : NULL;
    line->kept = NULL;
    if (!names) return;
    string_list *list = grow(NULL, sizeof *list);
    name_list_read(list, names);
    line->kept = list;
}

void kept_members_free(json_line *line) {
    string_list *list = (string_list *)(uintptr_t)line->kept;
    if (!list) return;
    name_list_free(list);
    free(list);
    line->kept = NULL;
}
