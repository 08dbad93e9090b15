/* head.c - finds heads by name. */
#include "heads/head.h"

#include <string.h>

#include "base/error.h"

pith_status pith_head_find(const pith_head **head, const char *name, pith_error *err) {
    for (size_t i = 0; i < pith_head_table_count; i++)
        if (!strcmp(pith_head_table[i]->name, name)) {
            *head = pith_head_table[i];
            return PITH_OK;
        }
    return pith_fail(err, PITH_ERR_UNSUPPORTED, "this build does not have the head '%s'", name);
}
