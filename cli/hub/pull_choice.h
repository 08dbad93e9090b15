/* pull_choice.h - which files of a repository are fetched. */
#ifndef PITH_CLI_HUB_PULL_CHOICE_H
#define PITH_CLI_HUB_PULL_CHOICE_H

#include "cli/hub/hub_listing.h"

/* Sets `wanted`. all: every file. patterns (shell wildcards, on the whole name or on what follows
 * its last slash): the files that fit. Else what Pith reads: small files of configuration and
 * tokenizers, weights of modules, and the weights that docs/cli.md ("Directories") would open first
 * among these files, or those named in `listed` (separated by spaces) if the repository has the
 * first of them. Returns how many. */
size_t pull_choose(hub_listing *l, bool all, const string_list *patterns, const char *listed);

#endif
