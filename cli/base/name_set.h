/* name_set.h - names of files that one command writes, each once. */
#ifndef PITH_CLI_BASE_NAME_SET_H
#define PITH_CLI_BASE_NAME_SET_H

#include "cli/base/cli.h"

/* {0} is empty. */
typedef struct name_set {
    char **slots; /* [room], NULL where there is none; room is a power of 2 */
    size_t count, room;
} name_set;

/* Whether the name is there. */
bool name_set_has(const name_set *s, const char *name);
/* Adds the name, from malloc, and returns it; if it is there already, with -2, -3 and so on before
 * its ending: the first that is not there. The set keeps a copy. */
char *name_set_add(name_set *s, char *name);
void name_set_free(name_set *s);

#endif
