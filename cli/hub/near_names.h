/* near_names.h - which names of models are spelled most like a given one. */
#ifndef PITH_CLI_HUB_NEAR_NAMES_H
#define PITH_CLI_HUB_NEAR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { NEAR_NAMES = 3, NEAR_NAME_CHARS = 128 };

typedef struct near_name {
    char name[NEAR_NAME_CHARS];
    bool here; /* the model is on this machine */
    size_t distance;
} near_name;

/* Fills near[NEAR_NAMES], the nearest first, from the models on this machine, the short names and
 * the list of known models. Returns how many there are. */
size_t near_names(near_name *near, const char *typed);

#endif
