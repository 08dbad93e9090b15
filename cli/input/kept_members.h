/* kept_members.h - which members of its objects pith embed keeps. */
#ifndef PITH_CLI_INPUT_KEPT_MEMBERS_H
#define PITH_CLI_INPUT_KEPT_MEMBERS_H

#include "cli/input/json_line.h"

/* names: what --keep says, such as "id,title"; NULL: all are kept. chunks: those that rows of
 * chunks add are not. */
void kept_members_set(json_line *line, const char *names, bool chunks);
void kept_members_free(json_line *line);

#endif
