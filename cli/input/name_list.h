/* name_list.h - names that an option has in one value, with commas between them: "id,title". */
#ifndef PITH_CLI_INPUT_NAME_LIST_H
#define PITH_CLI_INPUT_NAME_LIST_H

#include "cli/base/cli.h"

/* text NULL or "": no names. Free the list with name_list_free. */
void name_list_read(string_list *list, const char *text);
void name_list_free(string_list *list);

#endif
