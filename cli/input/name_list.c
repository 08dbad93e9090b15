/* name_list.c - see name_list.h. */
#include "cli/input/name_list.h"

#include <stdlib.h>
#include <string.h>

void name_list_read(string_list *list, const char *text) {
    *list = (string_list){ NULL, 0 };
    for (const char *end; text && *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, ",");
        const size_t size = (size_t)(end - text);
        char *name = grow(NULL, size + 1);
        memcpy(name, text, size);
        name[size] = 0;
        list_add(list, name);
    }
}

void name_list_free(string_list *list) {
    for (size_t i = 0; i < list->count; i++) free((char *)(uintptr_t)list->items[i]);
    free(list->items);
    *list = (string_list){ NULL, 0 };
}
