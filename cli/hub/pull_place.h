/* pull_place.h - where a pulled model is built and where it stands: both in the model cache, and
 * one process at a time.
 *
 * A model is built in the hidden directory .NAME.COMMIT.pulling beside its own, which gets its name
 * when the model is complete. So there is never a directory of that name with a part of a model in
 * it. */
#ifndef PITH_CLI_HUB_PULL_PLACE_H
#define PITH_CLI_HUB_PULL_PLACE_H

#include <limits.h>

#include "cli/hub/pull_pin.h"

typedef struct pull_place {
    /* room for the longest name of a file in them */
    char final[PATH_MAX - 600], staging[PATH_MAX - 600];
    char base[256], folder[PATH_MAX - 1200];
    int lock;
} pull_place;

/* Makes the folders of models/name in the cache and waits until no other process pulls this model.
 * EXIT_DONE, or another exit code after a message. */
int pull_place_open(pull_place *p, const command *c, const char *name);
void pull_place_close(pull_place *p);
/* Makes the directory in which this commit is built, with what an earlier call has left in it. */
int pull_place_stage(pull_place *p, const command *c, const char *commit);
/* A file of the model's directory into the one that is built, without a copy. False if that is not
 * possible. */
bool pull_place_keep(const pull_place *p, const char *name);
/* Gives the complete model its name. old: what the model of that name before it consists of, which
 * goes. */
int pull_place_finish(const pull_place *p, const command *c, const pull_pin *old);

#endif
