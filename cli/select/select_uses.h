/* select_uses.h - uses a model as programs would, so that the library notes which pieces of it that
 * takes. */
#ifndef PITH_CLI_SELECT_SELECT_USES_H
#define PITH_CLI_SELECT_SELECT_USES_H

#include <pith/detect.h>
#include <pith/image.h>
#include <pith/pith.h>

/* The bit of a use by its name ("embed", "run", …); 0: there is none. */
unsigned select_use_of(const char *name);
/* The names, as a message lists them. */
extern const char select_use_names[];
/* The name of one of the uses. */
const char *select_use_name(unsigned uses);
/* Uses the model in these ways. 0: in all ways that it is made for; if there are none, a session is
 * opened. *done gets the bits of those that went well. The error is that of the first use that did
 * not; with 0, only want of memory and a model that is of no use are errors. */
pith_status select_use(const pith_model *model, unsigned uses, unsigned *done, pith_error *err);
/* Calls act for each function of the library that a program of these uses calls. 0: all uses. */
void select_use_calls(unsigned uses, void (*act)(void *user, const char *function), void *user);

#endif
